//! The meaning of a lock script's keys and arguments.
//!
//! The same operation takes different arguments in different releases. For the script of a jar, the call in the byte code
//! shows which: `getLockName(threadId)` is the owner. For a script that a client sends to a server, only its text
//! shows it: `hincrby` counts under the owner, `pexpire` gets the lease. This file has the parameters, expressions and
//! text patterns that several objects share; each object's folder adds its own.

use std::fmt;

use super::catalogue::home;
use super::jar::Call;
use super::role::{Role, clock_index, owner_index};
use super::text::{contains, digit_after, highest_index};

/// The meaning of a key or an argument: a name of at most 15 bytes, stored as a number so that comparisons are fast.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parameter(u128);

/// The kinds of parameters, stored in the last byte.
const DATA_KEY: u8 = 1;
const REST: u8 = 2;

impl Parameter {
    /// Returns the parameter for a key that holds data of the lock.
    pub const fn data_key(name: &str) -> Parameter {
        Parameter::new(name, DATA_KEY)
    }

    /// Returns the parameter for a channel, a prefix of other keys' names, or a key that remembers a request.
    pub const fn name(name: &str) -> Parameter {
        Parameter::new(name, 0)
    }

    /// Returns the parameter for an argument.
    pub const fn argument(name: &str) -> Parameter {
        Parameter::new(name, 0)
    }

    /// Returns the parameter for an argument that takes all arguments that follow.
    pub const fn rest(name: &str) -> Parameter {
        Parameter::new(name, REST)
    }

    const fn new(name: &str, kind: u8) -> Parameter {
        let mut bytes = [0; 16];
        let (front, _) = bytes.split_at_mut(name.len());
        front.copy_from_slice(name.as_bytes());
        assert!(bytes[15] == 0, "the name is too long");
        bytes[15] = kind;
        Parameter(u128::from_le_bytes(bytes))
    }

    fn kind(self) -> u8 {
        self.0.to_le_bytes()[15]
    }

    /// Returns whether this is a key that holds data of the lock.
    pub fn holds_data(self) -> bool {
        self.kind() == DATA_KEY
    }

    /// Returns whether this takes all arguments that follow.
    pub fn takes_rest(self) -> bool {
        self.kind() == REST
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.to_le_bytes();
        let name = bytes[..15].split(|byte| *byte == 0).next().unwrap_or_default();
        f.write_str(&String::from_utf8_lossy(name))
    }
}

/// The lock object's key.
pub const LOCK: Parameter = Parameter::data_key("lock");
/// The channel on which waiters are notified; for fair locks, the prefix of the waiters' channels.
pub const CHANNEL: Parameter = Parameter::name("channel");
/// The key that remembers the reply to a request.
pub const LATCH: Parameter = Parameter::name("latch");
pub const OWNER: Parameter = Parameter::argument("owner");
pub const LEASE_MS: Parameter = Parameter::argument("lease_ms");
/// The client's clock as Unix time in ms.
pub const CLOCK_MS: Parameter = Parameter::argument("clock_ms");
/// The message that waiters receive.
pub const MESSAGE: Parameter = Parameter::argument("message");
/// The publishing command: `PUBLISH` or `SPUBLISH`.
pub const PUBLISH: Parameter = Parameter::argument("publish");
/// The client's id, without the thread.
pub const CLIENT: Parameter = Parameter::argument("client");
pub const LATCH_TTL: Parameter = Parameter::argument("latch_ttl_ms");
/// The number of permits, or by how much to count down.
pub const COUNT: Parameter = Parameter::argument("count");
/// The number of owners that follow.
pub const OWNER_COUNT: Parameter = Parameter::argument("owner_count");
/// The error with which a lock that is not re-entrant refuses its owner.
pub const REFUSAL: Parameter = Parameter::argument("refusal");

/// The parameters of a script, in the order of its keys and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub keys: Vec<Parameter>,
    pub args: Vec<Parameter>,
}

/// A key or an argument whose meaning neither the call nor the text of a script shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArgument {
    /// The Lua table: `KEYS` or `ARGV`.
    table: &'static str,
    /// The index in that table, from 1.
    index: usize,
    /// What the client passes, if that is known.
    expression: Option<String>,
}

impl fmt::Display for UnknownArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownArgument { table, index, expression } = self;
        match expression {
            Some(expression) => write!(f, "{table}[{index}] is {expression}, which is not understood"),
            None => write!(f, "{table}[{index}] is not understood"),
        }
    }
}

impl std::error::Error for UnknownArgument {}

/// An expression of a client and its meaning. One that ends with a parenthesis covers all calls of that method.
pub type Expression = (&'static str, Parameter);

/// How an object's scripts take their arguments, as far as the patterns shared by all objects do not show it.
pub struct Arguments {
    /// What clients pass as keys, and as arguments.
    pub passed_keys: &'static [Expression],
    pub passed_args: &'static [Expression],
    /// Text before the index of a key.
    pub keys: &'static [(&'static str, Parameter)],
    /// Text before the index of an argument, in the scripts of one role.
    pub args_of: &'static [(Role, &'static str, Parameter)],
    /// Text before the index of an argument, in all scripts of the object.
    pub args: &'static [(&'static str, Parameter)],
    /// Scripts whose arguments have kept their order through all releases, and at most grew in number.
    pub in_order: &'static [(Role, &'static [Parameter], &'static [Parameter])],
    /// Scripts that do not take the object's key.
    pub without_lock: &'static [Role],
    /// Adds parameters that depend on more than one part of the text.
    pub adjust: fn(Role, &[u8], &mut Draft),
    /// The parameters that [checks](crate::check) can read, in addition to the shared ones.
    pub readable: &'static [Parameter],
}

impl Arguments {
    /// The arguments of an object that needs only the shared patterns.
    pub const COMMON: Arguments = Arguments {
        passed_keys: &[],
        passed_args: &[],
        keys: &[],
        args_of: &[],
        args: &[],
        in_order: &[],
        without_lock: &[],
        adjust: |_, _, _| {},
        readable: &[],
    };

    pub(super) fn has_lock(&self, role: Role) -> bool {
        !self.without_lock.contains(&role)
    }
}

/// A binding under construction. The first parameter set for an index stays.
pub struct Draft {
    pub keys: Vec<Option<Parameter>>,
    pub args: Vec<Option<Parameter>>,
}

impl Draft {
    /// Sets the parameter of a key by its index, from 1.
    pub fn set_key(&mut self, index: Option<usize>, parameter: Parameter) {
        set(&mut self.keys, index, parameter);
    }

    /// Sets the parameter of an argument by its index, from 1.
    pub fn set_arg(&mut self, index: Option<usize>, parameter: Parameter) {
        set(&mut self.args, index, parameter);
    }
}

fn set(parameters: &mut [Option<Parameter>], index: Option<usize>, parameter: Parameter) {
    if let Some(place) = index.and_then(|index| parameters.get_mut(index.checked_sub(1)?)) {
        place.get_or_insert(parameter);
    }
}

impl Binding {
    /// Determines the keys and arguments of a script from the call in the client's byte code.
    ///
    /// # Errors
    /// Fails if the client passes something whose meaning is not known.
    pub fn of_call(role: Role, call: &Call) -> Result<Binding, UnknownArgument> {
        let arguments = home(role).map_or(&Arguments::COMMON, |object| object.arguments);
        let keys = meanings("KEYS", &call.keys, [arguments.passed_keys, PASSED_KEYS])?;
        let args = meanings("ARGV", &call.args, [arguments.passed_args, PASSED_ARGS])?;
        Ok(Binding { keys, args })
    }

    /// Determines the arguments of a script with a known role from its text.
    ///
    /// # Errors
    /// Fails if the text does not show what an argument means.
    pub fn of(role: Role, script: &[u8]) -> Result<Binding, UnknownArgument> {
        let arguments = home(role).map_or(&Arguments::COMMON, |object| object.arguments);
        let mut draft =
            in_order(role, arguments, script).unwrap_or_else(|| by_words(role, arguments, script));
        (arguments.adjust)(role, script, &mut draft);
        Ok(Binding { keys: whole("KEYS", draft.keys)?, args: whole("ARGV", draft.args)? })
    }
}

/// Returns the meanings of expressions. Where an expression has several meanings, each is used once, in order.
fn meanings(
    table: &'static str,
    expressions: &[String],
    known: [&[Expression]; 2],
) -> Result<Vec<Parameter>, UnknownArgument> {
    let mut meanings = Vec::new();
    for (at, expression) in expressions.iter().enumerate() {
        let covers = |words: &str| match words.ends_with('(') {
            true => expression.starts_with(words),
            false => expression == words,
        };
        let mut fitting = known.into_iter().flatten().filter(|(words, _)| covers(words));
        let Some((_, parameter)) = fitting.find(|(_, parameter)| !meanings.contains(parameter)) else {
            let expression = Some(expression.clone());
            return Err(UnknownArgument { table, index: at + 1, expression });
        };
        meanings.push(*parameter);
    }
    Ok(meanings)
}

fn whole(table: &'static str, parameters: Vec<Option<Parameter>>) -> Result<Vec<Parameter>, UnknownArgument> {
    let parameters = parameters.into_iter().enumerate();
    parameters
        .map(|(index, parameter)| {
            parameter.ok_or(UnknownArgument { table, index: index + 1, expression: None })
        })
        .collect()
}

fn in_order(role: Role, arguments: &Arguments, script: &[u8]) -> Option<Draft> {
    let (_, keys, args) = arguments.in_order.iter().find(|(of, ..)| *of == role)?;
    let mut keys: Vec<_> = keys.iter().copied().map(Some).collect();
    keys.truncate(highest_index(script, b"KEYS["));
    let takes_rest = args.last().is_some_and(|last| last.takes_rest());
    let mut args: Vec<_> = args.iter().copied().map(Some).collect();
    if !takes_rest {
        args.truncate(highest_index(script, b"ARGV["));
    }
    Some(Draft { keys, args })
}

fn by_words(role: Role, arguments: &Arguments, script: &[u8]) -> Draft {
    let mut draft = Draft {
        keys: vec![None; highest_index(script, b"KEYS[")],
        args: vec![None; highest_index(script, b"ARGV[")],
    };
    if contains(script, b"#KEYS") {
        // For one object at a time.
        let owner = owner_index(script).unwrap_or(2);
        let keys = if contains(script, b"#KEYS,2do") { 2 } else { 1 };
        draft = Draft { keys: vec![None; keys], args: vec![None; owner] };
        draft.set_arg(Some(1), LEASE_MS);
        draft.set_arg(Some(owner), OWNER);
        draft.set_arg(Some(2), OWNER_COUNT);
    }
    if arguments.has_lock(role) {
        draft.set_key(Some(1), LOCK);
    }
    for (words, parameter) in KEYS.iter().chain(arguments.keys) {
        draft.set_key(digit_after(script, words), *parameter);
    }
    if contains(script, b"redis.call(ARGV[") {
        draft.set_key(digit_after(script, "],KEYS["), CHANNEL);
    }
    draft.set_arg(owner_index(script), OWNER);
    draft.set_arg(clock_index(script), CLOCK_MS);
    for (_, words, parameter) in arguments.args_of.iter().filter(|(of, ..)| *of == role) {
        draft.set_arg(digit_after(script, words), *parameter);
    }
    for (words, parameter) in arguments.args.iter().chain(ARGS) {
        draft.set_arg(digit_after(script, words), *parameter);
    }
    draft
}

/// What clients pass as keys. A renewal passes several locks, of which `next()` is one.
const PASSED_KEYS: &[Expression] = &[
    ("getName()", LOCK),
    ("getRawName()", LOCK),
    ("next()", LOCK),
    ("get(0)", LOCK),
    ("getChannelName()", CHANNEL),
    ("channelName", CHANNEL),
    ("getUnlockLatchName(", LATCH),
];

/// What clients pass as arguments.
const PASSED_ARGS: &[Expression] = &[
    ("getLockName(", OWNER),
    ("append(getId())", OWNER),
    ("leaseTime", LEASE_MS),
    ("internalLockLeaseTime", LEASE_MS),
    ("currentTimeMillis()", CLOCK_MS),
    ("unlockMessage", MESSAGE),
    ("UNLOCK_MESSAGE", MESSAGE),
    ("getPublishCommand()", PUBLISH),
    ("timeout", LATCH_TTL),
    ("permits", COUNT),
    ("\"NON_REENTRANT_REACQUIRE\"", REFUSAL),
];

/// Text before the index of a key. The first match decides.
const KEYS: &[(&str, Parameter)] =
    &[("localval=redis.call('get',KEYS[", LATCH), ("'publish',KEYS[", CHANNEL)];

/// Text before the index of an argument.
const ARGS: &[(&str, Parameter)] = &[
    ("'publish',KEYS[2],ARGV[", MESSAGE),
    ("'publish',KEYS[3],ARGV[", MESSAGE),
    ("redis.call(ARGV[", PUBLISH),
    ("],KEYS[2],ARGV[", MESSAGE),
    (",1,'px',ARGV[", LATCH_TTL),
    ("'pexpire',KEYS[1],ARGV[", LEASE_MS),
    ("error_reply(ARGV[", REFUSAL),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_shows_its_name_and_kind() {
        let (key, rest) = (Parameter::data_key("queue"), Parameter::rest("permits"));
        assert_eq!(format!("{key:?} {rest:?}"), "queue permits");
        assert!(key.holds_data() && !key.takes_rest());
        assert!(rest.takes_rest() && !rest.holds_data());
        assert_ne!(key, Parameter::name("queue"));
    }

    #[test]
    fn the_call_shows_what_the_text_of_a_changed_script_does_not() {
        let call = |args: &[&str]| Call {
            method: "eval".to_owned(),
            keys: vec!["getRawName()".to_owned()],
            args: args.iter().map(|arg| arg.to_string()).collect(),
        };
        let renew = super::super::rlock::roles::RENEW;
        let binding = Binding::of_call(renew, &call(&["internalLockLeaseTime", "getLockName(threadId)"]));
        assert_eq!(binding, Ok(Binding { keys: vec![LOCK], args: vec![LEASE_MS, OWNER] }));
        let error = Binding::of_call(renew, &call(&["leaseTime", "?"])).unwrap_err();
        assert_eq!(error.to_string(), "ARGV[2] is ?, which is not understood");
        // Each meaning once: a second lease is not understood.
        assert!(Binding::of_call(renew, &call(&["leaseTime", "leaseTime"])).is_err());
    }

    #[test]
    fn an_argument_of_unknown_meaning_is_an_error() {
        let script = b"if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
            redis.call('pexpire', KEYS[1], ARGV[1]); return ARGV[3]; end; return 0;";
        let error = Binding::of(super::super::rlock::roles::RENEW, script).unwrap_err();
        assert_eq!(error.to_string(), "ARGV[3] is not understood");
    }
}

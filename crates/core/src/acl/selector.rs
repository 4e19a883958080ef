//! One set of permissions: commands, key patterns and channel patterns.

use std::collections::BTreeMap;

use super::catalog::{self, CATEGORIES, CommandSet};
use super::{Context, RuleError};
use crate::commands::command::{Command, NO_AUTH};
use crate::commands::introspection::keys_in_call;
use crate::error::c_text;
use crate::glob;
use crate::version::Version;

/// Why a user may not run a command, with the index of the argument that decided it. A later reason counts as closer to a
/// permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    Command,
    Key(usize),
    Channel(usize),
}

/// The kinds of access to keys that a pattern permits, or that a command needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    pub read: bool,
    pub write: bool,
}

impl Access {
    const ALL: Access = Access { read: true, write: true };

    /// Returns the access that the flags of a key specification mean.
    fn needed(flags: &[&str]) -> Access {
        let has = |names: &[&str]| flags.iter().any(|flag| names.contains(flag));
        Access { read: has(&["access"]), write: has(&["insert", "delete", "update"]) }
    }

    fn covers(self, needed: Access) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

#[derive(Clone, Debug)]
pub(super) struct KeyPattern {
    pub text: Box<[u8]>,
    pub access: Access,
}

/// One set of permissions.
#[derive(Clone, Debug)]
pub struct Selector {
    pub(super) version: Version,
    pub(super) all_keys: bool,
    pub(super) all_channels: bool,
    /// Whether nothing was taken away since all commands were allowed.
    all_commands: bool,
    /// Whether commands that a later release adds are allowed.
    pub(super) future_commands: bool,
    pub(super) allowed: CommandSet,
    /// The first arguments with which a command is allowed that is otherwise not, by the command's number.
    pub(super) first_args: BTreeMap<usize, Vec<Box<[u8]>>>,
    /// The rules about commands since all or none were allowed, each with its sign.
    pub(super) rules: Vec<Vec<u8>>,
    pub(super) keys: Vec<KeyPattern>,
    pub(super) channels: Vec<Box<[u8]>>,
}

impl Selector {
    /// Creates a selector without permissions, except for all channels if that is the default.
    pub fn new(context: Context) -> Selector {
        Selector {
            version: context.version,
            all_keys: false,
            all_channels: context.all_channels,
            all_commands: false,
            future_commands: false,
            allowed: CommandSet::new(context.version, false),
            first_args: BTreeMap::new(),
            rules: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
        }
    }

    /// Returns whether the selector permits everything.
    pub fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Applies one rule, such as `+get`, `~key*` or `allchannels`.
    ///
    /// # Errors
    ///
    /// Fails if the rule is malformed, names an unknown command or has no effect.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match c_text(rule).to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            b"resetkeys" => {
                self.all_keys = false;
                self.keys.clear();
            }
            b"allchannels" | b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            b"resetchannels" => {
                self.all_channels = false;
                self.channels.clear();
            }
            b"allcommands" | b"+@all" => self.set_all_commands(true),
            b"nocommands" | b"-@all" => self.set_all_commands(false),
            _ => match rule {
                [b'~' | b'%', ..] => self.add_key_pattern(rule)?,
                [b'&', pattern @ ..] => self.add_channel(pattern)?,
                [sign @ (b'+' | b'-'), b'@', category @ ..] => {
                    self.set_category(c_text(category), *sign == b'+')?;
                }
                [b'+', command @ ..] => self.allow(c_text(command))?,
                [b'-', command @ ..] => {
                    let row = self.row(c_text(command))?;
                    self.set_command(row, false);
                    self.note_rule(b'-', row.name.as_bytes());
                }
                _ => return Err(RuleError::Syntax),
            },
        }
        Ok(())
    }

    /// Allows all commands or none.
    pub(super) fn set_all_commands(&mut self, all: bool) {
        (self.all_commands, self.future_commands) = (all, all);
        self.allowed = CommandSet::new(self.version, all);
        self.first_args.clear();
        self.rules.clear();
    }

    fn add_key_pattern(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AfterAllKeys);
        }
        let (access, text) = match rule {
            [b'%', rest @ ..] => parse_access(rest).ok_or(RuleError::Syntax)?,
            _ => (Access::ALL, &rule[1..]),
        };
        if has_blanks(text) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|known| *known.text == *text) {
            Some(known) => {
                known.access.read |= access.read;
                known.access.write |= access.write;
            }
            None => self.keys.push(KeyPattern { text: text.into(), access }),
        }
        Ok(())
    }

    fn add_channel(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::AfterAllChannels);
        }
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| **known == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    /// Allows a command, a subcommand, or a command with a first argument.
    fn allow(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|&byte| byte == b'|') else {
            let row = self.row(name)?;
            self.set_command(row, true);
            self.note_rule(b'+', row.name.as_bytes());
            return Ok(());
        };
        let (container, word) = (&name[..bar], &name[bar + 1..]);
        let row = self.row(container)?;
        if container.contains(&b'|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if row.subcommands.is_empty() {
            self.allow_first_argument(row, word);
        } else {
            let row = self.row(name)?;
            self.set_command(row, true);
        }
        self.note_rule(b'+', &name.to_ascii_lowercase());
        Ok(())
    }

    fn allow_first_argument(&mut self, row: &Command, word: &[u8]) {
        let Some(number) = catalog::number(row, self.version) else { return };
        let words = self.first_args.entry(number).or_default();
        if !words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            words.push(word.into());
        }
    }

    fn set_category(&mut self, name: &[u8], allow: bool) -> Result<(), RuleError> {
        let category = CATEGORIES.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(name));
        let category = category.ok_or(RuleError::UnknownCommand)?;
        self.set_commands_of(category, allow);
        let rule = [b"@", category.as_bytes()].concat();
        self.note_rule(if allow { b'+' } else { b'-' }, &rule);
        Ok(())
    }

    /// Allows or forbids the commands of a category.
    pub(super) fn set_commands_of(&mut self, category: &str, allow: bool) {
        for row in catalog::all_rows(self.version) {
            if catalog::is_in(row, category) {
                self.set_command(row, allow);
            }
        }
    }

    /// Allows or forbids a command with all its subcommands.
    pub(super) fn set_command(&mut self, row: &'static Command, allow: bool) {
        let version = self.version;
        self.all_commands &= allow;
        if let Some(number) = catalog::number(row, version) {
            self.allowed.put(number, allow);
            self.first_args.remove(&number);
        }
        for number in catalog::subcommands(row, version).filter_map(|sub| catalog::number(sub, version)) {
            self.allowed.put(number, allow);
        }
    }

    /// Appends a rule about commands, in place of earlier ones about the same command and its subcommands.
    fn note_rule(&mut self, sign: u8, name: &[u8]) {
        self.rules.retain(|known| {
            let rest = known[1..].strip_prefix(name);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"|"))
        });
        self.rules.push([&[sign], name].concat());
    }

    fn row(&self, name: &[u8]) -> Result<&'static Command, RuleError> {
        catalog::row_named(name, self.version).ok_or(RuleError::UnknownCommand)
    }

    /// Decides whether this selector permits a call.
    pub(super) fn check(&self, row: &Command, argv: &[&[u8]], version: Version) -> Result<(), Denial> {
        if !self.all_commands && !row.has(NO_AUTH) && !self.permits_command(row, argv) {
            return Err(Denial::Command);
        }
        if !self.all_keys {
            for (at, flags) in keys_in_call(row, argv, version) {
                if !flags.contains(&"not_key") && !self.permits_key(argv[at], Access::needed(flags)) {
                    return Err(Denial::Key(at));
                }
            }
        }
        if !self.all_channels {
            let is_pattern = row.name == "psubscribe";
            let denied = channels_in_call(row, argv).find(|&at| !self.permits_channel(argv[at], is_pattern));
            if let Some(at) = denied {
                return Err(Denial::Channel(at));
            }
        }
        Ok(())
    }

    fn permits_command(&self, row: &Command, argv: &[&[u8]]) -> bool {
        let Some(number) = catalog::number(row, self.version) else { return false };
        let is_first_argument = |word: &&[u8]| {
            let allowed = self.first_args.get(&number);
            allowed.is_some_and(|words| words.iter().any(|known| known.eq_ignore_ascii_case(word)))
        };
        self.allowed.contains(number) || argv.get(1).is_some_and(is_first_argument)
    }

    fn permits_key(&self, key: &[u8], needed: Access) -> bool {
        self.keys
            .iter()
            .any(|pattern| pattern.access.covers(needed) && glob::matches(&pattern.text, key, false))
    }

    /// Returns whether a channel may be used. A pattern of PSUBSCRIBE must be among the permitted ones literally.
    pub(super) fn permits_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels || is_among(&self.channels, channel, is_pattern)
    }

    /// Returns whether the selector permits reading any key.
    pub(super) fn may_read_every_key(&self) -> bool {
        self.all_keys || self.keys.iter().any(|pattern| *pattern.text == *b"*" && pattern.access.read)
    }
}

fn is_among(permitted: &[Box<[u8]>], channel: &[u8], is_pattern: bool) -> bool {
    permitted.iter().any(|permitted| {
        if is_pattern { **permitted == *channel } else { glob::matches(permitted, channel, false) }
    })
}

/// Returns the positions of the channels that a call publishes or subscribes to.
fn channels_in_call(row: &Command, argv: &[&[u8]]) -> std::ops::Range<usize> {
    match row.name {
        "publish" | "spublish" => 1..2.min(argv.len()),
        "subscribe" | "ssubscribe" | "psubscribe" => 1..argv.len(),
        _ => 0..0,
    }
}

/// Parses the access and the pattern of a rule after its `%`: some of `R` and `W`, each once, then `~` and the pattern.
fn parse_access(rule: &[u8]) -> Option<(Access, &[u8])> {
    let mut access = Access::default();
    let mut rest = rule;
    while let [letter, after @ ..] = rest {
        rest = after;
        match letter.to_ascii_uppercase() {
            b'R' if !access.read => access.read = true,
            b'W' if !access.write => access.write = true,
            b'~' => break,
            _ => return None,
        }
    }
    (access != Access::default()).then_some((access, rest))
}

/// Returns whether a name or pattern has blanks or NULs, which no configuration file could hold.
pub(super) fn has_blanks(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, 0 | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c))
}

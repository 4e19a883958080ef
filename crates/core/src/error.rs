//! Every error text that Redis clients can see, byte for byte, in one place.
//!
//! Each text has its code (`ERR`, `WRONGTYPE`, …) but not the leading `-` that it has on the wire.

use std::borrow::Cow;

use crate::version::Version;

/// An error reply. A handler returns it; the dispatcher writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub Cow<'static, [u8]>);

/// The result of a command handler. On success the handler has already written its reply; an error replaces that reply.
pub type Outcome = Result<(), Error>;

impl Error {
    /// Creates an error from a constant text.
    pub const fn new(text: &'static str) -> Error {
        Error(Cow::Borrowed(text.as_bytes()))
    }

    /// Creates an error from a text made at run time.
    pub fn owned(text: impl Into<Vec<u8>>) -> Error {
        Error(Cow::Owned(text.into()))
    }

    /// Creates an error that repeats an argument at its end, without the line ends there, which Redis drops.
    pub fn repeating(text: &'static str, argument: &[u8]) -> Error {
        let argument = c_text(argument);
        let end = argument.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
        Error::owned([text.as_bytes(), &argument[..end]].concat())
    }

    /// Returns the text that follows the `-` on the wire.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

impl From<&'static str> for Error {
    fn from(text: &'static str) -> Error {
        Error::new(text)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error::owned(text)
    }
}

pub const SYNTAX: Error = Error::new("ERR syntax error");
pub const WRONG_TYPE: Error = Error::new("WRONGTYPE Operation against a key holding the wrong kind of value");
pub const NOT_AN_INTEGER: Error = Error::new("ERR value is not an integer or out of range");
pub const NOT_A_FLOAT: Error = Error::new("ERR value is not a valid float");
pub const OUT_OF_RANGE: Error = Error::new("ERR value is out of range");
pub const MUST_BE_POSITIVE: Error = Error::new("ERR value is out of range, must be positive");
pub const OVERFLOW: Error = Error::new("ERR increment or decrement would overflow");
pub const NAN_OR_INFINITY: Error = Error::new("ERR increment would produce NaN or Infinity");
pub const NO_SUCH_KEY: Error = Error::new("ERR no such key");
pub const INDEX_OUT_OF_RANGE: Error = Error::new("ERR index out of range");

pub const MAX_CLIENTS: Error = Error::new("ERR max number of clients reached");

/// Returns the refusal of a client from another machine in protected mode.
pub fn protected_mode(version: Version) -> Error {
    let set_up = if version < Version::V7_2 { "Setup a an" } else { "Set up an" };
    format!(
        "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the \
         default user. In this mode connections are only accepted from the loopback interface. If you want to connect \
         from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode \
         sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the \
         same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do \
         so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode \
         by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting \
         the server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no' \
         option. 4) {set_up} authentication password for the default user. NOTE: You only need to do one of the above \
         things in order for the server to start accepting connections from the outside."
    )
    .into()
}

/// Returns the refusal of a command that a setting has to allow.
pub fn protected_command(name: &str, setting: &str) -> Error {
    format!(
        "ERR {name} command not allowed. If the {setting} option is set to \"local\", you can run it from a local \
         connection, otherwise you need to set this option in the configuration file, and then restart the server."
    )
    .into()
}

pub const NO_AUTH: Error = Error::new("NOAUTH Authentication required.");
pub const NOT_BUSY: Error = Error::new("NOTBUSY No scripts in execution right now.");
pub const UNKILLABLE: Error = Error::new(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script \
     termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);
pub const BAD_DB: Error = Error::new("ERR DB index is out of range");
pub const INVALID_CURSOR: Error = Error::new("ERR invalid cursor");

pub const OUT_OF_RANGE_FROM_0_TO_1: Error =
    Error::new("ERR value is out of range, value must between 0 and 1");

/// Returns the error for a request while a script, or a function, runs.
pub fn busy(version: Version, is_function: bool) -> Error {
    let product = if version.is_valkey() { "Valkey" } else { "Redis" };
    let kind = if is_function { "FUNCTION" } else { "SCRIPT" };
    format!("BUSY {product} is busy running a script. You can only call {kind} KILL or SHUTDOWN NOSAVE.")
        .into()
}

/// Returns the error for a script that is not cached.
pub fn no_script(version: Version) -> Error {
    Error::new(match version.is_valkey() {
        true => "NOSCRIPT No matching script.",
        false => "NOSCRIPT No matching script. Please use EVAL.",
    })
}

/// The most bytes of a client's argument that an error text repeats.
const MAX_QUOTED: usize = 128;

/// Returns the part of an argument that C's `printf` prints: everything before the first NUL.
pub fn c_text(word: &[u8]) -> &[u8] {
    &word[..word.iter().position(|byte| *byte == 0).unwrap_or(word.len())]
}

/// Returns `ERR unknown command 'x', with args beginning with: 'a' 'b' `. Since 8.6 a command without arguments gets the first
/// part alone.
pub fn unknown_command(argv: &[&[u8]], version: Version) -> Error {
    let (name, args) = argv.split_first().map_or((&b""[..], argv), |(name, args)| (c_text(name), args));
    let mut quoted = Vec::new();
    for arg in args.iter().map(|arg| c_text(arg)) {
        if quoted.len() >= MAX_QUOTED {
            break;
        }
        quoted.push(b'\'');
        quoted.extend_from_slice(&arg[..arg.len().min(MAX_QUOTED - (quoted.len() - 1))]);
        quoted.extend_from_slice(b"' ");
    }
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(&name[..name.len().min(MAX_QUOTED)]);
    text.push(b'\'');
    if !args.is_empty() || version < Version::V8_6 {
        text.extend_from_slice(b", with args beginning with: ");
        text.extend_from_slice(&quoted);
    }
    Error::owned(text)
}

/// Returns `ERR unknown subcommand 'x'. Try NAME HELP.`
pub fn unknown_subcommand(argv: &[&[u8]]) -> Error {
    let word = argv.get(1).map_or(&b""[..], |word| c_text(word));
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(&word[..word.len().min(MAX_QUOTED)]);
    text.extend_from_slice(b"'. Try ");
    text.extend(argv[0].to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    Error::owned(text)
}

/// Returns `ERR value is out of range, value must between MIN and MAX`.
pub fn out_of_range(min: i64, max: i64) -> Error {
    format!("ERR value is out of range, value must between {min} and {max}").into()
}

/// Returns the error for commands that check their subcommands, or the arguments of a subcommand, themselves.
pub fn subcommand_syntax(argv: &[&[u8]]) -> Error {
    let word = argv.get(1).map_or(&b""[..], |word| c_text(word));
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(&word[..word.len().min(MAX_QUOTED)]);
    text.extend_from_slice(b"'. Try ");
    text.extend(argv[0].to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    Error::owned(text)
}

/// Returns `ERR wrong number of arguments for 'name' command`. A subcommand's name is written `parent|sub`.
pub fn wrong_arity(name: &str) -> Error {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// Returns `ERR invalid expire time in 'name' command`.
pub fn invalid_expire(name: &str) -> Error {
    format!("ERR invalid expire time in '{name}' command").into()
}

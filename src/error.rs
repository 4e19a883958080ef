//! Every error text that Redis clients can see, byte for byte, in one place.
//!
//! A text stands here without the leading `-` of the wire, with its code (`ERR`, `WRONGTYPE`, …).

use std::borrow::Cow;

/// An error reply. Handlers return it; the dispatcher writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub Cow<'static, [u8]>);

/// What a command handler returns: its reply is already written, or one error takes its place.
pub type Outcome = Result<(), Error>;

impl Error {
    pub const fn new(text: &'static str) -> Error {
        Error(Cow::Borrowed(text.as_bytes()))
    }

    pub fn owned(text: impl Into<Vec<u8>>) -> Error {
        Error(Cow::Owned(text.into()))
    }

    /// The text after the wire's `-`.
    pub fn text(&self) -> &[u8] {
        &self.0
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

/// `ERR wrong number of arguments for 'name' command`; a subcommand's name reads `parent|sub`.
pub fn wrong_arity(name: &str) -> Error {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// `ERR invalid expire time in 'name' command`.
pub fn invalid_expire(name: &str) -> Error {
    format!("ERR invalid expire time in '{name}' command").into()
}

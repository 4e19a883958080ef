//! The one door through which a test watches and interferes with the core.
//!
//! The core calls a [`Stages`] at the stages of a request's life and applies the answer. It does not know the
//! implementation: fault rules, gates, checkers, or nothing at all ([`NoStages`]).
//!
//! ```text
//! bytes ─▶ request ─▶ received ─▶ execution ─────────────▶ reply ─▶ bytes
//!                                  script_begins
//!                                  script_calls, script_called
//!                                  published ─▶ push ────────────▶ bytes for a subscriber
//!                                  script_ended
//! ```
//!
//! An implementation is shared by a world and its nodes, so its methods take `&self`. None of them may call the world.
//! [`Interest`] says which stages anything is installed for; the core tests one flag and calls nothing for the others.

use crate::conn::ConnId;
use crate::script::{Script, ScriptTag};
use crate::store::Store;
use crate::wire::Reply;

/// Identifies a held request, reply or message. The implementation issues tickets.
pub type Ticket = u64;

/// The stages at which an implementation wants to be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// [`Stages::received`].
    pub requests: bool,
    /// [`Stages::push`].
    pub pushes: bool,
    /// [`Stages::script_begins`], [`Stages::script_ended`] and [`Stages::published`].
    pub scripts: bool,
    /// [`Stages::script_called`].
    pub calls: bool,
}

/// A request that has arrived and has not been executed.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    pub conn: ConnId,
    /// The name that the client set with `CLIENT SETNAME`.
    pub client_name: &'a [u8],
    pub event: u64,
    /// Monotonic time.
    pub now_ms: u64,
    pub argv: &'a [&'a [u8]],
    /// What the script that is cached under a SHA-1 was recognised as.
    pub cached: &'a dyn Fn(&[u8; 40]) -> Option<ScriptTag>,
}

/// Decides what happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request runs.
    Run(Plan),
    /// The client waits until [`World::take_held`](crate::world::World::take_held) gets its request back.
    Hold,
    /// The request is lost, and so is everything that the client sends after it, as on a dead TCP connection.
    Lose,
    /// The request does not run; the client gets this error text.
    Refuse(Vec<u8>),
    /// The request does not run; the client gets these bytes.
    Answer(Vec<u8>),
    /// The connection ends before the request runs.
    Close,
}

/// How a request runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Arguments that replace those of the request.
    pub argv: Option<Vec<Vec<u8>>>,
    /// How many times the request runs; the client gets one reply.
    pub runs: u32,
    /// The client gets the first reply instead of the last.
    pub keeps_first_reply: bool,
    /// The script cache is emptied first.
    pub forgets_scripts: bool,
    /// [`Stages::script_calls`] is asked before each command of a script.
    pub asks_calls: bool,
    /// What happens to the reply, in this order.
    pub effects: Vec<ReplyEffect>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            argv: None,
            runs: 1,
            keeps_first_reply: false,
            forgets_scripts: false,
            asks_calls: false,
            effects: Vec::new(),
        }
    }
}

/// Decides what happens to the reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyEffect {
    /// The reply is lost, with everything that follows it on the connection.
    Lose,
    /// The client gets these bytes instead.
    Replace(Vec<u8>),
    /// The connection ends after this many bytes of the reply.
    CloseAfter(usize),
    /// The reply is held; [`Stages::reply_held`] gives the ticket.
    Hold(Until),
}

/// Until when a reply or a message is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// This gate releases it.
    Released(u64),
    /// So many ms have passed on the world's clock.
    Passed(u64),
}

/// A reply that is about to be held.
#[derive(Clone, Copy)]
pub struct HeldReply<'a> {
    pub conn: ConnId,
    pub until: Until,
    pub bytes: &'a [u8],
    /// Monotonic time.
    pub now_ms: u64,
}

/// A message on its way to one subscriber.
#[derive(Clone, Copy)]
pub struct Push<'a> {
    pub conn: ConnId,
    pub client_name: &'a [u8],
    pub event: u64,
    /// Monotonic time.
    pub now_ms: u64,
    pub channel: &'a [u8],
}

/// Decides what happens to a message to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushFate {
    /// It is delivered this many times; 0 drops it.
    Deliver(u32),
    /// It is held, with everything behind it on the connection, until this ticket is released.
    Hold(Ticket),
}

/// A script that is about to run.
#[derive(Clone, Copy)]
pub struct ScriptStart<'a> {
    pub conn: ConnId,
    /// The client's name, or its address if it has none.
    pub client: &'a [u8],
    pub db: usize,
    pub script: &'a Script,
    pub keys: &'a [&'a [u8]],
    pub argv: &'a [&'a [u8]],
    /// The data before the script runs.
    pub store: &'a Store,
}

/// A script that has ended.
#[derive(Clone, Copy)]
pub struct ScriptEnd<'a> {
    pub node: usize,
    pub event: u64,
    pub sha: [u8; 40],
    pub tag: Option<ScriptTag>,
    pub reply: &'a [u8],
    /// Lua instructions, if they are counted.
    pub instructions: u64,
    /// The data after the script ran.
    pub store: &'a Store,
}

/// A command of a script.
#[derive(Clone, Copy)]
pub struct ScriptCall<'a> {
    pub node: usize,
    /// The database that the script's client has selected.
    pub db: usize,
    /// Whether the script's client is of this machine, or has authenticated with a password.
    pub is_trusted: bool,
    pub argv: &'a [&'a [u8]],
}

/// What the core calls at each stage. Every method does nothing unless an implementation says otherwise.
pub trait Stages {
    /// RECEIVED: decides what happens to a request.
    fn received(&self, _request: &Received) -> Verdict {
        Verdict::Run(Plan::default())
    }

    /// REPLY: a reply is held as [`ReplyEffect::Hold`] asked for. Returns the ticket that releases it.
    fn reply_held(&self, _reply: &HeldReply) -> Ticket {
        0
    }

    /// PUSH: decides what happens to a message to a subscriber.
    fn push(&self, _push: &Push) -> PushFate {
        PushFate::Deliver(1)
    }

    /// Recognises the text of a script that is loaded.
    fn recognise(&self, _script: &[u8]) -> Option<ScriptTag> {
        None
    }

    fn script_begins(&self, _start: &ScriptStart) {}

    /// A script calls a command, and a [`Plan`] asked for this. An error fails the call, which does not run.
    fn script_calls(&self, _call: &ScriptCall) -> Result<(), Vec<u8>> {
        Ok(())
    }

    /// A script calls a command that Redis does not have. Returns whether the reply is written.
    fn foreign_call(&self, _call: &ScriptCall, _reply: &mut Reply) -> bool {
        false
    }

    /// A command of a script was answered with so many bytes.
    fn script_called(&self, _call: &ScriptCall, _reply_len: usize) {}

    fn script_ended(&self, _end: &ScriptEnd) {}

    /// A message was published, by a script or by any other command.
    fn published(&self, _node: usize, _channel: &[u8], _message: &[u8]) {}

    /// A client was disconnected because it did not read its output.
    fn cut_off(&self, _conn: ConnId) {}
}

/// Watches nothing and interferes with nothing.
pub struct NoStages;

impl Stages for NoStages {}

//! The script engine, as the server uses it.

use std::sync::Arc;

use super::bridge::{Loaded, Machine, Setup, Signal};
use super::random::Random;
use super::sha1::sha1_hex;
use super::tag::ScriptTag;
use super::{Flags, Host, api, convert, sandbox, shebang};
use crate::error::Error;
use crate::version::Version;
use crate::wire::reply::Reply;

/// The number of Lua instructions between two suspensions: about one millisecond of work.
pub const SLICE: u32 = 100_000;

/// The most memory the Lua state may hold, in bytes.
pub const MEMORY_LIMIT: usize = 256 << 20;

/// The state of a script after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The script has ended and its reply is written.
    Done,
    /// The slice is used up; `resume` continues the script.
    Suspended,
}

/// A compiled script. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Script(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    sha: [u8; 40],
    tag: Option<ScriptTag>,
    /// The body, if the script has a tag or the server is a Valkey; otherwise empty.
    text: Box<[u8]>,
    flags: Flags,
    chunk: Loaded,
    /// The generation of the `Vm`'s Lua state that the chunk belongs to.
    generation: u64,
}

impl Script {
    /// Returns the SHA-1 of the script's body in lower-case hex.
    pub fn sha(&self) -> &str {
        std::str::from_utf8(&self.0.sha).unwrap_or_default()
    }

    /// Returns the same SHA-1 as bytes of lower-case hex.
    pub fn digest(&self) -> [u8; 40] {
        self.0.sha
    }

    /// Returns the tag with which the stages recognised the script.
    pub fn tag(&self) -> Option<ScriptTag> {
        self.0.tag
    }

    /// Returns the body, if the script has a tag or the server is a Valkey; otherwise an empty slice.
    pub fn text(&self) -> &[u8] {
        &self.0.text
    }

    pub fn flags(&self) -> Flags {
        self.0.flags
    }
}

/// A Lua state, which runs one script at a time.
pub struct Vm {
    version: Version,
    slice: u32,
    memory_limit: usize,
    machine: Machine,
    /// Counts the Lua states that `flush` has discarded.
    generation: u64,
    killed: bool,
    /// The SHA-1 of the running script, for the reply if it is killed.
    running: [u8; 40],
}

impl Vm {
    pub fn new(version: Version) -> Vm {
        Vm::with_limits(version, SLICE, MEMORY_LIMIT)
    }

    /// Creates an engine. `slice` is in instructions, `memory_limit` in bytes.
    pub fn with_limits(version: Version, slice: u32, memory_limit: usize) -> Vm {
        let machine = new_machine(version, slice, memory_limit, Random::default());
        Vm { version, slice, memory_limit, machine, generation: 0, killed: false, running: [0; 40] }
    }

    /// Compiles a script. It stays compiled until `unload` or `flush`.
    ///
    /// # Errors
    /// Fails with the error that `EVAL` and `SCRIPT LOAD` reply to a bad shebang or a syntax error.
    pub fn load(&mut self, body: &[u8]) -> Result<Script, Error> {
        self.load_tagged(body, sha1_hex(body), None)
    }

    /// Compiles a script whose SHA-1 and tag are known.
    pub(crate) fn load_tagged(
        &mut self,
        body: &[u8],
        sha: [u8; 40],
        tag: Option<ScriptTag>,
    ) -> Result<Script, Error> {
        let (flags, skip) = shebang::parse(body, self.version)?;
        let chunk = self.machine.compile(&body[skip..], c"@user_script").map_err(|message| {
            Error::owned([&b"ERR Error compiling script (new function): "[..], &message].concat())
        })?;
        Ok(Script(Arc::new(Compiled {
            sha,
            tag,
            // Valkey shows the body with SCRIPT SHOW.
            text: if tag.is_some() || self.version.is_valkey() { body.into() } else { Box::default() },
            flags,
            chunk,
            generation: self.generation,
        })))
    }

    /// Unloads a compiled script. It must not be started afterwards.
    pub fn unload(&mut self, script: &Script) {
        if script.0.generation == self.generation {
            self.machine.forget(script.0.chunk);
        }
    }

    /// Runs a script until it ends or its slice is used up.
    ///
    /// # Panics
    /// If another script is suspended, or `flush` has discarded this script.
    pub fn start(
        &mut self,
        script: &Script,
        keys: &[&[u8]],
        argv: &[&[u8]],
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Step {
        assert_eq!(script.0.generation, self.generation, "the script was loaded since the last flush");
        self.killed = false;
        self.running = script.0.sha;
        step(self.machine.start(script.0.chunk, &script.0.sha, keys, argv, host, reply))
    }

    /// Resumes the suspended script, or ends it if it was killed.
    ///
    /// # Panics
    /// If no script is suspended.
    pub fn resume(&mut self, host: &mut dyn Host, reply: &mut Reply) -> Step {
        if !self.killed {
            return step(self.machine.resume(host, reply));
        }
        assert!(self.machine.is_suspended(), "no script is suspended");
        self.killed = false;
        let location = self.machine.location();
        self.machine.abandon();
        convert::write_killed(&self.running, location, self.version, reply);
        Step::Done
    }

    /// Returns the SHA-1 of the running script, or of the one that ran last.
    pub fn running(&self) -> [u8; 40] {
        self.running
    }

    /// Turns counting of instructions on or off. Scripts run slower while it is on.
    pub fn count_instructions(&mut self, on: bool) {
        self.machine.count_instructions(on);
    }

    /// Returns the number of instructions of the running script, or of the one that ran last, if they were counted.
    pub fn instructions(&self) -> u64 {
        self.machine.instructions()
    }

    /// Turns recording of executed lines on or off. Scripts run slower while it is on.
    pub fn note_lines(&mut self, on: bool) {
        self.machine.note_lines(on);
    }

    /// Returns whether the running script, or the one that ran last, has reached a line, if lines were recorded. The
    /// first line is 1.
    pub fn has_reached(&self, line: usize) -> bool {
        self.machine.has_reached(line)
    }

    /// Returns whether a script is suspended.
    pub fn is_busy(&self) -> bool {
        self.machine.is_suspended()
    }

    /// Makes the next `resume` end the suspended script. The script cannot notice or prevent this.
    pub fn kill(&mut self) {
        self.killed = self.machine.is_suspended();
    }

    /// Discards the Lua state with all compiled scripts and the suspended script, if any.
    pub fn flush(&mut self) {
        let (counts, notes) = (self.machine.counts_instructions(), self.machine.notes_lines());
        self.machine = new_machine(self.version, self.slice, self.memory_limit, self.machine.random());
        self.machine.count_instructions(counts);
        self.machine.note_lines(notes);
        self.generation += 1;
        self.killed = false;
    }
}

fn new_machine(version: Version, slice: u32, memory_limit: usize, random: Random) -> Machine {
    Machine::new(Setup {
        version,
        slice,
        memory_limit,
        random,
        globals: sandbox::globals,
        on_error: api::on_error,
        finish: convert::finish,
    })
}

fn step(signal: Signal) -> Step {
    match signal {
        Signal::Slice => Step::Suspended,
        Signal::Finished => Step::Done,
    }
}

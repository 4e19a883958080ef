//! The script engine as the server uses it.

use std::sync::Arc;

use sha1::{Digest, Sha1};

use super::bridge::{Loaded, Machine, Setup, Signal};
use super::random::Random;
use super::{Flags, Host, api, convert, sandbox, shebang};
use crate::error::Error;
use crate::stages::ScriptTag;
use crate::version::Version;
use crate::wire::reply::Reply;

/// How many Lua instructions run between two suspensions: about a millisecond's worth.
pub const SLICE: u32 = 100_000;

/// The most memory the Lua state may hold, in bytes.
pub const MEMORY_LIMIT: usize = 256 << 20;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The script has ended and its reply is written.
    Done,
    /// The slice is used up; `resume` goes on.
    Suspended,
}

/// A compiled script. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Script(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    sha: [u8; 40],
    tag: Option<ScriptTag>,
    /// The body of a script with a tag; of others nothing.
    text: Box<[u8]>,
    flags: Flags,
    chunk: Loaded,
    /// Which state of the `Vm` the chunk belongs to.
    generation: u64,
}

impl Script {
    /// Returns the SHA-1 of the script's body, in lower-case hex.
    pub fn sha(&self) -> &str {
        std::str::from_utf8(&self.0.sha).unwrap_or_default()
    }

    /// Returns the same as bytes.
    pub fn digest(&self) -> [u8; 40] {
        self.0.sha
    }

    /// What the stages recognised it as.
    pub fn tag(&self) -> Option<ScriptTag> {
        self.0.tag
    }

    /// Returns the body of a script with a tag; of others nothing.
    pub fn text(&self) -> &[u8] {
        &self.0.text
    }

    pub fn flags(&self) -> Flags {
        self.0.flags
    }
}

/// One Lua state, which runs one script at a time.
pub struct Vm {
    version: Version,
    slice: u32,
    memory_limit: usize,
    machine: Machine,
    /// Counts the states that `flush` has thrown away.
    generation: u64,
    killed: bool,
    /// The SHA-1 of the script that runs, for the reply if it is killed.
    running: [u8; 40],
}

impl Vm {
    pub fn new(version: Version) -> Vm {
        Vm::with_limits(version, SLICE, MEMORY_LIMIT)
    }

    /// `slice` is in instructions, `memory_limit` in bytes.
    pub fn with_limits(version: Version, slice: u32, memory_limit: usize) -> Vm {
        let machine = new_machine(version, slice, memory_limit, Random::default());
        Vm { version, slice, memory_limit, machine, generation: 0, killed: false, running: [0; 40] }
    }

    /// Compiles a script. It stays compiled until `unload` or `flush`.
    ///
    /// # Errors
    /// What `EVAL` and `SCRIPT LOAD` reply to a bad shebang or a syntax error.
    pub fn load(&mut self, body: &[u8]) -> Result<Script, Error> {
        self.load_tagged(body, sha1_hex(body), None)
    }

    /// The same for a script whose SHA-1 is known, and what the stages recognised it as.
    pub(crate) fn load_tagged(
        &mut self,
        body: &[u8],
        sha: [u8; 40],
        tag: Option<ScriptTag>,
    ) -> Result<Script, Error> {
        let (flags, skip) = shebang::parse(body)?;
        let chunk = self.machine.compile(&body[skip..], c"@user_script").map_err(|message| {
            Error::owned([&b"ERR Error compiling script (new function): "[..], &message].concat())
        })?;
        Ok(Script(Arc::new(Compiled {
            sha,
            tag,
            text: if tag.is_some() { body.into() } else { Box::default() },
            flags,
            chunk,
            generation: self.generation,
        })))
    }

    /// Lets go of a compiled script. Nothing may start it any more.
    pub fn unload(&mut self, script: &Script) {
        if script.0.generation == self.generation {
            self.machine.forget(script.0.chunk);
        }
    }

    /// Runs a script until it ends or its slice is used up.
    ///
    /// # Panics
    /// If another script is suspended, or `flush` has thrown this one away.
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

    /// Goes on with the suspended script, or ends it if it was killed.
    ///
    /// # Panics
    /// If no script is suspended.
    pub fn resume(&mut self, host: &mut dyn Host, reply: &mut Reply) -> Step {
        if !self.killed {
            return step(self.machine.resume(host, reply));
        }
        assert!(self.machine.is_suspended(), "a suspended script");
        self.killed = false;
        let place = self.machine.place();
        self.machine.abandon();
        convert::write_killed(&self.running, place, reply);
        Step::Done
    }

    /// Returns the SHA-1 of the script that runs or ran last.
    pub fn running(&self) -> [u8; 40] {
        self.running
    }

    /// Whether every instruction is counted from here on. Scripts run slower then.
    pub fn count_instructions(&mut self, on: bool) {
        self.machine.count_instructions(on);
    }

    /// Returns how many instructions the script that runs or ran last has taken, if they were counted.
    pub fn instructions(&self) -> u64 {
        self.machine.instructions()
    }

    /// Whether it is noted from here on which lines a script runs through. Scripts run slower then.
    pub fn note_lines(&mut self, on: bool) {
        self.machine.note_lines(on);
    }

    /// Returns whether the script that runs or ran last has come to a line, if lines were noted; the first is 1.
    pub fn has_reached(&self, line: usize) -> bool {
        self.machine.has_reached(line)
    }

    /// Returns whether a script is suspended.
    pub fn is_busy(&self) -> bool {
        self.machine.is_suspended()
    }

    /// Makes the next `resume` end the suspended script. Nothing in the script notices, so nothing can prevent it.
    pub fn kill(&mut self) {
        self.killed = self.machine.is_suspended();
    }

    /// Throws away the whole state, and with it all compiled scripts and a suspended one.
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

/// SHA-1 in lower-case hex.
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
        pair[0] = DIGITS[(byte >> 4) as usize];
        pair[1] = DIGITS[(byte & 15) as usize];
    }
    hex
}

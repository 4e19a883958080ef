//! The script engine, as the server uses it.

use std::sync::Arc;

use super::bridge::{Input, Loaded, Machine, Setup, Signal};
use super::random::Random;
use super::sha1::sha1_hex;
use super::tag::ScriptTag;
use super::{Flags, Host, api, convert, library, sandbox, shebang};
use crate::error::Error;
use crate::version::Version;
use crate::wire::reply::{Protocol, Reply};

/// The number of Lua instructions between two suspensions: about one millisecond of work.
pub const SLICE: u32 = 100_000;

/// The most memory the Lua state may hold, in bytes.
pub const MEMORY_LIMIT: usize = 256 << 20;

/// The most memory of a Lua state that `Vm::forget_all` keeps, in bytes.
const KEPT_STATE: usize = 2 << 20;

/// The state of a script after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The script has ended and its reply is written.
    Done,
    /// The slice is used up; `resume` continues the script.
    Suspended,
}

/// The number of slices that a library may use to register its functions: about half a second of work, which is how
/// long Redis allows.
const LOAD_SLICES: u32 = 500;

/// A compiled script, or a function of a library. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Script(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    sha: [u8; 40],
    /// The name, if this is a function.
    function: Option<Box<[u8]>>,
    tag: Option<ScriptTag>,
    /// The body of a script; of a function the text of its library, if it has a tag.
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

    /// Returns the body of a script; of a function the text of its library, if it has a tag, otherwise an empty slice.
    pub fn text(&self) -> &[u8] {
        &self.0.text
    }

    pub fn flags(&self) -> Flags {
        self.0.flags
    }

    /// Returns the name, if this is a function of a library.
    pub fn function(&self) -> Option<&[u8]> {
        self.0.function.as_deref()
    }
}

/// A function of a library that is loaded.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub script: Script,
    pub description: Option<Vec<u8>>,
}

/// What a copy of a server takes over from its script engine, which itself cannot be copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Legacy {
    random: Random,
    counts: bool,
    notes: bool,
    generation: u64,
}

/// Two Lua states, one for scripts and one for functions, of which one runs one script at a time.
pub struct Vm {
    version: Version,
    slice: u32,
    memory_limit: usize,
    scripts: Machine,
    /// Absent until a library is loaded.
    functions: Option<Machine>,
    /// Whether the script that is running, or ran last, is a function.
    in_function: bool,
    /// Counts the Lua states that `flush` has discarded.
    generation: u64,
    killed: bool,
    /// The SHA-1 and the tag of the running script.
    running: [u8; 40],
    running_tag: Option<ScriptTag>,
}

impl Vm {
    pub fn new(version: Version) -> Vm {
        Vm::with_limits(version, SLICE, MEMORY_LIMIT)
    }

    /// Creates an engine that continues another one. It knows none of the scripts of that engine.
    pub(crate) fn continuing(version: Version, legacy: Legacy) -> Vm {
        let mut vm = Vm::new(version);
        vm.scripts.set_random(legacy.random);
        vm.scripts.count_instructions(legacy.counts);
        vm.scripts.note_lines(legacy.notes);
        vm.generation = legacy.generation;
        vm
    }

    /// Returns what an engine that continues this one needs.
    pub(crate) fn legacy(&self) -> Legacy {
        Legacy {
            random: self.machine().random(),
            counts: self.scripts.counts_instructions(),
            notes: self.scripts.notes_lines(),
            generation: self.generation + 1,
        }
    }

    /// Returns whether a script has left something that later scripts can see and that a [`Legacy`] does not have.
    pub(crate) fn leaves_state(&self) -> bool {
        self.scripts.leaves_state() || self.functions.as_ref().is_some_and(Machine::leaves_state)
    }

    /// Creates an engine. `slice` is in instructions, `memory_limit` in bytes.
    pub fn with_limits(version: Version, slice: u32, memory_limit: usize) -> Vm {
        let setup = setup(version, slice, memory_limit, Random::default());
        Vm {
            version,
            slice,
            memory_limit,
            scripts: Machine::new(setup),
            functions: None,
            in_function: false,
            generation: 0,
            killed: false,
            running: [0; 40],
            running_tag: None,
        }
    }

    /// Returns the Lua state of the script that is running, or ran last.
    fn machine(&self) -> &Machine {
        self.functions.as_ref().filter(|_| self.in_function).unwrap_or(&self.scripts)
    }

    fn machine_mut(&mut self) -> &mut Machine {
        self.functions.as_mut().filter(|_| self.in_function).unwrap_or(&mut self.scripts)
    }

    /// Prepares the Lua state of scripts or of functions for a run. Both draw from one sequence of random numbers.
    fn enter(&mut self, in_function: bool) -> &mut Machine {
        let random = self.machine().random();
        if in_function && self.functions.is_none() {
            let (counts, notes) = (self.scripts.counts_instructions(), self.scripts.notes_lines());
            let setup = setup(self.version, self.slice, self.memory_limit, random);
            let mut machine = Machine::new(Setup { globals: sandbox::function_globals, ..setup });
            machine.count_instructions(counts);
            machine.note_lines(notes);
            self.functions = Some(machine);
        }
        self.in_function = in_function;
        let machine = self.machine_mut();
        machine.set_random(random);
        machine
    }

    /// Loads a library: runs its code, which registers functions. Returns the functions in the order of their names.
    ///
    /// # Errors
    /// Fails with the error that `FUNCTION LOAD` replies. Nothing is loaded then.
    ///
    /// # Panics
    /// If a script is suspended.
    pub(crate) fn load_library(
        &mut self,
        text: &[u8],
        header: &library::Header,
        host: &mut dyn Host,
        tag_of: impl Fn(&[u8]) -> Option<ScriptTag>,
    ) -> Result<Vec<Function>, Error> {
        let generation = self.generation;
        let version = self.version;
        let machine = self.enter(true);
        let chunk = machine
            .compile(&text[header.len..], c"@user_function")
            .map_err(|message| Error::owned([&b"ERR Error compiling function: "[..], &message].concat()))?;
        let registry = run_library(machine, chunk, version, host);
        machine.forget(chunk);
        let registered = registry?.functions;
        // A library with one function is the text of that function. Of several, the text says nothing about each.
        let tag = if registered.len() == 1 { tag_of(text) } else { None };
        let functions = registered.into_iter().map(|(name, registered)| {
            let library::Registered { description, flags, callback } = registered;
            let script = Script(Arc::new(Compiled {
                // Scripts are known by the digest of their text; a function's is its library's, followed by its name.
                sha: sha1_hex(&[text, b"\n", &name].concat()),
                function: Some(name.into()),
                tag,
                text: if tag.is_some() { text.into() } else { Box::default() },
                flags,
                chunk: callback,
                generation,
            }));
            Function { script, description }
        });
        Ok(functions.collect())
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
        let chunk = self.scripts.compile(&body[skip..], c"@user_script").map_err(|message| {
            Error::owned([&b"ERR Error compiling script (new function): "[..], &message].concat())
        })?;
        Ok(Script(Arc::new(Compiled {
            sha,
            function: None,
            tag,
            text: body.into(),
            flags,
            chunk,
            generation: self.generation,
        })))
    }

    /// Unloads a compiled script. It must not be started afterwards.
    pub fn unload(&mut self, script: &Script) {
        if !self.knows(script) {
            return;
        }
        match (&script.0.function, &mut self.functions) {
            (Some(_), Some(functions)) => functions.forget(script.0.chunk),
            (Some(_), None) => {}
            (None, _) => self.scripts.forget(script.0.chunk),
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
        assert!(self.knows(script), "the script was loaded since the last flush");
        self.killed = false;
        (self.running, self.running_tag) = (script.0.sha, script.0.tag);
        let (name, input) = match &script.0.function {
            Some(name) => (&name[..], Input::Parameters { keys, argv }),
            None => (&script.0.sha[..], Input::Globals { keys, argv }),
        };
        step(self.enter(script.0.function.is_some()).start(script.0.chunk, name, input, host, reply))
    }

    /// Resumes the suspended script, or ends it if it was killed.
    ///
    /// # Panics
    /// If no script is suspended.
    pub fn resume(&mut self, host: &mut dyn Host, reply: &mut Reply) -> Step {
        if !self.killed {
            return step(self.machine_mut().resume(host, reply));
        }
        assert!(self.is_busy(), "no script is suspended");
        self.killed = false;
        let version = self.version;
        let machine = self.machine_mut();
        let location = machine.location();
        machine.abandon();
        convert::write_killed(&machine.name(), location, version, reply);
        Step::Done
    }

    /// Returns whether a script was loaded since the last flush. Functions survive it.
    pub(crate) fn knows(&self, script: &Script) -> bool {
        script.0.function.is_some() || script.0.generation == self.generation
    }

    /// Returns the SHA-1 of the running script, or of the one that ran last.
    pub fn running(&self) -> [u8; 40] {
        self.running
    }

    /// Returns the tag of the running script, or of the one that ran last.
    pub fn running_tag(&self) -> Option<ScriptTag> {
        self.running_tag
    }

    /// Turns counting of instructions on or off. Scripts run slower while it is on.
    pub fn count_instructions(&mut self, on: bool) {
        self.machines().for_each(|machine| machine.count_instructions(on));
    }

    fn machines(&mut self) -> impl Iterator<Item = &mut Machine> {
        [Some(&mut self.scripts), self.functions.as_mut()].into_iter().flatten()
    }

    /// Returns the number of instructions of the running script, or of the one that ran last, if they were counted.
    pub fn instructions(&self) -> u64 {
        self.machine().instructions()
    }

    /// Turns recording of executed lines on or off. Scripts run slower while it is on.
    pub fn note_lines(&mut self, on: bool) {
        self.machines().for_each(|machine| machine.note_lines(on));
    }

    /// Returns whether the running script, or the one that ran last, has reached a line, if lines were recorded. The
    /// first line is 1.
    pub fn has_reached(&self, line: usize) -> bool {
        self.machine().has_reached(line)
    }

    /// Returns whether a script is suspended.
    pub fn is_busy(&self) -> bool {
        self.machine().is_suspended()
    }

    /// Makes the next `resume` end the suspended script. The script cannot notice or prevent this.
    pub fn kill(&mut self) {
        self.killed = self.is_busy();
    }

    /// Sets which requests for memory of the following scripts are refused. Returns how many there were since the last call.
    #[cfg(test)]
    pub(super) fn refuse_memory(&mut self, refusal: super::bridge::Refusal) -> u64 {
        self.scripts.refuse_memory(refusal)
    }

    /// Collects all garbage. Returns the number of blocks and of bytes that the state of scripts still holds.
    #[cfg(test)]
    pub(super) fn held(&mut self) -> (usize, usize) {
        self.scripts.held()
    }

    /// Forgets all compiled scripts, which are `compiled`, and what they have left for later scripts to see. Functions stay.
    ///
    /// # Panics
    /// If a script is suspended.
    pub(crate) fn forget_all<'a>(&mut self, compiled: impl Iterator<Item = &'a Script>) {
        // A new Lua state costs more than a hundred scripts, so a small one that scripts cannot tell from a new one stays.
        if self.scripts.leaves_state() || self.scripts.memory_used() > KEPT_STATE {
            self.flush();
        } else {
            compiled.for_each(|script| self.unload(script));
        }
    }

    /// Discards the Lua state with all compiled scripts and the suspended script, if any. Functions stay.
    pub fn flush(&mut self) {
        let (counts, notes) = (self.scripts.counts_instructions(), self.scripts.notes_lines());
        let setup = setup(self.version, self.slice, self.memory_limit, self.scripts.random());
        self.scripts = Machine::new(setup);
        self.scripts.count_instructions(counts);
        self.scripts.note_lines(notes);
        self.generation += 1;
        self.killed = false;
    }
}

/// Runs the code of a library. Returns the functions that it has registered.
fn run_library(
    machine: &mut Machine,
    chunk: Loaded,
    version: Version,
    host: &mut dyn Host,
) -> Result<library::Registry, Error> {
    let mut reply = Reply::new(Protocol::Resp2, version);
    machine.open_library();
    machine.with_stack(|lua| sandbox::choose_globals(lua, true));
    let mut signal = machine.start(chunk, b"", Input::Nothing, host, &mut reply);
    for _ in 1..LOAD_SLICES {
        if signal == Signal::Slice {
            signal = machine.resume(host, &mut reply);
        }
    }
    if signal == Signal::Slice {
        machine.abandon();
        reply.raw(b"ERR FUNCTION LOAD timeout");
    }
    machine.with_stack(|lua| sandbox::choose_globals(lua, false));
    let registry = machine.close_library();
    let problem = match reply.as_bytes() {
        [] if registry.functions.is_empty() => Error::new("ERR No functions registered"),
        [] => return Ok(registry),
        error if version.is_valkey() && library::refuses_function(error) => Error::owned(error.to_vec()),
        error => Error::owned([b"ERR Error registering functions: ", error].concat()),
    };
    registry.functions.values().for_each(|function| machine.forget(function.callback));
    Err(problem)
}

fn setup(version: Version, slice: u32, memory_limit: usize, random: Random) -> Setup {
    Setup {
        version,
        slice,
        memory_limit,
        random,
        globals: sandbox::globals,
        on_error: api::on_error,
        finish: convert::finish,
    }
}

fn step(signal: Signal) -> Step {
    match signal {
        Signal::Slice => Step::Suspended,
        Signal::Finished => Step::Done,
    }
}

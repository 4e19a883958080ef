//! The Lua state, the native stack that its scripts run on, and the data that its functions share.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::panic::resume_unwind;
use std::ptr::{self, NonNull};
use std::{mem, process};

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use mlua_sys::{self as ffi, lua_State};

use super::stack::{Function, Stack};
use super::{callers, chunk, guard, memory, proxies};
use crate::script::{Host, library::Registry, random::Random};
use crate::version::Version;
use crate::wire::reply::{Protocol, Reply};

/// The size of a script's native stack, in bytes. Its pages are only reserved until they are used. Lua nests at most
/// 200 C calls in each coroutine of a script, and `resume` prevents coroutines from nesting beyond the stack. A reply
/// that nests as deeply as Lua's stack allows takes most of it.
const NATIVE_STACK: usize = 16 << 20;

/// The native stack, in bytes, that one Lua thread may use: 200 levels of the largest C frames, which contain a buffer
/// of 8 KiB, and one pattern match.
const NATIVE_STACK_PER_THREAD: usize = 4 << 20;

/// The reason why the script's native stack returned control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) enum Signal {
    Finished,
    /// The slice of instructions is used up.
    Slice,
}

/// The settings of a machine.
pub(in crate::script) struct Setup {
    pub version: Version,
    /// The number of VM instructions between two suspensions.
    pub slice: u32,
    /// The most bytes that the state may hold while a script runs.
    pub memory_limit: usize,
    /// The state from which `math.random` continues.
    pub random: Random,
    /// Builds the table of globals, which is at 1, and pushes its guarded view.
    pub globals: Function,
    /// Handles every error of a script: takes the error value and returns an error value.
    pub on_error: Function,
    pub finish: Finish,
}

/// A compiled chunk or another function, identified by its key in Lua's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) struct Loaded(pub(super) c_int);

/// How a function gets the keys and the arguments of its call.
#[derive(Clone, Copy)]
pub(in crate::script) enum Input<'a> {
    /// As the globals `KEYS` and `ARGV`.
    Globals { keys: &'a [&'a [u8]], argv: &'a [&'a [u8]] },
    /// As two parameters.
    Parameters { keys: &'a [&'a [u8]], argv: &'a [&'a [u8]] },
    /// There are none: the chunk of a library runs once, to register its functions.
    Nothing,
}

/// Turns the result of a run, on top of the stack, into its reply. The flag says whether it is an error.
pub(in crate::script) type Finish = fn(&mut Stack, bool, &mut Reply);

/// The data that the functions of one machine share. Lua's allocator holds the pointer to it, through which every
/// function finds it.
#[repr(C)]
pub(in crate::script) struct Shared {
    pub(super) memory: memory::Memory,
    pub version: Version,
    pub protocol: Cell<Protocol>,
    pub random: RefCell<Random>,
    /// The buffer for the reply to the command that a script is calling.
    pub scratch: RefCell<Reply>,
    /// The numbers among the arguments of such a call, as text.
    pub digits: RefCell<Vec<u8>>,
    /// The name of the running script in error texts: its SHA-1.
    pub name: RefCell<Vec<u8>>,
    /// How many times the running script has called `os.clock`.
    pub clock_reads: Cell<u64>,
    /// How many slices the running script has used up.
    pub slices: Cell<u64>,
    /// How many coroutines were resumed since the last pause because of resumes.
    pub(super) resumes: Cell<u32>,
    /// The steps that library functions have taken since the last pause because of them.
    steps: Cell<usize>,
    /// Whether instructions are counted, and the number that the script has executed.
    counts: Cell<bool>,
    instructions: Cell<u64>,
    /// Whether lines are recorded, and for each line whether the script has reached it.
    notes_lines: Cell<bool>,
    lines: RefCell<Vec<bool>>,
    slice: c_int,
    finish: Finish,
    /// The functions that the library that is being loaded has registered.
    pub library: RefCell<Option<Registry>>,
    host: Cell<Option<NonNull<dyn Host>>>,
    reply: Cell<Option<NonNull<Reply>>>,
    yielder: Cell<*const Yielder<(), Signal>>,
    /// The lowest address that the native stack may have reached when a coroutine is resumed.
    native_limit: Cell<usize>,
    panic: Cell<Option<Box<dyn Any + Send>>>,
    main: Cell<*mut lua_State>,
    /// The Lua thread that runs scripts. The main thread only owns it.
    pub(super) thread: Cell<*mut lua_State>,
    /// The Lua thread whose hook suspended last, possibly a coroutine of the script.
    suspended: Cell<*mut lua_State>,
    plain_globals: Cell<c_int>,
    guarded_globals: Cell<c_int>,
    keys_name: Cell<c_int>,
    argv_name: Cell<c_int>,
    pub(super) proxies: RefCell<proxies::Proxies>,
    /// The registry key of the table that numbers objects.
    pub(super) object_numbers: Cell<c_int>,
    last_object_number: Cell<u64>,
    /// Whether a script has left something that later scripts can see, besides the state of the random numbers.
    pub leaves_state: Cell<bool>,
}

impl Shared {
    /// # Safety
    /// `state` belongs to a [`Machine`].
    pub(super) unsafe fn of<'a>(state: *mut lua_State) -> &'a Shared {
        // SAFETY: the allocator's pointer is the `Shared` that the machine was made with; it outlives the state.
        unsafe {
            let mut shared: *mut c_void = ptr::null_mut();
            ffi::lua_getallocf(state, &mut shared);
            &*(shared as *const Shared)
        }
    }

    /// Runs `use_host` with the host of this slice.
    pub fn with_host<R>(&self, use_host: impl FnOnce(&mut dyn Host) -> R) -> R {
        let host = self.host.take().expect("a host while a script runs, and one call at a time");
        // SAFETY: `Machine::drive` stored it for the length of the slice; it is taken out while in use.
        let result = use_host(unsafe { &mut *host.as_ptr() });
        self.host.set(Some(host));
        result
    }

    pub(super) fn next_object_number(&self) -> u64 {
        self.leaves_state.set(true);
        self.last_object_number.set(self.last_object_number.get() + 1);
        self.last_object_number.get()
    }

    pub(super) fn environment(&self, guarded: bool) -> c_int {
        if guarded { self.guarded_globals.get() } else { self.plain_globals.get() }
    }

    /// Returns whether the native stack has room for one more Lua thread.
    pub(super) fn has_native_room(&self) -> bool {
        let here = 0u8;
        &raw const here as usize > self.native_limit.get()
    }

    /// Counts steps of a library function. Returns whether the script has to pause: after as many steps as a slice has
    /// instructions.
    #[inline]
    pub(super) fn count_steps(&self, steps: usize) -> bool {
        let steps = self.steps.get() + steps;
        let is_enough = steps >= self.slice as usize;
        self.steps.set(if is_enough { 0 } else { steps });
        is_enough
    }

    /// Records that the script has reached a line. Lines of a text that the script itself compiles count as the
    /// script's own.
    fn note_line(&self, line: c_int) {
        let (mut lines, line) = (self.lines.borrow_mut(), usize::try_from(line).unwrap_or(0));
        if lines.len() <= line {
            lines.resize(line + 1, false);
        }
        lines[line] = true;
    }

    /// Returns control to the driver. This call returns when the driver resumes the script.
    fn suspend(&self, signal: Signal) {
        // SAFETY: `serve` stored its yielder, and Lua runs nowhere else.
        unsafe { (*self.yielder.get()).suspend(signal) };
    }

    /// Keeps a panic until the script has ended and the driver has control again.
    pub(super) fn keep_panic(&self, payload: Box<dyn Any + Send>) {
        self.memory.end_script();
        self.panic.set(Some(payload));
    }
}

/// A Lua state with its native stack and shared data.
pub(in crate::script) struct Machine {
    shared: NonNull<Shared>,
    /// Runs `serve`, which never returns, but may panic.
    native: Coroutine<(), Signal, (), DefaultStack>,
    suspended: bool,
    /// The size of the state, in bytes, from which on all garbage is collected after a script.
    collect_at: usize,
}

// SAFETY: everything that the pointers reach is owned by the machine, a suspended native stack holds frames of Lua and of this module
// only, and neither keeps anything that belongs to an OS thread.
unsafe impl Send for Machine {}

/// The only permanent value at the bottom of the script thread's stack: the function that handles errors. Nothing else
/// may be there, because the values below a reply limit how deeply it may nest.
const ON_ERROR: c_int = 1;

impl Machine {
    pub fn new(setup: Setup) -> Machine {
        let shared = Box::new(Shared {
            memory: memory::Memory::new(setup.memory_limit),
            version: setup.version,
            protocol: Cell::default(),
            random: RefCell::new(setup.random),
            scratch: RefCell::new(Reply::new(Protocol::Resp2, setup.version)),
            digits: RefCell::default(),
            name: RefCell::default(),
            clock_reads: Cell::default(),
            slices: Cell::default(),
            resumes: Cell::default(),
            steps: Cell::default(),
            counts: Cell::default(),
            instructions: Cell::default(),
            notes_lines: Cell::default(),
            lines: RefCell::default(),
            slice: setup.slice.min(c_int::MAX as u32) as c_int,
            finish: setup.finish,
            library: RefCell::default(),
            host: Cell::new(None),
            reply: Cell::new(None),
            yielder: Cell::new(ptr::null()),
            native_limit: Cell::default(),
            panic: Cell::default(),
            main: Cell::new(ptr::null_mut()),
            thread: Cell::new(ptr::null_mut()),
            suspended: Cell::new(ptr::null_mut()),
            plain_globals: Cell::new(ffi::LUA_REFNIL),
            guarded_globals: Cell::new(ffi::LUA_REFNIL),
            keys_name: Cell::new(ffi::LUA_REFNIL),
            argv_name: Cell::new(ffi::LUA_REFNIL),
            proxies: RefCell::default(),
            object_numbers: Cell::new(ffi::LUA_REFNIL),
            last_object_number: Cell::default(),
            leaves_state: Cell::default(),
        });
        let shared = NonNull::from(Box::leak(shared));
        // SAFETY: the pointer stays valid until `drop` has closed the state.
        let main = unsafe { ffi::lua_newstate(memory::allocate, shared.as_ptr().cast()) };
        assert!(!main.is_null(), "a new Lua state");
        let machine = Machine { shared, native: native_stack(shared), suspended: false, collect_at: 0 };
        machine.shared().main.set(main);
        // SAFETY: the state is fresh, and its memory limit is off.
        unsafe { machine.set_up(main, &setup) };
        machine
    }

    pub(super) fn shared(&self) -> &Shared {
        // SAFETY: leaked in `new`, freed in `drop`.
        unsafe { self.shared.as_ref() }
    }

    /// Fills the registry and the globals, and creates the thread that runs scripts.
    ///
    /// # Safety
    /// `main` is the machine's fresh state, with the memory limit off.
    unsafe fn set_up(&self, main: *mut lua_State, setup: &Setup) {
        let shared = self.shared();
        // SAFETY: by the caller. What is called outside a `Stack` is in room that a fresh state has, and can raise for want of memory only.
        unsafe {
            ffi::lua_atpanic(main, abort_on_raise);
            guard::open_libraries(main);
            ffi::lua_pushvalue(main, ffi::LUA_GLOBALSINDEX);
            let mut stack = Stack::running(main, shared);
            assert!((setup.globals)(&mut stack).is_ok(), "the globals are set up without an error");
            shared.guarded_globals.set(stack.keep());
            stack.set_len(1);
            shared.plain_globals.set(stack.keep());
            stack.push_bytes(b"KEYS");
            shared.keys_name.set(stack.keep());
            stack.push_bytes(b"ARGV");
            shared.argv_name.set(stack.keep());
            // Lua creates this text when it cannot catch an error, and must not have to allocate it then.
            stack.push_bytes(b"error in error handling");
            stack.keep();
            // Only the registry refers to this block, and nothing uses it.
            ffi::lua_newuserdata(main, BALLAST);
            ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX);
            let thread = ffi::lua_newthread(main);
            ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX);
            let mut stack = Stack::running(thread, shared);
            stack.push_error_handler(setup.on_error);
            shared.thread.set(thread);
        }
    }

    /// Compiles `text`. Fails with Lua's message.
    pub fn compile(&mut self, text: &[u8], name: &CStr) -> Result<Loaded, Vec<u8>> {
        if text.len() >= TEXT_LIMIT {
            return Err(b"not enough memory".to_vec());
        }
        let main = self.shared().main.get();
        // SAFETY: main's stack is at its bottom, and the memory limit is off between slices.
        unsafe {
            if chunk::load_text(main, text, name) == 0 {
                return Ok(Loaded(ffi::luaL_ref(main, ffi::LUA_REGISTRYINDEX)));
            }
            let mut stack = Stack::running(main, self.shared());
            let message = stack.text(-1).unwrap_or_default().to_vec();
            stack.pop(1);
            Err(message)
        }
    }

    /// Returns the memory that the state holds, in bytes.
    pub fn memory_used(&self) -> usize {
        self.shared().memory.used.get()
    }

    /// Releases a compiled chunk.
    pub fn forget(&mut self, loaded: Loaded) {
        // SAFETY: main's stack is at its bottom, and the registry is a table; the memory limit is off between slices.
        unsafe { ffi::luaL_unref(self.shared().main.get(), ffi::LUA_REGISTRYINDEX, loaded.0) };
    }

    /// Calls `change` with an empty part of the stack. No script may be suspended.
    pub fn with_stack(&mut self, change: impl FnOnce(&mut Stack)) {
        assert!(!self.suspended, "a script is suspended");
        // SAFETY: nothing runs in the state, main's stack is at its bottom, and the memory limit is off between slices.
        let mut stack = unsafe { Stack::running(self.shared().main.get(), self.shared()) };
        change(&mut stack);
        stack.set_len(0);
    }

    /// Begins to take the functions that a library registers.
    pub fn open_library(&mut self) {
        *self.shared().library.borrow_mut() = Some(Registry::default());
    }

    /// Ends this, and returns the functions.
    pub fn close_library(&mut self) -> Registry {
        self.shared().library.borrow_mut().take().unwrap_or_default()
    }

    /// Returns the name in error texts of the script that runs or ran last.
    pub fn name(&self) -> Vec<u8> {
        self.shared().name.borrow().clone()
    }

    /// Runs a chunk until it ends or has used up its slice. `name` is its name in error texts.
    pub fn start(
        &mut self,
        chunk: Loaded,
        name: &[u8],
        input: Input,
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Signal {
        assert!(!self.suspended, "another script is suspended");
        if self.native.done() {
            self.native = native_stack(self.shared);
            // SAFETY: nothing runs on the thread, and the handler is there.
            unsafe { ffi::lua_settop(self.shared().thread.get(), ON_ERROR) };
        }
        let shared = self.shared();
        shared.protocol.set(Protocol::Resp2);
        shared.slices.set(0);
        shared.clock_reads.set(0);
        shared.resumes.set(0);
        shared.steps.set(0);
        shared.instructions.set(0);
        shared.lines.borrow_mut().clear();
        {
            let mut running = shared.name.borrow_mut();
            running.clear();
            running.extend_from_slice(name);
        }
        let thread = shared.thread.get();
        // SAFETY: nothing runs on the thread, its stack has room for LUA_MINSTACK values, and the memory limit is off.
        unsafe {
            if let Input::Globals { keys, argv } = input {
                ffi::lua_rawgeti_(thread, ffi::LUA_REGISTRYINDEX, shared.plain_globals.get());
                set_list(thread, shared.keys_name.get(), keys);
                set_list(thread, shared.argv_name.get(), argv);
                ffi::lua_settop(thread, ON_ERROR);
            }
            let every = if shared.counts.get() { 1 } else { shared.slice };
            let lines = if shared.notes_lines.get() { ffi::LUA_MASKLINE } else { 0 };
            ffi::lua_sethook(thread, Some(on_event), ffi::LUA_MASKCOUNT | lines, every);
            ffi::lua_rawgeti_(thread, ffi::LUA_REGISTRYINDEX, chunk.0);
            if let Input::Parameters { keys, argv } = input {
                push_list(thread, keys);
                push_list(thread, argv);
            }
        }
        self.drive(host, reply)
    }

    /// Resumes the suspended script.
    pub fn resume(&mut self, host: &mut dyn Host, reply: &mut Reply) -> Signal {
        assert!(self.suspended, "no script is suspended");
        self.drive(host, reply)
    }

    /// Turns counting of instructions on or off for the scripts that follow.
    pub fn count_instructions(&mut self, on: bool) {
        self.shared().counts.set(on);
    }

    pub fn counts_instructions(&self) -> bool {
        // SAFETY: `Shared` lives as long as the machine.
        unsafe { self.shared.as_ref() }.counts.get()
    }

    /// Returns the number of instructions of the running script, or of the one that ran last, if they were counted.
    pub fn instructions(&self) -> u64 {
        // SAFETY: `Shared` lives as long as the machine.
        unsafe { self.shared.as_ref() }.instructions.get()
    }

    /// Turns recording of executed lines on or off for the scripts that follow.
    pub fn note_lines(&mut self, on: bool) {
        self.shared().notes_lines.set(on);
    }

    pub fn notes_lines(&self) -> bool {
        self.shared().notes_lines.get()
    }

    /// Returns whether the running script, or the one that ran last, has reached a line, if lines were recorded.
    pub fn has_reached(&self, line: usize) -> bool {
        self.shared().lines.borrow().get(line).is_some_and(|reached| *reached)
    }

    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    fn drive(&mut self, host: &mut dyn Host, reply: &mut Reply) -> Signal {
        let shared = self.shared;
        // SAFETY: `Shared` lives as long as the machine. The two pointers are taken out below, before their borrows end;
        // the transmute only forgets the host's lifetime.
        let shared = unsafe {
            let shared = shared.as_ref();
            shared
                .host
                .set(Some(mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host>>(NonNull::from(host))));
            shared.reply.set(Some(NonNull::from(reply)));
            shared
        };
        // After a panic in writing the reply, no script remains.
        self.suspended = false;
        let signal = self.run_native();
        shared.host.set(None);
        shared.reply.set(None);
        self.suspended = signal == Signal::Slice;
        if signal == Signal::Finished {
            self.collect_after_large_scripts();
        }
        if let Some(payload) = shared.panic.take() {
            resume_unwind(payload);
        }
        signal
    }

    /// Runs the native stack until it returns control.
    fn run_native(&mut self) -> Signal {
        match self.native.resume(()) {
            CoroutineResult::Yield(signal) => signal,
            CoroutineResult::Return(()) => unreachable!("`serve` does not return"),
        }
    }

    /// Ends the suspended script, if there is one. The script cannot catch this, and none of its code runs any more
    /// (see [`raise_end`]).
    pub fn abandon(&mut self) {
        if !self.suspended {
            return;
        }
        self.end_suspended();
        self.collect();
    }

    fn end_suspended(&mut self) {
        self.shared().memory.end_script();
        let signal = self.run_native();
        debug_assert_eq!(signal, Signal::Finished);
        self.suspended = false;
    }

    /// Returns the source and line at which the script is suspended: those of the innermost Lua function.
    pub fn location(&self) -> Option<(Vec<u8>, i32)> {
        let state = self.shared().suspended.get();
        if !self.suspended || state.is_null() {
            return None;
        }
        // SAFETY: the script is suspended in its hook, where its call stack may be read.
        unsafe { callers::location(state, 0) }
    }

    #[cfg(test)]
    pub fn main(&self) -> *mut lua_State {
        self.shared().main.get()
    }

    pub(super) fn collect(&mut self) {
        // SAFETY: the state is live and no slice runs. There are no finalizers, so the collector runs nothing that could raise.
        unsafe { ffi::lua_gc(self.shared().main.get(), ffi::LUA_GCCOLLECT, 0) };
        let memory = &self.shared().memory;
        self.collect_at = memory.used.get() + GROWTH.min(memory.limit / 8);
    }

    /// Collects all garbage once a script has left much of it, so that it does not count against the next script's
    /// limit.
    fn collect_after_large_scripts(&mut self) {
        if self.shared().memory.used.get() > self.collect_at {
            self.collect();
        }
    }

    pub fn random(&self) -> Random {
        *self.shared().random.borrow()
    }

    /// Returns whether a script has left something that later scripts can see: options of `cjson`, or the numbers that
    /// `tostring` shows for objects.
    pub fn leaves_state(&self) -> bool {
        self.shared().leaves_state.get()
    }

    pub fn set_random(&mut self, random: Random) {
        *self.shared().random.borrow_mut() = random;
    }
}

/// The limit for a chunk's text, in bytes: Lua's lexer counts the `=` of long brackets in an `int`. The memory limit
/// keeps text that a script compiles shorter than this.
const TEXT_LIMIT: usize = 1 << 30;

/// Creates a native stack for scripts. Nothing runs on it yet.
fn native_stack(shared: NonNull<Shared>) -> Coroutine<(), Signal, (), DefaultStack> {
    let stack = DefaultStack::new(NATIVE_STACK).expect("memory for a script's native stack");
    let limit = stack.limit().get() + NATIVE_STACK_PER_THREAD;
    // SAFETY: the machine frees `Shared` only after it has given this stack up.
    unsafe { shared.as_ref() }.native_limit.set(limit);
    Coroutine::with_stack(stack, move |yielder, ()| {
        // SAFETY: as above.
        serve(yielder, unsafe { shared.as_ref() })
    })
}

/// The size of an unused block, in bytes. Lua collects garbage when the state has doubled, and its live data is small:
/// without this ballast Lua would mark all of it every few hundred scripts. With a larger one garbage outgrows the second-level cache.
const BALLAST: usize = 512 << 10;

/// How much the state may grow from one script to the next before all garbage is collected, in bytes; at most an eighth of the limit.
const GROWTH: usize = 32 << 20;

impl Drop for Machine {
    fn drop(&mut self) {
        if self.suspended {
            self.end_suspended();
        }
        // SAFETY: the only frame left on the native stack is `serve`, between two scripts, where it owns nothing. Nothing runs in the
        // state, and after it is closed nobody points to `Shared`.
        unsafe {
            self.native.force_reset();
            ffi::lua_close(self.shared().main.get());
            drop(Box::from_raw(self.shared.as_ptr()));
        }
    }
}

/// Puts a new list into the table of globals on top, under the name that the registry keeps under the key `name`.
///
/// # Safety
/// Nothing runs on `thread`, a table is on top of its stack, there is room for three values, and the memory limit is off.
unsafe fn set_list(thread: *mut lua_State, name: c_int, items: &[&[u8]]) {
    // SAFETY: by the caller. The name is a string, which a table can have as a key.
    unsafe {
        ffi::lua_rawgeti_(thread, ffi::LUA_REGISTRYINDEX, name);
        push_list(thread, items);
        ffi::lua_rawset(thread, -3);
    }
}

/// Pushes a new list.
///
/// # Safety
/// Nothing runs on `thread`, there is room for two values, and the memory limit is off.
unsafe fn push_list(thread: *mut lua_State, items: &[&[u8]]) {
    // SAFETY: by the caller.
    unsafe {
        // The list grows item by item as in Redis: for a list with holes, `#` depends on the allocated size.
        let room = if items.is_empty() { 0 } else { items.len().next_power_of_two() };
        ffi::lua_createtable(thread, room as c_int, 0);
        for (i, item) in items.iter().enumerate() {
            ffi::lua_pushlstring_(thread, item.as_ptr().cast(), item.len());
            ffi::lua_rawseti_(thread, -2, i as c_int + 1);
        }
    }
}

/// Runs one script after the other, until writing a reply panics. Whenever this function gets control, the function to
/// call is on top of the thread's stack.
fn serve(yielder: &Yielder<(), Signal>, shared: &Shared) {
    shared.yielder.set(yielder);
    let thread = shared.thread.get();
    loop {
        // SAFETY: the handler is followed by a function and its arguments. `lua_pcall` catches whatever is raised.
        let failed = unsafe {
            let arguments = ffi::lua_gettop(thread) - ON_ERROR - 1;
            shared.memory.enforced.set(true);
            let status = ffi::lua_pcall(thread, arguments, 1, ON_ERROR);
            shared.memory.enforced.set(false);
            status != 0
        };
        if shared.memory.is_ending() {
            shared.memory.begin_script();
        } else if let Some(mut reply) = shared.reply.get() {
            // SAFETY: the reply is that of the current slice. The memory limit is off, and the thread has the room that a call leaves.
            let (mut stack, reply) = unsafe { (Stack::running(thread, shared), reply.as_mut()) };
            (shared.finish)(&mut stack, failed, reply);
        }
        // SAFETY: the handler is there.
        unsafe { ffi::lua_settop(thread, ON_ERROR) };
        yielder.suspend(Signal::Finished);
    }
}

/// Handles a hook event: the script reaches another line, or has executed a number of instructions (its whole slice, or
/// one if they are counted).
///
/// # Safety
/// Only Lua calls it, as a hook.
unsafe extern "C-unwind" fn on_event(state: *mut lua_State, event: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls the hook between two instructions of a script, on the script's native stack.
    unsafe {
        let shared = Shared::of(state);
        if (*event).event == ffi::LUA_HOOKLINE {
            return shared.note_line((*event).currentline);
        }
        if shared.counts.get() {
            let instructions = shared.instructions.get() + 1;
            shared.instructions.set(instructions);
            if !instructions.is_multiple_of(shared.slice as u64) {
                return;
            }
        }
        pause(state);
    }
}

/// Suspends at the end of a slice, or ends the script.
///
/// # Safety
/// The script's native stack is running, and no frame on it above `serve` owns anything.
pub(super) unsafe fn pause(state: *mut lua_State) {
    // SAFETY: by the caller. `suspend` returns when the driver resumes.
    unsafe {
        let shared = Shared::of(state);
        if !shared.memory.is_ending() {
            shared.slices.set(shared.slices.get() + 1);
            shared.suspended.set(state);
            let enforced = shared.memory.enforced.replace(false);
            shared.suspend(Signal::Slice);
            shared.memory.enforced.set(enforced);
        }
        if shared.memory.is_ending() {
            raise_end(state);
        }
    }
}

/// Ends a script that has been killed, or in which something has panicked, after `Memory::end_script`: raises Lua's
/// memory error, the only one that no handler of the script sees, until the script has ended. All C functions that the
/// script is in end as after any error, and lose nothing. (Abandoning their frames would leak, for example, the buffer
/// of a parser.) If the script catches the error, the hook raises it again before the next instruction.
///
/// # Safety
/// As for [`pause`], with the memory limit on.
pub(super) unsafe fn raise_end(state: *mut lua_State) -> ! {
    // SAFETY: by the caller. The allocation is refused.
    unsafe {
        ffi::lua_sethook(state, Some(on_event), ffi::LUA_MASKCOUNT, 1);
        ffi::lua_newuserdata(state, 1);
        ffi::lua_error(state)
    }
}

/// Aborts the process with a message when an error is raised that nothing catches. The rules of this module prevent
/// that; without this function the process would end without a message.
///
/// # Safety
/// Only Lua calls it.
unsafe extern "C-unwind" fn abort_on_raise(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has left the error value on top; nothing is raised for a string.
    let message = unsafe {
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => {
                CStr::from_ptr(ffi::lua_tolstring(state, -1, ptr::null_mut())).to_string_lossy()
            }
            _ => "no text".into(),
        }
    };
    eprintln!("redlatch: Lua raised an error outside a protected call: {message}");
    process::abort()
}

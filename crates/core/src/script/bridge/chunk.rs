//! Compiles chunks, from text only, and gives each chunk its environment.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::{ptr, slice};

use mlua_sys::{self as ffi, lua_State};

use super::machine::Shared;

/// Compiles `text` and pushes the function, or the error message. Returns Lua's status.
///
/// # Safety
/// `state` is live, with room for two values.
pub(super) unsafe fn load_text(state: *mut lua_State, text: &[u8], name: &CStr) -> c_int {
    let mut source = Source { blank_given: false, rest: text };
    // SAFETY: by the caller. `source` outlives the call, and `lua_load` catches whatever its parser raises.
    unsafe {
        let status = ffi::lua_load(state, read_text, (&raw mut source).cast(), name.as_ptr());
        if status == 0 {
            set_environment(state);
        }
        status
    }
}

/// The unread rest of a chunk's text. A blank precedes it: Lua takes a text that starts with ESC for byte code, and
/// byte code can do anything, so everything has to be read (and byte code refused) as text.
struct Source<'a> {
    blank_given: bool,
    rest: &'a [u8],
}

/// # Safety
/// Only `lua_load` calls it, with the `Source` that `load_text` gave it.
unsafe extern "C-unwind" fn read_text(
    _: *mut lua_State,
    data: *mut c_void,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: by contract; nobody else uses the `Source` meanwhile.
    unsafe {
        let source = &mut *data.cast::<Source>();
        let piece = if source.blank_given { std::mem::take(&mut source.rest) } else { b" " };
        source.blank_given = true;
        *size = piece.len();
        if piece.is_empty() { ptr::null() } else { piece.as_ptr().cast() }
    }
}

/// Reads the next piece from the Lua function at 1 (the reader passed to `load`), and keeps it at 3.
///
/// # Safety
/// Only `lua_load` calls it, with `data` pointing to the number of calls so far.
pub(super) unsafe extern "C-unwind" fn read_from_function(
    state: *mut lua_State,
    data: *mut c_void,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: by contract. `lua_load` catches what is raised here, and no frame that is jumped over owns anything.
    unsafe {
        let calls = &mut *data.cast::<usize>();
        *calls += 1;
        if *calls == 1 {
            *size = 1;
            return c" ".as_ptr();
        }
        ffi::luaL_checkstack(state, 2, c"too many nested functions".as_ptr());
        ffi::lua_pushvalue(state, 1);
        ffi::lua_call(state, 0, 1);
        let mut piece = ptr::null();
        *size = 0;
        if ffi::lua_isnil(state, -1) == 0 {
            if ffi::lua_isstring(state, -1) == 0 {
                ffi::luaL_error(state, c"reader function must return a string".as_ptr());
            }
            ffi::lua_replace(state, 3);
            piece = ffi::lua_tolstring(state, 3, size);
        }
        // Lua calls the reader once more if the first piece is empty; the inserted blank has hidden that from Lua.
        if *size == 0 && *calls == 2 { read_from_function(state, data, size) } else { piece }
    }
}

/// Sets the environment of the function on top. A chunk that assigns to globals anywhere gets the guarded table, which
/// refuses that. All others get the plain table of globals, which is faster to read.
///
/// # Safety
/// A Lua function is on top; there is room for one value.
pub(super) unsafe fn set_environment(state: *mut lua_State) {
    // SAFETY: by the caller; nothing here raises.
    unsafe {
        let shared = Shared::of(state);
        let guarded = assigns_globals(state);
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shared.environment(guarded));
        ffi::lua_setfenv(state, -2);
    }
}

/// Returns whether the function on top, or a function inside it, assigns to a global.
///
/// # Safety
/// A Lua function is on top.
unsafe fn assigns_globals(state: *mut lua_State) -> bool {
    let mut code: Vec<u8> = Vec::new();
    // SAFETY: by the caller. `lua_dump` calls `append` alone, allocates nothing and does not raise, so `code` is always dropped.
    unsafe { ffi::lua_dump_(state, append, (&raw mut code).cast()) };
    let mut dump = Dump { bytes: &code[HEADER.min(code.len())..] };
    // An unreadable dump counts as one that assigns: the guarded environment works for every chunk.
    dump.function_assigns_globals().unwrap_or(true)
}

/// # Safety
/// Only `lua_dump` calls it, for `assigns_globals`.
unsafe extern "C-unwind" fn append(
    _: *mut lua_State,
    piece: *const c_void,
    size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `lua_dump` passes on the vector of `assigns_globals`, which waits for it, and a readable piece.
    unsafe { (*data.cast::<Vec<u8>>()).extend_from_slice(slice::from_raw_parts(piece.cast(), size)) };
    0
}

/// Signature, version, and the sizes of this platform's types.
const HEADER: usize = 12;
const OP_SETGLOBAL: u8 = 7;
const OPCODE_MASK: u8 = 0x3f;

/// A reader of Lua 5.1's dump format as written on this platform.
struct Dump<'a> {
    bytes: &'a [u8],
}

impl<'a> Dump<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    fn int(&mut self) -> Option<usize> {
        let bytes = self.take(size_of::<c_int>())?.try_into().ok()?;
        usize::try_from(c_int::from_ne_bytes(bytes)).ok()
    }

    fn string(&mut self) -> Option<()> {
        let bytes = self.take(size_of::<usize>())?.try_into().ok()?;
        self.take(usize::from_ne_bytes(bytes)).map(|_| ())
    }

    fn function_assigns_globals(&mut self) -> Option<bool> {
        self.string()?;
        self.int()?;
        self.int()?;
        self.take(4)?;
        let instructions = self.int()?;
        let code = self.take(instructions.checked_mul(4)?)?;
        let opcode_byte = if cfg!(target_endian = "little") { 0 } else { 3 };
        let mut assigns = code.chunks_exact(4).any(|word| word[opcode_byte] & OPCODE_MASK == OP_SETGLOBAL);
        for _ in 0..self.int()? {
            match self.byte()? {
                0 => {}
                1 => drop(self.byte()?),
                3 => drop(self.take(size_of::<f64>())?),
                _ => self.string()?,
            }
        }
        for _ in 0..self.int()? {
            assigns |= self.function_assigns_globals()?;
        }
        self.skip_debug_information()?;
        Some(assigns)
    }

    fn skip_debug_information(&mut self) -> Option<()> {
        let lines = self.int()?;
        self.take(lines.checked_mul(size_of::<c_int>())?)?;
        for _ in 0..self.int()? {
            self.string()?;
            self.int()?;
            self.int()?;
        }
        for _ in 0..self.int()? {
            self.string()?;
        }
        Some(())
    }
}

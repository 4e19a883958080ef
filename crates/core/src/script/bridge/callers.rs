//! Names and positions of callers, read from Lua's call stack for error texts.

use std::ffi::{CStr, c_char, c_int};

use mlua_sys::{self as ffi, lua_Debug, lua_State};

use super::stack::Stack;

/// Returns what `lua_getinfo` reports, for the options `what`, about the function at `level` of the call stack, or
/// `None` if the stack is not that deep.
///
/// # Safety
/// `state` is live and its call stack may be read: it is running a function, or suspended in a hook. The strings of the record live as
/// long as that function's call.
unsafe fn record_of(state: *mut lua_State, level: c_int, what: &CStr) -> Option<lua_Debug> {
    // SAFETY: `lua_Debug` is plain data of C, for which zeros are valid. `lua_getinfo` gets a record of a level that exists, and does
    // not raise for these options.
    unsafe {
        let mut record: lua_Debug = std::mem::zeroed();
        if ffi::lua_getstack(state, level, &mut record) == 0 {
            return None;
        }
        ffi::lua_getinfo(state, what.as_ptr(), &mut record);
        Some(record)
    }
}

/// Returns the name by which the running function was called (`?` if unknown), and whether as a method.
///
/// # Safety
/// As for [`record_of`].
pub(super) unsafe fn running_function(state: *mut lua_State) -> (String, bool) {
    // SAFETY: by the caller; the texts are copied at once.
    unsafe {
        let Some(record) = record_of(state, 0, c"n") else { return ("?".into(), false) };
        let name = if record.name.is_null() { b"?" } else { c_bytes(record.name) };
        (String::from_utf8_lossy(name).into_owned(), c_bytes(record.namewhat) == b"method")
    }
}

/// Returns the source and current line of the function at `level`, or of its caller if it is not a Lua function.
///
/// # Safety
/// As for [`record_of`].
pub(super) unsafe fn location(state: *mut lua_State, level: c_int) -> Option<(Vec<u8>, i32)> {
    // SAFETY: by the caller; the texts are copied at once.
    unsafe {
        let mut record = record_of(state, level, c"Sl")?;
        if c_bytes(record.what) == b"C" {
            record = record_of(state, level + 1, c"Sl")?;
        }
        Some((c_bytes(record.source).to_vec(), record.currentline))
    }
}

impl Stack<'_> {
    /// Returns the source and current line of the code at `level` (see [`location`]).
    pub fn location(&self, level: i32) -> Option<(Vec<u8>, i32)> {
        // SAFETY: a `Stack` belongs to the running function.
        unsafe { location(self.state(), level) }
    }
}

/// Returns the bytes of a C string, or an empty slice for a null pointer.
///
/// # Safety
/// `text` is null or a NUL-terminated string that outlives the result's use.
unsafe fn c_bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

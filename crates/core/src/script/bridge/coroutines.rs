//! The `coroutine` functions that create and resume coroutines. They work like Lua's own, within the limits of a
//! script's native stack and slices.
//!
//! Like those in [`super::guard`], which defines the terms of the SAFETY comments, they raise Lua errors from their own
//! frames, which own nothing.

use std::ffi::{CStr, c_int};

use mlua_sys::{self as ffi, lua_State};

use super::machine::{Shared, pause, raise_end};

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn create(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if ffi::lua_type(state, 1) != ffi::LUA_TFUNCTION || ffi::lua_iscfunction(state, 1) != 0 {
            ffi::luaL_argerror(state, 1, c"Lua function expected".as_ptr());
        }
        let fresh = ffi::lua_newthread(state);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_xmove(state, fresh, 1);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn wrap(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        create(state);
        ffi::lua_pushcclosure(state, wrapped, 1);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn wrapped(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let other = ffi::lua_tothread(state, ffi::lua_upvalueindex(1));
        match resume_other(state, other, ffi::lua_gettop(state)) {
            Some(results) => results,
            None => {
                if ffi::lua_isstring(state, -1) != 0 {
                    ffi::luaL_where(state, 1);
                    ffi::lua_insert(state, -2);
                    ffi::lua_concat(state, 2);
                }
                ffi::lua_error(state)
            }
        }
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn resume(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let other = ffi::lua_tothread(state, 1);
        if other.is_null() {
            ffi::luaL_argerror(state, 1, c"coroutine expected".as_ptr());
        }
        let resumed = resume_other(state, other, ffi::lua_gettop(state) - 1);
        ffi::lua_pushboolean(state, resumed.is_some() as c_int);
        let results = resumed.unwrap_or(1);
        ffi::lua_insert(state, -(results + 1));
        results + 1
    }
}

/// The most resumes of coroutines within a slice. Each coroutine counts its own instructions, so without this limit a
/// single slice of a few nested coroutines could run for hours.
const RESUMES_PER_SLICE: u32 = 1000;

/// Resumes `other` with the topmost `arguments` values. Returns the number of results, or `None` with an error value on
/// top.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values; `other` is a live thread of the same state.
unsafe fn resume_other(state: *mut lua_State, other: *mut lua_State, arguments: c_int) -> Option<c_int> {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let shared = Shared::of(state);
        let resumes = shared.resumes.get() + 1;
        shared.resumes.set(resumes % RESUMES_PER_SLICE);
        if resumes == RESUMES_PER_SLICE {
            pause(state);
        }
        if !shared.has_native_room() {
            ffi::lua_pushstring_(state, c"C stack overflow".as_ptr());
            return None;
        }
        if let Some(state_name) = why_not_resumable(state, other) {
            ffi::lua_pushfstring(state, c"cannot resume %s coroutine".as_ptr(), state_name.as_ptr());
            return None;
        }
        // A refused allocation would raise in `other`, where nothing catches it yet.
        shared.memory.enforced.set(false);
        let has_room = ffi::lua_checkstack(other, arguments) != 0;
        shared.memory.enforced.set(true);
        if !has_room {
            ffi::luaL_error(state, c"too many arguments to resume".as_ptr());
        }
        ffi::lua_xmove(state, other, arguments);
        let status = ffi::lua_resume_(other, arguments);
        if shared.memory.is_ending() {
            raise_end(state);
        }
        if status != 0 && status != ffi::LUA_YIELD {
            ffi::lua_xmove(other, state, 1);
            return None;
        }
        let results = ffi::lua_gettop(other);
        if ffi::lua_checkstack(state, results + 1) == 0 {
            ffi::luaL_error(state, c"too many results to resume".as_ptr());
        }
        ffi::lua_xmove(other, state, results);
        Some(results)
    }
}

/// Returns the state of a coroutine that cannot be resumed now, as the error text names it.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values; `other` is a live thread of the same state.
unsafe fn why_not_resumable(state: *mut lua_State, other: *mut lua_State) -> Option<&'static CStr> {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if state == other {
            return Some(c"running");
        }
        match ffi::lua_status(other) {
            ffi::LUA_YIELD => None,
            0 => {
                let mut record: ffi::lua_Debug = std::mem::zeroed();
                if ffi::lua_getstack(other, 0, &mut record) > 0 {
                    Some(c"normal")
                } else if ffi::lua_gettop(other) == 0 {
                    Some(c"dead")
                } else {
                    None
                }
            }
            _ => Some(c"dead"),
        }
    }
}

/// Returns the running coroutine. A script runs on its own Lua thread, which it sees as the main thread, so that one
/// has no name.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn running(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if Shared::of(state).thread.get() == state {
            ffi::lua_pushnil(state);
        } else {
            ffi::lua_pushthread(state);
        }
        1
    }
}

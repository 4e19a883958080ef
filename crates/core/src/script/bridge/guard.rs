//! Replacements for functions of Lua's libraries that would bypass read-only tables, escape the sandbox, or harm the
//! server.
//!
//! Lua calls these functions directly, and they raise errors from their own frames. That is sound because their frames
//! own nothing: an error is a `longjmp`, which runs no destructors. In SAFETY comments, *a frame of Lua's own* means
//! such a function while Lua runs it: its `state` is live and belongs to a machine, its arguments are at 1 and up, it
//! has room for LUA_MINSTACK values beyond them, and Lua catches what it raises, at the latest where the machine runs
//! the script.

use std::ffi::{CStr, c_int};
use std::ptr;

use mlua_sys::{self as ffi, lua_CFunction, lua_State};

use super::machine::{Shared, raise_end};
use super::proxies::proxy_at;
use super::stack::{Raised, Stack, call_function};
use super::{chunk, coroutines, loops, patterns};

const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

/// The library, the name and the replacement of each function.
pub(super) const REPLACED: &[(&str, &str, lua_CFunction)] = &[
    ("", "next", next),
    ("", "pairs", pairs),
    ("", "rawget", rawget),
    ("", "rawset", rawset),
    ("", "getmetatable", getmetatable),
    ("", "setmetatable", setmetatable),
    ("", "getfenv", getfenv),
    ("", "setfenv", setfenv),
    ("", "load", load),
    ("", "loadstring", loadstring),
    ("", "pcall", pcall),
    ("", "xpcall", xpcall),
    ("", "newproxy", newproxy),
    ("", "tostring", tostring),
    ("", "unpack", unpack),
    ("coroutine", "create", coroutines::create),
    ("coroutine", "wrap", coroutines::wrap),
    ("coroutine", "resume", coroutines::resume),
    ("coroutine", "running", coroutines::running),
    ("string", "find", patterns::find),
    ("string", "gfind", patterns::gmatch),
    ("string", "gmatch", patterns::gmatch),
    ("string", "gsub", patterns::gsub),
    ("string", "match", patterns::match_),
    ("string", "rep", loops::rep),
    ("table", "concat", loops::concat),
    ("table", "foreach", table_foreach),
    ("table", "insert", loops::insert),
    ("table", "remove", loops::remove),
    ("table", "sort", loops::sort),
];

/// Opens the libraries that scripts may use, without guards.
///
/// # Safety
/// `state` is fresh, and its memory limit is off.
pub(super) unsafe fn open_libraries(state: *mut lua_State) {
    // SAFETY: `lua_cpcall` catches whatever `open` raises.
    let status = unsafe { ffi::lua_cpcall(state, open, ptr::null_mut()) };
    assert!(status == 0, "the libraries open without an error");
}

/// # Safety
/// Only `open_libraries` calls it, through Lua.
unsafe extern "C-unwind" fn open(state: *mut lua_State) -> c_int {
    let libraries: [(&CStr, lua_CFunction); 4] = [
        (c"", ffi::luaopen_base),
        (c"table", ffi::luaopen_table),
        (c"string", ffi::luaopen_string),
        (c"math", ffi::luaopen_math),
    ];
    // SAFETY: a frame of Lua's own, on a state whose libraries are not open yet.
    unsafe {
        for (name, open) in libraries {
            ffi::lua_pushcclosure(state, open, 0);
            ffi::lua_pushstring_(state, name.as_ptr());
            ffi::lua_call(state, 1, 0);
        }
    }
    0
}

/// Replaces the proxy at `index` by its real table. Does nothing for other values.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values.
unsafe fn see_through(state: *mut lua_State, index: c_int) {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if let Some(proxy) = proxy_at(state, index) {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, proxy.real);
            ffi::lua_replace(state, index);
        }
    }
}

/// Raises `text`, preceded by the position of the Lua code that called this function, if any. Redis's patched
/// `lua_settable` does the same.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values.
unsafe fn raise_read_only(state: *mut lua_State, positioned: bool) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if positioned {
            return ffi::luaL_error(state, READ_ONLY.as_ptr());
        }
        ffi::lua_pushstring_(state, READ_ONLY.as_ptr());
        ffi::lua_error(state)
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn refuse_assignment(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe { raise_read_only(state, true) }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn next(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_settop(state, 2);
        see_through(state, 1);
        if ffi::lua_next(state, 1) != 0 {
            return 2;
        }
        ffi::lua_pushnil(state);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_pushcclosure(state, next, 0);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushnil(state);
        3
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn rawget(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        see_through(state, 1);
        ffi::lua_rawget_(state, 1);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn rawset(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::luaL_checkany(state, 3);
        ffi::lua_settop(state, 3);
        if proxy_at(state, 1).is_some() {
            return raise_read_only(state, false);
        }
        ffi::lua_rawset(state, 1);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn getmetatable(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checkany(state, 1);
        let shown = match proxy_at(state, 1) {
            Some(proxy) => proxy.metatable,
            None if ffi::lua_type(state, 1) == ffi::LUA_TSTRING => {
                Shared::of(state).proxies.borrow().string_metatable
            }
            None => {
                if ffi::lua_getmetatable(state, 1) == 0 {
                    ffi::lua_pushnil(state);
                    return 1;
                }
                ffi::luaL_getmetafield_(state, 1, c"__metatable".as_ptr());
                return 1;
            }
        };
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shown);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn setmetatable(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let kind = ffi::lua_type(state, 2);
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        if kind != ffi::LUA_TNIL && kind != ffi::LUA_TTABLE {
            return ffi::luaL_argerror(state, 2, c"nil or table expected".as_ptr());
        }
        if proxy_at(state, 1).is_some() {
            return raise_read_only(state, false);
        }
        if ffi::luaL_getmetafield_(state, 1, c"__metatable".as_ptr()) != 0 {
            return ffi::luaL_error(state, c"cannot change a protected metatable".as_ptr());
        }
        ffi::lua_settop(state, 2);
        ffi::lua_setmetatable(state, 1);
        1
    }
}

/// Pushes the function that argument 1 names: a function, or a level of the call stack.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values.
unsafe fn push_function_argument(state: *mut lua_State, optional: bool) {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if ffi::lua_type(state, 1) == ffi::LUA_TFUNCTION {
            ffi::lua_pushvalue(state, 1);
            return;
        }
        let level =
            if optional { ffi::luaL_optinteger(state, 1, 1) } else { ffi::luaL_checkinteger(state, 1) }
                as c_int;
        let mut record: ffi::lua_Debug = std::mem::zeroed();
        if level < 0 {
            ffi::luaL_argerror(state, 1, c"level must be non-negative".as_ptr());
        }
        if ffi::lua_getstack(state, level, &mut record) == 0 {
            ffi::luaL_argerror(state, 1, c"invalid level".as_ptr());
        }
        ffi::lua_getinfo(state, c"f".as_ptr(), &mut record);
        if ffi::lua_type(state, -1) == ffi::LUA_TNIL {
            ffi::luaL_error(state, c"no function environment for tail call at level %d".as_ptr(), level);
        }
    }
}

/// Returns a function's environment. For the plain table of globals, which scripts must never hold, returns its proxy.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn getfenv(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        push_function_argument(state, true);
        let shared = Shared::of(state);
        if ffi::lua_iscfunction(state, -1) != 0 {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shared.environment(true));
            return 1;
        }
        ffi::lua_getfenv(state, -1);
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shared.environment(false));
        if ffi::lua_rawequal(state, -1, -2) != 0 {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shared.environment(true));
            return 1;
        }
        ffi::lua_pop(state, 1);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn setfenv(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 2, ffi::LUA_TTABLE);
        push_function_argument(state, false);
        ffi::lua_pushvalue(state, 2);
        if ffi::lua_isnumber(state, 1) != 0 && ffi::lua_tonumber(state, 1) == 0.0 {
            // Changes nothing: level 0 means the globals of the whole thread, but chunks here do not take their
            // environment from it.
            return 0;
        }
        if ffi::lua_iscfunction(state, -2) != 0 || ffi::lua_setfenv(state, -2) == 0 {
            return ffi::luaL_error(state, c"'setfenv' cannot change environment of given object".as_ptr());
        }
        1
    }
}

/// Pushes the compiled function, or nil and the error message.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values.
unsafe fn loaded(state: *mut lua_State, status: c_int) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if status == 0 {
            return 1;
        }
        ffi::lua_pushnil(state);
        ffi::lua_insert(state, -2);
        2
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn loadstring(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len);
        let name = ffi::luaL_optlstring(state, 2, text, ptr::null_mut());
        let text = std::slice::from_raw_parts(text.cast(), len);
        let status = chunk::load_text(state, text, CStr::from_ptr(name));
        loaded(state, status)
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn load(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let name = ffi::luaL_optlstring(state, 2, c"=(load)".as_ptr(), ptr::null_mut());
        ffi::luaL_checktype(state, 1, ffi::LUA_TFUNCTION);
        ffi::lua_settop(state, 3);
        let mut calls = 0usize;
        let status = ffi::lua_load(state, chunk::read_from_function, (&raw mut calls).cast(), name);
        if status == 0 {
            chunk::set_environment(state);
        }
        loaded(state, status)
    }
}

/// Calls a function in protected mode. As in Redis, an error table is returned as the text of its field `err`.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn pcall(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        let arguments = ffi::lua_gettop(state);
        if arguments == 0 {
            ffi::lua_pushboolean(state, 0);
            ffi::lua_pushstring_(state, c"attempt to call a boolean value".as_ptr());
            return 2;
        }
        ffi::lua_pushboolean(state, 1);
        ffi::lua_insert(state, 1);
        if ffi::lua_pcall(state, arguments - 1, ffi::LUA_MULTRET, 0) != 0 {
            if Shared::of(state).memory.is_ending() {
                raise_end(state);
            }
            ffi::lua_remove(state, 1);
            if ffi::lua_type(state, -1) == ffi::LUA_TTABLE {
                ffi::lua_getfield_(state, -1, c"err".as_ptr());
                if ffi::lua_isstring(state, -1) != 0 {
                    ffi::lua_replace(state, -2);
                }
            }
            ffi::lua_pushboolean(state, 0);
            ffi::lua_insert(state, 1);
        }
        ffi::lua_gettop(state)
    }
}

/// Calls a function in protected mode, with a handler for its errors. Lua's own `xpcall` pushes its status behind the results,
/// where there may be no room for it.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn xpcall(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        ffi::lua_pushboolean(state, 1);
        // The status, the handler, the function.
        ffi::lua_insert(state, 1);
        ffi::lua_insert(state, 2);
        let status = ffi::lua_pcall(state, 0, ffi::LUA_MULTRET, 2);
        ffi::lua_remove(state, 2);
        if status != 0 {
            ffi::lua_pushboolean(state, 0);
            ffi::lua_replace(state, 1);
        }
        ffi::lua_gettop(state)
    }
}

/// Creates a proxy without a metatable only: a finalizer would run script code inside the collector, where nothing can
/// stop it.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn newproxy(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if ffi::lua_toboolean(state, 1) != 0 {
            return ffi::luaL_error(state, c"newproxy gives no metatable here".as_ptr());
        }
        ffi::lua_newuserdata(state, 0);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn tostring(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checkany(state, 1);
        if ffi::luaL_callmeta(state, 1, c"__tostring".as_ptr()) != 0 {
            return 1;
        }
        ffi::lua_settop(state, 1);
        call_function::<true>(state, describe)
    }
}

fn describe(lua: &mut Stack) -> Raised<usize> {
    let text = lua.describe(1);
    lua.push_bytes(&text);
    Ok(1)
}

/// Returns the elements of a list. Lua's own `unpack` computes the length of the range in an `int`, and the compiler
/// removes its check for an overflow.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let first = ffi::luaL_optinteger(state, 2, 1) as c_int;
        let last = match ffi::lua_type(state, 3) {
            ffi::LUA_TNONE | ffi::LUA_TNIL => ffi::lua_objlen(state, 1) as c_int,
            _ => ffi::luaL_checkinteger(state, 3) as c_int,
        };
        if first > last {
            return 0;
        }
        let len = last.wrapping_sub(first);
        if !(0..c_int::MAX).contains(&len) || ffi::lua_checkstack(state, len + 1) == 0 {
            return ffi::luaL_error(state, c"too many results to unpack".as_ptr());
        }
        for i in first..=last {
            ffi::lua_rawgeti_(state, 1, i);
        }
        len + 1
    }
}

/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for three values.
pub(super) unsafe fn refuse_proxy(state: *mut lua_State) {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        if proxy_at(state, 1).is_some() {
            raise_read_only(state, false);
        }
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn table_foreach(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        ffi::lua_settop(state, 2);
        see_through(state, 1);
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, 1) != 0 {
            ffi::lua_pushvalue(state, 2);
            ffi::lua_pushvalue(state, -3);
            ffi::lua_pushvalue(state, -3);
            ffi::lua_call(state, 2, 1);
            if ffi::lua_type(state, -1) != ffi::LUA_TNIL {
                return 1;
            }
            ffi::lua_pop(state, 2);
        }
        0
    }
}

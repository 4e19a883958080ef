//! Library functions of Lua 5.1 that may loop for long: `string.rep`, `table.concat`, `table.insert`, `table.remove` and
//! `table.sort`. They do what Lua's own do, in the same order, and count their steps like [`patterns`](super::patterns).

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use mlua_sys::{self as ffi, lua_State};

use super::guard::refuse_proxy;
use super::machine::{Shared, pause};

/// Counts a step, and pauses when there were enough.
///
/// # Safety
/// As for [`pause`].
unsafe fn step(state: *mut lua_State) {
    // SAFETY: by the caller.
    unsafe {
        if Shared::of(state).count_steps(1) {
            pause(state);
        }
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn rep(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. The block stays on the stack until its bytes are copied.
    unsafe {
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len);
        let times = (ffi::luaL_checkinteger(state, 2) as c_int).max(0) as usize;
        let total = len.saturating_mul(times).min(isize::MAX as usize);
        // Refused if the memory limit does not allow so much.
        let block = ffi::lua_newuserdata(state, total).cast::<u8>();
        let mut filled = total.min(len);
        ptr::copy_nonoverlapping(text.cast(), block, filled);
        while filled < total {
            let more = filled.min(total - filled);
            ptr::copy_nonoverlapping(block, block.add(filled), more);
            filled += more;
        }
        ffi::lua_pushlstring_(state, block.cast(), total);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn concat(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. Lua's buffer keeps its pieces on Lua's stack.
    unsafe {
        let mut len = 0;
        let separator = ffi::luaL_optlstring(state, 2, c"".as_ptr(), &mut len);
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let mut i = ffi::luaL_optinteger(state, 3, 1) as c_int;
        let last = match ffi::lua_type(state, 4) {
            ffi::LUA_TNONE | ffi::LUA_TNIL => ffi::lua_objlen(state, 1) as c_int,
            _ => ffi::luaL_checkinteger(state, 4) as c_int,
        };
        let mut buffer = MaybeUninit::<ffi::luaL_Buffer>::uninit();
        let buffer = buffer.as_mut_ptr();
        ffi::luaL_buffinit(state, buffer);
        while i <= last {
            step(state);
            ffi::lua_rawgeti_(state, 1, i);
            if ffi::lua_isstring(state, -1) == 0 {
                let kind = ffi::luaL_typename(state, -1);
                let text = c"invalid value (%s) at index %d in table for 'concat'";
                return ffi::luaL_error(state, text.as_ptr(), kind, i);
            }
            ffi::luaL_addvalue(buffer);
            if i == last {
                break;
            }
            ffi::luaL_addlstring(buffer, separator, len);
            i += 1;
        }
        ffi::luaL_pushresult(buffer);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn insert(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let last = ffi::lua_objlen(state, 1) as c_int + 1;
        match ffi::lua_gettop(state) {
            2 => {
                refuse_proxy(state);
                ffi::lua_rawseti_(state, 1, last);
            }
            3 => {
                let position = ffi::luaL_checkinteger(state, 2) as c_int;
                refuse_proxy(state);
                let mut i = last.max(position);
                while i > position {
                    step(state);
                    ffi::lua_rawgeti_(state, 1, i - 1);
                    ffi::lua_rawseti_(state, 1, i);
                    i -= 1;
                }
                ffi::lua_rawseti_(state, 1, position);
            }
            _ => {
                ffi::luaL_error(state, c"wrong number of arguments to 'insert'".as_ptr());
            }
        }
        0
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn remove(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let last = ffi::lua_objlen(state, 1) as c_int;
        let position = ffi::luaL_optinteger(state, 2, last as ffi::lua_Integer) as c_int;
        if !(1..=last).contains(&position) {
            return 0;
        }
        ffi::lua_rawgeti_(state, 1, position);
        for i in position..last {
            step(state);
            ffi::lua_rawgeti_(state, 1, i + 1);
            ffi::lua_rawseti_(state, 1, i);
        }
        ffi::lua_pushnil(state);
        ffi::lua_rawseti_(state, 1, last);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn sort(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. The table is at 1, and the order or nil at 2.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let last = ffi::lua_objlen(state, 1) as c_int;
        ffi::luaL_checkstack_(state, 40, c"".as_ptr());
        if !matches!(ffi::lua_type(state, 2), ffi::LUA_TNONE | ffi::LUA_TNIL) {
            ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        }
        ffi::lua_settop(state, 2);
        sort_range(state, 1, last);
        0
    }
}

/// Returns whether the value at `a` comes before that at `b`; negative indices.
///
/// # Safety
/// Called in a frame of [`sort`].
unsafe fn is_before(state: *mut lua_State, a: c_int, b: c_int) -> bool {
    // SAFETY: by the caller.
    unsafe {
        step(state);
        if ffi::lua_type(state, 2) == ffi::LUA_TNIL {
            return ffi::lua_lessthan(state, a, b) != 0;
        }
        ffi::lua_pushvalue(state, 2);
        ffi::lua_pushvalue(state, a - 1);
        ffi::lua_pushvalue(state, b - 2);
        ffi::lua_call(state, 2, 1);
        let answer = ffi::lua_toboolean(state, -1) != 0;
        ffi::lua_pop(state, 1);
        answer
    }
}

/// Stores the value on top at `i`, and the one below it at `j`.
///
/// # Safety
/// Called in a frame of [`sort`].
unsafe fn set_two(state: *mut lua_State, i: c_int, j: c_int) {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_rawseti_(state, 1, i);
        ffi::lua_rawseti_(state, 1, j);
    }
}

/// Sorts the elements from `low` to `high` by quicksort, as `auxsort` in ltablib.c: scripts see the order of comparisons.
///
/// # Safety
/// Called in a frame of [`sort`].
unsafe fn sort_range(state: *mut lua_State, mut low: c_int, mut high: c_int) {
    // SAFETY: by the caller. At most half of the elements are sorted recursively, so that 40 values have room.
    unsafe {
        while low < high {
            ffi::lua_rawgeti_(state, 1, low);
            ffi::lua_rawgeti_(state, 1, high);
            if is_before(state, -1, -2) {
                set_two(state, low, high);
            } else {
                ffi::lua_pop(state, 2);
            }
            if high - low == 1 {
                return;
            }
            let middle = low + (high - low) / 2;
            ffi::lua_rawgeti_(state, 1, middle);
            ffi::lua_rawgeti_(state, 1, low);
            if is_before(state, -2, -1) {
                set_two(state, middle, low);
            } else {
                ffi::lua_pop(state, 1);
                ffi::lua_rawgeti_(state, 1, high);
                if is_before(state, -1, -2) {
                    set_two(state, middle, high);
                } else {
                    ffi::lua_pop(state, 2);
                }
            }
            if high - low == 2 {
                return;
            }
            let split = partition(state, low, high, middle);
            // The smaller part recursively, the larger one in this loop.
            if split - low < high - split {
                sort_range(state, low, split - 1);
                low = split + 1;
            } else {
                sort_range(state, split + 1, high);
                high = split - 1;
            }
        }
    }
}

/// Moves what comes before the element at `middle` to its left, and the others to its right. Returns where it is then.
///
/// # Safety
/// Called in a frame of [`sort`].
unsafe fn partition(state: *mut lua_State, low: c_int, high: c_int, middle: c_int) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_rawgeti_(state, 1, middle);
        ffi::lua_pushvalue(state, -1);
        ffi::lua_rawgeti_(state, 1, high - 1);
        set_two(state, middle, high - 1);
        let (mut i, mut j) = (low, high - 1);
        loop {
            i += 1;
            ffi::lua_rawgeti_(state, 1, i);
            while is_before(state, -1, -2) {
                if i > high {
                    ffi::luaL_error(state, c"invalid order function for sorting".as_ptr());
                }
                ffi::lua_pop(state, 1);
                i += 1;
                ffi::lua_rawgeti_(state, 1, i);
            }
            j -= 1;
            ffi::lua_rawgeti_(state, 1, j);
            while is_before(state, -3, -1) {
                if j < low {
                    ffi::luaL_error(state, c"invalid order function for sorting".as_ptr());
                }
                ffi::lua_pop(state, 1);
                j -= 1;
                ffi::lua_rawgeti_(state, 1, j);
            }
            if j < i {
                ffi::lua_pop(state, 3);
                break;
            }
            set_two(state, i, j);
        }
        ffi::lua_rawgeti_(state, 1, high - 1);
        ffi::lua_rawgeti_(state, 1, i);
        set_two(state, high - 1, i);
        i
    }
}

//! Read-only tables, and the functions of Lua's own libraries that would see through them or escape.
//!
//! Redis patches Lua so that a table can be made read-only; the Lua here is unpatched. A protected table is therefore
//! handed out as a *proxy*: an empty table whose metatable finds entries in the real one and refuses assignments. Every library function
//! that reads or writes past metatables is replaced by one that knows proxies.
//!
//! The functions here are called by Lua directly and raise Lua errors from their own frames: those own nothing.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use mlua_sys::{self as ffi, lua_CFunction, lua_State};

use super::machine::{Shared, c_bytes};
use super::stack::{Kind, Stack};
use super::{chunk, coroutines};

/// Where the made-up addresses of objects start.
const OBJECTS: u64 = 0x7f00_0000_0000;

const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

/// A protected table: the address of its proxy, and registry keys of the real table and of what `getmetatable` shows.
#[derive(Clone, Copy)]
struct Proxy {
    address: *const c_void,
    real: c_int,
    metatable: c_int,
}

/// All protected tables of a state. There are about a dozen, made one after the other.
#[derive(Default)]
pub(in crate::script) struct Proxies {
    list: Vec<Proxy>,
    /// Registry key of what `getmetatable` gives for strings.
    string_metatable: c_int,
    lowest: usize,
    highest: usize,
}

impl Proxies {
    #[inline]
    fn find(&self, address: *const c_void) -> Option<Proxy> {
        if (address as usize) < self.lowest || address as usize > self.highest {
            return None;
        }
        self.list.iter().find(|proxy| proxy.address == address).copied()
    }

    fn add(&mut self, proxy: Proxy) {
        let address = proxy.address as usize;
        self.lowest = if self.list.is_empty() { address } else { self.lowest.min(address) };
        self.highest = self.highest.max(address);
        self.list.push(proxy);
    }
}

unsafe fn proxy_at(state: *mut lua_State, index: c_int) -> Option<Proxy> {
    unsafe {
        if ffi::lua_type(state, index) != ffi::LUA_TTABLE {
            return None;
        }
        Shared::of(state).proxies.borrow().find(ffi::lua_topointer(state, index))
    }
}

impl Stack<'_> {
    /// Replaces the table on top by a proxy for it. `getmetatable` will give the value below it, which is taken off.
    pub fn protect(&mut self) {
        assert!(self.len() >= 2);
        let state = self.state();
        // SAFETY: tables and functions are pushed within the room of one function; no limit is enforced here.
        unsafe {
            ffi::luaL_checkstack(state, 8, ptr::null());
            ffi::lua_createtable(state, 0, 0);
            ffi::lua_createtable(state, 0, 2);
            ffi::lua_pushvalue(state, -3);
            ffi::lua_setfield(state, -2, c"__index".as_ptr());
            ffi::lua_pushcclosure(state, refuse_assignment, 0);
            ffi::lua_setfield(state, -2, c"__newindex".as_ptr());
            ffi::lua_setmetatable(state, -2);
            let address = ffi::lua_topointer(state, -1);
            ffi::lua_insert(state, -3);
            let real = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
            let metatable = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
            self.shared.proxies.borrow_mut().add(Proxy { address, real, metatable });
        }
        self.note_popped(1);
    }

    /// Gives the value below the top the metatable on top, which is taken off.
    pub fn set_metatable(&mut self) {
        assert!(self.len() >= 2);
        unsafe { ffi::lua_setmetatable(self.state(), -2) };
        self.note_popped(1);
    }

    /// Takes the table on top off; `getmetatable` gives it for strings.
    pub fn show_as_string_metatable(&mut self) {
        let reference = unsafe { ffi::luaL_ref(self.state(), ffi::LUA_REGISTRYINDEX) };
        self.note_popped(1);
        self.shared.proxies.borrow_mut().string_metatable = reference;
    }

    /// Pushes the function that refuses an assignment.
    pub fn push_assignment_guard(&mut self) {
        unsafe {
            ffi::luaL_checkstack(self.state(), 1, ptr::null());
            ffi::lua_pushcclosure(self.state(), refuse_assignment, 0);
        }
        self.note_pushed();
    }

    /// How much the state holds, in bytes.
    pub fn memory_used(&self) -> usize {
        self.shared.memory.used.get()
    }

    /// A value as `tostring` without metatables shows it. Objects have numbers in the place of addresses, given out in the order in
    /// which they are first asked for, so that two runs show the same.
    pub fn describe(&mut self, index: i32) -> Vec<u8> {
        match self.kind(index) {
            Kind::None | Kind::Nil => b"nil".to_vec(),
            Kind::Boolean => if self.truth(index) { &b"true"[..] } else { b"false" }.to_vec(),
            Kind::Number | Kind::String => {
                self.push_copy(index);
                let text = self.text(-1).unwrap_or_default().to_vec();
                self.pop(1);
                text
            }
            Kind::LightUserdata => b"userdata: (nil)".to_vec(),
            kind => {
                let number = self.object_number(index);
                format!("{}: {:#014x}", kind.name(), OBJECTS + number * 16).into_bytes()
            }
        }
    }

    fn object_number(&mut self, index: i32) -> u64 {
        self.push_copy(index);
        let state = self.state();
        let shared = self.shared;
        // SAFETY: room for three values was asked for; the key is an object.
        let number = unsafe {
            ffi::luaL_checkstack(state, 4, ptr::null());
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, shared.object_numbers(state));
            ffi::lua_pushvalue(state, -2);
            ffi::lua_rawget_(state, -2);
            let mut number = ffi::lua_tonumber(state, -1) as u64;
            if number == 0 {
                number = shared.next_object_number();
                ffi::lua_pushvalue(state, -3);
                ffi::lua_pushnumber(state, number as f64);
                ffi::lua_rawset(state, -4);
            }
            ffi::lua_pop(state, 2);
            number
        };
        self.pop(1);
        number
    }

    /// Pushes the functions of Lua's own that stand in for those which see past proxies, one after the other, with their names.
    pub fn each_guarded(&mut self, mut set: impl FnMut(&mut Stack, &str, &str)) {
        for (library, name, function) in REPLACED {
            unsafe { ffi::lua_pushcclosure(self.state(), *function, 0) };
            self.note_pushed();
            set(self, library, name);
        }
    }
}

/// Library, name and replacement.
const REPLACED: &[(&str, &str, lua_CFunction)] = &[
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
    ("", "newproxy", newproxy),
    ("", "tostring", tostring),
    ("coroutine", "create", coroutines::create),
    ("coroutine", "wrap", coroutines::wrap),
    ("coroutine", "resume", coroutines::resume),
    ("coroutine", "running", coroutines::running),
    ("table", "insert", table_insert),
    ("table", "foreach", table_foreach),
];

/// Functions of `string` that match patterns, all with the pattern as their second argument.
const MATCHING: &[&CStr] = &[c"find", c"match", c"gmatch", c"gfind", c"gsub"];

/// The most pattern items that a match may have to recurse for.
const MAX_PATTERN_DEPTH: usize = 2000;

/// Opens the libraries that scripts may use, unguarded.
///
/// # Safety
/// `state` is fresh.
pub(super) unsafe fn open_libraries(state: *mut lua_State) {
    let libraries: [(&CStr, lua_CFunction); 4] = [
        (c"", ffi::luaopen_base),
        (c"table", ffi::luaopen_table),
        (c"string", ffi::luaopen_string),
        (c"math", ffi::luaopen_math),
    ];
    for (name, open) in libraries {
        unsafe {
            ffi::lua_pushcclosure(state, open, 0);
            ffi::lua_pushstring_(state, name.as_ptr());
            ffi::lua_call(state, 1, 0);
        }
    }
    unsafe { limit_patterns(state) };
}

/// Wraps the functions that match patterns: a match recurses for each repetition and capture of its pattern, without a limit.
///
/// # Safety
/// The string library is open in `state`, with room for three values.
pub(super) unsafe fn limit_patterns(state: *mut lua_State) {
    unsafe {
        ffi::lua_getfield_(state, ffi::LUA_GLOBALSINDEX, c"string".as_ptr());
        for name in MATCHING {
            ffi::lua_getfield_(state, -1, name.as_ptr());
            if let Some(original) = ffi::lua_tocfunction(state, -1) {
                ffi::lua_pushlightuserdata(state, original as *mut c_void);
                ffi::lua_pushcclosure(state, match_within_limits, 1);
                ffi::lua_setfield(state, -3, name.as_ptr());
            }
            ffi::lua_pop(state, 1);
        }
        ffi::lua_pop(state, 1);
    }
}

unsafe extern "C-unwind" fn match_within_limits(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_type(state, 2) == ffi::LUA_TSTRING && ffi::lua_objlen(state, 2) > MAX_PATTERN_DEPTH {
            let mut len = 0;
            let pattern = ffi::lua_tolstring(state, 2, &mut len);
            let pattern = std::slice::from_raw_parts(pattern.cast::<u8>(), len);
            if pattern.iter().filter(|byte| b"?*+-()".contains(byte)).count() > MAX_PATTERN_DEPTH {
                return ffi::luaL_error(state, c"pattern too complex".as_ptr());
            }
        }
        let original: lua_CFunction =
            std::mem::transmute(ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)));
        original(state)
    }
}

/// Pushes the real table behind the one at `index`, if that is a proxy.
pub(super) fn push_real(stack: &mut Stack, index: c_int) -> bool {
    let state = stack.state();
    // SAFETY: the caller has checked the index; there is room for one value more.
    unsafe {
        let Some(proxy) = proxy_at(state, index) else { return false };
        ffi::luaL_checkstack(state, 1, ptr::null());
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, proxy.real);
    }
    stack.note_pushed();
    true
}

/// Puts the real table in the place of the proxy at `index`, if it is one.
unsafe fn see_through(state: *mut lua_State, index: c_int) {
    unsafe {
        if let Some(proxy) = proxy_at(state, index) {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, proxy.real);
            ffi::lua_replace(state, index);
        }
    }
}

/// The name by which the running function was called (`?` if unknown), and whether as a method.
pub(super) fn running_function(state: *mut lua_State) -> (String, bool) {
    // SAFETY: `lua_getinfo` fills in the record of a level that exists; its strings live as long as the call.
    unsafe {
        let mut record: ffi::lua_Debug = std::mem::zeroed();
        if ffi::lua_getstack(state, 0, &mut record) == 0 {
            return ("?".into(), false);
        }
        ffi::lua_getinfo(state, c"n".as_ptr(), &mut record);
        let name = if record.name.is_null() { b"?" } else { c_bytes(record.name) };
        (String::from_utf8_lossy(name).into_owned(), c_bytes(record.namewhat) == b"method")
    }
}

/// Source and current line of the function at `level`, or of the one that called it if it is not a Lua function.
///
/// # Safety
/// The call stack of `state` may be read.
pub(super) unsafe fn place(state: *mut lua_State, level: c_int) -> Option<(Vec<u8>, i32)> {
    unsafe {
        let mut record: ffi::lua_Debug = std::mem::zeroed();
        for level in [level, level + 1] {
            if ffi::lua_getstack(state, level, &mut record) == 0 {
                return None;
            }
            ffi::lua_getinfo(state, c"Sl".as_ptr(), &mut record);
            if c_bytes(record.what) != b"C" {
                break;
            }
        }
        Some((c_bytes(record.source).to_vec(), record.currentline))
    }
}

impl Stack<'_> {
    /// Source and line of the code at `level` (see [`place`]).
    pub fn place(&self, level: i32) -> Option<(Vec<u8>, i32)> {
        // SAFETY: a `Stack` belongs to the running function.
        unsafe { place(self.state(), level) }
    }
}

/// Raises `text` behind the position of the Lua code that runs right below this function, if there is any: what Redis's patched
/// `lua_settable` does.
unsafe fn raise_read_only(state: *mut lua_State, positioned: bool) -> c_int {
    unsafe {
        if positioned {
            return ffi::luaL_error(state, READ_ONLY.as_ptr());
        }
        ffi::lua_pushstring_(state, READ_ONLY.as_ptr());
        ffi::lua_error(state)
    }
}

unsafe extern "C-unwind" fn refuse_assignment(state: *mut lua_State) -> c_int {
    unsafe { raise_read_only(state, true) }
}

unsafe extern "C-unwind" fn next(state: *mut lua_State) -> c_int {
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

unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_pushcclosure(state, next, 0);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushnil(state);
        3
    }
}

unsafe extern "C-unwind" fn rawget(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        see_through(state, 1);
        ffi::lua_rawget_(state, 1);
        1
    }
}

unsafe extern "C-unwind" fn rawset(state: *mut lua_State) -> c_int {
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

unsafe extern "C-unwind" fn getmetatable(state: *mut lua_State) -> c_int {
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

unsafe extern "C-unwind" fn setmetatable(state: *mut lua_State) -> c_int {
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

/// Leaves the function that argument 1 means (a function, or a level of the call stack) on top.
unsafe fn push_function_argument(state: *mut lua_State, optional: bool) {
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

/// The plain table of globals never becomes a value that a script holds: it is shown as its proxy.
unsafe extern "C-unwind" fn getfenv(state: *mut lua_State) -> c_int {
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

unsafe extern "C-unwind" fn setfenv(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 2, ffi::LUA_TTABLE);
        push_function_argument(state, false);
        ffi::lua_pushvalue(state, 2);
        if ffi::lua_isnumber(state, 1) != 0 && ffi::lua_tonumber(state, 1) == 0.0 {
            // The globals of the whole thread: chunks get their environment by name here, so there is nothing to change.
            return 0;
        }
        if ffi::lua_iscfunction(state, -2) != 0 || ffi::lua_setfenv(state, -2) == 0 {
            return ffi::luaL_error(state, c"'setfenv' cannot change environment of given object".as_ptr());
        }
        1
    }
}

/// Leaves the loaded function, or nil and the message.
unsafe fn loaded(state: *mut lua_State, status: c_int) -> c_int {
    unsafe {
        if status == 0 {
            return 1;
        }
        ffi::lua_pushnil(state);
        ffi::lua_insert(state, -2);
        2
    }
}

unsafe extern "C-unwind" fn loadstring(state: *mut lua_State) -> c_int {
    unsafe {
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len);
        let name = ffi::luaL_optlstring(state, 2, text, ptr::null_mut());
        let text = std::slice::from_raw_parts(text.cast(), len);
        let status = chunk::load_text(state, text, CStr::from_ptr(name));
        loaded(state, status)
    }
}

unsafe extern "C-unwind" fn load(state: *mut lua_State) -> c_int {
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

/// `pcall` as Redis has it: an error table is given as the text of its field `err`.
unsafe extern "C-unwind" fn pcall(state: *mut lua_State) -> c_int {
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

/// Without a metatable only: one with a finalizer would run script code inside the collector, where nothing can stop it.
unsafe extern "C-unwind" fn newproxy(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_toboolean(state, 1) != 0 {
            return ffi::luaL_error(state, c"newproxy gives no metatable here".as_ptr());
        }
        ffi::lua_newuserdata(state, 0);
        1
    }
}

unsafe extern "C-unwind" fn tostring(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checkany(state, 1);
        if ffi::luaL_callmeta(state, 1, c"__tostring".as_ptr()) == 0 {
            ffi::lua_settop(state, 1);
            let shared = Shared::of(state);
            let enforced = shared.memory.enforced.replace(false);
            describe_first(&mut Stack::running(state, shared));
            shared.memory.enforced.set(enforced);
        }
        1
    }
}

fn describe_first(stack: &mut Stack) {
    let text = stack.describe(1);
    stack.push_bytes(&text);
}

unsafe extern "C-unwind" fn table_insert(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let last = ffi::lua_objlen(state, 1) as c_int + 1;
        match ffi::lua_gettop(state) {
            2 => {
                refuse_proxy(state);
                ffi::lua_rawseti_(state, 1, last);
            }
            3 => {
                let place = ffi::luaL_checkinteger(state, 2) as c_int;
                refuse_proxy(state);
                let mut i = last.max(place);
                while i > place {
                    ffi::lua_rawgeti_(state, 1, i - 1);
                    ffi::lua_rawseti_(state, 1, i);
                    i -= 1;
                }
                ffi::lua_rawseti_(state, 1, place);
            }
            _ => {
                ffi::luaL_error(state, c"wrong number of arguments to 'insert'".as_ptr());
            }
        }
        0
    }
}

unsafe fn refuse_proxy(state: *mut lua_State) {
    unsafe {
        if proxy_at(state, 1).is_some() {
            raise_read_only(state, false);
        }
    }
}

unsafe extern "C-unwind" fn table_foreach(state: *mut lua_State) -> c_int {
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

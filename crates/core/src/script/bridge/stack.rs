//! A safe view of Lua's stack, for functions that scripts call.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ptr, slice};

use mlua_sys::{self as ffi, lua_CFunction, lua_State};

use super::callers;
use super::machine::{Loaded, Shared, raise_end};

/// A function that scripts can call. Its arguments are at 1..=`stack.len()`. It returns the number of its results,
/// which are the topmost values.
pub(in crate::script) type Function = fn(&mut Stack) -> Result<usize, Raise>;

/// Says that the topmost value of the stack has to be raised as an error.
#[derive(Debug)]
#[must_use]
pub(in crate::script) struct Raise(());

pub(in crate::script) type Raised<T> = Result<T, Raise>;

/// The type of a Lua value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) enum LuaType {
    None,
    Nil,
    Boolean,
    LightUserdata,
    Number,
    String,
    Table,
    Function,
    Userdata,
    Thread,
}

/// The message that Lua raises when an allocation is refused.
const NOT_ENOUGH_MEMORY: &[u8] = b"not enough memory";

impl LuaType {
    /// Returns the name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            LuaType::None => "no value",
            LuaType::Nil => "nil",
            LuaType::Boolean => "boolean",
            LuaType::LightUserdata | LuaType::Userdata => "userdata",
            LuaType::Number => "number",
            LuaType::String => "string",
            LuaType::Table => "table",
            LuaType::Function => "function",
            LuaType::Thread => "thread",
        }
    }
}

/// The part of Lua's stack that belongs to one function. Indices count from 1; negative ones count from the top.
pub(in crate::script) struct Stack<'a> {
    state: *mut lua_State,
    /// The number of values, stored here so that checking an index needs no call.
    top: c_int,
    /// The number of values for which there is room.
    room: c_int,
    pub(in crate::script) shared: &'a Shared,
}

/// The most values that one function may have on Lua's stack: LUAI_MAXCSTACK.
const MOST_VALUES: c_int = 8000;

/// Calls the Rust function in the closure's first upvalue. A `LIMITED` closure raises if the function leaves more
/// memory in use than the script may have.
///
/// # Safety
/// Only Lua calls it, for closures made by [`Stack::push_function`].
unsafe extern "C-unwind" fn trampoline<const LIMITED: bool>(state: *mut lua_State) -> c_int {
    // SAFETY: the first upvalue of such a closure is a `Function`, and Lua has just called this frame, which owns nothing.
    unsafe {
        let function: Function = mem::transmute(ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)));
        call_function::<LIMITED>(state, function)
    }
}

/// Calls a Rust function. If it raises, raises the error after the function has returned and dropped everything. A
/// panic ends the script, and continues where the driver called the machine.
///
/// # Safety
/// `state` is running a C function, whose frame owns nothing, with room for LUA_MINSTACK values.
pub(super) unsafe fn call_function<const LIMITED: bool>(state: *mut lua_State, function: Function) -> c_int {
    // SAFETY: by the caller. Nothing in this frame owns anything when `lua_error` or `raise_end` leaves it: `run` has returned, and the
    // payload of a panic has been given away.
    unsafe {
        let shared = Shared::of(state);
        let enforced = shared.memory.enforced.replace(false);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(state, shared, function, LIMITED)));
        shared.memory.enforced.set(enforced);
        match outcome {
            Ok(results) if results >= 0 => results,
            Ok(_) => ffi::lua_error(state),
            Err(payload) => {
                shared.keep_panic(payload);
                raise_end(state)
            }
        }
    }
}

/// Runs a function. Returns the number of results, or -1 with an error value on top.
///
/// # Safety
/// As for [`call_function`], with the memory limit off.
unsafe fn run(state: *mut lua_State, shared: &Shared, function: Function, limited: bool) -> c_int {
    // SAFETY: by the caller.
    let mut stack = unsafe { Stack::running(state, shared) };
    let outcome = match function(&mut stack) {
        Ok(results) if limited => stack.check_memory().map(|()| results),
        other => other,
    };
    match outcome {
        Ok(results) => {
            assert!(results as c_int <= stack.top, "a function returned more results than it pushed");
            results as c_int
        }
        Err(Raise(())) => -1,
    }
}

impl<'a> Stack<'a> {
    /// # Safety
    /// `state` is a live state of the machine that `shared` belongs to, with room for LUA_MINSTACK values. Nothing else uses it while the
    /// `Stack` lives, and the memory limit is off, so that no allocation raises.
    pub(super) unsafe fn running(state: *mut lua_State, shared: &'a Shared) -> Stack<'a> {
        debug_assert!(!shared.memory.enforced.get(), "an allocation must not raise here");
        // SAFETY: by the caller.
        let top = unsafe { ffi::lua_gettop(state) };
        Stack { state, top, room: top + ffi::LUA_MINSTACK, shared }
    }

    pub(super) fn state(&self) -> *mut lua_State {
        self.state
    }

    /// Returns the number of values.
    pub fn len(&self) -> i32 {
        self.top
    }

    /// Returns the absolute form of `index`, or 0 if there is no such value.
    fn absolute(&self, index: i32) -> c_int {
        if index > 0 && index <= self.top {
            index
        } else if index < 0 && -index <= self.top {
            self.top + index + 1
        } else {
            0
        }
    }

    fn existing(&self, index: i32) -> c_int {
        let index = self.absolute(index);
        assert!(index != 0, "no value at that index");
        index
    }

    fn table(&self, index: i32) -> c_int {
        let index = self.existing(index);
        // SAFETY: a value is there.
        assert!(unsafe { ffi::lua_type(self.state, index) } == ffi::LUA_TTABLE, "no table at that index");
        index
    }

    /// Reserves room for `n` more values. Returns false if Lua's stack cannot grow, as `lua_checkstack` does in Redis.
    pub fn reserve(&mut self, n: i32) -> bool {
        if self.top + n > MOST_VALUES {
            return false;
        }
        if self.top + n > self.room {
            // SAFETY: a live state. `lua_checkstack` catches what it raises.
            if unsafe { ffi::lua_checkstack(self.state, n) } == 0 {
                return false;
            }
            self.room = self.top + n;
        }
        true
    }

    fn pushed(&mut self) {
        self.top += 1;
    }

    /// Makes sure that there is room for one more value. Call this before each push.
    fn one_more(&mut self) {
        if self.top >= self.room {
            assert!(self.reserve(16) || self.reserve(1), "no room on Lua's stack");
        }
    }

    pub fn kind(&self, index: i32) -> LuaType {
        let index = self.absolute(index);
        if index == 0 {
            return LuaType::None;
        }
        // SAFETY: a value is there.
        match unsafe { ffi::lua_type(self.state, index) } {
            ffi::LUA_TBOOLEAN => LuaType::Boolean,
            ffi::LUA_TLIGHTUSERDATA => LuaType::LightUserdata,
            ffi::LUA_TNUMBER => LuaType::Number,
            ffi::LUA_TSTRING => LuaType::String,
            ffi::LUA_TTABLE => LuaType::Table,
            ffi::LUA_TFUNCTION => LuaType::Function,
            ffi::LUA_TUSERDATA => LuaType::Userdata,
            ffi::LUA_TTHREAD => LuaType::Thread,
            _ => LuaType::Nil,
        }
    }

    /// Returns the bytes of a string, or `None` for any other value, numbers included.
    #[inline]
    pub fn bytes(&self, index: i32) -> Option<&[u8]> {
        let index = self.absolute(index);
        // SAFETY: a value is there unless the index is 0.
        if index == 0 || unsafe { ffi::lua_type(self.state, index) } != ffi::LUA_TSTRING {
            return None;
        }
        let mut len = 0;
        // SAFETY: the value is a string, so nothing is converted; it stays on the stack as long as `self` is borrowed.
        unsafe {
            let start = ffi::lua_tolstring(self.state, index, &mut len);
            Some(slice::from_raw_parts(start.cast(), len))
        }
    }

    /// Returns the bytes of a string or of a number, which becomes a string in place.
    pub fn text(&mut self, index: i32) -> Option<&[u8]> {
        let at = self.absolute(index);
        if at == 0 {
            return None;
        }
        let mut len = 0;
        // SAFETY: a value is there, and stays as long as `self` is borrowed. A number becomes a string in place, which allocates, but with
        // the memory limit off does not raise.
        unsafe {
            let start = ffi::lua_tolstring(self.state, at, &mut len);
            (!start.is_null()).then(|| slice::from_raw_parts(start.cast(), len))
        }
    }

    /// Returns a number, or the number that a string reads as.
    pub fn number(&self, index: i32) -> Option<f64> {
        let index = self.absolute(index);
        if index == 0 {
            return None;
        }
        // SAFETY: a value is there.
        unsafe {
            let value = ffi::lua_tonumber(self.state, index);
            (value != 0.0 || ffi::lua_isnumber(self.state, index) != 0).then_some(value)
        }
    }

    /// Returns whether the value is neither false nor nil.
    pub fn truth(&self, index: i32) -> bool {
        let index = self.absolute(index);
        // SAFETY: a value is there unless the index is 0.
        index != 0 && unsafe { ffi::lua_toboolean(self.state, index) } != 0
    }

    pub fn is_null_pointer(&self, index: i32) -> bool {
        // SAFETY: a value is there if it has this kind.
        self.kind(index) == LuaType::LightUserdata
            && unsafe { ffi::lua_touserdata(self.state, self.existing(index)) }.is_null()
    }

    /// Returns the length of a string or table, as `#` does.
    pub fn raw_len(&self, index: i32) -> usize {
        // SAFETY: a value is there; no metamethod is asked.
        unsafe { ffi::lua_objlen(self.state, self.existing(index)) }
    }

    pub fn push_nil(&mut self) {
        self.one_more();
        // SAFETY: there is room.
        unsafe { ffi::lua_pushnil(self.state) };
        self.pushed();
    }

    pub fn push_boolean(&mut self, value: bool) {
        self.one_more();
        // SAFETY: there is room.
        unsafe { ffi::lua_pushboolean(self.state, value as c_int) };
        self.pushed();
    }

    pub fn push_number(&mut self, value: f64) {
        self.one_more();
        // SAFETY: there is room.
        unsafe { ffi::lua_pushnumber(self.state, value) };
        self.pushed();
    }

    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.one_more();
        // SAFETY: there is room, and Lua copies the bytes; with the memory limit off this does not raise.
        unsafe { ffi::lua_pushlstring_(self.state, bytes.as_ptr().cast(), bytes.len()) };
        self.pushed();
    }

    /// Pushes the light userdata `NULL`, which represents JSON's null in cjson.
    pub fn push_null_pointer(&mut self) {
        self.one_more();
        // SAFETY: there is room.
        unsafe { ffi::lua_pushlightuserdata(self.state, ptr::null_mut()) };
        self.pushed();
    }

    /// Pushes a copy of the value at `index`.
    pub fn push_copy(&mut self, index: i32) {
        let index = self.existing(index);
        self.one_more();
        // SAFETY: there is room, and a value to copy.
        unsafe { ffi::lua_pushvalue(self.state, index) };
        self.pushed();
    }

    /// Pushes a function. Pops the topmost `upvalues` values and binds them to it.
    pub fn push_bound_function(&mut self, function: Function, upvalues: i32) {
        assert!((0..=self.top).contains(&upvalues));
        self.one_more();
        // SAFETY: there is room, and as many values as are bound. `trampoline` reads the first upvalue as the `Function` it is.
        unsafe {
            ffi::lua_pushlightuserdata(self.state, function as *mut c_void);
            if upvalues > 0 {
                ffi::lua_insert(self.state, -1 - upvalues);
            }
            ffi::lua_pushcclosure(self.state, trampoline::<true>, 1 + upvalues);
        }
        self.top += 1 - upvalues;
    }

    pub fn push_function(&mut self, function: Function) {
        self.push_bound_function(function, 0);
    }

    /// Pushes a function for handling errors, whose results are not checked against the memory limit.
    pub fn push_error_handler(&mut self, function: Function) {
        self.one_more();
        // SAFETY: there is room; `trampoline` reads the upvalue as the `Function` it is.
        unsafe {
            ffi::lua_pushlightuserdata(self.state, function as *mut c_void);
            ffi::lua_pushcclosure(self.state, trampoline::<false>, 1);
        }
        self.pushed();
    }

    /// Pushes a copy of the running function's bound value number `n`, counted from 1.
    pub fn push_upvalue(&mut self, n: i32) {
        self.one_more();
        // SAFETY: there is room, and an upvalue that there is none of reads as nil.
        unsafe { ffi::lua_pushvalue(self.state, ffi::lua_upvalueindex(n + 1)) };
        self.pushed();
    }

    /// Pushes a new block with these bytes, as a userdata without a metatable.
    pub fn push_block(&mut self, bytes: &[u8]) {
        self.one_more();
        // SAFETY: there is room, and the new block has that size; with the memory limit off this does not raise.
        unsafe {
            let block = ffi::lua_newuserdata(self.state, bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), block.cast(), bytes.len());
        }
        self.pushed();
    }

    /// Returns the block at `index`, which `push_block` created.
    pub fn block_mut(&mut self, index: i32) -> Option<&mut [u8]> {
        if self.kind(index) != LuaType::Userdata {
            return None;
        }
        let index = self.existing(index);
        // SAFETY: a full userdata of that length, kept alive by the stack while `self` is borrowed.
        unsafe {
            let len = ffi::lua_objlen(self.state, index);
            Some(slice::from_raw_parts_mut(ffi::lua_touserdata(self.state, index).cast(), len))
        }
    }

    /// Pushes a new table. The sizes are hints; never pass sizes that a script has chosen.
    pub fn push_table(&mut self, array: i32, record: i32) {
        self.one_more();
        // SAFETY: there is room; with the memory limit off this does not raise.
        unsafe { ffi::lua_createtable(self.state, array, record) };
        self.pushed();
    }

    pub fn pop(&mut self, n: i32) {
        assert!((0..=self.top).contains(&n));
        self.top -= n;
        // SAFETY: there were at least as many values.
        unsafe { ffi::lua_settop(self.state, self.top) };
    }

    /// Removes everything above the first `len` values, or fills up with nil.
    pub fn set_len(&mut self, len: i32) {
        assert!(len >= 0 && (len <= self.top || self.reserve(len - self.top)));
        // SAFETY: there is room for as many values.
        unsafe { ffi::lua_settop(self.state, len) };
        self.top = len;
    }

    /// Moves the topmost value to `index`, and shifts the values from there on up.
    pub fn insert(&mut self, index: i32) {
        // SAFETY: a value is there.
        unsafe { ffi::lua_insert(self.state, self.existing(index)) };
    }

    /// Pops the topmost value and writes it to `index`.
    pub fn replace(&mut self, index: i32) {
        // SAFETY: a value is there.
        unsafe { ffi::lua_replace(self.state, self.existing(index)) };
        self.top -= 1;
    }

    /// Replaces the key on top by its entry in `table`.
    pub fn raw_get(&mut self, table: i32) {
        let table = self.table(table);
        // SAFETY: a table and a key are there; no metamethod is asked.
        unsafe { ffi::lua_rawget_(self.state, table) };
    }

    /// Pushes `table[key]`.
    pub fn raw_get_field(&mut self, table: i32, key: &[u8]) {
        let table = self.table(table);
        self.push_bytes(key);
        // SAFETY: a table and a key are there; no metamethod is asked.
        unsafe { ffi::lua_rawget_(self.state, table) };
    }

    /// Pushes `table[n]`.
    pub fn raw_get_at(&mut self, table: i32, n: i32) {
        let table = self.table(table);
        self.one_more();
        // SAFETY: there is room, and a table; no metamethod is asked.
        unsafe { ffi::lua_rawgeti_(self.state, table, n) };
        self.pushed();
    }

    /// Pops the topmost value and sets `table[n]` to it.
    pub fn raw_set_at(&mut self, table: i32, n: i32) {
        let table = self.table(table);
        // SAFETY: a table and a value are there; with the memory limit off this does not raise.
        unsafe { ffi::lua_rawseti_(self.state, table, n) };
        self.top -= 1;
    }

    /// Pops a key and a value and sets the table's entry. The key must not be nil or NaN.
    pub fn raw_set(&mut self, table: i32) {
        let table = self.table(table);
        assert!(self.is_key(-2) && self.top >= 2);
        // SAFETY: a table, a key that it can have, and a value are there; with the memory limit off this does not raise.
        unsafe { ffi::lua_rawset(self.state, table) };
        self.top -= 2;
    }

    /// Pops the topmost value and sets `table[key]` to it.
    pub fn raw_set_field(&mut self, table: i32, key: &[u8]) {
        let table = self.table(table);
        self.push_bytes(key);
        self.insert(-2);
        // SAFETY: a table, a key that it can have, and a value are there; with the memory limit off this does not raise.
        unsafe { ffi::lua_rawset(self.state, table) };
        self.top -= 2;
    }

    /// Returns whether a table can have the value as a key.
    pub fn is_key(&self, index: i32) -> bool {
        match self.kind(index) {
            LuaType::None | LuaType::Nil => false,
            LuaType::Number => self.number(index).is_some_and(|n| !n.is_nan()),
            _ => true,
        }
    }

    /// Calls `visit` for each entry in Lua's order, with the key at -2 and the value at -1. Drops what `visit` leaves
    /// above them. `visit` must not assign to the table.
    pub fn each(&mut self, table: i32, mut visit: impl FnMut(&mut Stack) -> Raised<()>) -> Raised<()> {
        self.each_until(table, |lua| visit(lua).map(|()| true))
    }

    /// Calls `visit` for each entry until it returns false. For a proxy, visits the real table.
    pub fn each_until(
        &mut self,
        table: i32,
        mut visit: impl FnMut(&mut Stack) -> Raised<bool>,
    ) -> Raised<()> {
        let table = self.table(table);
        let start = self.top;
        self.see_through(table);
        self.push_nil();
        loop {
            self.one_more();
            // SAFETY: a table is there, with room for a value beside the key. The key is nil or one that the table has just given, so
            // `lua_next` does not raise.
            if unsafe { ffi::lua_next(self.state, table) } == 0 {
                self.top = start;
                return Ok(());
            }
            self.pushed();
            if !visit(self)? {
                break;
            }
            self.set_len(start + 1);
        }
        self.set_len(start);
        Ok(())
    }

    /// Pops the topmost value and keeps it in the registry for good. Returns its key.
    pub(super) fn keep(&mut self) -> c_int {
        assert!(self.top > 0);
        // SAFETY: a value is on top, and the registry is a table; with the memory limit off this does not raise.
        let key = unsafe { ffi::luaL_ref(self.state, ffi::LUA_REGISTRYINDEX) };
        self.top -= 1;
        key
    }

    /// Keeps a copy of the function at `index` in the registry until the machine forgets it.
    pub fn keep_function(&mut self, index: i32) -> Loaded {
        self.push_copy(index);
        Loaded(self.keep())
    }

    /// Pushes the guarded table of globals.
    pub fn push_globals(&mut self) {
        self.push_kept(self.shared.environment(true));
    }

    /// Pushes the metatable of the value at `index`, or nil if it has none.
    pub fn push_metatable(&mut self, index: i32) {
        let index = self.existing(index);
        self.one_more();
        // SAFETY: a value is there, and there is room.
        if unsafe { ffi::lua_getmetatable(self.state, index) } == 0 {
            return self.push_nil();
        }
        self.pushed();
    }

    /// Pushes the value that the registry keeps under a key.
    pub(super) fn push_kept(&mut self, key: c_int) {
        self.one_more();
        // SAFETY: there is room, and the registry is a table.
        unsafe { ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, key) };
        self.pushed();
    }

    /// Pushes a function that Lua calls directly.
    pub(super) fn push_lua_function(&mut self, function: lua_CFunction) {
        self.one_more();
        // SAFETY: there is room, and a closure without upvalues takes nothing off.
        unsafe { ffi::lua_pushcclosure(self.state, function, 0) };
        self.pushed();
    }

    /// Returns the address of the object at `index`.
    pub(super) fn address(&self, index: i32) -> *const c_void {
        // SAFETY: a value is there.
        unsafe { ffi::lua_topointer(self.state, self.existing(index)) }
    }

    /// Pops the metatable on top and sets it for the table below.
    pub fn set_metatable(&mut self) {
        let (table, _) = (self.table(-2), self.table(-1));
        // SAFETY: two tables are there.
        unsafe { ffi::lua_setmetatable(self.state, table) };
        self.top -= 1;
    }

    /// Raises the topmost value.
    pub fn raise<T>(&mut self) -> Raised<T> {
        assert!(self.top > 0);
        Err(Raise(()))
    }

    /// Makes room for an error value on a full stack. A function that raises no longer needs its other values.
    /// (Arguments alone may exceed what `reserve` allows; there is room beyond them all the same.)
    fn make_room_to_raise(&mut self) {
        if self.top + 8 > self.room && !self.reserve(8) {
            self.pop(8);
        }
    }

    /// Raises a text without a position.
    pub fn raise_plain<T>(&mut self, text: &[u8]) -> Raised<T> {
        self.make_room_to_raise();
        self.push_bytes(text);
        self.raise()
    }

    /// Raises a text preceded by the position of the calling code, as `luaL_error` does.
    pub fn raise_text<T>(&mut self, text: &str) -> Raised<T> {
        self.raise_bytes(text.as_bytes())
    }

    pub fn raise_bytes<T>(&mut self, text: &[u8]) -> Raised<T> {
        self.make_room_to_raise();
        let mut message = self.position(1);
        message.extend_from_slice(text);
        self.raise_plain(&message)
    }

    /// Returns `source:line: ` for the code at `level` of the call stack (0 is the running function), or an empty text.
    pub fn position(&mut self, level: i32) -> Vec<u8> {
        self.one_more();
        // SAFETY: there is room; with the memory limit off this does not raise.
        unsafe { ffi::luaL_where(self.state, level) };
        self.pushed();
        let text = self.bytes(-1).unwrap_or_default().to_vec();
        self.pop(1);
        text
    }

    /// Raises `bad argument #n to 'name' (why)`, in the form of `luaL_argerror`.
    pub fn argument_error<T>(&mut self, n: i32, why: impl AsRef<[u8]>) -> Raised<T> {
        // SAFETY: a `Stack` belongs to the running function.
        let (name, is_method) = unsafe { callers::running_function(self.state) };
        let start = match (is_method, n) {
            (true, 1) => format!("calling '{name}' on bad self ("),
            (true, _) => format!("bad argument #{} to '{name}' (", n - 1),
            (false, _) => format!("bad argument #{n} to '{name}' ("),
        };
        self.raise_bytes(&[start.as_bytes(), why.as_ref(), b")"].concat())
    }

    pub fn type_error<T>(&mut self, n: i32, expected: &str) -> Raised<T> {
        let found = self.kind(n).name();
        self.argument_error(n, format!("{expected} expected, got {found}"))
    }

    /// Returns argument `n` as a number, or raises the usual error.
    pub fn check_number(&mut self, n: i32) -> Raised<f64> {
        match self.number(n) {
            Some(value) => Ok(value),
            None => self.type_error(n, "number"),
        }
    }

    /// Returns argument `n` as an integer, or raises the usual error. Drops the fraction; a number that does not fit an
    /// i64 becomes `i64::MIN`.
    pub fn check_integer(&mut self, n: i32) -> Raised<i64> {
        self.check_number(n).map(truncate)
    }

    /// Checks that argument `n` is a string, and converts a number in place. Read the argument with `bytes`.
    pub fn check_bytes(&mut self, n: i32) -> Raised<()> {
        match self.text(n) {
            Some(_) => Ok(()),
            None => self.type_error(n, "string"),
        }
    }

    /// Returns the most bytes that a script may hold.
    pub fn memory_limit(&self) -> usize {
        self.shared.memory.limit
    }

    /// Raises if a function has built a value larger than a script may hold, outside Lua's memory.
    pub fn check_size(&mut self, bytes: usize) -> Raised<()> {
        if bytes > self.memory_limit() { self.raise_plain(NOT_ENOUGH_MEMORY) } else { Ok(()) }
    }

    /// Raises if the script holds more memory than it may. For loops that build large values.
    pub fn check_memory(&mut self) -> Raised<()> {
        if self.shared.memory.exceeded() { self.raise_plain(NOT_ENOUGH_MEMORY) } else { Ok(()) }
    }
}

/// Converts a double as C casts it to an `int` on x86-64.
pub(in crate::script) fn truncate_to_i32(value: f64) -> i32 {
    if (-2147483649.0..2147483648.0).contains(&value) { value as i32 } else { i32::MIN }
}

/// Converts a double as C casts it to a 64-bit integer on x86-64.
pub(in crate::script) fn truncate(value: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&value) { value as i64 } else { i64::MIN }
}

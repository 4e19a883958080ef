//! A safe view of Lua's stack for functions that scripts call.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{mem, ptr, slice};

use mlua_sys::{self as ffi, lua_State};

use super::guard;
use super::machine::Shared;

/// A function that scripts can call. It finds its arguments at 1..=`stack.len()` and returns how many of the topmost
/// values are its results.
pub(in crate::script) type Function = fn(&mut Stack) -> Result<usize, Raise>;

/// The topmost value of the stack is to be raised as an error.
#[derive(Debug)]
#[must_use]
pub(in crate::script) struct Raise(());

pub(in crate::script) type Raised<T> = Result<T, Raise>;

/// The type of a Lua value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) enum Kind {
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

/// What Lua raises when it is refused memory.
const NOT_ENOUGH_MEMORY: &[u8] = b"not enough memory";

impl Kind {
    /// The name scripts know the type by.
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "no value",
            Kind::Nil => "nil",
            Kind::Boolean => "boolean",
            Kind::LightUserdata | Kind::Userdata => "userdata",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Table => "table",
            Kind::Function => "function",
            Kind::Thread => "thread",
        }
    }
}

/// The part of Lua's stack that belongs to one function. Positions count from 1; negative ones from the top.
pub(in crate::script) struct Stack<'a> {
    state: *mut lua_State,
    /// How many values there are; kept here so that a position can be checked without a call.
    top: c_int,
    /// How many values there is room for.
    room: c_int,
    pub(in crate::script) shared: &'a Shared,
}

/// Calls the Rust function in the closure's first upvalue. A `LIMITED` one raises if it leaves more memory in use than a script may
/// have.
///
/// # Safety
/// Only Lua calls it, for closures made by [`Stack::push_function`].
pub(super) unsafe extern "C-unwind" fn trampoline<const LIMITED: bool>(state: *mut lua_State) -> c_int {
    // SAFETY: the upvalue is a `Function`. Nothing in this frame owns anything when `lua_error` leaves it.
    unsafe {
        let function: Function = mem::transmute(ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)));
        let shared = Shared::of(state);
        let enforced = shared.memory.enforced.replace(false);
        match catch_unwind(AssertUnwindSafe(|| run(state, shared, function, LIMITED))) {
            Ok(results) if results >= 0 => {
                shared.memory.enforced.set(enforced);
                return results;
            }
            Ok(_) => {}
            Err(payload) => shared.leave_with_panic(payload),
        }
        shared.memory.enforced.set(enforced);
        ffi::lua_error(state)
    }
}

/// The number of results, or -1 with an error value on top.
unsafe fn run(state: *mut lua_State, shared: &Shared, function: Function, limited: bool) -> c_int {
    // SAFETY: `state` is running the function, so its stack has room for LUA_MINSTACK values more.
    let mut stack = unsafe { Stack::running(state, shared) };
    let outcome = match function(&mut stack) {
        Ok(results) if limited => stack.check_memory().map(|()| results),
        other => other,
    };
    match outcome {
        Ok(results) => {
            assert!(results as c_int <= stack.top, "a function returns what it has pushed");
            results as c_int
        }
        Err(Raise(())) => -1,
    }
}

impl<'a> Stack<'a> {
    /// # Safety
    /// `state` is a live state that nothing else uses while the `Stack` lives, with LUA_MINSTACK slots of room, in a place where raising
    /// is impossible (see the module's rules).
    pub(super) unsafe fn running(state: *mut lua_State, shared: &'a Shared) -> Stack<'a> {
        let top = unsafe { ffi::lua_gettop(state) };
        Stack { state, top, room: top + ffi::LUA_MINSTACK, shared }
    }

    pub(super) fn state(&self) -> *mut lua_State {
        self.state
    }

    /// How many values there are.
    pub fn len(&self) -> i32 {
        self.top
    }

    /// The absolute form of `index`, or 0 when there is no such value.
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
        assert!(index != 0, "a value at that position");
        index
    }

    fn table(&self, index: i32) -> c_int {
        let index = self.existing(index);
        assert!(unsafe { ffi::lua_type(self.state, index) } == ffi::LUA_TTABLE, "a table at that position");
        index
    }

    /// Makes room for `n` more values; false when Lua's stack cannot grow any further.
    pub fn reserve(&mut self, n: i32) -> bool {
        if self.top + n > self.room {
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

    /// To be called before each push.
    fn one_more(&mut self) {
        if self.top >= self.room {
            assert!(self.reserve(16), "room on Lua's stack was reserved");
        }
    }

    pub fn kind(&self, index: i32) -> Kind {
        let index = self.absolute(index);
        if index == 0 {
            return Kind::None;
        }
        match unsafe { ffi::lua_type(self.state, index) } {
            ffi::LUA_TBOOLEAN => Kind::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Kind::LightUserdata,
            ffi::LUA_TNUMBER => Kind::Number,
            ffi::LUA_TSTRING => Kind::String,
            ffi::LUA_TTABLE => Kind::Table,
            ffi::LUA_TFUNCTION => Kind::Function,
            ffi::LUA_TUSERDATA => Kind::Userdata,
            ffi::LUA_TTHREAD => Kind::Thread,
            _ => Kind::Nil,
        }
    }

    /// The bytes of a string; none for anything else, numbers included.
    #[inline]
    pub fn bytes(&self, index: i32) -> Option<&[u8]> {
        let index = self.absolute(index);
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

    /// The bytes of a string, or of a number, which is turned into a string in place.
    pub fn text(&mut self, index: i32) -> Option<&[u8]> {
        let at = self.absolute(index);
        if at == 0 {
            return None;
        }
        let mut len = 0;
        // SAFETY: as in `bytes`.
        unsafe {
            let start = ffi::lua_tolstring(self.state, at, &mut len);
            (!start.is_null()).then(|| slice::from_raw_parts(start.cast(), len))
        }
    }

    /// A number, or a string that reads as one.
    pub fn number(&self, index: i32) -> Option<f64> {
        let index = self.absolute(index);
        if index == 0 {
            return None;
        }
        unsafe {
            let value = ffi::lua_tonumber(self.state, index);
            (value != 0.0 || ffi::lua_isnumber(self.state, index) != 0).then_some(value)
        }
    }

    /// Whether the value is neither false nor nil.
    pub fn truth(&self, index: i32) -> bool {
        let index = self.absolute(index);
        index != 0 && unsafe { ffi::lua_toboolean(self.state, index) } != 0
    }

    pub fn is_null_pointer(&self, index: i32) -> bool {
        self.kind(index) == Kind::LightUserdata
            && unsafe { ffi::lua_touserdata(self.state, self.existing(index)) }.is_null()
    }

    /// The length of a string or table, as `#` gives it.
    pub fn raw_len(&self, index: i32) -> usize {
        unsafe { ffi::lua_objlen(self.state, self.existing(index)) }
    }

    pub fn push_nil(&mut self) {
        self.one_more();
        unsafe { ffi::lua_pushnil(self.state) };
        self.pushed();
    }

    pub fn push_boolean(&mut self, value: bool) {
        self.one_more();
        unsafe { ffi::lua_pushboolean(self.state, value as c_int) };
        self.pushed();
    }

    pub fn push_number(&mut self, value: f64) {
        self.one_more();
        unsafe { ffi::lua_pushnumber(self.state, value) };
        self.pushed();
    }

    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.one_more();
        unsafe { ffi::lua_pushlstring_(self.state, bytes.as_ptr().cast(), bytes.len()) };
        self.pushed();
    }

    /// The userdata `NULL`, which cjson has for JSON's null.
    pub fn push_null_pointer(&mut self) {
        self.one_more();
        unsafe { ffi::lua_pushlightuserdata(self.state, ptr::null_mut()) };
        self.pushed();
    }

    /// A copy of the value at `index`.
    pub fn push_copy(&mut self, index: i32) {
        let index = self.existing(index);
        self.one_more();
        unsafe { ffi::lua_pushvalue(self.state, index) };
        self.pushed();
    }

    /// A function; the topmost `upvalues` values are taken off and bound to it.
    pub fn push_bound_function(&mut self, function: Function, upvalues: i32) {
        assert!((0..=self.top).contains(&upvalues));
        self.one_more();
        // SAFETY: `trampoline` reads the first upvalue as the `Function` it is.
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

    /// A function that does not raise, as long as it says so itself: for errors on their way.
    pub fn push_error_handler(&mut self, function: Function) {
        self.one_more();
        // SAFETY: as in `push_bound_function`.
        unsafe {
            ffi::lua_pushlightuserdata(self.state, function as *mut c_void);
            ffi::lua_pushcclosure(self.state, trampoline::<false>, 1);
        }
        self.pushed();
    }

    /// A copy of the running function's bound value number `n`, from 1.
    pub fn push_upvalue(&mut self, n: i32) {
        self.one_more();
        unsafe { ffi::lua_pushvalue(self.state, ffi::lua_upvalueindex(n + 1)) };
        self.pushed();
    }

    /// A fresh block of `bytes`, as a userdata without a metatable.
    pub fn push_block(&mut self, bytes: &[u8]) {
        self.one_more();
        // SAFETY: the new block has that size.
        unsafe {
            let block = ffi::lua_newuserdata(self.state, bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), block.cast(), bytes.len());
        }
        self.pushed();
    }

    /// The block at `index`, made by `push_block`.
    pub fn block_mut(&mut self, index: i32) -> Option<&mut [u8]> {
        if self.kind(index) != Kind::Userdata {
            return None;
        }
        let index = self.existing(index);
        // SAFETY: a full userdata of that length, kept alive by the stack while `self` is borrowed.
        unsafe {
            let len = ffi::lua_objlen(self.state, index);
            Some(slice::from_raw_parts_mut(ffi::lua_touserdata(self.state, index).cast(), len))
        }
    }

    /// A fresh table. The sizes are hints; do not pass on sizes that a script chose.
    pub fn push_table(&mut self, array: i32, record: i32) {
        self.one_more();
        unsafe { ffi::lua_createtable(self.state, array, record) };
        self.pushed();
    }

    pub fn pop(&mut self, n: i32) {
        assert!((0..=self.top).contains(&n));
        self.top -= n;
        unsafe { ffi::lua_settop(self.state, self.top) };
    }

    /// Cuts off everything above the first `len` values, or fills up with nil.
    pub fn set_len(&mut self, len: i32) {
        assert!(len >= 0 && (len <= self.top || self.reserve(len - self.top)));
        unsafe { ffi::lua_settop(self.state, len) };
        self.top = len;
    }

    /// Moves the topmost value to `index`, shifting what stands from there up.
    pub fn insert(&mut self, index: i32) {
        unsafe { ffi::lua_insert(self.state, self.existing(index)) };
    }

    /// Takes the topmost value off and writes it to `index`.
    pub fn replace(&mut self, index: i32) {
        unsafe { ffi::lua_replace(self.state, self.existing(index)) };
        self.top -= 1;
    }

    /// Pushes `table[key]`.
    pub fn raw_get_field(&mut self, table: i32, key: &[u8]) {
        let table = self.table(table);
        self.push_bytes(key);
        unsafe { ffi::lua_rawget_(self.state, table) };
    }

    /// Pushes `table[n]`.
    pub fn raw_get_at(&mut self, table: i32, n: i32) {
        let table = self.table(table);
        self.one_more();
        unsafe { ffi::lua_rawgeti_(self.state, table, n) };
        self.pushed();
    }

    /// Sets `table[n]` to the topmost value and takes it off.
    pub fn raw_set_at(&mut self, table: i32, n: i32) {
        let table = self.table(table);
        unsafe { ffi::lua_rawseti_(self.state, table, n) };
        self.top -= 1;
    }

    /// Sets a table's entry to the two topmost values, key and value, and takes them off. The key must not be nil or NaN.
    pub fn raw_set(&mut self, table: i32) {
        let table = self.table(table);
        assert!(self.is_key(-2) && self.top >= 2);
        unsafe { ffi::lua_rawset(self.state, table) };
        self.top -= 2;
    }

    /// Sets `table[key]` to the topmost value and takes it off.
    pub fn raw_set_field(&mut self, table: i32, key: &[u8]) {
        let table = self.table(table);
        self.push_bytes(key);
        self.insert(-2);
        unsafe { ffi::lua_rawset(self.state, table) };
        self.top -= 2;
    }

    /// Whether a table can have the value as a key.
    pub fn is_key(&self, index: i32) -> bool {
        match self.kind(index) {
            Kind::None | Kind::Nil => false,
            Kind::Number => self.number(index).is_some_and(|n| !n.is_nan()),
            _ => true,
        }
    }

    /// Calls `visit` for each entry in Lua's order, with the key at -2 and the value at -1. What `visit` leaves above them is dropped. It
    /// must not assign to the table.
    pub fn each(&mut self, table: i32, mut visit: impl FnMut(&mut Stack) -> Raised<()>) -> Raised<()> {
        self.each_until(table, |lua| visit(lua).map(|()| true))
    }

    /// Like `each`, until `visit` says false.
    pub fn each_until(
        &mut self,
        table: i32,
        mut visit: impl FnMut(&mut Stack) -> Raised<bool>,
    ) -> Raised<()> {
        let table = self.table(table);
        let start = self.top;
        let real = if guard::push_real(self, table) { self.top } else { table };
        let below = self.top;
        self.push_nil();
        loop {
            self.one_more();
            // SAFETY: the key is nil or one that the table has just given, so `lua_next` does not raise.
            if unsafe { ffi::lua_next(self.state, real) } == 0 {
                self.top = below;
                break;
            }
            self.pushed();
            if !visit(self)? {
                break;
            }
            self.set_len(below + 1);
        }
        self.set_len(start);
        Ok(())
    }

    pub(super) fn note_pushed(&mut self) {
        self.pushed();
    }

    pub(super) fn note_popped(&mut self, n: c_int) {
        self.top -= n;
    }

    /// Raises the topmost value.
    pub fn raise<T>(&mut self) -> Raised<T> {
        assert!(self.top > 0);
        Err(Raise(()))
    }

    /// Whatever else the function has on the stack is lost to it when it raises, so on a full stack it makes room.
    fn make_room_to_raise(&mut self) {
        if !self.reserve(8) {
            self.pop(8);
        }
    }

    /// Raises a text without a position.
    pub fn raise_plain<T>(&mut self, text: &[u8]) -> Raised<T> {
        self.make_room_to_raise();
        self.push_bytes(text);
        self.raise()
    }

    /// Raises a text behind the position of the calling code, as `luaL_error` does.
    pub fn raise_text<T>(&mut self, text: &str) -> Raised<T> {
        self.raise_bytes(text.as_bytes())
    }

    pub fn raise_bytes<T>(&mut self, text: &[u8]) -> Raised<T> {
        self.make_room_to_raise();
        let mut message = self.position(1);
        message.extend_from_slice(text);
        self.raise_plain(&message)
    }

    /// `source:line: ` of the code at `level` of the call stack (0 is the running function), or nothing.
    pub fn position(&mut self, level: i32) -> Vec<u8> {
        assert!(self.reserve(4));
        unsafe { ffi::luaL_where(self.state, level) };
        self.pushed();
        let text = self.bytes(-1).unwrap_or_default().to_vec();
        self.pop(1);
        text
    }

    /// Raises `bad argument #n to 'name' (why)`, as `luaL_argerror` words it.
    pub fn argument_error<T>(&mut self, n: i32, why: impl AsRef<[u8]>) -> Raised<T> {
        let (name, is_method) = guard::running_function(self.state);
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

    /// Argument `n` as a number, or the usual error.
    pub fn check_number(&mut self, n: i32) -> Raised<f64> {
        match self.number(n) {
            Some(value) => Ok(value),
            None => self.type_error(n, "number"),
        }
    }

    /// Argument `n` as an integer; its fraction is cut off, and what no i64 can hold is `i64::MIN`.
    pub fn check_integer(&mut self, n: i32) -> Raised<i64> {
        self.check_number(n).map(truncate)
    }

    /// Makes sure that argument `n` is a string (numbers are converted in place), to be read with `bytes`.
    pub fn check_bytes(&mut self, n: i32) -> Raised<()> {
        match self.text(n) {
            Some(_) => Ok(()),
            None => self.type_error(n, "string"),
        }
    }

    /// The most bytes that a script may hold.
    pub fn memory_limit(&self) -> usize {
        self.shared.memory.limit
    }

    /// Raises when a function has built more than a script may hold, outside of Lua's memory.
    pub fn check_size(&mut self, bytes: usize) -> Raised<()> {
        if bytes > self.memory_limit() { self.raise_plain(NOT_ENOUGH_MEMORY) } else { Ok(()) }
    }

    /// Raises when the script holds more memory than it may. For loops that build large values.
    pub fn check_memory(&mut self) -> Raised<()> {
        if self.shared.memory.exceeded() { self.raise_plain(NOT_ENOUGH_MEMORY) } else { Ok(()) }
    }
}

/// A double as C casts it to an `int` on x86-64.
pub(in crate::script) fn truncate_to_i32(value: f64) -> i32 {
    if (-2147483649.0..2147483648.0).contains(&value) { value as i32 } else { i32::MIN }
}

/// A double as C casts it to a 64-bit integer on x86-64.
pub(in crate::script) fn truncate(value: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&value) { value as i64 } else { i64::MIN }
}

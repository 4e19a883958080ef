//! Read-only tables, and numbers that replace the addresses of objects.
//!
//! Redis patches Lua so that a table can be made read-only; the Lua here is unpatched. Scripts therefore get a *proxy*
//! for a protected table: an empty table whose metatable finds entries in the real table and refuses assignments. Every
//! library function that bypasses metatables is replaced by one that knows proxies ([`guard`]).

use std::ffi::{c_int, c_void};

use mlua_sys::{self as ffi, lua_State};

use super::guard;
use super::machine::Shared;
use super::stack::{LuaType, Stack};

/// The first of the invented addresses of objects.
const OBJECTS: u64 = 0x7f00_0000_0000;

/// A protected table: the address of its proxy, and the registry keys of the real table and of the value that
/// `getmetatable` returns.
#[derive(Clone, Copy)]
pub(super) struct Proxy {
    address: *const c_void,
    pub real: c_int,
    pub metatable: c_int,
}

/// All protected tables of a state. There are about a dozen, created one after the other.
#[derive(Default)]
pub(in crate::script) struct Proxies {
    list: Vec<Proxy>,
    /// The registry key of the value that `getmetatable` returns for strings.
    pub(super) string_metatable: c_int,
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

/// Returns the protected table whose proxy is the value at `index`, or `None` if the value is not a proxy.
///
/// # Safety
/// `state` is a live state of a machine, and `index` is acceptable in its running function.
pub(super) unsafe fn proxy_at(state: *mut lua_State, index: c_int) -> Option<Proxy> {
    // SAFETY: by the caller; neither call can raise, and nothing else borrows the proxies.
    unsafe {
        if ffi::lua_type(state, index) != ffi::LUA_TTABLE {
            return None;
        }
        Shared::of(state).proxies.borrow().find(ffi::lua_topointer(state, index))
    }
}

impl Stack<'_> {
    /// Replaces the table on top by a proxy for it. Pops the value below, which `getmetatable` will return for the
    /// proxy.
    pub fn protect(&mut self) {
        assert!(self.len() >= 2);
        self.push_table(0, 0);
        self.push_table(0, 2);
        self.push_copy(-3);
        self.raw_set_field(-2, b"__index");
        self.push_assignment_guard();
        self.raw_set_field(-2, b"__newindex");
        self.set_metatable();
        let address = self.address(-1);
        self.insert(-3);
        let real = self.keep();
        let metatable = self.keep();
        self.shared.proxies.borrow_mut().add(Proxy { address, real, metatable });
    }

    /// Pops the table on top, which `getmetatable` will return for strings.
    pub fn show_as_string_metatable(&mut self) {
        let table = self.keep();
        self.shared.proxies.borrow_mut().string_metatable = table;
    }

    /// Pushes the function that refuses assignments.
    pub fn push_assignment_guard(&mut self) {
        self.push_lua_function(guard::refuse_assignment);
    }

    /// Pushes, one after the other, the replacements of Lua's functions that bypass proxies, and calls `set` with their
    /// names.
    pub fn each_guarded(&mut self, mut set: impl FnMut(&mut Stack, &str, &str)) {
        for (library, name, function) in guard::REPLACED {
            self.push_lua_function(*function);
            set(self, library, name);
        }
    }

    /// Replaces the proxy at `index` by its real table. Does nothing for other values.
    pub(super) fn see_through(&mut self, index: i32) {
        // SAFETY: a `Stack` belongs to the running function, and `proxy_at` takes any index.
        if let Some(proxy) = unsafe { proxy_at(self.state(), index) } {
            self.push_kept(proxy.real);
            self.replace(index);
        }
    }

    /// Returns the memory that the state holds, in bytes.
    pub fn memory_used(&self) -> usize {
        self.shared.memory.used.get()
    }

    /// Returns a value as `tostring` without metatables shows it. Objects have numbers instead of addresses. The
    /// numbers are assigned in the order in which objects are first shown, so that two runs show the same.
    pub fn describe(&mut self, index: i32) -> Vec<u8> {
        match self.kind(index) {
            LuaType::None | LuaType::Nil => b"nil".to_vec(),
            LuaType::Boolean => if self.truth(index) { &b"true"[..] } else { b"false" }.to_vec(),
            LuaType::Number | LuaType::String => {
                self.push_copy(index);
                let text = self.text(-1).unwrap_or_default().to_vec();
                self.pop(1);
                text
            }
            LuaType::LightUserdata => b"userdata: (nil)".to_vec(),
            kind => {
                let number = self.object_number(index);
                format!("{}: {:#014x}", kind.name(), OBJECTS + number * 16).into_bytes()
            }
        }
    }

    fn object_number(&mut self, index: i32) -> u64 {
        let start = self.len();
        self.push_copy(index);
        self.push_object_numbers();
        self.push_copy(-2);
        self.raw_get(-2);
        let number = match self.number(-1) {
            Some(number) => number as u64,
            None => {
                let number = self.shared.next_object_number();
                self.push_copy(-3);
                self.push_number(number as f64);
                self.raw_set(-4);
                number
            }
        };
        self.pop(self.len() - start);
        number
    }

    /// Pushes the table that numbers objects. Its keys are weak: it forgets objects that nothing else refers to.
    fn push_object_numbers(&mut self) {
        let kept = &self.shared.object_numbers;
        if kept.get() == ffi::LUA_REFNIL {
            self.push_table(0, 0);
            self.push_table(0, 1);
            self.push_bytes(b"k");
            self.raw_set_field(-2, b"__mode");
            self.set_metatable();
            let table = self.keep();
            self.shared.object_numbers.set(table);
        }
        self.push_kept(self.shared.object_numbers.get());
    }
}

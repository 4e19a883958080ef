//! Lua's allocator: counts what a state holds and refuses to go over the limit while script code runs.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// What one Lua state has allocated, in bytes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub used: Cell<usize>,
    pub limit: Cell<usize>,
    /// Set while script code runs. Cleared inside library functions and between scripts, where a refused allocation
    /// would raise over frames that own things; those places look at `exceeded` instead.
    pub enforced: Cell<bool>,
}

impl Memory {
    pub fn exceeded(&self) -> bool {
        self.used.get() > self.limit.get()
    }
}

/// Lua aligns nothing beyond what `double` and pointers need.
const ALIGN: usize = 16;

/// The `lua_Alloc` of every state.
///
/// # Safety
/// `ud` points to the state's `Memory`; `block` is null or came from here with size `old`.
pub(super) unsafe extern "C" fn allocate(
    ud: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: by the contract of this function; sizes are those of live blocks, so the layouts are valid.
    unsafe {
        let memory = &*(ud as *const Memory);
        if new == 0 {
            if !block.is_null() {
                dealloc(block.cast(), Layout::from_size_align_unchecked(old, ALIGN));
                memory.used.set(memory.used.get() - old);
            }
            return ptr::null_mut();
        }
        let old = if block.is_null() { 0 } else { old };
        let used = memory.used.get() - old + new;
        if new > old && memory.enforced.get() && used > memory.limit.get() {
            return ptr::null_mut();
        }
        let layout = Layout::from_size_align_unchecked(new, ALIGN);
        let fresh = if block.is_null() {
            alloc(layout)
        } else {
            realloc(block.cast(), Layout::from_size_align_unchecked(old, ALIGN), new)
        };
        if fresh.is_null() {
            handle_alloc_error(layout);
        }
        memory.used.set(used);
        fresh.cast()
    }
}

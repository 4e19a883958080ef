//! Lua's allocator. It counts the memory of a state, and refuses to exceed the limit while script code runs.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr;

use super::heap::{Heap, MAX_BLOCK};
#[cfg(test)]
use super::refusal::Refusals;

/// The memory that one Lua state has allocated, in bytes.
pub(super) struct Memory {
    pub used: Cell<usize>,
    pub limit: usize,
    /// The most that `used` may reach while `enforced`: the limit, or 0 while a script is being ended.
    ceiling: Cell<usize>,
    /// Set while script code runs. Cleared inside library functions and between scripts, where a refused allocation
    /// would raise over frames that own something; they check `exceeded` instead.
    pub enforced: Cell<bool>,
    /// Serves small blocks while it has room.
    heap: RefCell<Option<Heap>>,
    /// The requests that a test refuses, and the blocks that it counts.
    #[cfg(test)]
    pub refusals: Refusals,
}

impl Memory {
    /// Creates the allocator of a state. `limit` is in bytes.
    pub fn new(limit: usize) -> Memory {
        // The heap also has to hold what library functions allocate beyond the limit, and the gaps between blocks.
        // Without it, a checker of memory sees each block.
        let heap = if cfg!(feature = "system-allocator") { None } else { Heap::new(limit.saturating_mul(2)) };
        Memory {
            used: Cell::new(0),
            limit,
            ceiling: Cell::new(limit),
            enforced: Cell::new(false),
            heap: RefCell::new(heap),
            #[cfg(test)]
            refusals: Refusals::default(),
        }
    }

    /// Returns whether the script holds more memory than it may.
    pub fn exceeded(&self) -> bool {
        self.used.get() > self.limit || self.is_refused_by_test()
    }

    /// Counts a request that a full memory would refuse. Returns whether a test wants it refused.
    #[cfg(test)]
    fn is_refused_by_test(&self) -> bool {
        !self.is_ending() && self.refusals.next()
    }

    #[cfg(not(test))]
    fn is_refused_by_test(&self) -> bool {
        false
    }

    /// Refuses every further allocation of the running script, which ends it.
    pub fn end_script(&self) {
        self.ceiling.set(0);
    }

    /// Returns whether the running script is being ended.
    pub fn is_ending(&self) -> bool {
        self.ceiling.get() == 0
    }

    /// Restores the limit for the next script.
    pub fn begin_script(&self) {
        self.ceiling.set(self.limit);
    }

    /// # Safety
    /// The result is used as a block of `size` bytes, which is not 0.
    unsafe fn obtain(&self, size: usize) -> *mut u8 {
        if size <= MAX_BLOCK
            && let Some(heap) = &mut *self.heap.borrow_mut()
        {
            let block = heap.allocate(size);
            if !block.is_null() {
                return block;
            }
        }
        // SAFETY: by the caller.
        unsafe { alloc(layout(size)) }
    }

    /// # Safety
    /// `block` came from `obtain` or `resize` with this size, and is no longer in use.
    unsafe fn give_back(&self, block: *mut u8, size: usize) {
        // SAFETY: by the caller.
        unsafe {
            match &mut *self.heap.borrow_mut() {
                Some(heap) if heap.owns(block) => heap.release(block),
                _ => dealloc(block, layout(size)),
            }
        }
    }

    /// # Safety
    /// As for `give_back`.
    unsafe fn resize(&self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: by the caller; the two blocks do not overlap.
        unsafe {
            if old > MAX_BLOCK && new > MAX_BLOCK {
                return realloc(block, layout(old), new);
            }
            let fresh = self.obtain(new);
            if !fresh.is_null() {
                ptr::copy_nonoverlapping(block, fresh, old.min(new));
                self.give_back(block, old);
            }
            fresh
        }
    }
}

/// The alignment of all blocks: Lua needs at most that of `double` and pointers.
const ALIGN: usize = 16;

/// # Safety
/// `size` is that of a block that exists or could.
unsafe fn layout(size: usize) -> Layout {
    // SAFETY: by the caller, a size that does not overflow when rounded up; the alignment is a power of two.
    unsafe { Layout::from_size_align_unchecked(size, ALIGN) }
}

/// Allocates, resizes or frees a block: the `lua_Alloc` of every state.
///
/// # Safety
/// `ud` points to the state's `Memory`; `block` is null or came from here with size `old`.
pub(super) unsafe extern "C" fn allocate(
    ud: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: by the contract of this function.
    unsafe {
        let memory = &*(ud as *const Memory);
        if new == 0 {
            if !block.is_null() {
                #[cfg(test)]
                memory.refusals.blocks.update(|blocks| blocks - 1);
                memory.give_back(block.cast(), old);
                memory.used.set(memory.used.get() - old);
            }
            return ptr::null_mut();
        }
        let old = if block.is_null() { 0 } else { old };
        let used = memory.used.get() - old + new;
        if new > old && memory.enforced.get() && (used > memory.ceiling.get() || memory.is_refused_by_test())
        {
            return ptr::null_mut();
        }
        let fresh = if block.is_null() { memory.obtain(new) } else { memory.resize(block.cast(), old, new) };
        if fresh.is_null() {
            handle_alloc_error(layout(new));
        }
        memory.used.set(used);
        #[cfg(test)]
        memory.refusals.blocks.update(|blocks| blocks + usize::from(block.is_null()));
        fresh.cast()
    }
}

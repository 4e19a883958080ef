//! The memory of a Lua state's small objects.
//!
//! Lua orders tables, functions and threads that are keys of a table by the low 32 bits of their addresses, so the
//! order of `pairs` over such a table depends on the allocator. This allocator returns the same low bits for the same
//! sequence of requests: it takes its memory page by page from a region that starts at a multiple of 4 GiB. (It is also
//! faster than a general one.)
//!
//! A page holds blocks of one size and has a list of its free blocks. A page without used blocks can be reassigned to
//! another size.

use std::ptr;

/// The largest block, in bytes. Larger objects (long strings, arrays) are never keys whose address matters.
pub(super) const MAX_BLOCK: usize = 512;

/// Block sizes are multiples of this, in bytes.
const UNIT: usize = 16;
const CLASSES: usize = MAX_BLOCK / UNIT;

const PAGE: usize = 64 << 10;

/// The system provides memory for pages in units of this many bytes.
const COMMIT: usize = 1 << 20;

/// The header of a page. The page's blocks follow it.
struct Page {
    /// The first free block that was used before. Each such block holds the address of the next.
    free: *mut u8,
    /// The first block that has never been used, and the end of the page.
    fresh: *mut u8,
    end: *mut u8,
    /// The number of blocks in use.
    used: usize,
    class: usize,
    /// The neighbours in a list: either the pages of this class that have free blocks, or the empty pages.
    next: *mut Page,
    previous: *mut Page,
}

/// The pages of one state.
pub(super) struct Heap {
    region: Region,
    /// For each block size, the pages that have free blocks.
    partial: [*mut Page; CLASSES],
    empty: *mut Page,
    /// The first page of the region that has never been used.
    untouched: usize,
}

fn class_of(size: usize) -> usize {
    (size - 1) / UNIT
}

impl Heap {
    /// Creates a heap of at most `limit` bytes. Returns `None` if the system cannot provide such a range of addresses.
    pub fn new(limit: usize) -> Option<Heap> {
        let region = Region::reserve(limit.next_multiple_of(COMMIT))?;
        Some(Heap {
            untouched: region.start,
            region,
            partial: [ptr::null_mut(); CLASSES],
            empty: ptr::null_mut(),
        })
    }

    /// Returns whether a block belongs to this heap.
    pub fn owns(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.region.start) < self.region.len
    }

    /// Allocates a block of `size` bytes, 1 to [`MAX_BLOCK`]. Returns null if the region is used up.
    pub fn allocate(&mut self, size: usize) -> *mut u8 {
        let class = class_of(size);
        let mut page = self.partial[class];
        if page.is_null() {
            page = self.page_for(class);
            if page.is_null() {
                return ptr::null_mut();
            }
        }
        // SAFETY: pages in a list are live and have a free or a fresh block.
        unsafe {
            let page_ref = &mut *page;
            let block = page_ref.free;
            let block = if block.is_null() {
                let fresh = page_ref.fresh;
                page_ref.fresh = fresh.add((class + 1) * UNIT);
                fresh
            } else {
                page_ref.free = *block.cast::<*mut u8>();
                block
            };
            page_ref.used += 1;
            if page_ref.free.is_null() && page_ref.is_spent() {
                self.unlink(page, class);
            }
            block
        }
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` came from `allocate` of this heap and is no longer in use.
    pub unsafe fn release(&mut self, block: *mut u8) {
        let page = (block as usize & !(PAGE - 1)) as *mut Page;
        // SAFETY: the head of the page that the block is in.
        unsafe {
            let page_ref = &mut *page;
            let was_full = page_ref.free.is_null() && page_ref.is_spent();
            *block.cast::<*mut u8>() = page_ref.free;
            page_ref.free = block;
            page_ref.used -= 1;
            if was_full {
                self.link(page, page_ref.class);
            }
            // The last page of a size is kept, so that repeatedly allocating and freeing one block does not cost a page
            // each time.
            if page_ref.used == 0 && !(page_ref.next.is_null() && page_ref.previous.is_null()) {
                self.unlink(page, page_ref.class);
                page_ref.next = self.empty;
                self.empty = page;
            }
        }
    }

    /// Returns an empty page for blocks of this class and adds it to the list, or returns null if there is none.
    fn page_for(&mut self, class: usize) -> *mut Page {
        let page = if !self.empty.is_null() {
            let page = self.empty;
            // SAFETY: pages in the list of empty ones are live.
            self.empty = unsafe { (*page).next };
            page
        } else {
            if !self.region.commit(self.untouched + PAGE) {
                return ptr::null_mut();
            }
            let page = self.untouched as *mut Page;
            self.untouched += PAGE;
            page
        };
        let start = page as usize + size_of::<Page>().next_multiple_of(UNIT);
        let size = (class + 1) * UNIT;
        let blocks = (page as usize + PAGE - start) / size;
        // SAFETY: the page is committed and nobody uses it.
        unsafe {
            page.write(Page {
                free: ptr::null_mut(),
                fresh: start as *mut u8,
                end: (start + blocks * size) as *mut u8,
                used: 0,
                class,
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
            });
            self.link(page, class);
        }
        page
    }

    /// # Safety
    /// `page` is live and in no list.
    unsafe fn link(&mut self, page: *mut Page, class: usize) {
        // SAFETY: by the caller; the pages of a list are live.
        unsafe {
            let next = self.partial[class];
            (*page).next = next;
            (*page).previous = ptr::null_mut();
            if !next.is_null() {
                (*next).previous = page;
            }
        }
        self.partial[class] = page;
    }

    /// # Safety
    /// `page` is in the list of its class.
    unsafe fn unlink(&mut self, page: *mut Page, class: usize) {
        // SAFETY: by the caller; the neighbours of a page are live.
        unsafe {
            let (next, previous) = ((*page).next, (*page).previous);
            if previous.is_null() {
                self.partial[class] = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            (*page).next = ptr::null_mut();
            (*page).previous = ptr::null_mut();
        }
    }
}

impl Page {
    /// Returns whether every block has been used at some time.
    fn is_spent(&self) -> bool {
        self.fresh == self.end
    }
}

/// A range of addresses that starts at a multiple of 4 GiB. Its memory is committed in steps.
struct Region {
    start: usize,
    len: usize,
    committed: usize,
}

#[cfg(unix)]
impl Region {
    const ALIGNMENT: usize = 4 << 30;

    fn reserve(len: usize) -> Option<Region> {
        let whole = len + Self::ALIGNMENT;
        // SAFETY: a fresh anonymous mapping without access, of which the parts beside the region are given back.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let mapped = libc::mmap(ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0);
            if mapped == libc::MAP_FAILED {
                return None;
            }
            let mapped = mapped as usize;
            let start = mapped.next_multiple_of(Self::ALIGNMENT);
            if start > mapped {
                libc::munmap(mapped as *mut libc::c_void, start - mapped);
            }
            let rest = mapped + whole - (start + len);
            if rest > 0 {
                libc::munmap((start + len) as *mut libc::c_void, rest);
            }
            Some(Region { start, len, committed: start })
        }
    }

    /// Makes the region usable up to the address `end`. Returns false if that is beyond the region, or if there is no
    /// memory.
    fn commit(&mut self, end: usize) -> bool {
        if end <= self.committed {
            return true;
        }
        if end > self.start + self.len {
            return false;
        }
        let size = (end - self.committed).next_multiple_of(COMMIT);
        // SAFETY: a part of the region's own mapping.
        let status = unsafe {
            libc::mprotect(self.committed as *mut libc::c_void, size, libc::PROT_READ | libc::PROT_WRITE)
        };
        if status == 0 {
            self.committed += size;
        }
        status == 0
    }
}

#[cfg(unix)]
impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the region's own mapping; the heap that it belongs to is gone.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}

#[cfg(not(unix))]
impl Region {
    /// Returns `None` on other platforms, where the general allocator serves all blocks.
    fn reserve(_: usize) -> Option<Region> {
        None
    }

    fn commit(&mut self, _: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_requests_get_the_same_addresses() {
        let mut heaps = [(); 2].map(|()| Heap::new(64 << 20).expect("a region"));
        let addresses = heaps.each_mut().map(|heap| {
            let mut live = Vec::new();
            let mut addresses = Vec::new();
            for i in 0..20_000usize {
                let block = heap.allocate(i * 31 % MAX_BLOCK + 1);
                addresses.push(block as usize as u32);
                live.push(block);
                if i % 3 == 0 {
                    let gone = live.swap_remove(i * 7 % live.len());
                    // SAFETY: a block of this heap, which `live` has just lost.
                    unsafe { heap.release(gone) };
                }
            }
            addresses
        });
        assert_eq!(addresses[0], addresses[1]);
    }

    #[test]
    fn blocks_do_not_overlap_and_belong_to_their_heap() {
        let mut heap = Heap::new(16 << 20).expect("a region");
        let mut blocks: Vec<(usize, usize)> = (0..5000)
            .map(|i| {
                let size = i % MAX_BLOCK + 1;
                let block = heap.allocate(size);
                assert!(heap.owns(block) && (block as usize).is_multiple_of(UNIT));
                (block as usize, size)
            })
            .collect();
        blocks.sort();
        assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let mut outside = 0u8;
        assert!(!heap.owns(&raw mut outside));
    }

    #[test]
    fn emptied_pages_serve_other_sizes() {
        let mut heap = Heap::new(2 << 20).expect("a region");
        for size in [16, 48, 512, 160] {
            let mut blocks = Vec::new();
            loop {
                let block = heap.allocate(size);
                if block.is_null() {
                    break;
                }
                blocks.push(block);
            }
            assert!(blocks.len() * size > 1 << 20, "{size}: {}", blocks.len());
            for block in blocks {
                // SAFETY: a block of this heap, released once.
                unsafe { heap.release(block) };
            }
        }
    }
}

//! Reserve memory for code that aborts the process if memory is refused.
//!
//! Libraries that draw and encode pictures cannot return an error when an allocation fails. A
//! program that must not be ended by them makes [`ReserveAllocator`] its global allocator, sets
//! memory aside while it can still be refused ([`Reserve::of`]), and marks the threads that call
//! such libraries ([`Reserve::serve_this_thread`]). An allocation that the system refuses to such a
//! thread is then served from the reserve. The program asks [`Reserve::was_used`] between two
//! pieces of work and ends with an error of its own if it was.
//!
//! Checking beforehand that memory can be had is not enough: between the check and the work another
//! thread may take it, and the system's allocator takes 64 MB of addresses for each thread that
//! begins to allocate.
//!
//! Other threads get requests of up to 128 KiB only, so that they reach the next place where they
//! look for errors.
//!
//! **Invariant:** a block lies in the reserve exactly if its address does, so any thread may free
//! it; the reserve stays as long as a block of it is in use.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    io,
    ptr::null_mut,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Largest request that is served to any thread.
const SMALL: usize = 128 << 10;

/// Alignment of the reserve, and the largest that it serves.
const ALIGN: usize = 4096;

/// The system's allocator, with the [`Reserve`] behind it.
///
/// ```
/// use nearfield_files::{Reserve, ReserveAllocator};
///
/// #[global_allocator]
/// static MEMORY: ReserveAllocator = ReserveAllocator;
///
/// let reserve = Reserve::of(1 << 20, "drawing")?;
/// Reserve::serve_this_thread();
/// // Libraries that cannot bear a refusal are called here.
/// assert!(!reserve.was_used());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReserveAllocator;

/// Memory set aside during the lifetime of this value. A process has one reserve, which all values
/// share.
#[derive(Debug)]
pub struct Reserve(());

/// Where the reserve is, as one word ([`Span::pack`]); 0 without one. Any thread that frees a block
/// reads it while another may make the reserve or give it back: the beginning of one reserve with
/// the end of another would claim blocks of the system.
static SPAN: AtomicU64 = AtomicU64::new(0);

/// The state of the reserve. Locked by the slow path only: the system has refused memory, or a
/// block of the reserve is freed.
static STATE: Mutex<State> = Mutex::new(State {
    owners: 0,
    used: 0,
    blocks: 0,
    was_used: false,
});

struct State {
    /// Values of [`Reserve`] that are alive.
    owners: usize,
    /// Bytes from the beginning that were handed out.
    used: usize,
    /// Blocks in use.
    blocks: usize,
    /// Whether a block was ever handed out.
    was_used: bool,
}

thread_local! {
    /// Whether requests of any size are served. Needs neither memory nor a destructor, so the
    /// allocator may read it at any time.
    static SERVED: Cell<bool> = const { Cell::new(false) };
}

impl Reserve {
    /// Sets `bytes` aside for `what`, which the error names. If memory is set aside already, it is
    /// shared, however much it is.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] with the bytes if the system refuses them.
    pub fn of(bytes: usize, what: &str) -> io::Result<Self> {
        let mut state = state();
        if Span::now().is_none() {
            let Some(span) = Span::allocate(bytes) else {
                drop(state);
                return Err(super::input::out_of_memory(bytes, what));
            };
            (state.used, state.was_used) = (0, false);
            SPAN.store(span.pack(), Ordering::Relaxed);
        }
        state.owners += 1;
        Ok(Self(()))
    }

    /// Lets all later requests of the calling thread be served from the reserve.
    pub fn serve_this_thread() {
        SERVED.set(true);
    }

    /// Returns true if memory was taken from the reserve since it was made.
    pub fn was_used(&self) -> bool {
        state().was_used
    }
}

impl Drop for Reserve {
    /// The memory goes back to the system if nothing is in use any more.
    fn drop(&mut self) {
        let mut state = state();
        state.owners -= 1;
        if state.owners > 0 || state.blocks > 0 {
            return;
        }
        if let Some(span) = Span::unpack(SPAN.swap(0, Ordering::Relaxed)) {
            // SAFETY: no block of it is in use, and no new one can be taken.
            unsafe { span.free() };
        }
    }
}

/// Whole pages of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    begin: usize,
    end: usize,
}

/// Bits of the number of pages in a packed [`Span`]; the other 36 are those of the first page.
const PAGES_BITS: u32 = 28;

impl Span {
    /// That of the reserve.
    fn now() -> Option<Self> {
        Self::unpack(SPAN.load(Ordering::Relaxed))
    }

    /// Memory of the system, `bytes` rounded up to pages; None if it is refused, or if its address
    /// cannot be packed.
    fn allocate(bytes: usize) -> Option<Self> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let begin = unsafe { System.alloc(layout) };
        if begin.is_null() {
            return None;
        }
        let begin = begin.expose_provenance();
        let end = begin + bytes;
        let span = Self { begin, end };
        if Self::unpack(span.pack()) == Some(span) {
            return Some(span);
        }
        // SAFETY: nobody knows of it.
        unsafe { span.free() };
        None
    }

    /// Gives the memory back to the system.
    ///
    /// # Safety
    /// It is from [`allocate`](Self::allocate), and nothing in it is used any more.
    unsafe fn free(self) {
        let begin = std::ptr::with_exposed_provenance_mut(self.begin);
        if let Ok(layout) = Layout::from_size_align(self.end - self.begin, ALIGN) {
            // SAFETY: guaranteed by the caller; it was allocated with this layout.
            unsafe { System.dealloc(begin, layout) };
        }
    }

    /// First page and number of pages in one word.
    fn pack(self) -> u64 {
        let pages = (self.end - self.begin) / ALIGN;
        ((self.begin / ALIGN) as u64) << PAGES_BITS | pages as u64
    }

    /// The unpacked span; None for 0.
    fn unpack(word: u64) -> Option<Self> {
        let pages = word & ((1 << PAGES_BITS) - 1);
        let begin = (word >> PAGES_BITS) as usize * ALIGN;
        let end = begin + pages as usize * ALIGN;
        (pages > 0).then_some(Self { begin, end })
    }
}

/// No code that could panic runs while the lock is held, so poison is ignored.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if an address lies in the reserve.
fn holds(block: *mut u8) -> bool {
    Span::now().is_some_and(|span| (span.begin..span.end).contains(&block.addr()))
}

/// A block of the reserve for a request that the system has refused; null if there is none, or if
/// the thread is not served.
#[cold]
fn take(wanted: Layout) -> *mut u8 {
    let served = SERVED.try_with(Cell::get).unwrap_or_default();
    if wanted.align() > ALIGN || !(served || wanted.size() <= SMALL) {
        return null_mut();
    }
    let mut state = state();
    // Read under the lock, under which it changes.
    let Some(span) = Span::now() else {
        return null_mut();
    };
    let first = (span.begin + state.used).next_multiple_of(wanted.align());
    if wanted.size() > span.end.saturating_sub(first) {
        return null_mut();
    }
    state.used = first - span.begin + wanted.size();
    state.blocks += 1;
    state.was_used = true;
    std::ptr::with_exposed_provenance_mut(first)
}

/// Takes a block back. Its bytes are handed out again if it was the last one, and all are when no
/// block is left.
#[cold]
fn give_back(block: *mut u8, layout: Layout) {
    let mut state = state();
    state.blocks -= 1;
    let begin = Span::now().map_or(0, |span| span.begin);
    let first = block.addr() - begin;
    if state.blocks == 0 {
        state.used = 0;
    } else if first + layout.size() == state.used {
        state.used = first;
    }
}

// SAFETY: blocks come from the system's allocator or from the reserve, where each lies behind the
// one before, and go back where they came from, which their address tells.
unsafe impl GlobalAlloc for ReserveAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { take(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = take(layout);
        if !block.is_null() {
            // SAFETY: the block has as many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if holds(block) {
            give_back(block, layout);
        } else {
            // SAFETY: guaranteed by the caller; it came from there.
            unsafe { System.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let own = holds(block);
        if !own {
            // SAFETY: guaranteed by the caller; it came from there.
            let larger = unsafe { System.realloc(block, layout, size) };
            if !larger.is_null() {
                return larger;
            }
        }
        // SAFETY: the caller guarantees that the size fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let to = if own {
            // SAFETY: the size is not 0, as the caller guarantees.
            unsafe { self.alloc(wanted) }
        } else {
            take(wanted)
        };
        if !to.is_null() {
            // SAFETY: both blocks have this many bytes, and the old one is not used again.
            unsafe {
                to.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A process has one reserve.
    static ALONE: Mutex<()> = Mutex::new(());

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 64).unwrap()
    }

    /// Blocks and bytes in use.
    fn in_use() -> (usize, usize) {
        let state = state();
        (state.blocks, state.used)
    }

    #[test]
    fn spans_are_packed_to_the_page() {
        let begin = 0x7fff_ffff_f000;
        for pages in [1, 30_000, (1 << PAGES_BITS) - 1] {
            let end = begin + pages * ALIGN;
            let span = Span { begin, end };
            assert_eq!(Span::unpack(span.pack()), Some(span));
        }
        assert_eq!(Span::unpack(0), None);
    }

    #[test]
    fn marked_threads_are_served_and_others_get_small_requests() {
        let _alone = ALONE.lock();
        assert!(take(layout(64)).is_null(), "without a reserve");
        let reserve = Reserve::of(4 << 20, "a test").unwrap();
        assert!(take(layout(SMALL + 1)).is_null() && !reserve.was_used());
        let small = take(layout(SMALL));
        assert!(holds(small) && reserve.was_used());
        let served = thread::spawn(|| {
            Reserve::serve_this_thread();
            assert!(take(layout(4 << 20)).is_null(), "more than there is");
            take(layout(1 << 20)).expose_provenance()
        });
        let large: *mut u8 = std::ptr::with_exposed_provenance_mut(served.join().unwrap());
        assert!(holds(large) && large.addr() >= small.addr() + SMALL);
        // SAFETY: both blocks are in use until here, with these layouts.
        unsafe {
            large.write_bytes(7, 1 << 20);
            ReserveAllocator.dealloc(small, layout(SMALL));
            let moved = ReserveAllocator.realloc(large, layout(1 << 20), 2 << 20);
            assert_eq!((*moved, *moved.add((1 << 20) - 1)), (7, 7));
            assert!(!holds(moved), "the system has memory again");
            ReserveAllocator.dealloc(moved, layout(2 << 20));
        }
        assert_eq!(in_use(), (0, 0));
    }

    #[test]
    fn a_reserve_stays_as_long_as_a_block_of_it() {
        let _alone = ALONE.lock();
        let reserve = Reserve::of(1 << 20, "a test").unwrap();
        let block = take(layout(4096));
        drop(reserve);
        assert!(holds(block));
        let again = Reserve::of(1, "a test").unwrap();
        // SAFETY: the block is in use until here.
        unsafe { ReserveAllocator.dealloc(block, layout(4096)) };
        drop(again);
        assert!(!holds(block) && Span::now().is_none());
    }

    #[test]
    fn blocks_of_the_system_stay_its_own_while_reserves_come_and_go() {
        let _alone = ALONE.lock();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        // SAFETY: the block has this layout, and is freed once.
                        unsafe {
                            let block = ReserveAllocator.alloc(layout(512));
                            ReserveAllocator.dealloc(block, layout(512));
                        }
                    }
                });
            }
            for _ in 0..2_000 {
                drop(Reserve::of(1 << 16, "a test").unwrap());
            }
        });
        assert_eq!(in_use(), (0, 0));
    }
}

//! Memory set aside for code that ends the process where memory is refused.
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
        atomic::{AtomicUsize, Ordering},
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

/// Memory that is set aside for as long as this lives. A process has one: further ones share it.
#[derive(Debug)]
pub struct Reserve(());

/// First address of the reserve, 0 without one, and the address behind it.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// What is known about the reserve. Taken by the slow path only: the system has refused memory, or
/// a block of the reserve is freed.
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
        if BEGIN.load(Ordering::Relaxed) == 0 {
            let begin = match layout(bytes) {
                // SAFETY: the layout has a size that is not 0.
                Some(layout) => unsafe { System.alloc(layout) },
                None => null_mut(),
            };
            if begin.is_null() {
                drop(state);
                return Err(super::input::out_of_memory(bytes, what));
            }
            (state.used, state.was_used) = (0, false);
            BEGIN.store(begin.expose_provenance(), Ordering::Relaxed);
            END.store(begin.expose_provenance() + bytes, Ordering::Relaxed);
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
        let begin = BEGIN.swap(0, Ordering::Relaxed);
        let bytes = END.swap(0, Ordering::Relaxed) - begin;
        if let Some(layout) = layout(bytes) {
            // SAFETY: it was allocated by `of` with this layout, and no block of it is in use.
            unsafe { System.dealloc(std::ptr::with_exposed_provenance_mut(begin), layout) };
        }
    }
}

/// The layout of a reserve of `bytes` bytes.
fn layout(bytes: usize) -> Option<Layout> {
    (bytes > 0)
        .then(|| Layout::from_size_align(bytes, ALIGN).ok())
        .flatten()
}

/// No code that could panic runs while the lock is held, so poison is ignored.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if an address lies in the reserve.
fn holds(block: *mut u8) -> bool {
    let address = block.addr();
    BEGIN.load(Ordering::Relaxed) <= address && address < END.load(Ordering::Relaxed)
}

/// A block of the reserve for a request that the system has refused; null if there is none, or if
/// the thread is not served.
#[cold]
fn take(wanted: Layout) -> *mut u8 {
    let served = SERVED.try_with(Cell::get).unwrap_or_default();
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin == 0 || wanted.align() > ALIGN || !(served || wanted.size() <= SMALL) {
        return null_mut();
    }
    let mut state = state();
    let (begin, end) = (BEGIN.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    let first = (begin + state.used).next_multiple_of(wanted.align());
    // The reserve may have gone back since.
    if begin == 0 || wanted.size() > end.saturating_sub(first) {
        return null_mut();
    }
    state.used = first - begin + wanted.size();
    state.blocks += 1;
    state.was_used = true;
    std::ptr::with_exposed_provenance_mut(first)
}

/// Takes a block back. Its bytes are handed out again if it was the last one, and all are when no
/// block is left.
#[cold]
fn give_back(block: *mut u8, layout: Layout) {
    let mut state = state();
    let first = block.addr() - BEGIN.load(Ordering::Relaxed);
    state.blocks -= 1;
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
            // SAFETY: both blocks have so many bytes, and the old one is not used again.
            unsafe {
                to.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        to
    }
}

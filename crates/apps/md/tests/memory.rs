//! The text and checkpoint readers take at most four times the memory of what they hand over, and
//! 64 MB, beside the file itself: what a file announces is not believed.

use nearfield_md::{Checkpoint, FieldFile, read_nist};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The system's allocator, with the bytes that are taken now and were taken at most.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is handed on to the system's allocator; what is counted has no influence on
// it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's
        // allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer comes from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn peak<T>(read: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let given = read();
    (given, PEAK.load(Relaxed).saturating_sub(before))
}

#[test]
fn readers_stay_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let length = 24 << 20;
    let lines = format!("1 1 1\n{}\n{}", 1u64 << 40, "1\n".repeat(length / 2));
    let words = format!("1 1 1\n1\n{}\n", "1 ".repeat(length / 2));
    for text in [&lines, &words] {
        std::fs::write(&path, text).unwrap();
        let (found, peak_of_atoms) = peak(|| read_nist(&path).is_err());
        assert!(
            found && peak_of_atoms <= text.len() + (64 << 20),
            "{peak_of_atoms}"
        );
        let (found, peak_of_field) = peak(|| FieldFile::read(&path).is_err());
        assert!(
            found && peak_of_field <= text.len() + (64 << 20),
            "{peak_of_field}"
        );
    }
    let mut bytes = b"nearfield-md checkpoint 1\n".to_vec();
    bytes.extend([0xff; 16]);
    bytes.resize(bytes.len() + 1000, 0);
    std::fs::write(&path, &bytes).unwrap();
    let (found, peak) = peak(|| Checkpoint::read(&path).is_err());
    assert!(found && peak <= 64 << 20, "{peak}");
}

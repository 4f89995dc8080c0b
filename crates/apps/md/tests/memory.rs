//! The text and checkpoint readers take at most four times the memory of what they hand over, and
//! 64 MB, beside the file itself: what a file announces is not believed.

use nearfield_md::{Checkpoint, FieldFile, read_nist};
use nearfield_testkit::memory::Counting;

#[global_allocator]
static MEMORY: Counting = Counting::new();

#[test]
fn readers_stay_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let length = 24 << 20;
    let lines = format!("1 1 1\n{}\n{}", 1u64 << 40, "1\n".repeat(length / 2));
    let words = format!("1 1 1\n1\n{}\n", "1 ".repeat(length / 2));
    for text in [&lines, &words] {
        std::fs::write(&path, text).unwrap();
        let (found, peak_of_atoms) = MEMORY.peak(|| read_nist(&path).is_err());
        assert!(
            found && peak_of_atoms <= text.len() + (64 << 20),
            "{peak_of_atoms}"
        );
        let (found, peak_of_field) = MEMORY.peak(|| FieldFile::read(&path).is_err());
        assert!(
            found && peak_of_field <= text.len() + (64 << 20),
            "{peak_of_field}"
        );
    }
    let mut bytes = b"nearfield-md checkpoint 1\n".to_vec();
    bytes.extend([0xff; 16]);
    bytes.resize(bytes.len() + 1000, 0);
    std::fs::write(&path, &bytes).unwrap();
    let (found, peak) = MEMORY.peak(|| Checkpoint::read(&path).is_err());
    assert!(found && peak <= 64 << 20, "{peak}");
}

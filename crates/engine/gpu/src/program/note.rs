//! A short text about this machine, kept in the [cache](super::cache) beside the code.
//!
//! A note is an entry of the cache like any other: it is checked for damage, it appears complete or
//! not at all, and it is read only from folders that no other user can write to. Its key covers its
//! name, the driver, the card, and what the caller adds, so a note of another machine or of another
//! driver counts as absent.

use super::{
    cache::{Cache, Entry},
    text::{Key, Program},
};
use crate::{
    driver::{DeviceInfo, release},
    version::{Arch, Version},
};
use std::io;

/// Longest text, in bytes.
const MAX_BYTES: usize = 1 << 16;

/// A note, which may not have been written yet.
///
/// ```no_run
/// use nearfield_gpu::{Cache, Note};
///
/// let gpu = nearfield_gpu::GpuBackend::new(0)?;
/// if let Some(cache) = Cache::from_env() {
///     let note = Note::new(cache, "colours", gpu.device(), "16 threads");
///     note.write("green").expect("the cache can be written");
///     assert_eq!(note.read().as_deref(), Some("green"));
/// }
/// # Ok::<(), nearfield_gpu::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Note {
    cache: Cache,
    name: String,
    arch: Arch,
    key: Key,
}

impl Note {
    /// The note of this name about a GPU under its driver, and about what `machine` tells of the
    /// rest.
    pub fn new(cache: Cache, name: &str, gpu: &DeviceInfo, machine: &str) -> Self {
        let driver = release().unwrap_or_default();
        let about = format!("{driver}\n{}\n{machine}", gpu.name);
        Self {
            cache,
            name: name.to_owned(),
            arch: gpu.arch,
            key: Program::new(name, about).key(gpu.arch),
        }
    }

    /// Its text; `None` where it is absent, damaged, too long or not trusted, which is a warning
    /// of `tracing`.
    pub fn read(&self) -> Option<String> {
        let entry = self.cache.read(&self.name, self.arch, &self.key)?;
        let text = String::from_utf8(entry.code).ok();
        let text = text.filter(|text| text.len() <= MAX_BYTES);
        if text.is_none() {
            let path = self.cache.path(&self.name, self.arch, &self.key);
            tracing::warn!(path = %path.display(), "a note in the cache is no text");
        }
        text
    }

    /// Writes it, or replaces it.
    ///
    /// # Errors
    /// As [`Cache::write`], and [`io::ErrorKind::InvalidInput`] for more than 64 KiB.
    pub fn write(&self, text: &str) -> io::Result<()> {
        if text.len() > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a note has at most {MAX_BYTES} bytes, this one {}",
                    text.len()
                ),
            ));
        }
        let entry = Entry {
            code: text.as_bytes().to_vec(),
            compiler: Version::new(0, 0),
        };
        self.cache.write(&self.name, self.arch, &self.key, &entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn gpu(name: &str) -> DeviceInfo {
        DeviceInfo {
            index: 0,
            name: name.to_owned(),
            arch: Arch::new(90),
            multiprocessors: 1,
            memory: 1,
            pci: String::new(),
        }
    }

    #[test]
    fn a_note_belongs_to_its_machine_and_damage_makes_it_absent() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().join("new"));
        let note = |name: &str, card: &str, machine: &str| {
            Note::new(cache.clone(), name, &gpu(card), machine)
        };
        let one = note("rates", "card", "8 threads");
        assert_eq!(one.read(), None);
        one.write("a text").unwrap();
        one.write("another text").unwrap();
        assert_eq!(one.read().as_deref(), Some("another text"));
        for other in [
            note("other", "card", "8 threads"),
            note("rates", "other card", "8 threads"),
            note("rates", "card", "16 threads"),
        ] {
            assert_eq!(other.read(), None);
        }
        let path = cache.path("rates", one.arch, &one.key);
        let whole = fs::read(&path).unwrap();
        for at in [0, 10, 60, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(one.read(), None, "byte {at} changed");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(one.read(), None, "cut to {at} bytes");
        }
        let bytes = Entry {
            code: vec![0xff; 8],
            compiler: Version::new(0, 0),
        };
        cache.write("rates", one.arch, &one.key, &bytes).unwrap();
        assert_eq!(one.read(), None, "no text");
        assert!(one.write(&"x".repeat(MAX_BYTES + 1)).is_err());
        one.write("").unwrap();
        assert_eq!(one.read().as_deref(), Some(""));
        // A folder that cannot be made.
        let file = place.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let nowhere = Note::new(Cache::at(file), "rates", &gpu("card"), "");
        assert!(nowhere.write("text").is_err());
        assert_eq!(nowhere.read(), None);
    }
}

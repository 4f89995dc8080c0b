//! Temporary files of runs that were killed.
//!
//! A temporary file is locked as long as its process writes it, so one that can be locked is left
//! over, whatever became of the process.

use crate::new_file::{RANDOM, SUFFIX};
use std::{fs, fs::File, path::Path};

/// The final name of a file with a temporary name.
fn becomes(temporary: &str) -> Option<&str> {
    let name = temporary.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let (name, random) = name.split_at_checked(name.len().checked_sub(RANDOM)?)?;
    let at_random = random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (at_random && !name.is_empty()).then_some(name)
}

/// Removes files that would have become those for which `writes` is true, and that no process is
/// writing.
pub(crate) fn remove_leftovers(folder: &Path, writes: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.to_str().and_then(becomes).is_some_and(&writes);
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if free {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{NewFile, Plan};
    use std::{fs, io::Write};

    #[test]
    fn leftovers_are_removed_and_files_in_the_making_are_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let left = [".own.gifAbC123.tmp", ".state123456.tmp"];
        let kept = [
            ".other.gifAbC123.tmp",
            ".own.gifAb.tmp",
            ".own.gifAb-123.tmp",
            "own.gifAbC123.tmp",
            ".own.gif.tmp",
            ".AbC123.tmp",
        ];
        (left.iter().chain(&kept)).for_each(|name| fs::write(at(name), "").unwrap());
        let mut making = NewFile::create(at("own.gif")).unwrap();
        making.write_all(b"whole").unwrap();
        let mut plan = Plan::default();
        plan.write("--checkpoint", at("state"));
        plan.write_into("--output", place.path(), |name| name == "own.gif");
        plan.remove_leftovers();
        assert!(!left.iter().any(|name| at(name).exists()));
        assert!(kept.iter().all(|name| at(name).exists()));
        making.finish().unwrap();
        assert_eq!(fs::read(at("own.gif")).unwrap(), b"whole");
    }
}

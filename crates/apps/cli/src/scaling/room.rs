//! The memory limit, and estimates of the memory that each work needs.

use super::sample::SkippedWork;
use crate::bench::Work;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes per point without the entries of lists, slightly more than measured: the cloud twice, the
/// engine while it sorts, fields and results.
fn per_point(work: Work) -> u64 {
    match work {
        Work::Force => 192,
        Work::Lists | Work::Geometry | Work::Density | Work::Count => 104,
    }
}

/// Memory that may be used, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room(u64);

impl Room {
    /// `mebibytes`, or half of the memory available to this process.
    pub(super) fn of(mebibytes: Option<u64>) -> Self {
        Self(mebibytes.map_or_else(
            || available() / 2,
            |mebibytes| mebibytes.saturating_mul(1 << 20),
        ))
    }

    /// Bytes that this work needs for `points` points, the entries of lists left out.
    pub(super) fn points(work: Work, points: usize) -> u64 {
        per_point(work).saturating_mul(points as u64)
    }

    /// Bytes for lists of this many points and pairs: the points, the entries, and an eighth more
    /// for unused storage.
    pub(super) fn lists(work: Work, points: usize, pairs: u64) -> u64 {
        let numbers = if work == Work::Geometry { 8 } else { 1 };
        let entries = pairs.saturating_mul(numbers * size_of::<u32>() as u64);
        Self::points(work, points)
            .saturating_add(entries)
            .saturating_add(entries / 8)
    }

    /// Returns true if `bytes` bytes may be used.
    pub(super) fn fits(self, bytes: u64) -> bool {
        bytes <= self.0
    }

    /// Returns true if `points` points may be made for this work, the entries of lists left out.
    pub(super) fn fits_points(self, work: Work, points: usize) -> bool {
        self.fits(Self::points(work, points))
    }

    /// The note that work was left out.
    pub(super) fn skip(self, points: usize, work: Work, needed: u64) -> SkippedWork {
        SkippedWork {
            points,
            work,
            bytes_needed: needed,
            bytes_allowed: self.0,
        }
    }
}

/// Bytes available to this process now; no limit if the system does not report it.
fn available() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    let refresh = RefreshKind::nothing().with_memory(memory);
    let Ok(system) = System::new_with_specifics(refresh) else {
        return u64::MAX;
    };
    let free = match system.available_memory() {
        0 => u64::MAX,
        bytes => bytes,
    };
    // A container may allow less than the machine has. Its own figure of free memory leaves out
    // files that are kept in memory only until it is needed.
    system.cgroup_limits().map_or(free, |limits| {
        free.min(limits.total_memory.saturating_sub(limits.rss))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_available_may_be_used() {
        let Room(bytes) = Room::of(None);
        assert!(bytes > 1 << 20, "{bytes} bytes");
        let Room(asked) = Room::of(Some(3));
        assert_eq!(asked, 3 << 20);
    }

    #[test]
    fn forces_need_the_most_beside_lists() {
        let needed = [Work::Lists, Work::Density, Work::Count, Work::Force]
            .map(|work| Room::points(work, 1_000));
        assert!(needed[..3].iter().all(|&bytes| bytes < needed[3]));
        assert_eq!(Room::points(Work::Force, usize::MAX), u64::MAX);
    }

    #[test]
    fn lists_need_four_bytes_a_pair_and_an_eighth() {
        let beside = Room::points(Work::Lists, 10);
        assert_eq!(Room::lists(Work::Lists, 10, 800) - beside, 3_600);
        assert_eq!(Room::lists(Work::Geometry, 1, u64::MAX), u64::MAX);
        let room = Room::of(Some(1));
        assert!(room.fits(1 << 20) && !room.fits((1 << 20) + 1));
        assert!(room.fits_points(Work::Count, 10_000) && !room.fits_points(Work::Force, 10_000));
    }
}

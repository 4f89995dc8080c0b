//! NumPy archives (`.npz`): the array of N×3 or N×2 that holds the points.
//!
//! That is the only array of such a shape, or the first of these names among several. Its file is
//! unpacked once to check it, and again to read it, so a damaged archive takes no memory.
//! **Invariant others rely on:** which array is read does not depend on the order in the archive.

use super::{
    npy,
    zip::{Entries, Entry},
};
use crate::{
    cloud::PointCloud,
    error::{Fault, Parsed, Place, quoted},
};
use nearfield_grid::memory::{make_room_for_one, with_room};
use std::io::Read;

/// Names of arrays of points, the likeliest first.
const NAMES: [&str; 8] = [
    "positions",
    "position",
    "points",
    "coordinates",
    "coords",
    "pos",
    "xyz",
    "x",
];
/// Bytes of an array's file in which its header has to be.
const HEADER: u64 = 1 << 10;
/// Maximum number of names in a message.
const SHOWN: usize = 8;

/// Reads the points.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let mut entries = Entries::of(bytes)?;
    let mut best: Option<(usize, Entry<'_>)> = None;
    let (mut candidates, mut others) = (Listed::default(), Listed::default());
    while let Some(entry) = entries.next()? {
        let name = entry.name.strip_suffix(b".npy").unwrap_or(entry.name);
        if !is_candidate(&entry) {
            others.add(name)?;
            continue;
        }
        candidates.add(name)?;
        let rank = NAMES.iter().position(|known| known.as_bytes() == name);
        let rank = rank.unwrap_or(NAMES.len());
        if best.is_none_or(|(before, _)| rank < before) {
            best = Some((rank, entry));
        }
    }
    let (rank, entry) = best.ok_or_else(|| {
        let message =
            format!("the archive holds no array of N×3 or N×2 real numbers; it holds {others}");
        Fault::unsupported(Place::Whole, message)
    })?;
    if rank == NAMES.len() && candidates.count > 1 {
        let message = format!(
            "{} arrays may be the points: {candidates}; call one of them {}",
            candidates.count, NAMES[0]
        );
        return Err(Fault::unsupported(Place::Whole, message));
    }
    entry.check()?;
    let array = unpack(&entry)?;
    let chosen = entry.name.strip_suffix(b".npy").unwrap_or(entry.name);
    let names = candidates.names.into_iter().chain(others.names);
    Ok(PointCloud {
        unread: names.filter(|name| name.as_bytes() != chosen).collect(),
        ..npy::read(&array)?
    })
}

/// The names of arrays, as many as a message shows, and how many there are.
#[derive(Default)]
struct Listed {
    names: Vec<String>,
    count: usize,
}

impl Listed {
    fn add(&mut self, name: &[u8]) -> Parsed<()> {
        self.count += 1;
        if self.count <= SHOWN {
            make_room_for_one(&mut self.names, "names of arrays")?;
            self.names.push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.count == 0 {
            return f.write_str("none at all");
        }
        let names: Vec<String> = self
            .names
            .iter()
            .map(|name| quoted(name.as_bytes()))
            .collect();
        f.write_str(&names.join(", "))?;
        match self.count - self.names.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Whether the header at the beginning of a file is that of points.
fn is_candidate(entry: &Entry<'_>) -> bool {
    let mut begin = Vec::new();
    let read = entry.contents().take(HEADER).read_to_end(&mut begin);
    read.is_ok() && npy::holds_points(&begin)
}

/// The contents of a file that has been checked.
fn unpack(entry: &Entry<'_>) -> Parsed<Vec<u8>> {
    let mut array = with_room(entry.size(), "an array of a file")?;
    let read = entry.contents().read_to_end(&mut array);
    read.map_err(|error| Fault::io("cannot unpack", &error))?;
    Ok(array)
}

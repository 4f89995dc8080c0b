//! The contents of a checkpoint other than particles: the next frame, the flags of the run, and the
//! tables so far.
//!
//! Numbers, little endian: the next frame, the frames of the run and a checksum of its scene (3 ×
//! u64); how many numbers the notes of the journal are and how many the rows of the probes (2 ×
//! u64); the end of the run, seconds, then these (f64). Nothing follows.

use std::path::Path;

use nearfield_files::{Run, checksum};
use nearfield_sph::Checkpoint;

use crate::journal::{Journal, NUMBERS};
use crate::names::with_files;
use crate::probes::Readings;
use crate::scene::Scene;
use crate::{Error, ErrorKind};

/// The flags that decide when frames and records are taken, and of what. A resumed run keeps its
/// flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flags {
    frames: u64,
    /// Seconds.
    end: f64,
    /// Of the scene, by which two are told apart.
    checksum: u64,
}

impl Flags {
    /// The flags of a run of `scene` with this number of frames that ends after `end` seconds.
    pub(crate) fn of(scene: &Scene, frames: usize, end: f64) -> Self {
        Self {
            frames: frames as u64,
            end,
            // The text has all numbers of the scene in full.
            checksum: checksum(format!("{scene:?}").as_bytes()),
        }
    }

    /// The run with these flags and particles at this spacing, for its folder.
    pub(crate) fn run(self, spacing: f64, pieces: bool) -> Run {
        let run = Run::new("dam-break")
            .set("scene", format_args!("{:016x}", self.checksum))
            .set("spacing", spacing)
            .set("end", self.end)
            .set("frames", self.frames)
            .set("pieces", pieces);
        with_files(run, self.frames as usize, pieces)
    }

    /// The difference to the flags of a checkpoint whose next frame is `next`.
    fn differ(&self, checkpoint: &Self, next: u64) -> Option<String> {
        if self.checksum != checkpoint.checksum {
            return Some("it belongs to another scene".to_owned());
        }
        if self.end != checkpoint.end {
            return Some(format!(
                "its run ends after {} s, this one after {} s",
                checkpoint.end, self.end
            ));
        }
        if self.frames != checkpoint.frames || !(1..=self.frames).contains(&next) {
            return Some(format!(
                "its run has {} frames and goes on with number {next}, this one has {}",
                checkpoint.frames, self.frames
            ));
        }
        None
    }
}

/// The bytes of a run whose next frame is `next`.
pub(crate) fn of(
    next: usize,
    flags: Flags,
    journal: &Journal,
    readings: Option<&Readings>,
) -> Vec<u8> {
    let notes = journal.numbers();
    let rows = readings.map_or(&[][..], Readings::rows);
    let rows: Vec<f64> = rows.iter().flatten().copied().collect();
    let counts = [
        next as u64,
        flags.frames,
        flags.checksum,
        notes.len() as u64,
        rows.len() as u64,
    ];
    let mut bytes = bytemuck::cast_slice(&counts).to_vec();
    bytes.extend_from_slice(&flags.end.to_le_bytes());
    bytes.extend_from_slice(bytemuck::cast_slice(&notes));
    bytes.extend_from_slice(bytemuck::cast_slice(&rows));
    bytes
}

/// Takes the tables of a checkpoint of a run with these flags, and returns the next frame.
///
/// # Errors
/// If they belong to another run.
pub(crate) fn restore(
    path: &Path,
    checkpoint: &Checkpoint,
    flags: Flags,
    journal: &mut Journal,
    readings: &mut Option<Readings>,
) -> Result<usize, Error> {
    take(checkpoint.notes(), flags, journal, readings).map_err(|reason| {
        let path = path.to_owned();
        ErrorKind::Restart { path, reason }.into()
    })
}

/// As [`restore`], from the bytes; the error is the difference.
fn take(
    bytes: &[u8],
    flags: Flags,
    journal: &mut Journal,
    readings: &mut Option<Readings>,
) -> Result<usize, String> {
    let (words, rest) = bytes.as_chunks::<8>();
    let Some((&[next, frames, checksum, notes, rows, end], numbers)) = words.split_first_chunk()
    else {
        return Err("it is not a checkpoint of a dam break".to_owned());
    };
    let [next, frames, checksum, notes, rows] =
        [next, frames, checksum, notes, rows].map(u64::from_le_bytes);
    let found = Flags {
        frames,
        end: f64::from_le_bytes(end),
        checksum,
    };
    let numbers: Vec<f64> = numbers
        .iter()
        .map(|word| f64::from_le_bytes(*word))
        .collect();
    let fits = notes.checked_add(rows) == Some(numbers.len() as u64) && rest.is_empty();
    if !fits {
        return Err("it is not a checkpoint of a dam break".to_owned());
    }
    if let Some(reason) = flags.differ(&found, next) {
        return Err(reason);
    }
    let (notes, rows) = numbers.split_at(notes as usize);
    let width = readings.as_ref().map_or(1, Readings::width);
    if notes.len() % NUMBERS != 0 || rows.len() % width != 0 {
        return Err("its tables belong to another scene".to_owned());
    }
    journal.restore(notes);
    match readings {
        Some(readings) => readings.restore(rows.chunks_exact(width).map(<[f64]>::to_vec).collect()),
        None if rows.is_empty() => {}
        None => return Err("it belongs to a scene with probes".to_owned()),
    }
    Ok(next as usize)
}

#[cfg(test)]
mod tests {
    use nearfield_sph::Dimensions;

    use super::*;

    #[test]
    fn other_flags_and_tables_are_refused_and_no_bytes_do_harm() {
        let scene = Scene::column(Dimensions::Two);
        let flags = Flags::of(&scene, 4, 0.5);
        let mut journal = Journal::new(&scene, 0.5);
        journal.restore(&[0.25; 2 * NUMBERS]);
        let bytes = of(2, flags, &journal, None);
        let take = |bytes: &[u8], flags| {
            let mut journal = Journal::new(&scene, 0.5);
            take(bytes, flags, &mut journal, &mut None).map(|next| (next, journal.numbers().len()))
        };
        assert_eq!(take(&bytes, flags), Ok((2, 2 * NUMBERS)));
        let space = Scene::column(Dimensions::Three);
        for (other, culprit) in [
            (Flags::of(&scene, 5, 0.5), "4 frames"),
            (Flags::of(&scene, 4, 0.6), "0.5 s"),
            (Flags::of(&space, 4, 0.5), "another scene"),
        ] {
            let reason = take(&bytes, other).unwrap_err();
            assert!(reason.contains(culprit), "{reason}");
        }
        for next in [0, 5, u64::MAX] {
            let mut bytes = bytes.clone();
            bytes[..8].copy_from_slice(&next.to_le_bytes());
            assert!(take(&bytes, flags).is_err(), "{next} is next");
        }
        for len in 0..bytes.len() {
            assert!(take(&bytes[..len], flags).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = byte;
                // Numbers of the tables may be any; all others are checked.
                let taken = take(&bytes, flags);
                assert!(taken.is_err() || taken == Ok((2, 2 * NUMBERS)));
            }
        }
    }
}

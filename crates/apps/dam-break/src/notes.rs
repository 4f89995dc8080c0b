//! What a checkpoint holds beside the particles: the next frame, and the tables so far.
//!
//! Numbers, little endian: the next frame (u64); how many numbers the notes of the journal are and
//! how many the rows of the probes (2 × u64); then these (f64). Nothing follows.

use std::path::Path;

use nearfield_sph::Checkpoint;

use crate::journal::{Journal, NUMBERS};
use crate::probes::Readings;
use crate::{Error, ErrorKind};

/// The bytes of a run whose next frame is `next`.
pub(crate) fn of(next: usize, journal: &Journal, readings: Option<&Readings>) -> Vec<u8> {
    let notes = journal.numbers();
    let rows = readings.map_or(&[][..], Readings::rows);
    let rows: Vec<f64> = rows.iter().flatten().copied().collect();
    let counts = [next, notes.len(), rows.len()].map(|count| count as u64);
    let mut bytes = bytemuck::cast_slice(&counts).to_vec();
    bytes.extend_from_slice(bytemuck::cast_slice(&notes));
    bytes.extend_from_slice(bytemuck::cast_slice(&rows));
    bytes
}

/// Takes the tables of a checkpoint, and returns the next frame.
///
/// # Errors
/// When they are not those of such a run.
pub(crate) fn restore(
    path: &Path,
    checkpoint: &Checkpoint,
    journal: &mut Journal,
    readings: &mut Option<Readings>,
) -> Result<usize, Error> {
    let refuse = |reason: &str| ErrorKind::Restart {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let (words, rest) = checkpoint.notes().as_chunks::<8>();
    let Some((&[next, notes, rows], numbers)) = words.split_first_chunk() else {
        return Err(refuse("it is not that of a dam break").into());
    };
    let [next, notes, rows] = [next, notes, rows].map(|word| u64::from_le_bytes(word) as usize);
    let numbers: Vec<f64> = numbers
        .iter()
        .map(|word| f64::from_le_bytes(*word))
        .collect();
    let fits = notes.checked_add(rows) == Some(numbers.len()) && rest.is_empty();
    let width = readings.as_ref().map_or(1, Readings::width);
    if !fits || notes % NUMBERS != 0 || rows % width != 0 {
        return Err(refuse("its tables are not those of this scene").into());
    }
    let (notes, rows) = numbers.split_at(notes);
    journal.restore(notes);
    match readings {
        Some(readings) => readings.restore(rows.chunks_exact(width).map(<[f64]>::to_vec).collect()),
        None if rows.is_empty() => {}
        None => return Err(refuse("it is that of a scene with probes").into()),
    }
    Ok(next)
}

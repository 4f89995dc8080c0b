//! Checkpoints: everything that a run needs to continue with the same bits.
//!
//! A file begins with the eight bytes of [`MAGIC`], a version and the bytes of a number (4 or 8) as
//! `u32`; steps done and bodies as `u64`; time step and softening as `f64`; the integrator and the
//! bytes of the program's own notes as `u64`; then masses, positions and velocities, the notes, and
//! a checksum (FNV-1a, 64 bits) of everything before it. All is little-endian.

use crate::{Bodies, Error, ErrorKind, Integrator, Options, Simulation};
use bytemuck::{cast_slice, cast_slice_mut};
use nearfield::all_pairs::Real;
use nearfield_files::{NewFile, checksum};
use nearfield_grid::memory::{Shortage, collected, copied, filled, make_room};
use std::{io::Write, path::Path};

const MAGIC: &[u8; 8] = b"NF-BODY\n";
const VERSION: u32 = 2;
/// Bytes before the bodies.
const HEADER: usize = 64;

impl<T: Real> Simulation<T> {
    /// Writes a checkpoint with `notes`, bytes of the program's own. The file appears complete or
    /// not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Checkpoint`], and memory that is short.
    pub fn save(&self, path: impl AsRef<Path>, notes: &[u8]) -> Result<(), Error> {
        let (path, bytes) = (path.as_ref(), self.bytes(notes)?);
        let written = || {
            let mut file = NewFile::create(path)?;
            file.write_all(&bytes)?;
            file.sync()?;
            file.finish()
        };
        written().map_err(|error| refused(path, format!("it cannot be written: {error}")))
    }

    fn bytes(&self, notes: &[u8]) -> Result<Vec<u8>, Shortage> {
        let (bodies, options) = (self.bodies(), self.options());
        let mut bytes = Vec::new();
        let len = HEADER + bodies.len() * 7 * size_of::<T>() + notes.len() + size_of::<u64>();
        make_room(&mut bytes, len, "a checkpoint")?;
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((size_of::<T>() as u32).to_le_bytes());
        bytes.extend(self.steps().to_le_bytes());
        bytes.extend((bodies.len() as u64).to_le_bytes());
        bytes.extend(options.time_step.to_le_bytes());
        bytes.extend(options.softening.to_le_bytes());
        bytes.extend((options.integrator as u64).to_le_bytes());
        bytes.extend((notes.len() as u64).to_le_bytes());
        let arrays = [
            &bodies.masses[..],
            bodies.positions.as_flattened(),
            bodies.velocities.as_flattened(),
        ];
        for array in arrays {
            let begin = bytes.len();
            bytes.extend_from_slice(cast_slice(array));
            little_endian(&mut bytes[begin..], size_of::<T>());
        }
        bytes.extend(notes);
        bytes.extend(checksum(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Goes on from a checkpoint, and returns the notes in it. Its time step, softening and
    /// integrator replace those of `options`.
    ///
    /// # Errors
    /// [`ErrorKind::Checkpoint`] when the file cannot be read, is damaged or of another precision,
    /// and those of [`Simulation::new`].
    pub fn restore(path: impl AsRef<Path>, options: Options) -> Result<(Self, Vec<u8>), Error> {
        let path = path.as_ref();
        let bytes = nearfield_files::read(path)
            .map_err(|error| refused(path, format!("it cannot be read: {error}")))?;
        let found = parse::<T>(&bytes).map_err(|reason| refused(path, reason))?;
        let options = Options {
            time_step: found.time_step,
            softening: found.softening,
            integrator: found.integrator,
            ..options
        };
        Ok((Self::at(found.bodies, options, found.steps)?, found.notes))
    }
}

fn refused(path: &Path, reason: impl Into<String>) -> Error {
    let (path, reason) = (path.to_owned(), reason.into());
    ErrorKind::Checkpoint { path, reason }.into()
}

/// Content of a checkpoint.
struct Content<T> {
    bodies: Bodies<T>,
    steps: u64,
    time_step: f64,
    softening: f64,
    integrator: Integrator,
    notes: Vec<u8>,
}

fn parse<T: Real>(bytes: &[u8]) -> Result<Content<T>, String> {
    let Some((head, rest)) = bytes
        .split_at_checked(HEADER)
        .filter(|(head, _)| head.starts_with(MAGIC))
    else {
        return Err("it is not a checkpoint of bodies".to_owned());
    };
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| head[at + n]));
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| head[at + n]));
    if word(8) != VERSION {
        return Err(format!(
            "it is of version {} of the format, and this program reads version {VERSION}: go on \
             with the program that wrote it",
            word(8)
        ));
    }
    let size = size_of::<T>();
    if word(12) as usize != size {
        let precision = if word(12) == 4 { "f32" } else { "f64" };
        return Err(format!(
            "its bodies are in {precision}, but {} is asked for",
            T::NAME
        ));
    }
    let count = usize::try_from(long(24)).unwrap_or(usize::MAX);
    let needed = count.checked_mul(7 * size).and_then(|bytes| {
        bytes
            .checked_add(usize::try_from(long(56)).ok()?)?
            .checked_add(8)
    });
    if needed != Some(rest.len()) {
        let (found, bodies) = (bytes.len(), long(24));
        return Err(format!(
            "{found} bytes do not fit {bodies} bodies: it is truncated or damaged"
        ));
    }
    let (data, sum) = rest.split_at(rest.len() - 8);
    if sum != checksum(&bytes[..bytes.len() - 8]).to_le_bytes() {
        return Err("its checksum is wrong: it is damaged".to_owned());
    }
    let integrator = match long(48) {
        0 => Integrator::Leapfrog,
        1 => Integrator::SymplecticEuler,
        other => return Err(format!("it names the unknown integrator {other}")),
    };
    let (data, notes) = data.split_at(7 * count * size);
    let short = |shortage: Shortage| shortage.to_string();
    let what = "bodies of a checkpoint";
    let mut numbers = filled(7 * count, T::default(), what).map_err(short)?;
    let raw: &mut [u8] = cast_slice_mut(&mut numbers);
    raw.copy_from_slice(data);
    little_endian(raw, size);
    let vectors = |from: &[T]| {
        let vectors = from.chunks_exact(3).map(|v| [v[0], v[1], v[2]]);
        collected(vectors, what).map_err(short)
    };
    Ok(Content {
        bodies: Bodies {
            masses: copied(&numbers[..count], what).map_err(short)?,
            positions: vectors(&numbers[count..4 * count])?,
            velocities: vectors(&numbers[4 * count..])?,
        },
        steps: long(16),
        time_step: f64::from_bits(long(32)),
        softening: f64::from_bits(long(40)),
        integrator,
        notes: copied(notes, what).map_err(short)?,
    })
}

/// Turns numbers of this machine's byte order into little-endian ones, or back.
fn little_endian(bytes: &mut [u8], size: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

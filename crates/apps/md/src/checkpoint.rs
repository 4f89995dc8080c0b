//! Checkpoints: files from which a run continues.
//!
//! A file has the line `nearfield-md checkpoint 2`, then numbers, little endian: atoms, kinds,
//! steps, and bytes of the program's own notes (4 × u64), those bytes, time, energy and virial
//! (f64), the axes that are periodic (3 × u8) and the box vectors (9 × f64), whether there are
//! charges (u8), the mass of every kind (f64); then for all atoms positions (3 × f64), velocities
//! (3 × f64), forces (3 × f32), kinds (u32), numbers in the input (u32), and charges (f32) if there
//! are any. Nothing follows.

use crate::{Cell, Error, ErrorKind, Evaluation, System, system::check_types};
use nearfield_files::NewFile;
use nearfield_grid::memory::{Shortage, make_room, zeroed};
use std::{io::Write, path::Path};

const MAGIC: &[u8] = b"nearfield-md checkpoint 2\n";

/// A run at one moment; see [`Simulation::checkpoint`](crate::Simulation::checkpoint).
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub(crate) system: System,
    pub(crate) forces: Vec<[f32; 3]>,
    pub(crate) now: Evaluation,
    pub(crate) step: u64,
    pub(crate) time: f64,
    pub(crate) notes: Vec<u8>,
}

impl Checkpoint {
    /// The same with these notes, bytes of the program's own.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<u8>) -> Self {
        self.notes = notes;
        self
    }

    /// The notes that the program gave.
    pub fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// The atoms.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Steps since the start.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Writes the run; the file appears complete or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and refused memory; an existing file is then unchanged.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let bytes = self.bytes()?;
        let written = || {
            let mut file = NewFile::create(path)?;
            file.write_all(&bytes)?;
            file.sync()?;
            file.finish()
        };
        written().map_err(Error::io(path))
    }

    /// Reads a file of [`write`](Self::write).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and [`ErrorKind::File`] for a file that is another one, cut short, or
    /// whose numbers make no system.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = nearfield_files::read(path).map_err(Error::io(path))?;
        let refuse = |message: String| {
            let (path, place) = (path.to_owned(), "checkpoint".into());
            Error::from(ErrorKind::File {
                path,
                place,
                message,
            })
        };
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| refuse(nearfield_files::not_this_format(&bytes, MAGIC)))?;
        match parse(rest) {
            Ok(checkpoint) => checkpoint.map_err(|error| refuse(error.to_string())),
            Err(CheckpointFault::Memory(shortage)) => Err(shortage.into()),
            Err(CheckpointFault::Counts) => Err(refuse(format!(
                "{} bytes are not what its counts ask for",
                bytes.len()
            ))),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, Shortage> {
        let system = &self.system;
        let mut bytes = Vec::new();
        let per_atom = 6 * size_of::<f64>() + 6 * size_of::<u32>();
        let len = MAGIC.len()
            + 200
            + self.notes.len()
            + 8 * system.masses.len()
            + per_atom * system.len();
        make_room(&mut bytes, len, "a checkpoint")?;
        bytes.extend_from_slice(MAGIC);
        let counts = [system.len(), system.masses.len()].map(|count| count as u64);
        put(&mut bytes, &counts);
        put(&mut bytes, &[self.step, self.notes.len() as u64]);
        bytes.extend_from_slice(&self.notes);
        put(&mut bytes, &[self.time, self.now.energy, self.now.virial]);
        let vectors = system.cell.vectors();
        put(
            &mut bytes,
            &vectors.map(|vector| u8::from(vector.is_some())),
        );
        put(&mut bytes, &vectors.map(Option::unwrap_or_default));
        put(&mut bytes, &[u8::from(!system.charges.is_empty())]);
        put(&mut bytes, &system.masses);
        put(&mut bytes, &system.positions);
        put(&mut bytes, &system.velocities);
        put(&mut bytes, &self.forces);
        put(&mut bytes, &system.types);
        put(&mut bytes, &system.ids);
        put(&mut bytes, &system.charges);
        Ok(bytes)
    }
}

/// Appends the bytes of numbers, which are little-endian on all supported platforms.
fn put<T: bytemuck::NoUninit>(bytes: &mut Vec<u8>, values: &[T]) {
    bytes.extend_from_slice(bytemuck::cast_slice(values));
}

/// Why a file is not a usable checkpoint.
enum CheckpointFault {
    /// Numbers are missing or left over.
    Counts,
    Memory(Shortage),
}

impl From<Shortage> for CheckpointFault {
    fn from(shortage: Shortage) -> Self {
        Self::Memory(shortage)
    }
}

/// Takes `count` numbers from the front.
fn take<T: bytemuck::Pod>(rest: &mut &[u8], count: usize) -> Result<Vec<T>, CheckpointFault> {
    let len = count
        .checked_mul(size_of::<T>())
        .ok_or(CheckpointFault::Counts)?;
    let (front, behind) = rest.split_at_checked(len).ok_or(CheckpointFault::Counts)?;
    *rest = behind;
    // Allocates no more than the file holds.
    let mut values = zeroed(count, "atoms of a checkpoint")?;
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(front);
    Ok(values)
}

/// The checkpoint that the numbers of a file make.
fn parse(mut rest: &[u8]) -> Result<Result<Checkpoint, Error>, CheckpointFault> {
    let rest = &mut rest;
    let counts = take::<u64>(rest, 4)?;
    let [atoms, kinds, step, notes] = counts[..] else {
        return Err(CheckpointFault::Counts);
    };
    let count = |count| usize::try_from(count).map_err(|_| CheckpointFault::Counts);
    let (atoms, kinds) = (count(atoms)?, count(kinds)?);
    let notes = take(rest, count(notes)?)?;
    let state = take::<f64>(rest, 3)?;
    let periodic = take::<u8>(rest, 3)?;
    let vectors = take::<[f64; 3]>(rest, 3)?;
    let charged = take::<u8>(rest, 1)?[0] != 0;
    let masses = take(rest, kinds)?;
    let (positions, velocities) = (take(rest, atoms)?, take(rest, atoms)?);
    let forces = take(rest, atoms)?;
    let (types, ids) = (take::<u32>(rest, atoms)?, take(rest, atoms)?);
    let charges = take(rest, if charged { atoms } else { 0 })?;
    if !rest.is_empty() {
        return Err(CheckpointFault::Counts);
    }
    let vectors = [0, 1, 2].map(|axis| (periodic[axis] != 0).then_some(vectors[axis]));
    let make = || {
        check_types(&types, kinds)?;
        let system = System::new(positions, Cell::new(vectors)?)?;
        let mut system = system
            .with_velocities(velocities)?
            .with_types(types, masses)?;
        if charged {
            system = system.with_charges(charges)?;
        }
        system.ids = ids;
        Ok(Checkpoint {
            system,
            forces,
            now: Evaluation {
                energy: state[1],
                virial: state[2],
            },
            step,
            time: state[0],
            notes,
        })
    };
    Ok(make())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let cell = Cell::new([Some([9.0, 0.0, 0.0]), None, Some([0.1, 0.0, 8.0])]).unwrap();
        let positions = vec![[0.1, 0.2, 0.3], [1.0 / 3.0, -7.0, 0.5], [2.0; 3]];
        let system = System::new(positions, cell).unwrap();
        let system = system.with_types(vec![1, 0, 1], vec![1.5, 39.948]).unwrap();
        let mut system = system.with_charges(vec![0.1, -0.3, 0.2]).unwrap();
        system.heat(1.3, 1);
        system.reorder(&[2, 0, 1]).unwrap();
        Checkpoint {
            system,
            forces: vec![[0.1, 1e-20, -4.0]; 3],
            now: Evaluation {
                energy: -1.0 / 7.0,
                virial: 0.1,
            },
            step: 1 << 40,
            time: 0.1,
            notes: b"odd".to_vec(),
        }
    }

    #[test]
    fn what_was_written_is_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.checkpoint");
        let mut given = checkpoint();
        for charges in [true, false] {
            if !charges {
                given.system.charges.clear();
            }
            given.write(&path).unwrap();
            assert_eq!(Checkpoint::read(&path).unwrap(), given);
        }
    }

    #[test]
    fn files_that_are_something_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.checkpoint");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Checkpoint::read(&path).unwrap_err().to_string()
        };
        let whole = checkpoint().bytes().unwrap();
        assert!(refused(b"x,y,z\n").contains("not a checkpoint"));
        let older = refused(b"nearfield-md checkpoint 1\n\0\0");
        assert!(
            older.contains("checkpoint 1, and this program reads"),
            "{older}"
        );
        for len in [MAGIC.len(), MAGIC.len() + 20, whole.len() - 1] {
            assert!(refused(&whole[..len]).contains("not what its counts ask for"));
        }
        assert!(refused(&[&whole[..], &[0]].concat()).contains("not what its counts"));
        let mut many = whole.clone();
        many[MAGIC.len()..MAGIC.len() + 8].fill(0xff);
        assert!(refused(&many).contains("not what its counts"));
        let mut wrong = checkpoint();
        wrong.system.positions[1][2] = f64::NAN;
        assert!(refused(&wrong.bytes().unwrap()).contains("position of atom 1"));
        wrong = checkpoint();
        wrong.system.types[0] = 2;
        assert!(refused(&wrong.bytes().unwrap()).contains("atom 0 is of type 2"));
        assert!(Checkpoint::read(folder.path().join("none")).is_err());
    }
}

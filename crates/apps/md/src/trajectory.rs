//! Frames of a run as extended XYZ, which most viewers read.

use crate::{Error, ErrorKind, System};
use nearfield_files::{GrowingFile, Grown};
use nearfield_grid::memory::{Shortage, collected};
use std::{
    io::{self, Write},
    path::Path,
};

/// A file that frames are appended to: positions as they move on, velocities, and the number of
/// every atom, in the order of those numbers.
#[derive(Debug)]
pub struct Trajectory {
    file: GrowingFile,
    names: Vec<String>,
    masses: bool,
}

impl Trajectory {
    /// A file whose frames use these names of kinds. It replaces an existing file as soon as its
    /// first frame is complete.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn create(path: impl AsRef<Path>, names: Vec<String>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = GrowingFile::create(path).map_err(Error::io(path))?;
        Ok(Self::over(file, names))
    }

    /// As [`create`](Self::create), in a file that may have frames already.
    pub fn over(file: GrowingFile, names: Vec<String>) -> Self {
        Self {
            file,
            names,
            masses: false,
        }
    }

    /// How far the file has grown, for a checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn grown(&mut self) -> Result<Grown, Error> {
        let grown = self.file.grown();
        grown.map_err(Error::io(self.file.path()))
    }

    /// The same with a column of masses, unless all are 1, for runs that start from a frame.
    pub fn with_masses(mut self) -> Self {
        self.masses = true;
        self
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and memory that is short; nothing is appended then.
    pub fn frame(&mut self, system: &System, time: f64) -> Result<(), Error> {
        let order = by_number(system)?;
        let written = self.write(system, &order, time, None);
        written.map_err(Error::io(self.file.path()))
    }

    /// Appends a frame with the forces on the atoms, in the order of the system.
    ///
    /// # Errors
    /// [`ErrorKind::Count`] when there is not one force for each atom, and as
    /// [`frame`](Self::frame).
    pub fn frame_with_forces(
        &mut self,
        system: &System,
        time: f64,
        forces: &[[f64; 3]],
    ) -> Result<(), Error> {
        if forces.len() != system.len() {
            return Err(ErrorKind::Count {
                what: "forces",
                found: forces.len(),
                atoms: system.len(),
            }
            .into());
        }
        let order = by_number(system)?;
        let written = self.write(system, &order, time, Some(forces));
        written.map_err(Error::io(self.file.path()))
    }

    fn write(
        &mut self,
        system: &System,
        order: &[u32],
        time: f64,
        forces: Option<&[[f64; 3]]>,
    ) -> io::Result<()> {
        let (file, vectors) = (&mut self.file, system.cell.vectors());
        writeln!(file, "{}", system.len())?;
        let lattice: Vec<String> = vectors
            .map(Option::unwrap_or_default)
            .as_flattened()
            .iter()
            .map(f64::to_string)
            .collect();
        let periodic = vectors.map(|vector| if vector.is_some() { "T" } else { "F" });
        if vectors.iter().any(Option::is_some) {
            write!(
                file,
                "Lattice=\"{}\" pbc=\"{}\" ",
                lattice.join(" "),
                periodic.join(" ")
            )?;
        }
        let more = if forces.is_some() { ":forces:R:3" } else { "" };
        let has_masses = self.masses && system.masses.iter().any(|&mass| mass != 1.0);
        let masses = if has_masses { ":mass:R:1" } else { "" };
        writeln!(
            file,
            "Properties=species:S:1:pos:R:3:velo:R:3:id:I:1{more}{masses} Time={time}"
        )?;
        for &atom in order {
            let atom = atom as usize;
            let kind = system.types[atom] as usize;
            let ([x, y, z], [u, v, w]) = (system.positions[atom], system.velocities[atom]);
            match self.names.get(kind) {
                Some(name) => write!(file, "{name}")?,
                None => write!(file, "T{kind}")?,
            }
            write!(file, " {x} {y} {z} {u} {v} {w} {}", system.ids[atom])?;
            if let Some([x, y, z]) = forces.map(|forces| forces[atom]) {
                write!(file, " {x} {y} {z}")?;
            }
            if has_masses {
                write!(file, " {}", system.mass(atom))?;
            }
            writeln!(file)?;
        }
        file.complete()
    }
}

/// The atoms in the order of their numbers, which are 32 bits wide.
fn by_number(system: &System) -> Result<Vec<u32>, Shortage> {
    let mut order = collected(0..system.len() as u32, "the order of atoms")?;
    order.sort_unstable_by_key(|&atom| system.ids[atom as usize]);
    Ok(order)
}

//! Checkpoints: files from which a run continues, on any number of ranks.
//!
//! A file has the line `nearfield-sph checkpoint 2`, then numbers, little endian: particles, steps,
//! bytes of the caller's own, and 1 if it has forces or 0 (4 × u64); time, and the sums of the
//! budgets (14 × f64); spacing, smoothing, density and sound speed (4 × f32); the caller's bytes;
//! then for all particles positions (3 × f32), velocities (3 × f32), compressions (f32), the forces
//! by fluid and by walls if it has them (2 × 4 × f32), and ids (u64). Nothing follows. A rank reads
//! only its share of the particles.
//!
//! A step ends with forces at its last positions, but with the friction of velocities in its
//! middle. The next step begins with these forces, so they are kept: evaluating them again would
//! give other values.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use glam::Vec3;
use nearfield_files::NewFile;
use nearfield_grid::memory::{collected, copied, zeroed};

use crate::{
    Config, Error, ErrorKind,
    budget::Ledger,
    particles::{Forces, Particles},
};

const MAGIC: &[u8] = b"nearfield-sph checkpoint 2\n";

/// Bytes of the numbers before the caller's own.
const HEADER: usize = 4 * 8 + 14 * 8 + 4 * 4;

/// Largest number of steps that a run can have done: centuries at any speed.
const MAX_STEPS: u64 = 1 << 53;

/// Bytes of a particle in each column.
const WIDTHS: [u64; 6] = [12, 12, 4, 16, 16, 8];

/// The columns of a file, by whether it holds forces: their places in [`WIDTHS`].
const COLUMNS: [&[usize]; 2] = [&[0, 1, 2, 5], &[0, 1, 2, 3, 4, 5]];

/// Bytes of a particle in a file.
fn bytes_of_particle(forces: bool) -> u64 {
    let columns = COLUMNS[usize::from(forces)].iter();
    columns.map(|&column| WIDTHS[column]).sum()
}

/// A run at one moment; see [`Simulation::checkpoint`](crate::Simulation::checkpoint) and
/// [`SimulationBuilder::resume`](crate::SimulationBuilder::resume).
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Those of this rank.
    pub(crate) fluid: Particles,
    /// On the fluid of this rank; none where they are to be evaluated.
    pub(crate) forces: Option<Forces>,
    head: Head,
    notes: Vec<u8>,
}

/// The numbers by which the runs of a checkpoint are told apart.
fn numerics(config: &Config) -> [f32; 4] {
    [
        config.spacing,
        config.smoothing,
        config.density,
        config.sound_speed,
    ]
}

impl Checkpoint {
    pub(crate) fn new(head: Head, fluid: Particles, forces: Option<Forces>) -> Self {
        Self {
            fluid,
            forces,
            head,
            notes: Vec::new(),
        }
    }

    /// The budgets, and the steps and the time since the start.
    pub(crate) fn past(&self) -> (Ledger, (u64, f64)) {
        (self.head.ledger, (self.head.step, self.head.time))
    }

    /// Steps since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.head.step
    }

    /// Simulated time, seconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.head.time
    }

    /// Particles that this rank has read, or, on rank 0, was given to write.
    #[must_use]
    pub fn particles(&self) -> usize {
        self.fluid.len()
    }

    /// Bytes of the program's own that [`write`](Self::write) was given.
    #[must_use]
    pub fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// Refuses a checkpoint of another run.
    pub(crate) fn check(&self, config: &Config, particles: u64) -> Result<(), Error> {
        if self.head.count != particles || self.head.numerics != numerics(config) {
            let [spacing, ..] = self.head.numerics;
            return Err(Error::elsewhere(format!(
                "the checkpoint is that of another run: it has {} particles at a spacing of \
                 {spacing} m, and this run {particles} at {} m; give the flags of its run",
                self.head.count, config.spacing
            )));
        }
        Ok(())
    }

    /// Writes the run and `notes`, bytes of the program's own; the file appears complete or not at
    /// all.
    ///
    /// # Errors
    /// When it cannot be written; what was there before is then unchanged.
    pub fn write(&self, path: &Path, notes: &[u8]) -> Result<(), Error> {
        let mut file = Writer::create(path, &self.head, notes)?;
        file.put(0, &self.fluid, self.forces.as_ref())?;
        file.finish()
    }

    /// Reads what [`write`](Self::write) wrote: the share of one of `ranks` ranks, all of it where
    /// there is one.
    ///
    /// # Errors
    /// When the file cannot be read, is another one or was cut short, memory is short, or `rank` is
    /// none of `ranks`.
    pub fn read(path: &Path, rank: usize, ranks: usize) -> Result<Self, Error> {
        if rank >= ranks {
            return Err(Error::no_such_rank(rank));
        }
        let file = File::open(path).map_err(|source| unusable(path, &source))?;
        match parse(file, [rank, ranks].map(|rank| rank as u64)) {
            Ok(checkpoint) => checkpoint,
            Err(source) => Err(unusable(path, &nearfield_files::of_a_file(path, source))),
        }
    }
}

/// The numbers of a file before its particles, but for the caller's bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// Particles of all ranks.
    count: u64,
    step: u64,
    time: f64,
    ledger: Ledger,
    /// Spacing, smoothing, density and sound speed.
    numerics: [f32; 4],
}

impl Head {
    /// That of a run of `count` particles.
    pub(crate) fn new(config: &Config, count: usize, at: (u64, f64), ledger: Ledger) -> Self {
        Self {
            count: count as u64,
            step: at.0,
            time: at.1,
            ledger,
            numerics: numerics(config),
        }
    }
}

/// A file in the making, whose particles come in parts.
pub(crate) struct Writer<'a> {
    path: &'a Path,
    file: NewFile,
    /// Bytes before the particles.
    begin: u64,
    /// Particles of the whole file.
    count: u64,
}

impl<'a> Writer<'a> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn create(path: &'a Path, head: &Head, notes: &[u8]) -> Result<Self, Error> {
        let begun = || {
            let mut file = NewFile::create_seekable(path)?;
            file.write_all(MAGIC)?;
            // Forces come with the first particles, or not at all.
            let counts = [head.count, head.step, notes.len() as u64, 0];
            file.write_all(bytemuck::cast_slice(&counts))?;
            file.write_all(&head.time.to_le_bytes())?;
            file.write_all(bytemuck::cast_slice(&head.ledger.numbers()))?;
            file.write_all(bytemuck::cast_slice(&head.numerics))?;
            file.write_all(notes)?;
            Ok(Self {
                path,
                file,
                begin: (MAGIC.len() + HEADER + notes.len()) as u64,
                count: head.count,
            })
        };
        begun().map_err(|source| unusable(path, &source))
    }

    /// Writes the particles that come behind the first `before`. Either all come with forces, or
    /// none.
    ///
    /// # Errors
    /// When they cannot be written, and when memory is short.
    pub(crate) fn put(
        &mut self,
        before: u64,
        fluid: &Particles,
        forces: Option<&Forces>,
    ) -> Result<(), Error> {
        let flat = |pairs: &[(Vec3, f32)]| {
            let numbers = pairs.iter().map(|(v, s)| [v.x, v.y, v.z, *s]);
            collected(numbers, "forces in a checkpoint")
        };
        let of_fluid = flat(forces.map_or(&[], |forces| &forces.fluid))?;
        let of_walls = flat(forces.map_or(&[], |forces| &forces.walls))?;
        let columns: [&[u8]; 6] = [
            bytemuck::cast_slice(&fluid.position),
            bytemuck::cast_slice(&fluid.velocity),
            bytemuck::cast_slice(&fluid.compression),
            bytemuck::cast_slice(&of_fluid),
            bytemuck::cast_slice(&of_walls),
            bytemuck::cast_slice(&fluid.id),
        ];
        let holds = forces.is_some();
        let flag = (MAGIC.len() as u64 + 24, u64::from(holds).to_le_bytes());
        let mut parts = vec![(flag.0, &flag.1[..])];
        let mut at = self.begin;
        for &column in COLUMNS[usize::from(holds)] {
            parts.push((at + before * WIDTHS[column], columns[column]));
            at += self.count * WIDTHS[column];
        }
        for (place, bytes) in parts {
            let place = SeekFrom::Start(place);
            let written = (self.file.seek(place)).and_then(|_| self.file.write_all(bytes));
            written.map_err(|source| unusable(self.path, &source))?;
        }
        Ok(())
    }

    /// Has the file take its place.
    ///
    /// # Errors
    /// When it cannot; the file that was there before is then still there.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let done = self.file.sync().and_then(|()| self.file.finish());
        done.map_err(|source| unusable(self.path, &source))
    }
}

/// The error of a file.
fn unusable(path: &Path, source: &io::Error) -> Error {
    ErrorKind::Checkpoint {
        path: path.to_owned(),
        reason: source.to_string(),
    }
    .into()
}

/// An error of the contents.
fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// Refuses particles that no run has: the share from number `first` on, of `count`.
fn check(
    (fluid, forces): (&Particles, Option<&Forces>),
    mut ids: Vec<u64>,
    first: u64,
    count: u64,
) -> io::Result<()> {
    let is_finite =
        |i: usize| fluid.is_finite(i) && forces.is_none_or(|forces| forces.is_finite(i));
    if let Some(bad) = (0..fluid.len()).find(|&i| !is_finite(i)) {
        let number = first + bad as u64;
        return Err(invalid(format!("its particle {number} is not finite")));
    }
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        let reason = format!("two of its particles have the id {}", pair[0]);
        return Err(invalid(reason));
    }
    match ids.last() {
        Some(id) if *id >= count => {
            let reason = format!("it has the id {id} and {count} particles");
            Err(invalid(reason))
        }
        _ => Ok(()),
    }
}

/// The numbers of a file before the caller's bytes, the number of those, and whether it holds
/// forces.
fn read_head(file: &mut File) -> io::Result<(Head, u64, bool)> {
    let len = file.metadata()?.len();
    let mut start = Vec::new();
    let expected = MAGIC.len() + HEADER;
    (&*file).take(expected as u64).read_to_end(&mut start)?;
    let header = start.strip_prefix(MAGIC);
    let Some(header) = header.filter(|header| header.len() == HEADER) else {
        return Err(invalid(nearfield_files::not_this_format(&start, MAGIC)));
    };
    let words = header.as_chunks::<8>().0;
    let [count, step, notes, forces] = [0, 1, 2, 3].map(|at| u64::from_le_bytes(words[at]));
    let numbers: [f64; 14] = std::array::from_fn(|at| f64::from_le_bytes(words[4 + at]));
    let singles = header[18 * 8..].as_chunks::<4>().0;
    let of_particle = bytes_of_particle(forces == 1);
    let needed = (count.checked_mul(of_particle))
        .and_then(|bytes| bytes.checked_add(notes)?.checked_add(expected as u64));
    if needed != Some(len) || forces > 1 {
        return Err(invalid(format!(
            "its {len} bytes are not those of {count} particles and {notes} more bytes"
        )));
    }
    let [time, ledger @ ..] = numbers;
    if !numbers.iter().all(|number| number.is_finite()) {
        return Err(invalid("a sum of its budgets is not finite"));
    }
    if step > MAX_STEPS || time < 0.0 {
        let reason = format!("no run has done {step} steps at {time} s");
        return Err(invalid(reason));
    }
    let head = Head {
        count,
        step,
        time,
        ledger: Ledger::of(ledger),
        numerics: std::array::from_fn(|at| f32::from_le_bytes(singles[at])),
    };
    Ok((head, notes, forces == 1))
}

/// A rank's share of the file's particles. The inner error says that memory is short.
fn parse(mut file: File, [rank, ranks]: [u64; 2]) -> io::Result<Result<Checkpoint, Error>> {
    let (head, notes, holds) = read_head(&mut file)?;
    let count = head.count;
    let cut = |rank: u64| (u128::from(count) * u128::from(rank) / u128::from(ranks)) as u64;
    let (first, mine) = (cut(rank), (cut(rank + 1) - cut(rank)) as usize);
    let begin = (MAGIC.len() + HEADER) as u64;
    const WHAT: &str = "particles of a checkpoint";
    let with_forces = if holds { mine } else { 0 };
    let arrays = || {
        let fluid = Particles {
            position: zeroed(mine, WHAT)?,
            velocity: zeroed(mine, WHAT)?,
            compression: zeroed(mine, WHAT)?,
            id: zeroed(mine, WHAT)?,
        };
        let forces = [
            zeroed::<[f32; 4]>(with_forces, WHAT)?,
            zeroed(with_forces, WHAT)?,
        ];
        Ok::<_, Error>((fluid, forces, zeroed::<u8>(notes as usize, WHAT)?))
    };
    let (mut fluid, mut flat, mut bytes) = match arrays() {
        Ok(arrays) => arrays,
        Err(short) => return Ok(Err(short)),
    };
    let [of_fluid, of_walls] = &mut flat;
    let columns = [
        bytemuck::cast_slice_mut::<Vec3, u8>(&mut fluid.position),
        bytemuck::cast_slice_mut(&mut fluid.velocity),
        bytemuck::cast_slice_mut(&mut fluid.compression),
        bytemuck::cast_slice_mut(of_fluid),
        bytemuck::cast_slice_mut(of_walls),
        bytemuck::cast_slice_mut(&mut fluid.id),
    ];
    let mut at = begin + notes;
    for &column in COLUMNS[usize::from(holds)] {
        file.seek(SeekFrom::Start(at + first * WIDTHS[column]))?;
        file.read_exact(columns[column])?;
        at += count * WIDTHS[column];
    }
    file.seek(SeekFrom::Start(begin))?;
    file.read_exact(&mut bytes)?;
    let made = || {
        let pairs = |flat: &[[f32; 4]]| {
            let pairs = flat.iter().map(|&[x, y, z, s]| (Vec3::new(x, y, z), s));
            collected(pairs, WHAT)
        };
        let forces = Forces {
            fluid: pairs(&flat[0])?,
            walls: pairs(&flat[1])?,
        };
        Ok::<_, Error>((holds.then_some(forces), copied(&fluid.id, WHAT)?))
    };
    let (forces, ids) = match made() {
        Ok(made) => made,
        Err(short) => return Ok(Err(short)),
    };
    check((&fluid, forces.as_ref()), ids, first, count)?;
    Ok(Ok(Checkpoint {
        fluid,
        forces,
        head,
        notes: bytes,
    }))
}

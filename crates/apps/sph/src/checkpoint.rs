//! Runs on disk, to go on from, on any number of ranks.
//!
//! A file holds the line `nearfield-sph checkpoint 1`, then numbers, little endian: particles,
//! steps, and bytes of the caller's own (3 × u64); time, and the sums of the budgets (14 × f64);
//! spacing, smoothing, density and sound speed (4 × f32); the caller's bytes; then for all
//! particles positions (3 × f32), velocities (3 × f32), compressions (f32) and ids (u64). Nothing
//! follows. A rank reads its share of the particles only.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use glam::Vec3;
use nearfield_files::NewFile;
use nearfield_grid::memory::{copied, zeroed};

use crate::{Config, Error, ErrorKind, Moment, budget::Ledger, particles::Particles};

const MAGIC: &[u8] = b"nearfield-sph checkpoint 1\n";

/// Bytes of the numbers before the caller's own.
const HEADER: usize = 3 * 8 + 14 * 8 + 4 * 4;

/// Largest number of steps that a run can have done: centuries at any speed.
const MAX_STEPS: u64 = 1 << 53;

/// Bytes of a particle.
const PARTICLE: u64 = WIDTHS[0] + WIDTHS[1] + WIDTHS[2] + WIDTHS[3];

/// Bytes of a particle in each column.
const WIDTHS: [u64; 4] = [12, 12, 4, 8];

/// A run at one moment; see [`Simulation::checkpoint`](crate::Simulation::checkpoint) and
/// [`SimulationBuilder::resume`](crate::SimulationBuilder::resume).
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Those of this rank.
    pub(crate) fluid: Particles,
    /// Particles of all ranks.
    count: u64,
    pub(crate) step: u64,
    pub(crate) time: f64,
    pub(crate) ledger: Ledger,
    /// Spacing, smoothing, density and sound speed.
    numerics: [f32; 4],
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
    pub(crate) fn new(moment: Moment, ledger: Ledger) -> Self {
        let (step, time, numerics) = (moment.steps(), moment.time(), numerics(moment.config()));
        let fluid = moment.into_fluid();
        Self {
            count: fluid.len() as u64,
            fluid,
            step,
            time,
            ledger,
            numerics,
            notes: Vec::new(),
        }
    }

    /// Steps since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Simulated time, seconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.time
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
        if self.count != particles || self.numerics != numerics(config) {
            let [spacing, ..] = self.numerics;
            return Err(Error::elsewhere(format!(
                "the checkpoint is that of another run: it has {} particles at a spacing of \
                 {spacing} m, and this run {particles} at {} m; give the flags of its run",
                self.count, config.spacing
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
        let head = Head {
            count: self.count,
            step: self.step,
            time: self.time,
            ledger: self.ledger,
            numerics: self.numerics,
        };
        let mut file = Writer::create(path, &head, notes)?;
        file.put(0, &self.fluid)?;
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
        match parse(file, rank as u64, ranks as u64) {
            Ok(checkpoint) => checkpoint,
            Err(source) => Err(unusable(path, &nearfield_files::of_a_file(path, source))),
        }
    }
}

/// The numbers of a file before its particles, but for the caller's bytes.
pub(crate) struct Head {
    count: u64,
    step: u64,
    time: f64,
    ledger: Ledger,
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
            let counts = [head.count, head.step, notes.len() as u64];
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

    /// Writes the particles that come behind the first `before`.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn put(&mut self, before: u64, fluid: &Particles) -> Result<(), Error> {
        let columns: [&[u8]; 4] = [
            bytemuck::cast_slice(&fluid.position),
            bytemuck::cast_slice(&fluid.velocity),
            bytemuck::cast_slice(&fluid.compression),
            bytemuck::cast_slice(&fluid.id),
        ];
        let mut at = self.begin;
        for (width, bytes) in WIDTHS.into_iter().zip(columns) {
            let place = SeekFrom::Start(at + before * width);
            let written = (self.file.seek(place)).and_then(|_| self.file.write_all(bytes));
            written.map_err(|source| unusable(self.path, &source))?;
            at += self.count * width;
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
fn check(fluid: &Particles, mut ids: Vec<u64>, first: u64, count: u64) -> io::Result<()> {
    if let Some(bad) = (0..fluid.len()).find(|&i| !fluid.is_finite(i)) {
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

/// The share of a rank of the file's particles. Memory that is short is the inner error.
fn parse(mut file: File, rank: u64, ranks: u64) -> io::Result<Result<Checkpoint, Error>> {
    let len = file.metadata()?.len();
    let mut magic = [0; MAGIC.len()];
    let mut header = [0; HEADER];
    let whole = (file.read_exact(&mut magic)).and_then(|()| file.read_exact(&mut header));
    if whole.is_err() || magic != MAGIC {
        return Err(invalid(
            "this is no checkpoint of this version of nearfield-sph",
        ));
    }
    let words = header.as_chunks::<8>().0;
    let [count, step, notes] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
    let numbers: [f64; 14] = std::array::from_fn(|at| f64::from_le_bytes(words[3 + at]));
    let singles = header[17 * 8..].as_chunks::<4>().0;
    let begin = (MAGIC.len() + HEADER) as u64;
    let expected = (count.checked_mul(PARTICLE))
        .and_then(|bytes| bytes.checked_add(notes)?.checked_add(begin));
    if expected != Some(len) {
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
    let cut = |rank: u64| (u128::from(count) * u128::from(rank) / u128::from(ranks)) as u64;
    let (first, mine) = (cut(rank), (cut(rank + 1) - cut(rank)) as usize);
    let mut at = begin + notes;
    let arrays = || {
        const WHAT: &str = "particles of a checkpoint";
        let fluid = Particles {
            position: zeroed(mine, WHAT)?,
            velocity: zeroed(mine, WHAT)?,
            compression: zeroed(mine, WHAT)?,
            id: zeroed(mine, WHAT)?,
        };
        Ok::<_, Error>((fluid, zeroed::<u8>(notes as usize, WHAT)?))
    };
    let (mut fluid, mut notes) = match arrays() {
        Ok(arrays) => arrays,
        Err(short) => return Ok(Err(short)),
    };
    let columns = [
        bytemuck::cast_slice_mut::<Vec3, u8>(&mut fluid.position),
        bytemuck::cast_slice_mut(&mut fluid.velocity),
        bytemuck::cast_slice_mut(&mut fluid.compression),
        bytemuck::cast_slice_mut(&mut fluid.id),
    ];
    for (width, into) in WIDTHS.into_iter().zip(columns) {
        file.seek(SeekFrom::Start(at + first * width))?;
        file.read_exact(into)?;
        at += count * width;
    }
    file.seek(SeekFrom::Start(begin))?;
    file.read_exact(&mut notes)?;
    match copied(&fluid.id, "ids of a checkpoint") {
        Ok(ids) => check(&fluid, ids, first, count)?,
        Err(short) => return Ok(Err(short.into())),
    }
    Ok(Ok(Checkpoint {
        fluid,
        count,
        step,
        time,
        ledger: Ledger::of(ledger),
        numerics: std::array::from_fn(|at| f32::from_le_bytes(singles[at])),
        notes,
    }))
}

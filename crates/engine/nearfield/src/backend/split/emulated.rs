//! A device that does not exist: one more thread of the CPU, and a virtual clock.
//!
//! Policies see the clock, so what they do is the same on every machine and in every run. Results
//! are computed for real, by the same kind of hand-offs as a GPU's: the device has sorted points of
//! its own, works subregion by subregion into buffers of its own, and copies results from there.

use super::{BUFFERS, plan::Planned};
use crate::{Error, PointSetId};
use nearfield_balance::{Crew, EmulatedSpec, Fault, Machine, Stages, StepTimes};
use nearfield_cpu::{BorrowedBuffer, BufferProvider, CpuBackend, PairOfSets, SetRadii, Spent};
use nearfield_grid::{
    Bounds, Grid, Lattice, Positions,
    memory::{Shortage, copied, make_room, zeroed},
};
use std::{
    borrow::Cow,
    ptr::NonNull,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicBool},
};

/// The device and what it holds.
#[derive(Debug)]
pub(crate) struct EmulatedDevice {
    backend: CpuBackend,
    /// Takes it through its subregions.
    crew: Crew,
    /// None for a set whose positions it does not have.
    sets: RwLock<Vec<Option<Placed>>>,
    machine: Mutex<Machine>,
}

/// A set on the device.
#[derive(Debug)]
pub(super) struct Placed {
    grid: Grid,
    /// The copy that it was brought over from, which stays on the host.
    pub(super) positions: Vec<[f32; 3]>,
}

impl EmulatedDevice {
    pub(super) fn new(spec: EmulatedSpec) -> Result<Self, Error> {
        Ok(Self {
            backend: CpuBackend::new(1)?,
            crew: Crew::new(BUFFERS).map_err(Error::Schedule)?,
            sets: RwLock::default(),
            machine: Mutex::new(Machine::new(spec)),
        })
    }

    /// Copies positions to the device, or forgets the set when they are not wanted.
    pub(crate) fn place(
        &self,
        set: PointSetId,
        positions: Option<Positions<'_>>,
        bounds: Bounds,
        lattice: &Lattice,
    ) -> Result<(), Error> {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        if sets.len() <= set.0 {
            sets.resize_with(set.0 + 1, || None);
        }
        let old = sets[set.0].take();
        let Some(positions) = positions else {
            return Ok(());
        };
        let refuse = |source| Error::Positions { set, source };
        let copied = match positions.to_packed().map_err(refuse)? {
            Cow::Owned(packed) => packed,
            Cow::Borrowed(packed) => copied(packed, "positions on the device")?,
        };
        let mut grid = old.map_or_else(|| Grid::new(lattice.clone()), |old| old.grid);
        let built = self
            .backend
            .install(|| grid.build(positions, bounds, lattice));
        built.map_err(refuse)?;
        sets[set.0] = Some(Placed {
            grid,
            positions: copied,
        });
        Ok(())
    }

    /// The cells have changed.
    pub(super) fn move_to(&self, lattice: &Lattice) {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        for set in sets.iter_mut() {
            // What cannot be sorted anew is brought over again at the next update.
            set.take_if(|set| self.backend.install(|| set.grid.rebuild(lattice)).is_err());
        }
    }

    pub(super) fn has(&self, set: usize) -> bool {
        self.locked().get(set).is_some_and(Option::is_some)
    }

    pub(super) fn locked(&self) -> RwLockReadGuard<'_, Vec<Option<Placed>>> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn backend(&self) -> &CpuBackend {
        &self.backend
    }

    pub(super) fn crew(&self) -> &Crew {
        &self.crew
    }

    /// What the next step takes on the virtual clock.
    pub(super) fn step(&self, planned: &Planned) -> StepTimes {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.step(planned.layout(), planned.plan())
    }
}

/// The sets of a work as the device has them.
pub(super) fn pair<'a>(
    sets: &'a [Option<Placed>],
    targets: usize,
    sources: usize,
) -> Option<PairOfSets<'a>> {
    Some(PairOfSets {
        targets: &sets.get(targets)?.as_ref()?.grid,
        sources: &sets.get(sources)?.as_ref()?.grid,
        same_set: targets == sources,
        radii: SetRadii::Uniform,
        share: None,
    })
}

/// What the device needs to know which of its targets a subregion has.
#[derive(Debug)]
pub(super) struct Marks {
    pub(super) taken: Vec<AtomicBool>,
    pub(super) spent: Spent,
}

impl Marks {
    pub(super) fn new(targets: usize) -> Result<Self, Shortage> {
        let mut taken = Vec::new();
        make_room(&mut taken, targets, "marks of targets")?;
        taken.resize_with(targets, AtomicBool::default);
        Ok(Self {
            taken,
            spent: Spent::default(),
        })
    }

    /// No target has been taken yet.
    pub(super) fn clear(&mut self) {
        for taken in &mut self.taken {
            *taken.get_mut() = false;
        }
    }
}

/// A work's stages on the device; a step that is to fail does so in the middle of its subregions.
pub(super) struct EmulatedStages<C, D> {
    /// (subregion, buffer): computes a subregion's results into a buffer.
    pub(super) compute: C,
    /// (subregion, buffer): copies them from there.
    pub(super) download: D,
    pub(super) fault: Option<Fault>,
    pub(super) fails_at: usize,
}

impl<C, D> Stages for EmulatedStages<C, D>
where
    C: Fn(usize, usize) -> Result<(), Error> + Sync,
    D: Fn(usize, usize) -> Result<(), Error> + Sync,
{
    /// None where the device failed as it was told to.
    type Error = Option<Error>;

    fn upload(&self, subregion: usize) -> Result<(), Self::Error> {
        match self.fault {
            Some(Fault::OutOfMemory) if subregion >= self.fails_at => Err(None),
            _ => Ok(()),
        }
    }

    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error> {
        match self.fault {
            Some(Fault::Lost) if subregion >= self.fails_at => Err(None),
            _ => (self.compute)(subregion, buffer).map_err(Some),
        }
    }

    fn download(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error> {
        (self.download)(subregion, buffer).map_err(Some)
    }
}

/// Memory that the device copies lists into.
#[derive(Debug)]
struct OwnMemory<T>(Vec<T>);

// SAFETY: the Vec is never changed, so its elements stay where they are.
unsafe impl<T: Send + Sync + std::fmt::Debug> BorrowedBuffer<T> for OwnMemory<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::from(self.0.as_mut_slice())
    }
}

/// Lends memory as a GPU does.
pub(super) struct OwnLender;

impl BufferProvider for OwnLender {
    type Error = nearfield_cpu::Error;

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Self::Error> {
        Ok(Box::new(OwnMemory(zeroed(len, "list starts")?)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Self::Error> {
        Ok(Box::new(OwnMemory(zeroed(len, "neighbour lists")?)))
    }
}

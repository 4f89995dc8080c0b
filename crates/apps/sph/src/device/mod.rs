//! A fluid on a GPU: every stage of a step runs there, and particles come to the host only when
//! they are read.
//!
//! The host starts the kernels of a whole step and then waits once, for the sums of the budgets and
//! the length of the next step. On [ranks](near) each rank has a share of the particles on its GPU,
//! and the neighbourhood waits for messages between ranks.

mod arrays;
mod body;
mod flight;
mod kernels;
mod look;
mod near;
mod probes;

use std::{
    mem,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use glam::{DVec3, Vec3};
use nearfield::{
    device::{DeviceField, DeviceValue, DeviceView, Progress},
    error::gpu::{Error as GpuError, ErrorKind as GpuErrorKind},
};

use nearfield_grid::{
    OfProcess,
    memory::{collected, filled},
};

use crate::{
    Config, Error, ErrorKind,
    advance::{Advance, Compression, Kick},
    budget::Sums,
    front::FrontRule,
    guard::Watch,
    matter::Matter,
    neighborhood::Set,
    passes::{Passes, Rates},
    probes::{ProbeSums, Probes},
};
use arrays::{Arrays, KEPT, Notes, PARTICLES, STEP, unallocated};
use flight::{Flight, Flights};
use kernels::{
    Compressed, KICK_SLOTS, Kernels, Kicked, Partials, SECOND_KICK, STEP_MAXIMA, TOTALS,
};
pub use kernels::{FLUID, programs};
pub(crate) use near::OneGpu;
pub use near::{DeviceArrays, DeviceNeighborhood};
use probes::ProbeArrays;

/// Fluid and walls on a GPU, or those of a rank.
pub(crate) struct DeviceBody<N> {
    /// Behind a lock because sums over ranks are asked of a body that does not change.
    near: Mutex<N>,
    /// As the engine: neither used nor dropped in a forked child.
    kernels: OfProcess<Kernels>,
    arrays: OfProcess<Arrays>,
    count: usize,
    walls: usize,
    /// Fluid and wall particles of all ranks.
    all: [usize; 2],
    /// The particles, if they were downloaded since the last step.
    seen: OnceLock<Matter>,
    /// The particles as of the download before.
    last: Matter,
    /// Why a download failed; the next step reports it.
    fault: Mutex<Option<Error>>,
    /// The stream and memory of copies for frames, made with the first of them.
    flights: OfProcess<OnceLock<Flights>>,
    /// Arrays for sums outside a step, allocated for the first one.
    notes: OfProcess<Mutex<Option<Notes>>>,
    /// Arrays for probes, made when they are first read.
    probes: OfProcess<Mutex<Option<ProbeArrays>>>,
}

/// Fluid and walls, as a neighbourhood takes them.
macro_rules! arrays {
    ($body:expr) => {{
        let arrays = &mut *$body.arrays;
        let fluid = DeviceArrays {
            count: &mut $body.count,
            positions: &mut arrays.position,
            columns: vec![(&mut arrays.moving, 4)],
            spare: &mut arrays.kept,
        };
        let walls = DeviceArrays {
            count: &mut $body.walls,
            positions: &mut arrays.wall_position,
            columns: vec![(&mut arrays.still, 3)],
            spare: &mut arrays.wall_spare,
        };
        (fluid, walls)
    }};
}

impl<N: DeviceNeighborhood> DeviceBody<N> {
    /// Brings this rank's share of the particles to its GPU and evaluates the first forces.
    pub(crate) fn new(
        config: &Config,
        mut near: N,
        matter: Matter,
        wall_ids: &[u64],
    ) -> Result<Self, Error> {
        let Matter { fluid, walls, .. } = &matter;
        let mut all = [fluid.len() as f64, walls.len() as f64];
        near.together(&mut all, &mut [])?;
        let all = all.map(|count| count as usize);
        let made = || {
            let kernels = Kernels::load(near.engine(), config, all[0])?;
            Ok((kernels, Arrays::of(near.engine(), fluid, walls)?))
        };
        let made: Result<_, Error> = made();
        let (kernels, arrays) = made.inspect_err(|error| near.give_up(&error.to_string()))?;
        let ids = collected(fluid.id.iter().copied(), PARTICLES)?;
        let mut body = Self {
            near: Mutex::new(near),
            kernels: OfProcess::new(kernels),
            arrays: OfProcess::new(arrays),
            count: fluid.len(),
            walls: walls.len(),
            all,
            seen: OnceLock::new(),
            last: matter,
            fault: Mutex::default(),
            flights: OfProcess::new(OnceLock::new()),
            notes: OfProcess::new(Mutex::default()),
            probes: OfProcess::new(Mutex::default()),
        };
        let (fluid, walls) = arrays!(body);
        let near = unlocked(&mut body.near);
        near.place(fluid, walls, [&ids, wall_ids])?;
        body.fit()?;
        let started = body.apply_rates(0.0);
        body.own(started)?;
        loop {
            body.evaluate_forces(config)?;
            let near = unlocked(&mut body.near);
            let waited = near.wait();
            match near.finish(waited, &mut [], &mut [])? {
                Progress::Valid => return Ok(body),
                Progress::Repeat => {}
            }
        }
    }

    /// Refuses to work in a forked child of the process that made the body.
    fn usable(&self) -> Result<(), Error> {
        if self.kernels.is_inherited() {
            return Err(GpuError::from(GpuErrorKind::Forked).into());
        }
        Ok(())
    }

    fn near(&self) -> MutexGuard<'_, N> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells other ranks of an error of this rank.
    fn own<R>(&self, result: Result<R, Error>) -> Result<R, Error> {
        result.inspect_err(|error| self.near().give_up(&error.to_string()))
    }

    /// Makes room for all particles of this rank.
    fn fit(&mut self) -> Result<(), Error> {
        let counts = [self.count, self.walls];
        let fitted = self.arrays.fit(self.kernels.queue(), counts);
        self.own(fitted)
    }

    /// A step of `dt` seconds.
    fn step(&mut self, config: &Config, dt: f64, watch: Watch) -> Result<Advance, Error> {
        self.usable()?;
        let report = self.report_fault();
        self.own(report)?;
        let _span = tracing::debug_span!("sph.device_step").entered();
        if let Some(seen) = self.seen.take() {
            self.last = seen;
        }
        let half = 0.5 * dt;
        let kicked = self.kick(half, dt, 0);
        self.own(kicked)?;
        self.follow(watch)?;
        loop {
            self.compress(config, dt)?;
            self.evaluate_forces(config)?;
            let kicked = self.kick(half, 0.0, SECOND_KICK);
            let asked = kicked.and_then(|()| self.ask_totals());
            self.own(asked)?;
            // The engine's wait covers the totals too.
            let waited = unlocked(&mut self.near).wait();
            let (totals, finished) =
                self.totals_found(|near, sums, minima| near.finish(waited, sums, minima))?;
            let advance = Advance {
                first: kick_of(&totals[..KICK_SLOTS]),
                compression: Compression {
                    diffused: totals[KICK_SLOTS],
                    work: totals[KICK_SLOTS + 1],
                },
                second: kick_of(&totals[SECOND_KICK..]),
            };
            self.refuse_losses(&totals, watch)?;
            match finished? {
                Progress::Valid => return Ok(advance),
                Progress::Repeat => {
                    let arrays = &mut *self.arrays;
                    let len = 4 * self.count;
                    let mut moving = arrays.moving.slice_mut(0..len);
                    let queue = self.kernels.queue();
                    let copied =
                        queue.copy_on_device(KEPT, &arrays.kept.slice(0..len), &mut moving);
                    self.own(copied.map_err(Error::from))?;
                }
            }
        }
    }

    /// Tells the neighbourhood where the particles are; particles may then have arrived from other
    /// ranks.
    fn follow(&mut self, watch: Watch) -> Result<(), Error> {
        let (fluid, walls) = arrays!(self);
        let followed = unlocked(&mut self.near).follow(fluid, walls);
        match followed {
            Ok(false) => Ok(()),
            Ok(true) => self.fit(),
            // It refuses positions that are not finite.
            Err(error) if self.near().ranks() > 1 => match self.lost(watch)? {
                Some(lost) => Err(lost),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Sums and maxima of the fluid now.
    fn look_at_kick(&mut self) -> Result<Kick, Error> {
        self.usable()?;
        let kicked = self.kick(0.0, 0.0, SECOND_KICK);
        let asked = kicked.and_then(|()| self.ask_totals());
        self.own(asked)?;
        let (totals, added) = self.totals_found(N::together)?;
        added?;
        Ok(kick_of(&totals[SECOND_KICK..]))
    }

    /// Kicks over `step` and drifts over `drift` seconds.
    fn kick(&mut self, step: f64, drift: f64, slot: usize) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let kicked = Kicked {
            position: &mut arrays.position,
            moving: &mut arrays.moving,
            forces: &arrays.forces,
            wall_forces: &arrays.wall_forces,
            count: self.count,
        };
        let partials = Partials {
            values: &mut arrays.partials,
            slot,
        };
        self.kernels
            .kick(kicked, step as f32, drift as f32, partials)
    }

    fn compress(&mut self, config: &Config, dt: f64) -> Result<(), Error> {
        let Rates { fluid, walls } = Passes::of(config).rates(dt);
        let near = unlocked(&mut self.near);
        let (arrays, count) = (&mut *self.arrays, self.count);
        let moving = || field(arrays.moving.slice(0..4 * count), 4);
        let (of, results) = ([Set::Fluid; 2], &mut arrays.rates.slice_mut(0..2 * count));
        near.traverse(&fluid, of, [moving(), moving()], results)?;
        let still = field(arrays.still.slice(0..3 * self.walls), 3);
        let results = &mut arrays.wall_rates.slice_mut(0..count);
        let of = [Set::Fluid, Set::Walls];
        near.traverse(&walls, of, [moving(), still], results)?;
        let applied = self.apply_rates(dt);
        self.own(applied)
    }

    /// Changes the compressions by their rates over `dt`, and computes the quantities that depend
    /// on them; with `dt` = 0 only the latter.
    fn apply_rates(&mut self, dt: f64) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let fluid = Compressed {
            moving: &mut arrays.moving,
            before: &mut arrays.kept,
            pressed: &mut arrays.pressed,
            rates: &arrays.rates,
            wall_rates: &arrays.wall_rates,
            count: self.count,
        };
        let partials = Partials {
            values: &mut arrays.partials,
            slot: KICK_SLOTS,
        };
        self.kernels.compress(fluid, dt as f32, partials)
    }

    fn evaluate_forces(&mut self, config: &Config) -> Result<(), Error> {
        let passes = Passes::of(config);
        let near = unlocked(&mut self.near);
        let (arrays, count, walls) = (&mut *self.arrays, self.count, self.walls);
        let compression = arrays.moving.slice((4 * count).min(3)..4 * count);
        let results = &mut arrays.extrapolated.slice_mut(0..2 * walls);
        let (of, sources) = ([Set::Walls, Set::Fluid], field(compression, 4));
        near.traverse(&passes.extrapolation(), of, [None, sources], results)?;
        let pressed = (self.kernels).press_walls(&mut arrays.still, &arrays.extrapolated, walls);
        if let Err(error) = pressed {
            near.give_up(&error.to_string());
            return Err(error);
        }
        let pressed = || field(arrays.pressed.slice(0..5 * count), 5);
        let results = &mut arrays.forces.slice_mut(0..4 * count);
        let of = [Set::Fluid; 2];
        near.traverse(&passes.forces(), of, [pressed(), pressed()], results)?;
        let still = field(arrays.still.slice(0..3 * walls), 3);
        let results = &mut arrays.wall_forces.slice_mut(0..4 * count);
        let of = [Set::Fluid, Set::Walls];
        near.traverse(&passes.wall_forces(), of, [pressed(), still], results)
    }

    /// Adds up the sums of the step and starts to copy them to the host.
    fn ask_totals(&mut self) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let totals = &mut arrays.totals.as_view_mut();
        self.kernels.step_totals(&arrays.partials, totals)?;
        let totals = arrays.totals.as_view();
        (self.kernels.queue())
            .start_host_copy(STEP, &totals, &mut arrays.found)
            .map_err(Error::from)
    }

    /// The totals of all ranks, which `add` computes from those of this rank, and the result of
    /// `add`.
    fn totals_found<R>(
        &mut self,
        add: impl FnOnce(&mut N, &mut [f64], &mut [f64]) -> Result<R, Error>,
    ) -> Result<([f64; TOTALS], Result<R, Error>), Error> {
        let found = self.arrays.found.read().map_err(Error::from);
        let found = found.map(|found| *found.first_chunk().unwrap_or(&[0.0; TOTALS]));
        let totals: [f64; TOTALS] = self.own(found)?;
        let is_maximum = |slot: usize| STEP_MAXIMA >> slot & 1 != 0;
        let (mut sums, mut maxima) = (totals, [f64::INFINITY; TOTALS]);
        for slot in (0..TOTALS).filter(|slot| is_maximum(*slot)) {
            (sums[slot], maxima[slot]) = (0.0, -totals[slot]);
        }
        let added = add(unlocked(&mut self.near), &mut sums, &mut maxima);
        let total = |slot| match is_maximum(slot) {
            true => -maxima[slot],
            false => sums[slot],
        };
        Ok((std::array::from_fn(total), added))
    }

    fn refuse_losses(&mut self, totals: &[f64], watch: Watch) -> Result<(), Error> {
        let lost = |kick: usize| totals[kick + KICK_SLOTS - 1] > 0.0;
        if lost(0) {
            // Before it has changed its neighbours.
            let arrays = &mut *self.arrays;
            mem::swap(&mut arrays.moving, &mut arrays.kept);
        } else if !lost(SECOND_KICK) {
            return Ok(());
        }
        self.lost(watch)?.map_or(Ok(()), Err)
    }

    /// The lost particle with the smallest id as an error.
    fn lost(&self, watch: Watch) -> Result<Option<Error>, Error> {
        let lost = watch.inspect(&self.seen().fluid);
        let lost = self.near().first_lost(lost)?;
        Ok(lost.map(|lost| ErrorKind::Lost(Box::new(lost)).into()))
    }

    /// Sorts the particles into the order of the cells.
    fn sort(&mut self) -> Result<(), Error> {
        self.usable()?;
        let arrays = &mut *self.arrays;
        let fluid = DeviceArrays {
            count: &mut self.count,
            positions: &mut arrays.position,
            columns: vec![
                (&mut arrays.moving, 4),
                (&mut arrays.forces, 4),
                (&mut arrays.wall_forces, 4),
            ],
            spare: &mut arrays.kept,
        };
        unlocked(&mut self.near).sort_fluid(fluid)?;
        self.seen.take();
        Ok(())
    }

    /// Gives the particle at `index` another velocity.
    fn write_velocity(&mut self, index: usize, velocity: Vec3) -> Result<(), Error> {
        self.usable()?;
        let mut place = self.arrays.moving.slice_mut(4 * index..4 * index + 3);
        (self.kernels.queue()).copy_to_device("a velocity", &velocity.to_array(), &mut place)?;
        self.seen.take();
        Ok(())
    }

    /// Number of fluid neighbours of every fluid particle.
    fn count_neighbors(&self) -> Result<Vec<u32>, Error> {
        self.with_notes(|notes| {
            if notes.neighbors.len() < self.count {
                notes.neighbors = arrays::zeros(self.kernels.queue(), self.count)?;
            }
            let mut counts = notes.neighbors.slice_mut(0..self.count);
            self.near().count_neighbors(&mut counts)?;
            self.copy(
                "counts of neighbours",
                &notes.neighbors.slice(0..self.count),
            )
        })
    }

    /// Energies and momentum.
    fn measure(&self) -> Result<Sums, Error> {
        let arrays = &self.arrays;
        let totals = self.with_notes(|notes| {
            self.kernels.measure(
                &arrays.position,
                &arrays.moving,
                self.count,
                &mut notes.partials,
                &mut notes.totals.as_view_mut(),
            )?;
            self.copy("energies", &notes.totals.as_view())
        });
        let mut totals = self.own(totals)?;
        self.near().together(&mut totals, &mut [])?;
        Ok(Sums {
            squares: totals[0],
            heights: totals[1],
            internal: totals[2],
            momentum: DVec3::new(totals[3], totals[4], totals[5]),
        })
    }

    /// Particles by bin of the front.
    fn tally(&self, rule: &FrontRule) -> Result<Vec<u64>, Error> {
        let counts = self.with_notes(|notes| {
            (self.kernels.queue())
                .memset_zeros(&mut notes.bins)
                .map_err(unallocated)?;
            let position = &self.arrays.position;
            self.kernels
                .tally(position, self.count, rule, &mut notes.bins)?;
            self.copy("counts of the front", &notes.bins.as_view())
        });
        let counts = self.own(counts)?;
        // Whole numbers far below 2⁵³ are exact.
        let mut counts = collected(counts.into_iter().map(f64::from), "counts of the front")?;
        self.near().together(&mut counts, &mut [])?;
        let counts = counts.into_iter().map(|count| count as u64);
        Ok(collected(counts, "counts of the front")?)
    }

    /// Sums of probes over the fluid.
    fn read_probes(&self, config: &Config, probes: &Probes) -> Result<Vec<ProbeSums>, Error> {
        self.usable()?;
        // Arrays that a panic leaves behind are overwritten before they are read.
        let mut kept = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let fluid = (&*self.arrays, self.count);
        let sums = ProbeArrays::sums(&mut kept, &self.kernels, fluid, config, probes);
        let mut sums = self.own(sums)?;
        self.near().together(sums.as_flattened_mut(), &mut [])?;
        Ok(sums)
    }

    /// Runs `ask` with the arrays for sums.
    fn with_notes<T>(&self, ask: impl FnOnce(&mut Notes) -> Result<T, Error>) -> Result<T, Error> {
        self.usable()?;
        // Arrays that a panic leaves behind are overwritten before they are read.
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = match &mut *notes {
            Some(notes) => notes,
            none => none.insert(Notes::of(self.kernels.queue(), self.count)?),
        };
        ask(notes)
    }

    /// Starts to copy the fluid of this rank as it is now; `None` if it has none.
    fn depart(&self) -> Result<Option<Flight>, Error> {
        self.usable()?;
        let near = self.near();
        let flights = match self.flights.get() {
            Some(flights) => flights,
            None => {
                let flights = Flights::new(near.engine())?;
                self.flights.get_or_init(|| flights)
            }
        };
        Ok(match self.count {
            0 => None,
            count => Some(flights.start(near.engine(), &self.arrays, &near.ids()?, count)?),
        })
    }

    fn copy<T: DeviceValue + Clone + Default>(
        &self,
        what: &'static str,
        values: &DeviceView<'_, T>,
    ) -> Result<Vec<T>, Error> {
        self.usable()?;
        let mut copy = filled(values.len(), T::default(), what)?;
        let queue = self.kernels.queue();
        queue.copy_to_host(what, values, &mut copy)?;
        Ok(copy)
    }

    fn report_fault(&mut self) -> Result<(), Error> {
        let fault = self.fault.get_mut().unwrap_or_else(PoisonError::into_inner);
        fault.take().map_or(Ok(()), Err)
    }
}

/// The neighbourhood, through an exclusive reference.
fn unlocked<N>(near: &mut Mutex<N>) -> &mut N {
    near.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers of particles, `stride` of each, as a traversal takes them.
fn field(values: DeviceView<'_, f32>, stride: usize) -> Option<DeviceField<'_>> {
    Some(DeviceField::new(values, stride))
}

fn kick_of(totals: &[f64]) -> Kick {
    Kick {
        viscous: totals[0],
        rubbed: totals[1],
        work: totals[2],
        wall_force: DVec3::new(totals[3], totals[4], totals[5]),
        max_speed: totals[6].sqrt(),
        max_acceleration: totals[7].sqrt(),
    }
}

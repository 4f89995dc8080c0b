//! A fluid that lives on a GPU: every stage of a step runs there, and particles come to the host
//! only when they are looked at.
//!
//! The host starts the kernels of a whole step and then waits once, for the sums of the budgets and
//! the length of the next step.

mod arrays;
mod body;
mod flight;
mod kernels;
mod probes;

use std::{
    mem,
    sync::{Mutex, OnceLock, PoisonError},
};

use glam::{DVec3, Vec3};
use nearfield::{
    device::{
        DeviceEngine, DeviceField, Progress,
        cudarc::driver::{CudaView, DeviceRepr},
    },
    prelude::PointSetId,
};

use nearfield_grid::{OfProcess, memory::filled};

use crate::{
    Config, Error, ErrorKind,
    advance::{Advance, Compression, Kick},
    budget::Sums,
    front::FrontRule,
    guard::Watch,
    matter::Matter,
    particles::Particles,
    passes::{Passes, Rates},
    probes::{ProbeSums, Probes},
    walls::Walls,
};
use arrays::{Arrays, KEPT, Notes, PARTICLES, STEP, failed, unallocated};
use flight::Flights;
use kernels::{Compressed, KICK_SLOTS, Kernels, Kicked, Partials, SECOND_KICK, TOTALS};
use probes::ProbeArrays;

/// Fluid and walls on a GPU.
pub(crate) struct DeviceBody {
    engine: DeviceEngine,
    fluid: PointSetId,
    wall: PointSetId,
    /// As what the engine holds: neither used nor dropped in a forked child.
    kernels: OfProcess<Kernels>,
    arrays: OfProcess<Arrays>,
    count: usize,
    walls: usize,
    /// The particles as they were downloaded since the last step.
    seen: OnceLock<Matter>,
    /// As they were downloaded before.
    last: Matter,
    /// Why a download failed; the next step reports it.
    fault: Mutex<Option<Error>>,
    /// How copies for frames leave, made with the first of them.
    flights: OfProcess<OnceLock<Flights>>,
    /// Arrays for sums beside those of a step, made at the first such sum.
    notes: OfProcess<Mutex<Option<Notes>>>,
    /// Arrays for probes, made when they are first read.
    probes: OfProcess<Mutex<Option<ProbeArrays>>>,
}

impl DeviceBody {
    /// Brings fluid and walls to GPU `number` and evaluates the first forces.
    pub(crate) fn new(config: &Config, number: u32, matter: Matter) -> Result<Self, Error> {
        let builder = DeviceEngine::builder(config.kernel().support());
        let builder = match (config.domain.low, config.domain.high) {
            (low, high) if low.is_finite() && high.is_finite() => {
                builder.within(low.to_array(), high.to_array())
            }
            _ => builder,
        };
        let mut engine = builder.on_gpu(number)?;
        let Matter { fluid, walls } = &matter;
        let arrays = Arrays::of(&engine, fluid, walls)?;
        let fluid_set = engine.add_point_set(&arrays.position.as_view())?;
        let wall_set = engine.add_point_set(&arrays.wall_position.slice(0..3 * walls.len()))?;
        let mut body = Self {
            kernels: OfProcess::new(Kernels::load(&engine, config)?),
            engine,
            fluid: fluid_set,
            wall: wall_set,
            arrays: OfProcess::new(arrays),
            count: fluid.len(),
            walls: walls.len(),
            seen: OnceLock::new(),
            last: matter,
            fault: Mutex::default(),
            flights: OfProcess::new(OnceLock::new()),
            notes: OfProcess::new(Mutex::default()),
            probes: OfProcess::new(Mutex::default()),
        };
        body.sort_walls()?;
        body.apply_rates(0.0)?;
        loop {
            body.evaluate_forces(config)?;
            match body.engine.finish()? {
                Progress::Valid => return Ok(body),
                Progress::Repeat => {}
            }
        }
    }

    /// A step of `dt` seconds.
    fn step(&mut self, config: &Config, dt: f64, watch: Watch) -> Result<Advance, Error> {
        self.engine.usable()?;
        self.report_fault()?;
        let _span = tracing::debug_span!("sph.device_step").entered();
        if let Some(seen) = self.seen.take() {
            self.last = seen;
        }
        let half = 0.5 * dt;
        self.kick(half, dt, 0)?;
        let (engine, arrays) = (&mut self.engine, &mut *self.arrays);
        engine.update(self.fluid, &arrays.position.as_view())?;
        let queue = engine.queue().clone();
        loop {
            self.compress(config, dt)?;
            self.evaluate_forces(config)?;
            self.kick(half, 0.0, SECOND_KICK)?;
            self.ask_totals()?;
            // The engine's wait is that for the totals too.
            let finished = self.engine.finish();
            let totals = *self.totals_found()?;
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
                    queue
                        .copy_on_device(
                            KEPT,
                            &arrays.kept.as_view(),
                            &mut arrays.moving.as_view_mut(),
                        )
                        .map_err(failed)?;
                }
            }
        }
    }

    /// Sums and maxima of the fluid now.
    fn look_at_kick(&mut self) -> Result<Kick, Error> {
        self.engine.usable()?;
        self.kick(0.0, 0.0, SECOND_KICK)?;
        Ok(kick_of(&self.totals()?[SECOND_KICK..]))
    }

    /// Kicks over `step` and drifts over `drift` seconds; the first kick of a step keeps the
    /// velocities after it.
    fn kick(&mut self, step: f64, drift: f64, slot: usize) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let kicked = Kicked {
            position: &mut arrays.position,
            moving: &mut arrays.moving,
            kept: (slot == 0).then_some(&mut arrays.kept),
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
        let (engine, arrays) = (&self.engine, &mut *self.arrays);
        let (moving, still) = (&arrays.moving, &arrays.still);
        engine
            .traverse(&fluid, self.fluid, self.fluid)
            .targets(DeviceField::new(moving.as_view(), 4))
            .sources(DeviceField::new(moving.as_view(), 4))
            .run_into(&mut arrays.rates.as_view_mut())?;
        engine
            .traverse(&walls, self.fluid, self.wall)
            .targets(DeviceField::new(moving.as_view(), 4))
            .sources(DeviceField::new(still.slice(0..3 * self.walls), 3))
            .run_into(&mut arrays.wall_rates.as_view_mut())?;
        self.apply_rates(dt)
    }

    /// Changes the compressions by their rates over `dt`; over 0, finds what follows from them.
    fn apply_rates(&mut self, dt: f64) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let fluid = Compressed {
            moving: &mut arrays.moving,
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
        let (engine, arrays) = (&self.engine, &mut *self.arrays);
        let compression = arrays.moving.slice(3..);
        let pressed = || DeviceField::new(arrays.pressed.as_view(), 5);
        engine
            .traverse(&passes.extrapolation(), self.wall, self.fluid)
            .sources(DeviceField::new(compression, 4))
            .run_into(&mut arrays.extrapolated.slice_mut(0..2 * self.walls))?;
        self.kernels
            .press_walls(&mut arrays.still, &arrays.extrapolated, self.walls)?;
        engine
            .traverse(&passes.forces(), self.fluid, self.fluid)
            .targets(pressed())
            .sources(pressed())
            .run_into(&mut arrays.forces.as_view_mut())?;
        engine
            .traverse(&passes.wall_forces(), self.fluid, self.wall)
            .targets(pressed())
            .sources(DeviceField::new(arrays.still.slice(0..3 * self.walls), 3))
            .run_into(&mut arrays.wall_forces.as_view_mut())?;
        Ok(())
    }

    /// Sums of the step, once it is done.
    fn totals(&mut self) -> Result<[f64; TOTALS], Error> {
        self.ask_totals()?;
        self.totals_found().copied()
    }

    /// Adds up the step's sums and starts to bring them to the host.
    fn ask_totals(&mut self) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let totals = &mut arrays.totals.as_view_mut();
        self.kernels
            .step_totals(self.count, &arrays.partials, totals)?;
        let (queue, totals) = (self.engine.queue(), arrays.totals.as_view());
        queue
            .start_host_copy(STEP, &totals, &mut arrays.found)
            .map_err(failed)
    }

    /// The totals that were asked for.
    fn totals_found(&mut self) -> Result<&[f64; TOTALS], Error> {
        let found = self.arrays.found.read().map_err(failed)?;
        Ok(found.first_chunk().unwrap_or(&[0.0; TOTALS]))
    }

    fn refuse_losses(&mut self, totals: &[f64], watch: Watch) -> Result<(), Error> {
        let lost = |kick: usize| totals[kick + KICK_SLOTS - 1] > 0.0;
        if lost(0) {
            // Before it did anything to its neighbours.
            let arrays = &mut *self.arrays;
            mem::swap(&mut arrays.moving, &mut arrays.kept);
        } else if !lost(SECOND_KICK) {
            return Ok(());
        }
        match watch.inspect(&self.seen().fluid) {
            Some(lost) => Err(ErrorKind::Lost(Box::new(lost)).into()),
            None => Ok(()),
        }
    }

    /// Brings the particles into the order of the cells.
    fn sort(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        let (engine, arrays, fluid) = (&mut self.engine, &mut *self.arrays, self.fluid);
        for channels in [
            &mut arrays.moving,
            &mut arrays.forces,
            &mut arrays.wall_forces,
        ] {
            engine.reorder(
                fluid,
                4,
                &channels.as_view(),
                &mut arrays.kept.as_view_mut(),
            )?;
            mem::swap(channels, &mut arrays.kept);
        }
        let mut sorted = arrays.kept.slice_mut(0..3 * self.count);
        engine.reorder(fluid, 3, &arrays.position.as_view(), &mut sorted)?;
        let mut position = arrays.position.as_view_mut();
        engine
            .queue()
            .copy_on_device("sorted positions", &sorted.as_view(), &mut position)
            .map_err(failed)?;
        engine.reorder(
            fluid,
            1,
            &arrays.id.as_view(),
            &mut arrays.spare_id.as_view_mut(),
        )?;
        mem::swap(&mut arrays.id, &mut arrays.spare_id);
        self.seen.take();
        Ok(engine.update(fluid, &arrays.position.as_view())?)
    }

    /// Brings the walls into the order of the cells, once.
    fn sort_walls(&mut self) -> Result<(), Error> {
        let (engine, arrays, wall) = (&mut self.engine, &mut *self.arrays, self.wall);
        if self.walls == 0 {
            return Ok(());
        }
        let stream = engine.stream().clone();
        for values in [&mut arrays.wall_position, &mut arrays.still] {
            let mut sorted = stream.alloc_zeros(values.len()).map_err(unallocated)?;
            engine.reorder(wall, 3, &values.as_view(), &mut sorted.as_view_mut())?;
            *values = sorted;
        }
        Ok(engine.update(wall, &arrays.wall_position.as_view())?)
    }

    /// Gives the particle at `index` another velocity.
    fn write_velocity(&mut self, index: usize, velocity: Vec3) -> Result<(), Error> {
        self.engine.usable()?;
        let mut place = self.arrays.moving.slice_mut(4 * index..4 * index + 3);
        self.engine
            .queue()
            .copy_to_device("a velocity", &velocity.to_array(), &mut place)
            .map_err(failed)?;
        self.seen.take();
        Ok(())
    }

    /// Number of fluid neighbours of every fluid particle.
    fn count_neighbors(&self) -> Result<Vec<u32>, Error> {
        self.with_notes(|notes| {
            let counts = &mut notes.neighbors.as_view_mut();
            self.engine
                .count_neighbors(self.fluid, self.fluid, counts)?;
            self.copy("counts of neighbours", &notes.neighbors.as_view())
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
        })?;
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
            (self.engine.stream())
                .memset_zeros(&mut notes.bins)
                .map_err(unallocated)?;
            let position = &self.arrays.position;
            self.kernels
                .tally(position, self.count, rule, &mut notes.bins)?;
            self.copy("counts of the front", &notes.bins.as_view())
        })?;
        Ok(counts.into_iter().map(u64::from).collect())
    }

    /// Sums of probes over the fluid.
    fn read_probes(&self, config: &Config, probes: &Probes) -> Result<Vec<ProbeSums>, Error> {
        self.engine.usable()?;
        // As the notes: written anew before they are read.
        let mut kept = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let (engine, fluid) = (&self.engine, (&*self.arrays, self.count));
        ProbeArrays::sums(&mut kept, engine, &self.kernels, fluid, config, probes)
    }

    /// Runs `ask` with the arrays for sums.
    fn with_notes<T>(&self, ask: impl FnOnce(&mut Notes) -> Result<T, Error>) -> Result<T, Error> {
        self.engine.usable()?;
        // Arrays that a panic leaves behind are written anew before they are read.
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = match &mut *notes {
            Some(notes) => notes,
            none => none.insert(Notes::of(&self.engine, self.count)?),
        };
        ask(notes)
    }

    /// Starts to copy the fluid as it is now; what is returned waits for it, on any thread.
    fn depart(&self) -> Result<impl FnOnce() -> Result<Particles, Error> + Send + use<>, Error> {
        self.engine.usable()?;
        let flights = match self.flights.get() {
            Some(flights) => flights,
            None => {
                let flights = Flights::new(&self.engine)?;
                self.flights.get_or_init(|| flights)
            }
        };
        let flight = flights.start(&self.engine, &self.arrays, self.count)?;
        Ok(|| flight.land())
    }

    fn seen(&self) -> &Matter {
        self.seen.get_or_init(|| match self.look() {
            Ok(seen) => seen,
            Err(error) => {
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                *fault = Some(error);
                self.last.clone()
            }
        })
    }

    fn look(&self) -> Result<Matter, Error> {
        let arrays = &self.arrays;
        let moving = self.copy(PARTICLES, &arrays.moving.as_view())?;
        let still = self.copy(PARTICLES, &arrays.still.slice(0..3 * self.walls))?;
        let [moving, still] = [moving.chunks_exact(4), still.chunks_exact(3)];
        Ok(Matter {
            fluid: Particles {
                position: vectors(&self.copy(PARTICLES, &arrays.position.as_view())?),
                velocity: moving
                    .clone()
                    .map(|one| Vec3::new(one[0], one[1], one[2]))
                    .collect(),
                compression: moving.map(|one| one[3]).collect(),
                id: {
                    let ids = self.copy(PARTICLES, &arrays.id.as_view())?;
                    ids.into_iter().map(u64::from).collect()
                },
            },
            walls: Walls {
                position: vectors(
                    &self.copy(PARTICLES, &arrays.wall_position.slice(0..3 * self.walls))?,
                ),
                volume: still.clone().map(|one| one[0]).collect(),
                pressure: still.clone().map(|one| one[1]).collect(),
                roughness: still.map(|one| one[2]).collect(),
            },
        })
    }

    fn copy<T: DeviceRepr + Clone + Default>(
        &self,
        what: &'static str,
        values: &CudaView<'_, T>,
    ) -> Result<Vec<T>, Error> {
        self.engine.usable()?;
        let mut copy = filled(values.len(), T::default(), what)?;
        let queue = self.engine.queue();
        queue
            .copy_to_host(what, values, &mut copy)
            .map_err(failed)?;
        Ok(copy)
    }

    fn report_fault(&mut self) -> Result<(), Error> {
        let fault = self.fault.get_mut().unwrap_or_else(PoisonError::into_inner);
        fault.take().map_or(Ok(()), Err)
    }
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

fn vectors(values: &[f32]) -> Vec<Vec3> {
    values.chunks_exact(3).map(Vec3::from_slice).collect()
}

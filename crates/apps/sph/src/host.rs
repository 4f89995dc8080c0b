//! A fluid in host memory. Its neighbourhood runs the traversals, on the device it was built for.

use glam::Vec3;
use nearfield_grid::{
    memory::{copied, make_room},
    parallel::PoolLoops,
};
use rayon::prelude::*;

use crate::{
    Config, Error, ErrorKind, FrontRule, LostParticle, Moment, PendingMoment, Running, Tait,
    advance::{Advance, Compression, Kick},
    body::Body,
    budget::Sums,
    guard::{Inspected, Lost, Watch},
    matter::Matter,
    neighborhood::{Accumulator, Column, Neighborhood, Set, Spread},
    particles::{Forces, Particles, Take},
    parts::{AT_A_TIME, KickOfPart, added, blank, compress, of_all},
    passes::{Passes, Rates},
    probes::{ProbeSums, Probes},
    walls::Walls,
};

/// Fluid and walls in the host's memory: all of them, or those of a rank.
pub(crate) struct HostBody<N> {
    near: N,
    matter: Matter,
    pressed: PressedFluid,
    results: Results,
    /// Fluid and wall particles of all ranks.
    counts: [usize; 2],
}

/// The fluid as forces see it, but for its velocities.
#[derive(Default)]
struct PressedFluid {
    /// ρ₀/ρ
    volume: Vec<f32>,
    /// p/ρ₀
    pressure: Vec<f32>,
}

/// Results of the traversals, one per particle of the set that asked.
#[derive(Default)]
struct Results {
    rates: Vec<(f32, f32)>,
    wall_rates: Vec<f32>,
    extrapolated: Vec<(f32, f32)>,
    forces: Vec<(Vec3, f32)>,
    wall_forces: Vec<(Vec3, f32)>,
}

impl Results {
    /// Makes room for as many particles as there are now; the values are those of no particle.
    fn fit(&mut self, matter: &Matter) -> Result<(), Error> {
        fn fit<T: Copy>(values: &mut Vec<T>, len: usize, blank: T) -> Result<(), Error> {
            make_room(values, len, "rates and forces of particles")?;
            values.resize(len, blank);
            Ok(())
        }
        let (fluid, walls) = (matter.fluid.len(), matter.walls.len());
        fit(&mut self.rates, fluid, (0.0, 0.0))?;
        fit(&mut self.wall_rates, fluid, 0.0)?;
        fit(&mut self.extrapolated, walls, (0.0, 0.0))?;
        fit(&mut self.forces, fluid, (Vec3::ZERO, 0.0))?;
        fit(&mut self.wall_forces, fluid, (Vec3::ZERO, 0.0))
    }
}

/// The outcome of a kick on this rank.
struct Kicked<S> {
    /// Viscous and rubbed energy, the work of the walls, and their force.
    sums: [S; 6],
    /// The largest speed and acceleration.
    largest: [f64; 2],
    /// The lost particles of this rank, if any.
    lost: Option<LostParticle>,
}

/// The rest of a kick: done with the particles of a part as soon as their velocities are changed,
/// while they are in a cache.
#[derive(Clone, Copy)]
struct Then<'a> {
    /// Seconds over which they drift.
    drift: Option<f32>,
    /// Looks for lost ones.
    watch: Option<&'a Watch>,
}

impl PressedFluid {
    /// Makes room for `len` particles.
    fn fit(&mut self, len: usize) -> Result<(), Error> {
        for values in [&mut self.volume, &mut self.pressure] {
            make_room(values, len, "pressures of particles")?;
            values.resize(len, 0.0);
        }
        Ok(())
    }

    /// Finds what follows from the compressions.
    fn follow(&mut self, water: Tait, compressions: &[f32]) -> Result<(), Error> {
        self.fit(compressions.len())?;
        press_fluid(compressions, [&mut self.volume, &mut self.pressure], water);
        Ok(())
    }
}

/// Relative volumes and specific pressures of fluid.
fn press_fluid(compressions: &[f32], [volume, pressure]: [&mut [f32]; 2], water: Tait) {
    let pressed = volume.iter_mut().zip(pressure);
    for ((volume, pressure), &s) in pressed.zip(compressions) {
        (*volume, *pressure) = (1.0 / (1.0 + s), water.specific_pressure(s));
    }
}

/// Gives the walls the pressures that were extrapolated: sums of weights, and of pressures with
/// them.
fn press<N: Neighborhood>(near: &N, walls: &mut Walls, extrapolated: &[(f32, f32)], water: Tait) {
    near.on_workers(extrapolated.len(), || {
        let parts = walls.volume.par_chunks_mut(AT_A_TIME);
        let parts = parts.zip(walls.pressure.par_chunks_mut(AT_A_TIME));
        parts
            .zip(extrapolated.par_chunks(AT_A_TIME))
            .run(|((volume, pressure), extrapolated)| {
                let walls = volume.iter_mut().zip(pressure);
                for ((volume, pressure), &(weight, sum)) in walls.zip(extrapolated) {
                    // A wall without water has none; water at its surface does not pull.
                    *pressure = if weight > 0.0 {
                        (sum / weight).max(0.0)
                    } else {
                        0.0
                    };
                    *volume = water.relative_volume(*pressure);
                }
            });
    });
}

impl<N: Neighborhood> HostBody<N> {
    /// Places this rank's share of the particles, and evaluates the first forces, or takes those of
    /// a checkpoint: these are of velocities in the middle of its last step.
    pub(crate) fn new(
        config: &Config,
        near: N,
        matter: Matter,
        wall_ids: &[u64],
    ) -> Result<Self, Error> {
        let mut body = Self {
            near,
            pressed: PressedFluid::default(),
            matter,
            results: Results::default(),
            counts: [0; 2],
        };
        let mut forces = body.matter.forces.take();
        let Matter { fluid, walls, .. } = &mut body.matter;
        let mut all = [fluid.len() as u64, walls.len() as u64];
        body.near.count_together(&mut all)?;
        body.counts = all.map(|count| count as usize);
        let ids = copied(&fluid.id, "numbers of particles")?;
        let mut arrays = fluid.arrays();
        let columns = forces.as_mut().map(Forces::columns);
        arrays.columns.extend(columns.into_iter().flatten());
        body.near.place(Set::Fluid, &ids, arrays)?;
        body.near.place(Set::Walls, wall_ids, walls.arrays())?;
        body.results.fit(&body.matter)?;
        let compressions = &body.matter.fluid.compression;
        body.pressed.follow(config.water_state(), compressions)?;
        body.press_walls(config)?;
        match forces {
            Some(Forces { fluid, walls }) => {
                (body.results.forces, body.results.wall_forces) = (fluid, walls);
            }
            None => body.evaluate_forces(config)?,
        }
        Ok(body)
    }

    /// Changes the velocities by the forces over `dt`, and does what is to come `then`. Sums and
    /// maxima are those of this rank.
    fn kick(&mut self, config: &Config, dt: f64, then: Then<'_>) -> Kicked<N::Sum> {
        let _span = tracing::debug_span!("sph.kick").entered();
        let (gravity, step) = (config.gravity, dt as f32);
        let (results, fluid) = (&self.results, &mut self.matter.fluid);
        let parts = self.near.on_workers(fluid.id.len(), || {
            let walls = results.wall_forces.par_chunks(AT_A_TIME);
            let forces = results.forces.par_chunks(AT_A_TIME).zip(walls);
            let compression = fluid.compression.par_chunks(AT_A_TIME);
            let state = (fluid.position.par_chunks_mut(AT_A_TIME)).zip(compression);
            let parts = (fluid.velocity.par_chunks_mut(AT_A_TIME)).zip(state.zip(forces));
            let parts = parts.enumerate();
            let parts = parts.map(|(number, (velocity, ((position, compression), forces)))| {
                let (forces, walls) = forces;
                let kicked = KickOfPart::make(velocity, [forces, walls], gravity, step);
                if let Some(seconds) = then.drift {
                    for (position, &velocity) in position.iter_mut().zip(&*velocity) {
                        *position += seconds * velocity;
                    }
                }
                let part = Inspected {
                    first: number * AT_A_TIME,
                    position,
                    velocity,
                    compression,
                };
                let lost = then.watch.and_then(|watch| watch.inspect_some(part));
                (kicked, lost)
            });
            parts.listed()
        });
        let (mut speed, mut acceleration, mut lost) = (0.0f32, 0.0f32, None::<Lost>);
        for (part, of_part) in &parts {
            speed = speed.max(part.largest[0]);
            acceleration = acceleration.max(part.largest[1]);
            lost = match (lost, *of_part) {
                (Some(one), Some(other)) => Some(Lost {
                    first: one.first,
                    count: one.count + other.count,
                }),
                (one, other) => one.or(other),
            };
        }
        let described = |(watch, lost): (&Watch, Lost)| watch.describe(&self.matter.fluid, lost);
        Kicked {
            sums: added(parts.into_iter().map(|(part, _)| part.sums)),
            largest: [speed, acceleration].map(|square| f64::from(square).sqrt()),
            lost: then.watch.zip(lost).map(described),
        }
    }

    /// The sums and maxima of a kick over all ranks, with other `sums`. Refuses to go on when a
    /// particle of any rank is lost.
    fn together<const M: usize>(
        &self,
        kicked: Kicked<N::Sum>,
        sums: [N::Sum; M],
    ) -> Result<(Kick, [f64; M]), Error> {
        let whole = (self.near).whole((kicked.sums, sums), kicked.largest, kicked.lost)?;
        if let Some(lost) = whole.lost {
            return Err(ErrorKind::Lost(Box::new(lost)).into());
        }
        let ([viscous, rubbed, work, x, y, z], others) = whole.sums;
        let [max_speed, max_acceleration] = whole.maxima;
        let kick = Kick {
            viscous,
            rubbed,
            work,
            wall_force: [x, y, z].into(),
            max_speed,
            max_acceleration,
        };
        Ok((kick, others))
    }

    /// Tells the neighbourhood where the particles are; some may have come from other ranks then,
    /// and their forces are not known.
    fn follow(&mut self) -> Result<(), Error> {
        let Matter { fluid, walls, .. } = &mut self.matter;
        self.near.follow(fluid.arrays(), walls.arrays())?;
        self.results.fit(&self.matter)
    }

    /// Changes the compressions by the motion of the drift over `dt` just made. Returns the energy
    /// that diffused and the work of the walls on this rank.
    fn compress(&mut self, config: &Config, dt: f64) -> Result<[N::Sum; 2], Error> {
        let _span = tracing::debug_span!("sph.compress").entered();
        let Rates { fluid, walls } = Passes::of(config).rates(dt);
        let (near, results, matter) = (&mut self.near, &mut self.results, &self.matter);
        let (moving, still) = (matter.fluid.moving(), &matter.walls.volume);
        let of = [Set::Fluid, Set::Fluid];
        near.traverse(&fluid, of, moving, moving, &mut results.rates)?;
        let (of, velocity) = ([Set::Fluid, Set::Walls], &matter.fluid.velocity);
        near.traverse(&walls, of, velocity, still, &mut results.wall_rates)?;
        self.apply_rates(config, dt)
    }

    /// Changes the compressions by their rates over `dt`, and finds what follows from them.
    fn apply_rates(&mut self, config: &Config, dt: f64) -> Result<[N::Sum; 2], Error> {
        let (water, step) = (config.water_state(), dt as f32);
        let (results, compression) = (&self.results, &mut self.matter.fluid.compression);
        self.pressed.fit(compression.len())?;
        let PressedFluid { volume, pressure } = &mut self.pressed;
        let parts = self.near.on_workers(compression.len(), || {
            let walls = results.wall_rates.par_chunks(AT_A_TIME);
            let rates = results.rates.par_chunks(AT_A_TIME).zip(walls);
            let pressed =
                (volume.par_chunks_mut(AT_A_TIME)).zip(pressure.par_chunks_mut(AT_A_TIME));
            let parts = (compression.par_chunks_mut(AT_A_TIME)).zip(rates.zip(pressed));
            let parts = parts.map(|(compression, (rates, (volume, pressure)))| {
                let sums = compress::<N::Sum>(compression, rates, water, step);
                press_fluid(compression, [volume, pressure], water);
                sums
            });
            parts.listed()
        });
        Ok(added(parts))
    }

    /// A step, as [`advance`](Body::advance) makes it.
    fn step(&mut self, config: &Config, dt: f64, watch: &Watch) -> Result<Advance, Error> {
        // Two messages between ranks, whatever there is to add up: each takes as long as several
        // of their ways through the network.
        let mut then = Then {
            drift: Some(dt as f32),
            watch: Some(watch),
        };
        let first = self.kick(config, 0.5 * dt, then);
        let (first, []) = self.together(first, [])?;
        self.follow()?;
        let compressed = self.compress(config, dt)?;
        let span = tracing::debug_span!("sph.forces").entered();
        self.press_walls(config)?;
        self.evaluate_forces(config)?;
        drop(span);
        then.drift = None;
        let second = self.kick(config, 0.5 * dt, then);
        let (second, [diffused, work]) = self.together(second, compressed)?;
        Ok(Advance {
            first,
            compression: Compression { diffused, work },
            second,
        })
    }

    /// Gives the walls the pressure of the fluid at the present positions.
    fn press_walls(&mut self, config: &Config) -> Result<(), Error> {
        let (passes, water) = (Passes::of(config), config.water_state());
        let (near, results, matter) = (&mut self.near, &mut self.results, &mut self.matter);
        let (kernel, of) = (passes.extrapolation(), [Set::Walls, Set::Fluid]);
        let compression = &matter.fluid.compression;
        near.traverse(&kernel, of, (), compression, &mut results.extrapolated)?;
        press(near, &mut matter.walls, &results.extrapolated, water);
        Ok(())
    }

    /// Evaluates all forces at the present positions. The pressures of the fluid are those of its
    /// compressions already, and those of the walls follow them.
    fn evaluate_forces(&mut self, config: &Config) -> Result<(), Error> {
        let passes = Passes::of(config);
        let (near, results, matter) = (&mut self.near, &mut self.results, &mut self.matter);
        let pressed = (
            &matter.fluid.velocity[..],
            &self.pressed.volume[..],
            &self.pressed.pressure[..],
        );
        let (kernel, of) = (passes.forces(), [Set::Fluid, Set::Fluid]);
        near.traverse(&kernel, of, pressed, pressed, &mut results.forces)?;
        let (kernel, of) = (passes.wall_forces(), [Set::Fluid, Set::Walls]);
        let still = matter.walls.still();
        near.traverse(&kernel, of, pressed, still, &mut results.wall_forces)
    }
}

impl<N: Neighborhood> Body for HostBody<N> {
    fn advance(&mut self, config: &Config, dt: f64, watch: Watch) -> Result<Advance, Error> {
        let points = self.matter.fluid.len() + self.matter.walls.len();
        match self.near.workers() {
            Some(workers) => workers.install_for(points, || self.step(config, dt, &watch)),
            None => self.step(config, dt, &watch),
        }
    }

    fn observe(&mut self, config: &Config) -> Result<Kick, Error> {
        let none = Then {
            drift: None,
            watch: None,
        };
        let kicked = self.kick(config, 0.0, none);
        Ok(self.together(kicked, [])?.0)
    }

    fn sort_fluid(&mut self) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.sort").entered();
        let mut arrays = self.matter.fluid.arrays();
        let forces = [&mut self.results.forces, &mut self.results.wall_forces];
        arrays.columns.extend(forces.map(Column::Pairs));
        self.near.sort_fluid(arrays)
    }

    fn counts(&self) -> [usize; 2] {
        self.counts
    }

    fn fluid(&self) -> &Particles {
        &self.matter.fluid
    }

    fn walls(&self) -> &Walls {
        &self.matter.walls
    }

    fn gathered_walls(&self) -> Result<Walls, Error> {
        let mut walls = self.matter.walls.try_clone()?;
        self.near.gather(Set::Walls, None, walls.arrays())?;
        Ok(walls)
    }

    fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        self.near.neighbor_counts()
    }

    fn sums(&self, config: &Config) -> Result<Sums, Error> {
        let fluid = &self.matter.fluid;
        let (water, gravity) = (config.water_state(), config.gravity.as_dvec3());
        let parts = of_all(&self.near, fluid.len(), |part| {
            let mut sums = blank::<N::Sum, 6>();
            let [squares, heights, internal, x, y, z] = &mut sums;
            for i in part {
                let velocity = fluid.velocity[i].as_dvec3();
                squares.add(velocity.length_squared());
                x.add(velocity.x);
                y.add(velocity.y);
                z.add(velocity.z);
                heights.add(gravity.dot(fluid.position[i].as_dvec3()));
                internal.add(water.internal_energy(fluid.compression[i]));
            }
            sums
        });
        let sums = added(parts);
        let [squares, heights, internal, x, y, z] = self.near.totals(sums)?;
        Ok(Sums {
            squares,
            heights,
            internal,
            momentum: [x, y, z].into(),
        })
    }

    fn probe(&self, config: &Config, probes: &Probes) -> Result<Vec<ProbeSums>, Error> {
        let mut sums = Vec::new();
        make_room(&mut sums, probes.len(), "sums of probes")?;
        for sum in probes.sums(config, &self.matter.fluid)? {
            sums.push(self.near.totals(sum)?);
        }
        Ok(sums)
    }

    fn front(&self, rule: &FrontRule) -> Result<Option<f32>, Error> {
        let mut counts = rule.counts(&self.matter.fluid.position)?;
        self.near.count_together(&mut counts)?;
        Ok(rule.front_of(&counts))
    }

    fn moment(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error> {
        let mut fluid = self.matter.fluid.try_clone()?;
        self.near.gather(Set::Fluid, None, fluid.arrays())?;
        let moment = Moment::new(*config, fluid, self.counts[0], step, time);
        Ok(PendingMoment::ready(moment))
    }

    fn piece(&self, config: &Config, step: u64, time: f64) -> Result<PendingMoment, Error> {
        let fluid = self.matter.fluid.try_clone()?;
        let moment = Moment::new(*config, fluid, self.counts[0], step, time);
        Ok(PendingMoment::ready(moment))
    }

    fn hand_over(&self, _: &Config, take: Take<'_>) -> Result<(), Error> {
        let Results {
            forces,
            wall_forces,
            ..
        } = &self.results;
        if self.near.ranks() == 1 {
            const WHAT: &str = "a copy of the forces";
            let forces = Forces {
                fluid: copied(forces, WHAT)?,
                walls: copied(wall_forces, WHAT)?,
            };
            return take(0, &self.matter.fluid, Some(&forces));
        }
        let ranks = [self.near.rank(), self.near.ranks()];
        let forces = Some([&forces[..], &wall_forces[..]]);
        (self.matter.fluid).in_parts(forces, self.counts[0], ranks, take, |ids, part| {
            self.near.gather(Set::Fluid, Some(ids), part)
        })
    }

    fn meet(&self) -> Result<(), Error> {
        self.near.count_together(&mut [0])
    }

    fn set_velocity(&mut self, id: u64, velocity: Vec3) -> Result<(), Error> {
        let found = self.matter.fluid.id.iter().position(|&other| other == id);
        let mut owners = [u64::from(found.is_some())];
        self.near.count_together(&mut owners)?;
        if owners[0] == 0 {
            let last = self.counts[0] as u64 - 1;
            return Err(ErrorKind::NoSuchParticle { id, last }.into());
        }
        if let Some(index) = found {
            self.matter.fluid.velocity[index] = velocity;
        }
        Ok(())
    }

    fn running(&self) -> Running {
        self.near.running()
    }

    fn rank(&self) -> usize {
        self.near.rank()
    }

    fn give_up(&self, reason: &str) {
        self.near.give_up(reason);
    }

    fn spread(&self) -> Result<Option<Spread>, Error> {
        self.near.spread()
    }
}

//! Ranks whose data live on a GPU, which they share, against one engine on the CPU. Without a GPU
//! the tests do nothing, or fail if `NEARFIELD_REQUIRE_GPU=1`.

mod common;

use common::{
    Precise,
    by_address::ByAddress,
    filtered::{geometry_of_one, geometry_of_ranks},
    filters::draw,
    on_gpu::{Case, Own, cases, compare, download, has_gpu, search},
    within,
};
use nearfield::{
    Engine, ListOrder,
    device::{DeviceBuffer, DeviceField, Progress},
    kernels::SphDensity,
};
use nearfield_ranks::{
    Error, ErrorKind, RankedEngine, device::DeviceRankedEngine, transport::threads,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::Level,
    random::Random,
};
use std::{
    sync::{Barrier, Mutex},
    time::Duration,
};

/// Numbers of ranks that share the GPU.
const RANKS: [usize; 4] = [1, 2, 3, 5];

/// How messages get from rank to rank.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Messages {
    HandedOver,
    Bytes,
    /// As with an MPI that knows GPUs.
    ByAddress,
}

/// Numbers of ranks with all kinds of messages.
fn with_all_messages<const N: usize>(ranks: [usize; N]) -> impl Iterator<Item = (usize, Messages)> {
    let all = |ranks| {
        [Messages::HandedOver, Messages::Bytes, Messages::ByAddress]
            .map(|messages| (ranks, messages))
    };
    ranks.into_iter().flat_map(all)
}

fn start(
    messages: Messages,
    case: &Case,
    transport: threads::ThreadTransport,
) -> Result<DeviceRankedEngine, Error> {
    let builder = RankedEngine::builder(case.radius).periodic(case.periodic);
    match messages {
        Messages::HandedOver => DeviceRankedEngine::start(builder, transport),
        Messages::Bytes => DeviceRankedEngine::start(builder, transport.in_bytes()),
        Messages::ByAddress => {
            let builder = builder.gpu_messages(true);
            DeviceRankedEngine::start(builder, ByAddress(transport))
        }
    }
}

fn on_ranks<R: Send>(
    ranks: usize,
    body: impl Fn(threads::ThreadTransport) -> Result<R, Error> + Sync,
) -> Vec<R> {
    common::on_ranks(ranks, body)
}

#[test]
fn lists_counts_and_sums_are_those_of_one_engine() {
    if !has_gpu() {
        return;
    }
    within(300, || {
        for case in cases() {
            for (ranks, messages) in with_all_messages(RANKS) {
                let found = on_ranks(ranks, |transport| {
                    let mut engine = start(messages, &case, transport)?;
                    let mut own = Own::give(&mut engine, &case.points)?;
                    let found = search(&mut engine, &own, case.radius)?;
                    // Other domains, and the same neighbours.
                    engine.rebalance()?;
                    own.move_to(&mut engine, &case.points)?;
                    let again = search(&mut engine, &own, case.radius)?;
                    Ok((found, again))
                });
                let (first, second) = found.into_iter().unzip();
                compare(&case, ranks, first);
                compare(&case, ranks, second);
            }
        }
    });
}

#[test]
fn moving_clouds_keep_their_neighbours_and_fields() {
    if !has_gpu() {
        return;
    }
    within(300, || {
        for case in cases().into_iter().take(4) {
            for (ranks, messages) in with_all_messages([2, 3, 5]) {
                let found = on_ranks(ranks, |transport| {
                    let mut engine = start(messages, &case, transport)?;
                    let mut points = case.points.clone();
                    let mut own = Own::give(&mut engine, &points)?;
                    let (mut steps, mut migrations) = (Vec::new(), 0);
                    for step in 0..8 {
                        drift(&mut points, 0.4, step);
                        migrations += usize::from(own.move_to(&mut engine, &points)?);
                        steps.push(search(&mut engine, &own, case.radius)?);
                    }
                    assert!(migrations > 0, "points change their rank");
                    Ok(steps)
                });
                let mut moved = case.clone();
                for step in 0..8 {
                    drift(&mut moved.points, 0.4, step as u64);
                    let found = found.iter().map(|steps| steps[step].clone());
                    compare(&moved, ranks, found.collect());
                }
            }
        }
    });
}

#[test]
fn two_sets_find_each_other() {
    if !has_gpu() {
        return;
    }
    within(120, || {
        let fluid = Cloud::by_name("lattice", 4000, 3).unwrap().to_vec();
        let wall: Vec<[f32; 3]> = (0..400)
            .map(|k| [(k % 20) as f32, (k / 20) as f32, -0.5])
            .collect();
        let builder = Engine::builder(2.0)
            .list_order(ListOrder::Ascending)
            .threads(1);
        let mut one = builder.build().unwrap();
        let sets = [&fluid, &wall].map(|points| one.add_point_set(points).unwrap());
        one.find_neighbors().unwrap();
        for ranks in RANKS {
            let found = on_ranks(ranks, |transport| {
                let builder = RankedEngine::builder(2.0);
                let mut engine = DeviceRankedEngine::start(builder, transport)?;
                let mut own = [
                    Own::give(&mut engine, &fluid)?,
                    Own::give(&mut engine, &wall)?,
                ];
                // The second set may have divided space anew.
                own[0].move_to(&mut engine, &fluid)?;
                let [fluid, wall] = [own[0].set, own[1].set];
                loop {
                    engine.find_neighbors(fluid, wall)?;
                    if engine.finish()? == Progress::Valid {
                        break;
                    }
                }
                let lists = engine.lists_by_id(fluid, wall)?;
                let ids = engine.ids(fluid)?;
                let found = ids
                    .iter()
                    .enumerate()
                    .map(|(k, id)| (*id, lists.of(k).to_vec()));
                Ok(found.collect::<Vec<_>>())
            });
            let lists = one.neighbors(sets[0], sets[1]).unwrap();
            for (id, list) in found.into_iter().flatten() {
                let expected = lists.of(id as usize).iter().map(|j| u64::from(*j));
                assert_eq!(list, expected.collect::<Vec<_>>(), "{id} on {ranks} ranks");
            }
        }
    });
}

/// The refusal of a call: rank, id of the point, and message.
fn refusal<R: std::fmt::Debug>(result: Result<R, Error>) -> (usize, Option<u64>, String) {
    match result.unwrap_err().kind() {
        ErrorKind::Refused {
            rank,
            point,
            message,
        } => (*rank, point.map(|point| point.id), message.clone()),
        other => panic!("{other}"),
    }
}

#[test]
fn bad_input_of_one_rank_is_the_same_error_on_all() {
    if !has_gpu() {
        return;
    }
    within(120, || {
        let case = cases().swap_remove(0);
        let found = on_ranks(3, |transport| {
            let mut engine = start(Messages::HandedOver, &case, transport)?;
            let mut own = Own::give(&mut engine, &case.points)?;
            let mut errors = Vec::new();
            let mut bad = download(&engine, &own.positions);
            let ids = engine.ids(own.set)?;
            if engine.rank() == 1 {
                bad[3 * 5 + 1] = f32::NAN;
            }
            let bad = engine.upload(&bad)?;
            errors.push(refusal(engine.migrate(own.set, &bad.as_view())));
            assert!(errors[0].2.contains("point"), "{:?}", errors[0]);
            let short = 3 * (engine.points(own.set)?[0] - usize::from(engine.rank() == 2));
            let short = own.positions.slice(0..short);
            errors.push(refusal(engine.migrate(own.set, &short)));
            let mut sums = engine.zeros::<f32>(ids.len())?;
            let kernel = SphDensity::with_support(case.radius);
            let few = usize::from(engine.rank() == 1);
            let few = engine.upload(&vec![1.0f32; ids.len() - few])?;
            let traversal = engine.traverse(&kernel, own.set, own.set);
            let traversal = traversal.sources(DeviceField::new(few.as_view(), 1));
            errors.push(refusal(traversal.run_into(&mut sums.as_view_mut())));
            // All stands as before.
            let kept = search(&mut engine, &own, case.radius)?;
            own.move_to(&mut engine, &case.points)?;
            let again = search(&mut engine, &own, case.radius)?;
            let id = (engine.rank() == 1).then(|| ids[5]);
            Ok((errors, id, kept, again))
        });
        let id = found[1].1;
        for (errors, ..) in &found {
            assert_eq!(*errors, found[0].0);
            assert_eq!((errors[0].0, errors[0].1), (1, id));
            assert_eq!((errors[1].0, errors[2].0), (2, 1));
        }
        compare(
            &case,
            3,
            found.iter().map(|found| found.2.clone()).collect(),
        );
        compare(
            &case,
            3,
            found.iter().map(|found| found.3.clone()).collect(),
        );
    });
}

#[test]
fn what_ranks_on_the_device_do_not_have_is_refused() {
    if !has_gpu() {
        return;
    }
    within(120, || {
        let settings = [
            RankedEngine::builder(1.0).deterministic(true),
            RankedEngine::builder(1.0).lists(nearfield::ListKind::Half),
            RankedEngine::builder(1.0).radii(nearfield::RadiusRule::Gather),
            RankedEngine::builder(1.0).cutoffs(&[[1.0, 0.5], [0.5, 0.0]]),
            RankedEngine::builder(1.0).nearest(3),
            RankedEngine::builder(1.0).device(nearfield::Device::Cpu),
            RankedEngine::builder(-1.0),
            RankedEngine::builder(1.0).device(nearfield::Device::Gpu(1000)),
        ];
        for settings in settings {
            let refused = threads::run(2, |transport| {
                // One rank alone asks for it.
                let settings = match nearfield_ranks::transport::Transport::rank(&transport) {
                    1 => settings.clone(),
                    _ => RankedEngine::builder(1.0).device(nearfield::Device::Gpu(0)),
                };
                DeviceRankedEngine::start(settings, transport).map(drop)
            });
            for refused in refused {
                assert_eq!(refusal(refused.unwrap()).0, 1, "{settings:?}");
            }
        }
    });
}

#[test]
fn ranks_that_take_longer_get_fewer_points() {
    if !has_gpu() {
        return;
    }
    within(120, || {
        let case = cases().swap_remove(0);
        for ranks in [2, 3] {
            let found = on_ranks(ranks, |transport| {
                let mut engine = start(Messages::HandedOver, &case, transport)?;
                let mut own = Own::give(&mut engine, &case.points)?;
                let seconds = Duration::from_secs(1 + engine.rank() as u64);
                assert!(engine.balance_by(own.set, seconds, 100)?);
                own.move_to(&mut engine, &case.points)?;
                assert!(!engine.balance_by(own.set, Duration::from_secs(1), 100)?);
                let points = engine.points(own.set)?[0];
                Ok((points, search(&mut engine, &own, case.radius)?))
            });
            let (points, found): (Vec<usize>, Vec<_>) = found.into_iter().unzip();
            assert!(points[0] > points[ranks - 1], "{points:?}");
            compare(&case, ranks, found);
        }
    });
}

#[test]
fn lists_without_room_are_refused_until_the_search_is_repeated() {
    if !has_gpu() {
        return;
    }
    within(120, || {
        let mut case = cases().swap_remove(0);
        let sparse = case.points.clone();
        let points = case.points.iter_mut().flatten();
        points.for_each(|x| *x *= 0.4);
        for ranks in [1, 3] {
            let found = on_ranks(ranks, |transport| {
                let mut engine = start(Messages::HandedOver, &case, transport)?;
                let mut own = Own::give(&mut engine, &sparse)?;
                search(&mut engine, &own, case.radius)?;
                // Fifteen times as many neighbours, for which there is no room.
                own.move_to(&mut engine, &case.points)?;
                engine.find_neighbors(own.set, own.set)?;
                let refused = refusal(engine.lists_by_id(own.set, own.set));
                assert!(refused.2.contains("finish"), "{}", refused.2);
                search(&mut engine, &own, case.radius)
            });
            compare(&case, ranks, found);
        }
    });
}

#[test]
fn memory_that_is_short_is_the_same_error_on_all() {
    if !has_gpu() {
        return;
    }
    within(240, || {
        let case = cases().swap_remove(0);
        let (barrier, taken) = (Barrier::new(2), Mutex::new(Vec::<DeviceBuffer<u8>>::new()));
        let found = on_ranks(2, |transport| {
            let mut engine = start(Messages::HandedOver, &case, transport)?;
            let mut own = Own::give(&mut engine, &case.points)?;
            search(&mut engine, &own, case.radius)?;
            let many = vec![[0.0f32; 3]; 6_000_000];
            let many = engine.upload(many.as_flattened())?;
            barrier.wait();
            if engine.rank() == 0 {
                let stream = engine.engine().stream();
                for _ in 0..64 {
                    stream.synchronize().unwrap();
                    let [free, _] = stream.context().memory().unwrap();
                    let Some(more) = free.checked_sub(96 << 20).filter(|more| *more > 1 << 20)
                    else {
                        break;
                    };
                    let mut taken = taken.lock().unwrap();
                    // SAFETY: it is never read.
                    taken.extend(unsafe { stream.alloc::<u8>(more - more / 16) });
                }
            }
            barrier.wait();
            let error = refusal(engine.add_point_set(&many.as_view(), None));
            barrier.wait();
            if engine.rank() == 0 {
                taken.lock().unwrap().clear();
                engine.engine().stream().synchronize().unwrap();
            }
            barrier.wait();
            own.move_to(&mut engine, &case.points)?;
            Ok((error, search(&mut engine, &own, case.radius)?))
        });
        assert_eq!(found[0].0, found[1].0);
        let message = &found[0].0.2;
        assert!(message.to_lowercase().contains("memory"), "{message}");
        compare(&case, 2, found.into_iter().map(|found| found.1).collect());
    });
}

#[cfg(feature = "dam-break")]
mod solver {
    //! The SPH solver on ranks that share a GPU against the one of a single GPU.

    use super::{has_gpu, within};
    use glam::Vec3;
    use nearfield::Device;
    use nearfield_ranks::{
        RankedEngine,
        dam_break::neighborhood_on_gpus,
        device::DeviceRankedEngine,
        transport::{Transport, threads},
    };
    use nearfield_sph::{
        Config, Dimensions, Domain, Energy, Error, ErrorKind, FrontRule, Loss, Probes, Simulation,
        SimulationBuilder,
        scene::{self, Top},
    };

    /// Columns of fluid particles along each axis.
    const COLUMN: [i32; 3] = [12, 10, 16];

    fn config(sort_every: u64) -> Config {
        Config {
            domain: Domain {
                low: Vec3::splat(-1.0),
                high: Vec3::splat(6.0),
            },
            sort_every,
            ..Config::water(Dimensions::Three, 0.1, 2.0)
        }
    }

    /// A column that falls apart at once: it is faster the higher it is.
    fn scene(builder: SimulationBuilder) -> SimulationBuilder {
        let space = Dimensions::Three;
        let fluid = scene::block(space, [0; 3], COLUMN, 0.1).unwrap();
        let tank = [30, COLUMN[1], 30];
        let walls = scene::tank(space, tank, Top::Closed, 3, 0.1).unwrap();
        let velocities: Vec<Vec3> = fluid.iter().map(|x| Vec3::X * 3.0 * x.z).collect();
        builder
            .fluid(&fluid)
            .velocities(&velocities)
            .rough_walls(&walls)
    }

    fn on_rank(transport: impl Transport + 'static, sort_every: u64) -> Result<Simulation, Error> {
        let config = config(sort_every);
        let builder = Simulation::builder_on(config, transport.rank(), transport.ranks())?;
        let settings = RankedEngine::builder(config.kernel().support());
        let engine = DeviceRankedEngine::start(settings.device(Device::Gpu(0)), transport);
        let engine = engine.map_err(Error::elsewhere)?;
        scene(builder).build_on_gpus(neighborhood_on_gpus(engine))
    }

    /// The outcomes of all ranks, which all succeed.
    fn on_ranks<R: Send>(
        ranks: usize,
        sort_every: u64,
        body: impl Fn(Simulation) -> Result<R, Error> + Sync,
    ) -> Vec<R> {
        let outcomes = threads::run(ranks, |transport| body(on_rank(transport, sort_every)?));
        let outcomes = outcomes.into_iter();
        outcomes.map(|outcome| outcome.unwrap().unwrap()).collect()
    }

    /// Values after some steps, by id.
    #[derive(Debug)]
    struct FinalState {
        positions: Vec<Vec3>,
        velocities: Vec<Vec3>,
        compressions: Vec<f32>,
        counts: u64,
        energy: Energy,
        front: f32,
        pressure: f64,
        time: f64,
        /// Numbers of particles of this rank over time.
        own: Vec<usize>,
    }

    fn look(mut simulation: Simulation, steps: u64) -> Result<FinalState, Error> {
        let mut own = Vec::new();
        for _ in 0..steps {
            own.push(simulation.positions().len());
            simulation.step_at_most(2e-3)?;
            assert_eq!(simulation.len() as i32, COLUMN.iter().product::<i32>());
        }
        let rule = FrontRule {
            share: 0.01,
            low: 0.0,
            high: 3.0,
        };
        let probes = Probes {
            points: vec![glam::DVec3::new(0.5, 0.5, 0.2)],
            columns: Vec::new(),
        };
        let counts = simulation.neighbor_counts()?;
        assert_eq!(counts.len(), simulation.positions().len());
        let moment = simulation.moment()?.wait()?;
        let mut by_id: Vec<usize> = (0..moment.ids().len()).collect();
        by_id.sort_by_key(|at| moment.ids()[*at]);
        let ids = by_id.iter().map(|at| moment.ids()[*at]);
        assert!(ids.eq(0..by_id.len() as u64), "each particle once");
        let part = simulation.piece()?.wait()?;
        assert_eq!(part.positions(), simulation.positions());
        assert_eq!(part.ids(), simulation.ids());
        let readings = simulation.probe(&probes)?;
        Ok(FinalState {
            positions: by_id.iter().map(|at| moment.positions()[*at]).collect(),
            velocities: by_id.iter().map(|at| moment.velocities()[*at]).collect(),
            compressions: by_id.iter().map(|at| moment.compressions()[*at]).collect(),
            counts: counts.iter().map(|count| u64::from(*count)).sum(),
            energy: simulation.energy()?,
            front: simulation.front(&rule)?.unwrap(),
            pressure: readings.pressures[0],
            time: simulation.time(),
            own,
        })
    }

    /// The largest distance, as a share of the largest of `expected`.
    fn apart(found: &[Vec3], expected: &[Vec3]) -> f32 {
        let largest = expected.iter().map(|x| x.length()).fold(0.0, f32::max);
        let apart = found.iter().zip(expected).map(|(a, b)| a.distance(*b));
        apart.fold(0.0, f32::max) / largest
    }

    #[test]
    fn ranks_on_a_gpu_move_the_fluid_as_one_gpu_does() {
        if !has_gpu() {
            return;
        }
        within(300, || {
            const STEPS: u64 = 50;
            let one = scene(Simulation::builder(config(16))).device(Device::Gpu(0));
            let one = look(one.build().unwrap(), STEPS).unwrap();
            assert!(one.own.iter().all(|own| *own == one.positions.len()));
            for ranks in [1, 2, 3] {
                for sort_every in [0, 7] {
                    let mut all = on_ranks(ranks, sort_every, |simulation| look(simulation, STEPS));
                    let first = all.remove(0);
                    let name = format!("{ranks} ranks, sorted every {sort_every}");
                    assert_eq!(first.positions.len(), one.positions.len(), "{name}");
                    assert!((first.time - one.time).abs() < 1e-4 * one.time, "{name}");
                    let distance = apart(&first.positions, &one.positions);
                    assert!(distance < 1e-3, "{name}: positions {distance}");
                    let distance = apart(&first.velocities, &one.velocities);
                    assert!(distance < 1e-2, "{name}: velocities {distance}");
                    let pairs = first.compressions.iter().zip(&one.compressions);
                    let differ = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(differ < 1e-3, "{name}: compressions {differ}");
                    let (here, there) = (&first.energy, &one.energy);
                    let scale = there.mechanical().abs();
                    for (what, a, b) in [
                        ("kinetic", here.kinetic, there.kinetic),
                        ("potential", here.potential, there.potential),
                        ("internal", here.internal, there.internal),
                        ("viscous", here.viscous_loss, there.viscous_loss),
                        ("friction", here.friction_loss, there.friction_loss),
                        ("diffusion", here.diffusion_loss, there.diffusion_loss),
                        ("walls", here.wall_work, there.wall_work),
                    ] {
                        assert!((a - b).abs() < 1e-4 * scale, "{name}, {what}: {a} and {b}");
                        assert!(b == 0.0 || a != 0.0, "{name}: {what} was not booked");
                    }
                    assert!((first.front - one.front).abs() < 1e-3, "{name}");
                    let differ = (first.pressure - one.pressure).abs();
                    assert!(differ < 1e-2 * one.pressure, "{name}: pressures {differ}");
                    let mut counts = first.counts;
                    let mut migrations = 0;
                    for other in &all {
                        assert!(other.positions.is_empty(), "{name}: moments are on rank 0");
                        let sums = (other.energy, other.front, other.time);
                        assert_eq!(sums, (first.energy, first.front, first.time), "{name}");
                        counts += other.counts;
                        migrations += other.own.windows(2).filter(|own| own[0] != own[1]).count();
                    }
                    let apart = counts.abs_diff(one.counts) as f64 / one.counts as f64;
                    assert!(apart < 1e-3, "{name}: {counts} and {}", one.counts);
                    assert!(
                        ranks == 1 || migrations > 0,
                        "{name}: none changes its rank"
                    );
                }
            }
        });
    }

    #[test]
    fn a_lost_particle_is_the_same_error_on_all_ranks() {
        if !has_gpu() {
            return;
        }
        within(120, || {
            let number = COLUMN.iter().product::<i32>() as u64;
            let found = on_ranks(3, 7, |mut simulation| {
                simulation.step()?;
                let none = simulation.set_velocity(number, Vec3::X).unwrap_err();
                assert!(
                    matches!(none.kind(), ErrorKind::NoSuchParticle { id, .. } if *id == number)
                );
                simulation.set_velocity(77, Vec3::splat(f32::NAN))?;
                simulation.set_velocity(12, Vec3::new(0.0, f32::NAN, 0.0))?;
                let lost = simulation.step().unwrap_err();
                let ErrorKind::Lost(lost) = lost.kind() else {
                    panic!("{lost}");
                };
                assert!(lost.velocity.y.is_nan() && lost.step == 2);
                Ok((lost.id, lost.reason, lost.count))
            });
            assert_eq!(found, vec![(12, Loss::NotANumber, 2); 3]);
            let found = on_ranks(2, 7, |mut simulation| {
                simulation.set_velocity(5, Vec3::new(0.0, 0.0, -1e5))?;
                let lost = (0..1000).find_map(|_| simulation.step().err());
                let lost = lost.expect("it leaves the domain");
                let ErrorKind::Lost(lost) = lost.kind() else {
                    panic!("{lost}");
                };
                Ok((lost.id, lost.reason, lost.count))
            });
            assert_eq!(found, vec![(5, Loss::LeftDomain, 1); 2]);
        });
    }

    #[test]
    fn a_checkpoint_goes_on_with_another_number_of_ranks() {
        if !has_gpu() {
            return;
        }
        within(120, || {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("state");
            on_ranks(3, 7, |mut simulation| {
                for _ in 0..10 {
                    simulation.step()?;
                }
                simulation.write_checkpoint(&path, b"")?;
                simulation.meet()
            });
            let ends = threads::run(2, |transport| {
                let checkpoint =
                    nearfield_sph::Checkpoint::read(&path, transport.rank(), transport.ranks())?;
                let config = config(7);
                let builder = Simulation::builder_on(config, transport.rank(), transport.ranks())?;
                let settings = RankedEngine::builder(config.kernel().support());
                let engine = DeviceRankedEngine::start(settings.device(Device::Gpu(0)), transport)
                    .map_err(Error::elsewhere)?;
                let builder = scene(builder).resume(checkpoint);
                let mut simulation = builder.build_on_gpus(neighborhood_on_gpus(engine))?;
                assert_eq!(simulation.steps(), 10);
                simulation.step()?;
                Ok::<_, Error>((
                    simulation.len(),
                    simulation.ids().len(),
                    simulation.spread()?,
                ))
            });
            let ends: Vec<_> = ends.into_iter().map(|end| end.unwrap().unwrap()).collect();
            let number = COLUMN.iter().product::<i32>() as usize;
            assert_eq!(ends[0].0, number);
            assert_eq!(ends.iter().map(|end| end.1).sum::<usize>(), number);
            let spread = ends[1].2.as_ref().unwrap();
            assert_eq!(spread.devices, ["gpu:0", "gpu:0"]);
            assert!(spread.halo_points > 0);
        });
    }
}

/// Host data of ranks whose engines are on the GPU alone, with filters, by the bits of one engine
/// on the CPU.
fn filtered_pairs<T: Precise>(seed: u64) {
    let (mut random, mut pairs) = (Random::new(seed), 0);
    for (number, case) in T::cases(Level::Quick).cases().enumerate() {
        let kinds = match number % 3 {
            0 => 1 << (number / 3 % 5),
            _ => random.below(32) as u32,
        };
        let drawn = draw(case, kinds, &mut random);
        let Some(expected) = geometry_of_one(case, &drawn) else {
            continue;
        };
        let (ranks, home) = ([2, 3, 1][number % 3], number / 3 % 2 == 0);
        let device = nearfield::Device::Gpu(0);
        let found = geometry_of_ranks(case, &drawn, (ranks, home), device);
        let name = format!("{} on {ranks} ranks, {home}, kinds {kinds:b}", case.name);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{name}: point {k}");
            pairs += found.len();
        }
    }
    assert!(pairs > 10_000, "{pairs} pairs");
}

#[test]
fn filtered_pairs_of_host_data_have_the_bits_of_one_engine() {
    if has_gpu() {
        within(600, || filtered_pairs::<f32>(31));
    }
}

#[test]
fn filtered_pairs_of_host_data_in_double_have_the_bits_of_one_engine() {
    if has_gpu() {
        within(600, || filtered_pairs::<f64>(32));
    }
}

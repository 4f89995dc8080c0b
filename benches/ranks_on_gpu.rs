//! A step on ranks whose data live on GPUs beside the same step of one engine on one GPU:
//! positions, and then lists, the density and a force, or some of these.
//!
//! `cargo bench -p nearfield-ranks --bench ranks_on_gpu -- --points 8e6 --ranks 2` times in turn
//! one engine with all points, and ranks that share the points; `--points-per-rank 4e6` says how
//! many each rank has instead. Ranks take the GPUs of the machine in turn, so on a machine of one
//! GPU they share it, and with a GPU for each, `--points-per-rank` is weak scaling: one engine then
//! has the points of one rank if `--weak` is given, and none is timed with `--apart`, where ranks
//! make their points themselves: `--apart --points 1e9 --turns 1`. `--work` names the work,
//! `lists,density` without it, and `--radius` is in spacings of the lattice. `--bytes` lets
//! messages pass through the host, as between processes, where ranks would hand arrays over. It
//! prints the least time of either, their ratio, where the time of the slowest rank went, the halo
//! points of all ranks as a share of the points, and how long it took at first to bring them to
//! their owners. With `--hidden` each rank prints how much of the time of its halos was hidden
//! behind work among its own points.

use nearfield::{
    device::{DeviceEngine, DeviceField, Progress},
    kernels::{SphDensity, SphForce, WendlandC2},
};
use nearfield_ranks::{Error, RankedEngine, device::DeviceRankedEngine, transport::threads};
use nearfield_testkit::{Cloud, cloud::part_of_lattice};
use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

/// Numbers of a point that the force reads: velocity, density, pressure and mass.
const STATE: [f32; 6] = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
/// Of these, those that it reads of a target.
const OF_TARGET: usize = 5;
/// Steps of either side in a turn; the first ones are not counted.
const STEPS: usize = 12;
const WARM_UP: usize = 4;
/// A step.
#[derive(Clone, Copy)]
struct Plan {
    /// In spacings of the lattice.
    radius: f32,
    lists: bool,
    density: bool,
    force: bool,
    /// Whether messages are bytes.
    bytes: bool,
    /// Whether ranks tell how much of their halos' time was hidden.
    hidden: bool,
}

/// The points of ranks.
#[derive(Clone, Copy)]
enum Points<'a> {
    /// Ranks take their shares of these.
    Given(&'a [[f32; 3]]),
    /// Each makes its own part of a lattice with this number of points.
    Parts(usize),
}

impl<'a> Points<'a> {
    fn of_rank(self, rank: usize, ranks: usize) -> Cow<'a, [[f32; 3]]> {
        match self {
            Points::Given(all) => {
                Cow::Borrowed(&all[all.len() * rank / ranks..all.len() * (rank + 1) / ranks])
            }
            Points::Parts(all) => Cow::Owned(part_of_lattice(all, rank, ranks, 1)),
        }
    }
}

impl Plan {
    fn kernels(&self) -> (SphDensity, SphForce) {
        let kernel = WendlandC2::with_support(self.radius);
        let force = SphForce {
            kernel,
            h: 0.5 * self.radius,
            alpha_c: 0.1,
        };
        (SphDensity { kernel }, force)
    }
}

/// The value behind a flag.
fn flag(name: &str, default: &str) -> String {
    let mut arguments = std::env::args_os().skip_while(|argument| argument.to_str() != Some(name));
    let value = arguments.nth(1).and_then(|value| value.into_string().ok());
    value.unwrap_or_else(|| default.to_owned())
}

/// The least time of a step of one engine.
fn one(plan: Plan, points: &[[f32; 3]]) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut engine = DeviceEngine::builder(plan.radius).on_gpu(0)?;
    let queue = engine.queue().clone();
    let positions = queue.array("positions", points.as_flattened())?;
    let masses = queue.array("masses", &vec![1.0f32; points.len()])?;
    let states = queue.array("states", vec![STATE; points.len()].as_flattened())?;
    let mut sums = queue.array("sums", &vec![0.0f32; points.len()])?;
    let mut forces = queue.array("forces", &vec![0.0f32; 3 * points.len()])?;
    let set = engine.add_point_set(&positions.as_view())?;
    let (density, force) = plan.kernels();
    let mut least = Duration::MAX;
    for step in 0..STEPS {
        let begin = Instant::now();
        engine.update(set, &positions.as_view())?;
        loop {
            if plan.lists {
                engine.find_neighbors(set, set)?;
            }
            if plan.density {
                let traversal = engine.traverse(&density, set, set);
                let masses = DeviceField::new(masses.as_view(), 1);
                traversal
                    .sources(masses)
                    .run_into(&mut sums.as_view_mut())?;
            }
            if plan.force {
                let states = || DeviceField::new(states.as_view(), STATE.len());
                let traversal = engine.traverse(&force, set, set);
                traversal
                    .targets(states().channels(OF_TARGET))
                    .sources(states())
                    .run_into(&mut forces.as_view_mut())?;
            }
            if engine.finish()? == Progress::Valid {
                break;
            }
        }
        if step >= WARM_UP {
            least = least.min(begin.elapsed());
        }
    }
    Ok(least)
}

/// Times of a step: positions, lists, sums, and waiting for the device.
type Phases = [Duration; 4];

/// Times of steps on a rank, and its halo points.
fn steps(
    plan: Plan,
    engine: &mut DeviceRankedEngine,
    points: Cow<'_, [[f32; 3]]>,
) -> Result<Run, Error> {
    let begin = Instant::now();
    let given = engine.upload(points.as_flattened())?;
    drop(points);
    let (set, moved) = engine.add_point_set(&given.as_view(), None)?;
    let positions = moved.bring(engine, &given.as_view(), 3)?;
    drop((moved, given));
    let set_up = begin.elapsed();
    let points = engine.points(set)?[0];
    // Work that is not done has arrays of nothing.
    let [of_density, of_force] =
        [plan.density, plan.force].map(|done| if done { points } else { 0 });
    let masses = engine.upload(&vec![1.0f32; of_density])?;
    let states = engine.upload(vec![STATE; of_force].as_flattened())?;
    let mut sums = engine.zeros::<f32>(of_density)?;
    let mut forces = engine.zeros::<f32>(3 * of_force)?;
    let (density, force) = plan.kernels();
    engine.time_halos(plan.hidden);
    let mut times = Vec::new();
    for _ in 0..STEPS {
        // All begin together.
        let _ = engine.finish()?;
        let mut phases = [Duration::ZERO; 4];
        let mut last = Instant::now();
        let mut phase = |at: usize| {
            phases[at] += last.elapsed();
            last = Instant::now();
        };
        let _ = engine.migrate(set, &positions.as_view())?;
        phase(0);
        loop {
            if plan.lists {
                engine.find_neighbors(set, set)?;
            }
            phase(1);
            if plan.density {
                let traversal = engine.traverse(&density, set, set);
                let traversal = traversal.sources(DeviceField::new(masses.as_view(), 1));
                traversal.run_into(&mut sums.as_view_mut())?;
            }
            if plan.force {
                let traversal = engine.traverse(&force, set, set);
                let states = || DeviceField::new(states.as_view(), STATE.len());
                traversal
                    .targets(states().channels(OF_TARGET))
                    .sources(states())
                    .run_into(&mut forces.as_view_mut())?;
            }
            phase(2);
            let progress = engine.finish()?;
            phase(3);
            if progress == Progress::Valid {
                break;
            }
        }
        times.push(phases);
    }
    if plan.hidden {
        let halos = engine.halo_times();
        println!(
            "rank {}: halos under way for {:.2} ms a step, {:.1} % of it hidden",
            engine.rank(),
            1e3 * halos.halo.as_secs_f64() / STEPS as f64,
            100.0 * halos.hidden()
        );
    }
    Ok(Run {
        set_up,
        times,
        halo: engine.points(set)?[1],
    })
}

/// Measured by a rank: the time in which its points came to their owners at first, those of steps,
/// and the number of its halo points.
struct Run {
    set_up: Duration,
    times: Vec<Phases>,
    halo: usize,
}

/// The phases of the fastest step of the slowest rank, the halo points of all, and the time in
/// which points came to their owners at first.
fn many(plan: Plan, points: Points<'_>, ranks: usize) -> Result<(Phases, usize, Duration), Error> {
    let found = threads::run(ranks, |transport| {
        let transport = if plan.bytes {
            transport.in_bytes()
        } else {
            transport
        };
        let settings = RankedEngine::builder(f64::from(plan.radius));
        let mut engine = DeviceRankedEngine::start(settings, transport)?;
        let rank = engine.rank();
        steps(plan, &mut engine, points.of_rank(rank, ranks))
    });
    let mut slowest: Vec<Phases> = vec![[Duration::ZERO; 4]; STEPS];
    let (mut halo, mut set_up) = (0, Duration::ZERO);
    let sum = |phases: &Phases| phases.iter().sum::<Duration>();
    for rank in found {
        let run = rank.map_err(Error::from)??;
        halo += run.halo;
        set_up = set_up.max(run.set_up);
        for (slowest, time) in slowest.iter_mut().zip(run.times) {
            if sum(&time) > sum(slowest) {
                *slowest = time;
            }
        }
    }
    let least = slowest.into_iter().skip(WARM_UP).min_by_key(sum);
    Ok((least.unwrap_or_default(), halo, set_up))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let has = |name| std::env::args().any(|flag| flag == name);
    let (weak, apart) = (has("--weak"), has("--apart"));
    let work = flag("--work", "lists,density");
    let works = |name| work.split(',').any(|other| other == name);
    let known = ["lists", "density", "force"];
    if let Some(other) = work.split(',').find(|name| !known.contains(name)) {
        return Err(format!("--work {other}: there are lists, density and force").into());
    }
    let plan = Plan {
        radius: flag("--radius", "2").parse()?,
        lists: works("lists"),
        density: works("density"),
        force: works("force"),
        bytes: has("--bytes"),
        hidden: has("--hidden"),
    };
    let each = flag("--points-per-rank", "0").parse::<f64>()? as usize;
    let all = flag("--points", "8e6").parse::<f64>()? as usize;
    let turns = flag("--turns", "2").parse::<usize>()?.max(1);
    for ranks in flag("--ranks", "2").split(',') {
        let ranks: usize = ranks.parse()?;
        let side = (if each == 0 { all } else { each * ranks } as f64)
            .cbrt()
            .round() as usize;
        let count = side.pow(3);
        let cloud = match apart {
            true => Vec::new(),
            false => Cloud::by_name("lattice", count, 1)?,
        };
        let points = match apart {
            true => Points::Parts(count),
            false => Points::Given(&cloud),
        };
        let alone = match weak && !apart {
            true => Cow::Owned(Cloud::by_name("lattice", count / ranks, 1)?),
            false => Cow::Borrowed(&cloud[..]),
        };
        let (mut least, mut phases) = (Duration::MAX, [Duration::MAX; 4]);
        let (mut halo, mut set_up) = (0, Duration::ZERO);
        for turn in 0..turns {
            if !apart {
                least = least.min(one(plan, &alone)?);
            }
            let found = many(plan, points, ranks)?;
            if turn == 0 || found.0.iter().sum::<Duration>() < phases.iter().sum() {
                phases = found.0;
            }
            (halo, set_up) = (found.1, found.2);
        }
        let ms = |time: Duration| 1e3 * time.as_secs_f64();
        let step: Duration = phases.iter().sum();
        let beside = if apart {
            String::new()
        } else {
            let ratio = step.as_secs_f64() / least.as_secs_f64();
            let points = alone.len();
            format!(
                "one engine with {points} {:.2} ms, ratio {ratio:.3}, ",
                ms(least)
            )
        };
        println!(
            "{work}, r = {}, {} points: {beside}{ranks} ranks {:.2} ms (positions {:.2}, lists \
             {:.2}, sums {:.2}, end {:.2}), halo {:.1} %, set up in {:.1} s",
            plan.radius,
            count,
            ms(step),
            ms(phases[0]),
            ms(phases[1]),
            ms(phases[2]),
            ms(phases[3]),
            100.0 * halo as f64 / count as f64,
            set_up.as_secs_f64(),
        );
    }
    Ok(())
}

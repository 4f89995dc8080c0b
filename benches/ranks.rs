//! A step on ranks beside the same step of one engine: positions, ascending lists and the density.
//!
//! `cargo bench -p nearfield-ranks --bench ranks -- --points 1e6 --ranks 1,2,4` times in turn one
//! engine with as many threads as there are ranks, and ranks of one thread each, which have
//! migrated. It prints the least time of either, their ratio, the halo points of all ranks as a
//! share of the points, and the least share of the halo's time that a rank hid behind work. With
//! `--weak` the number of points is that of each rank. `--side one` and `--side many` run one side,
//! to count its instructions. Ranks need as many idle cores.

use nearfield::{kernels::SphDensity, prelude::*};
use nearfield_ranks::{Error, RankedEngine, RankedSet, transport::threads};
use nearfield_testkit::Cloud;
use std::time::{Duration, Instant};

/// Search radius, in spacings of the lattice.
const RADIUS: f32 = 2.0;
/// Steps of either side in a turn; the first is not counted.
const STEPS: usize = 4;
/// Turns of both sides.
const TURNS: usize = 3;

/// The value behind a flag.
fn flag(name: &str, default: &str) -> String {
    let mut arguments = std::env::args_os().skip_while(|argument| argument.to_str() != Some(name));
    let value = arguments.nth(1).and_then(|value| value.into_string().ok());
    value.unwrap_or_else(|| default.to_owned())
}

/// The least time of a step of one engine.
fn one(points: &[[f32; 3]], threads: usize) -> Result<Duration, nearfield::Error> {
    let builder = Engine::builder(RADIUS).device(Device::Cpu).threads(threads);
    let mut engine = builder.list_order(ListOrder::Ascending).build()?;
    let set = engine.add_point_set(points)?;
    let (kernel, masses) = (SphDensity::with_support(RADIUS), vec![1.0; points.len()]);
    let mut times = Vec::new();
    for _ in 0..STEPS {
        let begin = Instant::now();
        engine.update(set, points)?;
        engine.find_neighbors()?;
        engine.traverse(&kernel, set, set).sources(&masses).run()?;
        times.push(begin.elapsed());
    }
    Ok(times.into_iter().skip(1).min().unwrap_or_default())
}

/// The least time of a step on ranks, the number of halo points of all ranks, and the least share
/// of the halo's time that was hidden.
fn many(points: &[[f32; 3]], ranks: usize) -> Result<(Duration, usize, f64), Error> {
    let found = threads::run(ranks, |transport| {
        let builder = RankedEngine::builder(RADIUS).device(Device::Cpu).threads(1);
        let mut engine = builder.build::<f32>(transport)?;
        let share =
            points.len() * engine.rank() / ranks..points.len() * (engine.rank() + 1) / ranks;
        let mine = &points[share];
        let set = engine.add_point_set(mine, None)?;
        let moved = engine.migrate(set, mine)?;
        let mine = moved.bring(&mut engine, mine)?;
        let times = steps(&mut engine, set, &mine)?;
        let hidden = engine.last_step().hidden();
        Ok::<_, Error>((times, engine.points(set)?[1], hidden))
    });
    let mut whole = (vec![Duration::ZERO; STEPS], 0, 1.0f64);
    for rank in found {
        let (times, halo, hidden) = rank.map_err(Error::from)??;
        whole.1 += halo;
        whole.2 = whole.2.min(hidden);
        for (slowest, time) in whole.0.iter_mut().zip(times) {
            *slowest = time.max(*slowest);
        }
    }
    Ok((
        whole.0.into_iter().skip(1).min().unwrap_or_default(),
        whole.1,
        whole.2,
    ))
}

/// Times of steps, each until all ranks agree.
fn steps(
    engine: &mut RankedEngine,
    set: RankedSet,
    mine: &[[f32; 3]],
) -> Result<Vec<Duration>, Error> {
    let (kernel, masses) = (SphDensity::with_support(RADIUS), vec![1.0; mine.len()]);
    let step = |_| {
        let begin = Instant::now();
        engine.update(set, mine)?;
        engine.find_neighbors()?;
        engine.traverse(&kernel, set, set).sources(&masses).run()?;
        Ok(begin.elapsed())
    };
    (0..STEPS).map(step).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let each = flag("--points", "1e6").parse::<f64>()? as usize;
    let (weak, side) = (
        std::env::args().any(|flag| flag == "--weak"),
        flag("--side", "both"),
    );
    for ranks in flag("--ranks", "1,2").split(',') {
        let ranks: usize = ranks.parse()?;
        let points = if weak { each * ranks } else { each };
        let points = Cloud::by_name("lattice", points, 1)?;
        let mut least = [Duration::MAX; 2];
        let (mut halo, mut hidden) = (0, 1.0f64);
        for _ in 0..TURNS {
            if side != "one" {
                let found = many(&points, ranks)?;
                least[1] = least[1].min(found.0);
                (halo, hidden) = (found.1, hidden.min(found.2));
            }
            if side != "many" {
                least[0] = least[0].min(one(&points, ranks)?);
            }
        }
        let [one, many] = least.map(|time| time.as_secs_f64());
        println!(
            "{} points: {ranks} threads of one engine {:.1} ms, {ranks} ranks {:.1} ms, ratio {:.3}, \
             halo {:.1} %, hidden {:.1} %",
            points.len(),
            1e3 * one,
            1e3 * many,
            many / one,
            100.0 * halo as f64 / points.len() as f64,
            100.0 * hidden,
        );
    }
    Ok(())
}

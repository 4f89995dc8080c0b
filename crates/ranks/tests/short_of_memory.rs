//! If one rank is out of memory, all ranks return the error, wherever it runs out, and the engines
//! work afterwards. A program of its own, whose allocator refuses what the test tells it to.

mod common;

use common::{Uneven, at, dealt, fields, neighbors_by_id, on_ranks, within};
use nearfield::RadiusRule;
use nearfield_ranks::{
    Error, ErrorKind, IdLists, Migration, RankedBuilder, RankedEngine, RankedSet,
    transport::Transport,
};
use nearfield_testkit::{Cloud, memory::Refusing};
use std::time::Duration;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// Requests from here on grow with the number of points. Those that grow with the number of ranks,
/// and texts, are smaller.
const GROWS: usize = 1536;
const RANKS: usize = 3;
const POINTS: usize = 2197;
const RADIUS: f32 = 1.5;

/// Where the points are after a number of steps; from step 100 on far outside of where they were.
fn moved(step: usize) -> Vec<[f32; 3]> {
    let points = Cloud::by_name("lattice", POINTS, 3).unwrap();
    let far = if step < 100 { 1.0 } else { 3.0 };
    let turn = |k: usize| 0.8 * ((k * (step + 1)) as f32 * 0.618).fract();
    let all = points.iter().enumerate();
    all.map(|(k, [x, y, z])| [far * x + turn(k), y + turn(k), z - turn(k)])
        .collect()
}

/// Lists of one engine by step and radius.
struct Truth([(usize, f32, Vec<Vec<u64>>); 4]);

impl Truth {
    fn new() -> Self {
        let of = |step, radius| (step, radius, neighbors_by_id(radius, &moved(step)));
        Self([of(0, RADIUS), of(1, RADIUS), of(100, RADIUS), of(0, 1.25)])
    }

    fn of(&self, step: usize, radius: f32) -> &[Vec<u64>] {
        let known = self
            .0
            .iter()
            .find(|known| (known.0, known.1) == (step, radius));
        &known.unwrap().2
    }
}

/// One rank, and what its call takes.
struct Cast {
    engine: RankedEngine,
    set: RankedSet,
    rank: usize,
    /// The positions of this rank's points by step, made where memory is plenty.
    positions: Vec<[f32; 3]>,
    ids: Vec<u64>,
    /// Every id with itself.
    pairs: Vec<[u64; 2]>,
    masses: (Vec<f32>, Vec<[f32; 3]>, Vec<f32>),
    migration: Option<Migration>,
    /// The ids before it.
    before: Vec<u64>,
}

impl Cast {
    /// Points that are dealt out to the ranks.
    fn new(
        transport: impl Transport + 'static,
        settings: impl Fn(RankedBuilder) -> RankedBuilder,
    ) -> Result<Self, Error> {
        let rank = transport.rank();
        let builder = settings(RankedEngine::builder(RADIUS).threads(1));
        let mut engine = builder.build(transport)?;
        let mine = dealt(POINTS, rank, RANKS);
        let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
        let positions = at(&moved(0), &mine);
        let set = engine.add_point_set(&positions, Some(&ids))?;
        let mut cast = Self {
            engine,
            set,
            rank,
            positions,
            ids,
            pairs: Vec::new(),
            masses: Default::default(),
            migration: None,
            before: Vec::new(),
        };
        cast.take(0)?;
        Ok(cast)
    }

    /// Makes positions and fields of a step, for the points that this rank has now.
    fn take(&mut self, step: usize) -> Result<(), Error> {
        let ids = self.engine.ids(self.set)?;
        let places: Vec<usize> = ids.iter().map(|id| *id as usize).collect();
        let (targets, velocities, masses) = fields(POINTS);
        self.positions = at(&moved(step), &places);
        self.masses = (
            at(&targets, &places),
            at(&velocities, &places),
            at(&masses, &places),
        );
        self.ids = ids.to_vec();
        self.pairs = ids.iter().map(|id| [*id; 2]).collect();
        Ok(())
    }

    /// Gives every rank the points that it owns at a step, or deals them out again.
    fn bring(&mut self, step: usize, home: bool) -> Result<(), Error> {
        if home {
            self.take(step)?;
            let _ = self.engine.migrate(self.set, &self.positions)?;
        } else {
            let mine = dealt(POINTS, self.rank, RANKS);
            let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
            let points = at(&moved(step), &mine);
            self.engine.replace(self.set, &points, Some(&ids))?;
        }
        self.take(step)
    }

    /// Whether the lists of this rank's points are those of one engine.
    fn finds(&mut self, expected: &[Vec<u64>]) -> Result<bool, Error> {
        let lists: IdLists = self.engine.lists_by_id(self.set, self.set)?;
        let ids = self.engine.ids(self.set)?.iter().enumerate();
        let mut same = ids.map(|(k, id)| lists.of(k) == expected[*id as usize]);
        Ok(same.all(|same| same))
    }

    /// The smallest of a number of every rank.
    fn least(&mut self, number: f64) -> Result<f64, Error> {
        let mut least = [number];
        self.engine.min(&mut least)?;
        Ok(least[0])
    }
}

/// A call of the engine while memory may be short.
struct Call {
    name: &'static str,
    settings: fn(RankedBuilder) -> RankedBuilder,
    /// Comes before it, where memory is plenty.
    prepare: fn(&mut Cast) -> Result<(), Error>,
    call: fn(&mut Cast) -> Result<(), Error>,
    /// Steps and radii that lists are of when it has failed.
    failed: &'static [(usize, f32)],
    /// The same when it has succeeded.
    done: (usize, f32),
}

/// Fails unless a call failed because memory was short on rank `who`.
fn assert_short(error: &Error, who: usize, name: &str) {
    match error.kind() {
        ErrorKind::Refused { rank, message, .. } => {
            assert_eq!(*rank, who, "{name}: {error}");
            assert!(message.contains("out of memory"), "{name}: {error}");
            assert!(message.contains("bytes are needed for"), "{name}: {error}");
        }
        ErrorKind::Fault(fault) => panic!("{name}: {fault}"),
        other => panic!("{name}: {other}"),
    }
}

/// Makes a call with more and more memory on rank `who` until it succeeds; returns the errors.
fn squeeze(
    call: &Call,
    who: usize,
    truth: &Truth,
    transport: impl Transport + 'static,
) -> Result<Vec<String>, Error> {
    let mut cast = Cast::new(transport, call.settings)?;
    let mut said = Vec::new();
    let mut granted = 0;
    loop {
        (call.prepare)(&mut cast)?;
        let (done, refused) = if cast.rank == who {
            MEMORY.while_short_here(GROWS, granted, || (call.call)(&mut cast))
        } else {
            ((call.call)(&mut cast), 0)
        };
        let short = cast.least(-(refused as f64))? != 0.0;
        if let Err(error) = &done {
            assert_short(error, who, call.name);
            said.push(error.to_string());
        }
        assert!(short || done.is_ok(), "{}: {done:?}", call.name);
        // Halos that could not be made are told by the next call. From then on all is well.
        if let Err(error) = cast.engine.find_neighbors() {
            assert!(
                short && done.is_ok(),
                "{}: {error} after {done:?}",
                call.name
            );
            assert_short(&error, who, call.name);
            said.push(error.to_string());
            cast.engine.find_neighbors()?;
        }
        let may_be = if done.is_ok() {
            &[call.done]
        } else {
            call.failed
        };
        let mut same = false;
        for (step, radius) in may_be {
            let found = cast.finds(truth.of(*step, *radius))?;
            same |= cast.least(f64::from(u8::from(found)))? == 1.0;
        }
        assert!(
            same,
            "{}: other neighbours with {granted} granted",
            call.name
        );
        if !short {
            return Ok(said);
        }
        granted += 1 + granted / 8;
    }
}

fn check(calls: &'static [Call]) {
    within(120, move || {
        let truth = Truth::new();
        for (number, call) in calls.iter().enumerate() {
            for who in [number % RANKS, (number + 1) % RANKS] {
                let all = on_ranks(RANKS, |transport| squeeze(call, who, &truth, transport));
                println!("{}, rank {who}: {} errors", call.name, all[0].len());
                assert!(all[0].len() >= 2, "{}: {:?}", call.name, all[0]);
                assert!(all.iter().all(|said| *said == all[0]), "{all:?}");
            }
        }
    });
}

fn plain(builder: RankedBuilder) -> RankedBuilder {
    builder
}

fn own(cast: &mut Cast) -> Result<(), Error> {
    cast.bring(0, true)
}

fn dealt_out(cast: &mut Cast) -> Result<(), Error> {
    cast.bring(0, false)
}

fn sum(cast: &mut Cast) -> Result<(), Error> {
    let (targets, velocities, masses) = &cast.masses;
    let traversal = cast.engine.traverse(&Uneven, cast.set, cast.set);
    let traversal = traversal.targets(targets.as_slice());
    let sums = traversal.sources((velocities, masses)).run()?;
    assert_eq!(sums.len(), targets.len());
    Ok(())
}

/// Excludes the images of every point, of which there are none.
fn exclude_itself(cast: &mut Cast) -> Result<(), Error> {
    cast.engine.exclude_pairs(cast.set, &cast.pairs)
}

const BEFORE: (usize, f32) = (0, RADIUS);
const MOVED: (usize, f32) = (1, RADIUS);
const FAR: (usize, f32) = (100, RADIUS);

#[test]
fn searches_and_sums() {
    check(&[
        Call {
            name: "find_neighbors",
            settings: plain,
            prepare: own,
            call: |cast| cast.engine.find_neighbors(),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "count_neighbors",
            settings: plain,
            prepare: dealt_out,
            call: |cast| cast.engine.count_neighbors(cast.set, cast.set).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "traverse",
            settings: plain,
            prepare: own,
            call: sum,
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "traverse, of points of other ranks",
            settings: plain,
            prepare: dealt_out,
            call: sum,
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "traverse, deterministic",
            settings: |builder| builder.deterministic(true),
            prepare: own,
            call: sum,
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "lists_by_id",
            settings: plain,
            prepare: |cast| {
                dealt_out(cast)?;
                cast.engine.find_neighbors()
            },
            call: |cast| cast.engine.lists_by_id(cast.set, cast.set).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "pair_geometry",
            settings: plain,
            prepare: dealt_out,
            call: |cast| cast.engine.pair_geometry(cast.set, cast.set).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "exclude_pairs",
            settings: plain,
            prepare: own,
            call: exclude_itself,
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "find_neighbors, with exclusions",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                exclude_itself(cast)
            },
            call: |cast| cast.engine.find_neighbors(),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "query",
            settings: plain,
            prepare: own,
            call: |cast| cast.engine.query(&cast.positions, cast.set).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "query, outside of all points",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                let far = |at: &mut [f32; 3]| at[0] += 100.0;
                cast.positions.iter_mut().for_each(far);
                Ok(())
            },
            call: |cast| cast.engine.query(&cast.positions, cast.set).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
    ]);
}

fn update(cast: &mut Cast) -> Result<(), Error> {
    cast.engine.update(cast.set, &cast.positions)
}

fn migrate(cast: &mut Cast) -> Result<(), Error> {
    let migration = cast.engine.migrate(cast.set, &cast.positions)?;
    cast.migration = Some(migration);
    Ok(())
}

#[test]
fn points_that_move() {
    check(&[
        Call {
            name: "update",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.take(1)
            },
            call: update,
            failed: &[BEFORE, MOVED],
            done: MOVED,
        },
        Call {
            name: "update, deterministic",
            settings: |builder| builder.deterministic(true),
            prepare: |cast| {
                own(cast)?;
                cast.take(1)
            },
            call: update,
            failed: &[BEFORE, MOVED],
            done: MOVED,
        },
        Call {
            name: "update, of points of other ranks",
            settings: plain,
            prepare: |cast| {
                dealt_out(cast)?;
                cast.take(1)
            },
            call: update,
            failed: &[BEFORE, MOVED],
            done: MOVED,
        },
        Call {
            name: "update, far away",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.take(100)
            },
            call: update,
            failed: &[BEFORE, FAR],
            done: FAR,
        },
        Call {
            name: "migrate",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.take(1)
            },
            call: migrate,
            failed: &[BEFORE, MOVED],
            done: MOVED,
        },
        Call {
            name: "migrate, with exclusions and targets",
            settings: plain,
            prepare: |cast| {
                dealt_out(cast)?;
                exclude_itself(cast)?;
                let all = vec![true; cast.ids.len()];
                cast.engine.set_target_mask(cast.set, &all)?;
                cast.take(1)
            },
            call: migrate,
            failed: &[BEFORE, MOVED],
            done: MOVED,
        },
        Call {
            name: "migrate, for the first time",
            settings: plain,
            prepare: dealt_out,
            call: migrate,
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "migrate, far away",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.take(100)
            },
            call: migrate,
            failed: &[BEFORE, FAR],
            done: FAR,
        },
        Call {
            name: "bring",
            settings: plain,
            prepare: |cast| {
                dealt_out(cast)?;
                migrate(cast)
            },
            call: |cast| {
                let Some(migration) = &cast.migration else {
                    return Ok(());
                };
                let brought = migration.bring(&mut cast.engine, &cast.positions)?;
                assert_eq!(brought.len(), cast.engine.ids(cast.set)?.len());
                Ok(())
            },
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "follow",
            settings: plain,
            prepare: |cast| {
                dealt_out(cast)?;
                cast.before = cast.ids.clone();
                migrate(cast)
            },
            call: |cast| {
                let Some(migration) = &cast.migration else {
                    return Ok(());
                };
                let mut following = migration.follow();
                following.add(&mut cast.positions).add(&mut cast.ids);
                let done = following.run(&mut cast.engine);
                match &done {
                    Ok(()) => assert_eq!(cast.ids, cast.engine.ids(cast.set)?),
                    Err(_) => assert!(cast.ids.iter().eq(&cast.before)),
                }
                done
            },
            failed: &[BEFORE],
            done: BEFORE,
        },
    ]);
}

/// Makes room in the tables of sets for one more, which does not grow with the points: that of a
/// set which was refused.
fn make_place(cast: &mut Cast) -> Result<(), Error> {
    let refused = cast.engine.add_point_set(&[[f32::NAN; 3]], None);
    assert!(refused.is_err());
    cast.engine.find_neighbors()
}

#[test]
fn sets_and_domains_that_change() {
    check(&[
        Call {
            name: "add_point_set",
            settings: plain,
            prepare: |cast| {
                make_place(cast)?;
                own(cast)
            },
            call: |cast| {
                let ids = Some(cast.ids.as_slice());
                cast.engine.add_point_set(&cast.positions, ids).map(drop)
            },
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "add_point_set, far away and without ids",
            settings: plain,
            prepare: |cast| {
                make_place(cast)?;
                own(cast)?;
                cast.take(100)
            },
            call: |cast| cast.engine.add_point_set(&cast.positions, None).map(drop),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "replace",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.take(1)
            },
            call: |cast| {
                let (engine, ids) = (&mut cast.engine, Some(cast.ids.as_slice()));
                engine.replace(cast.set, &cast.positions, ids)
            },
            failed: &[BEFORE],
            done: MOVED,
        },
        Call {
            name: "rebalance",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                // Uneven domains, so that there is something to move.
                let time = Duration::from_millis(1 + 2 * cast.rank as u64);
                for _ in 0..3 {
                    let _ = cast.engine.balance_by(time)?;
                }
                Ok(())
            },
            call: |cast| cast.engine.rebalance(),
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "balance",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.engine.rebalance()
            },
            call: |cast| {
                let time = Duration::from_millis(1 + 9 * cast.rank as u64);
                let _ = cast.engine.balance_by(time)?;
                let _ = cast.engine.balance_by(time)?;
                Ok(())
            },
            failed: &[BEFORE],
            done: BEFORE,
        },
        Call {
            name: "set_radius",
            settings: plain,
            prepare: |cast| {
                own(cast)?;
                cast.engine.set_radius(RADIUS)
            },
            call: |cast| cast.engine.set_radius(1.25),
            failed: &[BEFORE],
            done: (0, 1.25),
        },
        Call {
            name: "set_radii",
            settings: |builder| builder.radii(RadiusRule::Gather),
            prepare: |cast| {
                own(cast)?;
                cast.masses.0.fill(RADIUS);
                cast.engine.set_radii(cast.set, &cast.masses.0)?;
                cast.masses.0.fill(1.25);
                Ok(())
            },
            call: |cast| cast.engine.set_radii(cast.set, &cast.masses.0),
            failed: &[BEFORE],
            done: (0, 1.25),
        },
    ]);
}

//! Random sequences of calls of an engine on a GPU: sets that grow, shrink and vanish, points that
//! leave their cells, coordinates that are not finite, updates without a wait. After every valid
//! step the results are those of the CPU, and after every step no number outside the caller's
//! arrays has changed. New device memory is poisoned, so results that use it before it was written
//! show.
//!
//! `NEARFIELD_SEQUENCES` says how many sequences (60), `NEARFIELD_SEED` where they begin, and
//! `NEARFIELD_NO_CHILDREN=1` leaves out the strategies that launch kernels from kernels, which some
//! tools cannot follow.

use crate::{
    needs_gpu,
    on_gpu::{FromHost, start, upload},
};
use nearfield::{
    Device, Engine, Error, ErrorKind, ListKind, ListOrder, PointSetId,
    balance::{Policy, Strategy},
    device::{CpuHelper, DeviceBuffer, DeviceEngine, DeviceField, Progress, Stream},
    error::gpu::ErrorKind as GpuErrorKind,
    kernels::SphDensity,
};
use nearfield_testkit::random::Random;

/// Guard elements on either side of an output, which must not change.
const GUARD: usize = 4096;
const GUARD_COUNT: u32 = 0xABCD_1234;
const GUARD_SUM: f32 = -7.0;
/// Maximum number of tries until a step is valid.
const TRIES: usize = 6;

/// Settings of a sequence.
#[derive(Debug, Clone)]
struct Scene {
    radius: f32,
    periodic: [Option<f64>; 3],
    kind: ListKind,
    strategy: Strategy,
    subdivision: u32,
    sets: usize,
}

impl Scene {
    fn draw(random: &mut Random) -> Self {
        let radius = 10f64.powf(random.between(-2.0, 1.0)) as f32;
        let open = random.unit() < 0.4;
        let length = |random: &mut Random| {
            let boxes = f64::from(radius) * random.between(0.6, 14.0);
            (!open && random.unit() < 0.5).then_some(f64::from(boxes as f32))
        };
        let strategies = [
            Strategy::Flat,
            Strategy::Flat,
            match from_env("NEARFIELD_NO_CHILDREN") {
                Some(1) => Strategy::Flat,
                _ => Strategy::ChildAggregated,
            },
        ];
        Self {
            radius,
            periodic: [(); 3].map(|()| length(random)),
            kind: if random.unit() < 0.3 {
                ListKind::Half
            } else {
                ListKind::Full
            },
            strategy: strategies[random.below(strategies.len() as u64) as usize],
            subdivision: [0, 0, 1, 2, 3][random.below(5) as usize],
            sets: 1 + random.below(2) as usize,
        }
    }

    fn cloud(&self, random: &mut Random, points: usize) -> Vec<[f32; 3]> {
        let radius = f64::from(self.radius);
        let extent = self.periodic.map(|length| length.unwrap_or(10.0 * radius));
        let step = radius * [0.5, 1.0, 1.0 / 3.0][random.below(3) as usize];
        let kind = random.below(5);
        let point = |random: &mut Random| {
            [0, 1, 2].map(|axis| {
                let at = match kind {
                    0 => random.unit() * extent[axis],
                    1 => random.below(12) as f64 * step,
                    2 => random.normal() * 2.0 * radius + extent[axis] / 2.0,
                    3 => random.below(4) as f64 * extent[axis] / 4.0,
                    _ => (3.0 * random.unit() - 1.0) * extent[axis],
                };
                at as f32
            })
        };
        (0..points).map(|_| point(random)).collect()
    }
}

/// An output between two guard zones that must not change.
struct Guarded<T> {
    memory: DeviceBuffer<T>,
    guard: T,
    len: usize,
}

impl<T: Copy + PartialEq + std::fmt::Debug + nearfield::device::DeviceValue> Guarded<T> {
    fn new(stream: &Stream, len: usize, guard: T) -> Self {
        let memory = stream.clone_htod(&vec![guard; len + 2 * GUARD]).unwrap();
        Self { memory, guard, len }
    }

    /// The output, when nothing beside it has changed.
    fn read(&self, stream: &Stream, what: &str) -> Vec<T> {
        let all = stream.clone_dtoh(&self.memory).unwrap();
        let behind = GUARD + self.len;
        let beside = all[..GUARD].iter().chain(&all[behind..]);
        let touched = beside.filter(|value| **value != self.guard).count();
        assert_eq!(touched, 0, "numbers beside {what} were overwritten");
        all[GUARD..behind].to_vec()
    }
}

/// An engine on the device, and what it should hold.
struct Session {
    scene: Scene,
    engine: DeviceEngine,
    helper: Option<CpuHelper>,
    /// The last valid positions, and the last given positions.
    good: Vec<Vec<[f32; 3]>>,
    given: Vec<Vec<[f32; 3]>>,
    /// Positions given since the last valid step: some may have been accepted meanwhile.
    between: Vec<Vec<Vec<[f32; 3]>>>,
}

/// Results of a step.
struct Found {
    counts: Vec<u32>,
    sums: Vec<f32>,
    lists: Vec<Vec<u32>>,
}

impl Session {
    /// The name of a set by its number.
    fn id(&self, set: usize) -> PointSetId {
        self.engine.point_set(set as u32).unwrap()
    }

    fn begin(random: &mut Random) -> Option<Self> {
        let scene = Scene::draw(random);
        let builder = DeviceEngine::builder(scene.radius)
            .periodic(scene.periodic)
            .subdivision(scene.subdivision)
            .strategy(scene.strategy)
            .lists(scene.kind);
        let mut engine = start(builder);
        let stream = engine.stream().clone();
        let mut good = Vec::new();
        for _ in 0..scene.sets {
            let points = random.below(3000) as usize;
            let points = scene.cloud(random, points);
            let added = engine.add_point_set(&upload(&stream, &points).as_view());
            added.unwrap_or_else(|error| panic!("{scene:?}: {error}"));
            good.push(points);
        }
        let helper = (random.unit() < 0.3).then(|| CpuHelper::new(Policy::default(), 2).unwrap());
        Some(Self {
            scene,
            engine,
            helper,
            given: good.clone(),
            between: vec![Vec::new(); good.len()],
            good,
        })
    }

    /// Gives a set other points, some of them unusable.
    fn update(&mut self, random: &mut Random) {
        let set = random.below(self.scene.sets as u64) as usize;
        let points = match random.below(8) {
            0 => 0,
            1 => 1,
            2 => self.given[set].len(),
            _ => random.below(4000) as usize,
        };
        let mut points = self.scene.cloud(random, points);
        if let Some(last) = points.len().checked_sub(1) {
            let at = random.below(last as u64 + 1) as usize;
            let axis = random.below(3) as usize;
            let far = self.scene.radius * 10f64.powf(random.between(1.0, 5.0)) as f32;
            match random.below(10) {
                0 => points[at][axis] = f32::NAN,
                1 => points[at][axis] = f32::INFINITY,
                2 | 3 => points[at][axis] += far,
                4 => points.iter_mut().for_each(|point| point[axis] += far),
                _ => {}
            }
        }
        let stream = self.engine.stream().clone();
        let id = self.id(set);
        let updated = (self.engine).update(id, &upload(&stream, &points).as_view());
        match updated {
            Ok(()) => {
                self.given[set].clone_from(&points);
                self.between[set].push(points);
            }
            Err(error) => self.refused(&error),
        }
    }

    /// The set that the error names has its last good points again: those of the last valid step,
    /// or later ones that an update has waited for.
    fn refused(&mut self, error: &Error) {
        let set = match error.kind() {
            ErrorKind::OnDevice { set, .. } => set,
            // The set has other points already, as the next call of finish() will say.
            ErrorKind::Gpu(error) if matches!(error.kind(), GpuErrorKind::FieldLength { .. }) => {
                return;
            }
            _ => panic!("{:?}: {error}", self.scene),
        };
        let set = (0..self.scene.sets)
            .find(|&at| self.id(at) == *set)
            .unwrap();
        let points = self.engine.points(self.id(set)).unwrap();
        let all = self.between[set].iter().chain([&self.good[set]]);
        let finite = |points: &&Vec<[f32; 3]>| points.as_flattened().iter().all(|x| x.is_finite());
        let may_be: Vec<_> = all.filter(finite).filter(|of| of.len() == points).collect();
        match may_be[..] {
            [] => panic!("{:?}: {error}, and then {points} points", self.scene),
            [only] => self.given[set] = only.clone(),
            [.., last] => {
                // Which of them it is cannot be seen from here.
                self.given[set] = last.clone();
                let stream = self.engine.stream().clone();
                let given = upload(&stream, &self.given[set]);
                let id = self.id(set);
                self.engine.update(id, &given.as_view()).unwrap();
            }
        }
    }

    /// Counts, sums and lists of a pair of sets, whether the step is valid or not.
    fn compute(&mut self, (targets, sources): (usize, usize)) -> Result<Found, Error> {
        let stream = self.engine.stream().clone();
        let radius = self.scene.radius;
        let points = self.given[targets].len();
        let mut counts = Guarded::new(&stream, points, GUARD_COUNT);
        let mut sums = Guarded::new(&stream, points, GUARD_SUM);
        let mass = stream
            .clone_htod(&vec![1.0f32; self.given[sources].len().max(1)])
            .unwrap();
        let kernel = SphDensity::with_support(radius);
        let (targets, sources) = (self.id(targets), self.id(sources));
        let inside = GUARD..GUARD + points;
        let done = (|| {
            let mut out = counts.memory.slice_mut(inside.clone());
            self.engine.count_neighbors(targets, sources, &mut out)?;
            let mut out = sums.memory.slice_mut(inside.clone());
            let mass = DeviceField::new(mass.as_view(), 1);
            match &mut self.helper {
                Some(helper) => (self.engine)
                    .with_cpu(helper)
                    .traverse(&kernel, targets, sources)
                    .sources(mass)
                    .run_into(&mut out)?,
                None => (self.engine)
                    .traverse(&kernel, targets, sources)
                    .sources(mass)
                    .run_into(&mut out)?,
            }
            self.engine.find_neighbors(targets, sources)
        })();
        let counts = counts.read(&stream, "counts");
        let sums = sums.read(&stream, "sums");
        done?;
        Ok(Found {
            counts,
            sums,
            lists: self.lists((targets, sources), points),
        })
    }

    /// The lists there are; those of a step that is not valid may be anything, but not out of
    /// place.
    fn lists(&self, (targets, sources): (PointSetId, PointSetId), points: usize) -> Vec<Vec<u32>> {
        let stream = self.engine.stream();
        let found = self.engine.neighbors(targets, sources).unwrap();
        let start = stream.clone_dtoh(&found.start).unwrap();
        let count = stream.clone_dtoh(&found.count).unwrap();
        let entries = stream.clone_dtoh(&found.entries).unwrap();
        assert_eq!((start.len(), count.len()), (points, points));
        let list = |(&start, &count): (&u64, &u32)| {
            let end = start.saturating_add(u64::from(count));
            let place = start.min(entries.len() as u64)..end.min(entries.len() as u64);
            let mut list = entries[place.start as usize..place.end as usize].to_vec();
            list.sort_unstable();
            list
        };
        start.iter().zip(&count).map(list).collect()
    }

    /// Computes until it is valid, and compares.
    fn step(&mut self, random: &mut Random) {
        let targets = random.below(self.scene.sets as u64) as usize;
        let sources = match self.scene.kind {
            ListKind::Half => targets,
            _ => random.below(self.scene.sets as u64) as usize,
        };
        for _ in 0..TRIES {
            let computed = self.compute((targets, sources));
            match (computed, self.engine.finish()) {
                (Ok(found), Ok(Progress::Valid)) => {
                    self.good.clone_from(&self.given);
                    self.between.iter_mut().for_each(Vec::clear);
                    return self.compare((targets, sources), &found);
                }
                (computed, finished) => {
                    // Either may have found points of another set unusable.
                    for error in [computed.err(), finished.err()].into_iter().flatten() {
                        self.refused(&error);
                    }
                }
            }
        }
        panic!("{:?}: not valid after {TRIES} tries", self.scene);
    }

    fn compare(&self, (targets, sources): (usize, usize), found: &Found) {
        let scene = &self.scene;
        let mut engine = Engine::builder(scene.radius)
            .periodic(scene.periodic)
            .device(Device::Cpu)
            .threads(2)
            .lists(scene.kind)
            .list_order(ListOrder::Ascending)
            .build()
            .unwrap();
        let sets = self.good.iter().map(|points| {
            let added = engine.add_point_set(points);
            added.unwrap_or_else(|error| panic!("{scene:?}: the CPU refuses {error}"))
        });
        let sets: Vec<_> = sets.collect();
        engine.find_neighbors().unwrap();
        let (target_set, source_set) = (sets[targets], sets[sources]);
        let exact = engine.neighbors(target_set, source_set).unwrap();
        for (target, list) in found.lists.iter().enumerate() {
            assert_eq!(list, exact.of(target), "{scene:?}, target {target}");
            assert_eq!(found.counts[target] as usize, list.len(), "{scene:?}");
        }
        let kernel = SphDensity::with_support(scene.radius);
        let mass = vec![1.0f32; self.good[sources].len()];
        let sums = (engine.traverse(&kernel, target_set, source_set))
            .sources(&mass)
            .run()
            .unwrap();
        for (target, (&found, &exact)) in found.sums.iter().zip(&sums).enumerate() {
            // Next to the support's edge a term is smaller than its rounding.
            let tolerance = 1e-4 * exact.abs() + 1e-6 * kernel.kernel.value(0.0);
            let near = (found - exact).abs() <= tolerance;
            assert!(near, "{scene:?}, target {target}: {found}, not {exact}");
        }
    }
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_sequence_of_updates_writes_out_of_place_or_gives_wrong_results() {
    needs_gpu!();
    nearfield_gpu::poison_new_memory();
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = from_env("NEARFIELD_SEED").unwrap_or(clock.unwrap().subsec_nanos().into());
    for seed in first..first + from_env("NEARFIELD_SEQUENCES").unwrap_or(60) {
        eprintln!("sequence {seed}");
        let mut random = Random::new(seed);
        let Some(mut session) = Session::begin(&mut random) else {
            return;
        };
        session.step(&mut random);
        for _ in 0..2 + random.below(6) {
            for _ in 0..1 + random.below(2) {
                session.update(&mut random);
                if random.unit() < 0.2 {
                    // Computed from points that were not checked, and never read.
                    let set = random.below(session.scene.sets as u64) as usize;
                    if let Err(error) = session.compute((set, set)) {
                        session.refused(&error);
                    }
                }
            }
            session.step(&mut random);
        }
    }
}

#[test]
fn fewer_points_of_which_one_is_far_away_write_where_they_belong() {
    needs_gpu!();
    nearfield_gpu::poison_new_memory();
    let mut engine = start(DeviceEngine::builder(0.05));
    let stream = engine.stream().clone();
    let mut random = Random::new(1);
    let cloud: Vec<[f32; 3]> = (0..100_000)
        .map(|_| [(); 3].map(|()| random.unit() as f32))
        .collect();
    let set = engine.add(&cloud);
    let kernel = SphDensity::with_support(0.05);
    let mut few = cloud[..1_001].to_vec();
    few[1_000] = [1e4; 3];
    engine.put(set, &few);
    let mut sums = Guarded::new(&stream, few.len(), GUARD_SUM);
    let mass = stream.clone_htod(&vec![1.0f32; few.len()]).unwrap();
    let mut tries = 0;
    loop {
        engine
            .traverse(&kernel, set, set)
            .sources(DeviceField::new(mass.as_view(), 1))
            .run_into(&mut sums.memory.slice_mut(GUARD..GUARD + few.len()))
            .unwrap();
        let found = sums.read(&stream, "densities");
        tries += 1;
        if engine.finish().unwrap() == Progress::Valid {
            assert_eq!(found[1_000], 0.0, "the point far away has no neighbour");
            break;
        }
    }
    assert_eq!(tries, 2, "the first try cannot be valid");
}

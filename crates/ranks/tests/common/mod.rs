//! What the tests of ranks share.
#![allow(dead_code, reason = "every test binary uses another part")]

pub(crate) mod by_address;
pub(crate) mod filtered;
/// The filters that the tests of one engine draw.
#[path = "../../../engine/nearfield/tests/common/filters.rs"]
pub(crate) mod filters;
pub(crate) mod on_gpu;

use nearfield::{Builder, Engine, ListKind, ListOrder, Pair, PairKernel, PointSetId, Precision};
use nearfield_ranks::{
    Error, RankedBuilder, RankedEngine, RankedSet, Scalar,
    transport::{
        Fault, Reduction, Tag, Transport,
        threads::{self, ThreadTransport},
    },
};
use nearfield_testkit::{
    conformance::{Case, Level, Runner},
    oracle::{self, Real},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

/// Runs `test` and fails if it takes longer than `seconds`: the watchdog that the library does
/// without.
pub(crate) fn within<R: Send + 'static>(
    seconds: u64,
    test: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = test();
        // Fails if the time is over, and the test has failed with it.
        done.send(()).ok();
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_secs(seconds)) {
        panic!("the ranks hang: no end after {seconds} s");
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs `body` on ranks that all succeed.
pub(crate) fn on_ranks<R: Send>(
    ranks: usize,
    body: impl Fn(ThreadTransport) -> Result<R, Error> + Sync,
) -> Vec<R> {
    let results = threads::run(ranks, body).into_iter();
    results.map(|result| result.unwrap().unwrap()).collect()
}

/// By id, the neighbours that one engine finds; point k has the id k.
pub(crate) fn neighbors_by_id(radius: f32, points: &[[f32; 3]]) -> Vec<Vec<u64>> {
    let builder = Engine::builder(radius).list_order(ListOrder::Ascending);
    let mut engine = builder.threads(1).build().unwrap();
    let set = engine.add_point_set(points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    let ids = |list: &[u32]| list.iter().map(|j| u64::from(*j)).collect();
    lists.iter().map(ids).collect()
}

/// A precision that cases exist in.
pub(crate) trait Precise: Scalar + Real {
    fn cases(level: Level) -> Runner<Self>;
}

impl Precise for f32 {
    fn cases(level: Level) -> Runner<Self> {
        Runner::new(level)
    }
}

impl Precise for f64 {
    fn cases(level: Level) -> Runner<Self> {
        Runner::in_double(level)
    }
}

/// The rule of a case.
fn rule<T>(case: &Case<T>) -> nearfield::RadiusRule {
    match case.rule {
        oracle::RadiusRule::Uniform => nearfield::RadiusRule::Uniform,
        oracle::RadiusRule::Gather => nearfield::RadiusRule::Gather,
        oracle::RadiusRule::Scatter => nearfield::RadiusRule::Scatter,
        oracle::RadiusRule::Symmetric => nearfield::RadiusRule::Symmetric,
    }
}

/// Full or half lists, as the case has them.
fn kind<T>(case: &Case<T>) -> ListKind {
    match case.list {
        oracle::ListKind::Full => ListKind::Full,
        oracle::ListKind::Half => ListKind::Half,
    }
}

/// Settings of one engine for a case.
pub(crate) fn one<T: Precise>(case: &Case<T>) -> Builder {
    let builder = Engine::builder(case.radius.to_f64()).precision(T::PRECISION);
    let builder = match case.vectors {
        Some(vectors) => builder.box_vectors(vectors),
        None => builder.periodic(case.periodic),
    };
    let builder = builder.list_order(ListOrder::Ascending).threads(1);
    builder.lists(kind(case)).radii(rule(case))
}

/// Settings of ranks for a case.
pub(crate) fn many<T: Precise>(case: &Case<T>) -> RankedBuilder {
    let builder = RankedEngine::builder(case.radius.to_f64());
    let builder = match case.vectors {
        Some(vectors) => builder.box_vectors(vectors),
        None => builder.periodic(case.periodic),
    };
    builder.threads(1).lists(kind(case)).radii(rule(case))
}

/// Radii of a set, in `f64` whatever the precision of its points: engines round them to that.
pub(crate) fn radii<T: Precise>(case: &Case<T>, set: usize) -> Vec<f64> {
    case.radii_of(set).iter().map(|own| own.to_f64()).collect()
}

/// One engine with the sets of a case.
pub(crate) fn one_engine<T: Precise>(case: &Case<T>) -> (Engine, Vec<PointSetId>) {
    let mut engine = one(case).build().unwrap();
    let mut ids = Vec::new();
    for (number, set) in case.sets.iter().enumerate() {
        let id = engine.add_point_set(T::positions(set)).unwrap();
        if !case.radii.is_empty() {
            engine.set_radii(id, &radii(case, number)).unwrap();
        }
        ids.push(id);
    }
    (engine, ids)
}

/// The share of `len` points that a rank gives: dealt out like cards, so that most points are given
/// by another rank than their owner.
pub(crate) fn dealt(len: usize, rank: usize, ranks: usize) -> Vec<usize> {
    (rank..len).step_by(ranks).collect()
}

/// Elements at some places.
pub(crate) fn at<V: Copy>(values: &[V], places: &[usize]) -> Vec<V> {
    places.iter().map(|place| values[*place]).collect()
}

/// Adds the sets of a case, each rank its share.
pub(crate) fn add_sets<T: Precise>(
    engine: &mut RankedEngine<T>,
    case: &Case<T>,
) -> Result<Vec<RankedSet>, Error> {
    let (rank, ranks) = (engine.rank(), engine.ranks());
    let mut sets = Vec::new();
    for (number, points) in case.sets.iter().enumerate() {
        let mine = dealt(points.len(), rank, ranks);
        let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
        let set = engine.add_point_set(&at(points, &mine), Some(&ids))?;
        if !case.radii.is_empty() {
            engine.set_radii(set, &at(&radii(case, number), &mine))?;
        }
        sets.push(set);
    }
    Ok(sets)
}

/// A kernel whose sums depend on the order of summation and on every displacement.
pub(crate) struct Uneven;

#[nearfield::pair_kernel]
impl PairKernel for Uneven {
    type Target = f32;
    type Source = ([f32; 3], f32);
    type Output = [f32; 2];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: ([f32; 3], f32)) -> [f32; 2] {
        let (velocity, mass) = source;
        let along = pair.d[0] * velocity[0] + pair.d[1] * velocity[1] + pair.d[2] * velocity[2];
        [mass / (1.0 + pair.d2), along * (target - mass)]
    }
}

/// Fields of `Uneven` for all points of a set: of targets, velocities and masses.
pub(crate) fn fields(len: usize) -> (Vec<f32>, Vec<[f32; 3]>, Vec<f32>) {
    let turn = |index: usize, step: f64| ((index as f64 + 1.0) * step).fract() as f32 - 0.5;
    let all = 0..len;
    (
        all.clone().map(|i| turn(i, 0.618_034)).collect(),
        all.clone()
            .map(|i| [turn(i, 0.414_214), turn(i, 0.732_051), turn(i, 0.236_068)])
            .collect(),
        all.map(|i| 1.0 + turn(i, 0.324_718)).collect(),
    )
}

/// True in double precision.
pub(crate) fn is_double<T: Scalar>() -> bool {
    T::PRECISION == Precision::Double
}

/// Tallies of a rank: reductions and gatherings, and the other messages by rank, with the bytes of
/// the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) collective: usize,
    pub(crate) posted: BTreeMap<usize, (usize, usize)>,
}

/// A transport that counts.
pub(crate) struct Counting<T> {
    inner: T,
    counts: Arc<Mutex<Counts>>,
}

impl<T> Counting<T> {
    pub(crate) fn new(inner: T) -> (Self, Arc<Mutex<Counts>>) {
        let counts = Arc::new(Mutex::new(Counts::default()));
        let counting = Self {
            inner,
            counts: counts.clone(),
        };
        (counting, counts)
    }
}

impl<T: Transport> Transport for Counting<T> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        let mut counts = self.counts.lock().unwrap();
        let (messages, bytes) = counts.posted.entry(to).or_default();
        *messages += 1;
        *bytes = message.len();
        drop(counts);
        self.inner.post(to, tag, message)
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        self.inner.receive(from, tag)
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.poll(from, tag)
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.inner.fail(fault)
    }

    fn reduce(&mut self, values: &mut [f64], by: Reduction) -> Result<(), Fault> {
        self.counts.lock().unwrap().collective += 1;
        self.inner.reduce(values, by)
    }

    fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        self.counts.lock().unwrap().collective += 1;
        self.inner.gather(message)
    }
}

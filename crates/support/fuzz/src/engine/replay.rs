//! The calls of a session, made on an engine and on the model side by side.

use super::input::{Action, Layout, ListChoice, Points, Setup};
use super::labels::{Labels, labels};
use super::model::{Lists, Model};
use super::places::{self, Scale};
use nearfield::{
    Engine, Error, ErrorKind, ListKind, PointSetId, Positions,
    kernels::{Field, SphDensity},
    report::SimdLevel,
};

/// Sets of a session at most.
const MAX_SETS: usize = 3;

/// Cells per radius; many cells take much time, so few is more frequent.
const SUBDIVISIONS: [u32; 16] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8];

/// An engine and the model of it.
pub(super) struct Replay {
    engine: Engine,
    sets: Vec<PointSetId>,
    model: Model,
    subdivision: u32,
    /// Whether the order in lists may depend on more than the points: a query, or points that
    /// since left, may have chosen the cells of a periodic domain.
    has_history: bool,
}

/// Points as they are handed over.
struct Handed {
    points: Vec<[f32; 3]>,
    bytes: Vec<u8>,
    gap: Option<usize>,
}

impl Handed {
    fn new(points: Vec<[f32; 3]>, layout: Layout) -> Self {
        let gap = match layout {
            Layout::Packed => None,
            Layout::Strided(gap) => Some(usize::from(gap % 16)),
        };
        let mut bytes = vec![0xff; gap.unwrap_or(0)];
        for point in points.iter().filter(|_| gap.is_some()) {
            bytes.extend(point.iter().flat_map(|x| x.to_ne_bytes()));
            bytes.extend(std::iter::repeat_n(0xff, gap.unwrap_or(0)));
        }
        Self { points, bytes, gap }
    }

    fn positions(&self) -> Positions<'_> {
        match self.gap {
            None => Positions::from(&self.points),
            Some(gap) => Positions::strided(&self.bytes, gap, 12 + gap, self.points.len())
                .unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

impl Replay {
    /// An engine with these settings, unless they must be refused, which is then checked.
    pub(super) fn begin(setup: &Setup) -> Option<Self> {
        let radius = places::radius(setup.radius);
        let is_good = is_good_radius(radius);
        let periodic = if is_good {
            setup.axes.map(|axis| places::length(axis, radius))
        } else {
            [None; 3]
        };
        let levels = SimdLevel::available();
        let threads = 1 + usize::from(setup.threads % 3);
        let kind = match setup.lists {
            ListChoice::Full => ListKind::Full,
            ListChoice::Half => ListKind::Half,
        };
        let subdivision = SUBDIVISIONS[usize::from(setup.subdivision) % SUBDIVISIONS.len()];
        let engine = Engine::builder(radius)
            .periodic(periodic)
            .threads(threads)
            .simd(levels[usize::from(setup.simd) % levels.len()])
            .subdivision(subdivision)
            .lists(kind)
            .build();
        let engine = match engine {
            Ok(engine) => engine,
            Err(error) if !is_good && matches!(error.kind(), ErrorKind::Setup(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        assert!(is_good, "a radius of {radius} was accepted");
        let model = Model::new(radius, periodic, kind);
        Some(Self {
            engine,
            sets: Vec::new(),
            model,
            subdivision,
            has_history: false,
        })
    }

    /// Carries an action out.
    pub(super) fn act(&mut self, action: &Action) {
        match action {
            Action::Add(points) => self.add_points(points),
            Action::AddSpoiled(points, spoiled) => {
                let mut spoiled_points = self.points(points);
                places::spoil(&mut spoiled_points, *spoiled);
                self.add_spoiled(&Handed::new(spoiled_points, points.layout));
            }
            Action::Radius(choice) => self.set_radius(places::radius(*choice)),
            _ if self.sets.is_empty() => {}
            Action::Update(set, points) => self.update(self.number(*set), &self.hand(points)),
            Action::Shift(set, by) => self.shift(self.number(*set), *by),
            Action::Spoil(set, points, spoiled) => {
                let mut spoiled_points = self.points(points);
                places::spoil(&mut spoiled_points, *spoiled);
                let handed = Handed::new(spoiled_points, points.layout);
                self.spoil(self.number(*set), &handed);
            }
            Action::Activate(t, s) => self.activate(self.number(*t), self.number(*s), true),
            Action::Deactivate(t, s) => self.activate(self.number(*t), self.number(*s), false),
            Action::Find => self.find(),
            Action::Query(set, points) => self.query(self.number(*set), &self.hand(points)),
            Action::Visit(t, s, point) => {
                self.visit(self.number(*t), self.number(*s), usize::from(*point));
            }
            Action::Traverse(t, s) => self.traverse(self.number(*t), self.number(*s)),
            Action::Sort(set) => self.sort(self.number(*set)),
        }
    }

    /// Searches once more, and compares with an engine that has never seen anything else.
    pub(super) fn finish(mut self) {
        self.find();
        for targets in 0..self.sets.len() {
            for sources in 0..self.sets.len() {
                self.count(targets, sources);
                self.traverse(targets, sources);
            }
        }
        if !self.has_history && !self.sets.is_empty() {
            self.compare_with_fresh();
        }
    }

    fn number(&self, set: u8) -> usize {
        usize::from(set) % self.sets.len()
    }

    fn points(&self, points: &Points) -> Vec<[f32; 3]> {
        let scale = Scale {
            radius: self.model.radius,
            periodic: self.model.periodic,
        };
        scale.points(points)
    }

    fn hand(&self, points: &Points) -> Handed {
        Handed::new(self.points(points), points.layout)
    }

    /// Adds a set, unless there are enough.
    pub(super) fn add_points(&mut self, points: &Points) {
        self.add(&self.hand(points));
    }

    fn add(&mut self, handed: &Handed) {
        if self.sets.len() == MAX_SETS || !self.model.is_small(self.model.radius, &handed.points) {
            return;
        }
        match self.engine.add_point_set(handed.positions()) {
            Ok(set) => {
                assert!(!self.model.is_too_far(&handed.points), "accepted: too far");
                assert_eq!(set.number() as usize, self.sets.len());
                self.sets.push(set);
                self.model.add(handed.points.clone());
            }
            Err(error) => self.refused(&handed.points, &error),
        }
        assert_eq!(self.engine.point_sets(), self.sets.len());
    }

    fn add_spoiled(&mut self, handed: &Handed) {
        let added = self.engine.add_point_set(handed.positions());
        let error = added.expect_err("accepted: not finite");
        let ErrorKind::Positions { source, .. } = error.kind() else {
            panic!("{error}");
        };
        check_named(&handed.points, &source.to_string());
        assert_eq!(self.engine.point_sets(), self.sets.len());
        self.check_all();
    }

    fn update(&mut self, set: usize, handed: &Handed) {
        if !self.model.is_small(self.model.radius, &handed.points) {
            return;
        }
        match self.engine.update(self.sets[set], handed.positions()) {
            Ok(()) => {
                assert!(!self.model.is_too_far(&handed.points), "accepted: too far");
                self.model.update(set, handed.points.clone());
            }
            Err(error) => self.refused(&handed.points, &error),
        }
        let points = self.engine.points(self.sets[set]);
        assert_eq!(points.ok(), Some(self.model.sets[set].len()));
        self.check_all();
    }

    fn shift(&mut self, set: usize, by: [i8; 3]) {
        let by = by.map(|by| f32::from(by) / 64.0 * self.model.radius);
        let mut points = self.model.sets[set].clone();
        for point in &mut points {
            *point = [0, 1, 2].map(|axis| (point[axis] + by[axis]).clamp(f32::MIN, f32::MAX));
        }
        self.update(set, &Handed::new(points, Layout::Packed));
    }

    fn spoil(&mut self, set: usize, handed: &Handed) {
        let updated = self.engine.update(self.sets[set], handed.positions());
        let error = updated.expect_err("accepted: not finite");
        let ErrorKind::Positions { source, .. } = error.kind() else {
            panic!("{error}");
        };
        check_named(&handed.points, &source.to_string());
        self.check_all();
    }

    /// Points may only be refused when they are too many boxes away.
    fn refused(&self, points: &[[f32; 3]], error: &Error) {
        assert!(self.model.is_too_far(points), "{error}");
        assert!(error.to_string().contains("2^30"), "{error}");
        self.check_all();
    }

    fn set_radius(&mut self, radius: f32) {
        let is_good = is_good_radius(radius);
        if is_good && !self.model.is_small(radius, &[]) {
            return;
        }
        match self.engine.set_radius(radius) {
            Ok(()) => {
                assert!(is_good, "a radius of {radius} was accepted");
                self.model.set_radius(radius);
            }
            Err(error) if !is_good && matches!(error.kind(), ErrorKind::Setup(_)) => {}
            Err(error) => panic!("radius {radius}: {error}"),
        }
        assert_eq!(self.engine.radius(), f64::from(self.model.radius));
        self.check_all();
    }

    fn activate(&mut self, targets: usize, sources: usize, active: bool) {
        let done = self
            .engine
            .set_active(self.sets[targets], self.sets[sources], active);
        done.unwrap_or_else(|error| panic!("{error}"));
        let pair = &mut self.model.pairs[targets][sources];
        pair.active = active;
        if !active {
            pair.lists = Lists::Outdated;
        }
        self.check_all();
    }

    fn find(&mut self) {
        let done = self.engine.find_neighbors();
        done.unwrap_or_else(|error| panic!("{error}"));
        self.model.find();
        self.check_all();
        let lists = self.model.pairs.iter().flatten();
        if lists.clone().all(|pair| pair.lists == Lists::Current) {
            let all = (0..self.sets.len().pow(2)).map(|at| {
                let (targets, sources) = (at / self.sets.len(), at % self.sets.len());
                let lists = self
                    .engine
                    .neighbors(self.sets[targets], self.sets[sources]);
                lists.map_or(0, |lists| lists.pairs())
            });
            assert_eq!(self.engine.report().pairs, all.sum::<u64>());
        }
    }

    fn query(&mut self, sources: usize, handed: &Handed) {
        if !self.model.is_small(self.model.radius, &handed.points) {
            return;
        }
        self.has_history = true;
        match self.engine.query(handed.positions(), self.sets[sources]) {
            Ok(lists) => {
                assert!(!self.model.is_too_far(&handed.points), "accepted: too far");
                self.model
                    .check_query(handed.points.clone(), sources, &lists);
                self.model.unsettle();
            }
            Err(error) => self.refused(&handed.points, &error),
        }
    }

    fn visit(&self, targets: usize, sources: usize, point: usize) {
        let points = self.model.sets[targets].len();
        let (from_set, to_set) = (self.sets[targets], self.sets[sources]);
        let Some(point) = point.checked_rem(points) else {
            let visited = self
                .engine
                .for_each_neighbor(from_set, to_set, 0, |_, _| ());
            assert!(matches!(
                visited.as_ref().map_err(|error| error.kind()),
                Err(ErrorKind::UnknownPoint { .. })
            ));
            return;
        };
        let mut found = Vec::new();
        let from = self.model.sets[targets][point];
        let visited = self
            .engine
            .for_each_neighbor(from_set, to_set, point, |source, pair| {
                let to = self.model.sets[sources][source as usize];
                self.model.check_pair(from, to, pair.d, pair.d2);
                found.push(source);
            });
        visited.unwrap_or_else(|error| panic!("{error}"));
        found.sort_unstable();
        assert_eq!(found, self.model.neighbors_of(targets, sources, point));
    }

    fn count(&self, targets: usize, sources: usize) {
        let counts = self
            .engine
            .count_neighbors(self.sets[targets], self.sets[sources]);
        let counts = counts.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(counts, self.model.counts(targets, sources), "counts");
    }

    fn traverse(&self, targets: usize, sources: usize) {
        let expected = self.model.sums(targets, sources);
        let fields = [targets, sources].map(|set| labels(self.model.sets[set].len()));
        let [target, source] = fields.each_ref().map(|labels| [Field::from(labels)]);
        let (from, to) = (self.sets[targets], self.sets[sources]);
        let straight = self.engine.traverse(&Labels::<false>, from, to);
        let straight = straight.targets(&target).sources(&source).run();
        let straight = straight.unwrap_or_else(|error| panic!("{error}"));
        assert!(straight == expected, "sums: {straight:?}, not {expected:?}");
        let mut packed = vec![[8.0; 3]; expected.len()];
        let traversal = self.engine.traverse(&Labels::<true>, from, to);
        let traversal = traversal.targets(&target).sources(&source);
        let done = traversal.add_into(&mut packed);
        done.unwrap_or_else(|error| panic!("{error}"));
        let packed: Vec<[f32; 3]> = packed.iter().map(|sum| sum.map(|x| x - 8.0)).collect();
        assert!(packed == expected, "packed: {packed:?}, not {expected:?}");
    }

    fn sort(&mut self, set: usize) {
        let order = self.engine.z_sort(self.sets[set]);
        let order = order.unwrap_or_else(|error| panic!("{error}"));
        let mut points = self.model.sets[set].clone();
        let done = order.apply(&mut points);
        done.unwrap_or_else(|error| panic!("{error}"));
        self.update(set, &Handed::new(points, Layout::Packed));
    }

    /// Compares all lists with the model's.
    fn check_all(&self) {
        for (targets, &from) in self.sets.iter().enumerate() {
            for (sources, &to) in self.sets.iter().enumerate() {
                let lists = self.engine.neighbors(from, to);
                self.model.check_lists(targets, sources, lists);
            }
        }
    }

    /// The same points in a new engine, with another number of threads and another SIMD level: the
    /// same lists in the same order, and the same sums to the last bit.
    fn compare_with_fresh(&self) {
        let levels = SimdLevel::available();
        let own = levels
            .iter()
            .position(|&level| level == self.engine.report().simd);
        let level = levels[(own.unwrap_or(0) + 1) % levels.len()];
        let fresh = Engine::builder(self.model.radius)
            .periodic(self.model.periodic)
            .threads(1 + self.engine.report().threads % 3)
            .simd(level)
            .subdivision(self.subdivision)
            .lists(self.model.kind)
            .build();
        let mut fresh = fresh.unwrap_or_else(|error| panic!("{error}"));
        for points in &self.model.sets {
            let added = fresh.add_point_set(points);
            added.unwrap_or_else(|error| panic!("{error}"));
        }
        let found = fresh.find_neighbors();
        found.unwrap_or_else(|error| panic!("{error}"));
        for at in 0..self.sets.len().pow(2) {
            let (targets, sources) = (at / self.sets.len(), at % self.sets.len());
            self.compare_pair(&fresh, self.sets[targets], self.sets[sources]);
        }
    }

    fn compare_pair(&self, fresh: &Engine, targets: PointSetId, sources: PointSetId) {
        let of_fresh = [targets, sources].map(|set| {
            let same = fresh.point_set(set.number());
            same.unwrap_or_else(|error| panic!("{error}"))
        });
        let others = fresh.neighbors(of_fresh[0], of_fresh[1]);
        if let (Ok(own), Ok(others)) = (self.engine.neighbors(targets, sources), others) {
            assert!(own.iter().eq(others.iter()), "the order in lists");
        }
        let own = self.density(&self.engine, targets, sources);
        let others = self.density(fresh, of_fresh[0], of_fresh[1]);
        assert_eq!(own, others, "sums to the last bit");
    }

    /// The bits of sums whose last ones depend on the order of summation.
    fn density(&self, engine: &Engine, targets: PointSetId, sources: PointSetId) -> Vec<u32> {
        let kernel = SphDensity::with_support(self.model.radius);
        let masses: Vec<f32> = (0..self.model.sets[sources.number() as usize].len())
            .map(|index| 1.0 / (3.0 + index as f32))
            .collect();
        let density = engine
            .traverse(&kernel, targets, sources)
            .sources(&masses)
            .run();
        let density = density.unwrap_or_else(|error| panic!("{error}"));
        // Far outside the range of sensible units the kernel overflows; no NaN is like another.
        let bits = |sum: f32| if sum.is_nan() { f32::NAN } else { sum }.to_bits();
        density.into_iter().map(bits).collect()
    }
}

/// Whether a radius is in the range of the contract.
fn is_good_radius(radius: f32) -> bool {
    (2.0_f32.powi(-50)..=2.0_f32.powi(63)).contains(&radius)
}

/// The message names the first point with a coordinate that is not finite.
fn check_named(points: &[[f32; 3]], message: &str) {
    let bad = points
        .iter()
        .position(|point| !point.iter().all(|x| x.is_finite()));
    let bad = bad.unwrap_or_else(|| panic!("no bad point, but: {message}"));
    assert!(message.contains(&format!("point {bad} has ")), "{message}");
}

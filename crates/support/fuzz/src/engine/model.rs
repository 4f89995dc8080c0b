//! What must come out: the points as they were given, and the brute force over them.

use super::labels::{contribution, labels};
use nearfield::{Error, ErrorKind, ListKind, NeighborLists};
use nearfield_testkit::{
    conformance::Case,
    oracle::{self, Neighbor},
};
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// Pairs that are tested at most in an open domain, so that a session takes milliseconds.
const MAX_PAIRS: f64 = 1.5e6;

/// Pairs times images at most in a periodic domain, where each may be in a list.
const MAX_IMAGES_OF_PAIRS: f64 = 1e5;

/// Work up to which the oracle is itself compared with its own definition.
const LITTLE_WORK: f64 = 1e5;

/// Images along all axes together at most.
const MAX_IMAGES: f64 = 400.0;

/// Boxes from the origin beyond which a coordinate is refused.
const FARTHEST_BOX: f64 = (1_u64 << 30) as f64;

/// Whether there must be lists of a pair of sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// They must be there.
    Current,
    /// They may be there: another set or a query may have moved all points to other cells.
    Uncertain,
    /// They must not be there.
    Outdated,
}

/// State of a pair of sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairState {
    pub(super) active: bool,
    pub(super) lists: Lists,
}

impl PairState {
    const NEW: Self = Self {
        active: true,
        lists: Lists::Outdated,
    };
}

/// The state an engine should be in.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) radius: f32,
    pub(super) periodic: [Option<f64>; 3],
    pub(super) kind: ListKind,
    pub(super) sets: Vec<Vec<[f32; 3]>>,
    /// By targets, then by sources.
    pub(super) pairs: Vec<Vec<PairState>>,
    /// Answers of the oracle about pairs of sets, until their points or the radius change.
    known: RefCell<HashMap<[usize; 2], Rc<Full>>>,
}

/// Every neighbour of every target, in every image, ascending.
type Full = Vec<Vec<Neighbor>>;

impl Model {
    /// An engine without sets.
    pub(super) fn new(radius: f32, periodic: [Option<f64>; 3], kind: ListKind) -> Self {
        Self {
            radius,
            periodic,
            kind,
            sets: Vec::new(),
            pairs: Vec::new(),
            known: RefCell::default(),
        }
    }

    /// Whether a search with this radius, and with `more` points besides those there are, takes
    /// little enough time to be compared with brute force.
    pub(super) fn is_small(&self, radius: f32, more: &[[f32; 3]]) -> bool {
        let sizes = self.sets.iter().map(Vec::len).chain([more.len()]);
        let most = sizes.max().unwrap_or(0) as f64;
        let images = self.images(radius, more);
        let work = match images {
            1.0 => MAX_PAIRS,
            _ => MAX_IMAGES_OF_PAIRS,
        };
        images <= MAX_IMAGES && most * most * images <= work
    }

    /// Upper bound of the images that are considered for a pair.
    fn images(&self, radius: f32, more: &[[f32; 3]]) -> f64 {
        let radius = f64::from(radius);
        let of_axis = |axis: usize| {
            let Some(length) = self.periodic[axis] else {
                return 1.0;
            };
            let points = self.sets.iter().flatten().chain(more);
            let (low, high) = points
                .map(|point| f64::from(point[axis]))
                .fold((0.0, 0.0), |(low, high): (f64, f64), x| {
                    (low.min(x), high.max(x))
                });
            let reach = radius + (radius + high - low) / f64::from(1 << 20);
            2.0 * reach / length + 3.0
        };
        (0..3).map(of_axis).product()
    }

    /// Whether some coordinate is so many boxes away that it must be refused.
    pub(super) fn is_too_far(&self, points: &[[f32; 3]]) -> bool {
        let too_far = |point: &[f32; 3]| {
            (0..3).any(|axis| {
                self.periodic[axis]
                    .is_some_and(|length| f64::from(point[axis]).abs() > FARTHEST_BOX * length)
            })
        };
        points.iter().any(too_far)
    }

    /// Adds a set that is active with every other.
    pub(super) fn add(&mut self, points: Vec<[f32; 3]>) {
        self.unsettle();
        self.sets.push(points);
        let sets = self.sets.len();
        self.pairs.push(Vec::new());
        for row in &mut self.pairs {
            row.resize(sets, PairState::NEW);
        }
    }

    /// Gives a set new points.
    pub(super) fn update(&mut self, set: usize, points: Vec<[f32; 3]>) {
        self.unsettle();
        self.sets[set] = points;
        self.known.get_mut().retain(|sets, _| !sets.contains(&set));
        for (targets, row) in self.pairs.iter_mut().enumerate() {
            for (sources, pair) in row.iter_mut().enumerate() {
                if targets == set || sources == set {
                    pair.lists = Lists::Outdated;
                }
            }
        }
    }

    /// Changes the radius.
    pub(super) fn set_radius(&mut self, radius: f32) {
        self.radius = radius;
        self.known.get_mut().clear();
        self.each_pair(|pair| pair.lists = Lists::Outdated);
    }

    /// Lists of every active pair are written.
    pub(super) fn find(&mut self) {
        self.each_pair(|pair| {
            if pair.active {
                pair.lists = Lists::Current;
            }
        });
    }

    /// Points elsewhere than before may change the cells of a periodic domain, and then all lists
    /// are dropped.
    pub(super) fn unsettle(&mut self) {
        if self.periodic.iter().any(Option::is_some) {
            self.each_pair(|pair| {
                if pair.lists == Lists::Current {
                    pair.lists = Lists::Uncertain;
                }
            });
        }
    }

    fn each_pair(&mut self, change: impl FnMut(&mut PairState)) {
        self.pairs.iter_mut().flatten().for_each(change);
    }

    /// Compares the lists of a pair of sets, or their absence, with what they must be.
    pub(super) fn check_lists(
        &self,
        targets: usize,
        sources: usize,
        found: Result<&NeighborLists, Error>,
    ) {
        let state = self.pairs[targets][sources];
        match (found, state.lists) {
            (Ok(lists), Lists::Current | Lists::Uncertain) => {
                assert!(state.active, "lists of a pair that is not active");
                let case = self.case(targets, sources);
                let full = self.full(targets, sources);
                let listed = |(index, list): (usize, &Vec<Neighbor>)| {
                    let listed = |neighbor: &&Neighbor| match case.list {
                        oracle::ListKind::Full => true,
                        oracle::ListKind::Half => {
                            (neighbor.index as usize, neighbor.image) > (index, [0; 3])
                        }
                    };
                    let list = list.iter().filter(listed);
                    list.map(|neighbor| neighbor.index).collect()
                };
                let expected = full.iter().enumerate().map(listed).collect();
                compare(&case, lists, expected);
            }
            (Err(error), Lists::Outdated | Lists::Uncertain)
                if matches!(error.kind(), ErrorKind::NoLists { .. }) => {}
            (Ok(_), Lists::Outdated) => panic!("outdated lists are handed out"),
            (Err(error), _) => panic!("lists of {targets} among {sources}: {error}"),
        }
    }

    /// Compares the neighbours of free positions.
    pub(super) fn check_query(&self, at: Vec<[f32; 3]>, sources: usize, found: &NeighborLists) {
        let case = Case {
            sets: vec![at, self.sets[sources].clone()],
            source: 1,
            ..Case::new("query", self.radius, Vec::new()).periodic(self.periodic)
        };
        compare(&case, found, case.expected());
    }

    /// All neighbours of all targets by the oracle.
    fn full(&self, targets: usize, sources: usize) -> Rc<Full> {
        let known = self.known.borrow().get(&[targets, sources]).cloned();
        known.unwrap_or_else(|| {
            let case = Case {
                list: oracle::ListKind::Full,
                ..self.case(targets, sources)
            };
            let full = case.problem().neighbors();
            let work = (case.targets().len() * case.sources().len()) as f64;
            if work * self.images(self.radius, &[]) <= LITTLE_WORK {
                assert_eq!(full, case.problem().brute_force(), "the oracle");
            }
            let full = Rc::new(full);
            let mut known = self.known.borrow_mut();
            known.insert([targets, sources], Rc::clone(&full));
            full
        })
    }

    /// How many neighbours each target has.
    pub(super) fn counts(&self, targets: usize, sources: usize) -> Vec<u32> {
        let full = self.full(targets, sources);
        full.iter().map(|list| list.len() as u32).collect()
    }

    /// The neighbours of one target, ascending.
    pub(super) fn neighbors_of(&self, targets: usize, sources: usize, point: usize) -> Vec<u32> {
        let full = self.full(targets, sources);
        full[point].iter().map(|neighbor| neighbor.index).collect()
    }

    /// Sums of a traversal with the labels' kernel.
    pub(super) fn sums(&self, targets: usize, sources: usize) -> Vec<[f32; 3]> {
        let own = labels(self.sets[targets].len());
        let others = labels(self.sets[sources].len());
        let sum = |(index, list): (usize, &Vec<Neighbor>)| {
            let mut sum = [0.0; 3];
            for neighbor in list {
                let source = neighbor.index as usize;
                let (from, to) = (self.sets[targets][index], self.sets[sources][source]);
                let d = self.displacement(from, to, neighbor.image);
                let more = contribution(d, own[index], others[source]);
                sum = [0, 1, 2].map(|channel| sum[channel] + more[channel]);
            }
            sum
        };
        let full = self.full(targets, sources);
        full.iter().enumerate().map(sum).collect()
    }

    fn displacement(&self, from: [f32; 3], to: [f32; 3], image: [i64; 3]) -> [f32; 3] {
        [0, 1, 2].map(|axis| {
            let length = self.periodic[axis].unwrap_or(0.0);
            (to[axis] - from[axis]) + (image[axis] as f64 * length) as f32
        })
    }

    /// Compares squared displacements that a callback was given with the contract's.
    pub(super) fn check_pair(&self, from: [f32; 3], to: [f32; 3], d: [f32; 3], d2: f32) {
        let squared = d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]));
        assert_eq!(squared, d2);
        assert!(d2 <= self.radius * self.radius);
        for axis in (0..3).filter(|&axis| self.periodic[axis].is_none()) {
            assert_eq!(d[axis], to[axis] - from[axis]);
        }
    }

    fn case(&self, targets: usize, sources: usize) -> Case {
        let half = targets == sources && self.kind == ListKind::Half;
        Case {
            sets: self.sets.clone(),
            target: targets,
            source: sources,
            list: if half {
                oracle::ListKind::Half
            } else {
                oracle::ListKind::Full
            },
            ..Case::new("session", self.radius, Vec::new()).periodic(self.periodic)
        }
    }
}

/// Compares lists with the expected ones, which are ascending.
fn compare(case: &Case, lists: &NeighborLists, expected: Vec<Vec<u32>>) {
    let mut found: Vec<Vec<u32>> = lists.iter().map(<[u32]>::to_vec).collect();
    let pairs: usize = found.iter().map(Vec::len).sum();
    assert_eq!(lists.pairs(), pairs as u64);
    found.iter_mut().for_each(|list| list.sort_unstable());
    if found != expected {
        let (radius, periodic) = (case.radius, case.periodic);
        let mismatch = case.check(found);
        panic!("r = {radius}, box {periodic:?}: {mismatch:?}");
    }
}

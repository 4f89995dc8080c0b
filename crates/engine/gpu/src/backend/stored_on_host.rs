//! The kernels of stored.cu, slots.cu and point_data.cu on the CPU, thread by thread: pairs over
//! lists are the contract's, displacement for displacement, in either precision, also over lists
//! that hold too much, over those that filters have left pairs out of, and over lists with a skin
//! at positions that have moved since. As in `systems_on_host`.

use super::sorted_on_host::is_double;
use super::{
    filters_on_host::Drawn,
    on_host::{compiled, radius_of},
    stored::candidates,
};
use crate::constants::{NAMED, NEAREST, READ_AHEAD};
use crate::launch::{
    FilteredWalk, Filters, Geometry, Lattice, Outlet, Points, Stored, Walk, sources,
};
use crate::traversal::Candidates;
use libloading::Library;
use nearfield_grid::{self as grid, Bounds, Domain, Positions, Radius};
use nearfield_shared::Header;
use nearfield_testkit::{
    conformance::{Case, Level, Runner},
    oracle::{self, Real},
    random::Random,
};
use std::sync::{Mutex, OnceLock, PoisonError};

type RunStored = unsafe extern "C" fn(*const FilteredWalk, *const Outlet, *const Stored, u32);
type RunGather = unsafe extern "C" fn(*const [f32; 4], *const f32, u32, u32, *mut f32, *mut f32);
type RunSlots =
    unsafe extern "C" fn(*const [f32; 4], u32, *mut u32, *const u32, *const u64, u64, *mut u32);

/// A pair kernel of one channel of a target, two of a source and three results, whose sums are
/// exact in any order: the number of pairs, a number of both points, and one of the displacement.
const KERNEL: &str = "
__device__ __forceinline__ void told_apart(const float*, const Pair& p, const float* t, const float* s, float* r) {
    u32 hash = __float_as_uint(p.d2);
    for (int axis = 0; axis < 3; axis++) hash = 31 * hash + __float_as_uint(p.d[axis]);
    r[0] = 1.0f;
    r[1] = 3.0f * t[0] + s[0] + 2.0f * s[1];
    r[2] = static_cast<float>(hash % 4093);
}
";

/// The same on the host.
fn evaluate(d: [f32; 3], d2: f32, target: f32, source: [f32; 2]) -> [f32; 3] {
    let add = |hash: u32, d: &f32| hash.wrapping_mul(31).wrapping_add(d.to_bits());
    let hash = d.iter().fold(d2.to_bits(), add);
    let points = 3.0 * target + source[0] + 2.0 * source[1];
    [1.0, points, (hash % 4093) as f32]
}

/// Small whole numbers.
fn channels(index: usize) -> [f32; 2] {
    [(index % 13) as f32, (index % 7) as f32]
}

/// The compiled kernels of a precision, without or with filters; None where a test is to be
/// skipped. A block runs at a time.
pub(super) fn kernels<T: Real>(filters: u32) -> Option<&'static Mutex<Library>> {
    static COMPILED: [OnceLock<Option<Mutex<Library>>>; 4] = [const { OnceLock::new() }; 4];
    let double = usize::from(is_double::<T>());
    let compile = || {
        let of_engine = sources::STORED.headers.iter().copied();
        let user = Header::new("nearfield/user.cuh", KERNEL);
        let headers: Vec<Header> = of_engine.chain([user]).collect();
        let defines = [
            format!("-DNF_DOUBLE={double}"),
            format!("-DNF_FILTERS={filters}"),
        ];
        let defines = defines.each_ref().map(String::as_str);
        compiled("stored.cpp", &headers, &defines).map(Mutex::new)
    };
    COMPILED[double + 2 * usize::from(filters != 0)]
        .get_or_init(compile)
        .as_ref()
}

/// A set in some order, as sorted points.
pub(super) struct Sorted<T> {
    /// In double precision no positions.
    pub(super) at: Vec<[f32; 4]>,
    pub(super) given: Vec<[T; 3]>,
    flags: [u32; 3],
}

impl<T: Real> Sorted<T> {
    pub(super) fn new(points: &[[T; 3]], random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..points.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let at = |&index: &usize| {
            let seen = |x: T| match is_double::<T>() {
                true => f32::NAN,
                false => x.to_f64() as f32,
            };
            let [x, y, z] = points[index].map(seen);
            [x, y, z, f32::from_bits(index as u32)]
        };
        Self {
            at: order.iter().map(at).collect(),
            given: order.iter().map(|&index| points[index]).collect(),
            flags: [0; 3],
        }
    }

    /// A set in the same order, at no positions yet.
    pub(super) fn at_places_of(other: &Self) -> Self {
        Self {
            at: other.at.clone(),
            given: other.given.clone(),
            flags: other.flags,
        }
    }

    fn layout(&self, at: &[[f32; 4]]) -> Points {
        Points {
            at: at.as_ptr() as u64,
            wraps: 0,
            proxies: 0,
            boxes: 0,
            given: self.given.as_ptr() as u64,
            starts: 0,
            flags: self.flags.as_ptr() as u64,
            ids: 0,
            bricks: 0,
            origin: [0; 3],
            dims: [0; 3],
            mask: 0,
            sparse: 0,
            cells: 0,
            count: self.at.len() as u32,
            pad: [0; 3],
            slots: 0,
        }
    }
}

/// Two sets, lists of the first among the second, and what the kernels take beside them.
pub(super) struct Listed<'a, T> {
    pub(super) lattice: grid::Lattice,
    pub(super) same_set: bool,
    pub(super) targets: &'a Sorted<T>,
    pub(super) sources: &'a Sorted<T>,
    /// Of the sorted targets, as the caller's indices.
    pub(super) lists: Vec<Vec<u32>>,
    pub(super) filters: Filters,
}

impl<T: Real> Listed<'_, T> {
    /// The results of all targets in the caller's order, by a way to find images (0: the one for
    /// all boxes, by warps). `now` has the positions of both sets.
    pub(super) fn run(
        &self,
        library: &Library,
        way: u32,
        stored: Stored,
        radius: Radius,
        now: [&[[f32; 4]]; 2],
    ) -> Vec<[f32; 3]> {
        let (mut starts, mut counts, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for list in &self.lists {
            starts.push(entries.len() as u64);
            counts.push(list.len() as u32);
            entries.extend_from_slice(list);
        }
        starts.push(entries.len() as u64);
        let count = self.sources.at.len();
        let slots = self.slots(library, &entries);
        let fields: Vec<f32> = (0..count)
            .flat_map(|index| [channels(index)[0], channels(index)[1], -1.0])
            .collect();
        let of_targets: Vec<f32> = (0..self.targets.at.len())
            .map(|index| channels(index)[0])
            .collect();
        let room = count + READ_AHEAD as usize;
        let (mut first, mut more) = (vec![[0f32; 4]; room], vec![[0f32; 4]; room]);
        let mut results = vec![[f32::NAN; 3]; self.targets.at.len()];
        let walk = Walk {
            lattice: Lattice::of_box(&self.lattice).within(radius),
            geometry: Geometry::default(),
            targets: self.targets.layout(now[0]),
            sources: self.sources.layout(now[1]),
            steps: 0,
            rows: 0,
            row_count: 0,
            same_set: u32::from(self.same_set),
        };
        let walk = FilteredWalk {
            walk,
            filters: self.filters,
        };
        let outlet = Outlet {
            starts: starts.as_ptr() as u64,
            counts: counts.as_ptr() as u64,
            entries: slots.as_ptr() as u64,
            capacity: slots.len() as u64,
            sources: first.as_ptr() as u64,
            more: more.as_ptr() as u64,
            target_fields: of_targets.as_ptr() as u64,
            target_stride: 1,
            results: results.as_mut_ptr() as u64,
            ..Outlet::default()
        };
        // SAFETY: the functions are declared so in stored.cpp; all arrays are as long as their
        // kernels need them, and outlive the calls.
        unsafe {
            let gather = library.get::<RunGather>(b"run_gather").unwrap();
            let (to, others) = (first.as_mut_ptr().cast(), more.as_mut_ptr().cast());
            gather(
                now[1].as_ptr(),
                fields.as_ptr(),
                3,
                count as u32,
                to,
                others,
            );
            library.get::<RunStored>(b"run_stored").unwrap()(&walk, &outlet, &stored, way);
        }
        results
    }

    /// Entries as sorted places, those of each list ascending if it may hold repeats.
    fn slots(&self, library: &Library, entries: &[u32]) -> Vec<u32> {
        let (count, total) = (self.sources.at.len(), entries.len() as u64);
        let (mut places, mut slots) = (vec![0; count], vec![0; entries.len()]);
        // SAFETY: as above.
        unsafe {
            library.get::<RunSlots>(b"run_slots").unwrap()(
                self.sources.at.as_ptr(),
                count as u32,
                places.as_mut_ptr(),
                entries.as_ptr(),
                &total,
                total,
                slots.as_mut_ptr(),
            );
        }
        for (slot, entry) in slots.iter().zip(entries) {
            assert_eq!(self.sources.at[*slot as usize][3].to_bits(), *entry);
        }
        if self.lattice.repeats() {
            let mut rest = slots.as_mut_slice();
            for list in &self.lists {
                let (these, others) = rest.split_at_mut(list.len());
                these.sort_unstable();
                rest = others;
            }
        }
        slots
    }
}

/// What the contract says of the kernel, in the caller's order.
pub(super) fn expected<T: Real>(
    case: &Case<T>,
    neighbors: &[Vec<oracle::Neighbor>],
) -> Vec<[f32; 3]> {
    let problem = case.problem();
    let of_target = |(target, list): (usize, &Vec<oracle::Neighbor>)| {
        list.iter().fold([0.0f32; 3], |sum, neighbor| {
            let source = neighbor.index as usize;
            let (from, to) = (case.targets()[target], case.sources()[source]);
            let d = problem.displacement(from, to, neighbor.image);
            let d2 = problem.distance_squared(from, to, neighbor.image);
            let rounded = |x: T| x.to_f64() as f32;
            let (d, d2) = (d.map(rounded), rounded(d2));
            let value = evaluate(d, d2, channels(target)[0], channels(source));
            [0, 1, 2].map(|at| sum[at] + value[at])
        })
    };
    neighbors.iter().enumerate().map(of_target).collect()
}

pub(super) fn domain_of<T: Real>(case: &Case<T>) -> Domain {
    match case.vectors {
        Some(vectors) => Domain::from_vectors(vectors).unwrap(),
        None => Domain::new(case.periodic).unwrap(),
    }
}

pub(super) fn lattice_of<T: Real>(case: &Case<T>, radius: T) -> grid::Lattice
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let domain = domain_of(case);
    let bounds = (case.sets.iter())
        .map(|set| Bounds::of(set.as_slice().into(), &domain).unwrap())
        .fold(Bounds::EMPTY, |all, one| all.union(&one));
    grid::Lattice::divided(radius_of(radius), domain, [1; 3], &bounds).unwrap()
}

/// Lists as they are found, or with sources beyond the radius too.
pub(super) fn lists_of<T: Real>(
    case: &Case<T>,
    sorted: &Sorted<T>,
    neighbors: &[Vec<oracle::Neighbor>],
    more: bool,
    random: &mut Random,
) -> Vec<Vec<u32>> {
    let of = |at: &[f32; 4]| {
        let target = at[3].to_bits();
        let mut list: Vec<u32> = (neighbors[target as usize].iter())
            .map(|neighbor| neighbor.index)
            .collect();
        if more {
            let fits = |index: &u32| {
                let itself = case.target == case.source && *index == target;
                !list.contains(index) && !itself
            };
            let all = (0..case.sources().len() as u32).filter(fits);
            let others: Vec<u32> = all.filter(|_| random.below(4) == 0).take(50).collect();
            list.extend(others);
            list.reverse();
        }
        list
    };
    sorted.at.iter().map(of).collect()
}

#[test]
fn kernels_over_lists_see_the_pairs_of_the_contract() {
    check_kernels_over_lists(Runner::new(Level::Quick));
}

#[test]
fn kernels_over_lists_in_double_see_the_pairs_of_the_contract() {
    check_kernels_over_lists(Runner::in_double(Level::Quick));
}

fn check_kernels_over_lists<T: Real>(runner: Runner<T>)
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let Some(library) = kernels::<T>(0) else {
        return;
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let runner = runner.keep(|case| {
        case.rule == oracle::RadiusRule::Uniform && case.list == oracle::ListKind::Full
    });
    let (mut random, mut taken) = (Random::new(3), [0; 9]);
    for (number, (case, neighbors)) in runner.with_neighbors().enumerate() {
        let lattice = lattice_of(case, case.radius);
        let pairs: usize = neighbors.iter().map(Vec::len).sum();
        // Threads of the host take their time, and most cases find images in the same two ways.
        let frequent = matches!(
            candidates(&lattice, lattice.radius()),
            Candidates::ListedOpen | Candidates::ListedImages
        );
        let max_targets = if frequent { 100 } else { 600 };
        let large = case.targets().len() > max_targets || pairs > 30_000;
        let left_out = large || (frequent && number % 4 > 1);
        if case.targets().is_empty() || case.sources().is_empty() || left_out {
            continue;
        }
        let same_set = case.target == case.source;
        let targets = Sorted::new(case.targets(), &mut random);
        let others = Sorted::new(case.sources(), &mut random);
        let sources = if same_set { &targets } else { &others };
        let listed = Listed {
            lists: lists_of(case, &targets, neighbors, number % 2 == 1, &mut random),
            filters: Filters::default(),
            same_set,
            targets: &targets,
            sources,
            lattice,
        };
        let exact = expected(case, neighbors);
        let radius = listed.lattice.radius();
        let stored = Stored::of(&listed.lattice, radius);
        let own = candidates(&listed.lattice, listed.lattice.radius()) as u32;
        taken[own as usize] += 1;
        let other = if number % 4 == 1 {
            0
        } else {
            Candidates::ListedImages as u32
        };
        let ways = [own, other];
        for &way in &ways[..1 + number % 2] {
            let now = [targets.at.as_slice(), &sources.at];
            let found = listed.run(&library, way, stored, radius, now);
            assert_eq!(found, exact, "{} by {way}", case.name);
        }
    }
    println!("{taken:?}");
    assert!(taken[5..].iter().all(|&cases| cases > 5), "{taken:?}");
}

#[test]
fn kernels_over_filtered_lists_of_small_boxes_see_the_images_that_are_left() {
    check_filtered_lists(Runner::new(Level::Quick));
    check_filtered_lists(Runner::in_double(Level::Quick));
}

fn check_filtered_lists<T: Real>(runner: Runner<T>)
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let Some(library) = kernels::<T>(NAMED + NEAREST) else {
        return;
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let runner = runner.keep(|case| {
        let few = (1..=60).contains(&case.targets().len()) && !case.sources().is_empty();
        let uniform = case.rule == oracle::RadiusRule::Uniform;
        uniform && few && case.list == oracle::ListKind::Full
    });
    let (mut random, mut cases, mut pairs) = (Random::new(9), 0, [0, 0]);
    for (case, all) in runner.with_neighbors() {
        let lattice = lattice_of(case, case.radius);
        let count = |lists: &[Vec<oracle::Neighbor>]| lists.iter().map(Vec::len).sum::<usize>();
        if !lattice.repeats() || count(all) > 20_000 {
            continue;
        }
        let mut drawn = Drawn::new(case, all, &mut random);
        let kept = case.problem().without(&drawn.oracle, all.to_vec());
        let (kept, nearest) = drawn.nearest(case, kept, &mut random);
        let targets = Sorted::new(case.targets(), &mut random);
        let others = Sorted::new(case.sources(), &mut random);
        let same_set = case.target == case.source;
        let sources = if same_set { &targets } else { &others };
        let mut held = [Vec::new(), Vec::new()];
        let listed = Listed {
            lists: lists_of(case, &targets, &kept, false, &mut random),
            filters: drawn.layout(&sources.at, &nearest, &mut held),
            same_set,
            targets: &targets,
            sources,
            lattice,
        };
        let radius = listed.lattice.radius();
        let stored = Stored::of(&listed.lattice, radius);
        let now = [targets.at.as_slice(), &sources.at];
        let way = Candidates::ListedImages as u32;
        let found = listed.run(&library, way, stored, radius, now);
        assert_eq!(found, expected(case, &kept), "{}", case.name);
        cases += 1;
        pairs = [pairs[0] + count(&kept), pairs[1] + count(all)];
    }
    println!("{cases} cases, {pairs:?}");
    assert!(
        cases > 5 && pairs[0] > 0 && pairs[0] < pairs[1],
        "{cases}, {pairs:?}"
    );
}

//! Neighbours in double precision.
//!
//! Candidates are gathered as in single precision, by vectors of `f32`, but by the proxies of the
//! points ([`DoublePoints`]), whose distances are compared with a slightly larger radius that no
//! pair of the contract exceeds. The few that pass are decided here: from the positions as they
//! were given, in `f64`, with the very operations of the contract. So which pairs are found does not
//! depend on the proxies, only how many are looked at does.

use crate::{
    PairOfSets, SimdLevel,
    aligned::Aligned,
    candidates::Candidates,
    group::{Group, Piece, Scratch, Walk},
    image::{Image, image_of},
    long_list::long_list,
    search::ListSink,
    simd::{HALF, LANES, Mode, SHIFTED, Select, Simd, Tag, Task, has, squared_f64, with_level},
};
use nearfield_grid::DoublePoints;
use nearfield_pairs::{ListKind, Pair};
use std::ops::Range;

mod traverse;

pub(crate) use traverse::TraverseInDouble;

/// What the kernels of this library see of a pair in double precision: displacement and square,
/// each rounded once.
#[inline(always)]
fn rounded(d: [f64; 3], d2: f64) -> Pair {
    Pair {
        d: [d[0] as f32, d[1] as f32, d[2] as f32],
        d2: d2 as f32,
    }
}

/// fl(fl(x_j − x_i) + S) per axis.
#[inline(always)]
fn difference(from: [f64; 3], to: [f64; 3], image_vector: [f64; 3]) -> [f64; 3] {
    [
        (to[0] - from[0]) + image_vector[0],
        (to[1] - from[1]) + image_vector[1],
        (to[2] - from[2]) + image_vector[2],
    ]
}

impl<'a> Walk<'a> {
    /// The walk over the candidates that are to be decided in double precision.
    pub(crate) fn filtering(mut self) -> Self {
        self.tag = Tag::Slot;
        self.ranked = false;
        self.radii.targets = self.targets.points().double().map(DoublePoints::filter_r2);
        self
    }

    /// Positions in double precision of targets and sources, when that is what is searched.
    #[inline(always)]
    pub(crate) fn double(&self) -> Option<[&'a DoublePoints; 2]> {
        let (targets, sources) = (self.targets.points(), self.sources.points());
        Some([targets.double()?, sources.double()?])
    }

    /// [`lists`](Self::lists) in double precision.
    pub(crate) fn lists_in_double(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        kind: ListKind,
        sink: &mut impl ListSink,
    ) {
        let half = kind == ListKind::Half && self.same_set;
        let walk = self;
        with_level(
            level,
            ListTask {
                walk,
                slots,
                scratch,
                half,
                sink,
            },
        );
    }
}

/// Lists of a range of targets.
struct ListTask<'a, L> {
    walk: &'a Walk<'a>,
    slots: Range<usize>,
    scratch: &'a mut Scratch,
    half: bool,
    sink: &'a mut L,
}

impl<L: ListSink> Task for ListTask<'_, L> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut places = std::mem::take(&mut self.scratch.places);
        let mut groups = self.walk.groups(self.slots);
        // SAFETY: the caller's promise; the modes are what the candidates carry.
        unsafe {
            while let Some((group, mode)) = groups.next::<S>(self.scratch) {
                if !group.is_whole() {
                    self.scratch.places = std::mem::take(&mut places);
                    let (half, found) = (self.half, (group, mode));
                    long_list::<S>(&mut groups, found, half, self.scratch, self.sink);
                    places = std::mem::take(&mut self.scratch.places);
                    continue;
                }
                if let Err(shortage) = places.grow(self.scratch.candidates.len() + LANES) {
                    self.scratch.failed = Some(shortage);
                    break;
                }
                let Some(decide) = Decide::new(self.walk, &group, self.scratch) else {
                    continue;
                };
                let shifted = has(mode, SHIFTED);
                match (shifted, self.half) {
                    (false, false) => decide.lists::<S, 0, L>(&mut places, self.sink),
                    (true, false) => decide.lists::<S, SHIFTED, L>(&mut places, self.sink),
                    (false, true) => decide.lists::<S, HALF, L>(&mut places, self.sink),
                    (true, true) => {
                        decide.lists::<S, { SHIFTED | HALF }, L>(&mut places, self.sink);
                    }
                }
            }
        }
        self.scratch.places = places;
    }
}

/// A group of targets whose candidates are to be decided.
pub(crate) struct Decide<'a> {
    walk: &'a Walk<'a>,
    pub(crate) group: &'a Group,
    candidates: &'a Candidates,
    /// Consecutive candidates of one image each; meaningful when they carry image vectors.
    pieces: &'a [Piece],
    targets: &'a DoublePoints,
    sources: &'a DoublePoints,
    r2: f64,
}

/// A target that searches.
#[derive(Clone, Copy)]
struct Target {
    position: [f64; 3],
    /// The caller's index of it.
    index: u32,
    /// Its place among the sorted sources, or `u32::MAX`, which no point has.
    own_slot: u32,
}

/// Where neighbours go.
trait Receive {
    /// Takes the source `slot` as number `at`, until another is put there.
    ///
    /// # Safety
    /// There is room, and such a source.
    unsafe fn put(&mut self, at: usize, slot: usize, d: [f64; 3], d2: f64);
}

impl<'a> Decide<'a> {
    /// None in single precision.
    #[inline(always)]
    pub(crate) fn new(walk: &'a Walk<'_>, group: &'a Group, scratch: &'a Scratch) -> Option<Self> {
        let [targets, sources] = walk.double()?;
        Some(Self {
            walk,
            group,
            candidates: &scratch.candidates,
            pieces: &scratch.pieces,
            targets,
            sources,
            r2: walk.sources.lattice().radius().squared_f64(),
        })
    }

    /// Hands the list of every target of the group to `sink`.
    ///
    /// # Safety
    /// The processor has the level `S`, `MODE` says what candidates carry, and there are places for
    /// all of them and [`LANES`] more.
    #[inline(always)]
    unsafe fn lists<S: Simd, const MODE: Mode, L: ListSink>(
        &self,
        places: &mut Aligned<u32>,
        sink: &mut L,
    ) {
        for slot in self.group.slots.clone() {
            let to = sink.room(0, self.candidates.len());
            if to.is_null() {
                return;
            }
            // SAFETY: the caller's promise; the sink made room for all candidates and a vector, and
            // every target lies in one task and is visited once there.
            unsafe {
                let count = self.list::<S, MODE>(slot, places, to);
                sink.put(0, self.walk.targets.points().index()[slot] as usize, count);
            }
        }
    }

    /// Writes the list of sorted target `slot` to `to` and returns how long it is.
    ///
    /// # Safety
    /// As for [`lists`](Self::lists), and `to` has room for all neighbours and one more.
    #[inline(always)]
    pub(crate) unsafe fn list<S: Simd, const MODE: Mode>(
        &self,
        slot: usize,
        places: &mut Aligned<u32>,
        to: *mut u32,
    ) -> usize {
        let index = self.walk.sources.points().index();
        // SAFETY: the caller's promise.
        unsafe { self.target::<S, MODE, _>(slot, places, &mut ListOf { to, index }) }
    }

    /// Hands the neighbours of sorted target `slot` to `to` and returns how many they are.
    ///
    /// # Safety
    /// As for [`lists`](Self::lists), and `to` has room for all candidates and one more.
    #[inline(always)]
    unsafe fn target<S: Simd, const MODE: Mode, R: Receive>(
        &self,
        slot: usize,
        places: &mut Aligned<u32>,
        to: &mut R,
    ) -> usize {
        let points = self.walk.targets.points();
        let filter = Select {
            target: points.position(slot),
            r2: self.walk.r2(slot),
            own_tag: u32::MAX,
            own_place: usize::MAX,
        };
        let target = Target {
            position: self.targets.position(slot),
            index: points.index()[slot],
            own_slot: match self.walk.same_set {
                true => slot as u32,
                false => u32::MAX,
            },
        };
        // SAFETY: the caller's promise.
        let passed = unsafe { S::filter::<MODE>(&filter, self.candidates, places.as_mut_ptr()) };
        let mut rest = &places[..passed];
        if !has(MODE, SHIFTED) {
            // SAFETY: as above.
            return unsafe { self.image::<MODE, R>(&target, rest, [0; 3], [0.0; 3], to, 0) };
        }
        let mut found = 0;
        for piece in self.pieces {
            let end = piece.end as u32;
            let count = rest.iter().take_while(|&&place| place < end).count();
            let (here, others) = rest.split_at(count);
            rest = others;
            // SAFETY: as above.
            found = unsafe {
                self.image::<MODE, R>(&target, here, piece.image, piece.image_vector, to, found)
            };
        }
        found
    }

    /// Decides candidates of one image, behind the `found` that are there; returns how many there
    /// are then.
    ///
    /// # Safety
    /// The places are those of candidates, which are tagged by sorted source, and `to` has room for
    /// them.
    #[inline(always)]
    unsafe fn image<const MODE: Mode, R: Receive>(
        &self,
        target: &Target,
        places: &[u32],
        image: Image,
        image_vector: [f64; 3],
        to: &mut R,
        mut found: usize,
    ) -> usize {
        let tags = self.candidates.tags();
        let index = self.walk.sources.points().index();
        let [x, y, z] = self.sources.axes();
        let own_slot = match image == [0; 3] {
            true => target.own_slot,
            false => u32::MAX,
        };
        let positive = u32::from(image > [0; 3]);
        for &place in places {
            // SAFETY: the caller's promise.
            unsafe {
                let slot = *tags.get_unchecked(place as usize);
                let at = slot as usize;
                let source = [
                    *x.get_unchecked(at),
                    *y.get_unchecked(at),
                    *z.get_unchecked(at),
                ];
                let d = difference(target.position, source, image_vector);
                let d2 = squared_f64(d);
                let counts = match has(MODE, HALF) {
                    true => *index.get_unchecked(at) + positive > target.index,
                    false => slot != own_slot,
                };
                to.put(found, at, d, d2);
                found += usize::from((d2 <= self.r2) & counts);
            }
        }
        found
    }
}

/// A list being written.
struct ListOf<'a> {
    to: *mut u32,
    /// The caller's index of every source.
    index: &'a [u32],
}

impl Receive for ListOf<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, at: usize, slot: usize, _: [f64; 3], _: f64) {
        // SAFETY: the caller's promise.
        unsafe { self.to.add(at).write(*self.index.get_unchecked(slot)) };
    }
}

impl PairOfSets<'_> {
    /// [`for_each_neighbor`](Self::for_each_neighbor) in double precision.
    #[inline(always)]
    pub(crate) fn for_each_in_double(
        &self,
        slot: usize,
        [targets, sources]: [&DoublePoints; 2],
        mut visit: impl FnMut(u32, Image, Pair),
    ) {
        let lattice = self.sources.lattice();
        let r2 = lattice.radius().squared_f64();
        let position = targets.position(slot);
        let wraps = self.targets.points().wraps(slot);
        let points = self.sources.points();
        (self.sources).for_each_run(lattice.cell_f64(position), |run| {
            for source in run.slots.clone() {
                let other = points.wraps(source);
                let image = image_of(run.image, wraps, other);
                let image_vector = lattice.domain().image_vector_f64(image);
                let d = difference(position, sources.position(source), image_vector);
                let d2 = squared_f64(d);
                let itself = self.same_set && source == slot && image == [0; 3];
                if d2 <= r2 && !itself {
                    visit(points.index()[source], image, rounded(d, d2));
                }
            }
        });
    }
}

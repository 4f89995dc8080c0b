//! Tests targets against the gathered candidates, a vector at a time.
//!
//! One loop serves lists and packed neighbours in either precision: [`scan`] computes
//! displacements, squared distances and the mask of neighbours, and a [`Keep`] stores the lanes of
//! the mask. `TARGETS` targets are tested together, each storing to a stream of its own. Hits are
//! stored as whole vectors that overlap the ones before, and a store to the cache line of the store
//! before it waits for that one; with four streams in turn the same work takes 0.6 of the time on
//! long lists.
//!
//! The loop has no branch that depends on data, but for one that proxies take near the radius. A
//! target is not a neighbour of itself; that is decided by its tag, or by its number among the
//! candidates where these are shifted, because other images of the target have the same tag.
//!
//! Everything is `#[inline(always)]` and free of closures, so that it becomes part of the function
//! that [`Simd::call`](crate::simd::Simd::call) compiles for a level.
//!
//! # Double precision
//!
//! With [`PROXIES`] the proxies decide, except near the radius ([`super::near`]): the squared
//! distance is compared with an inner bound too, and a branch that is hardly ever taken leads to
//! scalar code. With [`EXACT`], where geometry is kept or proxies are coarse, the distances are
//! those of the positions as given, in `f64` by the operations of the contract, a few vectors of
//! `f64` for one of `f32`. The proxies in `f32` only chose the candidates then: whenever the
//! contract finds a pair, the proxies pass the box test of gathering, whose radius is enlarged by
//! the largest error of two proxies ([`filter_r2`](nearfield_grid::DoublePoints::filter_r2)). So
//! the set of pairs does not depend on proxies, only the number of candidates does.
//!
//! # Half lists and own images
//!
//! With [`HALF`] the rank decides and the target itself never passes, because its rank is its own
//! index. Without it, in shifted modes, the lane of the target is masked by its number among the
//! candidates.

use super::{
    arrays::Candidates,
    gather::{splat, squared},
    mode::{EXACT, HALF, Mode, PROXIES, RADII, SHIFTED, carries, has},
    near::Near,
};
use crate::simd::{
    LANES,
    vector::{Compress, Vector},
};
use nearfield_pairs::Pair;

/// Targets that are searched together, each writing its list to a stream of its own.
pub(crate) const STREAMS: usize = 4;

/// One target, and the conditions other than distance for a candidate to enter its list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Select<'a> {
    /// Position of the target.
    pub(crate) target: [f32; 3],
    /// Squared radius; for [`RADII`] the larger of this and the candidate's own counts.
    pub(crate) r2: f32,
    /// Tag that the target itself has among the candidates, or `u32::MAX`, which no point has.
    pub(crate) own_tag: u32,
    /// Number of the target itself among the candidates, or `usize::MAX`; used instead of the tag
    /// where candidates are shifted.
    pub(crate) own_candidate: usize,
    /// Position and squared radius in double precision, which decide for [`EXACT`]; for [`RADII`]
    /// the larger of this and the candidate's own.
    pub(crate) exact: ExactSelect,
    /// Positions that decide near the radius for [`PROXIES`].
    pub(crate) near: Near<'a>,
}

/// One target in double precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExactSelect {
    /// Its position as given.
    pub(crate) target: [f64; 3],
    /// fl(r·r).
    pub(crate) r2: f64,
}

impl ExactSelect {
    /// Where single precision decides. A constant: `default` of an array is a call per target in
    /// builds without optimisation across units.
    pub(crate) const NONE: Self = Self {
        target: [0.0; 3],
        r2: 0.0,
    };
}

/// Where the candidates that pass the test of one target go.
pub(crate) trait Keep<V: Compress>: Copy {
    /// Displacements and squared distances are kept; else they need not be computed.
    const GEOMETRY: bool = false;

    /// Keeps the lanes `order`, `count` of them, of a block of candidates at displacements `d` and
    /// squared distances `d2`.
    ///
    /// # Safety
    /// The processor has the vector's level, and there is room for a vector after the kept values.
    unsafe fn keep(&mut self, block: &Block<V>, d: [V; 3], d2: V, order: V::Order, count: usize);
}

/// Keeps the tags of the neighbours: a list.
#[derive(Clone, Copy)]
pub(crate) struct Tags {
    /// Where the next tag goes; [`LANES`](crate::simd::LANES) tags more than candidates have room.
    pub(crate) end: *mut u32,
}

impl<V: Compress> Keep<V> for Tags {
    #[inline(always)]
    unsafe fn keep(&mut self, block: &Block<V>, _: [V; 3], _: V, order: V::Order, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            V::compress_u32(block.tags, order, self.end);
            self.end = self.end.add(count);
        }
    }
}

/// Keeps tag, displacement and squared distance of the neighbours, and with [`SHIFTED`] their
/// numbers among the candidates, each in an array of its own.
#[derive(Clone, Copy)]
pub(crate) struct Geometry<const MODE: Mode> {
    /// The first array; values of 32 bits.
    data: *mut u32,
    /// Values from one array to the next.
    stride: usize,
    /// Number of kept neighbours.
    count: usize,
}

/// Number of arrays of [`Geometry`]: displacements along each axis, squares, tags, numbers.
pub(crate) const GEOMETRY_ARRAYS: usize = 6;

impl<const MODE: Mode> Geometry<MODE> {
    /// No neighbours yet, in [`GEOMETRY_ARRAYS`] arrays from `data` on, `stride` values apart: all
    /// candidates have room, and a vector more.
    #[inline(always)]
    pub(crate) fn new(data: *mut u32, stride: usize) -> Self {
        let count = 0;
        Self {
            data,
            stride,
            count,
        }
    }

    /// The end of the neighbours in an array.
    #[inline(always)]
    fn end(&self, array: usize) -> *mut u32 {
        self.data.wrapping_add(array * self.stride + self.count)
    }

    /// The values that were kept in an array.
    ///
    /// # Safety
    /// The arrays are there, and are not written to for as long as the result is used.
    #[inline(always)]
    unsafe fn values<'a, T>(&self, array: usize) -> &'a [T] {
        const { assert!(size_of::<T>() == size_of::<u32>() && align_of::<T>() <= 4) };
        let begin = self.data.wrapping_add(array * self.stride);
        // SAFETY: guaranteed by the caller; `count` values have been written.
        unsafe { std::slice::from_raw_parts(begin.cast(), self.count) }
    }

    /// Displacements along each axis.
    ///
    /// # Safety
    /// As for [`values`](Self::values).
    #[inline(always)]
    pub(crate) unsafe fn displacements<'a>(&self) -> [&'a [f32]; 3] {
        // SAFETY: guaranteed by the caller.
        unsafe { [self.values(0), self.values(1), self.values(2)] }
    }

    /// Squared distances.
    ///
    /// # Safety
    /// As for [`values`](Self::values).
    #[inline(always)]
    pub(crate) unsafe fn squares<'a>(&self) -> &'a [f32] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.values(3) }
    }

    /// Tags.
    ///
    /// # Safety
    /// As for [`values`](Self::values).
    #[inline(always)]
    pub(crate) unsafe fn tags<'a>(&self) -> &'a [u32] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.values(4) }
    }

    /// Numbers among the candidates, ascending; none without [`SHIFTED`].
    ///
    /// # Safety
    /// As for [`values`](Self::values).
    #[inline(always)]
    pub(crate) unsafe fn numbers<'a>(&self) -> &'a [u32] {
        if has(MODE, SHIFTED) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.values(5) }
        } else {
            &[]
        }
    }
}

impl<V: Compress, const MODE: Mode> Keep<V> for Geometry<MODE> {
    const GEOMETRY: bool = true;

    #[inline(always)]
    unsafe fn keep(&mut self, block: &Block<V>, d: [V; 3], d2: V, order: V::Order, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            for axis in 0..3 {
                d[axis].compress(order, self.end(axis).cast());
            }
            d2.compress(order, self.end(3).cast());
            V::compress_u32(block.tags, order, self.end(4));
            if has(MODE, SHIFTED) {
                V::compress_u32(V::count_from(block.first as u32), order, self.end(5));
            }
        }
        self.count += count;
    }
}

/// Arrays of equal length behind each other: value `k` of channel `c` is at `c * stride + k`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channels {
    /// First value of the first channel.
    pub(crate) data: *mut f32,
    /// Values from one channel to the next.
    pub(crate) stride: usize,
    /// Number of channels.
    pub(crate) count: usize,
}

impl Channels {
    /// Where value `k` of a channel is.
    ///
    /// # Safety
    /// There is such a value.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, channel: usize, k: usize) -> *mut f32 {
        debug_assert!(channel < self.count && k < self.stride);
        // SAFETY: guaranteed by the caller.
        unsafe { self.data.add(channel * self.stride + k) }
    }
}

/// Packs neighbours next to each other: the displacement and its square as channels 0 to 3, then
/// the channels of the source.
#[derive(Clone, Copy)]
pub(crate) struct PackNeighbors {
    /// Channels of all candidates, with a vector more than there are candidates.
    pub(crate) gathered: Channels,
    /// Where neighbours go, with room for all candidates and a vector more.
    pub(crate) packed: Channels,
    /// Number of packed neighbours.
    pub(crate) count: usize,
}

impl<V: Compress> Keep<V> for PackNeighbors {
    const GEOMETRY: bool = true;

    #[inline(always)]
    unsafe fn keep(&mut self, block: &Block<V>, d: [V; 3], d2: V, order: V::Order, count: usize) {
        // SAFETY: guaranteed by the caller; `gathered` has a value per candidate and a vector more.
        unsafe {
            for axis in 0..3 {
                d[axis].compress(order, self.packed.at(axis, self.count));
            }
            d2.compress(order, self.packed.at(3, self.count));
            for channel in 0..self.gathered.count {
                let value = V::load(self.gathered.at(channel, block.first));
                value.compress(order, self.packed.at(4 + channel, self.count));
            }
        }
        self.count += count;
    }
}

/// Tests all candidates for every target, keeps those that pass, and returns what keeps them.
///
/// # Safety
/// The processor has the vector's level, `MODE` is the candidates' mode, and each of `to` has
/// room for all candidates and [`LANES`](crate::simd::LANES) more.
#[inline(always)]
pub(crate) unsafe fn scan<V: Compress, K: Keep<V>, const MODE: Mode, const TARGETS: usize>(
    args: &[Select<'_>; TARGETS],
    candidates: &Candidates,
    mut to: [K; TARGETS],
) -> [K; TARGETS] {
    const {
        assert!(
            !(K::GEOMETRY && has(MODE, PROXIES)),
            "proxies have no geometry that could be kept"
        );
    }
    let sources = Sources::new(candidates);
    // SAFETY: the caller guarantees the level and the room. Candidate arrays are padded by LANES.
    unsafe {
        let mut targets = [Target::<V>::new(&args[0]); TARGETS];
        for t in 1..TARGETS {
            targets[t] = Target::new(&args[t]);
        }
        let mut found = BlockGeometry::ZERO;
        let mut k = 0;
        while k < candidates.len() {
            let block = sources.load::<V, MODE>(k);
            let own = holds_own::<V, TARGETS>(args, k);
            let proxies = by_proxies::<V, MODE, TARGETS>(&targets, args, candidates, &block, own);
            for t in 0..TARGETS {
                let (d, d2, near);
                if has(MODE, PROXIES) {
                    // No geometry is kept.
                    (d, d2, near) = (block.position, block.r2, proxies[t]);
                } else if has(MODE, EXACT) {
                    let exact = &args[t].exact;
                    let within = if K::GEOMETRY {
                        found_exactly::<V, MODE, true>(MODE, exact, candidates, k, &mut found)
                    } else {
                        found_exactly::<V, MODE, false>(MODE, exact, candidates, k, &mut found)
                    };
                    (d, d2) = found.narrow();
                    near = within & targets[t].others::<MODE>(&block, own);
                } else {
                    d = targets[t].difference::<MODE>(&block);
                    d2 = squared(d);
                    let within = targets[t].within::<MODE>(&block, d2);
                    near = within & targets[t].others::<MODE>(&block, own);
                }
                let count = near.count_ones() as usize;
                to[t].keep(&block, d, d2, V::order(near), count);
            }
            k += V::LANES;
        }
    }
    to
}

/// Which candidates of a block are neighbours of each target with [`PROXIES`], a bit per lane;
/// zeros without.
///
/// All targets are tested before any of their candidates is decided one by one, so that there is
/// one branch per block, and the vectors of the targets stay in registers.
///
/// # Safety
/// The processor has the level, and candidates have the mode `MODE`.
#[inline(always)]
unsafe fn by_proxies<V: Compress, const MODE: Mode, const TARGETS: usize>(
    targets: &[Target<V>; TARGETS],
    args: &[Select<'_>; TARGETS],
    candidates: &Candidates,
    block: &Block<V>,
    own: bool,
) -> [u32; TARGETS] {
    let (mut near, mut between, mut any) = ([0; TARGETS], [0; TARGETS], 0);
    if !has(MODE, PROXIES) {
        return near;
    }
    // SAFETY: guaranteed by the caller; only lanes of candidates pass a test.
    unsafe {
        for t in 0..TARGETS {
            let d2 = squared(targets[t].difference::<MODE>(block));
            let within = targets[t].within::<MODE>(block, d2);
            near[t] = within & targets[t].others::<MODE>(block, own);
            between[t] = near[t] & !d2.le(targets[t].inner_r2);
            any |= between[t];
        }
        if any != 0 {
            for t in 0..TARGETS {
                let wrong = args[t]
                    .near
                    .refused::<MODE>(candidates, block.first, between[t]);
                near[t] &= !wrong;
            }
        }
    }
    near
}

/// Writes the tags of the neighbours of each target to its list and returns how many they are.
///
/// # Safety
/// As for [`scan`], with the lists in the place of `to`.
#[inline(always)]
pub(crate) unsafe fn select<V: Compress, const MODE: Mode, const TARGETS: usize>(
    args: &[Select<'_>; TARGETS],
    candidates: &Candidates,
    lists: [*mut u32; TARGETS],
) -> [usize; TARGETS] {
    let mut counts = [0; TARGETS];
    // SAFETY: guaranteed by the caller; the end of a list lies in the same array as its beginning.
    unsafe {
        let mut ends = [Tags { end: lists[0] }; TARGETS];
        for t in 1..TARGETS {
            ends[t].end = lists[t];
        }
        let ends = scan::<V, _, MODE, TARGETS>(args, candidates, ends);
        for t in 0..TARGETS {
            counts[t] = ends[t].end.offset_from(lists[t]) as usize;
        }
    }
    counts
}

/// Where the candidates are.
struct Sources {
    /// Coordinates along each axis.
    position: [*const f32; 3],
    /// Image vectors along each axis.
    shift: [*const f32; 3],
    /// Squared radii.
    r2: *const f32,
    /// Tags.
    tag: *const u32,
    /// Ranks of half lists.
    rank: *const u32,
}

/// A vector of candidates. Arrays that its mode lacks are not loaded.
pub(crate) struct Block<V: Compress> {
    /// Number of the first among the candidates.
    first: usize,
    /// Coordinates.
    position: [V; 3],
    /// Image vectors, with [`SHIFTED`].
    shift: [V; 3],
    /// Squared radii, with [`RADII`].
    r2: V,
    /// Tags.
    pub(crate) tags: V::Ints,
    /// Ranks, with [`HALF`].
    ranks: V::Ints,
}

impl Sources {
    /// Pointers to the arrays of the candidates.
    #[inline(always)]
    fn new(candidates: &Candidates) -> Self {
        let (position, shift) = (candidates.axes(), candidates.shifts());
        Self {
            position: [
                position[0].as_ptr(),
                position[1].as_ptr(),
                position[2].as_ptr(),
            ],
            shift: [shift[0].as_ptr(), shift[1].as_ptr(), shift[2].as_ptr()],
            r2: candidates.r2s().as_ptr(),
            tag: candidates.tags().as_ptr(),
            rank: candidates.ranks().as_ptr(),
        }
    }

    /// The candidates from `k` on.
    ///
    /// # Safety
    /// The processor has the level, and the arrays go on for a vector from `k`.
    #[inline(always)]
    unsafe fn load<V: Compress, const MODE: Mode>(&self, k: usize) -> Block<V> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let position = load3(self.position, k);
            let tags = V::load_u32(self.tag.add(k));
            Block {
                first: k,
                position,
                shift: if has(MODE, SHIFTED) {
                    load3(self.shift, k)
                } else {
                    position
                },
                r2: if has(MODE, RADII) {
                    V::load(self.r2.add(k))
                } else {
                    position[0]
                },
                tags,
                ranks: if has(MODE, HALF) {
                    V::load_u32(self.rank.add(k))
                } else {
                    tags
                },
            }
        }
    }
}

/// A vector from each of three arrays.
///
/// # Safety
/// As for [`Sources::load`].
#[inline(always)]
unsafe fn load3<V: Compress>(from: [*const f32; 3], k: usize) -> [V; 3] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        [
            V::load(from[0].add(k)),
            V::load(from[1].add(k)),
            V::load(from[2].add(k)),
        ]
    }
}

/// One target in every lane.
#[derive(Clone, Copy)]
struct Target<V: Compress> {
    /// Its coordinates in all lanes.
    position: [V; 3],
    /// Its squared radius in all lanes.
    r2: V,
    /// Squared distance up to which proxies belong to neighbours, in all lanes.
    inner_r2: V,
    /// Its own tag.
    own_tag: u32,
    /// Its own number among the candidates.
    own_candidate: usize,
}

impl<V: Compress> Target<V> {
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    unsafe fn new(args: &Select<'_>) -> Self {
        // SAFETY: guaranteed by the caller.
        let (position, r2, inner_r2) = unsafe {
            (
                splat(args.target),
                V::splat(args.r2),
                V::splat(args.near.inner_r2),
            )
        };
        Self {
            position,
            r2,
            inner_r2,
            own_tag: args.own_tag,
            own_candidate: args.own_candidate,
        }
    }

    /// Displacements from the target to the candidates.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn difference<const MODE: Mode>(&self, block: &Block<V>) -> [V; 3] {
        let mut d = block.position;
        for axis in 0..3 {
            // SAFETY: guaranteed by the caller.
            unsafe {
                d[axis] = d[axis].sub(self.position[axis]);
                if has(MODE, SHIFTED) {
                    d[axis] = d[axis].add(block.shift[axis]);
                }
            }
        }
        d
    }

    /// Which of the candidates, at squared distances `d2`, are within the radius: a bit per lane.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn within<const MODE: Mode>(&self, block: &Block<V>, d2: V) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let r2 = if has(MODE, RADII) {
                self.r2.max(block.r2)
            } else {
                self.r2
            };
            d2.le(r2)
        }
    }

    /// Which of the candidates are neighbours if they are within the radius: not the target itself,
    /// and of a half list those behind it. `own` says whether some target of the scan may be among
    /// them.
    ///
    /// # Safety
    /// The processor has the level.
    #[inline(always)]
    unsafe fn others<const MODE: Mode>(&self, block: &Block<V>, own: bool) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if has(MODE, HALF) {
                V::above(block.ranks, self.own_tag)
            } else if has(MODE, SHIFTED) {
                if own {
                    !own_lane::<V>(self.own_candidate, block.first)
                } else {
                    u32::MAX
                }
            } else {
                V::unequal(block.tags, self.own_tag)
            }
        }
    }
}

/// Displacements and squared distances of a block in double precision.
///
/// They pass through memory because a vector of `f32` is made of two of `f64`, and on some levels
/// of two that are computed one after the other.
#[repr(align(64))]
struct BlockGeometry {
    /// Displacements along each axis.
    d: [[f64; LANES]; 3],
    /// Squared distances.
    d2: [f64; LANES],
}

impl BlockGeometry {
    /// Memory to be written.
    const ZERO: Self = Self {
        d: [[0.0; LANES]; 3],
        d2: [0.0; LANES],
    };

    /// Each number rounded once to `f32`.
    ///
    /// # Safety
    /// The processor has the vector's level.
    #[inline(always)]
    unsafe fn narrow<V: Compress>(&self) -> ([V; 3], V) {
        let [x, y, z] = &self.d;
        // SAFETY: guaranteed by the caller; arrays are as long as the widest vector.
        unsafe {
            let d = [
                V::narrow(x.as_ptr()),
                V::narrow(y.as_ptr()),
                V::narrow(z.as_ptr()),
            ];
            (d, V::narrow(self.d2.as_ptr()))
        }
    }
}

/// Geometry of [`LANES`] candidates in double precision, each number rounded once.
pub(crate) struct ExactBlock {
    /// Displacements along each axis.
    pub(crate) d: [[f32; LANES]; 3],
    /// Squared distances.
    pub(crate) d2: [f32; LANES],
    /// Which of them are within the radius, a bit per candidate.
    pub(crate) within: u32,
}

impl ExactBlock {
    /// The candidates from `first` on, if they carry positions in double precision.
    ///
    /// # Safety
    /// The processor has the vector's level, and candidates have the mode `mode` and go on for
    /// [`LANES`].
    #[inline(always)]
    pub(crate) unsafe fn of<V: Compress, const MODE: Mode>(
        mode: Mode,
        target: &ExactSelect,
        candidates: &Candidates,
        first: usize,
    ) -> Option<Self> {
        if !carries::<MODE>(mode, EXACT) {
            return None;
        }
        let mut found = BlockGeometry::ZERO;
        let (mut d, mut d2, mut within) = ([[0.0; LANES]; 3], [0.0; LANES], 0);
        let mut lane = 0;
        while lane < LANES {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let k = first + lane;
                let near = found_exactly::<V, MODE, true>(mode, target, candidates, k, &mut found);
                within |= near << lane;
                let (part, part2) = found.narrow::<V>();
                for axis in 0..3 {
                    part[axis].store(d[axis].as_mut_ptr().add(lane));
                }
                part2.store(d2.as_mut_ptr().add(lane));
            }
            lane += V::LANES;
        }
        Some(Self { d, d2, within })
    }

    /// The pair with one of them, and whether it is within the radius.
    #[inline(always)]
    pub(crate) fn pair(&self, lane: usize) -> (Pair, bool) {
        let [x, y, z] = &self.d;
        let d = [x[lane], y[lane], z[lane]];
        let d2 = self.d2[lane];
        (Pair { d, d2 }, self.within >> lane & 1 != 0)
    }
}

/// Which of a vector of candidates from `k` on are within the radius of a target in double
/// precision, a bit per lane; with `GEOMETRY` that goes to `found`.
///
/// A vector of `f32` is a few vectors of `f64`, one after the other.
///
/// # Safety
/// The processor has the level, and candidates have the mode `mode` and go on for a vector.
#[inline(always)]
unsafe fn found_exactly<V: Compress, const MODE: Mode, const GEOMETRY: bool>(
    mode: Mode,
    of: &ExactSelect,
    candidates: &Candidates,
    k: usize,
    found: &mut BlockGeometry,
) -> u32 {
    let (axes, shifts) = (candidates.exact_axes(), candidates.exact_shifts());
    let r2s = candidates.exact_r2s();
    let mut near = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let r2 = V::Wide::splat(of.r2);
        let mut lane = 0;
        while lane < V::LANES {
            let mut d = [r2; 3];
            for axis in 0..3 {
                let x = V::Wide::load(axes[axis].as_ptr().add(k + lane));
                d[axis] = x.sub(V::Wide::splat(of.target[axis]));
                if carries::<MODE>(mode, SHIFTED) {
                    d[axis] = d[axis].add(V::Wide::load(shifts[axis].as_ptr().add(k + lane)));
                }
            }
            let d2 = squared(d);
            let mut within = d2.le(r2);
            if carries::<MODE>(mode, RADII) {
                within |= d2.le(V::Wide::load(r2s.as_ptr().add(k + lane)));
            }
            near |= within << lane;
            if GEOMETRY {
                for axis in 0..3 {
                    d[axis].store(found.d[axis].as_mut_ptr().add(lane));
                }
                d2.store(found.d2.as_mut_ptr().add(lane));
            }
            lane += V::Wide::LANES;
        }
    }
    near
}

/// Returns true if some target may be among the vector of candidates from `k` on. Targets of a scan
/// are next to each other among the candidates, if they are candidates.
#[inline(always)]
fn holds_own<V: Compress, const TARGETS: usize>(args: &[Select<'_>; TARGETS], k: usize) -> bool {
    args[0].own_candidate < k + V::LANES && args[TARGETS - 1].own_candidate >= k
}

/// Bit of the lane of the vector from `k` on that holds the target itself, if any.
#[inline(always)]
fn own_lane<V: Compress>(own_candidate: usize, k: usize) -> u32 {
    u32::from(own_candidate / V::LANES == k / V::LANES) << (own_candidate % V::LANES)
}

//! One small system: every pair in every image that can matter is tested.
//!
//! Sorting some dozens of points into cells takes longer than testing all their pairs. Here the
//! images of every source that can come within the radius of a target are laid out as *candidates*,
//! and each target is tested against all of them, a vector at a time. How many images there are
//! follows for each source from its own place in the cell ([`ImagesInReach`]), so an atom in the
//! middle of a cell that is twice as wide as the radius is one candidate, not 27.
//!
//! # Tags
//!
//! A candidate carries a *tag*: the number of its source in the system and, in the lower bits, the
//! number of its image in the table of the system's images. Images are numbered in the order of
//! their counts, and candidates lie in the order of their tags, so the neighbours of a target come
//! sorted by (source, image) without a sort. The tag of the target itself tells which candidate is
//! the point alone, and which pairs of a half list come after it.
//!
//! # Points outside of their cell
//!
//! Targets whose fractions differ by more than [`WIDE`] cells are divided by the cell that they
//! lie in, and candidates are laid out once for each such cell. Systems that spread so far that
//! their images would be too many for a table are left to the search by cells.
//!
//! **Invariant:** the pairs are the contract's. Images are enumerated by the bound of
//! [`ImagesInReach`], and image vectors are those of the domain, bit for bit.

use super::{
    input::{SystemBox, SystemReal, Systems, WHAT},
    scan::{Layout, Scan},
};
use crate::simd::{Simd, Task, level::SimdLevel, with_level};
use nearfield_grid::{
    Bounds, ImagesInReach,
    memory::{Shortage, make_room},
};
use std::ops::Range;

/// Maximum number of images of a system that is searched directly.
const MAX_IMAGES: f64 = (1 << 16) as f64;

/// Maximum number of candidates: 28 bytes each, 52 in `f64`.
const MAX_CANDIDATES: usize = 1 << 20;

/// Cells over which the targets of one layout of candidates may spread.
const WIDE: f64 = 1.25;

/// Why a system was not searched directly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NotDirect {
    /// It has too many images, or a point that has to be named in an error.
    Cells,
    /// Memory was short.
    Memory(Shortage),
}

impl From<Shortage> for NotDirect {
    fn from(shortage: Shortage) -> Self {
        Self::Memory(shortage)
    }
}

/// The pairs of consecutive systems that were searched directly.
///
/// Four bytes per pair; everything else that is asked of a pair is computed from its tag.
#[derive(Debug)]
pub(super) struct Hits<T> {
    /// Tags of the neighbours, list after list.
    pub(super) tags: Vec<u32>,
    /// Where the list of every point begins in `tags`.
    pub(super) starts: Vec<usize>,
    /// Length of the list of every point.
    pub(super) counts: Vec<u32>,
    /// Images of the systems, table after table: counts of the vectors as given.
    pub(super) images: Vec<[i32; 3]>,
    /// Their image vectors.
    pub(super) shifts: Vec<[T; 3]>,
}

impl<T> Default for Hits<T> {
    fn default() -> Self {
        Self {
            tags: Vec::new(),
            starts: Vec::new(),
            counts: Vec::new(),
            images: Vec::new(),
            shifts: Vec::new(),
        }
    }
}

impl<T> Hits<T> {
    /// Forgets all pairs and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.tags.clear();
        self.starts.clear();
        self.counts.clear();
        self.images.clear();
        self.shifts.clear();
    }
}

/// The tags of a system, and where its images are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tags {
    /// Bits of the number of an image.
    pub(super) bits: u32,
    /// Its first image among those of the task.
    pub(super) images: usize,
}

impl Tags {
    /// Number of the source in the system.
    #[inline(always)]
    pub(super) fn source(self, tag: u32) -> usize {
        // Shifts by 32 are for systems of one point.
        (u64::from(tag) >> self.bits) as usize
    }

    /// Number of the image among those of the task.
    #[inline(always)]
    pub(super) fn image(self, tag: u32) -> usize {
        self.images + (u64::from(tag) & ((1 << self.bits) - 1)) as usize
    }
}

/// Working memory of one worker.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    /// Fractions of all points.
    fractions: Vec<[f64; 3]>,
    /// Images of every source, as places in the table: first and last along each axis. The last is
    /// before the first where a source is out of reach.
    ranges: Vec<[[i32; 2]; 3]>,
    /// First candidate of every source, from which half lists begin.
    firsts: Vec<u32>,
    /// Targets, those of one cell behind each other.
    targets: Vec<u32>,
    /// The images by their number, as places in the table.
    ranked: Vec<[i32; 3]>,
    /// The candidates.
    layout: Layout<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            fractions: Vec::new(),
            ranges: Vec::new(),
            firsts: Vec::new(),
            targets: Vec::new(),
            ranked: Vec::new(),
            layout: Layout::default(),
        }
    }
}

/// The search of one system.
pub(super) struct Direct<'a, T> {
    pub(super) systems: &'a Systems<'a, T>,
    /// Its points.
    pub(super) points: Range<usize>,
    pub(super) of: &'a SystemBox,
    /// Each pair stands once.
    pub(super) half: bool,
    pub(super) scratch: &'a mut Scratch<T>,
    pub(super) hits: &'a mut Hits<T>,
}

/// The box of images of a system: first count and number of counts along each axis.
#[derive(Debug, Clone, Copy)]
struct Table {
    first: [i64; 3],
    dims: [i32; 3],
    /// Images are not numbered by their place in the table.
    ranked: bool,
}

impl Table {
    fn len(&self) -> usize {
        self.dims.iter().map(|&dim| dim as usize).product()
    }

    /// Spelt out, as all that is done for single images: `map` is not always inlined.
    #[inline(always)]
    fn index(&self, [x, y, z]: [i32; 3]) -> usize {
        let [_, dy, dz] = self.dims;
        (x as usize * dy as usize + y as usize) * dz as usize + z as usize
    }

    /// Counts of the vectors that the domain is enumerated by.
    #[inline(always)]
    fn counts(&self, [x, y, z]: [i32; 3]) -> [i64; 3] {
        let [fx, fy, fz] = self.first;
        [fx + i64::from(x), fy + i64::from(y), fz + i64::from(z)]
    }
}

impl<T: SystemReal> Direct<'_, T> {
    /// Searches at a level.
    ///
    /// # Errors
    /// [`NotDirect`]; hits of the system are then unspecified and have to be
    /// [cut off](Hits::clear) or ignored.
    pub(super) fn search(mut self, level: SimdLevel) -> Result<Tags, NotDirect> {
        let count = self.points.len();
        let bounds = self.bounds().ok_or(NotDirect::Cells)?;
        let reach = ImagesInReach::new(&self.of.domain, self.of.radius, &bounds);
        let spread = self.place(&reach)?;
        let table = self.table(&reach, spread).ok_or(NotDirect::Cells)?;
        let bits = usize::BITS - (table.len() - 1).leading_zeros();
        let of_source = usize::BITS - count.saturating_sub(1).leading_zeros();
        if bits + of_source > u32::BITS {
            return Err(NotDirect::Cells);
        }
        let tags = Tags {
            bits,
            images: self.hits.images.len(),
        };
        let is_wide = (0..3).any(|k| spread[k][1] - spread[k][0] > WIDE);
        // Every layout then looks at all images for every source.
        let layouts = if is_wide { count } else { 1 };
        let looked_at = table.len().saturating_mul(count).saturating_mul(layouts);
        if table.ranked && looked_at > MAX_CANDIDATES {
            return Err(NotDirect::Cells);
        }
        let zero = self.list_images(&table)?;
        let first_point = self.hits.starts.len();
        make_room(&mut self.hits.starts, first_point + count, WHAT)?;
        make_room(&mut self.hits.counts, first_point + count, WHAT)?;
        self.hits.starts.resize(first_point + count, 0);
        self.hits.counts.resize(first_point + count, 0);
        self.order_targets(is_wide)?;
        let mut begin = 0;
        while begin < count {
            let end = match is_wide {
                true => self.end_of_cell(begin),
                false => count,
            };
            let spread = match is_wide {
                true => self.spread(begin..end),
                false => spread,
            };
            self.lay_out(level, &reach, spread, &table, tags)?;
            let targets = &self.scratch.targets[begin..end];
            let scan = Scan {
                positions: &self.systems.positions[self.points.clone()],
                targets,
                firsts: &self.scratch.firsts,
                layout: &self.scratch.layout,
                r2: T::squared(self.of.radius),
                bits,
                zero: zero as u32,
                half: self.half,
                tags: &mut self.hits.tags,
                starts: &mut self.hits.starts[first_point..],
                counts: &mut self.hits.counts[first_point..],
                failed: &mut None,
            };
            scan.run(level)?;
            begin = end;
        }
        Ok(tags)
    }

    /// The bounds of the points; None where a coordinate cannot be used, which the search by cells
    /// finds out and names.
    fn bounds(&self) -> Option<Bounds> {
        let points = &self.systems.positions[self.points.clone()];
        let zero = T::default();
        let (mut min, mut max, mut finite) = match points.first() {
            Some(&first) => (first, first, [zero; 3]),
            None => return Some(Bounds::EMPTY),
        };
        for point in points {
            for k in 0..3 {
                min[k] = if point[k] < min[k] { point[k] } else { min[k] };
                max[k] = if point[k] > max[k] { point[k] } else { max[k] };
                finite[k] = finite[k] + zero * point[k];
            }
        }
        let bounds = Bounds {
            min: min.map(T::double),
            max: max.map(T::double),
        };
        let is_usable =
            finite == [zero; 3] && bounds.check(T::positions(points), &self.of.domain).is_ok();
        is_usable.then_some(bounds)
    }

    /// Finds the fractions of all points; returns the least and the largest along each axis.
    fn place(&mut self, reach: &ImagesInReach) -> Result<[[f64; 2]; 3], Shortage> {
        let points = &self.systems.positions[self.points.clone()];
        let fractions = &mut self.scratch.fractions;
        fractions.clear();
        make_room(fractions, points.len(), WHAT)?;
        let mut spread = NO_SPREAD;
        for at in points {
            let at = reach.fractions([at[0].double(), at[1].double(), at[2].double()]);
            widen(&mut spread, at);
            fractions.push(at);
        }
        Ok(spread)
    }

    /// The same for some of the targets.
    fn spread(&self, targets: Range<usize>) -> [[f64; 2]; 3] {
        let mut spread = NO_SPREAD;
        for &target in &self.scratch.targets[targets] {
            widen(&mut spread, self.scratch.fractions[target as usize]);
        }
        spread
    }

    /// The images that any pair can have; None where they are too many.
    fn table(&self, reach: &ImagesInReach, spread: [[f64; 2]; 3]) -> Option<Table> {
        let (mut first, mut dims, mut all) = ([0; 3], [1; 3], 1.0);
        for k in 0..3 {
            let [least, largest] = spread[k];
            if self.points.is_empty() {
                continue;
            }
            let begin = reach.counts(k, largest, [least, largest])[0];
            let end = reach.counts(k, least, [least, largest])[1];
            let count = end - begin + 1.0;
            all *= count;
            // NaN is within no bounds.
            if !(1.0..=MAX_IMAGES).contains(&all) {
                return None;
            }
            (first[k], dims[k]) = (begin as i64, count as i32);
        }
        Some(Table {
            first,
            dims,
            ranked: self.of.domain.is_reduced(),
        })
    }

    /// Appends the images of the table in the order of their counts, with their vectors. Returns
    /// the number of the image of all zeros.
    fn list_images(&mut self, table: &Table) -> Result<usize, NotDirect> {
        let (domain, hits) = (&self.of.domain, &mut *self.hits);
        let begin = hits.images.len();
        make_room(&mut hits.images, begin + table.len(), WHAT)?;
        make_room(&mut hits.shifts, begin + table.len(), WHAT)?;
        let ranked = &mut self.scratch.ranked;
        ranked.clear();
        make_room(ranked, table.len(), WHAT)?;
        for x in 0..table.dims[0] {
            for y in 0..table.dims[1] {
                for z in 0..table.dims[2] {
                    ranked.push([x, y, z]);
                }
            }
        }
        if table.ranked {
            let given = |place: &[i32; 3]| domain.given_image(table.counts(*place));
            ranked.sort_unstable_by_key(given);
        }
        let mut zero = 0;
        for (number, &place) in ranked.iter().enumerate() {
            let counts = table.counts(place);
            if counts == [0; 3] {
                zero = number;
            }
            let given = domain.given_image(counts);
            let image = [given[0] as i32, given[1] as i32, given[2] as i32];
            if (0..3).any(|k| i64::from(image[k]) != given[k]) {
                // The search by cells says which pair it is, if there is one.
                return Err(NotDirect::Cells);
            }
            let shift = domain.image_vector_f64(counts);
            hits.images.push(image);
            hits.shifts.push(rounded(shift));
        }
        Ok(zero)
    }

    /// Lists the targets in order, or by the cell that they lie in.
    fn order_targets(&mut self, by_cell: bool) -> Result<(), Shortage> {
        let Scratch {
            targets, fractions, ..
        } = &mut *self.scratch;
        targets.clear();
        make_room(targets, fractions.len(), WHAT)?;
        targets.extend(0..fractions.len() as u32);
        if by_cell {
            targets.sort_unstable_by_key(|&target| (cell_of(fractions[target as usize]), target));
        }
        Ok(())
    }

    /// The first target behind `begin` that lies in another cell.
    fn end_of_cell(&self, begin: usize) -> usize {
        let Scratch {
            targets, fractions, ..
        } = &*self.scratch;
        let cell = |target: u32| cell_of(fractions[target as usize]);
        let own = cell(targets[begin]);
        let same = targets[begin..].iter().take_while(|&&t| cell(t) == own);
        begin + same.count()
    }

    /// Lays out the candidates of targets whose fractions spread so far.
    fn lay_out(
        &mut self,
        level: SimdLevel,
        reach: &ImagesInReach,
        spread: [[f64; 2]; 3],
        table: &Table,
        tags: Tags,
    ) -> Result<(), NotDirect> {
        let Scratch {
            fractions,
            ranges,
            firsts,
            ranked,
            layout,
            ..
        } = &mut *self.scratch;
        let count = fractions.len();
        ranges.clear();
        firsts.clear();
        make_room(ranges, count, WHAT)?;
        make_room(firsts, count + 1, WHAT)?;
        let mut all = 0;
        let ranges_of = Ranges {
            reach,
            spread,
            table,
            fractions,
            ranges,
            firsts,
            all: &mut all,
        };
        with_level(level, ranges_of);
        if all > MAX_CANDIDATES {
            return Err(NotDirect::Cells);
        }
        layout.resize(all)?;
        let lay = LayOut {
            positions: &self.systems.positions[self.points.clone()],
            ranges,
            shifts: &self.hits.shifts[tags.images..],
            ranked: table.ranked.then_some(&ranked[..]),
            table,
            bits: tags.bits,
            layout,
        };
        with_level(level, lay);
        Ok(())
    }
}

/// The cell that fractions lie in.
fn cell_of(fractions: [f64; 3]) -> [i64; 3] {
    fractions.map(|fraction| fraction.floor() as i64)
}

/// The least and the largest fraction along each axis, of no points.
const NO_SPREAD: [[f64; 2]; 3] = [[f64::INFINITY, f64::NEG_INFINITY]; 3];

/// Takes a point in.
#[inline(always)]
fn widen(spread: &mut [[f64; 2]; 3], at: [f64; 3]) {
    for k in 0..3 {
        // Comparisons, because `min` and `max` also look for NaN.
        if at[k] < spread[k][0] {
            spread[k][0] = at[k];
        }
        if at[k] > spread[k][1] {
            spread[k][1] = at[k];
        }
    }
}

/// A vector in the precision of the search.
#[inline(always)]
fn rounded<T: SystemReal>([x, y, z]: [f64; 3]) -> [T; 3] {
    let of = <T as nearfield_pairs::Real>::of;
    [of(x), of(y), of(z)]
}

/// Finds the images of every source, compiled for a level: rounding to whole numbers is one
/// instruction there.
struct Ranges<'a> {
    reach: &'a ImagesInReach,
    spread: [[f64; 2]; 3],
    table: &'a Table,
    fractions: &'a [[f64; 3]],
    /// Empty, with room for all sources.
    ranges: &'a mut Vec<[[i32; 2]; 3]>,
    /// Empty, with room for one more.
    firsts: &'a mut Vec<u32>,
    /// Number of candidates.
    all: &'a mut usize,
}

impl Task for Ranges<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let first = self.table.first.map(|first| first as f64);
        let mut all = 0usize;
        for at in self.fractions {
            let mut range = [[0, 0]; 3];
            let mut count = 1usize;
            for k in 0..3 {
                let [begin, end] = self.reach.counts(k, at[k], self.spread[k]);
                // Within the table, because the spread is.
                range[k] = [(begin - first[k]) as i32, (end - first[k]) as i32];
                let images = (range[k][1] - range[k][0] + 1).max(0);
                count = count.saturating_mul(images as usize);
            }
            self.ranges.push(range);
            self.firsts.push(all.min(u32::MAX as usize) as u32);
            all = all.saturating_add(count);
        }
        *self.all = all;
    }
}

/// Writes the candidates, compiled for a level.
struct LayOut<'a, T> {
    positions: &'a [[T; 3]],
    ranges: &'a [[[i32; 2]; 3]],
    /// Image vectors by the number of the image.
    shifts: &'a [[T; 3]],
    /// Images by number, where that is not their place in the table.
    ranked: Option<&'a [[i32; 3]]>,
    table: &'a Table,
    bits: u32,
    /// As long as all ranges together.
    layout: &'a mut Layout<T>,
}

impl<T: SystemReal> Task for LayOut<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut to = self.layout.writer();
        for (source, (position, range)) in self.positions.iter().zip(self.ranges).enumerate() {
            let source_bits = ((source as u64) << self.bits) as u32;
            let [xs, ys, zs] = *range;
            match &self.ranked {
                None => {
                    for x in xs[0]..=xs[1] {
                        for y in ys[0]..=ys[1] {
                            let begin = self.table.index([x, y, zs[0]]);
                            let end = begin + (zs[1] - zs[0] + 1).max(0) as usize;
                            for (image, shift) in (begin..).zip(&self.shifts[begin..end]) {
                                to.put(position, shift, source_bits | image as u32);
                            }
                        }
                    }
                }
                Some(ranked) => {
                    let within = |place: &[i32; 3]| {
                        (0..3).all(|k| (range[k][0]..=range[k][1]).contains(&place[k]))
                    };
                    let images = ranked.iter().zip(self.shifts).enumerate();
                    for (image, (_, shift)) in images.filter(|(_, (place, _))| within(place)) {
                        to.put(position, shift, source_bits | image as u32);
                    }
                }
            }
        }
        debug_assert_eq!(to.written(), self.layout.len, "all candidates were counted");
    }
}

//! Visits the pairs that filters keep, target by target.
//!
//! The pairs of a range of targets come with their geometry, as slices of one image each
//! ([`crate::sets::pairs`]). [`Filtering`] stands between that visit and whatever takes the pairs
//! ([`TakePairs`]): it learns once per target what the target's type, exclusions and choice are,
//! writes the places of the pairs that are kept, and hands both on. With the k nearest it collects
//! all pairs of a target and hands on what it selects.
//!
//! Passes over the pairs of a slice are loops without a branch on distances, because which pairs
//! are kept cannot be predicted.
//!
//! # Who visits
//!
//! Geometry of pairs, batches and callbacks take visited pairs anyway, and know nothing of filters:
//! [`Packing`] hands them what is left, next to each other. Sums of kernels and lists take the
//! places of what is left, and copy it once.
//!
//! # Targets that are not chosen
//!
//! Every target is announced, also those that are not searched for, because lists are written for
//! all of them. Ranges of targets without a chosen one are not searched at all.
//!
//! # Double precision
//!
//! A visit rounds geometry to `f32`. Where a filter compares distances, they are computed once more
//! in `f64` by the operations of the contract, from the positions as given and the image that was
//! found. Candidates are called by slot there, so that positions are found, and by index as they
//! are handed on.

use super::{
    PairFilter,
    exclusions::Excluded,
    nearest::Near,
    room::{FilterRoom, PackedPairs, WHAT},
};
use crate::{
    candidates::{scratch::Scratch, walk::Walk},
    contract::{Image, difference_f64, squared_f64},
    sets::pairs::{PairsOfImage, VisitPairs, VisitTask},
    simd::{LANES, level::SimdLevel, vector::Compress, with_level},
};
use nearfield_grid::memory::{Shortage, make_room};
use std::{num::NonZeroU32, ops::ControlFlow, ops::Range};

/// Lists of exclusions up to this length are looked through, longer ones by halves.
const FEW: usize = 16;

/// Takes the pairs that are kept, of one target after the other.
///
/// A target ends with the next one, or with the visit. With the k nearest, pairs come in the order
/// of their distance, in slices of consecutive pairs of one image; otherwise in the order of the
/// candidates.
pub(crate) trait TakePairs {
    /// Returns true if displacements and squares are read; else the k nearest pairs have none.
    fn reads_geometry(&self) -> bool;

    /// A sorted target, before its first pair; every target comes once. Those that are not chosen
    /// have no pairs.
    fn target(&mut self, slot: usize, chosen: bool) -> ControlFlow<()>;

    /// Pairs of the target, sources called by the caller's index; those at the places `kept`,
    /// ascending, are neighbours.
    fn pairs(&mut self, all: PairsOfImage<'_>, kept: &[u32]) -> Result<(), Shortage>;
}

impl Walk<'_> {
    /// Visits the pairs of the targets `slots` that the filters keep. Memory that was refused is
    /// noted in `scratch`.
    pub(crate) fn visit_pairs(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        to: &mut dyn VisitPairs,
    ) {
        if self.filter.is_none() {
            let task = VisitTask {
                walk: self,
                slots,
                scratch,
                to,
            };
            return with_level(level, task);
        }
        let mut packed = std::mem::take(&mut scratch.filter.packed);
        let mut packing = Packing {
            packed: &mut packed,
            to,
        };
        self.visit_kept(level, slots, scratch, &mut packing);
        scratch.filter.packed = packed;
    }

    /// The same for a taker that knows of filters.
    pub(crate) fn visit_kept(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        to: &mut dyn TakePairs,
    ) {
        let mut room = std::mem::take(&mut scratch.filter);
        room.nearest.clear();
        let mut filtering = Filtering {
            walk: self,
            geometry: to.reads_geometry(),
            target: Target::NONE,
            to,
            room: &mut room,
            flow: ControlFlow::Continue(()),
            failed: None,
        };
        let index = self.targets.points().index();
        let mut next = slots.start;
        while next < slots.end && filtering.flow.is_continue() && scratch.failed.is_none() {
            let range = match self.filter.chosen {
                None => next..slots.end,
                Some(chosen) => chosen.next_range(next..slots.end, index),
            };
            filtering.pass_over(next..range.start);
            if !range.is_empty() && filtering.flow.is_continue() {
                let task = VisitTask {
                    walk: self,
                    slots: range.clone(),
                    scratch,
                    to: &mut filtering,
                };
                with_level(level, task);
            }
            next = range.end;
        }
        filtering.finish_target();
        let failed = filtering.failed;
        if failed.is_some() {
            scratch.failed = failed;
        }
        scratch.filter = room;
    }
}

/// The target whose pairs come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Its place in sorted order.
    slot: usize,
    /// It is one of the chosen points.
    chosen: bool,
    /// Squared cut-offs of its type with every type, in single and in double precision.
    rows: Option<(&'a [f32], &'a [f64])>,
    /// The types of the sources.
    types: &'a [u32],
    /// The points that it excludes.
    excluded: Excluded<'a>,
}

impl<'a> Target<'a> {
    /// Before the first.
    const NONE: Self = Self {
        slot: 0,
        chosen: false,
        rows: None,
        types: &[],
        excluded: Excluded::None,
    };

    /// The target in a slot, as the filters see it. Inlined, because moving it costs more than
    /// making it.
    #[inline(always)]
    pub(crate) fn new(filter: &PairFilter<'a>, slot: usize, index: usize) -> Self {
        let (mut rows, mut types): (_, &[u32]) = (None, &[]);
        if let Some(cutoffs) = filter.cutoffs {
            let [targets, sources] = cutoffs.types;
            let (targets, sources) = (targets.of_points(), sources.of_points());
            let own = targets.get(index).copied().unwrap_or(u32::MAX);
            rows = Some((cutoffs.table.row(own), cutoffs.table.row_f64(own)));
            types = sources;
        }
        Self {
            slot,
            chosen: filter.chosen.is_none_or(|chosen| chosen.has(index)),
            rows,
            types,
            excluded: (filter.excluded).map_or(Excluded::None, |excluded| excluded.of(index)),
        }
    }
}

impl<'a> Target<'a> {
    /// The points that it excludes.
    #[inline(always)]
    pub(crate) fn excluded(&self) -> Excluded<'a> {
        self.excluded
    }

    /// Returns true if cut-offs or exclusions leave out some of its sources.
    #[inline(always)]
    pub(crate) fn narrows(&self) -> bool {
        self.rows.is_some() || !matches!(self.excluded, Excluded::None)
    }

    /// Squared cut-offs with a vector of sources from `at` on; none where types do not matter.
    ///
    /// # Safety
    /// The processor has the vector's level, and all of the sources are points of the set.
    #[inline(always)]
    pub(crate) unsafe fn cutoffs_of<V: Compress>(&self, at: *const u32) -> Option<V> {
        let (row, _) = self.rows?;
        let mut r2 = [0.0; LANES];
        // SAFETY: guaranteed by the caller. Every source has a type, and every type a cut-off,
        // which was checked when types were taken and when the search began.
        unsafe {
            let (types, row) = (self.types.as_ptr(), row.as_ptr());
            for lane in 0..V::LANES {
                let of_type = *types.add(*at.add(lane) as usize);
                r2[lane] = *row.add(of_type as usize);
            }
            Some(V::load(r2.as_ptr()))
        }
    }

    /// Returns true if it may have neighbours.
    pub(crate) fn is_chosen(&self) -> bool {
        self.chosen
    }

    /// Returns true if a source at this squared distance, in the precision of the search, is kept.
    pub(crate) fn keeps(&self, source: u32, squared: f64) -> bool {
        let within = match self.rows {
            None => true,
            Some((_, row)) => r2_of(row, self.types, source).is_some_and(|r2| squared <= r2),
        };
        within && !self.excluded.has(source)
    }
}

/// The filters between a visit and what takes the pairs.
struct Filtering<'a, 'b> {
    /// The search.
    walk: &'a Walk<'a>,
    /// Whether the taker reads displacements and squares.
    geometry: bool,
    /// The target whose pairs come.
    target: Target<'a>,
    /// What takes the pairs.
    to: &'b mut dyn TakePairs,
    /// Buffers.
    room: &'b mut FilterRoom,
    /// Whether the visit goes on.
    flow: ControlFlow<()>,
    /// Memory that was refused.
    failed: Option<Shortage>,
}

impl VisitPairs for Filtering<'_, '_> {
    fn target(&mut self, slot: usize) -> ControlFlow<()> {
        self.finish_target();
        let index = self.walk.targets.points().index()[slot] as usize;
        self.target = Target::new(&self.walk.filter, slot, index);
        if self.failed.is_some() {
            self.flow = ControlFlow::Break(());
        } else {
            self.flow = self.to.target(slot, self.target.chosen);
        }
        self.flow
    }

    fn pairs(&mut self, pairs: PairsOfImage<'_>) {
        if !self.target.chosen || self.failed.is_some() {
            return;
        }
        let taken = match self.walk.double() {
            None => self.keep(pairs),
            Some(_) => self.keep_in_double(pairs),
        };
        self.failed = taken.err();
    }
}

impl Filtering<'_, '_> {
    /// Targets that are not searched for.
    fn pass_over(&mut self, slots: Range<usize>) {
        for slot in slots {
            self.finish_target();
            self.target = Target::NONE;
            if self.flow.is_continue() {
                self.flow = self.to.target(slot, false);
            }
        }
    }

    /// The pairs of a search in single precision, which are called by index.
    fn keep(&mut self, pairs: PairsOfImage<'_>) -> Result<(), Shortage> {
        let FilterRoom { kept, nearest, .. } = &mut *self.room;
        let len = pairs.sources.len();
        lengthen(kept, len)?;
        let mut count = len;
        match self.target.rows {
            Some((row, _)) => {
                let (types, d2) = (self.target.types, pairs.d2);
                count = within_cutoffs(row, types, pairs.sources, d2, kept);
            }
            None => number(&mut kept[..len]),
        }
        count = without(self.target.excluded, pairs.sources, &mut kept[..count]);
        let kept = &kept[..count];
        let Some(k) = self.walk.filter.nearest else {
            return self.to.pairs(pairs, kept);
        };
        if !self.geometry {
            return nearest.add_keys(many(k), pairs.sources, pairs.d2, kept);
        }
        for &at in kept {
            let (index, pair) = pairs.at(at as usize);
            let near = Near {
                squared: pair.d2.into(),
                index,
                image: pairs.image,
                pair,
            };
            nearest.add(many(k), near)?;
        }
        Ok(())
    }

    /// The pairs of a search in double precision, which are called by slot.
    fn keep_in_double(&mut self, pairs: PairsOfImage<'_>) -> Result<(), Shortage> {
        let Some([targets, sources]) = self.walk.double() else {
            return Ok(());
        };
        let FilterRoom {
            kept,
            indices,
            squares,
            nearest,
            ..
        } = &mut *self.room;
        let (len, index) = (pairs.sources.len(), self.walk.sources.points().index());
        indices.clear();
        make_room(indices, len, WHAT)?;
        indices.extend(pairs.sources.iter().map(|&slot| index[slot as usize]));
        lengthen(kept, len)?;
        number(&mut kept[..len]);
        let mut count = len;
        if self.target.rows.is_some() || self.walk.filter.nearest.is_some() {
            let domain = self.walk.sources.lattice().domain();
            let shift = domain.given_image_vector_f64(pairs.image);
            let from = targets.position(self.target.slot);
            squares.clear();
            make_room(squares, len, WHAT)?;
            squares.extend(pairs.sources.iter().map(|&slot| {
                let to = sources.position(slot as usize);
                squared_f64(difference_f64(from, to, shift))
            }));
        }
        if let Some((_, row)) = self.target.rows {
            count = 0;
            for at in 0..len {
                let r2 = r2_of(row, self.target.types, indices[at]);
                kept[count] = at as u32;
                count += usize::from(r2.is_some_and(|r2| squares[at] <= r2));
            }
        }
        count = without(self.target.excluded, indices, &mut kept[..count]);
        let kept = &kept[..count];
        let pairs = PairsOfImage {
            sources: indices,
            ..pairs
        };
        let Some(k) = self.walk.filter.nearest else {
            return self.to.pairs(pairs, kept);
        };
        for &at in kept {
            let (index, pair) = pairs.at(at as usize);
            let near = Near {
                squared: squares[at as usize],
                index,
                image: pairs.image,
                pair,
            };
            nearest.add(many(k), near)?;
        }
        Ok(())
    }

    /// Hands on the nearest pairs of the target, where these are wanted.
    fn finish_target(&mut self) {
        let Some(k) = self.walk.filter.nearest else {
            return;
        };
        if self.target.chosen && self.failed.is_none() {
            self.failed = self.hand_on(many(k)).err();
        }
        self.room.nearest.clear();
        self.target.chosen = false;
    }

    /// Hands on the `k` nearest, image by image in their order.
    fn hand_on(&mut self, k: usize) -> Result<(), Shortage> {
        let FilterRoom {
            kept,
            nearest,
            selected: packed,
            ..
        } = &mut *self.room;
        if !self.geometry && self.walk.double().is_none() {
            let keys = nearest.selected_keys(k);
            packed.clear(keys.len())?;
            packed.sources.extend(keys.iter().map(|&key| key as u32));
            lengthen(kept, keys.len())?;
            number(&mut kept[..keys.len()]);
            return self.to.pairs(of_image(packed, [0; 3]), &kept[..keys.len()]);
        }
        for same in nearest.selected(k).chunk_by(|a, b| a.image == b.image) {
            packed.clear(same.len())?;
            packed.sources.extend(same.iter().map(|near| near.index));
            packed.d2.extend(same.iter().map(|near| near.pair.d2));
            for (axis, d) in packed.d.iter_mut().enumerate() {
                d.extend(same.iter().map(|near| near.pair.d[axis]));
            }
            lengthen(kept, same.len())?;
            number(&mut kept[..same.len()]);
            self.to
                .pairs(of_image(packed, same[0].image), &kept[..same.len()])?;
        }
        Ok(())
    }
}

/// A number that memory can be indexed by.
fn many(k: NonZeroU32) -> usize {
    k.get() as usize
}

/// Packed pairs, all of one image.
fn of_image(packed: &PackedPairs, image: Image) -> PairsOfImage<'_> {
    PairsOfImage {
        image,
        sources: &packed.sources,
        d: packed.d.each_ref().map(Vec::as_slice),
        d2: &packed.d2,
    }
}

/// Makes an array longer than `len`, so that one value behind the last may be written.
fn lengthen(kept: &mut Vec<u32>, len: usize) -> Result<(), Shortage> {
    if kept.len() <= len {
        make_room(kept, len + 1, WHAT)?;
        kept.resize(len + 1, 0);
    }
    Ok(())
}

/// Writes the places of all pairs.
fn number(kept: &mut [u32]) {
    for (at, place) in kept.iter_mut().enumerate() {
        *place = at as u32;
    }
}

/// The squared cut-off with a source; none where it has no type.
#[inline(always)]
fn r2_of<R: Copy>(row: &[R], types: &[u32], source: u32) -> Option<R> {
    row.get(*types.get(source as usize)? as usize).copied()
}

/// Writes the places of pairs within the cut-off of their types, and returns how many they are.
#[inline(never)]
fn within_cutoffs(
    row: &[f32],
    types: &[u32],
    sources: &[u32],
    d2: &[f32],
    kept: &mut [u32],
) -> usize {
    let mut count = 0;
    for (at, (&source, &d2)) in sources.iter().zip(d2).enumerate() {
        let r2 = r2_of(row, types, source).unwrap_or(-1.0);
        kept[count] = at as u32;
        count += usize::from(d2 <= r2);
    }
    count
}

/// Drops the places of excluded sources, and returns how many are left.
#[inline(never)]
fn without(excluded: Excluded<'_>, sources: &[u32], kept: &mut [u32]) -> usize {
    let mut count = 0;
    match excluded {
        Excluded::None => return kept.len(),
        Excluded::Molecule { of, own } => {
            for at in 0..kept.len() {
                let place = kept[at];
                let other = of.get(sources[place as usize] as usize);
                kept[count] = place;
                count += usize::from(other != Some(&own));
            }
        }
        Excluded::Listed(list) => {
            let first = list.first().copied().unwrap_or_default();
            let span = list.last().copied().unwrap_or_default() - first;
            for at in 0..kept.len() {
                let place = kept[at];
                let source = sources[place as usize];
                // Most are outside the range of the list.
                let may_be = source.wrapping_sub(first) <= span;
                let is_in = may_be
                    && if list.len() <= FEW {
                        list.contains(&source)
                    } else {
                        list.binary_search(&source).is_ok()
                    };
                kept[count] = place;
                count += usize::from(!is_in);
            }
        }
    }
    count
}

/// Hands pairs that are kept to a visitor that knows of no filters.
struct Packing<'a, 'b> {
    /// Where they are packed.
    packed: &'a mut PackedPairs,
    /// The visitor.
    to: &'b mut dyn VisitPairs,
}

impl TakePairs for Packing<'_, '_> {
    fn reads_geometry(&self) -> bool {
        true
    }

    fn target(&mut self, slot: usize, _: bool) -> ControlFlow<()> {
        self.to.target(slot)
    }

    fn pairs(&mut self, all: PairsOfImage<'_>, kept: &[u32]) -> Result<(), Shortage> {
        if kept.is_empty() {
            return Ok(());
        }
        if kept.len() == all.sources.len() {
            self.to.pairs(all);
            return Ok(());
        }
        let packed = &mut *self.packed;
        packed.clear(kept.len())?;
        let places = || kept.iter().map(|&at| at as usize);
        packed.sources.extend(places().map(|at| all.sources[at]));
        packed.d2.extend(places().map(|at| all.d2[at]));
        for (to, d) in packed.d.iter_mut().zip(all.d) {
            to.extend(places().map(|at| d[at]));
        }
        self.to.pairs(of_image(packed, all.image));
        Ok(())
    }
}

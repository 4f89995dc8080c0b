//! Pairs of points that are not neighbours.
//!
//! Molecular dynamics leaves out pairs that are bonded, or of one molecule, because other terms
//! describe them. An exclusion names two points, and so holds for **every periodic image** of the
//! pair, as molecular dynamics takes it: a molecule that sees its own images in a box smaller than
//! two radii does not interact with them.
//!
//! # Two forms
//!
//! Molecule numbers exclude all points with the same number, their own images included. Lists name
//! for every point the points that it excludes; they are symmetric, so that both points of a pair
//! agree, which is checked. A point that is in its own list excludes its own images.
//!
//! # Why lists must be symmetric
//!
//! Half lists and kernels that are evaluated for both points of a pair look at one of the two. If
//! only one excluded the other, results would depend on which was looked at.
//!
//! **Invariant:** lists ascend strictly, name points that there are, and are symmetric.

use crate::error::{Error, ErrorKind};
use nearfield_grid::{
    memory::{copied, filled, with_room},
    prefetch,
};

/// Excluded pairs of a set with itself, in the caller's order.
///
/// ```
/// use nearfield_cpu::Exclusions;
/// // A chain of three points, whose bonds are given one way round, and as symmetric lists.
/// let bonds = Exclusions::pairs(&[[0, 1], [2, 1]], 3)?;
/// assert_eq!(bonds, Exclusions::lists(&[0, 1, 3, 4], &[1, 0, 2, 1])?);
/// // When the first point is removed, the others are numbered anew.
/// assert_eq!(bonds.of_kept(&[1, 2])?, Exclusions::pairs(&[[0, 1]], 2)?);
/// # Ok::<(), nearfield_cpu::Error>(())
/// ```
///
/// Lists take eight bytes a point and four for each of two points of a pair, molecules four bytes a
/// point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusions(Form);

/// Exclusions as they are kept, for other backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusionArrays<'a> {
    /// The points that point i excludes are `indices[offsets[i]..offsets[i + 1]]`, ascending.
    Lists {
        /// One more than there are points.
        offsets: &'a [u64],
        /// The points.
        indices: &'a [u32],
    },
    /// The molecule of every point.
    Molecules(&'a [u32]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// The points that point i excludes are `indices[offsets[i]..offsets[i + 1]]`.
    Lists {
        offsets: Vec<u64>,
        indices: Vec<u32>,
    },
    /// The molecule of every point.
    Molecules(Vec<u32>),
}

/// The name of the memory in messages.
const WHAT: &str = "exclusions of points";

/// The points that one point excludes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Excluded<'a> {
    /// None.
    None,
    /// Those of a list.
    Listed(&'a [u32]),
    /// Those of a molecule.
    Molecule {
        /// The molecule of every point.
        of: &'a [u32],
        /// The point's own.
        own: u32,
    },
}

impl Exclusions {
    /// Exclusions by lists: those of point i are `indices[offsets[i]..offsets[i + 1]]`, ascending;
    /// j is in the list of i if and only if i is in that of j. The number of points is one less
    /// than that of the offsets.
    ///
    /// # Errors
    /// [`ErrorKind::ExclusionOffsets`], [`ErrorKind::ExcludedPoint`],
    /// [`ErrorKind::ExclusionOrder`] and [`ErrorKind::OneSided`] naming the first fault, and
    /// [`ErrorKind::OutOfMemory`].
    pub fn lists(offsets: &[u64], indices: &[u32]) -> Result<Self, Error> {
        let pairs = indices.len() as u64;
        let rises = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let fits = offsets.first() == Some(&0) && offsets.last() == Some(&pairs);
        if !(rises && fits) {
            return Err(ErrorKind::ExclusionOffsets { pairs }.into());
        }
        let points = offsets.len() - 1;
        let list = |point: usize| &indices[offsets[point] as usize..offsets[point + 1] as usize];
        for point in 0..points {
            let list = list(point);
            if let Some(&other) = list.iter().find(|other| **other as usize >= points) {
                return Err(ErrorKind::ExcludedPoint {
                    point,
                    other,
                    points,
                }
                .into());
            }
            if !list.is_sorted_by(|a, b| a < b) {
                return Err(ErrorKind::ExclusionOrder { point }.into());
            }
        }
        // All lists are known to ascend by now.
        for point in 0..points {
            let is_missing = |other: &&u32| {
                list(**other as usize)
                    .binary_search(&(point as u32))
                    .is_err()
            };
            if let Some(&other) = list(point).iter().find(is_missing) {
                return Err(ErrorKind::OneSided { point, other }.into());
            }
        }
        Ok(Self(Form::Lists {
            offsets: copied(offsets, WHAT)?,
            indices: copied(indices, WHAT)?,
        }))
    }

    /// Exclusions of `points` points by pairs, in any order and either way round, such as the bonds
    /// of a molecule.
    ///
    /// # Errors
    /// [`ErrorKind::ExcludedPoint`] naming the first pair with a point that there is not, and
    /// [`ErrorKind::OutOfMemory`].
    pub fn pairs(pairs: &[[u32; 2]], points: usize) -> Result<Self, Error> {
        let is_missing = |point: u32| point as usize >= points;
        let wrong = pairs
            .iter()
            .find(|pair| pair.iter().any(|&point| is_missing(point)));
        if let Some(&[a, b]) = wrong {
            let (point, other) = if is_missing(a) { (b, a) } else { (a, b) };
            let point = point as usize;
            return Err(ErrorKind::ExcludedPoint {
                point,
                other,
                points,
            }
            .into());
        }
        let mut both = with_room(2 * pairs.len(), WHAT)?;
        both.extend(pairs.iter().flat_map(|&[a, b]| [[a, b], [b, a]]));
        both.sort_unstable();
        both.dedup();
        let mut offsets = filled(points.saturating_add(1), 0u64, WHAT)?;
        for &[point, _] in &both {
            offsets[point as usize + 1] += 1;
        }
        for point in 0..points {
            offsets[point + 1] += offsets[point];
        }
        let mut indices = with_room(both.len(), WHAT)?;
        indices.extend(both.iter().map(|pair| pair[1]));
        Ok(Self(Form::Lists { offsets, indices }))
    }

    /// Exclusions by molecules: points with the same number exclude each other.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn molecules(of_points: &[u32]) -> Result<Self, Error> {
        Ok(Self(Form::Molecules(copied(of_points, WHAT)?)))
    }

    /// The arrays that say which points exclude each other.
    pub fn arrays(&self) -> ExclusionArrays<'_> {
        match &self.0 {
            Form::Lists { offsets, indices } => ExclusionArrays::Lists { offsets, indices },
            Form::Molecules(of_points) => ExclusionArrays::Molecules(of_points),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Lists { offsets, .. } => offsets.len() - 1,
            Form::Molecules(of_points) => of_points.len(),
        }
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Form::Lists { offsets, indices } => {
                size_of::<u64>() * offsets.capacity() + size_of::<u32>() * indices.capacity()
            }
            Form::Molecules(of_points) => size_of::<u32>() * of_points.capacity(),
        }
    }

    /// The exclusions of the points `kept`, ascending, which are numbered anew from 0.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn of_kept(&self, kept: &[u32]) -> Result<Self, Error> {
        let form = match &self.0 {
            Form::Molecules(of_points) => {
                let mut left = with_room(kept.len(), WHAT)?;
                left.extend((kept.iter()).filter_map(|&point| of_points.get(point as usize)));
                Form::Molecules(left)
            }
            Form::Lists { indices, .. } => {
                let mut offsets = with_room(kept.len() + 1, WHAT)?;
                let mut left = with_room(indices.len(), WHAT)?;
                offsets.push(0);
                for &point in kept {
                    if let Excluded::Listed(list) = self.of(point as usize) {
                        let places = list.iter().map(|other| kept.binary_search(other));
                        left.extend(places.filter_map(Result::ok).map(|place| place as u32));
                    }
                    offsets.push(left.len() as u64);
                }
                Form::Lists {
                    offsets,
                    indices: left,
                }
            }
        };
        Ok(Self(form))
    }

    /// Prefetches where the exclusions of a point are.
    #[inline(always)]
    pub(super) fn expect(&self, point: usize) {
        match &self.0 {
            Form::Lists { offsets, .. } => prefetch(offsets.as_ptr().wrapping_add(point)),
            Form::Molecules(of_points) => prefetch(of_points.as_ptr().wrapping_add(point)),
        }
    }

    /// The points that a point excludes.
    #[inline(always)]
    pub(crate) fn of(&self, point: usize) -> Excluded<'_> {
        match &self.0 {
            Form::Lists { offsets, indices } => match offsets.get(point..point + 2) {
                Some(&[begin, end]) if begin < end => {
                    Excluded::Listed(&indices[begin as usize..end as usize])
                }
                _ => Excluded::None,
            },
            Form::Molecules(of_points) => match of_points.get(point) {
                Some(&own) => Excluded::Molecule { of: of_points, own },
                None => Excluded::None,
            },
        }
    }
}

impl Excluded<'_> {
    /// Prefetches the names of a list.
    #[inline(always)]
    pub(super) fn expect(&self) {
        if let Self::Listed(list) = self {
            prefetch(list.as_ptr());
        }
    }

    /// Returns true if the point excludes another.
    pub(crate) fn has(&self, other: u32) -> bool {
        match self {
            Self::None => false,
            Self::Listed(list) => list.binary_search(&other).is_ok(),
            Self::Molecule { of, own } => of.get(other as usize) == Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_cannot_be_are_refused_with_the_point() {
        for (offsets, indices, words) in [
            (&[][..], &[][..], "offsets"),
            (&[0, 1], &[], "offsets"),
            (&[1, 1], &[0], "offsets"),
            (&[0, 2, 1, 2], &[0, 1], "offsets"),
            (&[0, 1, 1], &[2], "point 0 excludes point 2"),
            (&[0, 2, 3, 4], &[2, 1, 0, 0], "of point 0"),
            (&[0, 2, 4], &[1, 1, 0, 0], "of point 0"),
            (&[0, 1, 1], &[1], "point 0 excludes point 1"),
            (&[0, u64::MAX], &[1], "offsets"),
        ] {
            let text = Exclusions::lists(offsets, indices).unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
        let own = Exclusions::lists(&[0, 1, 1], &[0]).unwrap();
        assert!(own.of(0).has(0) && !own.of(0).has(1) && !own.of(7).has(0));
    }

    #[test]
    fn pairs_in_any_order_make_symmetric_lists() {
        let made = Exclusions::pairs(&[[2, 0], [0, 1], [1, 0], [3, 3], [0, 2]], 4).unwrap();
        let lists = Exclusions::lists(&[0, 2, 3, 4, 5], &[1, 2, 0, 0, 3]).unwrap();
        assert_eq!(made, lists);
        for wrong in [[0, 4], [4, 0]] {
            let text = Exclusions::pairs(&[[0, 1], wrong], 4)
                .unwrap_err()
                .to_string();
            assert!(
                text.contains("point 0 excludes point 4, but there are 4"),
                "{text}"
            );
        }
        assert!(Exclusions::pairs(&[], 0).unwrap().is_empty());
    }

    #[test]
    fn exclusions_follow_the_points_that_are_kept() {
        let lists = Exclusions::lists(&[0, 2, 3, 5, 6], &[1, 2, 0, 0, 3, 2]).unwrap();
        let kept = lists.of_kept(&[0, 2, 3]).unwrap();
        assert_eq!(
            kept,
            Exclusions::lists(&[0, 1, 3, 4], &[1, 0, 2, 1]).unwrap()
        );
        let molecules = Exclusions::molecules(&[5, 5, 6, 5]).unwrap();
        let kept = molecules.of_kept(&[1, 2, 3]).unwrap();
        assert_eq!(kept, Exclusions::molecules(&[5, 6, 5]).unwrap());
        assert!(kept.of(0).has(2) && !kept.of(0).has(1) && kept.of(0).has(0));
    }
}

//! The targets of a search that does not cover all points.
//!
//! The targets of a search are sorted points, and a cell's targets share their candidates. So what
//! is chosen by index is searched by ranges of slots.
//!
//! A mask of a byte per point. A search visits ranges of sorted targets; those without a chosen
//! point are passed over, so a few chosen points cost little, and short gaps between chosen points
//! are searched along, because beginning anew with a range gathers its candidates again.

use crate::error::{Error, ErrorKind};
use nearfield_grid::memory::{copied, filled, with_room};
use std::ops::Range;

/// Sorted targets between two chosen ones that are searched along: about half of what a cell holds.
const SHORT_GAP: usize = 4;

/// Points of a set that are targets, in the caller's order.
///
/// ```
/// use nearfield_cpu::ChosenPoints;
/// let chosen = ChosenPoints::with_indices(&[4, 0], 5)?;
/// assert_eq!(chosen, ChosenPoints::with_mask(&[true, false, false, false, true])?);
/// assert!(chosen.has(4) && !chosen.has(1));
/// # Ok::<(), nearfield_cpu::Error>(())
/// ```
///
/// Points that are not chosen are found as sources all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenPoints(Vec<bool>);

impl ChosenPoints {
    /// The points with these indices, in any order, of `points` points.
    ///
    /// # Errors
    /// [`ErrorKind::ChosenPoint`] naming the first index that there is not, and
    /// [`ErrorKind::OutOfMemory`].
    pub fn with_indices(indices: &[u32], points: usize) -> Result<Self, Error> {
        let mut mask = filled(points, false, "chosen targets")?;
        for (place, &index) in indices.iter().enumerate() {
            match mask.get_mut(index as usize) {
                Some(chosen) => *chosen = true,
                None => {
                    return Err(ErrorKind::ChosenPoint {
                        place,
                        index,
                        points,
                    }
                    .into());
                }
            }
        }
        Ok(Self(mask))
    }

    /// The points whose element is true.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn with_mask(mask: &[bool]) -> Result<Self, Error> {
        Ok(Self(copied(mask, "chosen targets")?))
    }

    /// Those of the points `kept`, which are numbered anew from 0.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn of_kept(&self, kept: &[u32]) -> Result<Self, Error> {
        let mut mask = with_room(kept.len(), "chosen targets")?;
        mask.extend(kept.iter().map(|&point| self.has(point as usize)));
        Ok(Self(mask))
    }

    /// Whether each point is chosen.
    pub fn mask(&self) -> &[bool] {
        &self.0
    }

    /// Number of points, chosen or not.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.0.capacity()
    }

    /// Returns true if a point is chosen.
    #[inline(always)]
    pub fn has(&self, point: usize) -> bool {
        self.0.get(point).copied().unwrap_or(false)
    }

    /// The next range of sorted targets from `slots.start` on that is worth a search: it begins and
    /// ends with a chosen point. Empty, at the end, if there is none. `index` has the points of all
    /// slots.
    pub(crate) fn next_range(&self, slots: Range<usize>, index: &[u32]) -> Range<usize> {
        let is_chosen = |slot: &usize| self.has(index[*slot] as usize);
        let Some(begin) = slots.clone().find(is_chosen) else {
            return slots.end..slots.end;
        };
        let mut end = begin + 1;
        while let Some(next) = (end..slots.end.min(end + SHORT_GAP + 1)).find(is_chosen) {
            end = next + 1;
        }
        begin..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_there_is_not_is_named() {
        let text = ChosenPoints::with_indices(&[0, 3], 3)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("index 3") && text.contains("3 points"),
            "{text}"
        );
        let chosen = ChosenPoints::with_indices(&[2, 0, 2], 3).unwrap();
        assert_eq!(
            chosen,
            ChosenPoints::with_mask(&[true, false, true]).unwrap()
        );
        assert_eq!(chosen.of_kept(&[1, 2]).unwrap().0, [false, true]);
    }

    #[test]
    fn ranges_hold_every_chosen_point_and_no_long_gap() {
        let chosen: Vec<u32> = vec![1, 2, 7, 30, 31, 99];
        let mask = ChosenPoints::with_indices(&chosen, 100).unwrap();
        let index: Vec<u32> = (0..100).collect();
        let (mut next, mut found) = (0, Vec::new());
        while next < 100 {
            let range = mask.next_range(next..100, &index);
            next = range.end.max(next);
            if range.is_empty() {
                break;
            }
            found.push(range);
        }
        assert_eq!(found, [1..8, 30..32, 99..100]);
        assert!(mask.next_range(40..90, &index).is_empty());
    }
}

//! Data of points that travel with them: radii, types, molecules, whether they are targets, and the
//! points that they exclude.
//!
//! All but the last are columns of 32-bit words, one per point (two for radii in `f64`), so one
//! protocol brings any of them to owners, to halos and along with points that change their rank.
//! What a set has is the same on all ranks ([`Carried`]); messages have no other description.
//!
//! The points that a point excludes are named by their global ids ([`Rows`]). They go to the owner
//! of the point and not to halos: pairs are decided for points that a rank owns, and a pair of two
//! such points is known from either.
//!
//! **Invariant:** a column that a set carries has a word for each of its points, and rows that it
//! carries have a row for each of them.

use crate::Scalar;
use nearfield_grid::{
    Precision, Radii, Value,
    memory::{Shortage, collected, filled, make_room, make_room_for_one},
};
use std::{borrow::Cow, ops::Range};

/// A kind of data with a word for each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Bits of the radius in the precision of the points: all, or the higher ones of an `f64`.
    Radius,
    /// The lower bits of the radius; only points in `f64` have them.
    RadiusLow,
    /// Number of the type.
    Type,
    /// Number of the molecule.
    Molecule,
    /// 1 for a target, and 0 for a point that searches for none.
    Target,
}

impl Column {
    /// All of them, in the order of messages.
    const ALL: [Self; 5] = [
        Self::Radius,
        Self::RadiusLow,
        Self::Type,
        Self::Molecule,
        Self::Target,
    ];

    /// The columns of these radii, rounded to the precision `T` of the points.
    pub(crate) fn of_radii<T: Scalar>(radii: Radii<'_>) -> Result<Vec<(Self, Vec<u32>)>, Shortage> {
        const WHAT: &str = "radii of the caller";
        let each = || (0..radii.len()).map(|index| radii.get(index).map_or(0.0, Value::get));
        let words = |word: fn(f64) -> u32| collected(each().map(word), WHAT);
        Ok(match T::PRECISION {
            Precision::Single => {
                vec![(Self::Radius, words(|radius| (radius as f32).to_bits())?)]
            }
            Precision::Double => vec![
                (
                    Self::Radius,
                    words(|radius| (radius.to_bits() >> 32) as u32)?,
                ),
                (Self::RadiusLow, words(|radius| radius.to_bits() as u32)?),
            ],
        })
    }
}

/// Which data the points of a set have; the same on all ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    columns: [bool; Column::ALL.len()],
    /// Whether points exclude others by their ids.
    pub(crate) rows: bool,
}

impl Carried {
    /// Radii of points in the precision `T`, or none, and nothing else.
    pub(crate) fn radii<T: Scalar>(radii: bool) -> Self {
        let mut carried = Self::default();
        carried.set(Column::Radius, radii);
        let double = T::PRECISION == Precision::Double;
        carried.set(Column::RadiusLow, radii && double);
        carried
    }

    /// Returns true if points have this column.
    pub(crate) fn has(&self, column: Column) -> bool {
        self.columns[column as usize]
    }

    /// Says whether points have this column.
    pub(crate) fn set(&mut self, column: Column, has: bool) {
        self.columns[column as usize] = has;
    }

    /// Returns true if points exclude others.
    pub(crate) fn excludes(&self) -> bool {
        self.rows || self.has(Column::Molecule)
    }

    /// Bytes of the words of a point.
    pub(crate) fn width(&self) -> usize {
        size_of::<u32>() * self.present().count()
    }

    fn present(&self) -> impl Iterator<Item = Column> {
        Column::ALL.into_iter().filter(|column| self.has(*column))
    }
}

/// The purpose of the memory, for messages.
const WHAT: &str = "data of points";

/// Words of some points; a column is empty if they do not have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns([Vec<u32>; Column::ALL.len()]);

impl Columns {
    /// The words of a column.
    pub(crate) fn of(&self, column: Column) -> &[u32] {
        &self.0[column as usize]
    }

    /// The radii of points in the precision `T`: a copy in `f64`, whose words are apart.
    pub(crate) fn radii<T: Scalar>(&self) -> Result<Cow<'_, [T]>, Shortage> {
        let high = self.of(Column::Radius);
        Ok(match T::PRECISION {
            Precision::Single => Cow::Borrowed(bytemuck::cast_slice(high)),
            Precision::Double => {
                let words = high.iter().zip(self.of(Column::RadiusLow));
                let bits = words.map(|(high, low)| u64::from(*high) << 32 | u64::from(*low));
                Cow::Owned(collected(
                    bits.map(|bits| T::of(f64::from_bits(bits))),
                    WHAT,
                )?)
            }
        })
    }

    /// Replaces a column; returns the one before.
    pub(crate) fn put(&mut self, column: Column, words: Vec<u32>) -> Vec<u32> {
        std::mem::replace(&mut self.0[column as usize], words)
    }

    /// Appends the words of the points of `from` at these places.
    pub(crate) fn take(&mut self, from: &Self, indices: &[u32]) -> Result<(), Shortage> {
        for (words, from) in self.0.iter_mut().zip(&from.0) {
            if !from.is_empty() {
                make_room(words, words.len() + indices.len(), WHAT)?;
                words.extend(indices.iter().map(|index| from[*index as usize]));
            }
        }
        Ok(())
    }

    /// Appends the words of a point to a message.
    pub(crate) fn pack(&self, index: usize, carried: Carried, message: &mut Vec<u8>) {
        for column in carried.present() {
            message.extend_from_slice(&self.of(column)[index].to_ne_bytes());
        }
    }

    /// Makes room for `points` points.
    pub(crate) fn make_room(&mut self, carried: Carried, points: usize) -> Result<(), Shortage> {
        let mut present = carried.present();
        present.try_for_each(|column| make_room(&mut self.0[column as usize], points, WHAT))
    }

    /// Appends the words of a point from a message, for which there is room.
    pub(crate) fn unpack(&mut self, carried: Carried, words: &[u8]) {
        for (column, word) in carried.present().zip(words.as_chunks().0) {
            self.0[column as usize].push(u32::from_ne_bytes(*word));
        }
    }

    /// Overwrites the words by those of the same points in another order: point k has the place
    /// `places[k]`.
    pub(crate) fn put_at(&mut self, places: &[u32], from: &Self) -> Result<(), Shortage> {
        for (words, from) in self.0.iter_mut().zip(&from.0) {
            make_room(words, from.len(), WHAT)?;
            words.resize(from.len(), 0);
            for (place, word) in places.iter().zip(from) {
                words[*place as usize] = *word;
            }
        }
        Ok(())
    }

    /// The columns that `join` makes of each of these and the one in `came`.
    pub(crate) fn join(
        &self,
        came: &Self,
        join: impl Fn(&[u32], &[u32]) -> Result<Vec<u32>, Shortage>,
    ) -> Result<Self, Shortage> {
        let mut joined = Self::default();
        for ((joined, words), came) in joined.0.iter_mut().zip(&self.0).zip(&came.0) {
            if !(words.is_empty() && came.is_empty()) {
                *joined = join(words, came)?;
            }
        }
        Ok(joined)
    }
}

/// For each of some points, the ids of the points that it excludes, ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Where each row ends.
    ends: Vec<usize>,
    ids: Vec<u64>,
}

/// The purpose of the memory, for messages.
const EXCLUSIONS: &str = "exclusions of points";

impl Rows {
    /// Rows of `points` points from pairs of a place and an id, ascending; a pair may come twice.
    pub(crate) fn new(
        points: usize,
        pairs: impl Iterator<Item = (usize, u64)>,
    ) -> Result<Self, Shortage> {
        let mut rows = Self {
            ends: filled(points, 0, EXCLUSIONS)?,
            ids: Vec::new(),
        };
        let mut last = None;
        for pair in pairs.filter(|(point, _)| *point < points) {
            if last.replace(pair) != Some(pair) {
                make_room_for_one(&mut rows.ids, EXCLUSIONS)?;
                rows.ids.push(pair.1);
                rows.ends[pair.0] = rows.ids.len();
            }
        }
        let mut end = 0;
        for here in &mut rows.ends {
            end = end.max(*here);
            *here = end;
        }
        Ok(rows)
    }

    /// Returns true if there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn span(&self, index: usize) -> Range<usize> {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[index]
    }

    /// The ids that a point excludes.
    pub(crate) fn of(&self, index: usize) -> &[u64] {
        &self.ids[self.span(index)]
    }

    /// Appends the row of a point of `from`.
    pub(crate) fn take_one(&mut self, from: &Self, index: usize) -> Result<(), Shortage> {
        let row = from.of(index);
        make_room_for_one(&mut self.ends, EXCLUSIONS)?;
        let ids = self.ids.len() + row.len();
        make_room(&mut self.ids, ids, EXCLUSIONS)?;
        self.ids.extend_from_slice(row);
        self.ends.push(self.ids.len());
        Ok(())
    }

    /// Appends the rows of the points of `from` at these places, if it has rows.
    pub(crate) fn take(&mut self, from: &Self, indices: &[u32]) -> Result<(), Shortage> {
        if from.is_empty() {
            return Ok(());
        }
        let mut places = indices.iter().map(|index| *index as usize);
        places.try_for_each(|index| self.take_one(from, index))
    }

    /// Bytes of the rows of these points in a message.
    pub(crate) fn bytes(&self, indices: &[u32]) -> usize {
        let row = |index: &u32| 4 + 8 * self.of(*index as usize).len();
        indices.iter().map(row).sum()
    }

    /// Appends the rows of these points to a message: the length of each, then the ids.
    pub(crate) fn pack(&self, indices: &[u32], message: &mut Vec<u8>) {
        let rows = || indices.iter().map(|index| self.of(*index as usize));
        rows().for_each(|row| message.extend_from_slice(&(row.len() as u32).to_ne_bytes()));
        rows().for_each(|row| message.extend_from_slice(bytemuck::cast_slice(row)));
    }

    /// Appends the rows of `points` points at the beginning of a message, and returns the rest of
    /// it; `None` if it is too short.
    pub(crate) fn unpack<'a>(
        &mut self,
        points: usize,
        bytes: &'a [u8],
    ) -> Option<Result<&'a [u8], Shortage>> {
        let (lengths, bytes) = bytes.split_at_checked(points.checked_mul(4)?)?;
        let lengths = lengths.as_chunks().0.iter();
        let lengths = lengths.map(|length| u32::from_ne_bytes(*length) as usize);
        let (ids, rest) = bytes.split_at_checked(lengths.clone().sum::<usize>().checked_mul(8)?)?;
        let sizes = (self.ends.len() + points, self.ids.len() + ids.len() / 8);
        let room = make_room(&mut self.ends, sizes.0, EXCLUSIONS)
            .and_then(|()| make_room(&mut self.ids, sizes.1, EXCLUSIONS));
        if let Err(shortage) = room {
            return Some(Err(shortage));
        }
        let mut end = self.ids.len();
        self.ends.extend(lengths.map(|length| {
            end += length;
            end
        }));
        let ids = ids.as_chunks().0.iter();
        self.ids.extend(ids.map(|id| u64::from_ne_bytes(*id)));
        Some(Ok(rest))
    }
}

/// The pairs of places of points that exclude each other, among points with these ids, ascending.
/// `rows` yields the places of points with the ids that they exclude. A pair may come twice.
pub(crate) fn pairs<'a>(
    ids: &[u64],
    rows: impl Iterator<Item = (u32, &'a [u64])>,
) -> Result<Vec<[u32; 2]>, Shortage> {
    let mut pairs = Vec::new();
    for (place, row) in rows {
        // Ids of a row ascend, and so do those of the points.
        for id in row {
            if let Ok(other) = ids.binary_search(id) {
                make_room_for_one(&mut pairs, EXCLUSIONS)?;
                pairs.push([place, other as u32]);
            }
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_of_a_message_as_they_went_in() {
        let pairs = [(0, 7), (2, 1), (2, 1), (2, 9), (3, 0)];
        let rows = Rows::new(5, pairs.into_iter()).unwrap();
        let expected: [&[u64]; 5] = [&[7], &[], &[1, 9], &[0], &[]];
        for (index, row) in expected.iter().enumerate() {
            assert_eq!(rows.of(index), *row);
        }
        let (mut message, places) = (Vec::new(), [2, 4, 0]);
        rows.pack(&places, &mut message);
        assert_eq!(message.len(), rows.bytes(&places));
        message.extend_from_slice(b"rest");
        let mut came = Rows::default();
        came.take_one(&rows, 3).unwrap();
        assert_eq!(came.unpack(3, &message).unwrap().unwrap(), b"rest");
        let found: Vec<&[u64]> = (0..4).map(|index| came.of(index)).collect();
        assert_eq!(found, [&[0][..], &[1, 9], &[], &[7]]);
        // A message that is cut off anywhere is told.
        for end in 0..message.len() - 4 {
            assert!(Rows::default().unpack(3, &message[..end]).is_none());
        }
        let many = [0xff; 12];
        assert!(Rows::default().unpack(3, &many).is_none());
        assert!(Rows::default().unpack(usize::MAX, &many).is_none());
    }

    #[test]
    fn columns_travel_in_the_order_of_their_kinds() {
        let mut columns = Columns::default();
        columns.put(Column::Molecule, vec![5, 6, 7]);
        for (column, words) in Column::of_radii::<f32>((&[0.5f64, 1.0, 2.0]).into()).unwrap() {
            columns.put(column, words);
        }
        let mut carried = Carried::radii::<f32>(true);
        carried.set(Column::Molecule, true);
        let mut message = Vec::new();
        columns.pack(1, carried, &mut message);
        assert_eq!(message.len(), carried.width());
        let mut came = Columns::default();
        came.make_room(carried, 1).unwrap();
        came.unpack(carried, &message);
        assert_eq!(
            (&*came.radii::<f32>().unwrap(), came.of(Column::Molecule)),
            (&[1.0][..], &[6][..])
        );
        assert!(came.of(Column::Type).is_empty());
    }

    #[test]
    fn radii_in_double_keep_all_their_bits() {
        let (given, mut columns) = ([0.1, 1.0 / 3.0, f64::MAX], Columns::default());
        for (column, words) in Column::of_radii::<f64>((&given).into()).unwrap() {
            columns.put(column, words);
        }
        let (carried, mut message) = (Carried::radii::<f64>(true), Vec::new());
        columns.pack(1, carried, &mut message);
        assert_eq!((carried.width(), message.len()), (8, 8));
        let mut came = Columns::default();
        came.unpack(carried, &message);
        assert_eq!(*came.radii::<f64>().unwrap(), given[1..2]);
        // Those in `f32` are taken as they are, and in a search in `f32` the others are rounded.
        let words = Column::of_radii::<f64>((&[0.1f32]).into()).unwrap();
        columns = Columns::default();
        for (column, words) in words {
            columns.put(column, words);
        }
        assert_eq!(*columns.radii::<f64>().unwrap(), [f64::from(0.1f32)]);
        let words = Column::of_radii::<f32>((&[0.1f64]).into()).unwrap();
        assert_eq!(words, [(Column::Radius, vec![0.1f32.to_bits()])]);
    }

    #[test]
    fn pairs_of_points_that_are_elsewhere_are_left_out() {
        let (ids, row) = ([2, 5, 9], [1, 5, 9, 11]);
        let found = pairs(&ids, [(0, &row[..]), (2, &row[1..2])].into_iter()).unwrap();
        assert_eq!(found, [[0, 1], [0, 2], [2, 1]]);
    }
}

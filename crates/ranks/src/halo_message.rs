//! Messages of halos, and the ids in them.
//!
//! Positions change at every step, but ids only when points pass between cells or ranks. So sender
//! and receiver keep the ids of the previous exchange, in the order of the message, and a message
//! lists the changes: the places of ids that are gone, and the new ids with their places. It lists
//! all ids if that is shorter, or if a rank does not have the previous exchange because newer
//! points came first or memory was short. The agreement before the exchange tells the ranks which
//! of the two it is.
//!
//! **Invariant:** the ids of a message ascend, because callers that own their points have them in
//! the order of their ids.

use crate::{
    communicator::{Exchange, message},
    point_data::Carried,
    points::{Arrived, Points},
    scalar::Scalar,
};
use nearfield_grid::memory::{Shortage, collected, make_room, make_room_for_one};

/// A halo that was posted and has not been received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) exchange: Exchange,
    /// The columns that come with it.
    pub(crate) carried: Carried,
    /// Whether messages may list only the changes of ids.
    pub(crate) changes: bool,
}

/// The ids that this rank has sent to the others, and the exchanges that sent them.
#[derive(Debug, Default)]
pub(crate) struct SentIds {
    /// The last exchange, and the exchange whose halo this rank has.
    pub(crate) posted: Option<Exchange>,
    pub(crate) taken: Option<Exchange>,
    /// By rank, ascending: the ids that it got.
    pub(crate) ids: Vec<(usize, Vec<u64>)>,
}

/// Stands for the number of ids that are gone if the message has all ids.
const ALL: u64 = u64::MAX;
/// Bytes of the two numbers at the beginning of a message: its points, and ids that are gone.
pub(crate) const HEAD: usize = 16;
/// The purpose of the memory, for messages.
pub(crate) const WHAT: &str = "ids of halos";

/// The differences between two ascending lists of ids.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    /// Places in the old list of ids that are not in the new list.
    gone: Vec<u32>,
    /// Places in the new list of ids that are not in the old list, and these ids.
    places: Vec<u32>,
    ids: Vec<u64>,
}

impl Changes {
    /// From the list `before` to the list `now`; `None` if listing all ids takes fewer bytes.
    fn new(
        before: &[u64],
        now: impl ExactSizeIterator<Item = u64>,
    ) -> Result<Option<Self>, Shortage> {
        let (mut changes, mut at) = (Self::default(), 0);
        let max = 8 * now.len();
        for (place, id) in (0..).zip(now) {
            while before.get(at).is_some_and(|old| *old < id) {
                changes.is_gone(at)?;
                at += 1;
            }
            if before.get(at) == Some(&id) {
                at += 1;
            } else {
                make_room_for_one(&mut changes.places, WHAT)?;
                make_room_for_one(&mut changes.ids, WHAT)?;
                changes.places.push(place);
                changes.ids.push(id);
            }
            if changes.bytes() > max {
                return Ok(None);
            }
        }
        (at..before.len()).try_for_each(|at| changes.is_gone(at))?;
        Ok((changes.bytes() <= max).then_some(changes))
    }

    fn is_gone(&mut self, at: usize) -> Result<(), Shortage> {
        make_room_for_one(&mut self.gone, WHAT)?;
        self.gone.push(at as u32);
        Ok(())
    }

    /// Bytes of a message.
    fn bytes(&self) -> usize {
        4 * self.gone.len() + 12 * self.places.len()
    }

    /// Appends the new list of `points` ids to `ids`. The old list has `known` ids, which `before`
    /// returns by place. `None` if lists and changes do not fit together.
    fn apply(
        [gone, places, new]: [&[u8]; 3],
        (points, known): (usize, usize),
        before: impl Fn(usize) -> u64,
        ids: &mut Vec<u64>,
    ) -> Option<()> {
        let number = |bytes: &[u8; 4]| u32::from_ne_bytes(*bytes) as usize;
        let mut gone = gone.as_chunks().0.iter().map(number).peekable();
        let places = places.as_chunks().0.iter().map(number);
        let new = new.as_chunks().0.iter().map(|id| u64::from_ne_bytes(*id));
        let mut new = places.zip(new).peekable();
        let mut old = 0..known;
        for place in 0..points {
            let id = match new.next_if(|(at, _)| *at == place) {
                Some((_, id)) => id,
                None => {
                    let mut at = old.next()?;
                    while gone.next_if_eq(&at).is_some() {
                        at = old.next()?;
                    }
                    before(at)
                }
            };
            ids.push(id);
        }
        Some(())
    }
}

/// Makes the message of a halo; returns its ids too.
pub(crate) fn pack<T: Scalar>(
    points: &Points<T>,
    indices: &[u32],
    (changes, known): (bool, &[u64]),
    carried: Carried,
) -> Result<(Vec<u8>, Vec<u64>), Shortage> {
    let at = || indices.iter().map(|index| *index as usize);
    let ids = collected(at().map(|index| points.ids[index]), WHAT)?;
    if ids.is_empty() {
        return Ok((message(0)?, ids));
    }
    let changes = match changes {
        true => Changes::new(known, ids.iter().copied())?,
        false => None,
    };
    let of_ids = changes.as_ref().map_or(8 * ids.len(), Changes::bytes);
    let of_point = size_of::<[T; 3]>() + carried.width();
    let mut message = message(HEAD + of_ids + of_point * ids.len())?;
    let gone = changes
        .as_ref()
        .map_or(ALL, |changes| changes.gone.len() as u64);
    message.extend_from_slice(bytemuck::cast_slice(&[ids.len() as u64, gone]));
    match &changes {
        Some(changes) => {
            message.extend_from_slice(bytemuck::cast_slice(&changes.gone));
            message.extend_from_slice(bytemuck::cast_slice(&changes.places));
            message.extend_from_slice(bytemuck::cast_slice(&changes.ids));
        }
        None => message.extend_from_slice(bytemuck::cast_slice(&ids)),
    }
    for index in at() {
        message.extend_from_slice(bytemuck::bytes_of(&points.positions[index]));
    }
    at().for_each(|index| points.columns.pack(index, carried, &mut message));
    Ok((message, ids))
}

/// Takes the points of a message. Returns their number, and whether they are those of the previous
/// exchange, of which `known` is the number of ids and `before` returns the ids by place. `None` if
/// it is not a message of a halo.
pub(crate) fn unpack<T: Scalar>(
    arrived: &mut Arrived<T>,
    bytes: &[u8],
    pending: Pending,
    (known, before): (usize, impl Fn(usize) -> u64),
) -> Option<Result<(usize, bool), Shortage>> {
    let (points, bytes) = bytes.split_first_chunk()?;
    let (gone, bytes) = bytes.split_first_chunk()?;
    let points = usize::try_from(u64::from_ne_bytes(*points)).ok()?;
    let gone = u64::from_ne_bytes(*gone);
    let all = &mut arrived.points;
    // A wrong number of points must not ask for more memory than the message has.
    let sum = all.len() + points.min(bytes.len());
    let room = make_room(&mut all.ids, sum, WHAT)
        .and_then(|()| make_room(&mut all.positions, sum, WHAT))
        .and_then(|()| all.columns.make_room(pending.carried, sum));
    if let Err(shortage) = room {
        return Some(Err(shortage));
    }
    let (bytes, unchanged) = if gone == ALL {
        let (ids, bytes) = bytes.split_at_checked(points.checked_mul(8)?)?;
        let ids = ids.as_chunks().0.iter();
        all.ids.extend(ids.map(|id| u64::from_ne_bytes(*id)));
        (bytes, false)
    } else {
        let gone = usize::try_from(gone).ok()?;
        let new = points.checked_add(gone)?.checked_sub(known)?;
        let (old, bytes) = bytes.split_at_checked(gone.checked_mul(4)?)?;
        let (places, bytes) = bytes.split_at_checked(new.checked_mul(4)?)?;
        let (ids, bytes) = bytes.split_at_checked(new.checked_mul(8)?)?;
        Changes::apply([old, places, ids], (points, known), before, &mut all.ids)?;
        (bytes, gone == 0 && new == 0)
    };
    let (positions, words) = bytes.split_at_checked(points.checked_mul(size_of::<[T; 3]>())?)?;
    let positions = positions.chunks_exact(size_of::<[T; 3]>());
    all.positions
        .extend(positions.map(bytemuck::pod_read_unaligned::<[T; 3]>));
    let width = pending.carried.width();
    if words.len() != width * points {
        return None;
    }
    for words in words.chunks_exact(width.max(1)) {
        all.columns.unpack(pending.carried, words);
    }
    Some(Ok((points, unchanged)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changes, and the ids after them.
    fn changed(before: &[u64], now: &[u64]) -> Option<(Changes, Vec<u64>)> {
        let changes = Changes::new(before, now.iter().copied()).unwrap()?;
        let parts = [
            bytemuck::cast_slice(&changes.gone),
            bytemuck::cast_slice(&changes.places),
            bytemuck::cast_slice(&changes.ids),
        ];
        let mut ids = Vec::new();
        let sizes = (now.len(), before.len());
        Changes::apply(parts, sizes, |at| before[at], &mut ids).unwrap();
        Some((changes, ids))
    }

    #[test]
    fn ids_are_those_after_the_changes() {
        let before: Vec<u64> = (0..100).map(|k| 3 * k + 5).collect();
        let mut now = before.clone();
        now.retain(|id| !id.is_multiple_of(7));
        now.extend([0, 6, 9, 1000, u64::MAX]);
        now.sort_unstable();
        let (changes, ids) = changed(&before, &now).unwrap();
        assert_eq!(ids, now);
        assert_eq!(changes.ids, [0, 6, 9, 1000, u64::MAX]);
        assert!(changes.bytes() < 8 * now.len() / 4);
        let (changes, ids) = changed(&before, &before).unwrap();
        assert_eq!((changes, ids), (Changes::default(), before.clone()));
    }

    #[test]
    fn all_ids_are_sent_where_that_is_shorter() {
        let (even, odd) = ([0, 2, 4, 6], [1, 3, 5, 7]);
        assert_eq!(changed(&even, &odd), None);
        assert_eq!(changed(&(0..100).collect::<Vec<_>>(), &[50]), None);
        assert_eq!(changed(&[], &odd), None);
    }

    #[test]
    fn changes_that_do_not_fit_are_told() {
        let mut ids = Vec::new();
        let parts: [&[u8]; 3] = [&0u32.to_ne_bytes(), &[], &[]];
        let applied = Changes::apply(parts, (2, 2), |at| at as u64, &mut ids);
        assert_eq!(applied, None, "one of two is gone, and two are left");
    }
}

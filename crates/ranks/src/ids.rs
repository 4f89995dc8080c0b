//! Global ids: given or numbered, and checked to be unique among all ranks.

use crate::{
    Error, ErrorKind, RankedEngine, Scalar,
    communicator::{Communicator, Item},
    error::{Failure, Refusal},
    points::Points,
};
use nearfield_grid::memory::{collected, copied};

impl<T: Scalar> RankedEngine<T> {
    /// The caller's points, numbered without `ids`.
    pub(crate) fn home(
        &mut self,
        positions: &[[T; 3]],
        ids: Option<&[u64]>,
    ) -> Result<Points<T>, Error> {
        let copied = copied(positions, "positions of the caller").map_err(Refusal::from);
        let (ids, positions) = ids_of(&mut self.comm, positions.len(), ids, copied)?;
        Ok(Points {
            ids,
            positions,
            ..Points::default()
        })
    }
}

/// The ids of the caller's points, numbered rank after rank without `ids`; and `with`, unless a
/// rank refuses. Collective.
pub(crate) fn ids_of<R>(
    comm: &mut Communicator,
    points: usize,
    ids: Option<&[u64]>,
    with: Result<R, Refusal>,
) -> Result<(Vec<u64>, R), Error> {
    let checked = match ids {
        Some(ids) if ids.len() != points => Err(Refusal::new(format!(
            "{} ids for {points} points: give one to each, or none at all",
            ids.len(),
        ))),
        _ => Ok(()),
    };
    let given = f64::from(u8::from(ids.is_some()));
    let mut ends = [given, -given];
    comm.agree(checked, &mut ends)?;
    if ends[0] != -ends[1] {
        return Err(Error::from(ErrorKind::Refused {
            rank: 0,
            point: None,
            message: "some ranks give ids and some do not: give them on all ranks or on none"
                .to_owned(),
        }));
    }
    let counts = comm.gather_number(points as u64)?;
    let first: u64 = counts[..comm.rank()].iter().sum();
    let own = with.and_then(|with| {
        Ok(match ids {
            Some(ids) => (copied(ids, "global ids")?, with),
            None => (collected(first..first + points as u64, "global ids")?, with),
        })
    });
    let own = comm.agree(own, &mut [])?;
    if ids.is_some() {
        check(comm, &own.0)?;
    }
    Ok(own)
}

/// Refuses ids that two points have, on one rank or on two. Rank `id % ranks` checks an id.
fn check(comm: &mut Communicator, ids: &[u64]) -> Result<(), Error> {
    let (from, ranks) = (comm.rank() as u32, comm.ranks() as u64);
    let checker = |id: &u64| Item {
        to: (*id % ranks) as u32,
        from,
        value: *id,
    };
    let items = collected(ids.iter().map(checker), "ids that are looked up");
    let items = comm.agree(items.map_err(Refusal::from), &mut [])?;
    let checked = comm.bring_around(items).and_then(|mut found| {
        found.sort_unstable_by_key(|item| (item.value, item.from));
        match found.windows(2).find(|pair| pair[0].value == pair[1].value) {
            None => Ok(()),
            Some(pair) => Err(Failure::from(Refusal::new(format!(
                "two points have the id {}, given by the ranks {} and {}",
                { pair[0].value },
                { pair[0].from },
                { pair[1].from }
            )))),
        }
    });
    comm.agree(checked, &mut [])
}

//! Global ids: given or made, and each once among all ranks.

use crate::{
    Error, ErrorKind, RankedEngine, Scalar, communicator::Item, error::Refusal, points::Points,
};
use nearfield_grid::memory::{collected, copied, make_room};

impl<T: Scalar> RankedEngine<T> {
    /// The caller's points, numbered if there are no `ids`.
    pub(crate) fn home(
        &mut self,
        positions: &[[T; 3]],
        ids: Option<&[u64]>,
    ) -> Result<Points<T>, Error> {
        let checked = match ids {
            Some(ids) if ids.len() != positions.len() => Err(Refusal::new(format!(
                "{} ids for {} points: give one to each, or none at all",
                ids.len(),
                positions.len()
            ))),
            _ => Ok(()),
        };
        let given = f64::from(u8::from(ids.is_some()));
        let mut ends = [given, -given];
        self.comm.agree(checked, &mut ends)?;
        if ends[0] != -ends[1] {
            return Err(Error::from(ErrorKind::Refused {
                rank: 0,
                point: None,
                message: "some ranks give ids and some do not: give them on all ranks or on none"
                    .to_owned(),
            }));
        }
        let counts = self.comm.gather_number(positions.len() as u64)?;
        let first: u64 = counts[..self.rank()].iter().sum();
        let home = || {
            let mut home = Points {
                ids: Vec::new(),
                positions: copied(positions, "positions of the caller")?,
                radii: Vec::new(),
            };
            make_room(&mut home.ids, positions.len(), "global ids")?;
            match ids {
                Some(ids) => home.ids.extend_from_slice(ids),
                None => home.ids.extend(first..first + positions.len() as u64),
            }
            Ok(home)
        };
        let home = self.comm.agree(home(), &mut [])?;
        if ids.is_some() {
            self.check_ids(&home.ids)?;
        }
        Ok(home)
    }

    /// Refuses ids that stand twice, on this rank or on two. Every id is looked up by the rank that
    /// its remainder names.
    fn check_ids(&mut self, ids: &[u64]) -> Result<(), Error> {
        let (from, ranks) = (self.rank() as u32, self.ranks() as u64);
        let checker = |id: &u64| Item {
            to: (*id % ranks) as u32,
            from,
            value: *id,
        };
        let items = collected(ids.iter().map(checker), "ids that are looked up");
        let items = self.comm.agree(items.map_err(Refusal::from), &mut [])?;
        let (mut found, short) = self.comm.bring_around(items)?;
        found.sort_unstable_by_key(|item| (item.value, item.from));
        let twice = found.windows(2).find(|pair| pair[0].value == pair[1].value);
        let checked = match (short, twice) {
            (Some(shortage), _) => Err(shortage.into()),
            (None, None) => Ok(()),
            (None, Some(pair)) => Err(Refusal::new(format!(
                "two points have the id {}, given by the ranks {} and {}",
                pair[0].value, pair[0].from, pair[1].from
            ))),
        };
        self.comm.agree(checked, &mut [])
    }
}

//! Global ids: given or made, and each once among all ranks.

use crate::{
    Error, ErrorKind, RankedEngine, Scalar, communicator::IDS, error::Refusal, points::Points,
};
use nearfield_grid::memory::{copied, make_room};

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
        let ranks = self.ranks() as u64;
        for rank in 0..ranks {
            let mine = ids.iter().filter(|id| **id % ranks == rank);
            let message = mine.flat_map(|id| id.to_ne_bytes()).collect();
            self.comm.post(rank as usize, IDS, message)?;
        }
        let mut found: Vec<(u64, usize)> = Vec::new();
        for rank in 0..self.ranks() {
            let message = self.comm.receive(rank, IDS)?;
            let (ids, _) = message.as_chunks();
            found.extend(ids.iter().map(|id| (u64::from_ne_bytes(*id), rank)));
        }
        found.sort_unstable();
        let twice = found.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let checked = match twice {
            None => Ok(()),
            Some(pair) => Err(Refusal::new(format!(
                "two points have the id {}, given by the ranks {} and {}",
                pair[0].0, pair[0].1, pair[1].1
            ))),
        };
        self.comm.agree(checked, &mut [])
    }
}

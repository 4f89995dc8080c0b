//! Halos of points whose callers own them: posted, and received when they are needed.

use crate::{
    communicator::{Communicator, Exchange},
    error::Refusal,
    points::{Arrived, REFUSED},
    routes::to,
    scalar::Scalar,
    set::Set,
    told::{HEAD, Pending, Told, WHAT, pack, unpack},
    transport::Fault,
};
use nearfield_grid::memory::make_room_for_one;

impl<T: Scalar> Set<T> {
    /// Whether this rank has the halo of the last exchange.
    pub(crate) fn knows_halo(&self) -> bool {
        let Told { posted, taken, .. } = &self.told;
        posted.is_some() && posted == taken && self.pending.is_none() && self.broken.is_none()
    }

    /// Posts the halo of the caller's points, which this rank owns, by `routes.halo`. `changes` is
    /// true if all ranks have the halo before. The inner error is a shortage of memory, which the
    /// partners are told of.
    pub(crate) fn post_halo(
        &mut self,
        comm: &mut Communicator,
        changes: bool,
    ) -> Result<Result<(), Refusal>, Fault> {
        let (exchange, radii) = (comm.begin(), self.has_radii);
        self.pending = (comm.ranks() > 1).then_some(Pending {
            exchange,
            radii,
            changes,
        });
        let (me, mut posted) = (comm.rank(), Ok(()));
        let before = std::mem::take(&mut self.told).ids;
        self.told.posted = Some(exchange);
        for partner in self.links.partners().iter().filter(|rank| **rank != me) {
            let known = before.binary_search_by_key(partner, |(rank, _)| *rank);
            let known = match known {
                Ok(at) if changes => before[at].1.as_slice(),
                _ => &[],
            };
            let indices = to(&self.routes.halo.sends, *partner);
            let packed = pack(&self.home, indices, (changes, known), radii);
            let (message, ids) = packed.unwrap_or_else(|shortage| {
                posted = Err(shortage.into());
                (REFUSED.to_vec(), Vec::new())
            });
            comm.post(*partner, self.links.tag, exchange, message)?;
            if make_room_for_one(&mut self.told.ids, WHAT).is_ok() {
                self.told.ids.push((*partner, ids));
            } else {
                // The next message has all ids.
                self.told.posted = None;
            }
        }
        Ok(posted)
    }

    /// Waits for the halo that is under way.
    pub(crate) fn receive_halo(
        &self,
        comm: &mut Communicator,
        pending: Pending,
    ) -> Result<Arrived<T>, Fault> {
        let mut arrived = Arrived::default();
        let (me, before) = (comm.rank(), &self.routes.halo);
        let mut same = pending.changes;
        for partner in self.links.partners().iter().filter(|rank| **rank != me) {
            let message = comm.receive(*partner, self.links.tag, pending.exchange)?;
            if message == REFUSED {
                arrived.refused.get_or_insert(Refusal::echo(*partner));
            } else if !message.is_empty() {
                let (mut first, mut known) = (0, 0);
                for source in before.sources.iter().filter(|_| pending.changes) {
                    if source.rank == *partner {
                        known = source.points;
                        break;
                    }
                    first += source.points;
                }
                let id = |at: usize| self.halo.ids[before.places[first + at] as usize];
                match unpack(&mut arrived, &message, pending, (known, id)) {
                    Some(Ok((points, unchanged))) => {
                        same &= unchanged;
                        arrived.came(*partner, points);
                    }
                    Some(Err(shortage)) => arrived.refused = Some(shortage.into()),
                    None => return Err(comm.wrong_length(message.len(), HEAD)),
                }
            }
        }
        arrived.same = same && arrived.sources == before.sources && arrived.refused.is_none();
        Ok(arrived)
    }

    /// Notes that the halo of an exchange was taken.
    pub(crate) fn halo_taken(&mut self, exchange: Exchange) {
        self.told.taken = Some(exchange);
    }

    /// Forgets what was told: other points travel by other ways.
    pub(crate) fn forget_told(&mut self) {
        (self.told, self.pending) = (Told::default(), None);
    }
}

//! Halos of points whose callers own them: sent, and received when they are needed.

use crate::{
    communicator::{Communicator, Exchange, Untaken},
    error::Failure,
    halo_message::{HEAD, Pending, SentIds, WHAT, pack, unpack},
    points::Arrived,
    routes::to,
    scalar::Scalar,
    set::Set,
};
use nearfield_grid::memory::make_room_for_one;

impl<T: Scalar> Set<T> {
    /// Returns true if this rank has the halo of the last exchange.
    pub(crate) fn knows_halo(&self) -> bool {
        let SentIds { posted, taken, .. } = &self.sent_ids;
        posted.is_some() && posted == taken && self.pending.is_none() && self.broken.is_none()
    }

    /// Sends the halo of the caller's points, which this rank owns, along `routes.halo`. `changes`
    /// is true if all ranks have the previous halo. A partner is told if memory is short for its
    /// message.
    pub(crate) fn post_halo(
        &mut self,
        comm: &mut Communicator,
        changes: bool,
    ) -> Result<(), Failure> {
        let (exchange, carried) = (comm.begin(), self.carried);
        self.pending = (comm.ranks() > 1).then_some(Pending {
            exchange,
            carried,
            changes,
        });
        let before = std::mem::take(&mut self.sent_ids).ids;
        self.sent_ids.posted = Some(exchange);
        let (sent_ids, sends, home) = (&mut self.sent_ids, &self.routes.halo.sends, &self.home);
        self.links.post_each(comm, exchange, |partner| {
            let known = before.binary_search_by_key(&partner, |(rank, _)| *rank);
            let known = match known {
                Ok(at) if changes => before[at].1.as_slice(),
                _ => &[],
            };
            let packed = pack(home, to(sends, partner), (changes, known), carried);
            let (packed, ids) = match packed {
                Ok((message, ids)) => (Ok(message), ids),
                Err(shortage) => (Err(shortage.into()), Vec::new()),
            };
            if make_room_for_one(&mut sent_ids.ids, WHAT).is_ok() {
                sent_ids.ids.push((partner, ids));
            } else {
                // The next message has all ids.
                sent_ids.posted = None;
            }
            packed
        })
    }

    /// Waits for the halo that is under way.
    pub(crate) fn receive_halo(
        &self,
        comm: &mut Communicator,
        pending: Pending,
    ) -> Result<Arrived<T>, Failure> {
        let mut arrived = Arrived::default();
        let before = &self.routes.halo;
        let mut same = pending.changes;
        (self.links).receive_each(comm, pending.exchange, |partner, message| {
            let (mut first, mut known) = (0, 0);
            for source in before.sources.iter().filter(|_| pending.changes) {
                if source.rank == partner {
                    known = source.points;
                    break;
                }
                first += source.points;
            }
            let id = |at: usize| self.halo.ids[before.places[first + at] as usize];
            let unpacked = unpack(&mut arrived, message, pending, (known, id));
            let (points, unchanged) = unpacked.ok_or(Untaken::Length { least: HEAD })??;
            same &= unchanged;
            arrived.came(partner, points);
            Ok(())
        })?;
        arrived.same = same && arrived.sources == before.sources;
        Ok(arrived)
    }

    /// Notes that this rank has the halo of an exchange.
    pub(crate) fn halo_taken(&mut self, exchange: Exchange) {
        self.sent_ids.taken = Some(exchange);
    }

    /// Forgets the ids that were sent, because other points travel along other routes.
    pub(crate) fn forget_sent_ids(&mut self) {
        (self.sent_ids, self.pending) = (SentIds::default(), None);
    }
}

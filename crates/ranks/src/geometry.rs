//! Lists with displacements, distances and images of their pairs.
//!
//! The engine of a rank writes the geometry of pairs of the lists that it has: of owned points
//! among owned points, and of the border. Coordinates travel as they were given, so a pair has the
//! same bits on whichever rank it is found. Pairs of a point are then in the order of their ids,
//! those of one source in the order of their images; or the nearest first if only these count.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    error::{Failure, Refusal},
    set::Set,
    spans::Spans,
};
use nearfield::{
    ListKind, PointSetId,
    lists::{NeighborPair, PairGeometry},
};
use nearfield_grid::memory::{make_room, with_room};

/// A neighbour by its global id, and the image that it was found through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdPair<T> {
    /// Global id of the source.
    pub id: u64,
    /// By how many box vectors the source is moved along each axis; zero on open axes.
    pub image: [i32; 3],
    /// Displacement from the target to that image of the source, in the unit of the coordinates.
    pub d: [T; 3],
    /// Squared length of `d`, computed in the precision of the coordinates.
    pub d2: T,
}

/// Lists in the caller's order with the geometry of their pairs, from
/// [`RankedEngine::pair_geometry`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IdGeometry<T> {
    /// Where each list begins, and the end of the last: one more than there are points.
    pub offsets: Vec<u64>,
    /// Pairs, list after list.
    pub pairs: Vec<IdPair<T>>,
}

impl<T> IdGeometry<T> {
    /// The neighbours of the caller's point `index`.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn of(&self, index: usize) -> &[IdPair<T>] {
        &self.pairs[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

/// A pair in a message. It is packed, so it has no padding in either precision.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, packed)]
struct Sent<T> {
    id: u64,
    image: [i32; 3],
    d: [T; 3],
    d2: T,
}

/// What the engine of a rank writes.
#[derive(Default)]
struct Written {
    owned: PairGeometry,
    /// Of the border, among the halo or among all points around it.
    border: PairGeometry,
}

impl<T: Scalar> RankedEngine<T> {
    /// The neighbours in `sources` of every point of `targets` that this rank gave, in the caller's
    /// order, with the displacement, the squared distance and the periodic image of each pair; see
    /// [`nearfield::Engine::pair_geometry`]. Lists are searched anew; the pair of sets need not be
    /// active.
    ///
    /// ```
    /// use nearfield_ranks::{RankedEngine, transport::threads};
    /// let pairs = threads::run(2, |transport| {
    ///     let builder = RankedEngine::builder(1.0).periodic([Some(4.0), None, None]);
    ///     let mut engine = builder.threads(1).build::<f32>(transport)?;
    ///     let at = [0.25, 3.75][engine.rank()];
    ///     let atoms = engine.add_point_set(&[[at, 0.0, 0.0]], None)?;
    ///     Ok::<_, nearfield_ranks::Error>(engine.pair_geometry(atoms, atoms)?.of(0)[0])
    /// });
    /// let pair = pairs.into_iter().next().expect("the first rank").unwrap()?;
    /// assert_eq!((pair.id, pair.image), (1, [-1, 0, 0]));
    /// assert_eq!((pair.d, pair.d2), ([-0.5, 0.0, 0.0], 0.25));
    /// # Ok::<(), nearfield_ranks::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if memory is short on one, a
    /// set has no positions, radii or types, or an image is more than 2³¹ boxes away.
    pub fn pair_geometry(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<IdGeometry<T>, Error> {
        self.restore()?;
        let mut written = Written::default();
        let owned = self.geometry_of_owned([targets, sources], &mut written);
        let settled = self.settle();
        let joined = owned.map_err(Failure::from).and_then(|()| {
            settled?;
            self.geometry_of_border([targets, sources], &mut written)?;
            let joined = self.join_geometry([targets, sources], &written)?;
            let room = Spans::with_room(self.known(targets)?.home.len())?;
            Ok((joined, room))
        });
        let (mut spans, mut arrived) = self.comm.agree(joined, &mut [])?;
        if let Some(route) = &self.sets[targets.0].routes.owned {
            // Callers that do not own their points get the pairs from owners.
            let brought = arrived.bring(&mut self.comm, route, &spans);
            self.comm.agree(brought, &mut [])?;
            spans = arrived;
        }
        let pairs = spans.in_order().and_then(|(offsets, sent)| {
            let mut pairs = with_room(sent.len(), WHAT)?;
            pairs.extend(sent.into_iter().map(|sent| IdPair {
                id: sent.id,
                image: sent.image,
                d: sent.d,
                d2: sent.d2,
            }));
            Ok(IdGeometry { offsets, pairs })
        });
        self.comm.agree(pairs, &mut [])
    }

    /// Pairs of owned points.
    fn geometry_of_owned(
        &mut self,
        [targets, sources]: [RankedSet; 2],
        written: &mut Written,
    ) -> Result<(), Refusal> {
        let names = (self.placed(targets)?.names, self.placed(sources)?.names);
        let (engine, owned) = (&self.engine, &mut written.owned);
        let of = (names.0.owned, names.1.owned);
        Ok(self
            .clock
            .interior(|| engine.pair_geometry(of.0, of.1, owned))?)
    }

    /// Pairs of the border.
    fn geometry_of_border(
        &mut self,
        [targets, sources]: [RankedSet; 2],
        written: &mut Written,
    ) -> Result<(), Refusal> {
        let begin = std::time::Instant::now();
        let (of, among) = (self.placed(targets)?, self.placed(sources)?);
        if !of.meets(among) {
            return Ok(());
        }
        let (at, from): (PointSetId, PointSetId) = match of.lists_around(targets == sources) {
            true => (of.names.complete, among.names.complete),
            false => (of.names.border, among.names.halo),
        };
        self.engine.pair_geometry(at, from, &mut written.border)?;
        self.clock.border(begin.elapsed());
        Ok(())
    }

    /// By owned point, its pairs of either kind.
    fn join_geometry(
        &self,
        [targets, sources]: [RankedSet; 2],
        written: &Written,
    ) -> Result<Spans<Sent<T>>, Refusal> {
        let (of, among): (&Set<T>, &Set<T>) = (self.placed(targets)?, self.placed(sources)?);
        let around = of.lists_around(targets == sources);
        let half = self.settings.lists == ListKind::Half && targets == sources;
        let [ids, halo] = [&among.owned().ids, &among.halo.ids];
        let sent = |id: u64, pair: NeighborPair| Sent {
            id,
            image: pair.image,
            d: pair.d.map(T::of),
            d2: T::of(pair.d2),
        };
        let of_owned = |pair: NeighborPair| sent(ids[pair.index as usize], pair);
        let of_halo = |pair: NeighborPair| sent(halo[pair.index as usize], pair);
        let border = if of.meets(among) { &of.border[..] } else { &[] };
        let mut at_border = border.iter().enumerate().peekable();
        let mut spans = Spans::with_room(of.owned().len())?;
        let mut both = Vec::new();
        for k in 0..of.owned().len() {
            let own = written.owned.of(k).map(of_owned);
            let Some((at, _)) = at_border.next_if(|(_, place)| **place as usize == k) else {
                spans.put(k, own)?;
                continue;
            };
            if around {
                let found = written.border.of(of.complete.border[at] as usize);
                spans.put(
                    k,
                    found.map(|pair| match among.complete.origin(pair.index as usize) {
                        (true, at) => sent(halo[at as usize], pair),
                        (false, at) => sent(ids[at as usize], pair),
                    }),
                )?;
                continue;
            }
            let id = of.owned().ids[k];
            let there = written.border.of(at).map(of_halo);
            both.clear();
            let most = own.len() + there.len();
            make_room(&mut both, most, WHAT)?;
            both.extend(own);
            both.extend(there.filter(|pair| !half || pair.id > id));
            // Pairs of a source come from one of the two, in the order of their images.
            both.sort_by_key(|pair| pair.id);
            spans.put(k, both.iter().copied())?;
        }
        Ok(spans)
    }
}

/// The purpose of the memory, for messages.
const WHAT: &str = "the geometry of pairs";

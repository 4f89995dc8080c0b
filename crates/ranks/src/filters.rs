//! Data of points that decide which pairs are neighbours: radii, types, exclusions and targets.
//!
//! The caller gives them in the order of its points. All ranks agree that they can be used; then
//! the points of the set are sent to owners and halos again, with their data, and from then on the
//! data travel with the points ([`point_data`](crate::point_data)).
//!
//! Excluded pairs are named by global ids, and any rank may give any of them. The rank `id % ranks`
//! knows which rank has given the point with an id. Every pair goes there once for either of its
//! points, and on to the rank that gave the point. So exclusions are symmetric however they are
//! given.
//!
//! **Invariant:** after an error a set has the data that it had before.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::{Communicator, Item},
    error::Refusal,
    point_data::{Column, Rows},
    set::Set,
};
use nearfield::{ListKind, Radii, RadiusRule};
use nearfield_grid::{
    Radius,
    memory::{collected, filled, make_room_for_one, with_room},
};

/// Data of a set's points that replace others; `None` takes them away.
struct Change {
    columns: Vec<(Column, Option<Vec<u32>>)>,
    /// What points exclude, if that changes.
    rows: Option<Option<Rows>>,
}

impl Change {
    /// One column.
    fn of(column: Column, words: Option<Vec<u32>>) -> Self {
        Self {
            columns: vec![(column, words)],
            rows: None,
        }
    }

    /// All exclusions: there are molecules, or rows, or neither.
    fn exclusions(molecules: Option<Vec<u32>>, rows: Option<Rows>) -> Self {
        Self {
            columns: vec![(Column::Molecule, molecules)],
            rows: Some(rows),
        }
    }
}

impl<T> Set<T> {
    /// Changes the data of the caller's points; returns the change back.
    fn change(&mut self, change: Change) -> Change {
        self.given = false;
        let mut column = |(column, words): (Column, Option<Vec<u32>>)| {
            let had = self.carried.has(column);
            self.carried.set(column, words.is_some());
            let before = self.home.columns.put(column, words.unwrap_or_default());
            (column, had.then_some(before))
        };
        let columns = change.columns.into_iter().map(&mut column).collect();
        let rows = change.rows.map(|rows| {
            let had = std::mem::replace(&mut self.carried.rows, rows.is_some());
            let before = std::mem::replace(&mut self.home.excluded, rows.unwrap_or_default());
            had.then_some(before)
        });
        Change { columns, rows }
    }

    /// Refuses data that are not one per point.
    fn one_each(&self, found: usize, what: &str) -> Result<(), Refusal> {
        one_each(found, self.home.ids.len(), what)
    }
}

/// Refuses data that are not one for each of `expected` points.
pub(crate) fn one_each(found: usize, expected: usize, what: &str) -> Result<(), Refusal> {
    if found == expected {
        return Ok(());
    }
    let message = format!("{found} {what} for {expected} points: give one for each");
    Err(Refusal::new(message))
}

/// The types of so many points with these ids, if there are cut-offs for `known` types.
pub(crate) fn checked_types<U: Copy + Into<u32>>(
    types: &[U],
    known: Option<usize>,
    (points, ids): (usize, &[u64]),
) -> Result<Vec<u32>, Refusal> {
    let Some(known) = known else {
        return Err(Refusal::new(
            "types count only with cut-offs: give these with RankedBuilder::cutoffs",
        ));
    };
    one_each(types.len(), points, "types")?;
    let words = collected(types.iter().map(|of| (*of).into()), "types of the caller")?;
    if let Some(index) = words.iter().position(|of| *of as usize >= known) {
        let found = words[index];
        let message = format!(
            "point {index} has the type {found}, but cut-offs are for the types below {known}"
        );
        return Err(Refusal::of_point(message, Some(index), ids));
    }
    Ok(words)
}

/// Refuses radii by the rule of an engine that has none of single points.
pub(crate) fn check_rule(rule: RadiusRule) -> Result<(), Refusal> {
    if rule != RadiusRule::Uniform {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "points have no radii of their own by the rule {rule}: choose another with \
         RankedBuilder::radii"
    )))
}

/// Refuses radii that cannot be those of this number of points, as refusals call them, with these
/// ids if they have any, in a search with this largest radius.
pub(crate) fn check_radii(
    radii: Radii<'_>,
    (rule, largest): (RadiusRule, Radius),
    expected: usize,
    (what, ids): (&str, &[u64]),
) -> Result<(), Refusal> {
    check_rule(rule)?;
    let found = radii.len();
    if found != expected {
        return Err(Refusal::new(format!(
            "{found} radii for {expected} {what}s"
        )));
    }
    let mut each = (0..found).filter_map(|index| Some((index, radii.get(index)?)));
    if let Some((index, radius)) = each.find(|(_, radius)| !largest.bounds(*radius)) {
        let message = format!(
            "{what} {index} has the radius {}: it must be positive and at most {}",
            largest.as_refused(radius),
            largest.as_given()
        );
        return Err(Refusal::of_point(message, Some(index), ids));
    }
    Ok(())
}

impl<T: Scalar> RankedEngine<T> {
    /// Gives every point of a set a radius of its own, in the caller's order; see
    /// [`nearfield::Engine::set_radii`], also for radii in `f32` or `f64`. Radii follow points that
    /// change their rank.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point of a radius that is
    /// not positive or larger than that of the engine, and if all points have the same radius by
    /// the engine's rule.
    pub fn set_radii<'a>(
        &mut self,
        set: RankedSet,
        radii: impl Into<Radii<'a>>,
    ) -> Result<(), Error> {
        self.restore()?;
        let radii = radii.into();
        let checked = self.known(set).and_then(|set| {
            let by = (self.settings.rule, self.division.radius);
            check_radii(radii, by, set.home.len(), ("point", &set.home.ids))?;
            Ok(Column::of_radii::<T>(radii)?)
        });
        let columns = self.comm.agree(checked, &mut [])?;
        let columns = columns.into_iter();
        let change = Change {
            columns: columns
                .map(|(column, words)| (column, Some(words)))
                .collect(),
            rows: None,
        };
        self.give(set, change)
    }

    /// Gives every point of a set a type, in the caller's order, below the number of types of
    /// [`RankedBuilder::cutoffs`](crate::RankedBuilder::cutoffs); see
    /// [`nearfield::Engine::set_types`]. Types follow points that change their rank.
    ///
    /// ```
    /// use nearfield_ranks::{RankedEngine, transport::threads};
    /// let counts = threads::run(2, |transport| {
    ///     let cutoffs = [[1.0, 0.5], [0.5, 0.0]];
    ///     let builder = RankedEngine::builder(1.0).cutoffs(&cutoffs).threads(1);
    ///     let mut engine = builder.build::<f32>(transport)?;
    ///     // A row of atoms of two types: each rank gives those of one.
    ///     let rank = engine.rank();
    ///     let own: Vec<_> = (0..8).map(|k| [0.5 * (2 * k + rank) as f32, 0.0, 0.0]).collect();
    ///     let row = engine.add_point_set(&own, None)?;
    ///     engine.set_types(row, &[rank as u32; 8])?;
    ///     engine.count_neighbors(row, row)
    /// });
    /// let counts: Vec<Vec<u32>> = counts.into_iter().map(|own| own.unwrap().unwrap()).collect();
    /// assert_eq!(counts[0][..3], [2, 4, 4], "two of either type");
    /// assert_eq!(counts[1][..3], [2, 2, 2], "none of the own type");
    /// # Ok::<(), nearfield_ranks::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks without cut-offs, and naming
    /// rank and point of a type that there is not. The set then keeps its types.
    pub fn set_types<U: Copy + Into<u32>>(
        &mut self,
        set: RankedSet,
        types: &[U],
    ) -> Result<(), Error> {
        self.restore()?;
        let checked = self.known(set).and_then(|set| {
            let points = (set.home.len(), &set.home.ids[..]);
            checked_types(types, self.settings.types, points)
        });
        let words = self.comm.agree(checked, &mut [])?;
        self.give(set, Change::of(Column::Type, Some(words)))
    }

    /// Leaves out pairs of points of the same molecule, whose number is given for every point of
    /// the set, in the caller's order; see [`nearfield::Engine::set_molecules`]. It replaces
    /// [excluded pairs](Self::exclude_pairs). Molecules follow points that change their rank.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if there is not one number
    /// for each point. The set then keeps its exclusions.
    pub fn set_molecules(&mut self, set: RankedSet, of_points: &[u32]) -> Result<(), Error> {
        self.restore()?;
        let checked = self.known(set).and_then(|set| {
            set.one_each(of_points.len(), "molecules")?;
            let words = of_points.iter().copied();
            Ok(collected(words, "molecules of the caller")?)
        });
        let words = self.comm.agree(checked, &mut [])?;
        self.division.cell_classes.look_farther();
        self.give(set, Change::exclusions(Some(words), None))
    }

    /// Leaves out pairs of points of a set, which are named by their global ids: in any order,
    /// either way round, and on any rank, also on several. The pairs of all ranks together replace
    /// the exclusions before; see [`nearfield::Engine::exclude_pairs`]. They follow points that
    /// change their rank.
    ///
    /// ```
    /// use nearfield_ranks::{RankedEngine, transport::threads};
    /// let counts = threads::run(2, |transport| {
    ///     let mut engine = RankedEngine::builder(0.6).threads(1).build::<f32>(transport)?;
    ///     let first = 4 * engine.rank();
    ///     let own: Vec<_> = (first..first + 4).map(|i| [0.5 * i as f32, 0.0, 0.0]).collect();
    ///     let chain = engine.add_point_set(&own, None)?;
    ///     // One rank knows all bonds, also those between points that it does not give.
    ///     let bonds: &[[u64; 2]] = if engine.rank() == 0 { &[[3, 4], [6, 5]] } else { &[] };
    ///     engine.exclude_pairs(chain, bonds)?;
    ///     engine.count_neighbors(chain, chain)
    /// });
    /// let counts: Vec<Vec<u32>> = counts.into_iter().map(|own| own.unwrap().unwrap()).collect();
    /// assert_eq!(counts, [[1, 2, 2, 1], [1, 1, 1, 1]]);
    /// # Ok::<(), nearfield_ranks::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks naming the id of a point that
    /// there is not. The set then keeps its exclusions.
    pub fn exclude_pairs(&mut self, set: RankedSet, pairs: &[[u64; 2]]) -> Result<(), Error> {
        self.restore()?;
        let known = self.known(set).map(drop);
        self.comm.agree(known, &mut [])?;
        let rows = excluded(&mut self.comm, &self.sets[set.0].home.ids, pairs)?;
        self.division.cell_classes.look_farther();
        self.give(set, Change::exclusions(None, Some(rows)))
    }

    /// All pairs of a set's points are neighbours again if they are near.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if memory is short on one.
    pub fn clear_exclusions(&mut self, set: RankedSet) -> Result<(), Error> {
        self.take_away(set, Change::exclusions(None, None))
    }

    /// Searches for some points of a set only: those of the caller's points for which `mask` is
    /// true. All others have empty lists and counts of 0, and traversals leave their sums at 0; as
    /// sources they are found as before. The choice follows points that change their rank.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks with half lists, or if there
    /// is not one element for each point. The choice then stays.
    pub fn set_target_mask(&mut self, set: RankedSet, mask: &[bool]) -> Result<(), Error> {
        self.choose_targets(set, |set| {
            set.one_each(mask.len(), "elements of a mask")?;
            let words = mask.iter().map(|chosen| u32::from(*chosen));
            Ok(collected(words, "chosen targets")?)
        })
    }

    /// As [`set_target_mask`](Self::set_target_mask), by the places of the targets among the
    /// caller's points, in any order.
    ///
    /// # Errors
    /// As [`set_target_mask`](Self::set_target_mask), and naming a place that there is not.
    pub fn set_targets(&mut self, set: RankedSet, indices: &[u32]) -> Result<(), Error> {
        self.choose_targets(set, |set| {
            let points = set.home.len();
            let mut words = filled(points, 0, "chosen targets")?;
            for index in indices {
                let word = words.get_mut(*index as usize).ok_or_else(|| {
                    let message = format!("there is no point {index}: this rank gives {points}");
                    Refusal::new(message)
                })?;
                *word = 1;
            }
            Ok(words)
        })
    }

    /// All points of a set are targets again.
    ///
    /// # Errors
    /// As [`clear_exclusions`](Self::clear_exclusions).
    pub fn clear_targets(&mut self, set: RankedSet) -> Result<(), Error> {
        self.take_away(set, Change::of(Column::Target, None))
    }

    fn choose_targets(
        &mut self,
        set: RankedSet,
        words: impl FnOnce(&Set<T>) -> Result<Vec<u32>, Refusal>,
    ) -> Result<(), Error> {
        self.restore()?;
        let checked = match self.settings.lists {
            ListKind::Half => Err(Refusal::new(
                "chosen targets have no half lists: leave out lists(ListKind::Half)",
            )),
            ListKind::Full => self.known(set).and_then(words),
        };
        let words = self.comm.agree(checked, &mut [])?;
        self.give(set, Change::of(Column::Target, Some(words)))
    }

    fn take_away(&mut self, set: RankedSet, change: Change) -> Result<(), Error> {
        self.restore()?;
        let known = self.known(set).map(drop);
        self.comm.agree(known, &mut [])?;
        self.give(set, change)
    }

    /// Changes the data of a set that there is, on all ranks, and sends its points with them.
    fn give(&mut self, set: RankedSet, change: Change) -> Result<(), Error> {
        let back = self.sets[set.0].change(change);
        self.place_set(set.0).inspect_err(|_| {
            self.sets[set.0].change(back);
        })
    }
}

/// What the points with these `ids` exclude by the `pairs` of all ranks. Collective.
fn excluded(comm: &mut Communicator, ids: &[u64], pairs: &[[u64; 2]]) -> Result<Rows, Error> {
    let what = "excluded pairs";
    let (me, ranks) = (comm.rank() as u32, comm.ranks() as u64);
    let asked = || -> Result<_, Refusal> {
        let mut asked = with_room(ids.len() + 2 * pairs.len(), what)?;
        let item = |id: u64, value| Item {
            to: (id % ranks) as u32,
            from: me,
            value,
        };
        asked.extend(ids.iter().map(|id| item(*id, Asked::given(*id))));
        for [a, b] in pairs {
            asked.push(item(*a, Asked::pair(*a, *b)));
            asked.push(item(*b, Asked::pair(*b, *a)));
        }
        Ok(asked)
    };
    let asked = comm.agree(asked(), &mut [])?;
    let asked = comm.bring_around(asked);
    // Items are missing on this rank if memory is short on another one.
    let mut asked = comm.agree(asked, &mut [])?;
    let found = (|| -> Result<_, Refusal> {
        asked.sort_unstable_by_key(|item| item.value);
        let (mut answers, mut known) = (Vec::new(), None);
        for item in asked {
            let Asked { id, other, pair } = item.value;
            if pair == 0 {
                known = Some((id, item.from));
                continue;
            }
            let Some((_, to)) = known.filter(|(known, _)| *known == id) else {
                return Err(Refusal::new(format!(
                    "rank {} excludes the pair of {id} and {other}, but no point has the id {id}",
                    { item.from }
                )));
            };
            make_room_for_one(&mut answers, what)?;
            answers.push(Item { to, ..item });
        }
        Ok(answers)
    })();
    let answers = comm.agree(found, &mut [])?;
    let rows = comm.bring_around(answers).and_then(|answers| {
        // Places by id, for callers whose ids do not ascend.
        let mut places = collected(ids.iter().copied().zip(0usize..), what)?;
        places.sort_unstable();
        let place = |item: &Item<Asked>| {
            let asked = item.value;
            let at = places.binary_search_by_key(&asked.id, |(id, _)| *id);
            Some((places[at.ok()?].1, asked.other))
        };
        let mut pairs = collected(answers.iter().map(place), what)?;
        pairs.sort_unstable();
        Ok(Rows::new(ids.len(), pairs.into_iter().flatten())?)
    });
    comm.agree(rows, &mut [])
}

/// What the rank that knows a point is told: that it was given, or a pair of it. In this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Asked {
    id: u64,
    /// 1 for a pair.
    pair: u64,
    other: u64,
}

impl Asked {
    fn given(id: u64) -> Self {
        let (pair, other) = (0, 0);
        Self { id, pair, other }
    }

    fn pair(id: u64, other: u64) -> Self {
        let pair = 1;
        Self { id, pair, other }
    }
}

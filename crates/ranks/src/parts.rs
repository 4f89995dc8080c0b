//! The sets in the engine of a rank that make up a point set, and what each of them is given:
//! points, the data of points that go with any source, and filters.
//!
//! Radii and types decide pairs of any two sets, so every part has them. Exclusions decide pairs of
//! a set with itself, which in the engine are those of a part with itself: of the owned points, and
//! of the points around the border ([`complete`](crate::complete)). Targets are chosen in the parts
//! that search.
//!
//! **Invariant:** a part that was given its points has the data of exactly these points; data of
//! other points are cleared, or forgotten by the engine, and then searches are refused.

use crate::{
    RankedBuilder,
    complete::Complete,
    error::Refusal,
    point_data::{Carried, Column, pairs},
    points::Points,
    scalar::Scalar,
};
use nearfield::{Engine, PointSetId, RadiusRule};
use nearfield_grid::memory::{collected, filled};

/// The sets in the engine of this rank that make up a point set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartIds {
    pub(crate) owned: PointSetId,
    pub(crate) border: PointSetId,
    pub(crate) halo: PointSetId,
    /// The border and all points around it; empty unless [`complete`](crate::complete) needs them.
    pub(crate) complete: PointSetId,
    /// The columns that searches need by the engine's settings.
    needed: [Option<Column>; 2],
}

/// The purpose of the memory, for messages.
const WHAT: &str = "filters of the points of a rank";

impl PartIds {
    /// Adds empty parts to `engine`. After an error none of them is left there.
    pub(crate) fn add<T: Scalar>(
        engine: &mut Engine,
        settings: &RankedBuilder,
    ) -> Result<Self, Refusal> {
        let empty: &[[T; 3]] = &[];
        let mut added = Vec::new();
        for _ in 0..4 {
            match engine.add_point_set(T::positions(empty)) {
                Ok(part) => added.push(part),
                Err(error) => {
                    remove(engine, &added);
                    return Err(error.into());
                }
            }
        }
        let radii = settings.rule != RadiusRule::Uniform;
        Ok(Self {
            owned: added[0],
            border: added[1],
            halo: added[2],
            complete: added[3],
            needed: [
                radii.then_some(Column::Radius),
                settings.types.is_some().then_some(Column::Type),
            ],
        })
    }

    /// Gives a part its points, with their radii and types. A part that was empty and stays empty
    /// is left alone. `same` says that it has the data of these points already.
    pub(crate) fn put<T: Scalar>(
        &self,
        engine: &mut Engine,
        part: PointSetId,
        points: &Points<T>,
        same: bool,
    ) -> Result<(), Refusal> {
        let before = engine.points(part)?;
        if points.len() == 0 && before == 0 {
            return Ok(());
        }
        let mut needed = self.needed.iter().flatten();
        if needed.any(|column| points.columns.of(*column).is_empty()) && points.len() == before {
            // Otherwise the engine would keep the data of the old points.
            engine.update(part, T::positions(&[]))?;
        }
        engine.update(part, T::positions(&points.positions))?;
        if same {
            return Ok(());
        }
        let (radii, types) = (points.columns.radii()?, points.columns.of(Column::Type));
        if !radii.is_empty() {
            engine.set_radii(part, T::radii(&radii))?;
        }
        if !types.is_empty() {
            engine.set_types(part, types)?;
        }
        Ok(())
    }

    /// Gives the owned points their filters.
    pub(crate) fn filter_owned<T: Scalar>(
        &self,
        engine: &mut Engine,
        points: &Points<T>,
        carried: Carried,
    ) -> Result<(), Refusal> {
        self.choose(engine, self.owned, points, carried)?;
        if carried.has(Column::Molecule) {
            engine.set_molecules(self.owned, points.columns.of(Column::Molecule))?;
        } else if carried.rows {
            let rows = (0..points.len()).map(|at| (at as u32, points.excluded.of(at)));
            engine.exclude_pairs(self.owned, &pairs(&points.ids, rows)?)?;
        } else {
            engine.clear_exclusions(self.owned)?;
        }
        Ok(())
    }

    /// Chooses the targets of a part among its points.
    pub(crate) fn choose<T: Scalar>(
        &self,
        engine: &mut Engine,
        part: PointSetId,
        points: &Points<T>,
        carried: Carried,
    ) -> Result<(), Refusal> {
        if carried.has(Column::Target) {
            let words = points.columns.of(Column::Target).iter();
            let mask = collected(words.map(|word| *word != 0), WHAT)?;
            engine.set_target_mask(part, &mask)?;
        } else {
            engine.clear_targets(part)?;
        }
        Ok(())
    }

    /// Gives the points around the border their filters: `points` are their data, `owned` the owned
    /// points. With `choose` only the border searches, and of it the chosen targets.
    pub(crate) fn filter_complete<T: Scalar>(
        &self,
        engine: &mut Engine,
        complete: &Complete,
        [points, owned]: [&Points<T>; 2],
        (carried, choose): (Carried, bool),
    ) -> Result<(), Refusal> {
        let part = self.complete;
        if choose {
            let mut mask = filled(points.len(), false, WHAT)?;
            let targets = points.columns.of(Column::Target);
            for place in &complete.border {
                let place = *place as usize;
                mask[place] = targets.get(place).is_none_or(|word| *word != 0);
            }
            engine.set_target_mask(part, &mask)?;
        } else {
            engine.clear_targets(part)?;
        }
        if carried.has(Column::Molecule) {
            engine.set_molecules(part, points.columns.of(Column::Molecule))?;
        } else if carried.rows {
            // Rows of points of the halo are not here, but pairs of two of them are not wanted.
            let own = (0u32..)
                .zip(&complete.members)
                .filter_map(|(place, member)| {
                    let member = *member as usize;
                    (member < complete.owned).then(|| (place, owned.excluded.of(member)))
                });
            engine.exclude_pairs(part, &pairs(&points.ids, own)?)?;
        } else {
            engine.clear_exclusions(part)?;
        }
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> [PointSetId; 4] {
        [self.owned, self.border, self.halo, self.complete]
    }

    /// Removes them from the engine.
    pub(crate) fn remove(&self, engine: &mut Engine) {
        remove(engine, &self.all());
    }
}

/// Removes sets. This cannot fail because the sets exist; an empty set would change no result.
fn remove(engine: &mut Engine, sets: &[PointSetId]) {
    for set in sets {
        engine.remove_point_set(*set).ok();
    }
}

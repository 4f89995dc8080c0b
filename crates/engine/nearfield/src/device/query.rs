//! Neighbours of free positions that are on the device.
//!
//! Positions become a set of the engine that only searches, and stays for the next query. Its cells
//! cover those of all other sets from the start, so positions may be anywhere among the points, and
//! others each time, without a step being repeated.

use super::engine::DeviceEngine;
use crate::{Error, ErrorKind, PointSetId, error::Unsupported};
use nearfield_cpu::CpuBackend;
use nearfield_gpu::{DeviceView, PositionNumber};
use nearfield_grid::Radii;

impl DeviceEngine {
    /// Writes the neighbours of free positions among the points of `sources`, three numbers a
    /// position in the precision of the engine, which are copied. Returns the set that the
    /// positions are, for [`neighbors`](Self::neighbors) and everything else that can be asked of
    /// a set: counts, geometry of pairs, sums of a kernel.
    ///
    /// ```no_run
    /// use nearfield::device::{DeviceEngine, DeviceView, Progress};
    /// # use nearfield::{Error, PointSetId};
    /// # fn of(
    /// #     engine: &mut DeviceEngine, atoms: PointSetId, probes: &DeviceView<'_, f32>,
    /// # ) -> Result<(), Error> {
    /// let mut queried = engine.query(probes, atoms)?;
    /// while engine.finish()? == Progress::Repeat {
    ///     queried = engine.query(probes, atoms)?;
    /// }
    /// let lists = engine.neighbors(queried, atoms)?;
    /// assert_eq!(lists.count.len(), probes.len() / 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Lists are full, also in an engine of half lists, and in the engine's list order. A position
    /// that coincides with a point has that point as a neighbour. Lists are provisional until
    /// [`finish`](Self::finish), and are those of this query until the next. The first query waits
    /// for the device, as a new set does; so do those whose positions reach beyond all points by
    /// more than the room around these.
    ///
    /// In an engine with radii of single points [`query_with_radii`](Self::query_with_radii) takes
    /// those of the positions. With the k nearest a list has these; exclusions and chosen targets
    /// are those of points and do not concern positions.
    ///
    /// All queries of an engine are one set, which counts as one in
    /// [`point_sets`](Self::point_sets) from the first on. Removing it gives its memory back.
    ///
    /// # Errors
    /// As [`update`](Self::update), whose set is that of the positions, and those of
    /// [`find_neighbors`](Self::find_neighbors); [`ErrorKind::QueryWithoutRadii`] where the radius
    /// of the target counts, and [`ErrorKind::Unsupported`] in an engine with cut-offs of types,
    /// which positions do not have.
    pub fn query<T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
        sources: PointSetId,
    ) -> Result<PointSetId, Error> {
        self.query_by(positions, None, sources)
    }

    /// As [`query`](Self::query), with a search radius for every position, in memory of the host:
    /// in the unit of the coordinates, and at most the engine's radius. For engines where the
    /// radius of the target counts, which are those of the rules
    /// [`Gather`](crate::RadiusRule::Gather) and [`Symmetric`](crate::RadiusRule::Symmetric).
    ///
    /// # Errors
    /// As [`query`](Self::query), [`ErrorKind::QueryRadii`] naming a radius that cannot be used,
    /// and [`ErrorKind::UnusedRadii`] when the radius of the target does not count.
    pub fn query_with_radii<'a, T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
        radii: impl Into<Radii<'a>>,
        sources: PointSetId,
    ) -> Result<PointSetId, Error> {
        self.query_by(positions, Some(radii.into()), sources)
    }

    fn query_by<T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
        radii: Option<Radii<'_>>,
        sources: PointSetId,
    ) -> Result<PointSetId, Error> {
        self.points(sources)?;
        if self.filters.types().is_some() {
            return Err(ErrorKind::Unsupported(Unsupported {
                feature: Some("queries with cut-offs of types".into()),
                backend: "GPU",
                remedy: "add the positions as a set, with their types",
            })
            .into());
        }
        let rule = self.filters.rule();
        match (radii, rule.needs_targets()) {
            (None, true) => return Err(ErrorKind::QueryWithoutRadii { rule }.into()),
            (Some(_), false) => {
                let what = "positions of a query";
                return Err(ErrorKind::UnusedRadii { what, rule }.into());
            }
            (Some(radii), true) => {
                let largest = self.settings.checked_radius().map_err(ErrorKind::Setup)?;
                CpuBackend::new(1)?
                    .check_radii(radii, positions.len() / 3, largest)
                    .map_err(ErrorKind::QueryRadii)?;
            }
            (None, false) => {}
        }
        let kept = self.queries.filter(|&set| self.points(set).is_ok());
        let set = match kept {
            Some(set) => {
                self.update(set, positions)?;
                set
            }
            None => {
                // Cells are made with the set, and depend on what it is for.
                self.queries = Some(self.slots.next()?);
                self.add_point_set(positions)
                    .inspect_err(|_| self.queries = None)?
            }
        };
        if let Some(radii) = radii {
            self.set_radii(set, radii)?;
        }
        self.find_neighbors(set, sources)?;
        Ok(set)
    }
}

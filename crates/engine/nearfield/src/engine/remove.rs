//! Sets and points that are taken out of an engine.
//!
//! A set is removed by giving it no points, which a device is told like any other update, and then
//! freeing its slot. Points are removed by an update with those that stay. So no backend has a path
//! for removal, and an error leaves everything as it was.
//!
//! **Invariant:** names and numbers of the sets that stay, and lists between them, are not touched
//! by a removal.

use crate::{
    Engine, Error, PointSetId, Positions, Precision, engine::point_data::PointData,
    own_radii::OwnRadii,
};
use nearfield_cpu::Coordinate;
use nearfield_grid::memory::{Shortage, collected};

impl Engine {
    /// Removes a set, with its points, radii and lists. Its name is refused from then on, and other
    /// sets keep theirs. Lists between other sets stay as they are.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let fluid = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let body = engine.add_point_set(&[[0.2f32, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// engine.remove_point_set(body)?;
    /// assert_eq!(engine.neighbors(fluid, fluid)?.of(0), &[1]);
    /// assert!(engine.points(body).is_err());
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// The next set that is added takes over its place, so adding and removing sets in turn does
    /// not make an engine grow.
    ///
    /// # Errors
    /// [`ErrorKind::RemovedPointSet`](crate::ErrorKind::RemovedPointSet) and
    /// [`ErrorKind::OtherEngine`](crate::ErrorKind::OtherEngine).
    pub fn remove_point_set(&mut self, set: PointSetId) -> Result<(), Error> {
        self.known(set)?;
        let placed = self.place(set, Positions::from(&[] as &[[f32; 3]]));
        // Also where it has failed after the set was sorted.
        self.outdate(set);
        placed?;
        self.sets[set.slot()].data = PointData::default();
        self.slots.free(set);
        self.pairs.forget(set.slot());
        Ok(())
    }

    /// Keeps the points of a set for which `keep`, called with every index in ascending order, is
    /// true, and removes all others; returns how many were removed.
    ///
    /// As with [`Vec::retain`], points that are kept stay in their order and are numbered anew from
    /// 0, so the same call on your own arrays keeps them in step. [Radii](Self::set_radii),
    /// [types](Self::set_types), [exclusions](Self::set_exclusions) and
    /// [chosen targets](Self::set_targets) go with their points. Lists that involve the set are out
    /// of date, unless no point was removed.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut positions = vec![[0.0f32; 3], [9.0, 0.0, 0.0], [0.5, 0.0, 0.0]];
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&positions)?;
    /// let removed = engine.retain_points(points, |i| positions[i][0] < 5.0)?;
    /// positions.retain(|x| x[0] < 5.0);
    /// assert_eq!((removed, engine.points(points)?), (1, positions.len()));
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(points, points)?.of(0), &[1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Costs an update with the points that stay. Meanwhile the positions of all points and of
    /// those that stay are held once more (12 bytes each in `f32`, 24 in `f64`), and four bytes per
    /// point that stays.
    ///
    /// # Errors
    /// Those of [`update`](Self::update), and [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) when memory
    /// is short; the set then keeps all its points and their radii.
    pub fn retain_points(
        &mut self,
        set: PointSetId,
        mut keep: impl FnMut(usize) -> bool,
    ) -> Result<usize, Error> {
        let points = self.points(set)?;
        // Every index has 32 bits.
        let kept = (0..points).filter(|point| keep(*point));
        let kept = collected(
            kept.map(|point| point as u32),
            "indices of points that are kept",
        )?;
        let removed = points - kept.len();
        if removed == 0 {
            return Ok(0);
        }
        match self.precision() {
            Precision::Single => self.keep_points::<f32>(set, &kept)?,
            Precision::Double => self.keep_points::<f64>(set, &kept)?,
        }
        Ok(removed)
    }

    /// Gives a set the points `kept` of those that it has.
    ///
    /// The update forgets radii, because the number of points changes. So those of the kept points
    /// are copied before it, and moved into the set after it, where they need no memory.
    fn keep_points<T: Coordinate>(&mut self, set: PointSetId, kept: &[u32]) -> Result<(), Error>
    where
        for<'a> Positions<'a>: From<&'a [[T; 3]]>,
    {
        let all = self.backend.positions::<T>(self.grid(set)?)?;
        let positions = of_kept(&all, kept, "positions of points that are kept")?;
        let radii = self.sets[set.slot()].radii.given();
        let radii = match radii.is_empty() {
            true => None,
            false => Some(OwnRadii::of_points(radii, kept)?),
        };
        let data = self.sets[set.slot()].data.of_kept(kept)?;
        self.update(set, positions.as_slice())?;
        self.sets[set.slot()].data = data;
        if let Some(radii) = radii {
            self.sets[set.slot()].keep_radii(radii, &self.backend);
        }
        Ok(())
    }
}

/// The values of the points `kept`.
///
/// `what` names the array in the message of a shortage.
fn of_kept<T: Copy>(all: &[T], kept: &[u32], what: &'static str) -> Result<Vec<T>, Shortage> {
    collected(kept.iter().map(|point| all[*point as usize]), what)
}

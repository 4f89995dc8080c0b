//! Lattices of smaller cells, for points that reach less far than the largest radius.
//!
//! Where points have radii of their own, those of similar radius are sorted into cells of their
//! own ([`Grid::build_levels`](crate::Grid::build_levels)). Edge and reach of such cells are
//! independent of each other: a point of small radius looks at few of the large cells, one of large
//! radius at many of the small ones.
//!
//! # Why no pair is lost
//!
//! The argument of [the lattice](super) compares the cells of two points that are within the reach:
//! their coordinates in cells differ by at most reach / edge, and rounding is a share of that. A
//! pair with different coordinates within a reach ρ lies at most 2²⁴ρ from 0, where cell
//! coordinates are off by less than 2⁻²⁸ρ/e with the edge e; the enlargement of the reach is
//! 2⁻²⁰ρ/e. So it holds for any edge. Only the tiny share that is taken off a reach before it is
//! rounded up must stay below that enlargement where the reach is a cell or more, which it does.
//!
//! In double precision a cell coordinate on an open axis is off by three roundings of the distance
//! from the centre, 2⁻⁵¹·⁴ of it, and a reach is enlarged by a 256th, so nothing is lost as long as
//! that distance is below 2⁴¹ reaches ([`Grid::can_have_levels`](crate::Grid::can_have_levels)). On
//! periodic axes rounding adds a length that does not depend on the cells. Proxies and filter radii
//! are those of the largest radius on all lattices.
//!
//! Axes are open where they are for the largest radius, so all lattices of an engine count the same
//! boxes between a point and its image inside.

use super::{
    Lattice,
    axis::straight_axes,
    rows::{Reach, Row, stencil},
    tilted,
};
use crate::{Error, Radius};
use std::sync::Arc;

impl Lattice {
    /// Cells for the radius `cells` in the same domain, with the rows that points within `reach`
    /// lie in. Neither radius may be larger than this one, and both are of its precision.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub(crate) fn nested(&self, [cells, reach]: [Radius; 2]) -> Result<Self, Error> {
        let (axes, rows, reached) = match self.seen.tilt() {
            Some(tilt) => {
                // Roundings are powers of two of something, in units of the radius. So for a
                // smaller one they may be up to twice as large.
                let rounding = 2.0 * self.slack[0];
                let of = [cells, reach];
                let nested = tilted::nested(of, &self.seen, tilt, rounding)?;
                (nested.axes, nested.rows, nested.reach)
            }
            None => {
                let [cells, reach] =
                    [cells, reach].map(|radius| Reach::with_slack(radius, self.slack));
                let edges = [0, 1, 2].map(|axis| cells.along(axis));
                let axes = straight_axes(edges, &self.seen, 0.0);
                let rows = stencil(&reach, axes.map(|axis| 1.0 / axis.inverse_edge))?;
                (axes, rows, reach.largest())
            }
        };
        Ok(Self {
            radius: reach,
            axes,
            reach: reached,
            rows: Arc::new(rows),
            ..self.clone()
        })
    }

    /// The rows in reach of a block of cells, from one at (y, z) to one that is `beyond` it along
    /// both, by ascending (z, y) from the first, each with its largest offset along x.
    ///
    /// In a straight box that is the offset of the row from the nearest of these cells. In a tilted
    /// one a row may reach farther from another, so all of them get the largest offset.
    pub(crate) fn rows_of_block(&self, beyond: [i64; 2]) -> impl Iterator<Item = Row> {
        let [x, y, z] = self.max_offsets();
        let from = |at: i64, beyond: i64| at - at.clamp(0, beyond);
        let tilted = self.seen.is_tilted();
        (-z..=z + beyond[1]).flat_map(move |z| {
            let of = from(z, beyond[1]);
            // The rows of one z lie side by side, each at the y behind the last.
            let slice = match tilted {
                true => &[][..],
                false => {
                    let begin = self.rows.partition_point(|row| row.z < of);
                    let rest = &self.rows[begin..];
                    &rest[..rest.partition_point(|row| row.z == of)]
                }
            };
            let first = slice.first().map_or(0, |row| row.y);
            (-y..=y + beyond[0]).filter_map(move |y| {
                let place = from(y, beyond[0]) - first;
                let reach = match tilted {
                    true => x,
                    false => slice.get(usize::try_from(place).ok()?)?.reach,
                };
                Some(Row { y, z, reach })
            })
        })
    }
}

//! Neighbour lists in one call, for programs that search once.

use crate::{Device, Engine, Error, NeighborLists};
use nearfield_grid::IntoPositions;

/// The neighbours of every point within `radius`, in an open domain: one list per point, in the
/// order of `points`. Points at exactly the radius are neighbours.
///
/// ```
/// let points = [[0.0f32, 0.0, 0.0], [0.4, 0.0, 0.0], [0.0, 0.9, 0.0]];
/// let lists = nearfield::neighbors(&points, 0.5)?;
/// assert_eq!(lists.of(0), &[1]);
/// assert_eq!(lists.of(2), &[] as &[u32]);
/// # Ok::<(), nearfield::Error>(())
/// ```
///
/// `points` are what [`Engine::add_point_set`] takes, with `f32` coordinates. The search runs on
/// all cores of the CPU: a GPU takes longer to start than a search of a million points. Each call
/// starts its own threads and allocates its own memory, so a program that searches again keeps an
/// [`Engine`] instead. That has all other settings too: boxes, `f64`, half lists, GPUs.
///
/// # Errors
/// [`ErrorKind::Setup`](crate::ErrorKind::Setup) for a radius that is not within 2⁻⁵⁰ to 2⁶³,
/// [`ErrorKind::Positions`](crate::ErrorKind::Positions) naming the point that cannot be used, and
/// [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) if memory is short.
#[doc(alias(
    "range_search",
    "radius_search",
    "fixed_radius",
    "neighborlist",
    "query_ball_point"
))]
pub fn neighbors<'a>(
    points: impl IntoPositions<'a>,
    radius: impl Into<f64>,
) -> Result<NeighborLists, Error> {
    let mut engine = Engine::builder(radius).device(Device::Cpu).build()?;
    let points = engine.add_point_set(points)?;
    engine.find_neighbors()?;
    engine.take_neighbors(points, points, NeighborLists::default())
}

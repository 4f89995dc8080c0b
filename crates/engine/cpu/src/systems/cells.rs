//! One system by the cells of an ordinary search, for those with too many points or images to test
//! all pairs.
//!
//! A system has a grid of its own, which is dropped when its pairs are known. The pairs are kept
//! until those of all systems have their place, so such a system takes its results twice for a
//! while.
//!
//! # Images
//!
//! A search that hands on images computes every pair twice, once for its vectors and once for the
//! arrays, and takes several times as long as one for lists. Where the faces of a cell are more
//! than two radii apart a pair has one image at most, which follows from the coordinates
//! ([`OneImage`]). So such systems are searched for lists, and the second pass computes the rest.

use super::{
    input::{SystemReal, Systems},
    one_image::OneImage,
    quantities::Quantities,
};
use crate::{
    error::{Error, ErrorKind},
    lists::{
        geometry::PairGeometry,
        neighbor_lists::{ListOrder, NeighborLists},
    },
    pool::CpuBackend,
    sets::{PairOfSets, rule::SetRadii},
};
use nearfield_grid::{self as grid, Grid, Lattice, memory::Shortage};
use nearfield_pairs::ListKind;

/// The pairs of a system as its search returned them.
#[derive(Debug)]
pub(super) enum Pairs {
    /// Only sources.
    Lists(NeighborLists),
    /// Sources in a cell so wide that each pair has one image at most, which follows from the
    /// coordinates. Finding lists alone is much faster than finding images with them.
    OneImage(Box<OneImage>),
    /// Sources, images and displacements.
    Geometry(Box<PairGeometry>),
}

impl Pairs {
    /// The lists of the system's points, by their number in the system.
    pub(super) fn lists(&self) -> &NeighborLists {
        match self {
            Self::Lists(lists) => lists,
            Self::OneImage(found) => &found.lists,
            Self::Geometry(geometry) => geometry.lists(),
        }
    }
}

/// Searches a system by cells on the workers of the backend.
///
/// # Errors
/// [`ErrorKind::System`] for points that cannot be used and images that are too many, and what a
/// search returns where memory is short.
pub(super) fn search<T: SystemReal>(
    backend: &CpuBackend,
    systems: &Systems<'_, T>,
    system: usize,
    kind: ListKind,
    order: ListOrder,
    wanted: Quantities,
) -> Result<Pairs, Error> {
    let refuse = |source: grid::Error| match *source.kind() {
        grid::ErrorKind::OutOfMemory { bytes, what } => Shortage { bytes, what }.into(),
        _ => Error::from(ErrorKind::System { system, source }),
    };
    let of = systems.system(system)?;
    let range = systems.range(system);
    let count = range.len();
    let positions = || T::positions(&systems.positions[range.clone()]);
    let bounds = backend.install_for(count, || systems.bounds(system, &of.domain))?;
    let lattice = Lattice::new(of.radius, of.domain, 1, &bounds).map_err(refuse)?;
    let mut grid = Grid::new(lattice.clone());
    backend
        .install_for(count, || grid.build(positions(), bounds, &lattice))
        .map_err(refuse)?;
    let sets = PairOfSets {
        targets: &grid,
        sources: &grid,
        same_set: true,
        radii: SetRadii::Uniform,
        share: None,
        filter: Default::default(),
    };
    if !wanted.needs_geometry() {
        let mut lists = NeighborLists::default();
        backend.search(sets, kind, order, &mut lists)?;
        return Ok(Pairs::Lists(lists));
    }
    match OneImage::new(of.domain, of.radius, &bounds) {
        Some(mut found) => {
            backend.search(sets, kind, order, &mut found.lists)?;
            Ok(Pairs::OneImage(Box::new(found)))
        }
        None => {
            let mut geometry = PairGeometry::default();
            let measured = backend.measure(sets, kind)?;
            measured.write_geometry(order, &mut geometry)?;
            Ok(Pairs::Geometry(Box::new(geometry)))
        }
    }
}

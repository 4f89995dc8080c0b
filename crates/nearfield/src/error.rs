//! The one error type of the engine.

use crate::{Device, PointSetId};

/// Why the engine refused a request. The engine stays usable and keeps its last good state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The radius, the box or the combination of both cannot be used.
    #[error(transparent)]
    Setup(nearfield_grid::Error),
    /// Positions were refused.
    #[error("point set {set}: {source}")]
    Positions {
        /// The set; for a set that was being added, the number it would have had.
        set: PointSetId,
        /// What is wrong with its positions.
        source: nearfield_grid::Error,
    },
    /// The positions of a query were refused.
    #[error("query: {0}")]
    Query(nearfield_grid::Error),
    /// A traversal's arrays do not fit, or the CPU lane could not go on.
    #[error(transparent)]
    Cpu(#[from] nearfield_cpu::Error),
    /// A permutation was applied to a slice of another length.
    #[error(transparent)]
    Permutation(nearfield_grid::Error),
    /// The device asked for cannot be used.
    #[error("device {device} is not available: {missing}")]
    DeviceUnavailable {
        /// The device asked for.
        device: Device,
        /// What is missing and how to get it.
        missing: &'static str,
    },
    /// The engine has no such point set.
    #[error("there is no point set {set}: the engine has {sets}")]
    UnknownPointSet {
        /// The set asked for.
        set: PointSetId,
        /// Number of sets.
        sets: usize,
    },
    /// A point set has no such point.
    #[error("point set {set} has no point {point}: it has {points}")]
    UnknownPoint {
        /// The set.
        set: PointSetId,
        /// The point asked for.
        point: usize,
        /// Number of points.
        points: usize,
    },
    /// There are no current lists for a pair of sets.
    #[error(
        "no neighbour lists of targets {targets} among sources {sources}: \
         activate the pair and call find_neighbors after the last update"
    )]
    NoLists {
        /// Set that searches.
        targets: PointSetId,
        /// Set that is searched.
        sources: PointSetId,
    },
}

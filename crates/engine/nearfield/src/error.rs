//! The one error type of the engine.
//!
//! [`Error`] prints what is wrong, with the numbers and the remedy. A program that has to tell
//! causes apart matches [`Error::kind`]. Errors of the crates underneath are inside some of the
//! kinds and are told apart the same way; their kinds stand in the modules below, so that a program
//! needs no dependency but `nearfield`:
//!
//! ```
//! use nearfield::{Engine, ErrorKind, error::grid};
//! let mut engine = Engine::builder(1.0).build()?;
//! let refused = engine.add_point_set(&[[0.0f32, f32::NAN, 0.0]]).unwrap_err();
//! let ErrorKind::Positions { source, .. } = refused.kind() else { panic!("{refused}") };
//! let grid::ErrorKind::NotFinite { index, axis, .. } = source.kind() else { panic!("{refused}") };
//! assert_eq!((*index, *axis), (0, 'y'));
//! # Ok::<(), nearfield::Error>(())
//! ```
//!
//! # From the crates underneath
//!
//! The crates `grid`, `cpu`, `gpu`, `balance` and `pairs` have an error type each and know nothing
//! of point sets. The engine adds the set where there is one ([`ErrorKind::Positions`],
//! [`ErrorKind::Radii`]), and the purpose where there is none ([`ErrorKind::Query`],
//! [`ErrorKind::Setup`]). The `From` implementations below serve for the rest: errors that concern
//! neither a set nor a query, such as a field of the wrong length. A fault of a GPU is not an error
//! as long as the CPU backend can do the job: it is in the report, and the results are complete.
//!
//! # State after an error
//!
//! A refused call has changed nothing. A call that failed in the middle, for want of memory, leaves
//! every set with its last good positions, and every pair of sets either with complete lists or
//! without any. Arrays that the caller lent to it may hold part of a result.

use crate::{Device, PointSetId, RadiusRule};
use nearfield_grid::{Value, memory::Shortage};

pub use crate::unsupported::Unsupported;

/// Positions, radii, boxes and permutations.
pub mod grid {
    pub use nearfield_grid::{Error, ErrorKind};
}

/// Fields, lists and workers of the CPU backend.
pub mod cpu {
    pub use nearfield_cpu::{Error, ErrorKind};
}

/// Drivers, programs and arrays of the GPU backend. Exists with the cargo feature `gpu` only.
#[cfg(feature = "gpu")]
pub mod gpu {
    pub use nearfield_gpu::{Error, ErrorKind};
}

/// Numbers of pair kernels and of sample grids.
pub mod kernels {
    pub use nearfield_pairs::{Error, ErrorKind};
}

/// Policies, strategies, emulated devices and plans.
pub mod balance {
    pub use nearfield_balance::{Error, ErrorKind, ParseStrategyError};
}

/// Why the engine refused a request; [`kind`](Self::kind) tells the causes apart. The engine stays
/// usable and keeps its last good state.
///
/// The text names what was refused, its numbers and the remedy, in one line:
///
/// ```
/// use nearfield::prelude::*;
/// let error = Engine::builder(0.5).subregions(99).build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "a step is cut into 1 to 64 subregions, not 99"
/// );
/// assert!(matches!(error.kind(), ErrorKind::Subregions(99)));
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(ErrorKind);

/// Kinds of refusals and failures. New ones may be added, so a `match` needs a last arm.
///
/// Every kind is one of three. *Input* that cannot be used (positions, radii, settings, names of
/// sets) is refused before anything changes. A *device* that was named and is missing or cannot do
/// a job is refused before anything runs. *Memory* or threads that the system does not give end a
/// call in the middle, and [`Error::is_out_of_memory`] tells the first of these apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The radius, the box or the combination of both cannot be used.
    ///
    /// From [`Builder::build`](crate::Builder::build) and
    /// [`Engine::set_radius`](crate::Engine::set_radius), and from an update or a query whose
    /// points the cells cannot be made for.
    #[error(transparent)]
    Setup(nearfield_grid::Error),
    /// Positions were refused.
    ///
    /// Besides coordinates that cannot be used, memory that was short while the set was sorted: the
    /// kind inside tells. The set keeps the positions it had.
    #[error("point set {set}: {source}")]
    Positions {
        /// The set; for a set that was being added, the number it would have had.
        set: PointSetId,
        /// Fault of its positions.
        source: nearfield_grid::Error,
    },
    /// The positions of a query were refused.
    ///
    /// The index in it is that of a position of the query, not of a point of a set.
    #[error("query: {0}")]
    Query(nearfield_grid::Error),
    /// Radii of points were refused.
    ///
    /// Also from [`Engine::set_radius`](crate::Engine::set_radius) for a radius that is smaller
    /// than one of the points' own.
    #[error("point set {set}: {source}")]
    Radii {
        /// The set.
        set: PointSetId,
        /// Fault of its radii.
        source: nearfield_cpu::Error,
    },
    /// The radii of a query were refused.
    ///
    /// The same conditions as for radii of points: one per position, positive, and at most the
    /// radius of the engine.
    #[error("query: {0}")]
    QueryRadii(nearfield_cpu::Error),
    /// The points of a set need radii of their own and have none.
    ///
    /// Radii are only asked for where the rule uses them: those of the targets by the rule gather,
    /// of the sources by scatter, of both by symmetric.
    #[error(
        "point set {set} has no radii for its {points} points, which the rule {rule} needs: set \
         them, and again after an update that changes the number of points"
    )]
    NoRadii {
        /// The set.
        set: PointSetId,
        /// Its number of points.
        points: usize,
        /// The engine's rule.
        rule: RadiusRule,
    },
    /// The positions of a query need radii of their own and have none.
    #[error(
        "by the rule {rule} every position of a query needs a radius: give them with the positions"
    )]
    QueryWithoutRadii {
        /// The engine's rule.
        rule: RadiusRule,
    },
    /// Radii were given that would not count.
    ///
    /// Refused because they would be ignored, and a program that gives them expects other
    /// neighbours.
    #[error(
        "{what} have no radii of their own by the rule {rule}: choose another rule when the engine is \
         made"
    )]
    UnusedRadii {
        /// Purpose that they were given for.
        what: &'static str,
        /// The engine's rule.
        rule: RadiusRule,
    },
    /// Radii of single points were asked for together with a strict radius.
    #[error(
        "a strict radius is one for all points, not the rule {0}: search \
         with the rule uniform, or not strictly within the radius"
    )]
    StrictRadii(RadiusRule),
    /// The number of nearest neighbours is 0.
    #[error("the number of nearest neighbours is 0: it must be at least 1")]
    NoNearest,
    /// Two features were asked for that do not go together.
    #[error("{first} cannot be combined with {second}")]
    Combined {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Types, exclusions or chosen targets of points were refused.
    #[error("point set {set}: {source}")]
    PointData {
        /// The set.
        set: PointSetId,
        /// Fault of its data.
        source: nearfield_cpu::Error,
    },
    /// The points of a set need types and have none.
    #[error(
        "point set {set} has no types for its {points} points, which the cut-offs need: set them, \
         and again after an update that changes the number of points"
    )]
    NoTypes {
        /// The set.
        set: PointSetId,
        /// Its number of points.
        points: usize,
    },
    /// Types were given in an engine without cut-offs.
    #[error(
        "points have no types in an engine without cut-offs: give them when the engine is made"
    )]
    UnusedTypes,
    /// Exclusions or chosen targets of a set are those of another number of points.
    ///
    /// Refused because the search would go on without them, or with those of other points.
    #[error(
        "the {what} of point set {set} were given for another number of points than the {points} \
         that it has now: give them anew, or clear them"
    )]
    StaleData {
        /// The set.
        set: PointSetId,
        /// Which data.
        what: &'static str,
        /// Its number of points.
        points: usize,
    },
    /// A traversal's arrays do not fit, or the CPU backend could not go on.
    ///
    /// From traversals: fields or outputs that do not have one element per point. From any job:
    /// memory that was short, and threads that could not be started.
    #[error(transparent)]
    Cpu(nearfield_cpu::Error),
    /// A strided view or a permutation that the caller made does not fit its array.
    #[error(transparent)]
    Input(nearfield_grid::Error),
    /// The device asked for cannot be used.
    ///
    /// From builders only: a device that is lost later is replaced by the CPU backend where that
    /// can do the job, which the report tells. [`Device::Auto`] is never unavailable.
    #[error("device {device} is not available: {missing}")]
    DeviceUnavailable {
        /// The device asked for.
        device: Device,
        /// The missing part and how to get it.
        missing: String,
    },
    /// The device asked for cannot do what was asked of it. Nothing was done.
    ///
    /// Jobs are refused when they are asked for, settings when the engine is built. The table of
    /// features and devices is in `docs/backends.md`.
    #[error(transparent)]
    Unsupported(Unsupported),
    /// [`Builder::brick_edge`](crate::Builder::brick_edge) is out of range.
    #[error("bricks have 1 to 8 cells along an edge, not {0}")]
    BrickEdge(u32),
    /// [`Builder::subregions`](crate::Builder::subregions) is out of range.
    #[error("a step is cut into 1 to 64 subregions, not {0}")]
    Subregions(usize),
    /// The policy contradicts itself, or a step cannot be divided between the backends.
    ///
    /// From [`Builder::policy`](crate::Builder::policy) and
    /// [`Engine::set_policy`](crate::Engine::set_policy), and from the keys of an emulated device.
    #[error(transparent)]
    Schedule(nearfield_balance::Error),
    /// The GPU backend could not do what was asked of it, and the CPU backend cannot do it in its
    /// place. Exists with the cargo feature `gpu` only.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(nearfield_gpu::Error),
    /// A point set on the GPU was refused, or could not be sorted there. Exists with the cargo
    /// feature `gpu` only.
    #[cfg(feature = "gpu")]
    #[error("point set {set}: {source}")]
    OnDevice {
        /// The set; for a set that was being added, the number it would have had.
        set: PointSetId,
        /// The fault.
        source: nearfield_gpu::Error,
    },
    /// A coordinate of a sum over all pairs is NaN or infinite.
    #[error("{what} {index} has {axis} = {value} ({count} of {points} have such coordinates)")]
    Coordinate {
        /// `source` or `target`.
        what: &'static str,
        /// The first such point.
        index: usize,
        /// The first such axis of it.
        axis: char,
        /// Its coordinate.
        value: f64,
        /// Points with such coordinates.
        count: usize,
        /// Points there are.
        points: usize,
    },
    /// Points are so far apart that the squares of distances overflow.
    ///
    /// The squares are checked for the box around targets and sources, softening included, before
    /// anything is summed: a pair that overflowed would give 0 or NaN without notice.
    #[error(
        "points lie {distance:e} apart, whose square {precision} does not hold: take other units, or f64"
    )]
    TooFarApart {
        /// Largest side of the box around all points.
        distance: f64,
        /// `f32` or `f64`.
        precision: &'static str,
    },
    /// A mass or charge is NaN or infinite.
    #[error("source {index} has the weight {value}: masses and charges must be finite")]
    Weight {
        /// The first such source.
        index: usize,
        /// Its weight.
        value: f64,
    },
    /// There is not one mass or charge per point.
    #[error("{found} masses or charges for {expected} points: every source needs one")]
    WeightsLength {
        /// Weights given.
        found: usize,
        /// Points given.
        expected: usize,
    },
    /// The array for the results of a sum over all pairs has another length.
    #[error("there is room for {found} numbers, but the sums are {expected}")]
    ResultsLength {
        /// Numbers there is room for.
        found: usize,
        /// Numbers there will be.
        expected: usize,
    },
    /// The softening is negative or not finite.
    #[error("the softening is {}: it must be finite and not negative", Value::from(*.0))]
    Softening(f64),
    /// A kernel, a strided field or a grid cannot have these numbers.
    #[error(transparent)]
    Kernel(nearfield_pairs::Error),
    /// The grid has no such rows.
    #[error("rows {} to {} were asked for, but the grid has {rows}", .asked.start, .asked.end)]
    GridRows {
        /// Asked for.
        asked: std::ops::Range<usize>,
        /// Rows there are.
        rows: usize,
    },
    /// A device's name that is not understood.
    #[error("unknown device \"{0}\": use auto, cpu, gpu[:N], hybrid[:N] or emulated[:KEY=VALUE,…]")]
    UnknownDevice(String),
    /// The engine has no such point set.
    #[error("there is no point set {set}: the engine has {sets}")]
    UnknownPointSet {
        /// The set asked for.
        set: PointSetId,
        /// Number of sets.
        sets: usize,
    },
    /// A point set of another engine was named.
    #[error(
        "point set {set} is one of another engine: name sets by what this engine returned when \
         they were added"
    )]
    OtherEngine {
        /// The set asked for.
        set: PointSetId,
    },
    /// A point set that has been removed was named.
    #[error("point set {set} has been removed from the engine")]
    RemovedPointSet {
        /// The set asked for.
        set: PointSetId,
    },
    /// More point sets than an engine holds.
    #[error("an engine holds at most {limit} point sets: remove some first")]
    TooManyPointSets {
        /// Number of sets that an engine holds.
        limit: usize,
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
    /// Lists would not fit into the memory limit; nothing was allocated for them.
    ///
    /// The bytes needed are those of lists without gaps, counted by a first pass.
    #[error(
        "{what} would take {needed} bytes, but the memory limit is {limit}: raise it, or take the \
         lists in chunks"
    )]
    MemoryLimit {
        /// Use of the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The list of a single point would not fit into the memory limit.
    ///
    /// No chunk could hold it, as the list of a target is never divided.
    #[error(
        "point {point} of set {set} has {neighbors} neighbours, whose list needs {needed} bytes, \
         but the memory limit is {limit}: raise it, or visit the neighbours without a list"
    )]
    ListTooLong {
        /// The set that searches.
        set: PointSetId,
        /// The point with the longest list.
        point: u32,
        /// Its neighbours.
        neighbors: u32,
        /// Bytes needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// Lists with a skin were asked for together with radii of single points.
    #[error(
        "lists with a skin serve points of one radius only, not the rule {0}: use an engine without \
         a skin"
    )]
    SkinWithRadii(RadiusRule),
    /// A skin is negative or not finite.
    #[error("the skin is {}: it must be finite and not negative", Value::from(*.0))]
    Skin(f32),
    /// Points have moved so far since lists were built that pairs could be missing from them.
    ///
    /// From every method of [`VerletLists`](crate::lists::VerletLists) that reads lists. Results
    /// would be incomplete without notice, so they are refused.
    #[error(
        "the lists of targets {targets} among sources {sources} may miss pairs ({}): call refresh",
        out_of_date(*moved, *allowed)
    )]
    NeedsRefresh {
        /// Set that searches.
        targets: PointSetId,
        /// Set that is searched.
        sources: PointSetId,
        /// Largest displacements of both sets together; infinite when there are no lists or the
        /// number of points has changed.
        moved: f64,
        /// Displacement that the skin allows.
        allowed: f64,
    },
    /// A pair kernel reaches farther than pairs are searched for, so terms of its sums would be
    /// missing.
    ///
    /// Checked when the traversal is run. A support of at most the next `f32` above the radius
    /// passes, so that rounding alone refuses nothing.
    #[error(
        "kernel {kernel} has the support {0}, but pairs are searched for within the radius {1} \
         only: build the engine with a radius of at least {0}, or give the kernel a support of at \
         most {1}",
        Value::from(*.support),
        Value::from(*.radius)
    )]
    Support {
        /// Name of the kernel's type.
        kernel: &'static str,
        /// Its support.
        support: f32,
        /// The search radius.
        radius: f32,
    },
    /// There are no current lists for a pair of sets.
    #[error("no neighbour lists of targets {targets} among sources {sources}: {why}")]
    NoLists {
        /// Set that searches.
        targets: PointSetId,
        /// Set that is searched.
        sources: PointSetId,
        /// Why there are none.
        why: MissingLists,
    },
}

/// Why there are no current lists of a pair of sets; part of [`ErrorKind::NoLists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, thiserror::Error)]
#[non_exhaustive]
pub enum MissingLists {
    /// The pair is not active.
    #[error("the pair is not active; activate it with set_active and call find_neighbors")]
    Inactive,
    /// Lists have not been found since the sets were added or the pair was activated, or they were
    /// taken.
    #[error("call find_neighbors, which has not found any yet or whose lists were taken")]
    #[default]
    NotFound,
    /// The positions, the radii or the filters of a set have changed since the lists were found.
    #[error("set {set} has changed since they were found; call find_neighbors again")]
    Changed {
        /// The set.
        set: PointSetId,
    },
    /// The lists of a device engine were found without the geometry of their pairs.
    #[error("the lists were found without geometry; call pair_geometry")]
    Geometry,
    /// The search radius has changed since the lists were found.
    #[error("the search radius has changed since they were found; call find_neighbors again")]
    Radius,
}

impl Error {
    /// The kind of failure, with its numbers. Kinds that hold an error of a crate underneath have
    /// a kind of their own inside, see the [module's documentation](self).
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Whether the caller ended the call early, by
    /// [`Engine::interruptible`](crate::Engine::interruptible).
    pub fn is_interrupted(&self) -> bool {
        let ErrorKind::Cpu(source) = self.kind() else {
            return false;
        };
        matches!(source.kind(), cpu::ErrorKind::Interrupted)
    }

    /// Whether memory was short, on the host or on a GPU: smaller pieces may still be possible. A
    /// [memory limit](crate::Builder::memory_limit) that was set is no shortage, and answers false.
    pub fn is_out_of_memory(&self) -> bool {
        use ErrorKind as Kind;
        let grid =
            |source: &grid::Error| matches!(source.kind(), grid::ErrorKind::OutOfMemory { .. });
        let cpu = |source: &cpu::Error| matches!(source.kind(), cpu::ErrorKind::OutOfMemory { .. });
        match self.kind() {
            Kind::Positions { source, .. }
            | Kind::Query(source)
            | Kind::Setup(source)
            | Kind::Input(source) => grid(source),
            Kind::Cpu(source)
            | Kind::QueryRadii(source)
            | Kind::Radii { source, .. }
            | Kind::PointData { source, .. } => cpu(source),
            #[cfg(feature = "gpu")]
            Kind::Gpu(source) | Kind::OnDevice { source, .. } => source.is_out_of_memory(),
            Kind::Schedule(source) => matches!(source.kind(), balance::ErrorKind::Memory(_)),
            _ => false,
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(kind)
    }
}

/// A device that cannot do a job, as [`ErrorKind::Unsupported`].
impl From<Unsupported> for Error {
    fn from(unsupported: Unsupported) -> Self {
        Self(ErrorKind::Unsupported(unsupported))
    }
}

/// An error of the grid outside a set or a query, such as a [`Permutation`](crate::Permutation)
/// that is applied to an array of another length, as [`ErrorKind::Input`].
impl From<nearfield_grid::Error> for Error {
    fn from(source: nearfield_grid::Error) -> Self {
        Self(ErrorKind::Input(source))
    }
}

/// An error of the CPU backend that names no set, as [`ErrorKind::Cpu`].
impl From<nearfield_cpu::Error> for Error {
    fn from(source: nearfield_cpu::Error) -> Self {
        Self(ErrorKind::Cpu(source))
    }
}

/// An error of a GPU that names no set, as [`ErrorKind::Gpu`].
#[cfg(feature = "gpu")]
impl From<nearfield_gpu::Error> for Error {
    fn from(source: nearfield_gpu::Error) -> Self {
        Self(ErrorKind::Gpu(source))
    }
}

/// A policy, plan or emulated device that cannot be used, as [`ErrorKind::Schedule`].
impl From<nearfield_balance::Error> for Error {
    fn from(source: nearfield_balance::Error) -> Self {
        Self(ErrorKind::Schedule(source))
    }
}

/// Numbers of a kernel, a strided field or a grid that cannot be used, as [`ErrorKind::Kernel`].
impl From<nearfield_pairs::Error> for Error {
    fn from(source: nearfield_pairs::Error) -> Self {
        Self(ErrorKind::Kernel(source))
    }
}

/// Memory that the facade itself was refused, as the shortage of the CPU backend that a program has
/// to expect anyway.
impl From<Shortage> for Error {
    fn from(shortage: Shortage) -> Self {
        nearfield_cpu::Error::from(shortage).into()
    }
}

/// Why lists with a skin are of no use.
///
/// An infinite displacement stands for lists that do not exist or are of another number of points.
fn out_of_date(moved: f64, allowed: f64) -> String {
    if moved.is_finite() {
        format!("points moved by {moved} together, the skin allows {allowed}")
    } else {
        "not built since the last change of the sets".to_owned()
    }
}

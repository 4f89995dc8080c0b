//! Errors of the CPU backend, with the numbers that locate them.
//!
//! Everything that a caller hands in is checked before a job begins: lengths of fields and
//! outputs, channels of a kernel, radii, sets that do not go together. During a job only memory
//! can fail. After an error the backend is usable, and outputs hold either the old values or,
//! where an error says so, a mixture.
//!
//! # Adding a cause
//!
//! A cause is a variant of [`ErrorKind`] with the numbers that a caller needs to act on it, and a
//! message that contains them and the remedy. The facade hands the kind on, so programs match it
//! there.
//!
//! **Invariant:** a message names the set, the point or the length at fault, never only the kind
//! of the fault.

use crate::sets::rule::RadiusRule;
use nearfield_grid::{
    Value,
    memory::{Shortage, remedy},
};

/// Why the CPU backend refused or could not finish a request; [`kind`](Self::kind) tells the causes
/// apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

/// Refuses an array of results of another length than expected.
///
/// # Errors
/// [`ErrorKind::OutputLength`].
pub(crate) fn check_outputs(found: usize, expected: usize) -> Result<(), Error> {
    if found != expected {
        return Err(ErrorKind::OutputLength { found, expected }.into());
    }
    Ok(())
}

/// A type in a message.
///
/// Numbers of the device that 32 bits cannot hold are all noted as the largest of 32 bits.
fn shown_type(value: u32) -> String {
    match value {
        u32::MAX => format!("a type that is negative or at least {value}"),
        _ => format!("the type {value}"),
    }
}

/// The causes for which the CPU backend refuses or cannot finish a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A field does not have one value per point.
    #[error("{role} field {field} holds {found} points, but the point set has {expected}")]
    FieldLength {
        /// `target` or `source`.
        role: &'static str,
        /// Number of the field in the order given, from 0.
        field: usize,
        /// Points the field holds.
        found: usize,
        /// Points of the set.
        expected: usize,
    },
    /// The fields do not add up to the channels the kernel reads.
    #[error("the {role} fields have {found} channels together, but the kernel reads {expected}")]
    FieldChannels {
        /// `target` or `source`.
        role: &'static str,
        /// Channels of all fields.
        found: usize,
        /// Channels of the kernel's type.
        expected: usize,
    },
    /// The slice for the results has another length than the target set.
    #[error("the output holds {found} values, but there are {expected} targets")]
    OutputLength {
        /// Length of the slice.
        found: usize,
        /// Points of the target set.
        expected: usize,
    },
    /// Lists were found for another number of targets.
    #[error("the lists are for {found} targets, but the target set has {expected}")]
    ListsLength {
        /// Targets of the lists.
        found: usize,
        /// Points of the target set.
        expected: usize,
    },
    /// There is not one radius per point.
    #[error("{found} radii for {expected} points: every point of the set needs one")]
    RadiiLength {
        /// Radii given.
        found: usize,
        /// Points of the set.
        expected: usize,
    },
    /// A point's radius cannot be searched with.
    #[error(
        "point {index} has the radius {value}, which is not between 2^-50 and the search radius \
         {largest} ({count} of {points} points); give the engine the largest radius there is"
    )]
    PointRadius {
        /// First offending point in the caller's order.
        index: usize,
        /// Its radius.
        value: Value,
        /// The search radius, which no point's may exceed.
        largest: Value,
        /// Number of points with such a radius.
        count: usize,
        /// Points in the set.
        points: usize,
    },
    /// Radii were sorted with other points, in another precision.
    #[error(
        "the radii were sorted with points in another precision than those that are searched: \
         sort them with the grid of their points"
    )]
    RadiiPrecision,
    /// Half lists of a set where one point may find another that does not find it.
    #[error(
        "half lists hold every pair of a set once for both points, but by the rule {rule} a point \
         may find another that does not find it: use full lists, or the rule symmetric"
    )]
    HalfRule {
        /// The rule asked for.
        rule: RadiusRule,
    },
    /// Data of a filter are not those of the set's points.
    ///
    /// From a search, and when data are taken. There is an element for each point, in the caller's
    /// order.
    #[error("there are {what} for {found} points, but the set has {expected}")]
    FilterLength {
        /// Which data.
        what: &'static str,
        /// Points that they are for.
        found: usize,
        /// Points of the set.
        expected: usize,
    },
    /// Half lists of a set whose points do not all have lists, or not all of their neighbours.
    ///
    /// A pair stands in the list of one of its points, so the other point must have it too.
    #[error(
        "half lists hold every pair of a set once for both points, so they cannot be had together \
         with {filter}: use full lists"
    )]
    HalfFilter {
        /// The filter.
        filter: &'static str,
    },
    /// Too many types, or none.
    #[error("cut-offs are for 1 to {most} types, not for {found} types")]
    CutoffTypes {
        /// Types given.
        found: usize,
        /// Largest number of types.
        most: usize,
    },
    /// The matrix of cut-offs is not square.
    #[error("row {row} of the cut-offs has {found} numbers, but there are {types} rows")]
    CutoffRows {
        /// The first such row.
        row: usize,
        /// Numbers in it.
        found: usize,
        /// Rows of the matrix.
        types: usize,
    },
    /// The matrix of cut-offs is not symmetric.
    ///
    /// Two points would disagree on whether they are neighbours.
    #[error(
        "the cut-off of types {} and {} is {} one way and {} the other: the matrix must be symmetric",
        .types[0], .types[1], .values[0], .values[1]
    )]
    CutoffsDiffer {
        /// The first such types.
        types: [usize; 2],
        /// Both cut-offs.
        values: [f64; 2],
    },
    /// A cut-off that cannot be searched with.
    ///
    /// Cells are made for the search radius, and a larger cut-off would lose pairs.
    #[error(
        "the cut-off of types {} and {} is {value}: it must be 0 for never, or between 2^-50 and \
         the search radius {largest}",
        .types[0], .types[1]
    )]
    Cutoff {
        /// The first such types.
        types: [usize; 2],
        /// Their cut-off.
        value: f64,
        /// The search radius, which no cut-off may exceed.
        largest: f64,
    },
    /// A point's type has no cut-offs.
    #[error(
        "point {index} has {}, but the cut-offs are those of types below {types} \
         ({count} of {points} points have such types)",
        shown_type(*.value)
    )]
    PointType {
        /// First offending point.
        index: usize,
        /// Its type; `u32::MAX` also for numbers of the device that 32 bits cannot hold.
        value: u32,
        /// Number of types.
        types: usize,
        /// How many points have such a type.
        count: usize,
        /// Points in the set.
        points: usize,
    },
    /// Offsets of exclusions that are not lists.
    #[error(
        "the offsets of exclusions must start with 0, never fall, and end with {pairs}, the number \
         of indices"
    )]
    ExclusionOffsets {
        /// Number of indices.
        pairs: u64,
    },
    /// An excluded point does not exist.
    #[error("point {point} excludes point {other}, but there are {points} points")]
    ExcludedPoint {
        /// The point whose list it is.
        point: usize,
        /// The point that it excludes.
        other: u32,
        /// Number of points.
        points: usize,
    },
    /// A list of exclusions that does not ascend.
    #[error("the exclusions of point {point} must ascend, each point standing once")]
    ExclusionOrder {
        /// The first such point.
        point: usize,
    },
    /// Exclusions that only one of two points has.
    ///
    /// [`Exclusions::pairs`](crate::Exclusions::pairs) takes pairs either way round.
    #[error(
        "point {point} excludes point {other}, which does not exclude it: give every pair to both"
    )]
    OneSided {
        /// The first such point.
        point: usize,
        /// The point that it excludes.
        other: u32,
    },
    /// A chosen target does not exist.
    ///
    /// Indices may come in any order and more than once.
    #[error("chosen target number {place} has the index {index}, but there are {points} points")]
    ChosenPoint {
        /// Its place among the indices given.
        place: usize,
        /// The index.
        index: u32,
        /// Number of points.
        points: usize,
    },
    /// Rows that are not lists.
    ///
    /// From [`NeighborLists::from_csr`](crate::NeighborLists::from_csr), whose rows may come from a
    /// file.
    #[error(
        "the offsets of lists must start with 0, never fall, and end with {pairs}, the number of \
         indices"
    )]
    Csr {
        /// Number of indices.
        pairs: u64,
    },
    /// The allocator refused.
    #[error("out of memory: {bytes} bytes are needed for {what}; {}", remedy(.what))]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The purpose of the memory.
        what: &'static str,
    },
    /// Sets that do not match, or do not fit the request.
    #[error("the sets cannot be searched: {reason}")]
    Sets {
        /// The reason.
        reason: &'static str,
    },
    /// Another backend wrote lists that do not lie in the memory it was given for them.
    #[error(
        "the lists that came from the GPU lie outside their entries: this is a fault of the library"
    )]
    ListsOutside,
    /// The image of a pair is too far: its counts do not fit into 32 bits, as the geometry of pairs
    /// stores them.
    #[error(
        "target {target} and its neighbour {source_point} lie {boxes} boxes apart along an axis, more \
         than the 32-bit counts of pair geometry hold: move the points into the box first"
    )]
    FarImage {
        /// The target's index.
        target: u32,
        /// The source's index.
        source_point: u32,
        /// Boxes by which the source is moved.
        boxes: i64,
    },
    /// The caller ended the call early.
    ///
    /// As when memory is short, outputs that the call was writing are not to be used, and the sets
    /// are as they were.
    #[error("the call was ended early, as its caller asked")]
    Interrupted,
    /// The offsets of systems cannot be.
    #[error(
        "system {system} would hold the points from {begin} to {end}, of {points} in all: offsets \
         begin with 0, never fall and end with the number of points"
    )]
    SystemOffsets {
        /// The first such system.
        system: usize,
        /// Its offset.
        begin: i64,
        /// That of the next system.
        end: i64,
        /// Points of all systems.
        points: usize,
    },
    /// There is not one radius, cell or periodicity for every system.
    #[error("{found} {what} for {expected} systems: give one for each, or one for all")]
    SystemsLength {
        /// `radii`, `cells` or `periodicities`.
        what: &'static str,
        /// Number that was given.
        found: usize,
        /// Number of systems.
        expected: usize,
    },
    /// The cell, the radius or a point of a system cannot be used.
    ///
    /// Points are named by their place in the array of all systems.
    #[error("system {system}: {source}")]
    System {
        /// The system.
        system: usize,
        /// The reason.
        source: nearfield_grid::Error,
    },
    /// A system cannot be searched with its radius and the skin of its list.
    #[error(
        "system {system} is searched with its radius and the skin of {}: {source}; a smaller skin \
         may do",
        Value::from(*.skin)
    )]
    SystemWithSkin {
        /// The system.
        system: usize,
        /// The skin, in the unit of the coordinates.
        skin: f64,
        /// The reason, which names the radius and the skin together as the radius.
        source: nearfield_grid::Error,
    },
    /// Candidates were found for another number of points than are to be searched.
    #[error(
        "the candidates for {points} points are {}: search first, and take what it found",
        match .searched {
            Some(of) => format!("those of {of} points"),
            None => "missing".to_owned(),
        }
    )]
    OtherCandidates {
        /// Number of points that they were found for; `None` before a search.
        searched: Option<usize>,
        /// Number of points.
        points: usize,
    },
    /// More pairs within the radius and the skin than 32 bits number.
    ///
    /// Found before memory for them is asked for.
    #[error(
        "the list with a skin has {0} pairs, more than the 4294967295 that it can have: choose a \
         smaller skin, or give fewer systems at a time"
    )]
    TooManyCandidates(usize),
    /// Points have indices that do not fit the type they were asked for in.
    #[error("the indices of {points} points do not fit {kind}: ask for wider ones")]
    IndexType {
        /// Points of all systems.
        points: usize,
        /// The type.
        kind: &'static str,
    },
    /// The geometry of pairs is in the other precision.
    #[error("the pairs are in {found} precision: copy them to numbers of that precision")]
    GeometryPrecision {
        /// "single" or "double".
        found: &'static str,
    },
    /// The worker threads could not be started.
    #[error(
        "could not start {threads} worker threads: {reason}; ask for fewer, or for 0 to use all available cores"
    )]
    Threads {
        /// Threads asked for, 0 for all cores.
        threads: usize,
        /// The system's message.
        reason: String,
    },
}

impl From<Shortage> for Error {
    fn from(Shortage { bytes, what }: Shortage) -> Self {
        Self(ErrorKind::OutOfMemory { bytes, what })
    }
}

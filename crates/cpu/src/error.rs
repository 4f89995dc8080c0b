//! Why the CPU lane refused or could not finish a request.

/// Errors of the CPU lane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    #[error("the lists are those of {found} targets, but the target set has {expected}")]
    ListsLength {
        /// Targets of the lists.
        found: usize,
        /// Points of the target set.
        expected: usize,
    },
    /// A kernel was to be evaluated over half lists of one set, which hold only one side of a pair.
    #[error(
        "half lists hold every pair of a set from one side only, so a kernel cannot be evaluated \
         over them; build full lists, or traverse without lists"
    )]
    HalfLists,
    /// The allocator refused.
    #[error("out of memory: {bytes} bytes are needed for {what}")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// What they were for.
        what: &'static str,
    },
    /// The worker threads could not be started.
    #[error("could not start {threads} worker threads: {reason}")]
    Threads {
        /// Threads asked for, 0 for all cores.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

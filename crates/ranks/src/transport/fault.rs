//! Why ranks can no longer work together.
//!
//! A fault names the rank that caused it. Ranks that end because of it pass the same fault on, so
//! every rank reports the one cause and not the rank that it happened to wait for.

/// A rank that no longer answers, and why. It ends the work of all ranks: every later call returns
/// the same fault.
///
/// ```
/// use nearfield_ranks::transport::{Fault, FaultCause};
/// let fault = Fault { rank: 1, cause: FaultCause::Panicked };
/// assert!(fault.to_string().starts_with("rank 1 panicked"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} {cause}: this step is lost on every rank")]
pub struct Fault {
    /// The rank that caused it.
    pub rank: usize,
    /// How it ended, or what failed.
    pub cause: FaultCause,
}

#[cfg(feature = "mpi")]
impl Fault {
    /// As a message: rank, kind, two numbers and a text.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (kind, numbers, text) = match &self.cause {
            FaultCause::Panicked => (0, [0, 0], ""),
            FaultCause::Left => (1, [0, 0], ""),
            FaultCause::Failed(text) => (2, [0, 0], text.as_str()),
            FaultCause::Message { found, expected } => (3, [*found, *expected], ""),
            FaultCause::Calls => (4, [0, 0], ""),
        };
        let [found, expected] = numbers;
        let numbers = [self.rank, kind, found, expected].map(|number| number as u64);
        let mut bytes = bytemuck::cast_slice(&numbers).to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    /// The fault of a message.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| numbers.get(at).map_or(0, |n| u64::from_ne_bytes(*n)) as usize;
        let text = String::from_utf8_lossy(bytes.get(32..).unwrap_or_default());
        let (found, expected) = (number(2), number(3));
        let cause = match number(1) {
            0 => FaultCause::Panicked,
            1 => FaultCause::Left,
            3 => FaultCause::Message { found, expected },
            4 => FaultCause::Calls,
            _ => FaultCause::Failed(text.into_owned()),
        };
        let rank = number(0);
        Self { rank, cause }
    }
}

/// Why a rank is lost to the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultCause {
    /// Its thread or process ended by a panic.
    #[error("panicked")]
    Panicked,
    /// It dropped its transport while others waited for it.
    #[error("left while others waited for it")]
    Left,
    /// It could not continue in the middle of an exchange.
    #[error("failed in the middle of an exchange ({0})")]
    Failed(String),
    /// A message did not have the length that both ends expect: ranks made different calls.
    #[error(
        "got a message of {found} bytes instead of {expected}: all ranks must make the same calls, \
         with the same kernels, in the same order"
    )]
    Message {
        /// Bytes that arrived.
        found: usize,
        /// Bytes that were expected.
        expected: usize,
    },
    /// It has not made as many exchanges as the other ranks.
    #[error("is at another call than others: all ranks must make the same calls in the same order")]
    Calls,
}

//! The error type of ranks.
//!
//! There are two kinds. A *refusal* is bad input or a shortage of memory on one rank: all ranks
//! agree on it before they continue, all return the same error, and the engine remains usable. A
//! *fault* is a lost rank: it ends the work of all.
//!
//! Refusals travel between ranks as text, because the other ranks do not have the input that the
//! text is about.
//!
//! Inside a call a rank has a [`Failure`]: its own refusal, which the others learn of when they
//! agree, or a fault, which every rank gets from its transport. After a failure a call still sends
//! and receives what other ranks wait for. After a fault this takes no time, because every call of
//! the transport returns the fault again. So a refusal may hide a later fault, and the agreement
//! then returns the fault.

use crate::transport::Fault;

/// Why a call failed, the same on every rank; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self(ErrorKind::Fault(fault))
    }
}

/// Causes of errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A rank refused its input or was short of memory. If several did, the lowest is named.
    #[error("rank {rank}: {message}{}", named(.point))]
    Refused {
        /// The rank.
        rank: usize,
        /// The point that was refused, if it was a point.
        point: Option<PointOfRank>,
        /// The reason, the numbers and the remedy.
        message: String,
    },
    /// A rank is lost, and with it the engine on all ranks.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A point as the rank that gave it knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointOfRank {
    /// Its place in the arrays of that rank.
    pub index: usize,
    /// Its global id.
    pub id: u64,
}

/// The id of a point, for the end of a message.
fn named(point: &Option<PointOfRank>) -> String {
    match point {
        None => String::new(),
        Some(point) => format!(" (point {} has the id {})", point.index, point.id),
    }
}

/// A refusal of this rank, before the others know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The reason and the remedy.
    pub(crate) message: String,
    /// The point that was refused.
    pub(crate) point: Option<PointOfRank>,
    /// True if another rank refuses, and this one only knows that it does.
    echo: bool,
}

impl Refusal {
    /// The refusal of another rank, known by its empty message.
    pub(crate) fn echo(rank: usize) -> Self {
        Self {
            message: format!("rank {rank} has refused its part"),
            point: None,
            echo: true,
        }
    }

    /// Returns true if another rank refuses, and this one only knows that it does.
    pub(crate) fn is_echo(&self) -> bool {
        self.echo
    }

    /// A refusal that is not about a single point.
    pub(crate) fn new(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            point: None,
            echo: false,
        }
    }

    /// A refusal of the point with this place, if it is known, among those with these ids.
    pub(crate) fn of_point(message: impl ToString, index: Option<usize>, ids: &[u64]) -> Self {
        let named = |index| {
            let id = *ids.get(index)?;
            Some(PointOfRank { index, id })
        };
        Self {
            message: message.to_string(),
            point: index.and_then(named),
            echo: false,
        }
    }

    /// The error of all ranks if rank `rank` has this refusal.
    pub(crate) fn by(self, rank: usize) -> Error {
        Error(ErrorKind::Refused {
            rank,
            point: self.point,
            message: self.message,
        })
    }

    /// As a message to the other ranks: index, id and text. Without a point the index is the
    /// largest number.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (index, id) = self
            .point
            .map_or((u64::MAX, 0), |point| (point.index as u64, point.id));
        let mut bytes = index.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&id.to_ne_bytes());
        bytes.extend_from_slice(self.message.as_bytes());
        bytes
    }

    /// The refusal of `rank` from its message.
    pub(crate) fn read(rank: usize, bytes: &[u8]) -> Error {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| numbers.get(at).map_or(u64::MAX, |n| u64::from_ne_bytes(*n));
        let (index, id) = (number(0), number(1));
        let text = bytes.get(16..).unwrap_or_default();
        Error(ErrorKind::Refused {
            rank,
            point: (index != u64::MAX).then_some(PointOfRank {
                index: index as usize,
                id,
            }),
            message: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// Why this rank cannot finish its part of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// This rank refuses, or knows that another one does.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// A rank is lost.
    #[error(transparent)]
    Lost(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Lost(fault)
    }
}

impl<T> From<T> for Failure
where
    Refusal: From<T>,
{
    fn from(refusal: T) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<nearfield_grid::memory::Shortage> for Refusal {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::new(shortage)
    }
}

impl From<nearfield::Error> for Refusal {
    fn from(error: nearfield::Error) -> Self {
        Self::new(error)
    }
}

impl From<nearfield::error::gpu::Error> for Refusal {
    fn from(error: nearfield::error::gpu::Error) -> Self {
        nearfield::Error::from(nearfield::ErrorKind::Gpu(error)).into()
    }
}

//! Names of point sets.

use std::fmt;

/// Names a point set of an engine; sets are numbered from 0 in the order added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSetId(pub(crate) usize);

impl PointSetId {
    /// The set with this number, counted from 0; engines refuse the names of sets they do not have
    /// ([`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet)).
    pub fn new(number: usize) -> Self {
        Self(number)
    }

    /// The set's number.
    pub fn index(self) -> usize {
        self.0
    }
}

impl fmt::Display for PointSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

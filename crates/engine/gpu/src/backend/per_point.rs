//! Numbers of single points on the device: as given, for targets, and in the order of the sort, for
//! sources.
//!
//! **Invariant:** sorted values are those of the sort whose number is kept with them.

use super::{gpu::GpuBackend, points::DevicePoints};
use crate::{
    constants::READ_AHEAD,
    error::{Error, fits},
    memory::Buffer,
};
use cudarc::driver::DeviceRepr;

/// Values with a number that tells them from those there were before.
#[derive(Debug, Clone, Copy)]
pub struct Stamped<T> {
    /// In memory of the host.
    pub values: T,
    /// Another one for other values; never 0.
    pub stamp: u64,
}

/// A number per point on the device, of one or of some words, as given and in the order of a sort.
#[derive(Debug)]
pub(super) struct PerPoint<T> {
    what: &'static str,
    given: Buffer<T>,
    sorted: Buffer<T>,
    /// That of the values; 0 for none.
    pub(super) stamp: u64,
    /// The number of the sort by which `sorted` was arranged; 0 for none.
    sort: u64,
    /// Number of values.
    points: usize,
    /// Words that each value has, of four bytes.
    pub(super) words: usize,
}

impl<T: DeviceRepr> PerPoint<T> {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            given: Buffer::new(what),
            sorted: Buffer::new(what),
            stamp: 0,
            sort: 0,
            points: 0,
            words: 1,
        }
    }

    /// Takes the values of a set of so many points, a word each. Returns true if they are new.
    pub(super) fn take(
        &mut self,
        backend: &GpuBackend,
        values: Option<Stamped<&[T]>>,
        points: usize,
    ) -> Result<bool, Error> {
        self.take_words(backend, values, 1, points)
    }

    /// The same of values of so many words.
    pub(super) fn take_words(
        &mut self,
        backend: &GpuBackend,
        values: Option<Stamped<&[T]>>,
        words: usize,
        points: usize,
    ) -> Result<bool, Error> {
        let Some(Stamped { values, stamp }) = values else {
            return Ok(false);
        };
        fits(self.what, values.len() / words, points)?;
        if self.stamp == stamp && self.points == points {
            return Ok(false);
        }
        (self.stamp, self.sort) = (0, 0);
        self.given.upload(&backend.stream, values)?;
        (self.stamp, self.points, self.words) = (stamp, points, words);
        Ok(true)
    }

    /// Makes room for the values of a set of so many points, of so many words each, which `write`
    /// is handed the address of.
    pub(super) fn receive(
        &mut self,
        backend: &GpuBackend,
        (words, points): (usize, usize),
        stamp: u64,
        write: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        (self.stamp, self.sort) = (0, 0);
        self.given
            .reserve(&backend.stream, words.saturating_mul(points))?;
        write(self.given.address())?;
        (self.stamp, self.points, self.words) = (stamp, points, words);
        Ok(())
    }

    /// Forgets the values of a stamp; false if these are others, which stay.
    pub(super) fn forget(&mut self, stamp: u64) -> bool {
        let same = self.stamp == stamp;
        if same {
            self.stamp = 0;
        }
        same
    }

    /// What the values are, in messages.
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    /// Brings values into the order of the sorted points.
    pub(super) fn arrange(
        &mut self,
        backend: &GpuBackend,
        points: &DevicePoints,
    ) -> Result<(), Error> {
        let is_of = self.stamp != 0 && self.points == points.len();
        if !is_of || points.is_empty() || self.sort == points.last_sort() {
            return Ok(());
        }
        self.sort = 0;
        let room = points.len() + READ_AHEAD as usize;
        (self.sorted).reserve(&backend.stream, self.words.saturating_mul(room))?;
        let (from, to) = (self.given.address(), self.sorted.address());
        let layout = points.layout();
        let words = self.words as u32;
        (backend.shared.grid).values_in_order(&backend.stream, &layout, from, words, to)?;
        self.sort = points.last_sort();
        Ok(())
    }

    /// Returns true if there are values of so many points.
    pub(super) fn is_of(&self, points: &DevicePoints) -> bool {
        self.stamp != 0 && self.points == points.len()
    }

    /// Returns true if there are values of these points in the order of their last sort.
    pub(super) fn is_arranged(&self, points: &DevicePoints) -> bool {
        self.is_of(points) && self.sort == points.last_sort()
    }

    /// Where the values are, as of targets and as of sources; 0 for none.
    pub(super) fn addresses(&self) -> [u64; 2] {
        if self.stamp == 0 {
            return [0; 2];
        }
        [self.given.address(), self.sorted.address()]
    }

    pub(super) fn bytes(&self) -> usize {
        self.given.bytes() + self.sorted.bytes()
    }
}

//! Positions that live on the device, of sets whose lists with a skin are kept while they move, and
//! whether such lists may miss a pair.
//!
//! Following brings positions into the order of the sort that the lists were made of, and finds the
//! largest displacement since ([`GpuBackend::follow`]). Then one word is made of the displacements
//! of all sets ([`GpuBackend::judge`]), which the kernels over the lists and the host read: all of
//! these kernels compute, or none.

use super::{gpu::GpuBackend, lattice::DeviceLattice, points::DevicePoints};
use crate::{
    constants::JUDGED_PAIRS,
    error::{Error, ErrorKind, fits},
    handles::{DeviceView, PositionNumber},
    launch::{Following, Judged, Lattice},
    memory::{HostCopy, kept_buffers},
};
use nearfield_grid::{Bounds, Precision};

kept_buffers! {
    /// Positions of a set since its lists with a skin were built.
    pub struct FollowedPoints {
        /// Position of now, and the caller's index as bits, of every point in the sorted order of
        /// the build.
        now: [f32; 4] = "positions of now",
        /// In double precision the position of now of every point in that order.
        now_given: [f64; 3] = "positions of now",
        /// Bits of the largest squared displacement in turn, and a word that is zero.
        moved: u32 = "displacements",
        /// Positions in the caller's order, for a build: in double precision two elements each.
        given: f32 = "positions",
    }
    with {
        /// Which of the two words is the displacement of now.
        turn: usize,
        /// Positions were given since the build.
        following: bool,
        /// Where the host reads the displacement.
        answer: Option<HostCopy<u32>>,
    }
}

kept_buffers! {
    /// Whether lists with a skin of some pairs of sets may miss a pair.
    pub struct Judgement {
        /// 1 if they may.
        stale: u32 = "judgements",
    }
    with {
        /// It was judged since the lists were built.
        judged: bool,
        /// Where the host reads it.
        answer: Option<HostCopy<u32>>,
    }
}

impl GpuBackend {
    /// Takes positions of a set whose lists are kept, into the sorted order of the build, and
    /// measures how far they are from those of the build, modulo the box; without waiting. Points
    /// outside of `room` count as infinitely far away.
    ///
    /// # Errors
    /// `ErrorKind::FieldLength` for another number of positions, `ErrorKind::Precision`,
    /// `ErrorKind::OtherDevice`, `ErrorKind::Unsorted`, `ErrorKind::OutOfMemory` and
    /// `ErrorKind::Driver`.
    pub fn follow<T: PositionNumber>(
        &self,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        room: &Bounds,
        positions: &DeviceView<'_, T>,
        followed: &mut FollowedPoints,
    ) -> Result<(), Error> {
        self.holds("positions", positions.ordinal())?;
        points.check_sorted()?;
        let (found, expected) = (T::PRECISION, points.precision());
        if found != expected {
            return Err(Error::from(ErrorKind::Precision { found, expected }));
        }
        fits("positions", positions.len(), points.len().saturating_mul(3))?;
        if points.is_empty() {
            return Ok(());
        }
        let stream = &self.stream;
        match expected {
            Precision::Single => followed.now.reserve(stream, points.len())?,
            Precision::Double => followed.now_given.reserve(stream, points.len())?,
        };
        followed.moved.reserve_zeroed(stream, 2)?;
        let (address, _held) = positions.device_ptr(stream);
        followed.turn = 1 - followed.turn;
        let set = Following {
            positions: address,
            low: room.min,
            high: room.max,
            ..followed.layout(points)
        };
        followed.following = true;
        let in_box = Lattice::of_box(lattice.lattice());
        self.shared.slots()?.follow(stream, &set, &in_box)?;
        Ok(())
    }

    /// The positions that a set was last [followed](Self::follow) to, in the caller's order and the
    /// set's precision, which is that of `T`; None where there are none since the build. Does not
    /// wait.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` and `ErrorKind::Driver`.
    pub fn followed_to<'a, T: PositionNumber>(
        &self,
        points: &DevicePoints,
        followed: &'a mut FollowedPoints,
    ) -> Result<Option<DeviceView<'a, T>>, Error> {
        if !followed.following || T::PRECISION != points.precision() {
            return Ok(None);
        }
        let (stream, count) = (&self.stream, points.len());
        followed.given.reserve(stream, points.words(count))?;
        let (set, given) = (followed.layout(points), followed.given.address());
        self.shared.slots()?.positions(stream, &set, given)?;
        let values = followed.given.values::<T>();
        Ok(values
            .and_then(|values| values.try_slice(0..3 * count))
            .map(DeviceView))
    }

    /// The largest squared displacement of a point since the build, rounded up; infinite for what
    /// is not a number. Waits for all work on the stream.
    ///
    /// # Errors
    /// `ErrorKind::Driver`.
    pub fn moved_squared(&self, followed: &mut FollowedPoints) -> Result<f32, Error> {
        if !followed.following {
            return Ok(0.0);
        }
        let answer = match &mut followed.answer {
            Some(answer) => answer,
            none => none.insert(self.host_copy_of(1)?),
        };
        (followed.moved).start_host_copy(&self.stream, followed.turn, answer, 1)?;
        Ok(f32::from_bits(answer.read()?[0]))
    }

    /// Judges the lists with a skin of these pairs of sets together, by how far targets and sources
    /// have come and by how far they may come together before a pair may be missing. Does not wait.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` and `ErrorKind::Driver`.
    pub fn judge(
        &self,
        pairs: &[([&FollowedPoints; 2], f64)],
        judgement: &mut Judgement,
    ) -> Result<(), Error> {
        let stream = &self.stream;
        judgement.judged = false;
        let mut sets = pairs.iter().flat_map(|(sets, _)| sets);
        if !sets.any(|set| set.following) {
            return Ok(());
        }
        judgement.stale.reserve(stream, 1)?;
        for (part, pairs) in pairs.chunks(JUDGED_PAIRS as usize).enumerate() {
            let mut judged = Judged {
                moved: [[0; 2]; JUDGED_PAIRS as usize],
                stale: judgement.stale.address(),
                allowed: [0.0; JUDGED_PAIRS as usize],
                pairs: pairs.len() as u32,
                more: u32::from(part > 0),
            };
            let rows = judged.moved.iter_mut().zip(&mut judged.allowed);
            for (&(sets, most), (moved, allowed)) in pairs.iter().zip(rows) {
                *moved = sets.map(FollowedPoints::moved_address);
                *allowed = below(most);
            }
            self.shared.slots()?.judge(stream, &judged)?;
        }
        let answer = match &mut judgement.answer {
            Some(answer) => answer,
            none => none.insert(self.host_copy_of(1)?),
        };
        judgement.stale.start_host_copy(stream, 0, answer, 1)?;
        judgement.judged = true;
        Ok(())
    }
}

impl FollowedPoints {
    /// Lists were built from where the points are: none has moved.
    pub fn was_built(&mut self) {
        self.following = false;
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// The word of the displacement of now; 0 where no point has moved.
    fn moved_address(&self) -> u64 {
        if self.following {
            self.word(self.turn)
        } else {
            0
        }
    }

    /// A set that is followed, without positions in the caller's order.
    fn layout(&self, points: &DevicePoints) -> Following {
        let built = points.layout();
        let double = points.precision() == Precision::Double;
        Following {
            built: built.at,
            given: if double { built.given } else { 0 },
            positions: 0,
            now: self.now.address(),
            now_given: self.now_given.address(),
            moved: self.word(self.turn),
            next: self.word(1 - self.turn),
            low: [0.0; 3],
            high: [0.0; 3],
            count: points.len() as u32,
        }
    }

    fn word(&self, turn: usize) -> u64 {
        self.moved.address() + (turn * size_of::<u32>()) as u64
    }

    /// Sorted points at the positions of now, and in double precision these positions.
    pub(super) fn at(&self, points: &DevicePoints) -> [u64; 2] {
        let built = points.layout();
        match points.precision() {
            Precision::Single if self.following => [self.now.address(), 0],
            Precision::Double if self.following => [built.at, self.now_given.address()],
            _ => [built.at, built.given],
        }
    }
}

impl Judgement {
    /// Lists were built from where the points are.
    pub fn was_built(&mut self) {
        self.judged = false;
    }

    /// Whether a pair may be missing. Waits for the last [`GpuBackend::judge`], and for no later
    /// work.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    pub fn may_miss(&mut self) -> Result<bool, Error> {
        match &mut self.answer {
            Some(answer) if self.judged => Ok(answer.read()?[0] != 0),
            _ => Ok(false),
        }
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// The word that kernels read; 0 where no point has moved.
    pub(super) fn address(&self) -> u64 {
        if self.judged { self.stale.address() } else { 0 }
    }
}

/// A number as `f32`, rounded down.
fn below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value {
        near.next_down()
    } else {
        near
    }
}

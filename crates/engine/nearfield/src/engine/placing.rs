//! Positions on their way into an engine: to its device, which sorts them, or into the host's
//! cells.
//!
//! With a device they are copied once, into memory that it reads, and looked at on the way; sorting
//! waits for the first job. Without one they are checked and sorted at once. If the device cannot
//! take them, or finds a fault, the host checks them and says which point is wrong.
//!
//! Each set has two copies that take turns: one holds the current positions, and the next positions
//! are written to the other. For a GPU both are page-locked, which takes as long as sorting, so
//! they are kept and swapped.
//!
//! **Invariant:** positions that are refused, by whichever check and however far they had come,
//! leave the set with those it had, on the host and on the device.

use crate::{
    Engine, Error, ErrorKind, PointSetId, Positions,
    backend::{HostMemory, accelerator::Accelerator, split::Split, transfer::words_of},
    engine::extents::Extent,
};
use nearfield_grid::{Bounds, Precision};
use nearfield_pairs::Field;
use std::{borrow::Cow, time::Instant};

/// Positions in a form that workers copy to a device.
pub(super) enum Words<'a> {
    /// Workers pack them on the way.
    Strided(Field<'a>),
    Single(Cow<'a, [[f32; 3]]>),
    Double(Cow<'a, [[f64; 3]]>),
}

impl<'a> Words<'a> {
    /// Positions of a precision. They are packed here unless they are packed already, or strided
    /// with numbers that are whole words apart.
    ///
    /// # Errors
    /// [`OutOfMemory`](nearfield_grid::ErrorKind::OutOfMemory).
    pub(super) fn of(
        positions: Positions<'a>,
        precision: Precision,
    ) -> Result<Self, nearfield_grid::Error> {
        let bytes = positions.strided_bytes();
        let strided =
            (bytes.filter(|_| positions.precision() == precision)).and_then(|(bytes, stride)| {
                Field::strided(bytes, 0, stride, positions.len(), words_of(precision)).ok()
            });
        Ok(match (strided, precision) {
            (Some(field), _) => Self::Strided(field),
            (None, Precision::Single) => Self::Single(positions.to_packed()?),
            (None, Precision::Double) => Self::Double(positions.to_packed_f64()?),
        })
    }

    /// Their words, in all [`words_of`] the precision for each position.
    pub(super) fn field(&self) -> Field<'_> {
        match self {
            Self::Strided(field) => *field,
            Self::Single(packed) => packed.as_flattened().into(),
            Self::Double(packed) => bytemuck::cast_slice::<f64, f32>(packed.as_flattened()).into(),
        }
    }
}

impl Engine {
    /// Checks positions and places them in a set.
    ///
    /// The stages are these, and an error of any of them leaves the set with its old positions:
    ///
    /// 1. Positions are sent to the device, if it has work in the next step as far as is known.
    /// 2. If they were not sent, or the device refused them, the host looks for coordinates that
    ///    are not finite.
    /// 3. The lattice is fitted to the new bounds, which may move all sets.
    /// 4. The set keeps the copy that the device reads, or is sorted on the host.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] naming the point, or the memory that was short;
    /// [`ErrorKind::Setup`] if no lattice fits the bounds.
    pub(super) fn place(&mut self, set: PointSetId, positions: Positions<'_>) -> Result<(), Error> {
        self.usable()?;
        let begin = Instant::now();
        let (points, refuse) = (positions.len(), |source| {
            Error::from(ErrorKind::Positions { set, source })
        });
        positions
            .check_precision(self.precision())
            .map_err(refuse)?;
        // A device without a split does every job, so it gets all positions. With a split whose
        // plans leave it without work, transfers are saved.
        let wanted = self.split.as_ref().is_none_or(Split::wants_device);
        let sent = wanted.then(|| self.send(set, positions)).flatten();
        let bounds = match &sent {
            Some((_, bounds)) => *bounds,
            None => {
                let domain = self.lattice.domain();
                let check = || Bounds::of(positions, domain);
                tracing::debug_span!("cpu.check", points)
                    .in_scope(|| self.backend.install_for(points, check))
                    .map_err(refuse)?
            }
        };
        if let Err(error) = self.fit_lattice(set, &bounds) {
            if sent.is_some() {
                self.restore(set);
            }
            return Err(error);
        }
        match sent {
            Some((copy, bounds)) => {
                self.keep(set, copy, points, bounds);
                self.bring_others(set);
            }
            None => {
                let (lattice, target) = (&self.lattice, &mut self.sets[set.slot()]);
                let grid = &mut target.grid;
                let copy = grid.build(positions, bounds, lattice, &self.backend);
                let copy = copy.map_err(refuse)?;
                target.keep_spare(copy);
                self.undelivered = true;
            }
        }
        let grid = &self.sets[set.slot()].grid;
        let (bounds, points) = (*grid.bounds(), grid.len());
        self.extents.set(set.slot(), Extent { bounds, points });
        self.sets[set.slot()].was_sorted(&self.backend);
        if let Some(split) = &self.split {
            split.placed(begin.elapsed());
        }
        self.record(|times| times.build = begin.elapsed());
        Ok(())
    }

    /// Brings positions to the device, to be sorted there, and checks them on the way. The copy
    /// that the host keeps is to be [kept](Self::keep), or the set to be [restored](Self::restore).
    /// None when the host has to take them, or to say what is wrong with them.
    fn send(&mut self, set: PointSetId, positions: Positions<'_>) -> Option<(HostMemory, Bounds)> {
        let device = self.accelerator.as_deref()?;
        let precision = self.precision();
        let (words, points) = (words_of(precision), positions.len());
        let numbers = words * points;
        // More points than indices are refused by the host's check, with a message.
        if positions.len() >= u32::MAX as usize {
            return None;
        }
        let from = Words::of(positions, precision).ok()?;
        // Not the copy of the positions that the set has: it keeps them if these are refused.
        let spare = self.sets[set.slot()].spare_copies.pop();
        let mut copy = device.copy(spare, numbers).ok()?;
        let to = &mut copy[..numbers];
        let bounds = device
            .place(set.slot(), &self.backend, to, from.field())
            .ok()?;
        let domain = self.lattice.domain();
        match bounds.filter(|bounds| bounds.check(positions, domain).is_ok()) {
            Some(bounds) => Some((copy, bounds)),
            None => {
                self.sets[set.slot()].keep_spare(Some(copy));
                self.restore(set);
                None
            }
        }
    }

    /// The set has the positions that were [sent](Self::send).
    ///
    /// The old copy becomes the spare one. Nothing is sorted on the host until a job needs it
    /// there.
    fn keep(&mut self, set: PointSetId, copy: HostMemory, points: usize, bounds: Bounds) {
        let target = &mut self.sets[set.slot()];
        let old = target.grid.take_copy(&self.lattice);
        target.keep_spare(old);
        target.grid.defer(copy, points, bounds, &self.lattice);
    }

    /// The set keeps the positions that it has, though others were [sent](Self::send).
    ///
    /// A set without a copy is one that the device does not have; it is told so.
    fn restore(&self, set: PointSetId) {
        if let Some(device) = &self.accelerator {
            device.place_again(set.slot(), self.sets[set.slot()].grid.copied());
        }
    }

    /// Hands the sets to the device that it does not have yet: those that have not moved since it
    /// is wanted. `placed` has just been placed.
    ///
    /// Without this a set that never moves, such as a wall, would keep the device from every job
    /// that involves it.
    ///
    /// In most steps it has all of them, and then no set is looked at.
    fn bring_others(&mut self, placed: PointSetId) {
        let sets = self.sets.len();
        let held = |device: &dyn Accelerator| device.holds_first(sets);
        if !self.undelivered && self.accelerator.as_deref().is_some_and(held) {
            return;
        }
        self.undelivered = false;
        for set in 0..sets {
            if set != placed.slot() {
                self.bring(set);
            }
        }
    }

    /// Hands a set to the device, if it does not have it, with memory for the positions that come
    /// next. Without memory that is left to the next update.
    pub(super) fn make_ready(&mut self, set: PointSetId) {
        self.bring(set.slot());
        let target = &self.sets[set.slot()];
        let Some(numbers) = target.grid.copied().map(<[f32]>::len) else {
            return;
        };
        let device = self.accelerator.as_deref();
        if let (Some(device), true) = (device, target.spare_copies.is_empty()) {
            let copy = device.copy(None, numbers);
            self.sets[set.slot()].keep_spare(copy.ok());
        }
    }

    /// Hands the set in a slot to the device, if it does not have it.
    fn bring(&mut self, set: usize) {
        if self.sets[set].grid.copied().is_some() {
            if (self.accelerator.as_ref()).is_some_and(|device| !device.holds(set)) {
                self.restore(self.slots.id(set));
            }
            return;
        }
        let Some(grid) = self.sets[set].grid.take_made(&self.lattice) else {
            return;
        };
        let set = self.slots.id(set);
        // Without memory for a copy the set stays with the CPU backend.
        let points = grid.points().len();
        let sent = match self.precision() {
            Precision::Single => (grid.points().in_callers_order().ok())
                .and_then(|positions| self.send(set, (&positions).into())),
            Precision::Double => (grid.points().in_callers_order_f64().ok())
                .and_then(|positions| self.send(set, (&positions).into())),
        };
        match sent {
            Some((copy, bounds)) => self.keep(set, copy, points, bounds),
            None => self.undelivered = true,
        }
        self.sets[set.slot()].grid.put_back(grid);
    }
}

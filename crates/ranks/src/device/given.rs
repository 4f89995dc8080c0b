//! Callers give points on the device their data, and sets hand them to the engines: with halos, and
//! after migrations.

use super::{
    engine::DeviceRankedEngine,
    halos::Copied,
    kernels::{Kernels, Rows},
    point_data::{Kind, TARGETS, give, unpack},
    set::{DeviceSet, POSITION},
    staging::zeros,
};
use crate::{
    Error, RankedSet,
    error::{Failure, Refusal},
    filters::{check_radii, check_rule, checked_types, one_each},
};
use nearfield::{
    Radii, Reduce,
    device::{DeviceBuffer, DeviceEngine, DeviceView},
};
use nearfield_grid::memory::{collected, filled};

/// The purpose of the memory, for messages.
const RADII: &str = "radii of points";

impl DeviceSet {
    /// Words of a point of the halo in a message.
    pub(super) fn halo_words(&self) -> usize {
        POSITION + self.data.columns.len()
    }

    /// Gathers the positions and the data that halos of other ranks need.
    pub(super) fn pack(
        &self,
        kernels: &Kernels,
        to: &mut DeviceBuffer<u32>,
    ) -> Result<(), Refusal> {
        let (places, stride) = (self.sends.places.view(), self.halo_words());
        let rows = Rows {
            to: &mut *to,
            first: 0,
            stride,
        };
        kernels.gather(&self.view(), [POSITION; 2], &places, rows)?;
        for (first, (_, words)) in (POSITION..).zip(&self.data.columns) {
            let rows = Rows {
                to: &mut *to,
                first,
                stride,
            };
            kernels.gather(&words.slice(0..self.points), [1; 2], &places, rows)?;
        }
        Ok(())
    }

    /// Gives the engine of owned points their data, unless it has them.
    pub(super) fn give_owned(
        &mut self,
        engine: &mut DeviceEngine,
        kernels: &Kernels,
    ) -> Result<(), Refusal> {
        if self.data.given {
            return Ok(());
        }
        for (kind, words) in &self.data.columns {
            let numbers = words.slice(0..self.points);
            let words = kernels.as_words(words, self.points)?;
            give(engine, self.names.owned, *kind, (&numbers, &words))?;
        }
        if !self.data.has(Kind::Targets) {
            engine.clear_targets(self.names.owned)?;
        }
        self.data.given = true;
        Ok(())
    }

    /// Gives the engine of the border the data of these of its parts, which have their positions:
    /// the halo, whose rows have arrived, and the border.
    pub(super) fn give_border(
        &self,
        (engine, kernels): (&mut DeviceEngine, &Kernels),
        halo: Option<(&DeviceView<'_, u32>, &DeviceView<'_, u32>)>,
        at_border: Option<&mut DeviceBuffer<u32>>,
    ) -> Result<(), Refusal> {
        let stride = self.halo_words();
        if let Some((rows, points)) = halo {
            for (first, (kind, _)) in (POSITION..).zip(&self.data.columns) {
                // Points of the halo do not search.
                if *kind != Kind::Targets {
                    let words = unpack((engine, kernels), rows, [stride, first, 1], points)?;
                    let numbers = kernels.as_numbers(&words, points.len())?;
                    let words = words.slice(0..points.len());
                    give(engine, self.names.halo, *kind, (&numbers, &words))?;
                }
            }
        }
        if let Some(rows) = at_border {
            let count = self.border.count;
            for (kind, words) in &self.data.columns {
                let words = words.slice(0..self.points);
                kernels.gather_whole(&words, 1, &self.border.view(), rows)?;
                let numbers = kernels.as_numbers(rows, count)?;
                let words = rows.slice(0..count);
                give(engine, self.names.border, *kind, (&numbers, &words))?;
            }
            if !self.data.has(Kind::Targets) {
                engine.clear_targets(self.names.border)?;
            }
        }
        Ok(())
    }

    /// Room for results of the border that change nothing when they are combined with others: a
    /// kernel leaves those of points that are no targets alone.
    pub(super) fn room_at_border(
        &self,
        engine: &DeviceEngine,
        (outputs, reduce): (usize, Reduce),
    ) -> Result<DeviceBuffer<f32>, Refusal> {
        let nothing = match reduce {
            Reduce::Sum => 0.0,
            Reduce::Min => f32::INFINITY,
            Reduce::Max => f32::NEG_INFINITY,
        };
        let numbers = outputs * self.border.count;
        if nothing == 0.0 || !self.data.has(Kind::Targets) {
            return zeros(engine, numbers);
        }
        let what = "results of the border";
        Ok((engine.queue()).array(what, &filled(numbers, nothing, what)?)?)
    }
}

impl DeviceRankedEngine {
    /// Gives every point of a set that this rank owns a radius of its own, in the order of its
    /// points; see [`RankedEngine::set_radii`](crate::RankedEngine::set_radii). Radii follow points
    /// that change their rank, as all data of points here do.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks, naming rank and point of a
    /// radius that is not positive or larger than that of the engine; if all points have the same
    /// radius by the engine's rule; and if the set is not on its ranks. The set then keeps its
    /// radii.
    pub fn set_radii<'a>(
        &mut self,
        set: RankedSet,
        radii: impl Into<Radii<'a>>,
    ) -> Result<(), Error> {
        let radii = radii.into();
        self.give_data(set, Kind::Radii, |engine, own| {
            let by = (engine.rule, engine.division.radius);
            engine.with_ids(set, |ids| {
                check_radii(radii, by, own.points, ("point", ids))
            })?;
            let each = (0..radii.len()).filter_map(|index| radii.get(index));
            let numbers = collected(each.map(|radius| radius.get() as f32), RADII)?;
            Ok(Some(engine.engine.queue().array(RADII, &numbers)?))
        })
    }

    /// As [`set_radii`](Self::set_radii), from an array of the device with a radius per point,
    /// which is copied.
    ///
    /// # Errors
    /// As there, but radii that cannot be used are found by [`finish`](Self::finish), as those of
    /// [`DeviceEngine::set_radii_from_device`]: give others then. The error names the owner of the
    /// point, or a rank that has it in its halo.
    pub fn set_radii_from_device(
        &mut self,
        set: RankedSet,
        radii: &DeviceView<'_, f32>,
    ) -> Result<(), Error> {
        self.give_data(set, Kind::Radii, |engine, own| {
            check_rule(engine.rule)?;
            one_each(radii.len(), own.points, "radii")?;
            let mut copy = zeros(&engine.engine, radii.len())?;
            let mut to = copy.slice_mut(0..radii.len());
            let queue = engine.engine.queue();
            queue.copy_on_device(RADII, radii, &mut to)?;
            Ok(Some(copy))
        })
    }

    /// Gives every point of a set that this rank owns a type, in the order of its points; see
    /// [`RankedEngine::set_types`](crate::RankedEngine::set_types).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks without cut-offs, naming rank
    /// and point of a type that there is not, and if the set is not on its ranks. The set then
    /// keeps its types.
    pub fn set_types<U: Copy + Into<u32>>(
        &mut self,
        set: RankedSet,
        types: &[U],
    ) -> Result<(), Error> {
        self.give_data(set, Kind::Types, |engine, own| {
            let words = engine.with_ids(set, |ids| {
                checked_types(types, engine.types, (own.points, ids))
            })?;
            engine.words_of_data("types of points", words.into_iter())
        })
    }

    /// Searches for some points of a set only: those of the points that this rank owns, in their
    /// order, for which `mask` is true. All others have empty lists and counts of 0, and traversals
    /// leave their results alone. While targets are chosen, halos wait for the device.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if there is not one element
    /// for each point, or the set is not on its ranks. The choice then stays.
    pub fn set_target_mask(&mut self, set: RankedSet, mask: &[bool]) -> Result<(), Error> {
        self.give_data(set, Kind::Targets, |engine, own| {
            one_each(mask.len(), own.points, "elements of a mask")?;
            engine.words_of_data(TARGETS, mask.iter().map(|chosen| u32::from(*chosen)))
        })
    }

    /// All points of a set are targets again.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if the set is not on its
    /// ranks.
    pub fn clear_targets(&mut self, set: RankedSet) -> Result<(), Error> {
        self.give_data(set, Kind::Targets, |_, _| Ok(None))
    }

    /// Words of points as an array that can travel.
    fn words_of_data(
        &self,
        what: &'static str,
        words: impl Iterator<Item = u32>,
    ) -> Result<Option<DeviceBuffer<f32>>, Refusal> {
        let numbers = collected(words.map(f32::from_bits), what)?;
        Ok(Some(self.engine.queue().array(what, &numbers)?))
    }

    /// What `check` finds of the points of a set; their ids, for a refusal, are copied from the
    /// device if there is one.
    fn with_ids<R>(
        &self,
        set: RankedSet,
        check: impl Fn(&[u64]) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        match check(&[]) {
            Err(_) => check(&self.ids_on_host(set.0)?),
            checked => checked,
        }
    }

    /// Replaces data of a set that is on its ranks, and sends its halos again with them.
    fn give_data(
        &mut self,
        set: RankedSet,
        kind: Kind,
        make: impl FnOnce(&Self, &DeviceSet) -> Result<Option<DeviceBuffer<f32>>, Refusal>,
    ) -> Result<(), Error> {
        let usable = self.known(set).map(drop);
        let settled = usable.map_err(Failure::from).and_then(|()| self.settle());
        let made = settled.and_then(|()| {
            // The border may still read the data before.
            self.join_border()?;
            Ok::<_, Failure>(make(self, self.placed(set)?)?)
        });
        let words = self.comm.agree(made, &mut [])?;
        self.device.sets[set.0].data.put(kind, words);
        Ok(self.send_halo(set.0, Ok(Copied::Sorted(None)), None)?)
    }
}

//! Data of points on the device that decide which pairs are neighbours: radii, types, and which
//! points are targets.
//!
//! They are what the [columns](crate::point_data) of ranks with host data are: a word for each
//! owned point, in the order of the points. They travel with points that change their rank as
//! arrays of the caller do, in the same messages, and with the positions of halos. The engines have
//! copies: that of owned points gets them after every migration that has moved points, that of the
//! border with every halo.
//!
//! Excluded pairs and the k nearest depend on all neighbours of a point together. Those of a point
//! at the border are in two searches here, so ranks with data on a GPU do not have them.
//!
//! **Invariant:** all ranks have the same kinds of data of a set, a word for each owned point.

use super::{
    kernels::{Kernels, Rows},
    staging::{download, zeros},
};
use crate::error::Refusal;
use nearfield::{
    PointSetId,
    device::{DeviceBuffer, DeviceEngine, DeviceView},
};
use nearfield_grid::memory::collected;

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Radii, `f32` numbers.
    Radii,
    /// Numbers of types.
    Types,
    /// 1 for a target, and 0 for a point that searches for none.
    Targets,
}

/// The data of a set's owned points.
#[derive(Default)]
pub(super) struct PointData {
    /// By kind. Words of any kind are in arrays of one type, as they travel with those of the
    /// caller.
    pub(super) columns: Vec<(Kind, DeviceBuffer<f32>)>,
    /// True if the engine of owned points has them.
    pub(super) given: bool,
}

impl PointData {
    /// Returns true if there are data of this kind.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.columns.iter().any(|(of, _)| *of == kind)
    }

    /// Replaces data; `None` takes them away.
    pub(super) fn put(&mut self, kind: Kind, words: Option<DeviceBuffer<f32>>) {
        self.given = false;
        self.columns.retain(|(of, _)| *of != kind);
        if let Some(words) = words {
            let at = self.columns.partition_point(|(of, _)| *of < kind);
            self.columns.insert(at, (kind, words));
        }
    }
}

/// Gives a set of an engine its data of one kind. Those on the device are looked at when the engine
/// is finished.
pub(super) fn give(
    engine: &mut DeviceEngine,
    part: PointSetId,
    kind: Kind,
    (numbers, words): (&DeviceView<'_, f32>, &DeviceView<'_, u32>),
) -> Result<(), Refusal> {
    match kind {
        Kind::Radii => engine.set_radii_from_device(part, numbers)?,
        Kind::Types => engine.set_types_from_device(part, words)?,
        Kind::Targets => {
            let words = download(engine, TARGETS, words)?;
            let mask = collected(words.iter().map(|word| *word != 0), TARGETS)?;
            engine.set_target_mask(part, &mask)?;
        }
    }
    Ok(())
}

/// The purpose of the memory, for messages.
pub(super) const TARGETS: &str = "chosen targets";

/// The numbers at `first` of each of the rows of a halo, `words` for a point.
pub(super) fn unpack(
    (engine, kernels): (&DeviceEngine, &Kernels),
    rows: &DeviceView<'_, u32>,
    [stride, first, words]: [usize; 3],
    points: &DeviceView<'_, u32>,
) -> Result<DeviceBuffer<u32>, Refusal> {
    let mut to = zeros(engine, words * points.len())?;
    if points.is_empty() {
        return Ok(to);
    }
    let into = Rows {
        to: &mut to,
        first: 0,
        stride: words,
    };
    kernels.gather(&rows.slice(first..), [stride, words], points, into)?;
    Ok(to)
}

//! Arrays of the caller that travel with the points of a set.

use super::{
    set::{ID, POSITION},
    staging::zeros,
};
use crate::error::Refusal;
use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceValue, DeviceView};

/// The first words of a point that travels: its position and its id.
pub(super) const POINT: usize = POSITION + ID;
/// The purpose of memory, for messages.
pub(super) const WHAT: &str = "points that change their rank";

/// An array of the caller, and its values per point.
pub(super) type Column<'a> = (&'a mut DeviceBuffer<f32>, usize);

/// New positions of a set.
#[derive(Clone, Copy)]
pub(super) enum NewPositions<'a> {
    Positions(&'a DeviceView<'a, f32>),
    /// The positions of this many points, in the first of the arrays that follow.
    First(usize),
}

impl NewPositions<'_> {
    pub(super) fn points(self) -> usize {
        match self {
            Self::Positions(positions) => positions.len() / POSITION,
            Self::First(points) => points,
        }
    }

    /// The arrays that travel in addition to the positions.
    pub(super) fn beside<'a, 'b>(self, columns: &'a [Column<'b>]) -> &'a [Column<'b>] {
        match self {
            Self::Positions(_) => columns,
            Self::First(_) => &columns[1..],
        }
    }

    /// The positions, in the old order.
    pub(super) fn view<'a>(&'a self, columns: &'a [Column<'_>]) -> DeviceView<'a, f32> {
        match self {
            Self::Positions(positions) => positions.slice(..),
            Self::First(points) => columns[0].0.slice(0..POSITION * points),
        }
    }
}

/// Replaces an array that is shorter than `len` by a longer one with the same first `kept` values.
pub(super) fn extend<T: DeviceValue>(
    engine: &DeviceEngine,
    array: &mut DeviceBuffer<T>,
    kept: usize,
    len: usize,
) -> Result<(), Refusal> {
    if array.len() >= len {
        return Ok(());
    }
    let mut longer = zeros(engine, len + len / 16)?;
    let (from, mut to) = (array.slice(0..kept), longer.slice_mut(0..kept));
    engine.queue().copy_on_device(WHAT, &from, &mut to)?;
    *array = longer;
    Ok(())
}

/// Words of a point that travels with `columns`, in addition to position and id.
pub(super) fn words_of(columns: &[Column<'_>]) -> usize {
    let channels = columns.iter().map(|(_, channels)| channels);
    POINT + channels.sum::<usize>()
}

//! The points of one frame of a view, rounded, ordered and packed.
//!
//! Points are binned into a grid over the box around them, of about one cell a point. A frame holds
//! the number of points of each cell, and of each point its place within its cell and its values as
//! differences from the point before, which lies next to it. A byte of a place then has few
//! different values, and deflate leaves some 12 bits of a position of 16 steps a cell. **Invariant
//! others rely on:** every coordinate is off by half a step at most; `data.js` reads the same
//! order.

use std::io::Write;

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::ZlibEncoder};
use nearfield_grid::memory::with_room;

use crate::{
    error::{Fault, Parsed},
    number::Numbers,
    point_data::PointData,
};

use super::scale::{Detail, Scale};

/// For messages where memory is short.
const WHAT: &str = "the points of a view";

/// The grid of a frame.
struct Grid {
    low: [f64; 3],
    /// Lengths of the box around the points.
    extent: [f64; 3],
    cells: [u64; 3],
}

/// Points of a frame in the order of the file.
pub(super) struct Points {
    grid: Grid,
    points: usize,
    /// Counts of cells, then places, then values.
    bytes: Vec<u8>,
}

impl Points {
    pub(super) fn new(
        positions: &[[f32; 3]],
        data: &[PointData<'_>],
        scales: &[Scale],
        detail: Detail,
    ) -> Parsed<Self> {
        let points = positions.len();
        let grid = Grid::around(positions)?;
        let mut order = with_room(points, WHAT)?;
        let mut places = with_room(points, WHAT)?;
        for (index, position) in positions.iter().enumerate() {
            let (cell, place) = grid.place(position, detail.steps());
            order.push((cell, index));
            places.push(place);
        }
        order.sort_unstable();
        let cells = order.last().map_or(0, |last| last.0) as usize;
        let values = 2 * scales.len();
        let room = cells.saturating_add(points.saturating_mul(4 + values));
        let mut bytes = with_room(room, WHAT)?;
        add_counts(&mut bytes, &order);
        for axis in 0..3 {
            bytes.extend(order.iter().map(|&(_, index)| places[index][axis]));
        }
        for (data, scale) in data.iter().zip(scales) {
            let words = words(data, scale, points, detail)?;
            let mut before = 0;
            let mut changes = with_room(points, WHAT)?;
            changes.extend(order.iter().map(|&(_, index)| {
                let change = words[index].wrapping_sub(before) as i16;
                before = words[index];
                (change << 1 ^ change >> 15) as u16
            }));
            bytes.extend(changes.iter().map(|change: &u16| *change as u8));
            bytes.extend(changes.iter().map(|change| (change >> 8) as u8));
        }
        Ok(Self {
            grid,
            points,
            bytes,
        })
    }

    /// What the script has to know of the frame, without braces.
    pub(super) fn about(&self) -> String {
        let Grid { low, extent, cells } = &self.grid;
        let points = self.points;
        format!("\"points\":{points},\"low\":{low:?},\"extent\":{extent:?},\"cells\":{cells:?}")
    }

    /// The deflated bytes as base64.
    pub(super) fn packed(&self) -> Parsed<Vec<u8>> {
        let text = EncoderWriter::new(Vec::new(), &STANDARD);
        let mut packed = ZlibEncoder::new(text, Compression::default());
        let text = (packed.write_all(&self.bytes)).and_then(|()| packed.finish()?.finish());
        text.map_err(|error| Fault::io("cannot pack points", &error))
    }
}

impl Grid {
    fn around(positions: &[[f32; 3]]) -> Parsed<Self> {
        if positions.is_empty() {
            return Err(Fault::argument("there are no points to show"));
        }
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for (index, position) in positions.iter().enumerate() {
            for (axis, &coordinate) in position.iter().enumerate() {
                if !coordinate.is_finite() {
                    let message = format!("coordinate {axis} of point {index} is {coordinate}");
                    return Err(Fault::argument(message));
                }
                low[axis] = low[axis].min(f64::from(coordinate));
                high[axis] = high[axis].max(f64::from(coordinate));
            }
        }
        let extent = [0, 1, 2].map(|axis: usize| high[axis] - low[axis]);
        let cells = cells(extent, positions.len());
        Ok(Self { low, extent, cells })
    }

    /// The cell of a position, x fastest, and its place in it along each axis, in steps.
    fn place(&self, position: &[f32; 3], steps: u64) -> (u64, [u8; 3]) {
        let word = |axis: usize| {
            let all = self.cells[axis] * steps;
            let share = (f64::from(position[axis]) - self.low[axis]) / self.extent[axis];
            // A box without a length has the share NaN, which becomes 0.
            ((share * all as f64) as u64).min(all - 1)
        };
        let words = [word(0), word(1), word(2)];
        let cell = |axis: usize| words[axis] / steps;
        let index = (cell(2) * self.cells[1] + cell(1)) * self.cells[0] + cell(0);
        (index, words.map(|word| (word % steps) as u8))
    }
}

/// Cells along each axis: cubes of about one point each, cut off where the box is thinner than
/// that. At most eight cells a point.
fn cells(extent: [f64; 3], points: usize) -> [u64; 3] {
    let mut long = extent.map(|length| length > 0.0);
    loop {
        let lengths = (0..3).filter(|&axis| long[axis]).map(|axis| extent[axis]);
        let (count, volume) = lengths.fold((0, 1.0), |(count, all), one| (count + 1, all * one));
        let edge = (volume / points as f64).powf(1.0 / f64::from(count.max(1)));
        let still = [0, 1, 2].map(|axis: usize| long[axis] && extent[axis] >= edge);
        if still == long {
            let along = |axis: usize| {
                if long[axis] {
                    (extent[axis] / edge).ceil()
                } else {
                    1.0
                }
            };
            return [along(0), along(1), along(2)].map(|count| count.max(1.0) as u64);
        }
        long = still;
    }
}

/// Adds the number of points of each cell up to the last that has any, seven bits a byte.
fn add_counts(bytes: &mut Vec<u8>, order: &[(u64, usize)]) {
    let mut next = 0;
    for cell in order.chunk_by(|one, other| one.0 == other.0) {
        let index = cell[0].0 as usize;
        bytes.resize(bytes.len() + index - next, 0);
        next = index + 1;
        let mut count = cell.len();
        while count > 127 {
            bytes.push(count as u8 | 128);
            count >>= 7;
        }
        bytes.push(count as u8);
    }
}

/// Values as steps of their scale.
fn words(data: &PointData<'_>, scale: &Scale, points: usize, detail: Detail) -> Parsed<Vec<u16>> {
    if data.components() != 1 || data.points() != points {
        let message = format!(
            "{} values of {} components for {points} points: one number per point is needed",
            data.points(),
            data.components()
        );
        return Err(Fault::argument(message));
    }
    let last = f64::from(detail.last_word());
    let mut words = with_room(points, WHAT)?;
    for point in 0..points {
        let value = data.values().number(point).double;
        if !value.is_finite() {
            let message = format!("the value of point {point} is {value}");
            return Err(Fault::argument(message));
        }
        // Halves, because a difference of f64 may overflow. On a scale without a length the lowest
        // value has the share NaN, which becomes 0.
        let share = (value / 2.0 - scale.low / 2.0) / (scale.high / 2.0 - scale.low / 2.0);
        words.push((share * last).round().clamp(0.0, last) as u16);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_a_few_cells_a_point_for_boxes_of_any_form() {
        for extent in [
            [1.0, 1.0, 1.0],
            [4.0, 3.0, 0.0],
            [1e6, 1.0, 1.0],
            [1e30, 1e-30, 0.0],
            [1e6, 1e3, 1e-9],
            [0.0, 0.0, 0.0],
            [7e38, 7e38, 7e38],
            [1e-45, 1e-45, 1e-45],
        ] {
            for points in [1, 8, 1000, 1_000_000] {
                let cells = cells(extent, points);
                let all: u64 = cells.iter().product();
                let most = 8 * points as u64;
                assert!((1..=most).contains(&all), "{extent:?}, {points}: {cells:?}");
                let least = points as u64 / 2;
                let flat = extent.iter().all(|&length| length == 0.0);
                assert!(flat || all >= least, "{extent:?}, {points}: {cells:?}");
            }
        }
    }
}

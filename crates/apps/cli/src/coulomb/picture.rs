//! The picture of potentials: the layer of the grid in the middle of z, as colours.
//!
//! The colours end at a size that one point in fifty exceeds, because a potential has no bound near
//! an atom; the bar says so at the end where there are such points.

use nearfield::all_pairs::{Real, SampleGrid};
use nearfield_plot::{
    Area, COOL, DETAIL, Drawn, Error, FAINT, INK, WARM, axis::Axis, rounded, save_png, text,
};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::path::Path;

/// Width and height, pixels.
const SIZE: (u32, u32) = (900, 780);
/// Width to the right of the layer, for the bar, and that of the bar itself, pixels.
const RIGHT: u32 = 150;
const BAR: i32 = 22;
/// Colours of the bar.
const STEPS: i32 = 200;

/// A layer of the grid.
struct Layer<'a, T> {
    grid: &'a SampleGrid,
    z: usize,
    potentials: &'a [T],
    /// The size at the ends of the colours.
    most: f64,
}

/// Draws the middle layer of the potentials (z slowest, x fastest).
///
/// # Errors
/// As [`save_png`].
pub(super) fn draw<T: Real>(path: &Path, grid: &SampleGrid, all: &[T]) -> Result<(), Error> {
    let [x, y, z] = grid.dims;
    let z = z / 2;
    let potentials = all.get(z * x * y..(z + 1) * x * y).unwrap_or_default();
    let mut sizes: Vec<f64> = potentials
        .iter()
        .map(|value| value.double().abs())
        .collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let most = sizes.get(sizes.len() * 98 / 100).copied().unwrap_or(0.0);
    let layer = Layer {
        grid,
        z,
        potentials,
        most: if most > 0.0 { most } else { 1.0 },
    };
    save_png(path, SIZE, |area| layer.draw(area))
}

/// The colour of a share in [−1, 1]: dark at both ends, white in the middle.
fn color(share: f64) -> RGBColor {
    let end = if share < 0.0 { COOL[0] } else { WARM[0] };
    let part = share.abs().min(1.0);
    let mixed = |end: u8| (255.0 + (f64::from(end) - 255.0) * part).round() as u8;
    RGBColor(mixed(end.0), mixed(end.1), mixed(end.2))
}

impl<T: Real> Layer<'_, T> {
    fn draw<'b>(&self, area: &Area<'b>) -> Drawn<'b> {
        let ([columns, rows, _], spacing) = (self.grid.dims, self.grid.spacing);
        let origin = self.grid.origin;
        let heading = format!(
            "potential at z = {}",
            rounded(origin[2] + self.z as f64 * spacing, 6)
        );
        let (width, height) = area.dim_in_pixel();
        let (layer, bar) = area.split_horizontally(width - RIGHT * DETAIL);
        // As wide as it is high, per unit of length.
        let room = (width - (RIGHT + 84) * DETAIL, height - 120 * DETAIL);
        let pixel = (f64::from(room.0) / columns as f64).min(f64::from(room.1) / rows as f64);
        let left_over = |room: u32, count: usize| room - (pixel * count as f64) as u32;
        let range = |axis: usize, count: usize| {
            let low = origin[axis] - 0.5 * spacing;
            Axis::linear(low..low + spacing * count as f64)
        };
        let mut chart = ChartBuilder::on(&layer)
            .caption(heading, text(22))
            .margin(10 * DETAIL)
            .margin_right(left_over(room.0, columns) + 14 * DETAIL)
            .margin_bottom(left_over(room.1, rows))
            .x_label_area_size(54 * DETAIL)
            .y_label_area_size(60 * DETAIL)
            .build_cartesian_2d(range(0, columns), range(1, rows))?;
        let corner = |column: usize, row: usize| {
            let at = |axis: usize, n: usize| origin[axis] + spacing * (n as f64 - 0.5);
            (at(0, column), at(1, row))
        };
        chart.draw_series(self.potentials.iter().enumerate().map(|(at, value)| {
            let (column, row) = (at % columns, at / columns);
            let ends = [corner(column, row), corner(column + 1, row + 1)];
            Rectangle::new(ends, color(value.double() / self.most).filled())
        }))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("x")
            .y_desc("y")
            .axis_desc_style(text(16))
            .label_style(text(14))
            .axis_style(INK)
            .x_label_formatter(&|value| rounded(*value, 5))
            .y_label_formatter(&|value| rounded(*value, 5))
            .draw()?;
        self.bar(&bar)
    }

    /// Draws the colours with their values.
    fn bar<'b>(&self, area: &Area<'b>) -> Drawn<'b> {
        let detail = DETAIL as i32;
        let (top, long) = (60 * detail, 400 * detail);
        let at = |share: f64| top + ((0.5 - 0.5 * share) * f64::from(long)) as i32;
        for step in 0..STEPS {
            let share = |step: i32| 1.0 - 2.0 * f64::from(step) / f64::from(STEPS);
            let ends = [(0, at(share(step))), (BAR * detail, at(share(step + 1)))];
            area.draw(&Rectangle::new(ends, color(share(step)).filled()))?;
        }
        let ends = [(0, top), (BAR * detail, top + long)];
        area.draw(&Rectangle::new(ends, FAINT.stroke_width(DETAIL)))?;
        let style = text(16).pos(Pos::new(HPos::Left, VPos::Center));
        let beyond = |sign: f64| {
            let value = |value: &T| sign * value.double() > self.most;
            self.potentials.iter().any(value)
        };
        for share in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            let sign = match share {
                1.0 if beyond(1.0) => "≥ ",
                -1.0 if beyond(-1.0) => "≤ ",
                _ => "",
            };
            let value = share * self.most;
            let value = match value.abs() {
                size if size != 0.0 && !(1e-3..1e5).contains(&size) => format!("{value:.1e}"),
                _ => rounded(value, 3),
            };
            let label = format!("{sign}{value}");
            area.draw_text(&label, &style, ((BAR + 8) * detail, at(share)))?;
        }
        Ok(())
    }
}

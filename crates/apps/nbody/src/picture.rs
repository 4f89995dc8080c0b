//! The picture of a run: bodies before and after, and the error of the energy.

use crate::{Bodies, Error};
use nearfield::all_pairs::Real;
use nearfield_grid::memory::collected;
use nearfield_plot::{
    Area, COOL, DETAIL, Drawn, FAINT, INK, WARM, axis::Axis, rounded, save_png, text,
};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::path::Path;

/// Width and height, pixels.
const SIZE: (u32, u32) = (1500, 620);
/// Change of the energy that the axis shows at least: one that is kept to the last bit is a line
/// through the middle of rounding errors.
const LEAST_CHANGE: f64 = 1e-15;
/// Bodies drawn at most, evenly chosen: more make a picture no clearer.
const MOST: usize = 40_000;

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Time.
    pub time: f64,
    /// Total energy.
    pub energy: f64,
}

/// Draws the bodies of two moments, seen along z, side by side, and the change of the energy next
/// to them, as a PNG file of 1500×620 pixels.
///
/// # Errors
/// [`ErrorKind::Plot`](crate::ErrorKind::Plot) when the file cannot be written, and memory that is
/// short.
pub fn draw<T: Real>(
    path: impl AsRef<Path>,
    first: &Bodies<T>,
    last: &Bodies<T>,
    moments: &[Moment],
) -> Result<(), Error> {
    let half = half_width(first)?.max(half_width(last)?);
    save_png(path.as_ref(), SIZE, |area| {
        let panels = area.split_evenly((1, 3));
        let time = |moment: Option<&Moment>| moment.map_or(0.0, |moment| moment.time);
        let titles = [time(moments.first()), time(moments.last())]
            .map(|time| format!("t = {}", rounded(time, 4)));
        for ((panel, title), bodies) in panels.iter().zip(titles).zip([first, last]) {
            scatter(panel, &title, bodies, half)?;
        }
        energy(&panels[2], moments)
    })?;
    Ok(())
}

/// Half the width of a square that holds 98 of 100 bodies, seen along z.
fn half_width<T: Real>(bodies: &Bodies<T>) -> Result<f64, Error> {
    let far = |x: &[T; 3]| x[0].double().abs().max(x[1].double().abs());
    let mut all = collected(bodies.positions.iter().map(far), "distances of bodies")?;
    all.sort_unstable_by(f64::total_cmp);
    let found = all.get(all.len() * 98 / 100).copied().unwrap_or(1.0);
    Ok(if found > 0.0 { 1.1 * found } else { 1.0 })
}

fn scatter<'b, T: Real>(area: &Area<'b>, title: &str, bodies: &Bodies<T>, half: f64) -> Drawn<'b> {
    let edge = (20 * DETAIL) as i32;
    let title_height = (34 * DETAIL) as i32;
    let (width, height) = area.dim_in_pixel();
    let side = (width as i32 - 2 * edge).min(height as i32 - edge - title_height);
    let style = text(20).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_text(title, &style, (width as i32 / 2, edge / 4))?;
    let corner = ((width as i32 - side) / 2, title_height);
    let opposite = (corner.0 + side, corner.1 + side);
    area.draw(&Rectangle::new(
        [corner, opposite],
        FAINT.stroke_width(DETAIL),
    ))?;
    let place =
        |x: f64, low: i32, up: f64| low + (0.5 * f64::from(side) * (1.0 + up * x / half)) as i32;
    let every = bodies.len().div_ceil(MOST).max(1);
    let dot = COOL[0]
        .mix(if bodies.len() > 5000 { 0.35 } else { 0.8 })
        .filled();
    for position in bodies.positions.iter().step_by(every) {
        let [x, y] = [position[0].double(), position[1].double()];
        if x.abs() < half && y.abs() < half {
            let at = (place(x, corner.0, 1.0), place(y, corner.1, -1.0));
            area.draw(&Circle::new(at, DETAIL as i32 * 3 / 2, dot))?;
        }
    }
    let scale = text(14).pos(Pos::new(HPos::Right, VPos::Bottom));
    let width = format!("{} wide, x to the right, y up", rounded(2.0 * half, 3));
    area.draw_text(&width, &scale, (opposite.0 - 6, opposite.1 - 6))
}

fn energy<'b>(area: &Area<'b>, moments: &[Moment]) -> Drawn<'b> {
    let begin = moments.first().copied().unwrap_or(Moment {
        time: 0.0,
        energy: 0.0,
    });
    let end = moments.last().map_or(1.0, |moment| moment.time);
    let end = if end > begin.time {
        end
    } else {
        begin.time + 1.0
    };
    let unit = if begin.energy == 0.0 {
        1.0
    } else {
        begin.energy.abs()
    };
    let change = |moment: &Moment| (moment.energy - begin.energy) / unit;
    let most = moments
        .iter()
        .map(|moment| change(moment).abs())
        .fold(LEAST_CHANGE, f64::max);
    let values = Axis::linear(-1.2 * most..1.2 * most);
    let label = |value: &f64| {
        if *value == 0.0 {
            "0".to_owned()
        } else {
            format!("{value:.1e}")
        }
    };
    let mut chart = ChartBuilder::on(area)
        .caption("change of the energy, relative", text(20))
        .margin(12 * DETAIL)
        .x_label_area_size(46 * DETAIL)
        .y_label_area_size(84 * DETAIL)
        .build_cartesian_2d(begin.time..end, values)?;
    chart
        .configure_mesh()
        .x_desc("time")
        .axis_desc_style(text(16))
        .label_style(text(14))
        .axis_style(INK)
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_labels(5)
        .y_labels(5)
        .y_label_formatter(&label)
        .draw()?;
    let points: Vec<(f64, f64)> = moments
        .iter()
        .map(|moment| (moment.time, change(moment)))
        .collect();
    chart.draw_series(LineSeries::new(
        points.iter().copied(),
        WARM[0].stroke_width(2 * DETAIL),
    ))?;
    chart.draw_series(
        points
            .iter()
            .map(|&at| Circle::new(at, 2 * DETAIL as i32, WARM[0].filled())),
    )?;
    Ok(())
}

//! The picture of a run: bodies before and after with their trails and names, and the error of the
//! energy.

use crate::{Bodies, Error, Trails, read::MAX_NAMED};
use nearfield::all_pairs::Real;
use nearfield_grid::memory::collected;
use nearfield_plot::{
    Area, Backend, COOL, DETAIL, Drawn, FAINT, Fault, INK, WARM, axis::Axis, rounded, save_png,
    short, text,
};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::path::Path;

/// Width and height, pixels.
const SIZE: (u32, u32) = (1500, 520);
/// Change of the energy that the axis shows at least: one that is kept to the last bit is a line.
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

/// What a picture shows of a run.
#[derive(Debug, Clone, Copy)]
pub struct Story<'a, T> {
    /// The bodies before; only their positions are drawn.
    pub first: &'a Bodies<T>,
    /// The bodies after.
    pub last: &'a Bodies<T>,
    /// The energies from the first to the last moment.
    pub moments: &'a [Moment],
    /// Where bodies have been.
    pub trails: &'a Trails,
    /// A name for each body, or none.
    pub names: &'a [String],
}

/// Draws the bodies of two moments, seen along z, side by side, the second with trails and names,
/// and the change of the energy next to them, as a PNG file of 1500×520 pixels.
///
/// # Errors
/// [`ErrorKind::Plot`](crate::ErrorKind::Plot) when the file cannot be written, and memory that is
/// short.
pub fn draw<T: Real>(path: impl AsRef<Path>, story: &Story<'_, T>) -> Result<(), Error> {
    let half = half_width(story.first)?.max(half_width(story.last)?);
    let moments = story.moments;
    save_png(path.as_ref(), SIZE, |area| {
        let panels = area.split_evenly((1, 3));
        let time = |moment: Option<&Moment>| moment.map_or(0.0, |moment| moment.time);
        let [first, last] = [time(moments.first()), time(moments.last())]
            .map(|time| format!("t = {}", rounded(time, 4)));
        scatter(&panels[0], &first, story.first, half, None)?;
        scatter(&panels[1], &last, story.last, half, Some(story))?;
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

/// Space around the square of a panel, in pixels: for its title, and for the numbers of its axes.
const TITLE: u32 = 36;
const NUMBERS: u32 = 58;
const EDGE: u32 = 16;

type Chart<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Axis, Axis>>;

/// Draws a square with a title and axes, around the middle of x and y.
fn square<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    half: f64,
) -> Result<Chart<'a, 'b>, Fault<Backend<'b>>> {
    let (width, height) = area.dim_in_pixel();
    let middle = ((width + NUMBERS * DETAIL) / 2) as i32;
    let style = text(20).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_text(title, &style, (middle, (6 * DETAIL) as i32))?;
    let across = width.saturating_sub((NUMBERS + 2 * EDGE) * DETAIL);
    let down = height.saturating_sub((TITLE + NUMBERS) * DETAIL);
    let side = across.min(down);
    let axis = || Axis::linear(-half..half);
    let mut chart = ChartBuilder::on(area)
        .margin_top(TITLE * DETAIL)
        .margin_left(EDGE * DETAIL)
        .margin_right(EDGE * DETAIL + (across - side))
        .margin_bottom(down - side)
        .x_label_area_size(NUMBERS * DETAIL)
        .y_label_area_size(NUMBERS * DETAIL)
        .build_cartesian_2d(axis(), axis())?;
    chart
        .configure_mesh()
        .x_desc("x")
        .y_desc("y")
        .axis_desc_style(text(16))
        .label_style(text(14))
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .axis_style(INK)
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .draw()?;
    Ok(chart)
}

/// Draws bodies as dots; those of a story with their trails and names.
fn scatter<'b, T: Real>(
    area: &Area<'b>,
    title: &str,
    bodies: &Bodies<T>,
    half: f64,
    story: Option<&Story<'_, T>>,
) -> Drawn<'b> {
    let mut chart = square(area, title, half)?;
    let every = bodies.len().div_ceil(MOST).max(1);
    let few = bodies.len() <= MAX_NAMED;
    let share = if bodies.len() > 5000 { 0.35 } else { 0.8 };
    let dot = if few {
        INK.filled()
    } else {
        COOL[0].mix(share).filled()
    };
    let size = DETAIL as i32 * if few { 4 } else { 2 };
    let place = |x: &[T; 3]| (x[0].double(), x[1].double());
    let inside = |&(x, y): &(f64, f64)| x.abs() < half && y.abs() < half;
    let places = bodies.positions.iter().step_by(every).map(place);
    let dots = places.filter(inside).map(|at| Circle::new(at, size, dot));
    let Some(story) = story else {
        chart.draw_series(dots)?;
        return Ok(());
    };
    // Over a crowd, and under a few.
    let mut trails = Vec::new();
    let colors = COOL.iter().chain(&WARM).cycle();
    for (trail, color) in story.trails.each(bodies.len()).zip(colors) {
        let color = if few { color } else { &WARM[0] };
        let line = color.mix(0.8).stroke_width(2 * DETAIL);
        // Piece by piece: joints of one line would be lost where places lie close together.
        trails.extend(
            trail
                .windows(2)
                .map(|ends| PathElement::new(ends.to_vec(), line)),
        );
    }
    if few {
        chart.draw_series(trails)?;
        chart.draw_series(dots)?;
    } else {
        chart.draw_series(dots)?;
        chart.draw_series(trails)?;
    }
    let places = bodies.positions.iter().map(place);
    let named = places.zip(story.names).filter(|(at, _)| inside(at));
    chart.draw_series(named.map(|((x, y), name)| {
        // Towards the middle, where there is room.
        let (side, to) = if x > 0.4 * half {
            (HPos::Right, -7)
        } else {
            (HPos::Left, 7)
        };
        let style = text(15).pos(Pos::new(side, VPos::Bottom));
        let shift = (to * DETAIL as i32, -3 * DETAIL as i32);
        EmptyElement::at((x, y)) + Text::new(name.clone(), shift, style)
    }))?;
    Ok(())
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
    let reached = |sign: f64| {
        let changes = moments.iter().map(|moment| sign * change(moment));
        changes.fold(0.0, f64::max)
    };
    let [down, up] = [-1.0, 1.0].map(reached);
    let room = 0.1 * (down + up).max(LEAST_CHANGE);
    let values = Axis::linear(-down - room..up + room);
    let label = |value: &f64| {
        if *value == 0.0 {
            "0".to_owned()
        } else {
            format!("{value:.1e}")
        }
    };
    let mut chart = ChartBuilder::on(area)
        .caption("change of the energy, as a share of it", text(20))
        .margin(6 * DETAIL)
        .margin_right(EDGE * DETAIL)
        .x_label_area_size(NUMBERS * DETAIL)
        .y_label_area_size(84 * DETAIL)
        .build_cartesian_2d(Axis::linear(begin.time..end), values)?;
    chart
        .configure_mesh()
        .x_desc("time")
        .axis_desc_style(text(16))
        .label_style(text(14))
        .axis_style(INK)
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_label_formatter(&short)
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

//! The picture of a sweep: time against the threshold, and against the CPU backend's share of the
//! work.
//!
//! Both panels show the same rows. θ is the setting; the share spreads the rows evenly even if
//! thousands of bricks hold the same number of points. A legend to the right explains the marks.

use super::{
    report,
    task::{Combination, Outcome},
};
use nearfield_balance::tune::Row;
use nearfield_plot::{
    COOL, DETAIL, Error, Fault, INK, Plot, WARM,
    axis::{self, Axis},
    rounded, save_png, save_svg, text,
};
use plotters::{coord::Shift, prelude::*};
use std::path::Path;

/// Width and height of the picture, in pixels.
const SIZE: (u32, u32) = (1600, 820);
/// Height of the lines above the panels, in pixels.
const TITLE: u32 = 142;
/// Width of the legend, in pixels.
const LEGEND: u32 = 400;
/// Margins left of the panel with numbers and of the one without, in pixels.
const NUMBERS: u32 = 96;
const NO_NUMBERS: u32 = 34;
/// Height below each panel, in pixels.
const BELOW: u32 = 74;
/// Ratio of the longest to the shortest time above which the time axis is logarithmic.
const WIDE: f64 = 6.0;
/// Thresholds below this share of the work are left out if they fill most of the axis.
const LITTLE: f64 = 0.02;
/// Half the width of a marker, in pixels of the large picture.
const MARKER: i32 = 15;

type Area<B> = DrawingArea<B, Shift>;

/// A number of every row.
type Column = fn(&Row) -> f64;

/// Points of a curve.
type Curve = Vec<(f64, f64)>;

/// Writes tune.png and tune.svg into `folder`.
///
/// # Errors
/// As [`save_png`] and [`save_svg`].
pub(super) fn save(
    folder: &Path,
    headings: [String; 3],
    shown: &Combination,
    all: &[Combination],
) -> Result<(), Error> {
    let picture = Picture::new(headings, shown, all);
    save_png(&folder.join("tune.png"), SIZE, |area| picture.draw(area))?;
    save_svg(&folder.join("tune.svg"), SIZE, &picture)
}

struct Picture<'a> {
    headings: [String; 3],
    shown: &'a Combination,
    /// Other bricks and subregions.
    others: Vec<&'a Combination>,
    thetas: Axis,
    times: Axis,
    /// Thresholds below are not shown.
    from: f64,
    /// Times below are not shown.
    floor: f64,
}

impl<'a> Picture<'a> {
    fn new(headings: [String; 3], shown: &'a Combination, all: &'a [Combination]) -> Self {
        let others = all
            .iter()
            .filter(|one| !std::ptr::eq(*one, shown))
            .collect();
        let ends = || shown.sweep.iter().map(|row| row.total_ms);
        let high = ends().fold(0.0, f64::max);
        let low = shown.best.total_ms;
        let (times, floor) = if high > WIDE * low && low > 0.0 {
            (Axis::logarithmic([0.3 * low, high].into_iter()), 0.25 * low)
        } else {
            (Axis::from_zero(ends()), 0.0)
        };
        let from = first_theta(shown);
        let beyond = 0.03 * (shown.highest - from).max(f64::MIN_POSITIVE);
        Self {
            headings,
            shown,
            others,
            thetas: Axis::linear(from - beyond..shown.highest + beyond),
            times,
            from: from - beyond,
            floor,
        }
    }

    /// A column of the sweep against another one, as far as it is shown.
    fn curve(&self, rows: &[Row], x: Column, y: Column) -> Curve {
        above(rows.iter().map(|row| (x(row), y(row))), self.floor)
    }
}

/// The threshold at which the axis begins: 0, unless the gap between the first rows would fill most
/// of the axis.
fn first_theta(shown: &Combination) -> f64 {
    let rows = shown.sweep.iter();
    let first = rows.filter(|row| row.share < LITTLE).map(|row| row.theta);
    match first.fold(0.0, f64::max) {
        theta if theta > 0.5 * shown.highest => {
            let settled = shown.policies.iter().filter(|(name, _)| has_theta(name));
            settled
                .map(|(_, outcome)| outcome.settled.theta)
                .filter(|&settled| settled > 0.5 * shown.highest)
                .fold(theta.min(shown.highest - 0.5), f64::min)
        }
        _ => 0.0,
    }
}

/// The parts of a curve at `floor` or above, with its crossings of the floor.
fn above(curve: impl Iterator<Item = (f64, f64)>, floor: f64) -> Curve {
    let mut kept = Curve::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in curve {
        if let Some((x0, y0)) = before {
            // On the way up or down.
            if (y0 < floor) != (y < floor) {
                kept.push((x0 + (x - x0) * (floor - y0) / (y - y0), floor));
            }
        }
        if y >= floor {
            kept.push((x, y));
        }
        before = Some((x, y));
    }
    kept
}

fn has_theta(policy: &str) -> bool {
    !policy.starts_with("fraction")
}

/// Colours and names of the curves, in the order in which they are drawn.
const CURVES: [(&str, RGBColor, Column); 3] = [
    ("CPU backend", COOL[0], |row| row.cpu_ms),
    ("GPU backend", COOL[1], |row| row.gpu_ms),
    ("step: both have ended", INK, |row| row.total_ms),
];

/// Colour of the marker of a policy.
fn color(number: usize) -> RGBColor {
    [WARM[0], WARM[1], COOL[2], WARM[2]][number % 4]
}

/// The mark of a place.
#[derive(Clone, Copy)]
enum Mark {
    /// The best row.
    Best,
    /// The policy of this number.
    Policy(usize),
}

impl Plot for Picture<'_> {
    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Result<(), Fault<B>> {
        let area = area.margin(14 * DETAIL, 10 * DETAIL, 16 * DETAIL, 24 * DETAIL);
        let (top, body) = area.split_vertically(TITLE * DETAIL);
        for (line, (size, y)) in self.headings.iter().zip([(38, 4), (25, 56), (21, 92)]) {
            top.draw_text(line, &text(size), at(NUMBERS, y))?;
        }
        let width = body.dim_in_pixel().0 - LEGEND * DETAIL;
        let (panels, legend) = body.split_horizontally(width);
        let (left, right) =
            panels.split_horizontally((width + (NUMBERS - NO_NUMBERS) * DETAIL) / 2);
        self.panel(
            &left,
            &self.thetas,
            "threshold θ, points per brick",
            |row| row.theta,
        )?;
        let shares = Axis::linear(-3.0..103.0);
        self.panel(
            &right,
            &shares,
            "CPU backend's share of the work, %",
            |row| 100.0 * row.share,
        )?;
        self.legend(&legend)
    }
}

impl Picture<'_> {
    fn panel<B: DrawingBackend>(
        &self,
        area: &Area<B>,
        across: &Axis,
        name: &str,
        x: Column,
    ) -> Result<(), Fault<B>> {
        // The left panel has the numbers of both.
        let by_theta = name.starts_with("threshold");
        let (numbers, mark): (u32, fn(&f64) -> String) = if by_theta {
            (NUMBERS, axis::duration)
        } else {
            (NO_NUMBERS, |_| String::new())
        };
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(BELOW * DETAIL)
            .y_label_area_size(numbers * DETAIL)
            .build_cartesian_2d(across.clone(), self.times.clone())?;
        chart
            .configure_mesh()
            .x_desc(name)
            .axis_desc_style(text(25))
            .label_style(text(25))
            .x_label_formatter(&|value| rounded(*value, 4))
            .y_label_formatter(&mark)
            .set_all_tick_mark_size(6 * DETAIL)
            .axis_style(INK.stroke_width(2 * DETAIL))
            .bold_line_style(INK.mix(0.13))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut line = |curve: Curve, style: ShapeStyle| -> Result<(), Fault<B>> {
            let shown = |place: &(f64, f64)| !by_theta || place.0 >= self.from;
            let curve: Curve = curve.into_iter().filter(shown).collect();
            // Piece by piece: where places lie close together, joints of one line would shoot out.
            let pieces = curve
                .windows(2)
                .map(|ends| PathElement::new(ends.to_vec(), style));
            chart.draw_series(pieces).map(|_| ())
        };
        if !by_theta {
            for other in &self.others {
                line(self.curve(&other.sweep, x, |row| row.total_ms), faint())?;
            }
        }
        for (number, (_, color, y)) in CURVES.iter().enumerate() {
            line(
                self.curve(&self.shown.sweep, x, *y),
                curve_style(number, *color),
            )?;
        }
        let place = |at: (f64, f64)| chart.backend_coord(&at);
        let best = &self.shown.best;
        let mut marks = Vec::new();
        for (number, (policy, outcome)) in self.shown.policies.iter().enumerate() {
            let across = if by_theta {
                outcome.settled.theta
            } else {
                100.0 * outcome.settled.share
            };
            if !by_theta || has_theta(policy) && across >= self.from {
                marks.push((
                    Mark::Policy(number),
                    place((across, outcome.settled.total_ms)),
                ));
            }
        }
        marks.push((Mark::Best, place((x(best), best.total_ms))));
        let (columns, rows) = chart.plotting_area().get_pixel_range();
        let plot = chart.plotting_area().strip_coord_spec();
        for (mark, (x, y)) in marks {
            self.mark(&plot, mark, x - columns.start, y - rows.start)?;
        }
        Ok(())
    }

    /// Draws a marker around a pixel.
    fn mark<B: DrawingBackend>(
        &self,
        area: &Area<B>,
        mark: Mark,
        x: i32,
        y: i32,
    ) -> Result<(), Fault<B>> {
        let number = match mark {
            Mark::Best => {
                for (radius, style) in [
                    (MARKER + 9, WHITE.stroke_width(5 * DETAIL)),
                    (MARKER + 9, INK.stroke_width(2 * DETAIL)),
                ] {
                    area.draw(&Circle::new((x, y), radius, style))?;
                }
                return Ok(());
            }
            Mark::Policy(number) => number,
        };
        let draw = |size: i32, style: ShapeStyle| match number % 4 {
            0 => area.draw(&Circle::new((x, y), size, style)),
            1 => area.draw(&TriangleMarker::new((x, y), size + 4, style)),
            2 => area.draw(&Rectangle::new(
                [(x - size, y - size), (x + size, y + size)],
                style,
            )),
            _ => area.draw(&Polygon::new(
                [(0, -1), (1, 0), (0, 1), (-1, 0)]
                    .map(|(a, b)| (x + a * (size + 4), y + b * (size + 4))),
                style,
            )),
        };
        draw(MARKER + 3, WHITE.filled())?;
        draw(MARKER - 2, color(number).filled())
    }

    /// Draws the legend of the curves and markers.
    fn legend<B: DrawingBackend>(&self, area: &Area<B>) -> Result<(), Fault<B>> {
        let mut down = 0;
        for (number, (name, color, _)) in CURVES.iter().enumerate() {
            swatch(area, down, curve_style(number, *color))?;
            area.draw_text(name, &text(25), at(88, down))?;
            down += 38;
        }
        if !self.others.is_empty() {
            swatch(area, down, faint())?;
            area.draw_text("step with other bricks", &text(25), at(88, down))?;
            area.draw_text("or subregions", &text(25), at(88, down + 30))?;
            down += 68;
        }
        down += 22;
        let best = &self.shown.best;
        let share = |share: f64| format!("{} % on the CPU", rounded(100.0 * share, 3));
        self.entry(
            area,
            &mut down,
            Mark::Best,
            [
                format!("best: {}", report::milliseconds(best.total_ms)),
                format!("θ = {}, {}", rounded(best.theta, 4), share(best.share)),
                String::new(),
            ],
        )?;
        for (number, (name, outcome)) in self.shown.policies.iter().enumerate() {
            let Outcome { settled, to_best } = outcome;
            let steps = match settled.steps {
                Some(1) => "1 step".to_owned(),
                Some(steps) => format!("{steps} steps"),
                None => "not settled".to_owned(),
            };
            let theta = if has_theta(name) {
                format!("θ = {}, ", rounded(settled.theta, 4))
            } else {
                String::new()
            };
            let lines = [
                format!("{name}: {}", report::milliseconds(settled.total_ms)),
                format!("{theta}{}", share(settled.share)),
                format!("{steps}, {} the best", report::compared(*to_best)),
            ];
            self.entry(area, &mut down, Mark::Policy(number), lines)?;
        }
        Ok(())
    }

    fn entry<B: DrawingBackend>(
        &self,
        area: &Area<B>,
        down: &mut u32,
        mark: Mark,
        lines: [String; 3],
    ) -> Result<(), Fault<B>> {
        let (x, y) = at(56, *down + 9);
        self.mark(area, mark, x, y)?;
        for (line, size) in lines.iter().zip([25, 22, 22]) {
            if !line.is_empty() {
                area.draw_text(line, &text(size), at(88, *down))?;
                *down += 29;
            }
        }
        *down += 14;
        Ok(())
    }
}

fn swatch<B: DrawingBackend>(area: &Area<B>, down: u32, style: ShapeStyle) -> Result<(), Fault<B>> {
    area.draw(&PathElement::new(
        [at(32, down + 8), at(80, down + 8)],
        style,
    ))
}

fn at(x: u32, y: u32) -> (i32, i32) {
    ((x * DETAIL) as i32, (y * DETAIL) as i32)
}

/// The step's curve is drawn over the backends' curves, which it follows, so it is thinner.
fn curve_style(number: usize, color: RGBColor) -> ShapeStyle {
    color.stroke_width([5, 5, 2][number % 3] * DETAIL)
}

fn faint() -> ShapeStyle {
    INK.mix(0.35).stroke_width(DETAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_cut_where_they_cross_the_floor() {
        let curve = [(0.0, 0.0), (1.0, 4.0), (2.0, 8.0), (3.0, 0.0)];
        let kept = above(curve.into_iter(), 2.0);
        assert_eq!(kept, [(0.5, 2.0), (1.0, 4.0), (2.0, 8.0), (2.75, 2.0)]);
        assert_eq!(above(curve.into_iter(), 0.0), curve);
        assert!(above(curve.into_iter(), 9.0).is_empty());
    }
}

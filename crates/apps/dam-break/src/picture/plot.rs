//! The plot of the front: its position against time, with experiments.

use std::path::Path;

use nearfield_plot::{Area, Backend, COOL, DETAIL, Drawn, FAINT, INK, WARM, save_png, short, text};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::Error;
use crate::reference::{BAND, Experiment, Point, value_at};

/// Width and height of the plot, in pixels.
const SIZE: (u32, u32) = (1200, 800);
const BAND_COLOR: RGBColor = RGBColor(0x8a, 0x9b, 0xb0);
/// Colour of our curve.
const OURS: RGBColor = COOL[0];
/// Colours of the experiments, in turn.
const THEIRS: [RGBColor; 4] = WARM;

type Chart<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws the front's position Z against T to a PNG file of 1200×800 pixels:
/// `ours`, named `name`, as a line, the experiments as markers with a band of
/// ±[`BAND`] around the mean of their interpolations. The time axis reaches a
/// little beyond `ours`, or to the last measurement if there is no curve of ours.
///
/// # Errors
/// [`ErrorKind::Plot`](crate::ErrorKind::Plot) if the plot cannot be drawn or saved.
pub fn front_plot(
    path: impl AsRef<Path>,
    name: &str,
    ours: &[Point],
    experiments: &[Experiment],
) -> Result<(), Error> {
    let plan = Plan::new(name, ours, experiments);
    Ok(save_png(path.as_ref(), SIZE, |area| draw(area, &plan))?)
}

/// The curves cut to the part that is shown.
struct Plan<'a> {
    /// Ends of the axes of T and Z.
    ends: (f64, f64),
    name: &'a str,
    ours: Vec<Point>,
    experiments: Vec<(&'static str, Vec<Point>)>,
    /// Mean of the experiments' interpolations.
    mean: Vec<Point>,
}

impl<'a> Plan<'a> {
    fn new(name: &'a str, ours: &[Point], experiments: &[Experiment]) -> Self {
        let finite = |point: &&Point| point.0.is_finite() && point.1.is_finite();
        let ours: Vec<Point> = ours.iter().filter(finite).copied().collect();
        let end = match ours.last() {
            Some(last) => 1.12 * last.0,
            None => experiments
                .iter()
                .flat_map(|one| &one.points)
                .map(|point| point.0)
                .fold(0.0, f64::max),
        };
        let end = if end > 0.0 { end } else { 1.0 };
        let mean = mean_curve(experiments, end);
        let shown = |one: &Experiment| {
            one.points
                .iter()
                .copied()
                .filter(|point| point.0 <= end)
                .collect()
        };
        let experiments: Vec<(_, Vec<Point>)> = experiments
            .iter()
            .map(|one| (one.name, shown(one)))
            .collect();
        let heights = (experiments.iter().flat_map(|(_, points)| points))
            .chain(&ours)
            .map(|point| point.1);
        let top = heights
            .chain(mean.iter().map(|point| point.1 * (1.0 + BAND)))
            .fold(1.0, f64::max);
        Self {
            ends: (end, 1.05 * top),
            name,
            ours,
            experiments,
            mean,
        }
    }

    /// The outline of the band, there and back.
    fn band(&self) -> Vec<Point> {
        let scaled = |factor: f64| move |&(time, position): &Point| (time, position * factor);
        let upper = self.mean.iter().map(scaled(1.0 + BAND));
        upper
            .chain(self.mean.iter().rev().map(scaled(1.0 - BAND)))
            .collect()
    }
}

/// The mean of the experiments at every T up to `end` at which one of them has a point, and at
/// `end`. A place counts each experiment that reaches over it.
fn mean_curve(experiments: &[Experiment], end: f64) -> Vec<Point> {
    let places = experiments
        .iter()
        .flat_map(|one| &one.points)
        .map(|point| point.0);
    let mut places: Vec<f64> = places.filter(|&place| place < end).chain([end]).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mean = |place: f64| {
        let values = experiments
            .iter()
            .filter_map(|one| value_at(&one.points, place));
        let values: Vec<f64> = values.collect();
        let sum: f64 = values.iter().sum();
        (!values.is_empty()).then(|| (place, sum / values.len() as f64))
    };
    places.into_iter().filter_map(mean).collect()
}

/// Draws everything.
fn draw<'b>(area: &Area<'b>, plan: &Plan<'_>) -> Drawn<'b> {
    let mut chart = ChartBuilder::on(area)
        .caption("Dam break: position of the front", text(36))
        .margin(26 * DETAIL)
        .margin_right(48 * DETAIL)
        .x_label_area_size(78 * DETAIL)
        .y_label_area_size(92 * DETAIL)
        .build_cartesian_2d(0.0..plan.ends.0, 0.0..plan.ends.1)?;
    draw_band(&mut chart, plan)?;
    draw_axes(&mut chart)?;
    draw_experiments(&mut chart, plan)?;
    draw_ours(&mut chart, plan)?;
    chart
        .configure_series_labels()
        // The front starts at Z = 1 and only moves away: this corner stays free.
        .position(SeriesLabelPosition::LowerRight)
        .margin(20 * DETAIL)
        .legend_area_size(56 * DETAIL)
        .label_font(text(25))
        .background_style(WHITE.mix(0.92))
        .border_style(FAINT)
        .draw()
}

fn draw_axes<'b>(chart: &mut Chart<'_, 'b>) -> Drawn<'b> {
    chart
        .configure_mesh()
        .x_desc("T = t · √(2g/a)")
        .y_desc("Z = x/a")
        .axis_desc_style(text(29))
        .label_style(text(24))
        .x_labels(9)
        .y_labels(9)
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .set_all_tick_mark_size(7 * DETAIL)
        .axis_style(INK.stroke_width(2 * DETAIL))
        .bold_line_style(INK.mix(0.13))
        .light_line_style(TRANSPARENT)
        .draw()
}

fn draw_band<'b>(chart: &mut Chart<'_, 'b>, plan: &Plan<'_>) -> Drawn<'b> {
    if plan.mean.len() < 2 {
        return Ok(());
    }
    let style = BAND_COLOR.mix(0.22);
    let name = format!("experiments’ mean ±{:.0} %", 100.0 * BAND);
    chart
        .draw_series([Polygon::new(plan.band(), style)])?
        .label(name)
        .legend(move |(x, y)| Rectangle::new([(x, y - 24), (x + 80, y + 12)], style.filled()));
    Ok(())
}

fn draw_experiments<'b>(chart: &mut Chart<'_, 'b>, plan: &Plan<'_>) -> Drawn<'b> {
    for (index, (name, points)) in plan.experiments.iter().enumerate() {
        let style = THEIRS[index % THEIRS.len()].filled();
        let outline = marker_outline(index);
        let marker =
            |&point: &(f64, f64)| EmptyElement::at(point) + Polygon::new(outline.clone(), style);
        chart
            .draw_series(points.iter().map(marker))?
            .label(*name)
            .legend(move |(x, y)| {
                let moved = |&(right, down): &(i32, i32)| (x + 40 + right, y - 6 + down);
                Polygon::new(
                    marker_outline(index).iter().map(moved).collect::<Vec<_>>(),
                    style,
                )
            });
    }
    Ok(())
}

fn draw_ours<'b>(chart: &mut Chart<'_, 'b>, plan: &Plan<'_>) -> Drawn<'b> {
    let style = OURS.stroke_width(4 * DETAIL);
    chart
        .draw_series(LineSeries::new(plan.ours.iter().copied(), style))?
        .label(plan.name)
        .legend(move |(x, y)| PathElement::new([(x, y - 6), (x + 80, y - 6)], style));
    Ok(())
}

/// Outline of an experiment's marker, in turn a circle, a triangle, a
/// diamond and a square.
fn marker_outline(index: usize) -> Vec<(i32, i32)> {
    let (corners, radius, turn) = [
        (40, 8.0, 0.0),
        (3, 11.0, 0.5),
        (4, 10.5, 0.5),
        (4, 10.0, 0.0),
    ][index % 4];
    let corner = |i: usize| {
        let angle = std::f64::consts::TAU * (i as f64 + 0.5 - turn) / f64::from(corners);
        let place = |share: f64| (share * radius * f64::from(DETAIL)).round() as i32;
        (place(angle.sin()), place(-angle.cos()))
    };
    (0..corners as usize).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use nearfield_plot::{Picture, Pixel};

    use super::*;

    fn experiment(name: &'static str, points: &[Point]) -> Experiment {
        let points = points.to_vec();
        Experiment { name, points }
    }

    #[test]
    fn a_plot_is_a_picture_of_the_promised_size_with_ink_of_every_series() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("front.png");
        let ours = [(0.0, 1.0), (1.0, 1.5), (2.0, 2.9)];
        let theirs = [
            experiment("one", &[(0.5, 1.1), (1.5, 2.0)]),
            experiment("two", &[(0.7, 1.2), (1.8, 2.2)]),
        ];
        front_plot(&path, "ours", &ours, &theirs).expect("it can be drawn");
        let picture = Picture::read_png(&path).expect("it can be read");
        assert_eq!(picture.size(), SIZE);
        for color in [OURS, THEIRS[0], THEIRS[1]] {
            let inked = |pixel: &&Pixel| **pixel == [color.0, color.1, color.2];
            let ink = picture.pixels().iter().filter(inked).count();
            assert!(ink > 100, "{ink} pixels of {color:?}");
        }
    }

    #[test]
    fn the_legend_covers_neither_a_short_curve_nor_a_long_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("front.png");
        let theirs = crate::reference::experiments();
        for (end, height) in [(0.01, 1.0), (0.3, 1.02), (3.2, 3.9)] {
            let point = |at: u32| {
                let share = f64::from(at) / 200.0;
                (end * share, 1.0 + (height - 1.0) * share * share)
            };
            let ours: Vec<Point> = (0..=200).map(point).collect();
            front_plot(&path, "ours", &ours, &theirs).expect("it can be drawn");
            let picture = Picture::read_png(&path).expect("it can be read");
            // The curve spans nine tenths of the axes; the sample in the legend lies to the right.
            let is_ours = |row: &[Pixel], x: usize| row[x] == [OURS.0, OURS.1, OURS.2];
            let rows = || picture.pixels().chunks(SIZE.0 as usize);
            let columns = (120..1000).filter(|&x| rows().any(|row| is_ours(row, x)));
            let seen = columns.count();
            assert!(seen > 800, "{seen} of 880 columns, to T = {end}");
        }
    }

    #[test]
    fn empty_and_senseless_series_are_drawn_as_empty_axes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("front.png");
        front_plot(&path, "", &[], &[]).expect("nothing can be drawn");
        let senseless = [(f64::NAN, 1.0), (0.0, f64::INFINITY)];
        front_plot(&path, "", &senseless, &[experiment("none", &[])])
            .expect("nothing can be drawn");
    }

    #[test]
    fn the_axes_reach_beyond_our_curve_and_the_band_stays_inside() {
        let theirs = [experiment("one", &[(0.0, 1.0), (10.0, 15.0)])];
        let plan = Plan::new("ours", &[(0.0, 1.0), (2.0, 3.0)], &theirs);
        assert!(plan.ends.0 > 2.0 && plan.ends.0 < 3.0);
        assert!(
            plan.band()
                .iter()
                .all(|&(time, position)| time <= plan.ends.0 && position < plan.ends.1)
        );
        assert_eq!(plan.mean.last().map(|point| point.0), Some(plan.ends.0));
    }

    #[test]
    fn the_mean_counts_the_experiments_that_reach_a_place() {
        let both = [
            experiment("long", &[(0.0, 0.0), (2.0, 4.0), (4.0, 8.0)]),
            experiment("short", &[(1.0, 4.0), (3.0, 8.0)]),
        ];
        let mean = mean_curve(&both, 9.0);
        assert_eq!(
            mean,
            [(0.0, 0.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0), (4.0, 8.0)]
        );
        assert_eq!(mean_curve(&both, 1.5).last(), Some(&(1.5, 4.0)));
        assert!(mean_curve(&[], 1.0).is_empty());
    }

    #[test]
    fn a_plot_that_cannot_be_saved_names_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = front_plot(folder.path().join("nowhere/front.png"), "", &[], &[]).err();
        assert!(error.is_some_and(|error| error.to_string().contains("nowhere/front.png")));
    }
}

//! The picture of a series: time, nanoseconds per point and bytes per point.
//!
//! Time is plotted against points with both axes logarithmic, so that a cost proportional to the
//! number of points is a straight line of slope 1, like the dashed one below the curves. The other
//! panels show the same times per point, and the memory.

use super::sample::Sample;
use crate::bench::Work;
use nearfield_plot::{
    Area, Backend, COOL, DETAIL, Drawn, Error, Fault, INK, WARM,
    axis::{self, Axis},
    save_png, text,
};
use plotters::prelude::*;
use std::path::Path;

/// Width and height of the picture, in pixels.
const SIZE: (u32, u32) = (1500, 840);

/// Height of the lines above all panels and of the line above each, in pixels.
const TITLE: u32 = 122;
const HEADING: u32 = 46;
/// Width left of each panel, for numbers, in pixels; headings begin where the axis is.
const NUMBERS: u32 = 96;
/// Height below each panel for numbers, and more where the axis has a name, in pixels.
const BELOW: u32 = 44;
const NAME: u32 = 30;
/// Height between two panels, in pixels.
const GAP: u32 = 18;
/// Half the width of a marker, in pixels of the large picture.
const MARKER: i32 = 13;

type Chart<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Axis, Axis>>;

/// Points of a curve.
type Curve = Vec<(f64, f64)>;

/// Content of one panel.
struct Panel<'a> {
    heading: &'a str,
    /// Text below the axis of points, if any.
    below: Option<&'a str>,
    axes: (Axis, Axis),
    /// Formats the labels of the vertical axis.
    mark: fn(&f64) -> String,
    curves: Vec<(Work, Curve)>,
    /// A dashed line.
    guide: Option<Curve>,
}

/// Draws `samples` below two lines of text to a PNG file of 1500×840 pixels.
///
/// # Errors
/// As [`save_png`].
pub(super) fn save(path: &Path, headings: &[String; 2], samples: &[Sample]) -> Result<(), Error> {
    let points = Axis::logarithmic(samples.iter().map(|sample| sample.points as f64));
    let guide = slope_one(&curves(samples, milliseconds));
    let heights = guide.iter().map(|place| place.1);
    let times = Axis::logarithmic(samples.iter().map(milliseconds).chain(heights));
    let per_point = Axis::from_zero(samples.iter().map(|sample| sample.nanoseconds_per_point));
    let memory = Axis::from_zero(samples.iter().map(|sample| sample.bytes_per_point));
    let panel = |heading, axis: Axis, value: fn(&Sample) -> f64| Panel {
        heading,
        below: Some("points"),
        axes: (points.clone(), axis),
        mark: axis::number,
        curves: curves(samples, value),
        guide: None,
    };
    let mut main = panel("Time per step", times, milliseconds);
    main.mark = axis::duration;
    main.guide = Some(guide);
    let mut side = [
        panel("Nanoseconds per point", per_point, |sample| {
            sample.nanoseconds_per_point
        }),
        panel("Bytes per point, list entries left out", memory, |sample| {
            sample.bytes_per_point
        }),
    ];
    // The panel below it has the same axis.
    side[0].below = None;
    save_png(path, SIZE, |area| draw(area, headings, &main, &side))
}

/// Time of a step; never zero, which has no logarithm.
fn milliseconds(sample: &Sample) -> f64 {
    sample.milliseconds.total.max(1e-6)
}

/// One curve per work: `value` against points, in the order of the samples.
fn curves(samples: &[Sample], value: fn(&Sample) -> f64) -> Vec<(Work, Curve)> {
    let mut curves: Vec<(Work, Curve)> = Vec::new();
    for sample in samples {
        let place = (sample.points as f64, value(sample));
        match curves.iter_mut().find(|(work, _)| *work == sample.work) {
            Some((_, curve)) => curve.push(place),
            None => curves.push((sample.work, vec![place])),
        }
    }
    curves
}

/// A line of slope 1 from before the first to beyond the last size, at half of the lowest cost per
/// point: there it crosses no curve.
fn slope_one(curves: &[(Work, Curve)]) -> Curve {
    let places = || curves.iter().flat_map(|(_, curve)| curve);
    let ratio = 0.5 * places().map(|(x, y)| y / x).fold(f64::MAX, f64::min);
    let first = places().map(|place| place.0).fold(f64::MAX, f64::min) / 1.1;
    let last = places().map(|place| place.0).fold(0.0, f64::max) * 1.1;
    vec![(first, first * ratio), (last, last * ratio)]
}

/// A work has the same colour in all pictures.
fn color(work: Work) -> RGBColor {
    match work {
        Work::Lists => COOL[0],
        Work::Density => WARM[0],
        Work::Count => COOL[1],
        Work::Force => COOL[2],
        Work::Geometry => COOL[3],
    }
}

fn label(work: Work) -> &'static str {
    match work {
        Work::Lists => "neighbour lists",
        Work::Density => "density, no lists",
        Work::Count => "counts, no lists",
        Work::Force => "forces, no lists",
        Work::Geometry => "lists with geometry",
    }
}

fn draw<'b>(
    area: &Area<'b>,
    headings: &[String; 2],
    main: &Panel<'_>,
    side: &[Panel<'_>; 2],
) -> Drawn<'b> {
    let area = area.margin(14 * DETAIL, 8 * DETAIL, 20 * DETAIL, 36 * DETAIL);
    let (top, body) = area.split_vertically(TITLE * DETAIL);
    let at = |x: u32, y: u32| ((x * DETAIL) as i32, (y * DETAIL) as i32);
    top.draw_text(&headings[0], &text(38), at(NUMBERS, 8))?;
    top.draw_text(&headings[1], &text(26), at(NUMBERS, 60))?;
    let (left, right) = body.split_horizontally(body.dim_in_pixel().0 / 2);
    // The lower panel has a name below its axis and the gap above it; the plots are equally high.
    let without = right.dim_in_pixel().1 - (NAME + GAP) * DETAIL;
    let (above, below) = right.split_vertically(without / 2);
    let below = below.margin(GAP * DETAIL, 0, 0, 0);
    let mut chart = draw_panel(&left, main)?;
    draw_legend(&mut chart)?;
    draw_panel(&above, &side[0])?;
    draw_panel(&below, &side[1])?;
    Ok(())
}

/// Draws a heading, axes, the guide and the curves.
fn draw_panel<'a, 'b>(
    area: &'a Area<'b>,
    panel: &Panel<'_>,
) -> Result<Chart<'a, 'b>, Fault<Backend<'b>>> {
    area.draw_text(panel.heading, &text(29), ((NUMBERS * DETAIL) as i32, 0))?;
    let (across, up) = panel.axes.clone();
    let mut chart = ChartBuilder::on(area)
        .margin_top(HEADING * DETAIL)
        .x_label_area_size((BELOW + panel.below.map_or(0, |_| NAME)) * DETAIL)
        .y_label_area_size(NUMBERS * DETAIL)
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .x_desc(panel.below.unwrap_or_default())
        .axis_desc_style(text(26))
        .label_style(text(26))
        .x_label_formatter(&axis::number)
        .y_label_formatter(&panel.mark)
        .set_all_tick_mark_size(6 * DETAIL)
        .axis_style(INK.stroke_width(2 * DETAIL))
        .bold_line_style(INK.mix(0.13))
        .light_line_style(TRANSPARENT)
        .draw()?;
    if let Some(guide) = &panel.guide {
        chart
            .draw_series(DashedLineSeries::new(
                guide.iter().copied(),
                24,
                16,
                guide_style(),
            ))?
            .label("proportional to points")
            .legend(|(x, y)| {
                let dash = |at: i32| PathElement::new([(at, 0), (at + 24, 0)], guide_style());
                EmptyElement::at((x, y - 6)) + dash(0) + dash(30) + dash(60)
            });
    }
    for (work, curve) in &panel.curves {
        let color = color(*work);
        let line = color.stroke_width(4 * DETAIL);
        chart
            .draw_series(LineSeries::new(curve.iter().copied(), line))?
            .label(label(*work))
            .legend(move |(x, y)| {
                EmptyElement::at((x, y - 6))
                    + PathElement::new([(0, 0), (84, 0)], line)
                    + Circle::new((42, 0), MARKER, color.filled())
            });
        let marker = |&place: &(f64, f64)| {
            EmptyElement::at(place)
                + Circle::new((0, 0), MARKER + 4, WHITE.filled())
                + Circle::new((0, 0), MARKER, color.filled())
        };
        chart.draw_series(curve.iter().map(marker))?;
    }
    Ok(chart)
}

fn guide_style() -> ShapeStyle {
    INK.mix(0.45).stroke_width(3 * DETAIL)
}

fn draw_legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn<'b> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate(
            18 * DETAIL as i32,
            8 * DETAIL as i32,
        ))
        .margin(8 * DETAIL)
        .legend_area_size(56 * DETAIL)
        .label_font(text(27))
        .background_style(WHITE.mix(0.92))
        .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Times;

    fn sample(work: Work, points: usize, total: f64) -> Sample {
        Sample {
            points,
            work,
            radius: 2.0,
            device: "cpu".to_owned(),
            milliseconds: Times {
                build: 0.2 * total,
                search: 0.8 * total,
                total,
            },
            nanoseconds_per_point: total * 1e6 / points as f64,
            bytes_per_point: 60.0,
            pairs: 28 * points as u64,
        }
    }

    #[test]
    fn the_guide_has_slope_one_and_passes_below_the_curves() {
        let samples = [
            sample(Work::Lists, 1_000, 1.0),
            sample(Work::Density, 1_000, 4.0),
            sample(Work::Lists, 10_000, 12.0),
            sample(Work::Density, 10_000, 40.0),
        ];
        let curves = curves(&samples, milliseconds);
        let works: Vec<Work> = curves.iter().map(|(work, _)| *work).collect();
        assert_eq!(works, [Work::Lists, Work::Density]);
        let guide = slope_one(&curves);
        assert!(guide[0].0 < 1e3 && guide[1].0 > 1e4, "{guide:?}");
        for (x, y) in guide {
            assert!((y / x / 0.0005 - 1.0).abs() < 1e-9, "({x}, {y})");
        }
    }

    #[test]
    fn one_sample_of_no_duration_makes_a_picture_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.png");
        save(&path, &Default::default(), &[sample(Work::Force, 1, 0.0)]).expect("it can be drawn");
        assert!(path.exists());
    }
}

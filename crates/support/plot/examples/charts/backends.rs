//! The chart of ways to share a step: time against the points in a cell, a line per way.

use crate::table::Row;
use nearfield_plot::{
    Area, COOL, DETAIL, Drawn, INK, Line, WARM,
    axis::{self, Axis},
    draw_lines, text,
};
use plotters::prelude::*;
use std::error::Error;

/// Width and height of the picture, in pixels.
pub(crate) const SIZE: (u32, u32) = (1640, 720);

/// The ways, in the order of the table's columns, with their colours.
const WAYS: [(&str, RGBColor); 9] = [
    ("CPU", INK),
    ("GPU, flat", COOL[0]),
    ("GPU, child per cell", COOL[1]),
    ("GPU, child aggregated", COOL[2]),
    ("GPU, auto", COOL[3]),
    ("both, flat, model", WARM[0]),
    ("both, flat, band", WARM[2]),
    ("both, flat, fraction", WARM[3]),
    ("both, child per cell, model", WARM[1]),
];

/// A row of the table: a cloud, and milliseconds of density and of forces for each way.
pub(crate) struct Cloud {
    /// Points in a cell, of the clouds that the chart shows.
    points: Option<f64>,
    milliseconds: Vec<[f64; 2]>,
}

impl TryFrom<Row<10>> for Cloud {
    type Error = Box<dyn Error>;

    fn try_from([cloud, cells @ ..]: Row<10>) -> Result<Self, Self::Error> {
        let points = cloud
            .strip_prefix("lattice, ")
            .map(|name| name.replace(" points a cell", ""));
        let times = |cell: &String| -> Result<[f64; 2], Box<dyn Error>> {
            let (density, force) = cell.split_once('/').ok_or("no '/' between two times")?;
            Ok([density.parse()?, force.parse()?])
        };
        Ok(Self {
            points: points.map(|points| points.parse()).transpose()?,
            milliseconds: cells.iter().map(times).collect::<Result<_, _>>()?,
        })
    }
}

/// Draws a panel for density and one for forces.
pub(crate) fn draw<'b>(area: &Area<'b>, clouds: &[Cloud]) -> Drawn<'b> {
    let shown = || {
        let lattices = clouds.iter();
        lattices.filter_map(|cloud| Some((cloud.points?, cloud.milliseconds.as_slice())))
    };
    let across = Axis::logarithmic(shown().map(|cloud| cloud.0));
    let times = shown().flat_map(|cloud| cloud.1.as_flattened().iter().copied());
    let up = Axis::logarithmic(times);
    let area = area.margin(14 * DETAIL, 8 * DETAIL, 14 * DETAIL, 10 * DETAIL);
    let headings = ["Density: time of a step", "Pressure and viscosity force"];
    for (work, (panel, heading)) in area.split_evenly((1, 2)).iter().zip(headings).enumerate() {
        panel.draw_text(heading, &text(29), ((90 * DETAIL) as i32, 0))?;
        let mut chart = ChartBuilder::on(panel)
            .margin_top(46 * DETAIL)
            .margin_right(250 * DETAIL)
            .x_label_area_size(74 * DETAIL)
            .y_label_area_size(90 * DETAIL)
            .build_cartesian_2d(across.clone(), up.clone())?;
        chart
            .configure_mesh()
            .x_desc("points in a cell as wide as the radius")
            .axis_desc_style(text(25))
            .label_style(text(25))
            .x_label_formatter(&axis::number)
            .y_label_formatter(&axis::duration)
            .bold_line_style(INK.mix(0.13))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let line = |(way, (name, color)): (usize, (&'static str, RGBColor))| Line {
            name,
            color,
            points: shown()
                .map(|(points, times)| (points, times[way][work]))
                .collect(),
        };
        let lines: Vec<_> = WAYS.into_iter().enumerate().map(line).collect();
        draw_lines(panel, &mut chart, &lines)?;
    }
    Ok(())
}

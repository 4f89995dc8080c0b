//! The picture of the results: time against points in a cell.

use super::{Found, Way, Work};
use nearfield_plot::{DETAIL, INK, axis, axis::Axis, save_png, text};
use plotters::prelude::*;
use std::error::Error;

/// Time against points in a cell, one curve per way, density left and force right.
pub(super) fn draw(
    path: &std::path::Path,
    ways: &[Way],
    all: &[Found],
) -> Result<(), Box<dyn Error>> {
    let dense = || all.iter().filter(|found| found.occupancy.is_some());
    let across = Axis::logarithmic(dense().filter_map(|found| found.occupancy));
    let up = Axis::logarithmic(dense().map(|found| found.milliseconds));
    save_png(path, (1500, 760), |area| {
        let area = area.margin(14 * DETAIL, 8 * DETAIL, 14 * DETAIL, 26 * DETAIL);
        let (body, legend) = area.split_horizontally(1170 * DETAIL);
        let panels = body.split_evenly((1, 2));
        for (panel, (work, heading)) in panels.iter().zip([
            (Work::Density, "Density: time per step, host to host"),
            (Work::Force, "Pressure and viscosity force"),
        ]) {
            panel.draw_text(heading, &text(29), ((90 * DETAIL) as i32, 0))?;
            let mut chart = ChartBuilder::on(panel)
                .margin_top(46 * DETAIL)
                .x_label_area_size(74 * DETAIL)
                .y_label_area_size(90 * DETAIL)
                .build_cartesian_2d(across.clone(), up.clone())?;
            chart
                .configure_mesh()
                .x_desc("points in a cell of the radius' edge")
                .axis_desc_style(text(25))
                .label_style(text(25))
                .x_label_formatter(&axis::number)
                .y_label_formatter(&axis::duration)
                .bold_line_style(INK.mix(0.13))
                .light_line_style(TRANSPARENT)
                .draw()?;
            for way in ways {
                let line = way.color.stroke_width(4 * DETAIL);
                let places: Vec<_> = dense()
                    .filter(|found| found.work == work && found.way == way.name)
                    .filter_map(|found| Some((found.occupancy?, found.milliseconds)))
                    .collect();
                chart.draw_series(LineSeries::new(places, line))?;
            }
        }
        for (row, way) in ways.iter().enumerate() {
            let (x, y) = (4 * DETAIL as i32, ((60 + 34 * row as u32) * DETAIL) as i32);
            let line = way.color.stroke_width(4 * DETAIL);
            let end = x + 30 * DETAIL as i32;
            legend.draw(&PathElement::new([(x, y), (end, y)], line))?;
            let beside = (end + 8 * DETAIL as i32, y - 4 * DETAIL as i32);
            legend.draw_text(way.name, &text(21), beside)?;
        }
        Ok(())
    })?;
    Ok(())
}

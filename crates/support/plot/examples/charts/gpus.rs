//! The chart of several GPUs: every work is a line, of the speed beside that of as many single
//! GPUs.

use crate::table::Row;
use nearfield_plot::{Area, COOL, DETAIL, Drawn, FAINT, INK, WARM, text};
use plotters::prelude::*;
use std::error::Error;

/// Width and height of the picture, in pixels.
pub(crate) const SIZE: (u32, u32) = (900, 460);

/// A row of the table.
pub(crate) struct Point {
    work: String,
    gpus: f64,
    speed: f64,
}

impl TryFrom<Row> for Point {
    type Error = Box<dyn Error>;

    fn try_from([work, gpus, speed, _]: Row) -> Result<Self, Self::Error> {
        Ok(Self {
            work,
            gpus: gpus.parse()?,
            speed: speed.parse()?,
        })
    }
}

/// Draws the lines, each beside its name.
pub(crate) fn draw<'b>(area: &Area<'b>, points: &[Point]) -> Drawn<'b> {
    let detail = DETAIL as i32;
    let heading = "Speed on 1 to 4 H200s, and that many times the speed of one";
    area.draw_text(heading, &text(24), (20 * detail, 18 * detail))?;
    let most = points.iter().map(|point| point.gpus).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin_top(60 * detail)
        .margin_right(30 * detail)
        .x_label_area_size(60 * detail)
        .y_label_area_size(70 * detail)
        .build_cartesian_2d(0.8..most + 0.2, 0.0..1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT.stroke_width(2))
        .axis_style(INK.stroke_width(2))
        .x_desc("GPUs")
        .x_labels(most as usize)
        .x_label_formatter(&|gpus| {
            if gpus.fract() == 0.0 {
                gpus.to_string()
            } else {
                String::new()
            }
        })
        .label_style(text(18))
        .axis_desc_style(text(18))
        .draw()?;
    let colors = COOL.iter().chain(&WARM).cycle();
    for (work, color) in points.chunk_by(|a, b| a.work == b.work).zip(colors) {
        let line: Vec<_> = work.iter().map(|point| (point.gpus, point.speed)).collect();
        let style = color.stroke_width(3 * DETAIL);
        chart
            .draw_series(LineSeries::new(line.clone(), style))?
            .label(&work[0].work)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20 * detail, y)], style));
        let radius = 5 * detail;
        chart.draw_series(
            line.iter()
                .map(|at| Circle::new(*at, radius, color.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .margin(20 * detail)
        .legend_area_size(30 * detail)
        .label_font(text(18))
        .draw()
}

//! The chart of several GPUs: every work is a line, of the speed beside that of as many single
//! GPUs.

use crate::table::Row;
use nearfield_plot::{
    Area, COOL, DETAIL, Drawn, FAINT, INK, Line, WARM, axis::Axis, draw_lines, short, text,
};
use plotters::prelude::*;
use std::error::Error;

/// Width and height of the picture, in pixels.
pub(crate) const SIZE: (u32, u32) = (1100, 460);

/// A row of the table.
pub(crate) struct Point {
    work: String,
    gpus: f64,
    speed: f64,
}

impl TryFrom<Row<4>> for Point {
    type Error = Box<dyn Error>;

    fn try_from([work, gpus, speed, _]: Row<4>) -> Result<Self, Self::Error> {
        Ok(Self {
            work,
            gpus: gpus.parse()?,
            speed: speed.parse()?,
        })
    }
}

/// Draws the lines, with their names at their ends.
pub(crate) fn draw<'b>(area: &Area<'b>, points: &[Point]) -> Drawn<'b> {
    let detail = DETAIL as i32;
    let heading = "Speed of 1 to 4 H200s, divided by as many times the speed of one";
    area.draw_text(heading, &text(24), (20 * detail, 18 * detail))?;
    let most = points.iter().map(|point| point.gpus).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin_top(60 * detail)
        .margin_right(300 * detail)
        .x_label_area_size(60 * detail)
        .y_label_area_size(70 * detail)
        .build_cartesian_2d(Axis::linear(0.9..most + 0.1), Axis::linear(0.0..1.05))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT.stroke_width(2))
        .axis_style(INK.stroke_width(2))
        .x_desc("GPUs")
        .x_label_formatter(&|gpus| {
            if gpus.fract() == 0.0 {
                gpus.to_string()
            } else {
                String::new()
            }
        })
        .y_label_formatter(&short)
        .label_style(text(18))
        .axis_desc_style(text(18))
        .draw()?;
    let colors = COOL.iter().chain(&WARM).cycle();
    let lines: Vec<_> = (points.chunk_by(|a, b| a.work == b.work).zip(colors))
        .map(|(work, &color)| Line {
            name: &work[0].work,
            color,
            points: work.iter().map(|point| (point.gpus, point.speed)).collect(),
        })
        .collect();
    draw_lines(area, &mut chart, &lines)
}

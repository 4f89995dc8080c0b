//! The picture of a run: energies, the change of their sum, and the temperature against time.
//!
//! It shows the table of observations, so a run that went on has the picture of an unbroken one.

use crate::failure::Failure;
use nearfield_io::{Column, Table, read_table};
use nearfield_plot::{
    Area, COOL, DETAIL, Drawn, FAINT, INK, Line, WARM, axis::Axis, draw_lines, rounded, save_png,
    text,
};
use plotters::prelude::*;
use std::path::Path;

/// Width and height, pixels.
const SIZE: (u32, u32) = (1500, 460);

/// Observations that make a picture: two are the ends of a line.
const LEAST: usize = 3;

/// Points of a line.
type Points = Vec<(f64, f64)>;

/// Draws the observations of `table` to `path`, if there are enough of them to show a course.
///
/// # Errors
/// If the table cannot be read or the picture not be written.
pub(super) fn draw(path: &Path, table: &Path) -> Result<(), Failure> {
    let table = read_table(table)?;
    let column = |name: &str| of(&table, name);
    let (kinetic, potential) = (column("kinetic"), column("potential"));
    let (total, temperature) = (column("total"), column("temperature"));
    let (begin, size) = match (total.first(), kinetic.first(), potential.first()) {
        (Some(&(_, total)), Some(kinetic), Some(potential)) => {
            (total, kinetic.1.abs() + potential.1.abs())
        }
        _ => return Ok(()),
    };
    if total.len() < LEAST {
        return Ok(());
    }
    let share = |&(time, total): &(f64, f64)| (time, (total - begin) / size.max(f64::MIN_POSITIVE));
    let change: Points = total.iter().map(share).collect();
    let line = |name, color, points| Line {
        name,
        color,
        points,
    };
    let panels = [
        (
            "energy",
            vec![
                line("kinetic", WARM[0], kinetic),
                line("potential", COOL[0], potential),
                line("total", INK, total),
            ],
        ),
        (
            "change of the total, as a share of the energies",
            vec![line("", INK, change)],
        ),
        ("temperature", vec![line("", WARM[1], temperature)]),
    ];
    Ok(save_png(path, SIZE, |area| {
        for (area, (heading, lines)) in area.split_evenly((1, 3)).iter().zip(&panels) {
            panel(area, heading, lines)?;
        }
        Ok(())
    })?)
}

/// A column against time.
fn of(table: &Table, name: &str) -> Points {
    let numbers = |name| match table.place(name).map(|place| &table.columns()[place]) {
        Some(Column::Numbers(numbers)) => numbers.as_slice(),
        _ => &[],
    };
    let times = numbers("time").iter().copied();
    times.zip(numbers(name).iter().copied()).collect()
}

fn panel<'b>(area: &Area<'b>, heading: &str, lines: &[Line<'_>]) -> Drawn<'b> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(ends, |(low, high), value| (low.min(value), high.max(value)));
        let room = (0.06 * (high - low)).max(1e-12 * high.abs()).max(1e-15);
        Axis::linear(low - room..high + room)
    };
    let places = || lines.iter().flat_map(|line| line.points.iter());
    let across = range(&mut places().map(|place| place.0));
    let up = range(&mut places().map(|place| place.1));
    let named = lines.iter().any(|line| !line.name.is_empty());
    let mut chart = ChartBuilder::on(area)
        .caption(heading, text(20))
        .margin(8 * DETAIL)
        .margin_right(if named { 100 } else { 24 } * DETAIL)
        .x_label_area_size(54 * DETAIL)
        .y_label_area_size(86 * DETAIL)
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .x_desc("time")
        .axis_desc_style(text(16))
        .label_style(text(14))
        .axis_style(INK)
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_label_formatter(&|value| rounded(*value, 4))
        .y_label_formatter(&|value| match value.abs() {
            size if size != 0.0 && size < 1e-3 => format!("{value:.1e}"),
            _ => rounded(*value, 5),
        })
        .draw()?;
    draw_lines(area, &mut chart, lines)
}

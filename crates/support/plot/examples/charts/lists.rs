//! The chart of the README: every row of the table is a dot on a logarithmic axis, because times go
//! from a third of a millisecond to a second. Other programs have their ratio to Nearfield's time,
//! the last of their group.

use crate::table::Row;
use nearfield_plot::{Area, COOL, DETAIL, Drawn, FAINT, WARM, text};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::error::Error;

/// Width and height of the picture, in pixels.
pub(crate) const SIZE: (u32, u32) = (1000, 420);
/// Left end of the axis, its length, the first row's top, a row's height, in pixels.
const LEFT: i32 = 380;
const LENGTH: f64 = 485.0;
const TOP: i32 = 64;
const ROW: i32 = 30;
/// Radius of a dot, in pixels.
const DOT: i32 = 8;
/// Space between rows, and between groups of rows, in pixels.
const GAP: i32 = 8;
const BREAK: i32 = 22;
/// Value at the left end of the axis, in milliseconds, and number of decades shown.
const FIRST: f64 = 0.1;
const DECADES: f64 = 4.0;

/// A row of the table.
pub(crate) struct Time {
    group: String,
    program: String,
    milliseconds: f64,
}

impl TryFrom<Row<4>> for Time {
    type Error = Box<dyn Error>;

    fn try_from([group, program, milliseconds, _]: Row<4>) -> Result<Self, Self::Error> {
        Ok(Self {
            group,
            program,
            milliseconds: milliseconds.parse()?,
        })
    }
}

/// Place on the axis, in pixels from its left end.
fn place(milliseconds: f64) -> i32 {
    ((milliseconds / FIRST).log10() * LENGTH / DECADES).round() as i32
}

/// Draws the dots.
pub(crate) fn draw<'b>(area: &Area<'b>, times: &[Time]) -> Drawn<'b> {
    let detail = DETAIL as i32;
    let at = |x: i32, y: i32| (x * detail, y * detail);
    let heading = "Neighbour lists of a million moving points, milliseconds (logarithmic)";
    area.draw_text(heading, &text(24), at(20, 18))?;
    let right = text(20).pos(Pos::new(HPos::Right, VPos::Center));
    let left = text(20).pos(Pos::new(HPos::Left, VPos::Center));
    let bottom = SIZE.1 as i32 - 30;
    for decade in 0..=DECADES as i32 {
        let value = FIRST * 10f64.powi(decade);
        let x = LEFT + place(value);
        area.draw(&PathElement::new(
            vec![at(x, TOP - 8), at(x, bottom)],
            FAINT.stroke_width(2),
        ))?;
        let below = text(16).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&value.to_string(), &below, at(x, bottom + 4))?;
    }
    let mut top = TOP;
    let mut group = "";
    for time in times {
        if time.group != group {
            top += if group.is_empty() { 0 } else { BREAK - GAP };
            area.draw_text(&time.group, &left, at(20, top + ROW / 2))?;
            group = &time.group;
        }
        let own = time.program.starts_with("Nearfield");
        let (color, middle) = (if own { COOL[0] } else { WARM[3] }, top + ROW / 2);
        let (x, end) = (LEFT + place(time.milliseconds), LEFT + LENGTH as i32);
        area.draw_text(&time.program, &right, at(LEFT - 10, middle))?;
        let line = vec![at(LEFT, middle), at(end, middle)];
        area.draw(&PathElement::new(line, FAINT.stroke_width(2)))?;
        area.draw(&Circle::new(at(x, middle), DOT * detail, color.filled()))?;
        let is_ours = |other: &&Time| other.group == time.group && other.program == "Nearfield";
        let ours = times.iter().rfind(is_ours);
        let value = match ours.filter(|_| !own) {
            Some(ours) => {
                let ratio = time.milliseconds / ours.milliseconds;
                format!("{} ({ratio:.1} ×)", time.milliseconds)
            }
            None => time.milliseconds.to_string(),
        };
        area.draw_text(&value, &left, at(x + DOT + 8, middle))?;
        top += ROW + GAP;
    }
    Ok(())
}

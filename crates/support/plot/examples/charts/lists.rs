//! The chart of the README: every row of the table is a bar. Bars have a logarithmic axis, because
//! they go from half a millisecond to a second.

use crate::table::Row;
use nearfield_plot::{Area, COOL, DETAIL, Drawn, FAINT, WARM, text};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::error::Error;

/// Width and height of the picture, in pixels.
pub(crate) const SIZE: (u32, u32) = (1000, 420);
/// Left end of the bars, their greatest length, the first bar's top, a bar's height, in pixels.
const LEFT: i32 = 380;
const LENGTH: f64 = 500.0;
const TOP: i32 = 64;
const BAR: i32 = 30;
/// Space between bars, and between groups of bars, in pixels.
const GAP: i32 = 8;
const BREAK: i32 = 22;
/// Value at the left end of the bars, in milliseconds, and number of decades shown.
const FIRST: f64 = 0.1;
const DECADES: f64 = 4.0;

/// A row of the table.
pub(crate) struct Bar {
    group: String,
    program: String,
    milliseconds: f64,
}

impl TryFrom<Row> for Bar {
    type Error = Box<dyn Error>;

    fn try_from([group, program, milliseconds, _]: Row) -> Result<Self, Self::Error> {
        Ok(Self {
            group,
            program,
            milliseconds: milliseconds.parse()?,
        })
    }
}

/// Length of a bar, in pixels.
fn length(milliseconds: f64) -> i32 {
    ((milliseconds / FIRST).log10() * LENGTH / DECADES).round() as i32
}

/// Draws the bars.
pub(crate) fn draw<'b>(area: &Area<'b>, bars: &[Bar]) -> Drawn<'b> {
    let detail = DETAIL as i32;
    let at = |x: i32, y: i32| (x * detail, y * detail);
    let heading = "Neighbour lists of a million moving points, milliseconds (logarithmic)";
    area.draw_text(heading, &text(24), at(20, 18))?;
    let right = text(20).pos(Pos::new(HPos::Right, VPos::Center));
    let left = text(20).pos(Pos::new(HPos::Left, VPos::Center));
    let bottom = SIZE.1 as i32 - 30;
    for decade in 0..=DECADES as i32 {
        let value = FIRST * 10f64.powi(decade);
        let x = LEFT + length(value);
        area.draw(&PathElement::new(
            vec![at(x, TOP - 8), at(x, bottom)],
            FAINT.stroke_width(2),
        ))?;
        let below = text(16).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&value.to_string(), &below, at(x, bottom + 4))?;
    }
    let mut top = TOP;
    let mut group = "";
    for bar in bars {
        if bar.group != group {
            top += if group.is_empty() { 0 } else { BREAK - GAP };
            area.draw_text(&bar.group, &left, at(20, top + BAR / 2))?;
            group = &bar.group;
        }
        let own = bar.program.starts_with("Nearfield");
        let color = if own { COOL[0] } else { WARM[3] };
        let end = LEFT + length(bar.milliseconds);
        area.draw_text(&bar.program, &right, at(LEFT - 10, top + BAR / 2))?;
        area.draw(&Rectangle::new(
            [at(LEFT, top), at(end, top + BAR)],
            color.filled(),
        ))?;
        let value = bar.milliseconds.to_string();
        area.draw_text(&value, &left, at(end + 8, top + BAR / 2))?;
        top += BAR + GAP;
    }
    Ok(())
}

//! Draws the chart of the README from the table "The chart of the README" of
//! docs/measurements/README.md.
//!
//! ```sh
//! cargo run --release -p nearfield-plot --example readme_chart    # writes docs/images/lists.png
//! ```
//!
//! Every row of the table is a bar. Bars have a logarithmic axis, because they go from half a
//! millisecond to a second.

use nearfield_plot::{Area, COOL, DETAIL, Drawn, FAINT, WARM, save_png, text};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use std::{error::Error, path::Path};

/// Width and height of the picture, in pixels.
const SIZE: (u32, u32) = (1000, 420);
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
struct Bar {
    group: String,
    program: String,
    milliseconds: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let bars = read(&std::fs::read_to_string(
        docs.join("measurements/README.md"),
    )?)?;
    save_png(&docs.join("images/lists.png"), SIZE, |area| {
        draw(area, &bars)
    })?;
    Ok(())
}

/// The rows of the table below the heading.
fn read(page: &str) -> Result<Vec<Bar>, Box<dyn Error>> {
    let (_, below) = page
        .split_once("## The chart of the README")
        .ok_or("docs/measurements/README.md has no chart of the README")?;
    let rows = below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let &[group, program, milliseconds, _] = cells.as_slice() else {
            return Err(format!("four cells expected: {row}").into());
        };
        Ok(Bar {
            group: group.into(),
            program: program.into(),
            milliseconds: milliseconds.parse()?,
        })
    })
    .collect()
}

/// Length of a bar, in pixels.
fn length(milliseconds: f64) -> i32 {
    ((milliseconds / FIRST).log10() * LENGTH / DECADES).round() as i32
}

fn draw<'b>(area: &Area<'b>, bars: &[Bar]) -> Drawn<'b> {
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

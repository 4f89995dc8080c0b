//! Lines that are told apart without colours: each has markers of its own shape, and its name at
//! its end.
//!
//! Names that would overlap move apart; a thin line then leads from the end to the name.

use crate::{DETAIL, Fault, INK, text};
use plotters::{
    coord::{Shift, ranged1d::Ranged},
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its name, written at its end; an empty one needs no room.
    pub name: &'a str,
    /// Its colour.
    pub color: RGBColor,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Half the width of a marker, in pixels of the large picture.
const MARKER: i32 = 11;
/// Maximum number of markers on a line.
const MARKERS: usize = 12;
/// Height of the letters of names, and least distance between two, in pixels.
const LETTERS: u32 = 18;
const GAP: i32 = 22 * DETAIL as i32;
/// Distance of the names from the ends, in pixels of the large picture.
const AWAY: i32 = 26;

/// Corners of a marker around its middle, about `size` pixels from it; each of the first seven
/// numbers has a shape of its own.
pub fn marker(number: usize, size: i32) -> Vec<(i32, i32)> {
    let corners: &[(i32, i32)] = match number % 7 {
        0 => {
            let turn = |corner: i32| std::f64::consts::TAU * f64::from(corner) / 32.0;
            let reach = |share: f64| (f64::from(size) * share).round() as i32;
            let corner = |at: i32| (reach(turn(at).cos()), reach(turn(at).sin()));
            return (0..32).map(corner).collect();
        }
        1 => &[(0, -7), (6, 4), (-6, 4)],
        2 => &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
        3 => &[(0, -7), (7, 0), (0, 7), (-7, 0)],
        4 => &[(0, 7), (6, -4), (-6, -4)],
        5 => &[(-7, -2), (7, -2), (7, 2), (-7, 2)],
        _ => &[(-2, -7), (2, -7), (2, 7), (-2, 7)],
    };
    let scaled = |&(x, y): &(i32, i32)| (x * size / 5, y * size / 5);
    corners.iter().map(scaled).collect()
}

/// Draws lines in a chart of the area `around`, which has room for the names to the right.
///
/// # Errors
/// Errors of the backend.
pub fn draw_lines<B: DrawingBackend, X, Y>(
    around: &DrawingArea<B, Shift>,
    chart: &mut ChartContext<'_, B, Cartesian2d<X, Y>>,
    lines: &[Line<'_>],
) -> Result<(), Fault<B>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for line in lines {
        let style = line.color.stroke_width(3 * DETAIL);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
    }
    // A line that is alone needs none.
    let marked = if lines.len() > 1 { lines } else { &[] };
    for (number, line) in marked.iter().enumerate() {
        for (size, color) in [(MARKER + 3, WHITE), (MARKER, line.color)] {
            let of =
                |&at: &(f64, f64)| EmptyElement::at(at) + Polygon::new(marker(number, size), color);
            let every = line.points.len().div_ceil(MARKERS).max(1);
            chart.draw_series(line.points.iter().step_by(every).map(of))?;
        }
    }
    let (columns, rows) = around.get_pixel_range();
    let named = lines
        .iter()
        .filter_map(|line| Some((line, line.points.last()?)));
    let named: Vec<_> = named
        .map(|(line, end)| {
            let (x, y) = chart.backend_coord(end);
            (line, (x - columns.start, y - rows.start))
        })
        .collect();
    let right = named.iter().map(|(_, end)| end.0).max().unwrap_or(0) + AWAY;
    let heights: Vec<i32> = named.iter().map(|(_, end)| end.1).collect();
    let style = text(LETTERS).pos(Pos::new(HPos::Left, VPos::Center));
    for ((line, end), height) in named.iter().zip(apart(&heights, GAP)) {
        if line.name.is_empty() {
            continue;
        }
        let lead = [(end.0 + MARKER, end.1), (right + 4, height)];
        around.draw(&PathElement::new(lead, INK.mix(0.35).stroke_width(DETAIL)))?;
        around.draw_text(line.name, &style, (right + 10, height))?;
    }
    Ok(())
}

/// Heights near the given ones, in the same order, that are at least `gap` apart.
fn apart(wanted: &[i32], gap: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&name| wanted[name]);
    // Groups of names that touch, around the mean of what they want: the sum, and the members.
    let mut groups: Vec<(i64, Vec<usize>)> = Vec::new();
    let top = |(sum, names): &(i64, Vec<usize>)| {
        let count = names.len() as i64;
        sum / count - i64::from(gap) * (count - 1) / 2
    };
    for name in order {
        let mut group = (i64::from(wanted[name]), vec![name]);
        while let Some(before) = groups.pop() {
            if top(&before) + i64::from(gap) * before.1.len() as i64 <= top(&group) {
                groups.push(before);
                break;
            }
            let names = before.1.into_iter().chain(group.1).collect();
            group = (before.0 + group.0, names);
        }
        groups.push(group);
    }
    let mut heights = vec![0; wanted.len()];
    for group in &groups {
        for (place, &name) in group.1.iter().enumerate() {
            heights[name] = (top(group) + i64::from(gap) * place as i64) as i32;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_move_no_more_than_they_must() {
        assert_eq!(apart(&[100, 10, 300], 20), [100, 10, 300]);
        assert_eq!(apart(&[100, 100], 20), [90, 110]);
        assert_eq!(apart(&[102, 98, 100, 119], 20), [114, 74, 94, 134]);
        assert_eq!(apart(&[], 20), [0; 0]);
        let crowd: Vec<i32> = (0..9).map(|name| 50 + name * 7 % 5).collect();
        let mut heights = apart(&crowd, 12);
        heights.sort_unstable();
        assert!(
            heights.windows(2).all(|two| two[1] - two[0] == 12),
            "{heights:?}"
        );
    }

    #[test]
    fn every_line_has_its_colour_and_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines.png");
        let line = |name, color, height| Line {
            name,
            color,
            points: vec![(0.0, height), (1.0, height)],
        };
        let lines = [
            line("a", crate::COOL[0], 0.2),
            line("b", crate::WARM[0], 0.8),
        ];
        crate::save_png(&path, (300, 200), |area| {
            let mut chart = ChartBuilder::on(area)
                .margin_right(80 * DETAIL)
                .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
            draw_lines(area, &mut chart, &lines)
        })
        .expect("it can be drawn");
        let picture = crate::Picture::read_png(&path).expect("it is a PNG file");
        let count = |wanted: RGBColor| {
            let is = |pixel: &&crate::Pixel| **pixel == [wanted.0, wanted.1, wanted.2];
            picture.pixels().iter().filter(is).count()
        };
        assert!(count(crate::COOL[0]) > 400 && count(crate::WARM[0]) > 400);
        let names = picture.pixels().chunks(300).flat_map(|row| &row[230..]);
        assert!(
            names.filter(|pixel| pixel[0] < 200).count() > 20,
            "the names"
        );
    }
}

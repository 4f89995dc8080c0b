//! Drawn over the scene: the tank's outline, labels, and the colour bar.

use glam::{UVec2, Vec2, Vec3};
use nearfield_plot::Picture;

use super::colors::{SpeedColors, from_hex};
use super::frame::{Frame, MARGIN, View, label_unit};
use super::shading::Canvas;
use super::stage::Stage;
use super::text::{self, Anchor, Style};

/// A line's width in samples and its opacity.
#[derive(Clone, Copy)]
struct Pen {
    width: f32,
    opacity: f32,
}

/// A smooth line, tested against the depth of the fluid.
pub(super) struct Line {
    /// View points of its ends.
    ends: [Vec3; 2],
    pen: Pen,
    color: Vec3,
    /// Depth by which it may lie behind what is seen and still be drawn.
    slack: f32,
}

/// The tank's edges and floor grid, which show where no fluid lies in front.
pub(super) fn outline(stage: &Stage<'_>) -> Vec<Line> {
    let unit = stage.hits.height as f32 / 720.0;
    let grid = Pen {
        width: (0.9 * unit).max(1.2),
        opacity: 0.10,
    };
    let edge = Pen {
        width: (1.5 * unit).max(2.2),
        opacity: 0.62,
    };
    // Seen flat, the outline lies over the particles that touch it.
    let forward = if stage.view == View::Side2d {
        Vec3::NEG_Y * 2.0 * stage.radius
    } else {
        Vec3::ZERO
    };
    let color = from_hex(0xc9dcf0);
    let line = |ends: [Vec3; 2], pen, forward| Line {
        ends: ends.map(|end| stage.camera.view(end + forward)),
        pen,
        color,
        slack: 0.0,
    };
    let grid = (stage.tank.floor_grid().into_iter()).map(|ends| line(ends, grid, Vec3::ZERO));
    let edges = (stage.tank.edges().into_iter()).map(|ends| line(ends, edge, forward));
    let boxes = (stage.blocks.iter()).flat_map(|&corners| stage.tank.box_edges(corners));
    // Edges of a box lie in its faces.
    let boxes = boxes.map(|ends| Line {
        slack: stage.radius,
        ..line(ends, edge, Vec3::ZERO)
    });
    grid.chain(edges).chain(boxes).collect()
}

impl Line {
    /// Draws the part of the line that crosses these rows.
    pub(super) fn draw(&self, stage: &Stage<'_>, canvas: &mut Canvas) {
        let Self {
            ends,
            pen,
            color,
            slack,
        } = *self;
        let [from, to] = ends.map(|view| stage.camera.pixel(view));
        let length = (to - from).length();
        if !(length > 0.0 && length.is_finite()) {
            return;
        }
        let along = (to - from) / length;
        // One pass along the steeper axis visits every sample near the line once.
        let major = if along.x.abs() >= along.y.abs() { 0 } else { 1 };
        let minor = 1 - major;
        let rows = canvas.colors.len() / canvas.width.max(1);
        let first = [0, canvas.first as i32];
        let end = [canvas.width as i32, (canvas.first + rows) as i32];
        let reach = ((0.5 * pen.width + 1.0) / along[major].abs()).ceil() as i32;
        let (low, high) = (from[major].min(to[major]), from[major].max(to[major]));
        let steps =
            (low.floor() as i32).max(first[major])..=(high.ceil() as i32).min(end[major] - 1);
        for step in steps {
            let middle =
                from[minor] + (step as f32 + 0.5 - from[major]) * along[minor] / along[major];
            let sides = (middle as i32 - reach).max(first[minor])
                ..=(middle as i32 + reach).min(end[minor] - 1);
            for side in sides {
                let (column, row) = if major == 0 {
                    (step, side)
                } else {
                    (side, step)
                };
                let offset = Vec2::new(column as f32 + 0.5, row as f32 + 0.5) - from;
                let share = offset.dot(along) / length;
                let overshoot = (-share).max(share - 1.0).max(0.0) * length;
                let coverage = (0.5 * pen.width + 0.5
                    - offset.perp_dot(along).abs().max(overshoot))
                .clamp(0.0, 1.0);
                let depth = depth_between(ends, share.clamp(0.0, 1.0));
                let hidden = stage.hits.depth(column, row) + slack < depth;
                if coverage > 0.0 && !hidden {
                    let row = row as usize - canvas.first;
                    let sample = &mut canvas.colors[row * canvas.width + column as usize];
                    *sample = sample.lerp(color, pen.opacity * coverage);
                }
            }
        }
    }
}

/// Depth at a share of a line's picture: its inverse is linear there.
fn depth_between([from, to]: [Vec3; 2], share: f32) -> f32 {
    1.0 / (1.0 / from.z + (1.0 / to.z - 1.0 / from.z) * share)
}

/// Draws time, caption and colour bar onto the finished picture.
pub(super) fn labels(frame: &Frame<'_>, picture: &mut Picture) {
    let size = UVec2::from(picture.size()).as_vec2();
    let unit = label_unit(size);
    let strong = Style {
        size: 31.0 * unit,
        color: from_hex(0xf2f6fa),
    };
    let quiet = Style {
        size: (20.0 * unit).max(11.5),
        color: from_hex(0xa9bacb),
    };
    let margin = MARGIN * unit;
    let time = Vec2::new(margin, margin + 0.6 * strong.size);
    let end = text::draw(
        picture,
        &format!("t = {:.2} s", frame.time_s),
        time,
        Anchor::Left,
        strong,
    );
    let scaled = format!("T = {:.2}", frame.dimensionless_time);
    let gap = Vec2::X * (end + strong.size);
    text::draw(
        picture,
        &scaled,
        time + gap,
        Anchor::Left,
        Style {
            color: quiet.color,
            ..strong
        },
    );
    text::draw(
        picture,
        frame.caption,
        time + Vec2::Y * 1.55 * quiet.size,
        Anchor::Left,
        quiet,
    );
    color_bar(
        picture,
        frame.top_speed,
        Vec2::new(size.x - margin, margin),
        unit,
        quiet,
    );
}

/// Draws the speed map with its right top corner at `corner`.
fn color_bar(picture: &mut Picture, top_speed: f32, corner: Vec2, unit: f32, style: Style) {
    let map = SpeedColors::new();
    let (long, thick) = ((250.0 * unit) as i32, (11.0 * unit).max(4.0) as i32);
    let (left, top) = (corner.x as i32 - long, corner.y as i32);
    for column in 0..long {
        let color = map.at(column as f32 / (long - 1).max(1) as f32);
        for row in 0..thick {
            let corner = (column == 0 || column == long - 1) && (row == 0 || row == thick - 1);
            text::cover(
                picture,
                left + column,
                top + row,
                color,
                if corner { 0.4 } else { 1.0 },
            );
        }
    }
    let baseline = (top + thick) as f32 + 1.05 * style.size;
    // Faster water has the last colour.
    let top_label = if top_speed >= 10.0 {
        format!("≥ {top_speed:.0} m/s")
    } else {
        format!("≥ {top_speed:.1} m/s")
    };
    text::draw(
        picture,
        "0",
        Vec2::new(left as f32, baseline),
        Anchor::Left,
        style,
    );
    text::draw(
        picture,
        "speed",
        Vec2::new(left as f32 + 0.5 * long as f32, baseline),
        Anchor::Middle,
        style,
    );
    text::draw(
        picture,
        &top_label,
        Vec2::new(corner.x, baseline),
        Anchor::Right,
        style,
    );
}

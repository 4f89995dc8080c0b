//! Text drawn with an embedded font, so that no system font is needed.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use glam::{Vec2, Vec3};
use nearfield_plot::{FONT_FILE, Picture};

use super::colors::{from_pixel, to_pixel};

/// The font of all text; the file is part of the program and covered by a test.
static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(FONT_FILE).expect("the embedded font is a TrueType file")
});

/// The part of a line of text that is at the given place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchor {
    /// Its left end.
    Left,
    /// Its middle.
    Middle,
    /// Its right end.
    Right,
}

/// Height of the letters' line in pixels and their linear colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) size: f32,
    pub(super) color: Vec3,
}

/// Draws one line of text with `anchor` at `baseline`, in pixels; returns its
/// width. Letters outside the picture are cut off.
pub(super) fn draw(
    picture: &mut Picture,
    text: &str,
    baseline: Vec2,
    anchor: Anchor,
    style: Style,
) -> f32 {
    let width = width(text, style.size);
    let shift = match anchor {
        Anchor::Left => 0.0,
        Anchor::Middle => 0.5 * width,
        Anchor::Right => width,
    };
    let mut pen = baseline - Vec2::X * shift;
    for (letter, advance) in letters(text, style.size) {
        pen.x += advance.before;
        let glyph = letter.with_scale_and_position(PxScale::from(style.size), point(pen.x, pen.y));
        if let Some(outline) = FONT.outline_glyph(glyph) {
            let low = outline.px_bounds().min;
            outline.draw(|x, y, coverage| {
                cover(
                    picture,
                    low.x as i32 + x as i32,
                    low.y as i32 + y as i32,
                    style.color,
                    coverage,
                );
            });
        }
        pen.x += advance.after;
    }
    width
}

/// Width of one line of text, in pixels.
pub(super) fn width(text: &str, size: f32) -> f32 {
    letters(text, size)
        .map(|(_, advance)| advance.before + advance.after)
        .sum()
}

/// Way of the pen around one letter: kerning before it, its width after.
struct Advance {
    before: f32,
    after: f32,
}

fn letters(text: &str, size: f32) -> impl Iterator<Item = (ab_glyph::GlyphId, Advance)> {
    let font = FONT.as_scaled(size);
    let mut previous = None;
    text.chars().map(move |letter| {
        let glyph = font.glyph_id(letter);
        let before = previous.map_or(0.0, |previous| font.kern(previous, glyph));
        previous = Some(glyph);
        (
            glyph,
            Advance {
                before,
                after: font.h_advance(glyph),
            },
        )
    })
}

/// Blends a colour over a pixel, in linear light.
pub(super) fn cover(picture: &mut Picture, column: i32, row: i32, color: Vec3, coverage: f32) {
    if let Some(pixel) = picture.pixel_mut(column, row) {
        *pixel = to_pixel(from_pixel(*pixel).lerp(color, coverage.clamp(0.0, 1.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Style = Style {
        size: 20.0,
        color: Vec3::ONE,
    };

    #[test]
    fn the_font_has_every_sign_the_labels_use() {
        for letter in "abcXYZ 0123456789 .,=·√±×−%²³°/()µ–"
            .chars()
            .filter(|letter| !letter.is_whitespace())
        {
            assert_ne!(FONT.glyph_id(letter).0, 0, "{letter:?} is missing");
        }
    }

    #[test]
    fn an_anchor_moves_the_text_by_its_width() {
        let ink = |anchor| {
            let mut picture = Picture::new(200, 40);
            draw(
                &mut picture,
                "T = 1.87",
                Vec2::new(100.0, 30.0),
                anchor,
                WHITE,
            );
            let columns = (picture.pixels().iter().enumerate())
                .filter(|(_, pixel)| pixel[0] > 60)
                .map(|(place, _)| place as u32 % 200);
            (
                columns.clone().min().unwrap_or(0),
                columns.max().unwrap_or(0),
            )
        };
        assert!(ink(Anchor::Left).0 >= 100);
        assert!(ink(Anchor::Right).1 <= 100);
        let (low, high) = ink(Anchor::Middle);
        assert!((low + high).abs_diff(200) <= 3, "{low} {high}");
    }

    #[test]
    fn text_beyond_the_edge_is_cut_off() {
        let mut picture = Picture::new(10, 10);
        draw(
            &mut picture,
            "a long line of text",
            Vec2::new(-30.0, 4.0),
            Anchor::Left,
            WHITE,
        );
        draw(
            &mut Picture::new(0, 0),
            "text",
            Vec2::ZERO,
            Anchor::Left,
            WHITE,
        );
    }
}

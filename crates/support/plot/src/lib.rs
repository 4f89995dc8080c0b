//! Shared parts of the plots of Nearfield: one embedded font, one set of colours on white, smooth
//! edges.
//!
//! [`save_png`] provides an area of the drawing library `plotters` that is larger than the picture
//! by [`DETAIL`] along both axes, and averages it down. So lengths for `plotters` must be
//! multiplied by [`DETAIL`]; [`text`] does that itself. No system font is needed, so a plot looks
//! the same everywhere.

#![forbid(unsafe_code)]

pub mod axis;
mod error;
mod lines;
mod picture;

pub use error::{Error, ErrorKind};
pub use lines::{Line, draw_lines, marker};
pub use picture::{Picture, Pixel};

use plotters::{
    coord::Shift,
    prelude::*,
    style::{FontStyle, register_font},
};
use std::{io, path::Path};

/// The TrueType file of all text.
pub const FONT_FILE: &[u8] = epaint_default_fonts::UBUNTU_LIGHT;

/// Everything is drawn this many times larger and averaged, for smooth edges.
pub const DETAIL: u32 = 2;

/// Text and axes.
pub const INK: RGBColor = RGBColor(0x2b, 0x33, 0x3d);
/// Borders that should not be noticed.
pub const FAINT: RGBColor = RGBColor(0xe3, 0xe8, 0xee);
/// Colours of curves, in turn; all as dark.
pub const COOL: [RGBColor; 4] = [
    RGBColor(0x1f, 0x6f, 0xc4),
    RGBColor(0x12, 0x93, 0x7f),
    RGBColor(0x7a, 0x4f, 0xb5),
    RGBColor(0x3a, 0x3f, 0x8f),
];
/// Colours of curves for comparison, in turn; none resembles one of [`COOL`].
pub const WARM: [RGBColor; 4] = [
    RGBColor(0xd4, 0x5a, 0x1c),
    RGBColor(0xb0, 0x2a, 0x5b),
    RGBColor(0x8a, 0x6d, 0x00),
    RGBColor(0x55, 0x55, 0x55),
];

/// Name under which the embedded font is known to the drawing library.
const FONT: &str = "nearfield";

/// Fonts of SVG files, as an attribute: the embedded one where it is installed, or one as wide.
const SVG_FONTS: &str = "\"Ubuntu, 'DejaVu Sans', Verdana, sans-serif\"";

/// The backend that draws.
pub type Backend<'b> = BitMapBackend<'b>;

/// The area of a plot or of a part of it.
pub type Area<'b> = DrawingArea<Backend<'b>, Shift>;

/// Result of drawing.
pub type Drawn<'b> = Result<(), DrawingAreaErrorKind<<Backend<'b> as DrawingBackend>::ErrorType>>;

/// Why drawing on this backend fails.
pub type Fault<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;

/// A plot that can be drawn on any backend, for those that are saved in several formats.
pub trait Plot {
    /// Draws it on an area [`DETAIL`] times as large as the plot along both axes.
    ///
    /// # Errors
    /// Errors of the backend.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Fault<B>>;
}

/// Draws a plot of `size` (width and height in pixels) on white and saves it as a PNG file,
/// whatever the path's extension. The area handed to `draw` is [`DETAIL`] times as large along both
/// axes.
///
/// # Errors
/// [`ErrorKind::Draw`] when drawing fails, [`ErrorKind::Write`] when saving does.
pub fn save_png(
    path: &Path,
    size: (u32, u32),
    draw: impl for<'b> FnOnce(&Area<'b>) -> Drawn<'b>,
) -> Result<(), Error> {
    let failed = |reason| failure(path, reason);
    know_font().map_err(failed)?;
    let large = (size.0 * DETAIL, size.1 * DETAIL);
    check_room(path, large)?;
    let mut picture = Picture::new(large.0, large.1);
    let pixels = picture.pixels_mut().as_flattened_mut();
    paint(pixels, large, draw).map_err(|error| failed(error.to_string()))?;
    let bytes = picture.reduced(DETAIL).to_png();
    let bytes = bytes.map_err(|error| failed(error.to_string()))?;
    nearfield_files::write(path, bytes).map_err(|error| unwritten(path, error))
}

/// Refuses a picture that memory is too short for before it is drawn: the libraries that draw and
/// encode would end the process.
fn check_room(path: &Path, (width, height): (u32, u32)) -> Result<(), Error> {
    // The large image, the saved one, and the memory for encoding.
    let bytes = 2 * 3 * width as usize * height as usize + (4 << 20);
    nearfield_files::ask_for_memory(bytes, "the picture").map_err(|error| unwritten(path, error))
}

/// Draws a plot of `size` (width and height in pixels) on white and saves it as an SVG file,
/// whatever the path's extension. Text stays text, in the font that is embedded elsewhere or the
/// viewer's own.
///
/// # Errors
/// [`ErrorKind::Draw`] when drawing fails, [`ErrorKind::Write`] when saving does.
pub fn save_svg(path: &Path, size: (u32, u32), plot: &impl Plot) -> Result<(), Error> {
    let failed = |reason| failure(path, reason);
    know_font().map_err(failed)?;
    let large = (size.0 * DETAIL, size.1 * DETAIL);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, large).into_drawing_area();
        area.fill(&WHITE)
            .and_then(|()| plot.draw(&area))
            .and_then(|()| area.present())
            .map_err(|error| failed(error.to_string()))?;
    }
    let [drawn, shown] = [large, size].map(|(w, h)| format!("width=\"{w}\" height=\"{h}\""));
    let text = text
        .replacen(&drawn, &shown, 1)
        .replace(&format!("\"{FONT}\""), SVG_FONTS);
    nearfield_files::write(path, text).map_err(|error| unwritten(path, error))
}

fn failure(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    ErrorKind::Draw { path, reason }.into()
}

fn unwritten(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    ErrorKind::Write { path, source }.into()
}

fn know_font() -> Result<(), String> {
    register_font(FONT, FontStyle::Normal, FONT_FILE)
        .map_err(|_| "the embedded font cannot be read".into())
}

fn paint<'b>(
    buffer: &'b mut [u8],
    size: (u32, u32),
    draw: impl FnOnce(&Area<'b>) -> Drawn<'b>,
) -> Drawn<'b> {
    let area = BitMapBackend::with_buffer(buffer, size).into_drawing_area();
    area.fill(&WHITE)?;
    draw(&area)?;
    area.present()
}

/// Text in the embedded font, `size` pixels high in the finished plot.
pub fn text(size: u32) -> TextStyle<'static> {
    (FONT, size * DETAIL).into_font().color(&INK)
}

/// A number with at most three decimals and without needless zeros, for axes.
pub fn short(value: &f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

/// A number rounded to `digits` significant digits, without needless zeros and exponents.
pub fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    text.parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_the_size_asked_for_and_smooth_edges_on_white() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plot.any");
        save_png(&path, (60, 40), |area| {
            area.draw(&Circle::new((60, 40), 21, INK.filled()))
        })
        .expect("it can be drawn");
        let picture = Picture::read_png(&path).expect("it is a PNG file");
        assert_eq!(picture.size(), (60, 40));
        let reds = || picture.pixels().iter().map(|pixel| pixel[0]);
        let count = |wanted: fn(u8) -> bool| reds().filter(|&red| wanted(red)).count();
        assert_eq!(picture.pixels()[0], [255; 3]);
        assert!(count(|red| red == INK.0) > 200, "the disc");
        assert!(count(|red| red > INK.0 && red < 255) > 10, "its edge");
    }

    struct Disc;

    impl Plot for Disc {
        fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Fault<B>> {
            area.draw(&Circle::new((60, 40), 21, INK.filled()))?;
            area.draw_text("one & two", &text(10), (0, 0))
        }
    }

    #[test]
    fn an_svg_file_has_the_size_asked_for_and_text_in_a_font_that_viewers_know() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plot.svg");
        save_svg(&path, (60, 40), &Disc).expect("it can be drawn");
        let text = std::fs::read_to_string(&path).expect("it exists");
        assert!(
            text.starts_with("<svg width=\"60\" height=\"40\" viewBox=\"0 0 120 80\""),
            "{text}"
        );
        assert!(text.contains("<circle") && text.contains("one &amp; two"));
        assert!(text.contains("font-family=\"Ubuntu,") && !text.contains(FONT));
        let error = save_svg(&folder.path().join("no/plot.svg"), (60, 40), &Disc);
        assert!(error.is_err_and(|error| error.to_string().contains("no/plot.svg")));
    }

    #[test]
    fn a_plot_that_cannot_be_saved_names_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nowhere/plot.png");
        let error = save_png(&path, (10, 10), |_| Ok(())).expect_err("no such folder");
        let ErrorKind::Write {
            path: named,
            source,
        } = error.kind()
        else {
            panic!("{error}")
        };
        assert_eq!((named, source.kind()), (&path, io::ErrorKind::NotFound));
        let text = format!("cannot draw the plot {}: {source}", path.display());
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_plot_that_cannot_be_drawn_names_its_file_and_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plot.png");
        let error = save_png(&path, (10, 10), |_| Err(DrawingAreaErrorKind::LayoutError))
            .expect_err("it is not drawn");
        assert!(matches!(error.kind(), ErrorKind::Draw { .. }), "{error}");
        let reason = Fault::<Backend<'_>>::LayoutError;
        let text = format!("cannot draw the plot {}: {reason}", path.display());
        assert_eq!(error.to_string(), text);
        assert!(!path.exists());
    }

    #[test]
    fn numbers_have_no_needless_zeros() {
        let texts = [0.1 + 0.2, 20.0, 0.0004, 1.25].map(|value| short(&value));
        assert_eq!(texts, ["0.3", "20", "0", "1.25"]);
        let texts = [0.1 + 0.2, 123_456.0, 0.00049, -9.99].map(|value| rounded(value, 2));
        assert_eq!(texts, ["0.3", "120000", "0.00049", "-10"]);
        assert_eq!(rounded(f64::NAN, 0), "NaN");
    }
}

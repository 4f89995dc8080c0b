//! A page that shows points in a browser, at one moment or at many: one file that needs no other.
//!
//! The file is written front to back, frame by frame, and a browser draws the first frame while it
//! loads the others. Frames are packed by `frame.rs`, a few bytes a point, and drawn with WebGL.
//! **Invariant others rely on:** no text of the caller can end or change the page's code: it is
//! escaped.

mod frame;
mod scale;

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use nearfield_files::NewFile;
use quick_xml::escape::escape;

use crate::{
    error::{Error, Fault, Parsed},
    number::Numbers,
    point_data::{PointData, Values},
};

use frame::Points;
pub use scale::{Detail, Scale};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("data.js"),
    include_str!("scene.js"),
    include_str!("charts.js"),
    include_str!("page.js"),
];

/// A page that is about to be written: what all of its frames have in common.
///
/// ```
/// use nearfield_io::{Chart, Detail, PointData, Scale, View};
///
/// # let directory = tempfile::tempdir()?;
/// let view = View {
///     path: directory.path().join("fall.html"),
///     title: "three points that fall".to_owned(),
///     scales: vec![Scale {
///         name: "speed, m/s".to_owned(),
///         low: 0.0,
///         high: 10.0,
///         whole: false,
///         open: true,
///     }],
///     bounds: [[0.0; 3], [1.0, 1.0, 5.0]],
///     solids: Vec::new(),
///     flat: false,
///     detail: Detail::Fine,
/// };
/// let mut page = view.create()?;
/// for step in 0..3 {
///     let time = 0.3 * step as f32;
///     let positions = [0.1, 0.5, 0.9].map(|x| [x, 0.5, 5.0 - 4.9 * time * time]);
///     let speed = PointData::scalars("speed", vec![9.8 * time; 3]);
///     let label = format!("{time:.1} s");
///     page.push(&view.frame(f64::from(time), &label, &positions, &[speed])?)?;
/// }
/// page.finish(&[] as &[Chart])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The file, an `.html`.
    pub path: PathBuf,
    /// The heading of the page.
    pub title: String,
    /// The quantities of every frame, in the order of their values. The first colours the points
    /// until another is chosen.
    pub scales: Vec<Scale>,
    /// The lowest and highest corner of the box that is drawn around the points.
    pub bounds: [[f32; 3]; 2],
    /// The lowest and highest corners of boxes that are drawn as solids.
    pub solids: Vec<[[f32; 3]; 2]>,
    /// Whether the points lie in the plane of x and y, which is then looked at from above.
    pub flat: bool,
    /// How finely positions and values are kept.
    pub detail: Detail,
}

/// A frame of a [`View`], ready to be added to it.
#[derive(Debug)]
pub struct ViewFrame {
    /// What the script has to know of it, as JSON without the last brace.
    about: String,
    /// The points as base64.
    points: Vec<u8>,
}

impl ViewFrame {
    /// Says that the frame shows a part of this many points.
    #[must_use]
    pub fn part_of(mut self, all: usize) -> Self {
        self.about += &format!(",\"all\":{all}");
        self
    }
}

/// A curve or a series of points of a [`Chart`].
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// Its name in the legend.
    pub name: String,
    /// The points by growing x. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// Whether to draw a marker at each point in place of a line through them.
    pub markers: bool,
}

/// A chart beside the points of a [`View`]. A line marks the place of the frame that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What is drawn, with its unit.
    pub title: String,
    /// The horizontal axis, the same as `at` of [`View::frame`].
    pub across: String,
    /// The curves.
    pub lines: Vec<ChartLine>,
}

impl View {
    /// Packs the points of a frame, which stands at `at` in charts and is called `label`. This
    /// takes longer than writing it and needs no order: frames can be packed by several threads.
    ///
    /// # Errors
    /// If there are no points, a coordinate or value is not finite, there is not one value per
    /// point for every scale, or memory is short.
    pub fn frame(
        &self,
        at: f64,
        label: &str,
        positions: &[[f32; 3]],
        data: &[PointData<'_>],
    ) -> Result<ViewFrame, Error> {
        let packed = || -> Parsed<ViewFrame> {
            if data.len() != self.scales.len() {
                let (quantities, scales) = (data.len(), self.scales.len());
                let message = format!("{quantities} quantities for {scales} scales");
                return Err(Fault::argument(message));
            }
            let points = Points::new(positions, data, &self.scales, self.detail)?;
            let (about, at, label) = (points.about(), number(at), json_text(label));
            let points = points.packed()?;
            let about = format!("{{{about},\"at\":{at},\"label\":{label}");
            Ok(ViewFrame { about, points })
        };
        packed().map_err(|fault| fault.in_file(&self.path))
    }

    /// Begins the file. It appears when it is finished.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(&self) -> Result<ViewWriter, Error> {
        let path = self.path.clone();
        let begun = || {
            let mut output = BufWriter::new(NewFile::create(&path)?);
            self.write_head(&mut output)?;
            Ok(output)
        };
        let output = begun().map_err(|error| cannot_write(&path, &error))?;
        Ok(ViewWriter { path, output })
    }

    fn write_head(&self, output: &mut impl Write) -> io::Result<()> {
        let mut rest = PAGE;
        while let Some((before, behind)) = rest.split_once('@') {
            output.write_all(before.as_bytes())?;
            let (name, behind) = behind.split_once('@').unwrap_or_default();
            match name {
                "TITLE" => output.write_all(escape(self.title.as_str()).as_bytes())?,
                "STYLE" => output.write_all(STYLE.as_bytes())?,
                "ABOUT" => output.write_all(self.about().as_bytes())?,
                _ => {
                    for script in SCRIPTS {
                        output.write_all(script.as_bytes())?;
                    }
                }
            }
            rest = behind;
        }
        output.write_all(rest.as_bytes())
    }

    /// What the scripts have to know of all frames, as JSON.
    fn about(&self) -> String {
        let scale = |scale: &Scale| {
            let (name, low, high) = (
                json_text(&scale.name),
                number(scale.low),
                number(scale.high),
            );
            let (whole, open) = (scale.whole, scale.open);
            format!(
                "{{\"name\":{name},\"low\":{low},\"high\":{high},\"whole\":{whole},\
                 \"open\":{open}}}"
            )
        };
        let scales = joined(&self.scales, scale);
        let corner = |corner: [f32; 3]| joined(&corner, |&length| number(length.into()));
        let block = |block: &[[f32; 3]; 2]| joined(block, |&end| corner(end));
        format!(
            "{{\"flat\":{},\"steps\":{},\"last\":{},\"scales\":{scales},\"bounds\":{},\
             \"solids\":{}}}",
            self.flat,
            self.detail.steps(),
            self.detail.last_word(),
            block(&self.bounds),
            joined(&self.solids, block),
        )
    }
}

/// A [`View`] that is being written, frame by frame. Dropped before it is finished, it leaves no
/// file.
#[derive(Debug)]
pub struct ViewWriter {
    path: PathBuf,
    output: BufWriter<NewFile>,
}

impl ViewWriter {
    /// Adds the next frame.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, frame: &ViewFrame) -> Result<(), Error> {
        let ViewFrame { about, points } = frame;
        let mut write = || {
            write!(self.output, "<script>add({about}}},\"")?;
            self.output.write_all(points)?;
            self.output.write_all(b"\")</script>\n")
        };
        write().map_err(|error| cannot_write(&self.path, &error))
    }

    /// Adds the charts, and puts the file in its place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self, charts: &[Chart]) -> Result<(), Error> {
        let Self { path, mut output } = self;
        let mut finished = || {
            let charts = joined(charts, chart);
            write!(
                output,
                "<script>finish({charts})</script>\n</body>\n</html>\n"
            )?;
            output.flush()
        };
        finished()
            .and_then(|()| output.into_inner().map_err(io::Error::from)?.finish())
            .map_err(|error| cannot_write(&path, &error))
    }
}

/// Writes an HTML file that shows points coloured by a quantity: it can be turned and zoomed, has a
/// chart of the values, and hides points by value or depth. It needs a browser with WebGL and no
/// network. [`View`] writes one with many frames.
///
/// ```
/// use nearfield_io::{PointData, write_view};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cloud.html");
/// let positions = [[0.0f32, 0.0, 0.0], [0.5, 0.0, 0.25], [1.0, 1.0, 0.5]];
/// let mass = PointData::scalars("mass", vec![1.0_f32, 2.0, 4.0]);
/// write_view(&path, "three points", &positions, &mass)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If there are no points, a coordinate or value is not finite, there is not one value per point,
/// or the file cannot be written; an existing file is then unchanged.
pub fn write_view(
    path: impl AsRef<Path>,
    title: &str,
    positions: &[[f32; 3]],
    data: &PointData<'_>,
) -> Result<(), Error> {
    let mut bounds = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    for position in positions {
        for axis in 0..3 {
            bounds[0][axis] = bounds[0][axis].min(position[axis]);
            bounds[1][axis] = bounds[1][axis].max(position[axis]);
        }
    }
    let values = (0..data.values().len()).map(|index| data.values().number(index).double);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let scale = Scale {
        name: data.name().to_owned(),
        low,
        high,
        whole: !matches!(data.values(), Values::F32(_) | Values::F64(_)),
        open: false,
    };
    let view = View {
        path: path.as_ref().to_owned(),
        title: title.to_owned(),
        scales: vec![scale],
        bounds,
        solids: Vec::new(),
        flat: bounds[0][2] == bounds[1][2],
        detail: Detail::Fine,
    };
    let frame = view.frame(0.0, "", positions, &[data.borrowed()])?;
    let mut page = view.create()?;
    page.push(&frame)?;
    page.finish(&[])
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Fault::io("cannot write", error).in_file(path)
}

/// A chart in JSON.
fn chart(chart: &Chart) -> String {
    let line = |line: &ChartLine| {
        let (name, markers) = (json_text(&line.name), line.markers);
        let shown = line
            .points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<String> = shown.map(|(x, y)| format!("[{x:.6e},{y:.6e}]")).collect();
        let points = points.join(",");
        format!("{{\"name\":{name},\"markers\":{markers},\"points\":[{points}]}}")
    };
    let (title, across) = (json_text(&chart.title), json_text(&chart.across));
    let lines = joined(&chart.lines, line);
    format!("{{\"title\":{title},\"across\":{across},\"lines\":{lines}}}")
}

/// An array in JSON.
fn joined<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
    let texts: Vec<String> = values.iter().map(text).collect();
    format!("[{}]", texts.join(","))
}

/// A number in JSON, which has no infinity and no NaN.
fn number(value: f64) -> String {
    if value.is_finite() {
        format!("{value:?}")
    } else {
        "0".to_owned()
    }
}

/// A text in JSON that HTML cannot misread.
fn json_text(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || " _-.,:()/".contains(letter) {
            json.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                json += &format!("\\u{unit:04x}");
            }
        }
    }
    json.push('"');
    json
}

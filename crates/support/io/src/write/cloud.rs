//! Whole clouds: positions with what a format can hold of the rest, and the names of what it
//! cannot.
//!
//! **Invariant others rely on:** what is neither written nor named as lost was not in the cloud.

use std::{
    fmt::Write as _,
    io::{self, BufWriter, Write},
    path::Path,
};

use nearfield_files::NewFile;

use crate::{
    Format,
    cloud::{Dimensions, PointCloud},
    error::{Error, Fault, Place},
    point_data::{PointData, Values},
};

use super::{VtpWriter, output::write_file, write_array, write_npy};

/// Writes a cloud in the format given by the extension: `.extxyz`, `.xyz`, `.csv`, `.vtp` or
/// `.npy`. Returns the names of what the format cannot hold.
///
/// Extended XYZ holds everything except text that is no name; CSV no box and no time; VTK no box,
/// no species, and positions in single precision; NPY positions only. Numbers as text have the
/// fewest digits that read back as the same number.
///
/// ```
/// use nearfield_io::{Format, parse_points, read_points, write_cloud};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cloud.csv");
/// let text = b"1\nLattice=\"4 0 0 0 5 0 0 0 6\" Properties=pos:R:3:q:R:1\n0.1 2 3 -0.5\n";
/// let cloud = parse_points(text, Format::Xyz)?;
/// assert_eq!(write_cloud(&path, &cloud)?, ["the box"]);
/// assert_eq!(std::fs::read_to_string(&path)?, "x,y,z,q\n0.1,2.0,3.0,-0.5\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the extension is another one, or the file cannot be written; an existing file is then
/// unchanged.
pub fn write_cloud(path: impl AsRef<Path>, cloud: &PointCloud) -> Result<Vec<String>, Error> {
    let path = path.as_ref();
    match Format::extension_of(path) {
        _ if Format::is_packed(path) => {}
        Some("xyz" | "extxyz") => {
            let mut lost = Vec::new();
            write_frames(path, |frames| {
                lost = frames.add(cloud)?;
                Ok::<(), Error>(())
            })?;
            return Ok(lost);
        }
        Some("csv") => return csv(path, cloud),
        Some("vtp") => return vtp(path, cloud),
        Some("npy") => return npy(path, cloud),
        _ => {}
    }
    let message = "this is not written; .extxyz, .xyz, .csv, .vtp and .npy are";
    Err(Fault::unsupported(Place::Whole, message).in_file(path))
}

/// Writes an extended XYZ file of the frames that `fill` adds. The file appears when all are
/// written.
///
/// # Errors
/// What `fill` returns, or that the file cannot be written; an existing file is then unchanged.
pub fn write_frames<E: From<Error>>(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut FrameWriter<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.as_ref();
    let unwritable = |error: io::Error| E::from(Fault::io("cannot write", &error).in_file(path));
    let file = BufWriter::new(NewFile::create(path).map_err(unwritable)?);
    let mut frames = FrameWriter { path, file };
    fill(&mut frames)?;
    let file = frames.file.into_inner();
    let file = file.map_err(|error| unwritable(error.into_error()))?;
    file.finish().map_err(unwritable)
}

/// An extended XYZ file that is being written by [`write_frames`].
#[derive(Debug)]
pub struct FrameWriter<'a> {
    path: &'a Path,
    file: BufWriter<NewFile>,
}

impl FrameWriter<'_> {
    /// Adds a frame. Returns the names of what it cannot hold.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, cloud: &PointCloud) -> Result<Vec<String>, Error> {
        let (columns, lost) = word_columns(cloud);
        let written = self.frame(cloud, &columns);
        written.map_err(|error| Fault::io("cannot write", &error).in_file(self.path))?;
        Ok(lost)
    }

    fn frame(&mut self, cloud: &PointCloud, columns: &[&PointData<'_>]) -> io::Result<()> {
        let file = &mut self.file;
        writeln!(file, "{}\n{}", cloud.len(), comment(cloud, columns))?;
        for point in 0..cloud.len() {
            if let Some(species) = &cloud.species {
                let name = &species.names[species.of_point[point] as usize];
                write!(file, "{} ", word(name))?;
            }
            position(file, cloud, point, " ")?;
            for column in columns {
                (0..column.components()).try_for_each(|component| {
                    write!(file, " ")?;
                    value(file, column, point, component)
                })?;
            }
            writeln!(file)?;
        }
        Ok(())
    }
}

/// A species as one word, as the format needs it.
fn word(name: &str) -> String {
    let name = name.trim();
    if name.is_empty() {
        return "X".to_owned();
    }
    name.replace(
        |letter: char| letter.is_whitespace() || letter.is_control(),
        "_",
    )
}

/// The second line of a frame.
fn comment(cloud: &PointCloud, columns: &[&PointData<'_>]) -> String {
    let mut text = String::new();
    let flags = |periodic: [bool; 3]| periodic.map(|axis| if axis { "T" } else { "F" }).join(" ");
    let mut periodic = cloud.periodic_without_box;
    if let Some(cell) = &cloud.simulation_box {
        let numbers: Vec<String> = cell
            .vectors
            .as_flattened()
            .iter()
            .map(|number| format!("{number:?}"))
            .collect();
        text += &format!("Lattice=\"{}\" ", numbers.join(" "));
        periodic = Some(cell.periodic);
    }
    if let Some(periodic) = periodic {
        text += &format!("pbc=\"{}\" ", flags(periodic));
    }
    text += "Properties=";
    if cloud.species.is_some() {
        text += "species:S:1:";
    }
    text += &format!("pos:R:{}", cloud.dimensions.count());
    for column in columns {
        let kind = if is_whole(column) { 'I' } else { 'R' };
        text += &format!(":{}:{kind}:{}", column.name(), column.components());
    }
    if let Some(time) = cloud.time {
        text += &format!(" Time={time:?}");
    }
    text
}

fn is_whole(column: &PointData<'_>) -> bool {
    !matches!(column.values(), Values::F32(_) | Values::F64(_))
}

/// The quantities whose names the comment can hold, each name once, and the names of the others.
fn word_columns(cloud: &PointCloud) -> (Vec<&PointData<'static>>, Vec<String>) {
    chosen(cloud, &["species", "pos"], |name| {
        let plain = |letter: char| letter.is_alphanumeric() || "_-.+".contains(letter);
        !name.is_empty() && name.chars().all(plain)
    })
}

/// The quantities whose names can be written and are not taken, and the names of the others and of
/// columns that were not read.
fn chosen<'a>(
    cloud: &'a PointCloud,
    taken: &[&str],
    can_be_written: impl Fn(&str) -> bool,
) -> (Vec<&'a PointData<'static>>, Vec<String>) {
    let mut columns: Vec<&PointData<'_>> = Vec::new();
    let mut lost = cloud.unread.clone();
    for data in &cloud.data {
        let name = data.name();
        let is_taken = taken.iter().any(|one| one.eq_ignore_ascii_case(name))
            || columns
                .iter()
                .any(|one| one.name().eq_ignore_ascii_case(name));
        // Unsigned numbers of 64 bits that the format's whole numbers cannot hold.
        let is_wide =
            matches!(data.values(), Values::U64(all) if all.iter().any(|&one| one >> 63 != 0));
        if is_taken || is_wide || !can_be_written(name) {
            lost.push(name.to_owned());
        } else {
            columns.push(data);
        }
    }
    (columns, lost)
}

fn position(
    file: &mut impl Write,
    cloud: &PointCloud,
    point: usize,
    between: &str,
) -> io::Result<()> {
    for axis in 0..cloud.dimensions.count() {
        if axis > 0 {
            file.write_all(between.as_bytes())?;
        }
        match &cloud.positions_f64 {
            Some(exact) => write!(file, "{:?}", exact[point][axis])?,
            None => write!(file, "{:?}", cloud.positions[point][axis])?,
        }
    }
    Ok(())
}

/// A number of a quantity.
fn value(
    file: &mut impl Write,
    data: &PointData<'_>,
    point: usize,
    component: usize,
) -> io::Result<()> {
    let at = point * data.components() + component;
    match data.values() {
        Values::F32(values) => write!(file, "{:?}", values[at]),
        Values::F64(values) => write!(file, "{:?}", values[at]),
        Values::I32(values) => write!(file, "{}", values[at]),
        Values::U32(values) => write!(file, "{}", values[at]),
        Values::I64(values) => write!(file, "{}", values[at]),
        Values::U64(values) => write!(file, "{}", values[at]),
    }
}

/// The box and the time, where a format holds neither.
fn lost_frame(cloud: &PointCloud, time: bool, lost: &mut Vec<String>) {
    if cloud.simulation_box.is_some() || cloud.periodic_without_box.is_some() {
        lost.insert(0, "the box".to_owned());
    }
    if time && cloud.time.is_some() {
        lost.insert(0, "the time".to_owned());
    }
}

fn csv(path: &Path, cloud: &PointCloud) -> Result<Vec<String>, Error> {
    let (columns, mut lost) = chosen(cloud, &["x", "y", "z", "species"], |name| {
        !name.is_empty() && !name.contains(|letter: char| letter == '"' || letter.is_control())
    });
    lost_frame(cloud, true, &mut lost);
    let mut header = if cloud.dimensions == Dimensions::Two {
        "x,y"
    } else {
        "x,y,z"
    }
    .to_owned();
    if cloud.species.is_some() {
        header += ",species";
    }
    for column in &columns {
        for component in 0..column.components() {
            let name = column_name(column, component);
            let quotes = if name.contains([',', ';', '\t', ' ']) {
                "\""
            } else {
                ""
            };
            // Writing to a String cannot fail.
            write!(header, ",{quotes}{name}{quotes}").ok();
        }
    }
    write_file(path, |output| {
        writeln!(output, "{header}")?;
        for point in 0..cloud.len() {
            position(output, cloud, point, ",")?;
            if let Some(species) = &cloud.species {
                let name = &species.names[species.of_point[point] as usize];
                write!(output, ",{}", word(name).replace([',', ';', '"'], "_"))?;
            }
            for column in &columns {
                (0..column.components()).try_for_each(|component| {
                    write!(output, ",")?;
                    value(output, column, point, component)
                })?;
            }
            writeln!(output)?;
        }
        Ok(())
    })?;
    Ok(lost)
}

/// The name of a column: that of a scalar, vx for velocities and fx for forces as tables have them,
/// else with a number.
fn column_name(data: &PointData<'_>, component: usize) -> String {
    let letter = match data.name() {
        "velocity" | "velo" if data.components() == 3 => "v",
        "forces" if data.components() == 3 => "f",
        name if data.components() == 1 => return name.to_owned(),
        name => return format!("{name}_{component}"),
    };
    format!("{letter}{}", ["x", "y", "z"][component])
}

fn vtp(path: &Path, cloud: &PointCloud) -> Result<Vec<String>, Error> {
    let (columns, mut lost) = chosen(cloud, &[], |name| {
        !name.is_empty() && !name.contains(char::is_control)
    });
    lost_frame(cloud, false, &mut lost);
    if cloud.species.is_some() {
        lost.push("species".to_owned());
    }
    if cloud.positions_f64.is_some() {
        lost.push("digits of positions beyond single precision".to_owned());
    }
    let writer = VtpWriter::new(&cloud.positions);
    let writer = cloud.time.into_iter().fold(writer, VtpWriter::time);
    let writer = (columns.iter()).fold(writer, |writer, column| writer.data(column.borrowed()));
    writer.write(path)?;
    Ok(lost)
}

fn npy(path: &Path, cloud: &PointCloud) -> Result<Vec<String>, Error> {
    let (_, mut lost) = chosen(cloud, &[], |_| false);
    lost_frame(cloud, true, &mut lost);
    if cloud.species.is_some() {
        lost.push("species".to_owned());
    }
    match &cloud.positions_f64 {
        Some(exact) => {
            let flat = Values::F64(exact.as_flattened().into());
            write_array(path, &[exact.len(), 3], &flat)?;
        }
        None => write_npy(path, &cloud.positions)?,
    }
    Ok(lost)
}

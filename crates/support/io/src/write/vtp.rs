//! VTK PolyData files (`.vtp`) that ParaView opens as points.
//!
//! Arrays are appended in raw encoding and compressed with zlib in blocks, by all threads of the
//! rayon pool if the caller is in one. **Invariant others rely on:** every array has one tuple
//! per point, and names are unique within point data and within field data.

use std::{
    io::{self, Write},
    path::Path,
};

use flate2::{Compression, write::ZlibEncoder};
use quick_xml::escape::escape;
use rayon::prelude::*;

use crate::{
    error::{Error, Fault, Parsed, quoted},
    point_data::{PointData, Values},
};

use super::output::write_file;

/// Writes positions and quantities per point as a VTK PolyData file.
///
/// Short for [`VtpWriter`] without field data.
///
/// # Errors
/// As [`VtpWriter::write`].
pub fn write_vtp(
    path: impl AsRef<Path>,
    positions: &[[f32; 3]],
    data: &[PointData<'_>],
) -> Result<(), Error> {
    let writer = data.iter().fold(VtpWriter::new(positions), |writer, data| {
        writer.data(data.borrowed())
    });
    writer.write(path)
}

/// A VTK PolyData file about to be written: one vertex per point, quantities per point, and field
/// data for the whole frame.
///
/// ```
/// use nearfield_io::{PointData, VtpWriter, read_points};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("frame_0007.vtp");
/// let positions = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0_f32]];
/// let density = [1000.0_f32, 1001.5];
/// VtpWriter::new(&positions)
///     .time(0.035)
///     .field("step", vec![7_i32])
///     .data(PointData::scalars("density", &density))
///     .write(&path)?;
///
/// let frame = read_points(&path)?;
/// assert_eq!(frame.positions, positions);
/// assert_eq!(frame.time, Some(0.035));
/// assert_eq!(frame.quantity("density").and_then(PointData::to_scalars), Some(density.to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct VtpWriter<'a> {
    positions: &'a [[f32; 3]],
    data: Vec<PointData<'a>>,
    fields: Vec<PointData<'a>>,
}

impl<'a> VtpWriter<'a> {
    /// A file of these points.
    pub fn new(positions: &'a [[f32; 3]]) -> Self {
        Self {
            positions,
            data: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Adds a quantity per point. Viewers first show the first quantities with one and with three
    /// components.
    pub fn data(mut self, data: PointData<'a>) -> Self {
        self.data.push(data);
        self
    }

    /// States the time of the frame, which ParaView shows and uses in animations.
    pub fn time(self, time: f64) -> Self {
        self.field("TimeValue", vec![time])
    }

    /// Adds values that belong to the frame as a whole.
    pub fn field(mut self, name: &'a str, values: impl Into<Values<'a>>) -> Self {
        self.fields.push(PointData::scalars(name, values));
        self
    }

    /// Writes the file, replacing an existing one.
    ///
    /// # Errors
    /// If a quantity does not have one tuple per point, a name is empty, occurs twice or has
    /// control characters, or the file cannot be written; an existing file is then unchanged.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        self.check().map_err(|fault| fault.in_file(path))?;
        write_file(path, |output| self.write_to(output))
    }

    /// Writes a parallel file (`.pvtp`) that joins pieces: files of the arrays of this writer, by
    /// their paths relative to the parallel file. Viewers open it as one file. The points and
    /// values of this writer are not in it, only the kinds of its arrays and its field data.
    ///
    /// # Errors
    /// As [`write`](Self::write), and when the path of a piece has control characters.
    pub fn write_parallel<P: AsRef<str>>(
        &self,
        path: impl AsRef<Path>,
        pieces: &[P],
    ) -> Result<(), Error> {
        let path = path.as_ref();
        let check = || {
            self.check()?;
            match (pieces.iter()).find(|piece| piece.as_ref().contains(char::is_control)) {
                None => Ok(()),
                Some(piece) => Err(Fault::argument(format!(
                    "the path {} has control characters",
                    quoted(piece.as_ref().as_bytes())
                ))),
            }
        };
        check().map_err(|fault: Fault| fault.in_file(path))?;
        let fields: String = self.fields.iter().map(in_line).collect();
        let data: String = self
            .data
            .iter()
            .map(|data| tag("PDataArray", data))
            .collect();
        let points = tag("PDataArray", &PointData::vectors("Points", &[]));
        let piece = |piece: &P| format!("<Piece Source=\"{}\"/>\n", escape(piece.as_ref()));
        let body = format!(
            "<PPolyData GhostLevel=\"0\">\n<FieldData>\n{fields}</FieldData>\n\
             <PPointData{}>\n{data}</PPointData>\n<PPoints>\n{points}</PPoints>\n{}\
             </PPolyData>\n",
            self.active(),
            pieces.iter().map(piece).collect::<String>()
        );
        write_file(path, |output| {
            writeln!(output, "{}{body}</VTKFile>", opening("PPolyData"))
        })
    }

    fn check(&self) -> Parsed<()> {
        check_names(&self.data)?;
        check_names(&self.fields)?;
        let points = self.positions.len();
        match self.data.iter().find(|data| data.points() != points) {
            None => Ok(()),
            Some(data) => Err(Fault::argument(format!(
                "the quantity {} has values for {} points, but there are {points} points",
                quoted(data.name().as_bytes()),
                data.points()
            ))),
        }
    }

    fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut appended = AppendedData::default();
        let body = self.body(&mut appended)?;
        write_document(output, "PolyData", &body, &appended)
    }

    /// The tags of all arrays, whose data go to `appended`.
    fn body(&self, appended: &mut AppendedData) -> io::Result<String> {
        let points = self.positions.len();
        let fields = section("FieldData", "", &self.fields, appended)?;
        let data = section("PointData", &self.active(), &self.data, appended)?;
        let positions = PointData::vectors("Points", self.positions);
        let coordinates = section("Points", "", &[positions], appended)?;
        let cells = [
            numbered("connectivity", 0, points)?,
            numbered("offsets", 1, points)?,
        ];
        let vertices = section("Verts", "", &cells, appended)?;
        Ok(format!(
            "<PolyData>\n{fields}<Piece NumberOfPoints=\"{points}\" NumberOfVerts=\"{points}\" \
             NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n\
             {data}{coordinates}{vertices}</Piece>\n</PolyData>\n"
        ))
    }

    /// The attributes that name the quantities that a viewer shows first.
    fn active(&self) -> String {
        let attribute = |kind: &str, components| {
            let first = self
                .data
                .iter()
                .find(|data| data.components() == components);
            first
                .map(|data| format!(" {kind}=\"{}\"", escape(data.name())))
                .unwrap_or_default()
        };
        attribute("Scalars", 1) + &attribute("Vectors", 3)
    }
}

/// The beginning of a file of this type.
fn opening(kind: &str) -> String {
    let byte_order = if cfg!(target_endian = "big") {
        "BigEndian"
    } else {
        "LittleEndian"
    };
    format!(
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"{kind}\" version=\"1.0\" byte_order=\"{byte_order}\" \
         header_type=\"UInt64\" compressor=\"vtkZLibDataCompressor\">\n"
    )
}

/// Writes a file of this type: the tags of its body, then the data that they point to.
pub(super) fn write_document(
    output: &mut impl Write,
    kind: &str,
    body: &str,
    appended: &AppendedData,
) -> io::Result<()> {
    let opening = opening(kind);
    write!(output, "{opening}{body}<AppendedData encoding=\"raw\">\n_")?;
    output.write_all(&appended.0)?;
    output.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}

pub(super) fn check_names(quantities: &[PointData<'_>]) -> Parsed<()> {
    for (index, name) in quantities.iter().map(PointData::name).enumerate() {
        let twice = quantities[..index]
            .iter()
            .any(|earlier| earlier.name() == name);
        if twice || name.is_empty() || name.contains(char::is_control) {
            let reason = if twice {
                "occurs twice"
            } else {
                "is empty or has control characters"
            };
            let message = format!("the name {} {reason}", quoted(name.as_bytes()));
            return Err(Fault::argument(message));
        }
    }
    Ok(())
}

/// Consecutive numbers: the vertices' points or ends.
fn numbered(name: &str, first: usize, count: usize) -> io::Result<PointData<'_>> {
    let numbers = first..first + count;
    Ok(match i32::try_from(numbers.end) {
        Ok(_) => {
            let mut narrow = Vec::new();
            make_room(&mut narrow, count)?;
            narrow.extend(numbers.map(|i| i as i32));
            PointData::scalars(name, narrow)
        }
        Err(_) => {
            let mut wide = Vec::new();
            make_room(&mut wide, count)?;
            wide.extend(numbers.map(|i| i as i64));
            PointData::scalars(name, wide)
        }
    })
}

/// The data that tags point to. A refused allocation is an error, as for any writer.
#[derive(Default)]
pub(super) struct AppendedData(Vec<u8>);

impl Write for AppendedData {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        make_room(&mut self.0, bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Room for `more` values.
fn make_room<T>(vec: &mut Vec<T>, more: usize) -> io::Result<()> {
    vec.try_reserve(more).map_err(|_| {
        let bytes = (vec.len() + more).saturating_mul(size_of::<T>());
        let text = format!("out of memory: {bytes} bytes are needed for the data of a file");
        io::Error::new(io::ErrorKind::OutOfMemory, text)
    })
}

pub(super) fn section(
    name: &str,
    attributes: &str,
    arrays: &[PointData<'_>],
    appended: &mut AppendedData,
) -> io::Result<String> {
    let tags: io::Result<String> = arrays.iter().map(|array| append(array, appended)).collect();
    Ok(format!("<{name}{attributes}>\n{}</{name}>\n", tags?))
}

/// Appends an array's data and returns its tag.
fn append(array: &PointData<'_>, appended: &mut AppendedData) -> io::Result<String> {
    let offset = appended.0.len();
    append_blocks(array.values().bytes(), appended)?;
    Ok(format!(
        "<DataArray {} NumberOfTuples=\"{}\" format=\"appended\" offset=\"{offset}\"/>\n",
        attributes(array),
        array.points()
    ))
}

/// The attributes with the type of an array.
fn attributes(array: &PointData<'_>) -> String {
    let kind = match array.values() {
        Values::F32(_) => "Float32",
        Values::F64(_) => "Float64",
        Values::I32(_) => "Int32",
        Values::U32(_) => "UInt32",
        Values::I64(_) => "Int64",
        Values::U64(_) => "UInt64",
    };
    format!(
        "type=\"{kind}\" Name=\"{}\" NumberOfComponents=\"{}\"",
        escape(array.name()),
        array.components()
    )
}

/// The tag of an array without its values.
fn tag(name: &str, array: &PointData<'_>) -> String {
    format!("<{name} {}/>\n", attributes(array))
}

/// An array with its values as text: numbers of a frame are few.
fn in_line(array: &PointData<'_>) -> String {
    fn join<T: ToString>(values: &[T]) -> String {
        values
            .iter()
            .map(|value| value.to_string() + "\n")
            .collect()
    }
    let text = match array.values() {
        Values::F32(values) => join(values),
        Values::F64(values) => join(values),
        Values::I32(values) => join(values),
        Values::U32(values) => join(values),
        Values::I64(values) => join(values),
        Values::U64(values) => join(values),
    };
    format!(
        "<DataArray {} NumberOfTuples=\"{}\" format=\"ascii\">\n{text}</DataArray>\n",
        attributes(array),
        array.points()
    )
}

/// Appends the header and the compressed blocks of an array.
fn append_blocks(bytes: &[u8], appended: &mut AppendedData) -> io::Result<()> {
    const BLOCK: usize = 1 << 20;
    let blocks = bytes.len().div_ceil(BLOCK);
    let last = bytes.len() % BLOCK;
    for word in [blocks, BLOCK, last] {
        appended.write_all(&(word as u64).to_ne_bytes())?;
    }
    let sizes = appended.0.len();
    for _ in 0..blocks {
        appended.write_all(&[0; size_of::<u64>()])?;
    }
    // Blocks keep the threads of a pool busy; a pool of this crate's own would be one too many.
    let compressed: io::Result<Vec<AppendedData>> = if rayon::current_thread_index().is_some() {
        bytes.par_chunks(BLOCK).map(compress).collect()
    } else {
        bytes.chunks(BLOCK).map(compress).collect()
    };
    for (index, AppendedData(block)) in compressed?.iter().enumerate() {
        appended.write_all(block)?;
        appended.0[sizes + index * size_of::<u64>()..][..size_of::<u64>()]
            .copy_from_slice(&(block.len() as u64).to_ne_bytes());
    }
    Ok(())
}

/// Compresses one block. Coordinates hardly compress better with more effort.
fn compress(block: &[u8]) -> io::Result<AppendedData> {
    let mut encoder = ZlibEncoder::new(AppendedData::default(), Compression::fast());
    encoder.write_all(block)?;
    encoder.finish()
}

//! The structure of a VTK XML file: its arrays, and the places of their data.
//!
//! Nothing is decoded here. Appended data may be raw bytes and not XML, so parsing stops where they
//! begin. **Invariant others rely on:** a [`Document`] comes from a file with a valid end.

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

use crate::{
    cursor::parse,
    error::{Fault, Parsed, Place, quoted},
    raw::{Endian, Scalar},
};

use super::{
    encoded::{Compressor, Layout},
    is_time,
};

/// The parts of a file that matter here.
pub(super) struct Document<'a> {
    pub(super) layout: Layout,
    /// A compressor that is not read: text arrays do without it.
    pub(super) unknown_compressor: Option<String>,
    pub(super) pieces: Vec<Piece>,
    pub(super) time: Option<DataArray>,
    pub(super) appended: Option<AppendedSection<'a>>,
}

/// A part of the data set with points of its own.
pub(super) struct Piece {
    pub(super) points: usize,
    pub(super) positions: Option<DataArray>,
    pub(super) data: Vec<DataArray>,
}

/// Attributes of a `DataArray` tag.
pub(super) struct DataArray {
    pub(super) name: String,
    /// `None` for strings and bits.
    pub(super) scalar: Option<Scalar>,
    pub(super) components: usize,
    pub(super) payload: Payload,
    /// Where the tag begins, for messages.
    pub(super) place: Place,
}

/// Where an array's data lie: a range of the file, or an offset into the appended data.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload {
    Text(usize, usize),
    Base64(usize, usize),
    Appended(usize),
}

/// The data after the XML.
#[derive(Clone, Copy)]
pub(super) struct AppendedSection<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_base64: bool,
}

impl<'a> Document<'a> {
    /// Finds the arrays of a PolyData or UnstructuredGrid file.
    pub(super) fn scan(file: &'a [u8]) -> Parsed<Self> {
        let mut scan = Scan::new(file);
        let (layout, unknown_compressor) = scan.root()?;
        let mut document = Self {
            layout,
            unknown_compressor,
            pieces: Vec::new(),
            time: None,
            appended: None,
        };
        let mut section = Section::Other;
        loop {
            let (start, event) = scan.next()?;
            match event {
                Event::Start(tag) => match tag.name().as_ref() {
                    "DataArray" => {
                        let array = scan.data_array(&tag, start, false)?;
                        document.keep(array, section);
                    }
                    "AppendedData" => {
                        document.appended = Some(scan.appended(&tag)?);
                        return Ok(document);
                    }
                    "Piece" => document.pieces.push(Scan::piece(&tag, start)?),
                    name => section = Section::named(name).unwrap_or(section),
                },
                Event::Empty(tag) => match tag.name().as_ref() {
                    "DataArray" => {
                        let array = scan.data_array(&tag, start, true)?;
                        document.keep(array, section);
                    }
                    "Piece" => document.pieces.push(Scan::piece(&tag, start)?),
                    _ => {}
                },
                Event::End(tag) => match tag.name().as_ref() {
                    "VTKFile" => return Ok(document),
                    name if Section::named(name).is_some() => section = Section::Other,
                    _ => {}
                },
                Event::Eof => return Err(scan.ends_early()),
                _ => {}
            }
        }
    }

    fn keep(&mut self, array: DataArray, section: Section) {
        let piece = self.pieces.last_mut();
        match (section, piece) {
            (Section::FieldData, _) if is_time(&array.name) => self.time = Some(array),
            (Section::Points, Some(piece)) if piece.positions.is_none() => {
                piece.positions = Some(array);
            }
            (Section::PointData, Some(piece)) if array.scalar.is_some() => piece.data.push(array),
            _ => {}
        }
    }
}

/// The element around a `DataArray`.
#[derive(Clone, Copy)]
enum Section {
    Points,
    PointData,
    FieldData,
    Other,
}

impl Section {
    fn named(name: &str) -> Option<Self> {
        match name {
            "Points" => Some(Self::Points),
            "PointData" => Some(Self::PointData),
            "FieldData" => Some(Self::FieldData),
            "CellData" | "Cells" | "Verts" | "Lines" | "Strips" | "Polys" => Some(Self::Other),
            _ => None,
        }
    }
}

/// An XML reader with its position in the file.
struct Scan<'a> {
    file: &'a [u8],
    reader: Reader<&'a [u8]>,
}

impl<'a> Scan<'a> {
    fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            reader: Reader::from_reader(file),
        }
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position())
            .unwrap_or(usize::MAX)
            .min(self.file.len())
    }

    /// The next event and where it begins.
    fn next(&mut self) -> Parsed<(usize, Event<'a>)> {
        let start = self.position();
        match self.reader.read_event() {
            Ok(event) => Ok((start, event)),
            Err(quick_xml::Error::Syntax(_)) => Err(self.ends_early()),
            Err(error) => {
                let place = usize::try_from(self.reader.error_position()).unwrap_or(start);
                Err(invalid(Place::Byte(place), &error))
            }
        }
    }

    fn ends_early(&self) -> Fault {
        Fault::truncated(
            Place::Byte(self.file.len()),
            "the file ends before </VTKFile>",
        )
    }

    /// Reads up to and with the tag `VTKFile`.
    fn root(&mut self) -> Parsed<(Layout, Option<String>)> {
        loop {
            let (start, event) = self.next()?;
            match event {
                Event::Start(tag) if tag.name().as_ref() == "VTKFile" => {
                    return layout(&tag, start);
                }
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                _ => {
                    let message = "the file does not begin with a tag <VTKFile …>";
                    return Err(Fault::malformed(Place::Byte(start), message));
                }
            }
        }
    }

    fn piece(tag: &BytesStart<'_>, start: usize) -> Parsed<Piece> {
        let place = Place::Byte(start);
        let points = attribute(tag, "NumberOfPoints", place)?.unwrap_or_default();
        let points = parse(points.trim().as_bytes()).ok_or_else(|| {
            let message = format!(
                "NumberOfPoints={} is not a count",
                quoted(points.as_bytes())
            );
            Fault::malformed(place, message)
        })?;
        Ok(Piece {
            points,
            positions: None,
            data: Vec::new(),
        })
    }

    /// Reads the tag `DataArray` and, when it is not `empty`, notes the text behind it.
    fn data_array(&mut self, tag: &BytesStart<'_>, start: usize, empty: bool) -> Parsed<DataArray> {
        let place = Place::Byte(start);
        let attribute = |name: &str| attribute(tag, name, place);
        let count = |name: &str, default: usize| match attribute(name)? {
            None => Ok(default),
            Some(text) => parse(text.trim().as_bytes()).ok_or_else(|| {
                let message = format!("{name}={} is not a count", quoted(text.as_bytes()));
                Fault::malformed(place, message)
            }),
        };
        let (begin, end) = if empty { (0, 0) } else { self.text()? };
        let payload = match attribute("format")?.as_deref() {
            None | Some("ascii") => Payload::Text(begin, end),
            Some("binary") => Payload::Base64(begin, end),
            Some("appended") => Payload::Appended(count("offset", 0)?),
            Some(other) => {
                let message = format!("the array format {} is not known", quoted(other.as_bytes()));
                return Err(Fault::malformed(place, message));
            }
        };
        Ok(DataArray {
            name: attribute("Name")?.unwrap_or_default(),
            scalar: attribute("type")?.as_deref().and_then(scalar),
            components: count("NumberOfComponents", 1)?,
            payload,
            place,
        })
    }

    /// The range of the text before the next tag.
    fn text(&self) -> Parsed<(usize, usize)> {
        let start = self.position();
        let length = self.file[start..].iter().position(|&byte| byte == b'<');
        length
            .map(|length| (start, start + length))
            .ok_or_else(|| self.ends_early())
    }

    /// The appended data, which begin after an underscore.
    fn appended(&self, tag: &BytesStart<'_>) -> Parsed<AppendedSection<'a>> {
        let place = Place::Byte(self.position());
        if !self.file.trim_ascii_end().ends_with(b"</VTKFile>") {
            return Err(self.ends_early());
        }
        let is_base64 = match attribute(tag, "encoding", place)?.as_deref() {
            Some("raw") => false,
            None | Some("base64") => true,
            Some(other) => {
                let message = format!("the encoding {} is not known", quoted(other.as_bytes()));
                return Err(Fault::unsupported(place, message));
            }
        };
        let rest = self.file[self.position()..].trim_ascii_start();
        let bytes = rest.strip_prefix(b"_").ok_or_else(|| {
            Fault::malformed(place, "the appended data do not begin with an underscore")
        })?;
        Ok(AppendedSection { bytes, is_base64 })
    }
}

/// How arrays are stored, and the name of a compressor that is not read.
fn layout(tag: &BytesStart<'_>, start: usize) -> Parsed<(Layout, Option<String>)> {
    let place = Place::Byte(start);
    let attribute = |name: &str| attribute(tag, name, place).map(Option::unwrap_or_default);
    let refused = |what: &str, found: &str, known: &str| {
        let message = format!(
            "the {what} {} is not read; {known}",
            quoted(found.as_bytes())
        );
        Err(Fault::unsupported(place, message))
    };
    match attribute("type")?.as_str() {
        "PolyData" | "UnstructuredGrid" => {}
        other => return refused("data set", other, "PolyData and UnstructuredGrid are"),
    }
    let endian = match attribute("byte_order")?.as_str() {
        "LittleEndian" | "" => Endian::Little,
        "BigEndian" => Endian::Big,
        other => return refused("byte order", other, "LittleEndian and BigEndian are"),
    };
    let wide = match attribute("header_type")?.as_str() {
        "UInt32" | "" => false,
        "UInt64" => true,
        other => return refused("header type", other, "UInt32 and UInt64 are"),
    };
    let (compressor, unknown) = match attribute("compressor")?.as_str() {
        "" => (None, None),
        "vtkZLibDataCompressor" => (Some(Compressor::Zlib), None),
        "vtkLZ4DataCompressor" => (Some(Compressor::Lz4), None),
        other => (None, Some(other.to_owned())),
    };
    let layout = Layout {
        endian,
        wide,
        compressor,
    };
    Ok((layout, unknown))
}

fn attribute(tag: &BytesStart<'_>, name: &str, place: Place) -> Parsed<Option<String>> {
    match tag
        .try_get_attribute(name)
        .map_err(|error| invalid(place, &error))?
    {
        None => Ok(None),
        Some(attribute) => attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map(|value| Some(value.into_owned()))
            .map_err(|error| invalid(place, &error)),
    }
}

fn invalid(place: Place, error: &dyn std::fmt::Display) -> Fault {
    Fault::malformed(place, format!("not valid XML: {error}"))
}

fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "Int8" => Scalar::I8,
        "UInt8" => Scalar::U8,
        "Int16" => Scalar::I16,
        "UInt16" => Scalar::U16,
        "Int32" => Scalar::I32,
        "UInt32" => Scalar::U32,
        "Int64" => Scalar::I64,
        "UInt64" => Scalar::U64,
        "Float32" => Scalar::F32,
        "Float64" => Scalar::F64,
        _ => return None,
    })
}

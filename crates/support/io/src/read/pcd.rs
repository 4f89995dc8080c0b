//! Files of the Point Cloud Library (PCD 0.7): the fields x, y and z, as text, binary, or binary
//! compressed by LZF.
//!
//! Compressed data hold one field after the other. They are unpacked through a window, and only
//! the coordinates are kept. **Invariant others rely on:** the data are exactly as long as the
//! header says.

use super::{
    csv::{MAX_COLUMNS, check_width},
    lines::{Line, Lines},
    lzf,
};
use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::{not_a_number, parse},
    error::{Fault, Parsed, Place, quoted},
    number::{Number, Numbers},
    raw::{Endian, RawArray, Scalar},
};
use nearfield_grid::memory::{filled, make_room_for_one};

/// Reads the positions.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let mut lines = Lines::new(bytes);
    let header = Header::read(&mut lines)?;
    let positions = match header.data {
        Data::Ascii => text(&header, lines)?,
        Data::Binary => binary(&header, bytes, lines)?,
        Data::Compressed => compressed(&header, bytes, lines)?,
    };
    let dimensions = match header.axes[2] {
        Some(_) => Dimensions::Three,
        None => Dimensions::Two,
    };
    let others = header.fields.iter().enumerate();
    let others = others.filter(|(place, field)| {
        // PCL names padding by an underscore.
        !header.axes.contains(&Some(*place)) && field.name != "_"
    });
    Ok(PointCloud {
        unread: others.map(|(_, field)| field.name.clone()).collect(),
        ..PointCloud::new(positions, dimensions)
    })
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    scalar: Scalar,
    count: usize,
}

impl Field {
    fn bytes(&self) -> usize {
        self.scalar.size().saturating_mul(self.count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    Ascii,
    Binary,
    Compressed,
}

struct Header {
    fields: Vec<Field>,
    axes: [Option<usize>; 3],
    points: usize,
    data: Data,
}

/// The words behind each key of a header.
#[derive(Default)]
struct Keys<'a> {
    fields: Option<Line<'a>>,
    size: Option<Line<'a>>,
    kind: Option<Line<'a>>,
    count: Option<Line<'a>>,
    width: Option<Line<'a>>,
    height: Option<Line<'a>>,
    points: Option<Line<'a>>,
}

impl<'a> Keys<'a> {
    fn place(&mut self, key: &[u8]) -> Option<&mut Option<Line<'a>>> {
        Some(match key {
            b"FIELDS" | b"COLUMNS" => &mut self.fields,
            b"SIZE" => &mut self.size,
            b"TYPE" => &mut self.kind,
            b"COUNT" => &mut self.count,
            b"WIDTH" => &mut self.width,
            b"HEIGHT" => &mut self.height,
            b"POINTS" => &mut self.points,
            _ => return None,
        })
    }
}

impl Header {
    /// Leaves the lines at the data.
    fn read(lines: &mut Lines<'_>) -> Parsed<Self> {
        let mut keys = Keys::default();
        let data = loop {
            let line = lines.expect("the line DATA")?;
            let key = line.words().next().unwrap_or_default();
            match key {
                b"" | b"VERSION" | b"VIEWPOINT" => {}
                comment if comment.starts_with(b"#") => {}
                b"DATA" => break encoding(line)?,
                key => match keys.place(key) {
                    Some(place @ None) => *place = Some(line),
                    Some(_) => {
                        let message = format!("{} is given twice", quoted(key));
                        return Err(Fault::malformed(line.place(), message));
                    }
                    None => {
                        let message = format!("{} is not a key of a PCD header", quoted(key));
                        return Err(Fault::malformed(line.place(), message));
                    }
                },
            }
        };
        let fields = fields(&keys)?;
        let axes = axes(&fields, keys.fields)?;
        let points = points(&keys)?;
        Ok(Self {
            fields,
            axes,
            points,
            data,
        })
    }

    /// Bytes of a point.
    fn row(&self) -> usize {
        let sizes = self.fields.iter().map(Field::bytes);
        sizes.fold(0, usize::saturating_add)
    }

    /// Bytes of all points, if `present` is that many.
    fn check_length(&self, present: usize, at: Place) -> Parsed<usize> {
        let row = self.row();
        match self.points.checked_mul(row) {
            Some(needed) if needed == present => Ok(needed),
            Some(needed) if needed < present => {
                let message = format!(
                    "{} points of {row} bytes need {needed} bytes of data, but {present} follow",
                    self.points
                );
                Err(Fault::malformed(at, message))
            }
            _ => {
                let message = format!(
                    "{} points of {row} bytes are announced, but only {present} bytes follow",
                    self.points
                );
                Err(Fault::truncated(at, message))
            }
        }
    }

    /// Where a field begins in a point.
    fn offset(&self, place: usize) -> usize {
        let before = self.fields[..place].iter().map(Field::bytes);
        before.fold(0, usize::saturating_add)
    }
}

fn encoding(line: Line<'_>) -> Parsed<Data> {
    let word = line.words().nth(1).unwrap_or_default();
    match word {
        b"ascii" => Ok(Data::Ascii),
        b"binary" => Ok(Data::Binary),
        b"binary_compressed" => Ok(Data::Compressed),
        _ => {
            let message = format!(
                "DATA is {}: ascii, binary and binary_compressed are read",
                quoted(word)
            );
            Err(Fault::unsupported(line.place(), message))
        }
    }
}

fn missing(key: &str) -> Fault {
    Fault::malformed(Place::Whole, format!("the header has no line {key}"))
}

fn words<'a>(line: Line<'a>) -> Parsed<Vec<&'a [u8]>> {
    let words = line.words().skip(1).take(MAX_COLUMNS + 1);
    let mut list = Vec::new();
    for word in words {
        make_room_for_one(&mut list, "the words of a line")?;
        list.push(word);
    }
    check_width(&list, line.number)?;
    Ok(list)
}

fn fields(keys: &Keys<'_>) -> Parsed<Vec<Field>> {
    let names = words(keys.fields.ok_or_else(|| missing("FIELDS"))?)?;
    let (size_line, kind_line) = (
        keys.size.ok_or_else(|| missing("SIZE"))?,
        keys.kind.ok_or_else(|| missing("TYPE"))?,
    );
    let (sizes, kinds) = (words(size_line)?, words(kind_line)?);
    let counts = match keys.count {
        Some(line) => words(line)?,
        None => filled(names.len(), &b"1"[..], "the fields of points")?,
    };
    for (list, key) in [(&sizes, "SIZE"), (&kinds, "TYPE"), (&counts, "COUNT")] {
        if list.len() != names.len() {
            let message = format!("{key} has {} words for {} FIELDS", list.len(), names.len());
            return Err(Fault::malformed(Place::Whole, message));
        }
    }
    let mut fields = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let scalar = scalar(kinds[place], sizes[place]).ok_or_else(|| {
            let message = format!(
                "the field {} has TYPE {} and SIZE {}: F of 4 and 8, I and U of 1, 2, 4 and 8 are \
                 read",
                quoted(name),
                quoted(kinds[place]),
                quoted(sizes[place])
            );
            Fault::unsupported(Place::Whole, message)
        })?;
        let count = parse(counts[place]).ok_or_else(|| {
            let message = format!("{} is not the COUNT of a field", quoted(counts[place]));
            Fault::malformed(Place::Whole, message)
        })?;
        make_room_for_one(&mut fields, "the fields of points")?;
        let name = String::from_utf8_lossy(name).into_owned();
        fields.push(Field {
            name,
            scalar,
            count,
        });
    }
    Ok(fields)
}

fn scalar(kind: &[u8], size: &[u8]) -> Option<Scalar> {
    Some(match (kind, size) {
        (b"F", b"4") => Scalar::F32,
        (b"F", b"8") => Scalar::F64,
        (b"I", b"1") => Scalar::I8,
        (b"I", b"2") => Scalar::I16,
        (b"I", b"4") => Scalar::I32,
        (b"I", b"8") => Scalar::I64,
        (b"U", b"1") => Scalar::U8,
        (b"U", b"2") => Scalar::U16,
        (b"U", b"4") => Scalar::U32,
        (b"U", b"8") => Scalar::U64,
        _ => return None,
    })
}

/// The fields x, y and perhaps z.
fn axes(fields: &[Field], line: Option<Line<'_>>) -> Parsed<[Option<usize>; 3]> {
    let axes = ["x", "y", "z"].map(|axis| {
        let mut places = fields.iter();
        places.position(|field| field.name == axis && field.count == 1)
    });
    if axes[0].is_some() && axes[1].is_some() {
        return Ok(axes);
    }
    let place = line.map_or(Place::Whole, Line::place);
    let message = "the FIELDS have no x and y of COUNT 1";
    Err(Fault::malformed(place, message))
}

fn points(keys: &Keys<'_>) -> Parsed<usize> {
    let number = |line: Line<'_>| {
        let word = line.words().nth(1).unwrap_or_default();
        parse(word).ok_or_else(|| {
            let message = format!("{} is not a number of points", quoted(word));
            Fault::malformed(line.place(), message)
        })
    };
    let points: Option<usize> = keys.points.map(number).transpose()?;
    let width: Option<usize> = keys.width.map(number).transpose()?;
    let height: usize = keys.height.map(number).transpose()?.unwrap_or(1);
    let product = width.and_then(|width| width.checked_mul(height));
    match (points, product) {
        (Some(points), Some(product)) if points != product => {
            let message = format!("POINTS is {points}, but WIDTH times HEIGHT is {product}");
            Err(Fault::malformed(Place::Whole, message))
        }
        (Some(points), _) => Ok(points),
        (None, Some(product)) => Ok(product),
        (None, None) => Err(missing("POINTS")),
    }
}

fn text(header: &Header, mut lines: Lines<'_>) -> Parsed<Positions> {
    let words_of = |fields: &[Field]| {
        let counts = fields.iter().map(|field| field.count);
        counts.fold(0, usize::saturating_add)
    };
    let words = words_of(&header.fields);
    lines.check_room(header.points, words.saturating_mul(2), "points")?;
    let columns = header.axes.map(|axis| {
        axis.map(|place: usize| {
            (
                words_of(&header.fields[..place]),
                header.fields[place].scalar,
            )
        })
    });
    let mut positions = Positions::with_capacity(header.points)?;
    for point in 0..header.points {
        let line = lines.expect(&format!("point {point} of {}", header.points))?;
        positions.push(text_point(line, words, &columns)?)?;
    }
    while let Some(text) = lines.peek() {
        if !text.trim_ascii().is_empty() {
            let message = format!("{} follows the last point", quoted(text));
            return Err(Fault::malformed(lines.place(), message));
        }
        lines.next();
    }
    Ok(positions)
}

fn text_point(
    line: Line<'_>,
    expected: usize,
    columns: &[Option<(usize, Scalar)>; 3],
) -> Parsed<[Number; 3]> {
    let mut point = [Number::ZERO; 3];
    let mut found: usize = 0;
    for (column, word) in line.words().enumerate() {
        found += 1;
        for (axis, wanted) in columns.iter().enumerate() {
            if let Some((_, scalar)) = wanted.filter(|&(place, _)| place == column) {
                let value = match scalar {
                    Scalar::F32 => parse::<f32>(word).map(Number::from),
                    Scalar::F64 => parse::<f64>(word).map(Number::from),
                    _ => parse::<i64>(word).map(Number::from),
                };
                point[axis] = value.ok_or_else(|| {
                    let (line, column) = (line.number, column + 1);
                    Fault::malformed(Place::Column { line, column }, not_a_number(word))
                })?;
            }
        }
    }
    if found != expected {
        let message = format!("{found} columns where the FIELDS have {expected}");
        return Err(Fault::malformed(line.place(), message));
    }
    Ok(point)
}

fn binary(header: &Header, bytes: &[u8], lines: Lines<'_>) -> Parsed<Positions> {
    let at = lines.cursor().at();
    let data = &bytes[at..];
    header.check_length(data.len(), Place::Byte(at))?;
    let row = header.row();
    let mut positions = Positions::with_capacity(header.points)?;
    let offsets = header
        .axes
        .map(|axis| axis.map(|place| (header.offset(place), header.fields[place].scalar)));
    for point in data.chunks_exact(row.max(1)) {
        positions.push(offsets.map(|axis| match axis {
            Some((offset, scalar)) => number(&point[offset..], scalar),
            None => Number::ZERO,
        }))?;
    }
    Ok(positions)
}

/// The first value of `bytes`. PCL writes in this machine's order, which is taken for little.
fn number(bytes: &[u8], scalar: Scalar) -> Number {
    let endian = Endian::Little;
    RawArray {
        bytes,
        scalar,
        endian,
    }
    .number(0)
}

fn compressed(header: &Header, bytes: &[u8], lines: Lines<'_>) -> Parsed<Positions> {
    let mut cursor = lines.cursor();
    let at = Place::Byte(cursor.at());
    let mut size = || {
        let bytes = cursor.take(4).and_then(|bytes| bytes.first_chunk());
        let message = "the file ends before the sizes of its data";
        bytes
            .map(|bytes| u32::from_le_bytes(*bytes) as usize)
            .ok_or_else(|| Fault::truncated(at, message))
    };
    let (packed, unpacked) = (size()?, size()?);
    let begin = cursor.at();
    let data = bytes.get(begin..begin.saturating_add(packed));
    let data = data.ok_or_else(|| {
        let left = cursor.remaining();
        let message = format!("{packed} bytes of data are announced, but only {left} follow");
        Fault::truncated(at, message)
    })?;
    header.check_length(unpacked, at)?;
    let broken = |message: String| Fault::malformed(Place::Byte(begin), message);
    // Nothing is kept before the data are known to be in order.
    lzf::unpack(data, unpacked, |_, _| {}).map_err(broken)?;
    let wanted = header.axes.map(|axis| {
        axis.map(|place| {
            let scalar = header.fields[place].scalar;
            (header.offset(place) * header.points, scalar)
        })
    });
    let mut columns: [Vec<u8>; 3] = Default::default();
    for (column, wanted) in columns.iter_mut().zip(wanted) {
        let size = wanted.map_or(0, |(_, scalar)| scalar.size() * header.points);
        *column = filled(size, 0, "the coordinates of a file")?;
    }
    lzf::unpack(data, unpacked, |from, bytes| {
        for (column, wanted) in columns.iter_mut().zip(wanted) {
            let Some((begin, _)) = wanted else { continue };
            let first = begin.max(from);
            let end = (begin + column.len()).min(from + bytes.len());
            if first < end {
                column[first - begin..end - begin]
                    .copy_from_slice(&bytes[first - from..end - from]);
            }
        }
    })
    .map_err(broken)?;
    let mut positions = Positions::with_capacity(header.points)?;
    for point in 0..header.points {
        let mut axes = [Number::ZERO; 3];
        for ((axis, column), wanted) in axes.iter_mut().zip(&columns).zip(wanted) {
            if let Some((_, scalar)) = wanted {
                *axis = number(&column[point * scalar.size()..], scalar);
            }
        }
        positions.push(axes)?;
    }
    Ok(positions)
}

//! Point clouds of laser scanners (ASPRS LAS 1.0 to 1.4), with intensity and classification.
//!
//! Coordinates are whole numbers with a factor and an offset for each axis, computed in double
//! precision. Compressed files (LAZ) are refused, with the programs that unpack them. **Invariant
//! others rely on:** every record of the announced number is a point.

use nearfield_grid::memory::with_room;

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    error::{Fault, Parsed, Place, quoted},
    number::Number,
    point_data::PointData,
};

/// The least bytes of a record of each format.
const RECORDS: [usize; 11] = [20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67];

/// The first format whose records have the classification in a byte of its own.
const WIDE: u8 = 6;

/// Reads all points.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let header = Header { bytes };
    if !bytes.starts_with(b"LASF") {
        let found = quoted(bytes.get(..4).unwrap_or(bytes));
        let message = format!("the file begins with {found}, not with LASF");
        return Err(Fault::malformed(Place::Byte(0), message));
    }
    let [major, minor] = header.number(24)?;
    if major != 1 || minor > 4 {
        let message = format!("version {major}.{minor} is not read; 1.0 to 1.4 are");
        return Err(Fault::unsupported(Place::Byte(24), message));
    }
    let [format] = header.number(104)?;
    if format & 0xc0 != 0 {
        let message = "the points are compressed (LAZ): unpack them by laszip, pdal translate or \
                       las2las";
        return Err(Fault::unsupported(Place::Byte(104), message));
    }
    let least = RECORDS.get(usize::from(format)).ok_or_else(|| {
        let message = format!("point format {format} is not known; 0 to 10 are");
        Fault::unsupported(Place::Byte(104), message)
    })?;
    let length = usize::from(u16::from_le_bytes(header.number(105)?));
    if length < *least {
        let message = format!("records of {length} bytes are too short for point format {format}");
        return Err(Fault::malformed(Place::Byte(105), message));
    }
    let short = u64::from(u32::from_le_bytes(header.number(107)?));
    let count = match minor {
        4 => u64::from_le_bytes(header.number(247)?),
        _ => short,
    };
    let begin = u32::from_le_bytes(header.number(96)?) as usize;
    let records = bytes.get(begin..).unwrap_or_default();
    let all = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(length));
    let records = all.and_then(|all| records.get(..all)).ok_or_else(|| {
        let left = records.len();
        let message =
            format!("{count} points of {length} bytes are announced, but {left} bytes follow");
        Fault::truncated(Place::Byte(begin), message)
    })?;
    let points = records.len() / length;
    let mut axes = [(0.0, 0.0); 3];
    for (axis, (scale, offset)) in axes.iter_mut().enumerate() {
        *scale = f64::from_le_bytes(header.number(131 + 8 * axis)?);
        *offset = f64::from_le_bytes(header.number(155 + 8 * axis)?);
    }
    let mut positions = Positions::with_capacity(points)?;
    let mut intensities = with_room::<u32>(points, "points of a file")?;
    let mut classes = with_room::<u32>(points, "points of a file")?;
    for bytes in records.chunks_exact(length) {
        let record = Header { bytes };
        let mut position = [Number::ZERO; 3];
        for (axis, (coordinate, (scale, offset))) in position.iter_mut().zip(axes).enumerate() {
            let whole = i32::from_le_bytes(record.number(4 * axis)?);
            *coordinate = Number::from(f64::from(whole) * scale + offset);
        }
        positions.push(position)?;
        intensities.push(u16::from_le_bytes(record.number(12)?).into());
        let [class] = record.number(if format < WIDE { 15 } else { 16 })?;
        classes.push(u32::from(if format < WIDE { class & 31 } else { class }));
    }
    Ok(PointCloud {
        unread: unread(format, length > *least),
        data: vec![
            PointData::scalars("intensity", intensities),
            PointData::scalars("classification", classes),
        ],
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

/// The fields of records that are not read.
fn unread(format: u8, more: bool) -> Vec<String> {
    let fields: [(&str, &[u8]); 5] = [
        (
            "returns, flags, angle and source",
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        ),
        ("time", &[1, 3, 4, 5, 6, 7, 8, 9, 10]),
        ("colours", &[2, 3, 5, 7, 8, 10]),
        ("near infrared", &[8, 10]),
        ("waveforms", &[4, 5, 9, 10]),
    ];
    let there = fields
        .iter()
        .filter(|(_, formats)| formats.contains(&format));
    let names = there
        .map(|&(name, _)| name)
        .chain(more.then_some("extra bytes"));
    names.map(str::to_owned).collect()
}

/// The numbers of a header or a record, in little-endian order.
#[derive(Clone, Copy)]
struct Header<'a> {
    bytes: &'a [u8],
}

impl Header<'_> {
    fn number<const N: usize>(self, at: usize) -> Parsed<[u8; N]> {
        let found = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        found.copied().ok_or_else(|| {
            let message = "the file ends inside its header";
            Fault::truncated(Place::Byte(self.bytes.len()), message)
        })
    }
}

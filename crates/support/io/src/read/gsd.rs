//! Trajectories of HOOMD-blue (GSD 1 and 2, schema `hoomd`).
//!
//! A header says where an index and a list of names are; an entry of the index says where a chunk
//! of a frame is: its name, the type of its numbers, and how many rows and columns it has. A frame
//! without a chunk has that of the first frame, if that has as many particles, or else a default.
//! **Invariant others rely on:** an opened file has checked that every chunk lies within the file,
//! so a file that was cut off is refused, whichever frame is asked for.

use super::{cell, names::Names, open::no_frame};
use crate::{
    cloud::{Dimensions, Frame, Frames, PointCloud, Positions, SimulationBox},
    error::{Fault, Parsed, Place, quoted},
    number::Numbers,
    point_data::PointData,
    raw::{Endian, RawArray, Scalar},
};
use nearfield_grid::memory::{make_room_for_one, with_room};

const MAGIC: u64 = 0x65df_65df_65df_65df;
/// Bytes of the header, of an entry of the index, and of one of the list of names.
const HEADER: usize = 256;
const ENTRY: usize = 32;
const NAME: usize = 64;

/// Quantities of particles that are read, with their numbers per particle.
const QUANTITIES: [(&str, usize); 10] = [
    ("velocity", 3),
    ("mass", 1),
    ("charge", 1),
    ("diameter", 1),
    ("body", 1),
    ("image", 3),
    ("orientation", 4),
    ("angmom", 4),
    ("moment_inertia", 3),
    ("typeid", 1),
];

/// A chunk of a frame.
#[derive(Clone, Copy)]
struct Entry {
    frame: u64,
    name: u16,
    /// Of the entry in the file.
    at: usize,
}

/// The numbers of a chunk.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    array: RawArray<'a>,
    rows: usize,
    columns: usize,
    place: Place,
}

/// A file whose index has been read.
pub(super) struct Trajectory<'a> {
    bytes: &'a [u8],
    names: Vec<&'a [u8]>,
    /// By frame and name.
    entries: Vec<Entry>,
    frames: usize,
}

/// Reads one frame, and counts all.
pub(super) fn read(bytes: &[u8], which: Frame) -> Parsed<PointCloud> {
    let file = Trajectory::open(bytes)?;
    match which {
        Frame::Number(number) => file.frame(number),
        Frame::Last => file.frame(file.frames()),
    }
}

impl<'a> Trajectory<'a> {
    /// Reads the index, and checks that all chunks are there.
    pub(super) fn open(bytes: &'a [u8]) -> Parsed<Self> {
        let malformed = |at, message: String| Err(Fault::malformed(Place::Byte(at), message));
        if bytes.len() < 8 || number::<8>(bytes, 0)? != MAGIC {
            let found = quoted(bytes.get(..8).unwrap_or(bytes));
            return malformed(0, format!("the file begins with {found}, not as GSD does"));
        }
        let version = number::<4>(bytes, 44)?;
        let major = version >> 16;
        if !(1..=2).contains(&major) {
            let message = format!("version {major} of GSD is not read; 1 and 2 are");
            return Err(Fault::unsupported(Place::Byte(44), message));
        }
        let (index, room) = table(bytes, 8, ENTRY, "the index")?;
        let (list, _) = table(bytes, 24, NAME, "the list of names")?;
        let names = names(list, major)?;
        let mut entries = with_room(used(index), "the index of a file")?;
        for (number, entry) in index.chunks_exact(ENTRY).take(used(index)).enumerate() {
            let at = room + number * ENTRY;
            let (frame, name) = (self::number::<8>(entry, 0)?, self::number::<2>(entry, 28)?);
            if frame >= (index.len() / ENTRY) as u64 || name >= names.len() as u64 {
                let message =
                    format!("entry {number} of the index is of frame {frame}, name {name}");
                return malformed(at, message);
            }
            let name = name as u16;
            entries.push(Entry { frame, name, at });
        }
        entries.sort_by_key(|entry| (entry.frame, entry.name));
        let frames = entries.last().map_or(0, |entry| entry.frame as usize + 1);
        let file = Self {
            bytes,
            names,
            entries,
            frames,
        };
        let mut room = bytes.len();
        for entry in &file.entries {
            let chunk = file.chunk(*entry)?;
            let left = room.checked_sub(chunk.array.bytes.len());
            room = left.ok_or_else(|| {
                let message = "all chunks together have more bytes than the file has";
                Fault::malformed(chunk.place, message)
            })?;
        }
        Ok(file)
    }

    /// The number of frames.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// The chunk of an entry.
    fn chunk(&self, entry: Entry) -> Parsed<Chunk<'a>> {
        let place = Place::Byte(entry.at);
        let of = &self.bytes[entry.at..];
        let (rows, begin, columns) = (
            number::<8>(of, 8)?,
            number::<8>(of, 16)?,
            number::<4>(of, 24)?,
        );
        let scalar = match of[30] {
            1 => Scalar::U8,
            2 => Scalar::U16,
            3 => Scalar::U32,
            4 => Scalar::U64,
            5 | 11 => Scalar::I8,
            6 => Scalar::I16,
            7 => Scalar::I32,
            8 => Scalar::I64,
            9 => Scalar::F32,
            10 => Scalar::F64,
            other => {
                let message = format!("type {other} of numbers is not known; 1 to 11 are");
                return Err(Fault::unsupported(place, message));
            }
        };
        let length = usize::try_from(rows).ok().and_then(|rows| {
            let numbers = rows.checked_mul(columns as usize)?;
            numbers.checked_mul(scalar.size())
        });
        let begin = usize::try_from(begin).ok();
        let end = begin
            .zip(length)
            .and_then(|(begin, length)| begin.checked_add(length));
        let bytes = begin
            .zip(end)
            .and_then(|(begin, end)| self.bytes.get(begin..end));
        let Some(bytes) = bytes else {
            let name = quoted(self.names[usize::from(entry.name)]);
            let message = format!(
                "{rows}×{columns} numbers of {name} of frame {} are announced, but the file ends \
                 before",
                entry.frame + 1
            );
            return Err(Fault::truncated(place, message));
        };
        let endian = Endian::Little;
        Ok(Chunk {
            array: RawArray {
                bytes,
                scalar,
                endian,
            },
            rows: rows as usize,
            columns: columns as usize,
            place,
        })
    }

    /// The chunk of this name that a frame (counted from 0) has itself.
    fn own(&self, frame: usize, name: &str) -> Parsed<Option<Chunk<'a>>> {
        let wanted = self.names.iter().position(|one| *one == name.as_bytes());
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        let key = (frame as u64, wanted as u16);
        let found = self
            .entries
            .binary_search_by_key(&key, |entry| (entry.frame, entry.name));
        found
            .ok()
            .map(|at| self.chunk(self.entries[at]))
            .transpose()
    }

    /// The chunk of a frame, or that of the first.
    fn kept(&self, frame: usize, name: &str) -> Parsed<Option<Chunk<'a>>> {
        match self.own(frame, name)? {
            None if frame > 0 => self.own(0, name),
            chunk => Ok(chunk),
        }
    }

    /// A quantity of `points` particles of a frame, or that of the first if it is of as many.
    fn of_particles(
        &self,
        frame: usize,
        name: &str,
        points: usize,
        columns: usize,
    ) -> Parsed<Option<Chunk<'a>>> {
        let name = format!("particles/{name}");
        let chunk = match self.own(frame, &name)? {
            None if self.points(0)? == points => self.own(0, &name)?,
            chunk => chunk,
        };
        match chunk {
            Some(chunk) if (chunk.rows, chunk.columns) != (points, columns) => {
                let message = format!(
                    "{name} has {}×{} numbers where {points}×{columns} are expected",
                    chunk.rows, chunk.columns
                );
                Err(Fault::malformed(chunk.place, message))
            }
            chunk => Ok(chunk),
        }
    }

    /// Number of particles of a frame.
    fn points(&self, frame: usize) -> Parsed<usize> {
        let chunk = self.kept(frame, "particles/N")?;
        Ok(chunk.map_or(0, |chunk| chunk.array.number(0).double as usize))
    }

    /// Reads the frame with this number, counted from 1.
    pub(super) fn frame(&self, number: usize) -> Parsed<PointCloud> {
        if self.frames == 0 {
            return Err(Fault::malformed(Place::Whole, "there is no frame"));
        }
        let Some(frame) = number.checked_sub(1).filter(|&frame| frame < self.frames) else {
            return Err(no_frame(number, self.frames));
        };
        let points = self.points(frame)?;
        let mut positions = Positions::default();
        match self.of_particles(frame, "position", points, 3)? {
            Some(chunk) => positions.extend(&chunk.array, points)?,
            None if points == 0 => {}
            None => {
                let message =
                    format!("frame {number} has no particles/position: is it of HOOMD-blue?");
                return Err(Fault::unsupported(Place::Whole, message));
            }
        }
        let mut data = Vec::new();
        for (name, columns) in QUANTITIES {
            if let Some(chunk) = self.of_particles(frame, name, points, columns)? {
                let values = chunk.array.to_values()?;
                data.extend(PointData::tuples(name, columns, values));
            }
        }
        Ok(PointCloud {
            simulation_box: self.bounds(frame)?,
            species: self.species(frame, points)?,
            data,
            unread: self.unread(frame)?,
            frames: Frames {
                number,
                count: self.frames,
                cut_off: false,
            },
            ..PointCloud::new(positions, Dimensions::Three)
        })
    }

    /// The box: three lengths and the tilts as shares of lengths; in two dimensions z is open.
    fn bounds(&self, frame: usize) -> Parsed<Option<SimulationBox>> {
        let Some(chunk) = self.kept(frame, "configuration/box")? else {
            return Ok(None);
        };
        if chunk.rows * chunk.columns != 6 {
            let message = "configuration/box has not six numbers";
            return Err(Fault::malformed(chunk.place, message));
        }
        let [lx, ly, mut lz, xy, xz, yz] =
            [0, 1, 2, 3, 4, 5].map(|at| chunk.array.number(at).double);
        let dimensions = self.kept(frame, "configuration/dimensions")?;
        let flat = dimensions.is_some_and(|chunk| chunk.array.number(0).double == 2.0);
        if flat && lz == 0.0 {
            lz = 1.0;
        }
        let vectors = cell::tilted([lx, ly, lz], [xy * ly, xz * lz, yz * lz]);
        let is_box = [lx, ly, lz].iter().any(|&length| length != 0.0);
        Ok(is_box.then_some(SimulationBox {
            vectors,
            periodic: [true, true, !flat],
        }))
    }

    /// Names of the particles' types, if the file names any.
    fn species(&self, frame: usize, points: usize) -> Parsed<Option<crate::Species>> {
        let Some(types) = self.kept(frame, "particles/types")? else {
            return Ok(None);
        };
        let ids = self.of_particles(frame, "typeid", points, 1)?;
        let name = |id: usize| {
            let rows = types.array.bytes.chunks_exact(types.columns.max(1));
            let name = rows.clone().nth(id)?;
            Some(name.split(|&byte| byte == 0).next().unwrap_or_default())
        };
        let mut names = Names::default();
        for point in 0..points {
            let id = ids.map_or(0.0, |ids| ids.array.number(point).double);
            let Some(name) = name(id as usize) else {
                let message = format!("particle {point} has type {id} of {} types", types.rows);
                return Err(Fault::malformed(types.place, message));
            };
            names.add(name)?;
        }
        Ok(Some(names.finish()))
    }

    /// Names of the chunks of a frame that say nothing that is read.
    fn unread(&self, frame: usize) -> Parsed<Vec<String>> {
        const READ: [&str; 5] = [
            "particles/N",
            "particles/position",
            "particles/types",
            "configuration/box",
            "configuration/dimensions",
        ];
        let is_read = |name: &str| {
            let quantity = name.strip_prefix("particles/");
            READ.contains(&name) || QUANTITIES.iter().any(|(one, _)| Some(*one) == quantity)
        };
        let mut unread = Vec::new();
        let first = self
            .entries
            .partition_point(|entry| entry.frame < frame as u64);
        let of_frame = self.entries[first..].iter();
        for entry in of_frame.take_while(|entry| entry.frame == frame as u64) {
            let name = String::from_utf8_lossy(self.names[usize::from(entry.name)]);
            if !is_read(&name) {
                make_room_for_one(&mut unread, "names of a file")?;
                unread.push(name.into_owned());
            }
        }
        Ok(unread)
    }
}

/// The number of `N` bytes at a place.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Parsed<u64> {
    let found = bytes.get(at..at + N).ok_or_else(|| {
        let message = format!("the file ends within the {HEADER} bytes of its header");
        Fault::truncated(Place::Byte(bytes.len()), message)
    })?;
    let mut word = [0; 8];
    word[..N].copy_from_slice(found);
    Ok(u64::from_le_bytes(word))
}

/// A table whose place and number of entries the header has from `at` on, and where it begins.
fn table<'a>(bytes: &'a [u8], at: usize, size: usize, what: &str) -> Parsed<(&'a [u8], usize)> {
    if bytes.len() < HEADER {
        return number::<8>(bytes, bytes.len()).map(|_| (bytes, 0));
    }
    let (begin, count) = (number::<8>(bytes, at)?, number::<8>(bytes, at + 8)?);
    let range = || {
        let begin = usize::try_from(begin).ok()?;
        let length = usize::try_from(count).ok()?.checked_mul(size)?;
        Some((bytes.get(begin..begin.checked_add(length)?)?, begin))
    };
    range().ok_or_else(|| {
        let message = format!("{what} has {count} entries from byte {begin} on: beyond the file");
        Fault::truncated(Place::Byte(at), message)
    })
}

/// Entries of the index up to the first without a place.
fn used(index: &[u8]) -> usize {
    let entries = index.chunks_exact(ENTRY);
    let is_used = |entry: &&[u8]| entry[16..24].iter().any(|&byte| byte != 0);
    entries.take_while(is_used).count()
}

/// The names of chunks: in version 1 in fields of 64 bytes, later one behind the other.
fn names(list: &[u8], major: u64) -> Parsed<Vec<&[u8]>> {
    let mut names = Vec::new();
    let mut add = |name| {
        make_room_for_one(&mut names, "names of a file")?;
        names.push(name);
        Parsed::Ok(())
    };
    let end = |field: &[u8]| {
        field
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(field.len())
    };
    if major == 1 {
        let fields = list.chunks_exact(NAME).map(|field| &field[..end(field)]);
        fields
            .take_while(|name| !name.is_empty())
            .try_for_each(&mut add)?;
    } else {
        let mut rest = list;
        while end(rest) > 0 {
            let (name, behind) = rest.split_at(end(rest));
            add(name)?;
            rest = behind.get(1..).unwrap_or_default();
        }
    }
    names.truncate(usize::from(u16::MAX) + 1);
    Ok(names)
}

//! Reading a trace.
//!
//! A file that does not begin as a trace is refused. A line further down that cannot be read, as a
//! crash leaves one at the end, is left out, and [`Damage`] says so; everything else is kept. Of a
//! compressed trace that holds for everything behind the first damage. Compressed traces are told
//! by their first bytes, whatever their name.

use crate::{
    Error, ErrorKind,
    model::{FORMAT, Header, Note, Occupancy, Record, Retune, Span, Step, Subregion, VERSION},
    ranks,
};
use nearfield_files::zstd::{Decompressor, MAGIC};
use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// Maximum length of a line, bytes. Writers stay far below it; parsing a line may take sixteen
/// times as much memory.
const LONGEST: u64 = 1 << 20;

/// Bytes of memory that a byte of a trace may still take when as many again have been read, in
/// records, vectors that double, and analysis. A trace of a bench takes 7.2 a byte in all.
const PER_BYTE: usize = 6;

/// Damage of a trace that could still be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// The file was not closed: the program crashed, was killed, or is still running.
    pub cut: bool,
    /// Records dropped while recording because the writer could not keep up.
    pub dropped: u64,
    /// Lines that could not be read.
    pub lines: u64,
    /// The first unreadable line, from 1, and its fault.
    pub first: Option<(u64, String)>,
    /// Lines of a kind that this version does not know.
    pub unknown: u64,
}

impl Damage {
    /// Whether nothing is missing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.cut {
            parts.push("the trace was not closed, so its end is missing".to_owned());
        }
        if self.dropped > 0 {
            parts.push(format!(
                "{} records were dropped while recording",
                self.dropped
            ));
        }
        if let Some((line, reason)) = &self.first {
            let lines = self.lines;
            let plural = if lines == 1 { "line" } else { "lines" };
            parts.push(format!(
                "{lines} {plural} cannot be read, the first is {line}: {reason}"
            ));
        }
        if self.unknown > 0 {
            parts.push(format!("lines of kinds not known here: {}", self.unknown));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A trace that has been read: its records by kind, each kind in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Where it came from.
    pub name: String,
    /// The first line.
    pub header: Header,
    /// Stages.
    pub spans: Vec<Span>,
    /// Steps, if the program marked any.
    pub steps: Vec<Step>,
    /// Figures of backends for subregions.
    pub subregions: Vec<Subregion>,
    /// Decisions of the policy.
    pub retunes: Vec<Retune>,
    /// Occupancies.
    pub occupancies: Vec<Occupancy>,
    /// Warnings and other events.
    pub notes: Vec<Note>,
    /// The missing parts.
    pub damage: Damage,
}

impl Trace {
    /// Reads a file. Ranks that were threads of the program are backends of their own in it, as in
    /// one that `write_merged` of the crate `nearfield-trace-analysis` makes.
    ///
    /// # Errors
    /// [`ErrorKind::Read`]; [`ErrorKind::Truncated`], [`ErrorKind::Foreign`] and
    /// [`ErrorKind::Newer`] for files that do not begin as a trace of a version up to [`VERSION`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opened = File::open(path).and_then(|file| match file.metadata() {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            _ => Ok(file),
        });
        let file = opened
            .map_err(|error| nearfield_files::of_a_file(path, error))
            .map_err(Error::read(path))?;
        Self::read(BufReader::new(file), &path.display().to_string())
    }

    /// Reads a trace, compressed or not, that messages call `name`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(mut from: impl BufRead, name: &str) -> Result<Self, Error> {
        let first = from.fill_buf().map_err(Error::read(name.as_ref()))?;
        if first.starts_with(&MAGIC) {
            return Self::read_lines(BufReader::new(Decompressor::new(from)), name);
        }
        Self::read_lines(from, name)
    }

    /// Reads the lines of a trace.
    fn read_lines(mut from: impl BufRead, name: &str) -> Result<Self, Error> {
        let refuse = Error::read(name.as_ref());
        let mut line = Vec::new();
        next_line(&mut from, &mut line).map_err(&refuse)?;
        let mut trace = Self::empty(header(&line, name)?, name);
        let mut closed = false;
        let mut memory = Memory::default();
        for number in 2.. {
            let length = match next_line(&mut from, &mut line) {
                Ok(0) => break,
                Ok(length) => length,
                // Of what cannot be decompressed nothing more is known.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    trace.damage.line(number, error.to_string());
                    break;
                }
                Err(error) => return Err(refuse(error)),
            };
            memory.read(length).map_err(&refuse)?;
            match record(&line) {
                Ok(None) => {}
                Ok(Some(record)) => closed |= trace.take(record),
                Err(reason) => trace.damage.line(number, reason),
            }
        }
        trace.damage.cut = !closed;
        let (spans, steps) = (&mut trace.spans, &mut trace.steps);
        ranks::tell_apart(spans, steps, &mut trace.subregions);
        Ok(trace)
    }

    pub(crate) fn empty(header: Header, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            header,
            spans: Vec::new(),
            steps: Vec::new(),
            subregions: Vec::new(),
            retunes: Vec::new(),
            occupancies: Vec::new(),
            notes: Vec::new(),
            damage: Damage::default(),
        }
    }

    /// Sorts a record in; true for the last line.
    fn take(&mut self, record: Record) -> bool {
        match record {
            Record::Span(span) => self.spans.push(span),
            Record::Step(step) => self.steps.push(step),
            Record::Subregion(one) | Record::Job(one) => self.subregions.push(one),
            Record::Retune(retune) | Record::JobRetune(retune) => self.retunes.push(retune),
            Record::Occupancy(occupancy) => self.occupancies.push(occupancy),
            Record::Note(note) => self.notes.push(note),
            Record::Lost(lost) => {
                self.damage.dropped = self.damage.dropped.saturating_add(lost.records);
            }
            Record::Unknown | Record::Header(_) => self.damage.unknown += 1,
            Record::End(_) => return true,
        }
        false
    }
}

/// Memory for records and their analysis, which is asked for while a trace is read.
#[derive(Default)]
struct Memory {
    /// Bytes of lines.
    read: usize,
    /// Bytes of lines for which there is enough.
    enough: usize,
}

impl Memory {
    /// Accounts for another line of this many bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`].
    fn read(&mut self, line: usize) -> io::Result<()> {
        self.read += line;
        if self.read > self.enough {
            self.enough = (2 * self.read).max(1 << 20);
            nearfield_files::ask_for_memory(PER_BYTE * self.enough, "the records of the trace")?;
        }
        Ok(())
    }
}

impl Damage {
    fn line(&mut self, number: u64, reason: String) {
        self.lines += 1;
        self.first.get_or_insert((number, reason));
    }
}

/// Reads the next line with its end, keeps at most [`LONGEST`] bytes of it, and returns its length.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    let mut length = from.by_ref().take(LONGEST).read_until(b'\n', line)?;
    let mut rest = Vec::new();
    while length as u64 >= LONGEST && line.last() != Some(&b'\n') {
        rest.clear();
        let more = from.by_ref().take(LONGEST).read_until(b'\n', &mut rest)?;
        length += more;
        if more == 0 || rest.last() == Some(&b'\n') {
            break;
        }
    }
    Ok(length)
}

/// The record of a line; none for an empty one.
fn record(line: &[u8]) -> Result<Option<Record>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(record) => Ok(Some(record)),
        Err(_) if !line.ends_with(b"\n") => Err("it ends in the middle".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The fields that tell a trace from other files; nothing else of the line is kept.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Beginning<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: Option<u64>,
}

/// The header of a trace from its first line.
fn header(line: &[u8], name: &str) -> Result<Header, Error> {
    let foreign = |reason: String| {
        let name = name.to_owned();
        Error::from(ErrorKind::Foreign { name, reason })
    };
    let whole = line.ends_with(b"\n");
    let found: Beginning<'_> = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) if !whole && (line.is_empty() || error.is_eof()) => {
            let (name, bytes) = (name.to_owned(), line.len());
            return Err(ErrorKind::Truncated { name, bytes }.into());
        }
        // Numbers where names should be, or a list.
        Err(error) if error.is_data() => Beginning::default(),
        Err(_) => return Err(foreign("its first line is not JSON".into())),
    };
    if found.record != "header" || found.format != FORMAT {
        return Err(foreign(format!(
            "its first line is not a header with \"format\":\"{FORMAT}\""
        )));
    }
    match found.version {
        Some(version) if version > u64::from(VERSION) => Err(ErrorKind::Newer {
            name: name.to_owned(),
            found: version,
            known: VERSION,
        }
        .into()),
        Some(1..) => match serde_json::from_slice(line) {
            Ok(Record::Header(header)) => Ok(header),
            Ok(_) => Err(foreign("its first line is not a header".into())),
            Err(error) => Err(foreign(format!("its header is incomplete: {error}"))),
        },
        _ => Err(foreign("its header has no version from 1".into())),
    }
}

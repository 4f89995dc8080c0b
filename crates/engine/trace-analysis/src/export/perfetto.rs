//! Perfetto's own format: a protocol buffer of track events.
//!
//! Reference: `protos/perfetto/trace/track_event/` of the Perfetto project. A file is a `Trace`, a
//! list of `TracePacket`s; the few kinds of fields that are needed are written by hand. Every
//! packet says its time in nanoseconds, so nothing is rounded, and names its track.

use super::events::{Track, counts, moments, tracks};
use crate::analysis::Analysis;
use serde_json::Value;
use std::io::{self, Write};

/// Numbers of fields, by message.
mod field {
    pub(super) const PACKET: u32 = 1;
    pub(super) mod packet {
        pub(crate) const TIMESTAMP: u32 = 8;
        pub(crate) const SEQUENCE: u32 = 10;
        pub(crate) const EVENT: u32 = 11;
        pub(crate) const DESCRIPTOR: u32 = 60;
    }
    pub(super) mod descriptor {
        pub(crate) const UUID: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const PROCESS: u32 = 3;
        pub(crate) const PARENT: u32 = 5;
        pub(crate) const COUNTER: u32 = 8;
    }
    pub(super) mod process {
        pub(crate) const PID: u32 = 1;
        pub(crate) const NAME: u32 = 6;
    }
    pub(super) mod event {
        pub(crate) const ANNOTATION: u32 = 4;
        pub(crate) const TYPE: u32 = 9;
        pub(crate) const TRACK: u32 = 11;
        pub(crate) const CATEGORY: u32 = 22;
        pub(crate) const NAME: u32 = 23;
        pub(crate) const VALUE: u32 = 44;
    }
    pub(super) mod annotation {
        pub(crate) const BOOL: u32 = 2;
        pub(crate) const UINT: u32 = 3;
        pub(crate) const INT: u32 = 4;
        pub(crate) const DOUBLE: u32 = 5;
        pub(crate) const TEXT: u32 = 6;
        pub(crate) const NAME: u32 = 10;
    }
}

/// Kinds of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;
/// Track of the process; the others are numbered after it.
const PROCESS: u64 = 1;
/// Number of the process.
const PID: u64 = 1;

/// Writes all events as one `Trace`.
///
/// # Errors
/// If `to` fails.
pub fn write_perfetto(analysis: &Analysis<'_>, to: impl Write) -> io::Result<()> {
    let mut packets = Packets { to };
    let program = &analysis.trace.header.program.name;
    let mut process = Message::default();
    process.uint(field::process::PID, PID);
    process.text(field::process::NAME, program);
    let mut whole = Message::default();
    whole.uint(field::descriptor::UUID, PROCESS);
    whole.message(field::descriptor::PROCESS, &process);
    packets.put(None, field::packet::DESCRIPTOR, &whole)?;
    let mut next = PROCESS;
    for track in tracks(analysis) {
        next += 1;
        packets.describe(next, &track.name, None)?;
        packets.slices(next, &track)?;
    }
    let mut counters: Vec<(&str, u64)> = Vec::new();
    for count in counts(analysis) {
        let known = counters.iter().find(|(name, _)| *name == count.name);
        let track = match known {
            Some((_, track)) => *track,
            None => {
                next += 1;
                packets.describe(next, count.name, Some(&Message::default()))?;
                counters.push((count.name, next));
                next
            }
        };
        let mut event = event(COUNTER, track);
        event.double(field::event::VALUE, count.value);
        packets.put(Some(count.at), field::packet::EVENT, &event)?;
    }
    for moment in moments(analysis) {
        let mut event = event(INSTANT, PROCESS);
        event.text(field::event::NAME, moment.name);
        event.annotate(&moment.arguments);
        packets.put(Some(moment.at), field::packet::EVENT, &event)?;
    }
    packets.to.flush()
}

/// An event of a kind on a track.
fn event(kind: u64, track: u64) -> Message {
    let mut event = Message::default();
    event.uint(field::event::TYPE, kind);
    event.uint(field::event::TRACK, track);
    event
}

struct Packets<W> {
    to: W,
}

impl<W: Write> Packets<W> {
    fn put(&mut self, at: Option<u64>, kind: u32, content: &Message) -> io::Result<()> {
        let mut packet = Message::default();
        if let Some(at) = at {
            packet.uint(field::packet::TIMESTAMP, at);
        }
        packet.uint(field::packet::SEQUENCE, SEQUENCE);
        packet.message(kind, content);
        let mut whole = Message::default();
        whole.message(field::PACKET, &packet);
        self.to.write_all(&whole.0)
    }

    /// Names a track of the process.
    fn describe(&mut self, track: u64, name: &str, counter: Option<&Message>) -> io::Result<()> {
        let mut descriptor = Message::default();
        descriptor.uint(field::descriptor::UUID, track);
        descriptor.uint(field::descriptor::PARENT, PROCESS);
        descriptor.text(field::descriptor::NAME, name);
        if let Some(counter) = counter {
            descriptor.message(field::descriptor::COUNTER, counter);
        }
        self.put(None, field::packet::DESCRIPTOR, &descriptor)
    }

    /// Beginnings and ends, each end before what begins at the same time.
    fn slices(&mut self, track: u64, of: &Track<'_>) -> io::Result<()> {
        let mut open: Vec<u64> = Vec::new();
        for slice in &of.slices {
            while let Some(end) = open.pop_if(|end| *end <= slice.time.begin()) {
                self.put(Some(end), field::packet::EVENT, &event(END, track))?;
            }
            let mut begin = event(BEGIN, track);
            begin.text(field::event::CATEGORY, slice.category);
            begin.text(field::event::NAME, &slice.name);
            begin.annotate(&slice.arguments());
            self.put(Some(slice.time.begin()), field::packet::EVENT, &begin)?;
            open.push(slice.time.end());
        }
        while let Some(end) = open.pop() {
            self.put(Some(end), field::packet::EVENT, &event(END, track))?;
        }
        Ok(())
    }
}

/// A message of a protocol buffer.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// The number of a field with how its value is written.
    fn key(&mut self, field: u32, wire: u64) {
        self.varint(u64::from(field) << 3 | wire);
    }

    fn uint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn double(&mut self, field: u32, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// Values of an event by name; those that are null are left out.
    fn annotate(&mut self, arguments: &Value) {
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let mut one = Self::default();
            one.text(field::annotation::NAME, name);
            match value {
                Value::Null => continue,
                Value::Bool(value) => one.uint(field::annotation::BOOL, u64::from(*value)),
                Value::String(text) => one.text(field::annotation::TEXT, text),
                Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                    (Some(count), _) => one.uint(field::annotation::UINT, count),
                    // Negative numbers are written in two's complement.
                    (_, Some(value)) => one.uint(field::annotation::INT, value as u64),
                    _ => one.double(field::annotation::DOUBLE, number.as_f64().unwrap_or(0.0)),
                },
                other => one.text(field::annotation::TEXT, &other.to_string()),
            }
            self.message(field::event::ANNOTATION, &one);
        }
    }
}

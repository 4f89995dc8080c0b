//! Writing a trace, line by line.

use crate::model::{End, FORMAT, Header, Machine, Program, Record, VERSION};
use std::{
    io::{self, Write},
    time::{SystemTime, UNIX_EPOCH},
};

impl Header {
    /// The header of a trace that starts now, on this machine.
    pub fn now(program: Program) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let milliseconds = since.map_or(0, |since| since.as_millis());
        Self {
            format: FORMAT.into(),
            version: VERSION,
            program,
            machine: Machine::here(),
            start_unix_ms: u64::try_from(milliseconds).unwrap_or(u64::MAX),
            rank: None,
        }
    }
}

/// Writes records to anything that takes bytes.
#[derive(Debug)]
pub struct Writer<W: Write> {
    to: W,
    line: Vec<u8>,
    records: u64,
    content: bool,
}

impl<W: Write> Writer<W> {
    /// Writes the header; give it buffered output.
    ///
    /// # Errors
    /// If `to` fails.
    pub fn new(to: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            to,
            line: Vec::new(),
            records: 0,
            content: false,
        };
        writer.write(&Record::Header(header.clone()))?;
        Ok(writer)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// If the output fails; part of the line may have been written.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        self.to.write_all(&self.line)?;
        self.records += 1;
        self.content |= !matches!(record, Record::Header(_) | Record::Note(_));
        Ok(())
    }

    /// Returns true if a record of the run was written. The header and notes, such as the one that
    /// names the device, do not count.
    pub(crate) fn has_content(&self) -> bool {
        self.content
    }

    /// The file or buffer that is written to.
    pub(crate) fn output(&mut self) -> &mut W {
        &mut self.to
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// If the output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes the last line, which tells readers that nothing is missing, and gives the output
    /// back.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        let records = self.records;
        self.write(&Record::End(End { at, records }))?;
        self.to.flush()?;
        Ok(self.to)
    }
}

//! Files that commands read and write: clouds by name, frames, and tables that grow during a run.

use nearfield_files::{NewFile, Plan};
use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

/// Adds a cloud that is the name of a file.
pub(crate) fn read_cloud(plan: &mut Plan, cloud: &str) {
    if Path::new(cloud).exists() {
        plan.read(cloud);
    }
}

/// Whether a file is named as those of moments are: `frame_0123.vtp`, of these extensions.
pub(crate) fn is_frame(name: &str, extensions: &[&str]) -> bool {
    let number = name
        .strip_prefix("frame_")
        .and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(digits, extension)| {
        digits.len() >= 4
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && extensions.contains(&extension)
    })
}

/// A table that grows by lines while a run goes on. It replaces the one that is there when its
/// first line behind the header is written.
#[derive(Debug)]
pub(crate) struct GrowingTable(BufWriter<NewFile>);

impl GrowingTable {
    /// Begins a table, or goes on with the one that is there.
    pub(crate) fn open(path: &Path, header: &str, follow: bool) -> io::Result<Self> {
        if follow {
            return Ok(Self(BufWriter::new(NewFile::append(path)?)));
        }
        let mut file = BufWriter::new(NewFile::create(path)?);
        writeln!(file, "{header}")?;
        Ok(Self(file))
    }

    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{line}")?;
        self.0.flush()?;
        self.0.get_mut().settle()
    }
}

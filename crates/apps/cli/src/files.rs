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

/// The extension of a file in lower case; empty where there is none.
pub(crate) fn extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
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

//! Files that commands read and write: clouds by name, frames, and tables that grow during a run.

use crate::failure::Failure;
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

/// Refuses an output whose extension is none of those that `what` is written as: another program
/// would take the file for something else. Pipes and devices need none.
pub(crate) fn check_extension(path: &Path, what: &str, known: &[&str]) -> Result<(), Failure> {
    let may_be_file = match path.metadata() {
        Ok(about) => about.is_file(),
        // Opening the file says what else is wrong with its name.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !may_be_file || known.contains(&extension(path).as_str()) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(|known| format!(".{known}")).collect();
    Err(Failure::Wrong(format!(
        "{}: {what} are written as {}: give a name that ends so",
        path.display(),
        known.join(" or ")
    )))
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

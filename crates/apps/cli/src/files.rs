//! Files that commands read and write: clouds by name, frames, and tables that grow during a run.

use crate::failure::Failure;
use nearfield_files::{GrowingFile, Grown, Plan, Run, checksum};
use nearfield_grid::memory::collected;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
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

/// Refuses an output with an extension that `what` is not written as, because another program would
/// misread the file. Pipes and devices need no extension.
pub(crate) fn check_extension(path: &Path, what: &str, known: &[&str]) -> Result<(), Failure> {
    let may_be_file = match path.metadata() {
        Ok(about) => about.is_file(),
        // Opening the file reports any other fault of its name.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !may_be_file || known.contains(&extension(path).as_str()) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(|known| format!(".{known}")).collect();
    Err(Failure::Usage(format!(
        "{}: {what} are written as {}: use one of these extensions",
        path.display(),
        known.join(" or ")
    )))
}

/// A table that grows by lines during a run. It replaces an existing file when the first line after
/// the header is written.
#[derive(Debug)]
pub(crate) struct GrowingTable(GrowingFile);

impl GrowingTable {
    /// Begins a table in a new file.
    pub(crate) fn create(mut file: GrowingFile, header: &str) -> Result<Self, Failure> {
        let begun = writeln!(file, "{header}");
        begun.map_err(|error| unwritable(file.path(), &error))?;
        Ok(Self(file))
    }

    /// Goes on with the table of a file.
    pub(crate) fn go_on(file: GrowingFile) -> Self {
        Self(file)
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let written = writeln!(self.0, "{line}").and_then(|()| self.0.complete());
        written.map_err(|error| unwritable(self.0.path(), &error))
    }

    /// How far the table has grown, for a checkpoint.
    pub(crate) fn grown(&mut self) -> Result<Grown, Failure> {
        let grown = self.0.grown();
        grown.map_err(|error| unwritable(self.0.path(), &error))
    }
}

/// Tells inputs apart by their numbers.
pub(crate) fn sum_of(numbers: impl Iterator<Item = f64>) -> Result<String, Failure> {
    let bytes: Vec<u8> = collected(
        numbers.flat_map(f64::to_le_bytes),
        "a checksum of the input",
    )?;
    Ok(format!("{:016x}", checksum(&bytes)))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Wrong(format!("{}: cannot write: {error}", path.display()))
}

/// Whether the run `here` goes on with the files of its checkpoint in this folder: false where it
/// goes on without its older files, in a new one.
pub(crate) fn goes_on(
    folder: &Path,
    here: &Run,
    checkpoint: &Path,
    there: &Run,
) -> Result<bool, Failure> {
    let found = there.grew_in(folder).map_err(Failure::of_run)?;
    match there.difference(here).filter(|_| found) {
        Some(difference) => Err(Failure::Wrong(format!(
            "{}: {difference}: give the flags of its run, or name another --output than {}",
            checkpoint.display(),
            folder.display()
        ))),
        None => Ok(found),
    }
}

/// Removes leftovers of a checkpoint from killed runs, whether or not this run writes one.
pub(crate) fn remove_leftovers(checkpoint: PathBuf) {
    let mut plan = Plan::default();
    plan.write("--checkpoint", checkpoint);
    plan.remove_leftovers();
}

/// Opens a file that grows where the checkpoint of a run left it, or a new one.
pub(crate) fn open_growing(
    folder: &Path,
    name: &str,
    before: Option<&Run>,
) -> Result<GrowingFile, Failure> {
    let opened = match before.and_then(|run| run.grown_file(name)) {
        Some(grown) => GrowingFile::go_on(folder, grown),
        None => GrowingFile::create(folder.join(name)),
    };
    opened.map_err(|error| unwritable(&folder.join(name), &error))
}

//! The folder that a run writes frames and tables into.
//!
//! The file [`MARKER`] in it holds the [`Run`] whose files these are. Frames that no marker names
//! are not known to belong to a run, and are never removed.

use crate::{Error, ErrorKind, Run, frames::frame_number, input::make_folder, write};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The name of the file that says whose files are in a folder.
pub const MARKER: &str = ".nearfield-run";

/// A folder, the run that is to write into it, and the run whose files are there.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    run: Run,
    older: Option<Run>,
}

impl RunFolder {
    /// Makes the folder if it is missing, and looks whose files are there. Nothing is removed.
    ///
    /// # Errors
    /// [`ErrorKind::Run`] for a folder that cannot be made or read, a marker that says nothing, and
    /// a frame that neither `run` nor the marker's run writes: it would be taken for one of them.
    pub fn open(path: impl AsRef<Path>, run: Run) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        make_folder(&path).map_err(|error| unusable(&path, format!("cannot write: {error}")))?;
        let marker = path.join(MARKER);
        let older = match fs::read_to_string(&marker) {
            Ok(text) => Some(Run::parse(&text).map_err(|reason| {
                unusable(
                    &marker,
                    format!("{reason}: remove it, or name another folder"),
                )
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(&marker, error.to_string())),
        };
        let folder = Self { path, run, older };
        let strange = |name: &str| {
            folder.run.has_kind(name) && !folder.run.owns(name) && !folder.older_owns(name)
        };
        if let Some(name) = folder.names()?.into_iter().find(|name| strange(name)) {
            let reason = "would be mixed with the frames of this run, and is not known to be one \
                          of an older run: remove it, or name another folder";
            return Err(unusable(&folder.path.join(name), reason.to_owned()));
        }
        Ok(folder)
    }

    fn older_owns(&self, name: &str) -> bool {
        self.older.as_ref().is_some_and(|older| older.owns(name))
    }

    /// Names of the regular files in the folder, sorted.
    fn names(&self) -> Result<Vec<String>, Error> {
        let listed = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if let (true, Ok(name)) = (
                    entry.file_type()?.is_file(),
                    entry.file_name().into_string(),
                ) {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        listed().map_err(|error| unusable(&self.path, error.to_string()))
    }

    /// Assigns the folder to a run that has begun: files of the older run are removed, except those
    /// that are to be `kept` because this run has written them already. To be called when the first
    /// of them are complete.
    ///
    /// # Errors
    /// [`ErrorKind::Run`] for a file that cannot be removed or written.
    pub fn begin(&self, kept: impl Fn(&str) -> bool) -> Result<(), Error> {
        let names = self.names()?;
        self.remove(
            names
                .iter()
                .filter(|name| self.older_owns(name) && !kept(name)),
        )?;
        // Other files that are there belong to this run only once it has replaced them.
        let strange = |name: &str| {
            let there = names.iter().any(|found| found == name);
            there && !kept(name) && !self.older_owns(name)
        };
        self.mark(&self.run.without_files(|name| !strange(name)))
    }

    /// Assigns the folder to a run that resumes: frames from number `next` on are removed.
    ///
    /// # Errors
    /// [`ErrorKind::Run`] if the folder belongs to another run, with the difference, and as
    /// [`begin`](Self::begin).
    pub fn go_on(&self, next: usize) -> Result<(), Error> {
        if let Some(difference) = self
            .older
            .as_ref()
            .and_then(|older| older.difference(&self.run))
        {
            let reason = format!(
                "the files here are of another run: {difference}; go on in the folder of the \
                 checkpoint's run, or in a new one"
            );
            return Err(unusable(&self.path.join(MARKER), reason));
        }
        let names = self.names()?;
        let late = |name: &&String| {
            let number = frame_number(name).map(|(number, _)| number);
            self.older_owns(name) && number.is_some_and(|number| number >= next)
        };
        self.remove(names.iter().filter(late))?;
        self.mark(&self.run)
    }

    fn mark(&self, run: &Run) -> Result<(), Error> {
        let marker = self.path.join(MARKER);
        let written = write(&marker, run.to_text());
        written.map_err(|error| unusable(&marker, format!("cannot write: {error}")))
    }

    fn remove<'a>(&self, names: impl Iterator<Item = &'a String>) -> Result<(), Error> {
        for name in names {
            let path = self.path.join(name);
            let removed = fs::remove_file(&path);
            removed.map_err(|error| unusable(&path, format!("cannot remove: {error}")))?;
        }
        Ok(())
    }
}

fn unusable(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    ErrorKind::Run { path, reason }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dt: f64, frames: usize) -> Run {
        let run = Run::new("x").set("dt", dt).frames(frames, &["vtp"]);
        run.writes(&["energy.csv", "own.png"])
    }

    /// The files in a folder but for the marker.
    fn names(path: &Path) -> Vec<String> {
        let mut names = RunFolder::open(path, run(0.0, 99))
            .unwrap()
            .names()
            .unwrap();
        names.retain(|name| name != MARKER);
        names
    }

    #[test]
    fn a_run_that_begins_removes_the_files_of_an_older_one_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        let make = |names: &[&str]| {
            names
                .iter()
                .for_each(|name| fs::write(path.join(name), "").unwrap());
        };
        make(&[
            "my_frame_0001.vtp",
            "frame_0009.png",
            "frame_12.vtp",
            "own.png",
        ]);
        RunFolder::open(path, run(1.0, 5))
            .unwrap()
            .begin(|_| false)
            .unwrap();
        make(&[
            "frame_0000.vtp",
            "frame_0001.vtp",
            "frame_0004.vtp",
            "energy.csv",
        ]);
        let folder = RunFolder::open(path, run(2.0, 3)).unwrap();
        folder.begin(|name| name == "frame_0000.vtp").unwrap();
        let kept = [
            "frame_0000.vtp",
            "frame_0009.png",
            "frame_12.vtp",
            "my_frame_0001.vtp",
        ];
        // It was there before any run: none has claimed it.
        assert_eq!(names(path), [&kept[..], &["own.png"]].concat());
        make(&["frame_0003.vtp"]);
        let error = RunFolder::open(path, run(2.0, 3)).unwrap_err().to_string();
        assert!(error.contains("frame_0003.vtp: would be mixed"), "{error}");
        assert!(path.join("frame_0003.vtp").exists());
    }

    #[test]
    fn a_run_goes_on_in_its_own_folder_without_the_frames_behind() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        RunFolder::open(path, run(1.0, 5))
            .unwrap()
            .begin(|_| false)
            .unwrap();
        for number in 0..5 {
            fs::write(path.join(format!("frame_000{number}.vtp")), "").unwrap();
        }
        let error = RunFolder::open(path, run(2.0, 5))
            .unwrap()
            .go_on(2)
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("of another run: dt is 2 here and 1 there"),
            "{text}"
        );
        assert_eq!(names(path).len(), 5);
        RunFolder::open(path, run(1.0, 5))
            .unwrap()
            .go_on(2)
            .unwrap();
        assert_eq!(names(path), ["frame_0000.vtp", "frame_0001.vtp"]);
        fs::write(path.join(MARKER), "what?").unwrap();
        let error = RunFolder::open(path, run(1.0, 5)).unwrap_err().to_string();
        assert!(
            error.contains(".nearfield-run: it begins with \"what?\""),
            "{error}"
        );
    }
}

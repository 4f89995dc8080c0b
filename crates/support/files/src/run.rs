//! Identities of runs: the description of the run in a checkpoint.
//!
//! A [`Run`] has the settings that decide what a run computes, the files that it writes, and how
//! far files had grown when a checkpoint was written. It is a few lines of text, which a checkpoint
//! holds beside the state, and a [folder of a run](crate::RunFolder) beside the files.

use crate::{Error, ErrorKind, frames::frame_number, growing::Grown};
use std::{
    fmt::{Display, Write as _},
    path::Path,
};

/// Begins the text of a run.
const HEAD: &str = "nearfield run 1";

/// The settings of a run, the files that it writes, and how long those were that grow.
///
/// ```
/// use nearfield_files::Run;
///
/// let run = Run::new("gravity").set("dt", 0.01).frames(9, &["vtp", "npy"]);
/// let read = Run::parse(&run.to_text())?;
/// assert_eq!(read.difference(&run), None);
/// let other = Run::new("gravity").set("dt", 0.02);
/// assert_eq!(read.difference(&other).unwrap(), "dt is 0.02 here and 0.01 there");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    settings: Vec<(String, String)>,
    frames: usize,
    kinds: Vec<String>,
    writes: Vec<String>,
    grown: Vec<Grown>,
}

/// The begin of a line, for messages.
fn shown(line: &str) -> String {
    format!("{:?}", line.chars().take(60).collect::<String>())
}

/// The name without the number of a rank: `frame_0001.rank.vtp` for `frame_0001.rank12.vtp`.
fn without_rank(name: &str) -> String {
    let Some((stem, rest)) = name.split_once(".rank") else {
        return name.to_owned();
    };
    let kind = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{stem}.rank{kind}")
}

impl Run {
    /// A run of this command.
    #[must_use]
    pub fn new(command: &str) -> Self {
        Self::default().set("command", command)
    }

    /// Adds a setting that decides what is computed.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string().replace(['\n', '\r'], " ");
        self.settings.push((name.to_owned(), value));
        self
    }

    /// Says that this many frames are written, in files with these extensions; `rank.vtp` stands
    /// for the pieces of all ranks.
    #[must_use]
    pub fn frames(mut self, frames: usize, kinds: &[&str]) -> Self {
        self.frames = frames;
        self.kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
        self
    }

    /// Adds the files that are written in addition to frames.
    #[must_use]
    pub fn writes(mut self, names: &[&str]) -> Self {
        self.writes = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Says how long files were that grow.
    #[must_use]
    pub fn grown(mut self, files: impl IntoIterator<Item = Grown>) -> Self {
        self.grown = files.into_iter().collect();
        self
    }

    /// Adds the settings of `before` that this run does not have: those that are given only where a
    /// run begins, such as its input.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for (name, value) in &before.settings {
            if self.setting(name).is_none() {
                self.settings.push((name.clone(), value.clone()));
            }
        }
        self
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The first setting of `here` that is another one in this run, with both values.
    #[must_use]
    pub fn difference(&self, here: &Self) -> Option<String> {
        here.settings.iter().find_map(|(name, value)| {
            let found = self.setting(name).unwrap_or("not set");
            (found != value).then(|| format!("{name} is {value} here and {found} there"))
        })
    }

    /// Whether the run writes a file of this name.
    pub(crate) fn owns(&self, name: &str) -> bool {
        let name = without_rank(name);
        let frame = frame_number(&name);
        self.writes.contains(&name)
            || frame.is_some_and(|(number, _)| number < self.frames) && { self.has_kind(&name) }
    }

    /// Whether this is the name of a frame, of any number, of a kind that the run writes.
    pub(crate) fn has_kind(&self, name: &str) -> bool {
        let name = without_rank(name);
        let frame = frame_number(&name);
        frame.is_some_and(|(_, kind)| self.kinds.iter().any(|known| known == kind))
    }

    /// This run without the files other than frames for which `keep` is false.
    pub(crate) fn without_files(&self, keep: impl Fn(&str) -> bool) -> Self {
        let mut run = self.clone();
        run.writes.retain(|name| keep(name));
        run
    }

    /// Whether the files that had grown are in this folder, at least as long as they were then, and
    /// the same up to there. False where none of them is there: the run goes on in a new folder.
    ///
    /// # Errors
    /// [`ErrorKind::Run`] for a file that is missing although others exist, too short, or of
    /// another run.
    pub fn grew_in(&self, folder: &Path) -> Result<bool, Error> {
        if !self
            .grown
            .iter()
            .any(|file| folder.join(file.name()).exists())
        {
            return Ok(false);
        }
        for file in &self.grown {
            file.check(folder).map_err(|reason| {
                let path = folder.join(file.name());
                Error::from(ErrorKind::Run { path, reason })
            })?;
        }
        Ok(!self.grown.is_empty())
    }

    /// How far the file of this name had grown.
    pub fn grown_file(&self, name: &str) -> Option<&Grown> {
        self.grown.iter().find(|file| file.name() == name)
    }

    /// The run as lines of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (name, value) in &self.settings {
            let _ = writeln!(text, "set {name} {value}");
        }
        if !self.kinds.is_empty() {
            let _ = writeln!(text, "frames {} {}", self.frames, self.kinds.join(" "));
        }
        for name in &self.writes {
            let _ = writeln!(text, "writes {name}");
        }
        for file in &self.grown {
            let _ = writeln!(text, "grown {file}");
        }
        text
    }

    /// Parses the text of [`to_text`](Self::to_text).
    ///
    /// # Errors
    /// The line that is none of a run.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        match lines.next().unwrap_or_default() {
            HEAD => {}
            other => {
                return Err(format!(
                    "it begins with {}, not with {HEAD:?}",
                    shown(other)
                ));
            }
        }
        let mut run = Self::default();
        for line in lines {
            let taken = line.split_once(' ').and_then(|(what, rest)| {
                match what {
                    "set" => {
                        let (name, value) = rest.split_once(' ')?;
                        run.settings.push((name.to_owned(), value.to_owned()));
                    }
                    "frames" => {
                        let (frames, kinds) = rest.split_once(' ')?;
                        run.frames = frames.parse().ok()?;
                        run.kinds = kinds.split(' ').map(str::to_owned).collect();
                    }
                    "writes" => run.writes.push(rest.to_owned()),
                    "grown" => run.grown.push(rest.parse().ok()?),
                    _ => return None,
                }
                Some(())
            });
            taken.ok_or_else(|| format!("{} says nothing about a run", shown(line)))?;
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written_and_other_text_is_refused() {
        let run = Run::new("dam-break")
            .set("scene", "a\nb")
            .frames(3, &["vtp", "rank.vtp"])
            .writes(&["energy.csv", "wall.rank.vtp"])
            .grown(["energy.csv 17 00000000000000ff".parse().unwrap()]);
        let text = run.to_text();
        assert_eq!(Run::parse(&text).unwrap(), run);
        for bad in ["", "nearfield run 2\n", &format!("{text}frames many vtp\n")] {
            assert!(Run::parse(bad).is_err(), "{bad}");
        }
        for line in ["x", "set", "set a", "frames 3", "grown a 1", "grown a -1 0"] {
            assert!(Run::parse(&format!("{text}{line}\n")).is_err(), "{line}");
        }
    }

    #[test]
    fn a_run_owns_its_frames_and_files() {
        let run = Run::new("x")
            .frames(3, &["vtp", "rank.vtp"])
            .writes(&["wall.rank.vtp"]);
        for own in ["frame_0002.vtp", "frame_0000.rank17.vtp", "wall.rank0.vtp"] {
            assert!(run.owns(own), "{own}");
        }
        for other in [
            "frame_0003.vtp",
            "frame_0001.png",
            "frame_01.vtp",
            "wall.vtp",
            "frame_0001",
        ] {
            assert!(!run.owns(other), "{other}");
        }
        assert!(run.has_kind("frame_0099.vtp") && !run.has_kind("frame_0099.png"));
    }
}

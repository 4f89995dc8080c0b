//! Inputs and outputs of a run, checked before any of them is opened.

use crate::{
    Error, ErrorKind,
    leftovers::remove_leftovers,
    place::{Identity, Node, folder, is_standard_output, resolve},
};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// The files that a run reads and those that it writes.
///
/// ```
/// let mut plan = nearfield_files::Plan::default();
/// plan.read("cloud.npy");
/// plan.write("--output", "lists.npz");
/// plan.check()?;
/// # Ok::<(), nearfield_files::Error>(())
/// ```
#[derive(Default)]
pub struct Plan {
    inputs: Vec<PathBuf>,
    outputs: Vec<Output>,
    folders: Vec<Folder>,
    /// Standard output holds one JSON object and nothing else.
    prints_json: bool,
}

/// A file that is written, and the flag that names it.
struct Output {
    flag: String,
    path: PathBuf,
    /// The input that may be the same file.
    after: Option<PathBuf>,
}

/// A folder that files are written into, and which ones.
struct Folder {
    flag: String,
    path: PathBuf,
    writes: Box<dyn Fn(&str) -> bool>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outputs: Vec<_> = self.outputs.iter().map(|output| &output.path).collect();
        let folders: Vec<_> = self.folders.iter().map(|folder| &folder.path).collect();
        f.debug_struct("Plan")
            .field("inputs", &self.inputs)
            .field("outputs", &outputs)
            .field("folders", &folders)
            .finish()
    }
}

impl Plan {
    /// Adds a file that is read.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.inputs.push(path.into());
    }

    /// Adds a file that is written; `flag` is how messages call it.
    pub fn write(&mut self, flag: impl Into<String>, path: impl Into<PathBuf>) {
        self.write_after(flag, path, None);
    }

    /// Adds a file that is written after the input `read` was read in full, which it may replace:
    /// a checkpoint that a run goes on from, and the next one.
    pub fn write_after(
        &mut self,
        flag: impl Into<String>,
        path: impl Into<PathBuf>,
        read: Option<&Path>,
    ) {
        self.outputs.push(Output {
            flag: flag.into(),
            path: path.into(),
            after: read.map(Path::to_owned),
        });
    }

    /// Adds a folder into which files of those names are written for which `writes` is true.
    pub fn write_into(
        &mut self,
        flag: impl Into<String>,
        path: impl Into<PathBuf>,
        writes: impl Fn(&str) -> bool + 'static,
    ) {
        self.folders.push(Folder {
            flag: flag.into(),
            path: path.into(),
            writes: Box::new(writes),
        });
    }

    /// Says whether standard output is to hold one JSON object and nothing else, by `--json`.
    pub fn print_json(&mut self, json: bool) {
        self.prints_json = json;
    }

    /// Refuses outputs that are inputs, outputs that are named twice, and standard output as a file
    /// where it holds a JSON object. Existing files are
    /// compared by device and inode, so links and other spellings count; devices and pipes do not.
    ///
    /// # Errors
    /// The first clash, with both names.
    pub fn check(&self) -> Result<(), Error> {
        for (place, output) in self.outputs.iter().enumerate() {
            if self.prints_json && is_standard_output(&output.path) {
                let (flag, path) = (output.flag.clone(), output.path.clone());
                return Err(ErrorKind::StandardOutput { flag, path }.into());
            }
            let Some(identity) = Identity::of(&output.path) else {
                continue;
            };
            let same = |path: &Path| Identity::of(path).as_ref() == Some(&identity);
            let spared = |input: &PathBuf| output.after.as_ref() == Some(input);
            let clash = |input: &&PathBuf| same(input) && !spared(input);
            if let Some(input) = self.inputs.iter().find(clash) {
                return Err(output.clashes(input));
            }
            if let Some(other) = self.outputs[..place].iter().find(|other| same(&other.path)) {
                return Err(ErrorKind::Twice {
                    flags: [other.flag.clone(), output.flag.clone()],
                    paths: [other.path.clone(), output.path.clone()],
                }
                .into());
            }
        }
        self.folders
            .iter()
            .try_for_each(|folder| self.check_folder(folder))
    }

    /// Removes leftovers of killed runs: files under temporary names of the outputs that no process
    /// is writing. A file that cannot be looked at or removed stays.
    pub fn remove_leftovers(&self) {
        for Output { path, .. } in &self.outputs {
            let path = resolve(path);
            remove_leftovers(folder(&path), |name| {
                path.file_name() == Some(name.as_ref())
            });
        }
        for into in &self.folders {
            remove_leftovers(&into.path, &into.writes);
        }
    }

    fn check_folder(&self, into: &Folder) -> Result<(), Error> {
        let Ok(node) = Node::of(&into.path) else {
            // A folder that is yet to be made replaces nothing.
            return Ok(());
        };
        let replaced = |path: &Path| {
            let path = resolve(path);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (into.writes)(&name) && Node::of(folder(&path)).is_ok_and(|found| found == node)
        };
        let is_device = |path: &Path| fs::metadata(path).is_ok_and(|file| !file.is_file());
        for output in self.outputs.iter().filter(|one| !is_device(&one.path)) {
            if replaced(&output.path) {
                return Err(ErrorKind::InFolder {
                    flag: output.flag.clone(),
                    path: output.path.clone(),
                    folder_flag: into.flag.clone(),
                    folder: into.path.clone(),
                }
                .into());
            }
        }
        let inputs: Vec<_> = (self.inputs.iter())
            .filter_map(|input| Some((input, Identity::of(input)?)))
            .collect();
        // Links in the folder may lead to an input, and the other way round.
        let entries = fs::read_dir(&into.path).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !(into.writes)(&name) {
                continue;
            }
            let found = Identity::of(&path);
            let input = inputs.iter().find(|(_, one)| found.as_ref() == Some(one));
            if let Some((input, _)) = input {
                return Err(ErrorKind::InputInFolder {
                    flag: into.flag.clone(),
                    folder: into.path.clone(),
                    path,
                    input: input.to_path_buf(),
                }
                .into());
            }
        }
        Ok(())
    }
}

impl Output {
    fn clashes(&self, input: &Path) -> Error {
        let kind = ErrorKind::Input {
            flag: self.flag.clone(),
            path: self.path.clone(),
            input: input.to_owned(),
        };
        kind.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_may_replace_the_one_that_was_read_and_nothing_else_may() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("state"), "").unwrap();
        let plan = |other: &str| {
            let mut plan = Plan::default();
            plan.read(at("state"));
            plan.write_after("--checkpoint", at("./state"), Some(&at("state")));
            plan.write("--trace", at(other));
            plan.check()
        };
        plan("trace").unwrap();
        assert!(plan("state").is_err());
    }

    fn refused(plan: &Plan, text: &str) -> Error {
        let error = plan.check().unwrap_err();
        assert_eq!(error.to_string(), text);
        error
    }

    #[test]
    fn outputs_may_be_no_inputs_however_they_are_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in.npy"), "points").unwrap();
        fs::hard_link(at("in.npy"), at("hard.npy")).unwrap();
        fs::create_dir(at("sub")).unwrap();
        let mut spellings = vec!["in.npy", "./in.npy", "sub/../in.npy", "hard.npy"];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("in.npy", at("link.npy")).unwrap();
            std::os::unix::fs::symlink(folder.path(), at("folder")).unwrap();
            spellings.extend(["link.npy", "folder/in.npy"]);
        }
        for spelling in spellings {
            let mut plan = Plan::default();
            plan.read(at("in.npy"));
            plan.write("--output", at(spelling));
            let (output, input) = (at(spelling), at("in.npy"));
            let (output, input) = (output.display(), input.display());
            let error = refused(
                &plan,
                &format!("--output {output} would replace the input {input}: name another file"),
            );
            assert!(matches!(error.kind(), ErrorKind::Input { .. }));
        }
        let mut plan = Plan::default();
        plan.read(at("in.npy"));
        plan.write("--output", at("out.npy"));
        plan.write("--trace", at("other.npy"));
        plan.check().unwrap();
    }

    #[test]
    fn one_file_for_two_outputs_is_refused_before_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        let mut plan = Plan::default();
        plan.write("--output", at("new"));
        plan.write("--trace", at("sub/../new"));
        let (one, other) = (at("new"), at("sub/../new"));
        let (one, other) = (one.display(), other.display());
        let error = refused(
            &plan,
            &format!("--output {one} and --trace {other} are the same file: name two"),
        );
        assert!(matches!(error.kind(), ErrorKind::Twice { .. }));
        #[cfg(unix)]
        {
            let mut plan = Plan::default();
            plan.write("--output", "/dev/null");
            plan.write("--trace", "/dev/null");
            plan.check().unwrap();
        }
    }

    #[test]
    fn folders_may_not_replace_inputs_or_other_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("out")).unwrap();
        fs::write(at("out/frame_1.vtp"), "bodies").unwrap();
        fs::write(at("out/other.vtp"), "bodies").unwrap();
        let frames = |name: &str| name.starts_with("frame_");
        let plan = |input: &str| {
            let mut plan = Plan::default();
            plan.read(at(input));
            plan.write_into("--output", at("out"), frames);
            plan
        };
        let would_replace = |name: &str, input: &str| {
            let [out, file, input] =
                [at("out"), at(name), at(input)].map(|path| path.display().to_string());
            format!(
                "--output {out} would replace {file}, which is the input {input}: name another folder"
            )
        };
        let first = "out/frame_1.vtp";
        let error = refused(&plan(first), &would_replace(first, first));
        assert!(matches!(error.kind(), ErrorKind::InputInFolder { .. }));
        plan("out/other.vtp").check().unwrap();
        fs::hard_link(at("out/other.vtp"), at("out/frame_2.vtp")).unwrap();
        refused(
            &plan("out/other.vtp"),
            &would_replace("out/frame_2.vtp", "out/other.vtp"),
        );
        let mut twice = plan("elsewhere");
        twice.write("--trace", at("out/frame_9"));
        let [trace, out] = [at("out/frame_9"), at("out")].map(|path| path.display().to_string());
        let error = refused(
            &twice,
            &format!("--trace {trace} is a file that --output {out} writes too: name another one"),
        );
        assert!(matches!(error.kind(), ErrorKind::InFolder { .. }));
    }
}

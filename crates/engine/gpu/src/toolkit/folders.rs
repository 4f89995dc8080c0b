//! Finds the CUDA libraries that were installed together, and chooses among them.
//!
//! Parts of different major versions do not work together, and several versions may be installed
//! side by side, even in one folder. Files are therefore gathered by what they were installed
//! with, and the compiler's version decides about the others:
//!
//! 1. The compiler is the first one found whose major version is at least 12 and at most the
//!    driver's. If there is none, the first of at least 12 is taken: it can compile, and the error
//!    of loading says what is wrong.
//! 2. The linker is of the same major version, preferably from the same folders.
//! 3. The device runtime is a static library without a version in its name. It is taken from
//!    folders whose other files are not all of another major version.

use super::library::{Component, version_of};
use crate::version::Version;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The least version of the compiler and its companions: kernels that launch kernels work
/// differently before.
const OLDEST: u32 = 12;

/// Names in a toolkit of the kind of machine that runs this; it may hold libraries for others too,
/// which would not open.
#[cfg(target_arch = "aarch64")]
const TARGETS: [&str; 2] = ["sbsa-linux", "aarch64-linux"];
#[cfg(not(target_arch = "aarch64"))]
const TARGETS: [&str; 1] = ["x86_64-linux"];

/// The file of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFile {
    /// The file.
    pub path: PathBuf,
    /// The version that its name tells, the minor one 0 where the name leaves it out.
    pub version: Option<Version>,
}

/// Libraries for compiling and linking, of versions that work together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The run-time compiler.
    pub nvrtc: Option<LibraryFile>,
    /// The linker. Without it the driver links.
    pub nvjitlink: Option<LibraryFile>,
    /// The device runtime, for kernels that launch kernels.
    pub device_runtime: Option<PathBuf>,
}

impl Libraries {
    /// Returns true if all three were found, so that there is no reason to look on.
    pub(super) fn complete(&self) -> bool {
        self.nvrtc.is_some() && self.nvjitlink.is_some() && self.device_runtime.is_some()
    }
}

/// Files that were installed together, and so are of one version: those of one toolkit, of one
/// versioned folder of Python's wheels, or of all wheels without a version in their folder.
#[derive(Debug, Default)]
pub(crate) struct Toolkit {
    /// Newest first within each part.
    files: Vec<(Component, LibraryFile)>,
}

impl Toolkit {
    /// The toolkit in these folders.
    fn of(folders: &[PathBuf]) -> Self {
        let mut files: Vec<_> = folders.iter().flat_map(|folder| files_in(folder)).collect();
        files.sort_by_key(|(_, found)| std::cmp::Reverse(found.version));
        Self { files }
    }

    /// The files of a part, newest first.
    fn all(&self, part: Component) -> impl Iterator<Item = &LibraryFile> {
        let files = self.files.iter();
        files.filter_map(move |(kind, found)| (*kind == part).then_some(found))
    }

    /// Returns true if anything here is of another major version and nothing of this.
    fn contradicts(&self, major: u32) -> bool {
        let mut majors = self
            .files
            .iter()
            .filter_map(|(_, found)| Some(found.version?.major))
            .peekable();
        majors.peek().is_some() && majors.all(|other| other != major)
    }
}

/// The parts of CUDA directly in `folder`, none if it cannot be read.
fn files_in(folder: &Path) -> Vec<(Component, LibraryFile)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let part = Component::ALL
            .into_iter()
            .find(|part| part.recognise(name).is_some());
        // A dangling link is no library.
        if let Some(part) = part
            && entry.path().exists()
        {
            let path = entry.path();
            let version = version_of(part, &path);
            files.push((part, LibraryFile { path, version }));
        }
    }
    files
}

/// Toolkits installed at `place`: a folder of libraries, a toolkit, an environment of Python or
/// conda, or a folder that Python imports from.
pub(crate) fn toolkits_in(place: &Path) -> Vec<Toolkit> {
    let mut folders = vec![place.to_owned(), place.join("lib64"), place.join("lib")];
    folders.extend(TARGETS.map(|target| place.join("targets").join(target).join("lib")));
    let mut toolkits = vec![Toolkit::of(&folders)];
    toolkits.extend(wheels_in(place));
    for python in subfolders(&place.join("lib")).filter(|path| begins(path, "python3")) {
        toolkits.extend(wheels_in(&python.join("site-packages")));
    }
    toolkits.retain(|toolkit| !toolkit.files.is_empty());
    toolkits
}

/// Python's wheels in a folder that it imports from: since CUDA 13 all in `nvidia/cu13/lib`,
/// before each in `nvidia/NAME/lib`. Folders of one version are a toolkit each, newest first; all
/// others together are one.
fn wheels_in(packages: &Path) -> Vec<Toolkit> {
    let (versioned, single): (Vec<_>, Vec<_>) = subfolders(&packages.join("nvidia"))
        .map(|wheel| wheel.join("lib"))
        .partition(|lib| lib.parent().is_some_and(is_versioned));
    let mut toolkits: Vec<_> = versioned
        .iter()
        .rev()
        .map(|lib| Toolkit::of(std::slice::from_ref(lib)))
        .collect();
    toolkits.push(Toolkit::of(&single));
    toolkits
}

/// Returns true if a folder is called `cu13` or so.
fn is_versioned(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix("cu"))
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns true if a path's last component begins with `start`.
fn begins(path: &Path, start: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(start))
}

/// Entries of `folder` by name, none if it cannot be read. Sorted, so the choice among several
/// versions does not depend on the file system.
pub(crate) fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

/// Picks from everything there is: the first compiler that makes code the driver can load, and
/// the linker and device runtime of the same major version, best from beside it.
///
/// Toolkits are in the order of preference. A file whose name tells no version is taken for one
/// that fits, because distributions that install one version give it plain names.
pub(crate) fn choose(toolkits: &[Toolkit], cuda: Option<Version>) -> Libraries {
    let compilers = |fits: &dyn Fn(u32) -> bool| {
        let all = toolkits.iter().enumerate();
        let mut all = all
            .flat_map(|(at, toolkit)| toolkit.all(Component::Nvrtc).map(move |found| (at, found)));
        all.find(|(_, found)| found.version.is_none_or(|version| fits(version.major)))
    };
    let newest = cuda.map_or(u32::MAX, |cuda| cuda.major);
    let nvrtc = compilers(&|major| (OLDEST..=newest).contains(&major))
        .or_else(|| compilers(&|major| major >= OLDEST));
    let (home, nvrtc) = nvrtc.map_or((0, None), |(home, found)| (home, Some(found.clone())));
    let major = nvrtc.as_ref().and_then(|found| Some(found.version?.major));
    let others = (0..toolkits.len()).filter(|&at| at != home);
    let order: Vec<_> = toolkits
        .get(home)
        .into_iter()
        .chain(others.map(|at| &toolkits[at]))
        .collect();
    let same = |version: Option<Version>| match (major, version) {
        (Some(major), Some(version)) => version.major == major,
        _ => true,
    };
    let nvjitlink = order.iter().find_map(|toolkit| {
        toolkit
            .all(Component::NvJitLink)
            .find(|found| same(found.version))
    });
    let device_runtime = order
        .iter()
        .filter(|toolkit| major.is_none_or(|major| !toolkit.contradicts(major)))
        .find_map(|toolkit| toolkit.all(Component::DeviceRuntime).next());
    Libraries {
        nvrtc,
        nvjitlink: nvjitlink.cloned(),
        device_runtime: device_runtime.map(|found| found.path.clone()),
    }
}

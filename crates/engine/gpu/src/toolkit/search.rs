//! Where CUDA's compiler, linker and device runtime are looked for.
//!
//! In this order: the folders of `NEARFIELD_CUDA_PATH`, and if that is set nowhere else;
//! `CUDA_HOME` and `CUDA_PATH`; `LD_LIBRARY_PATH`; `/usr/local/cuda` and `/usr/local/cuda-*`, the
//! newest first; the system's folders; the active environment of Python (`VIRTUAL_ENV`) or conda
//! (`CONDA_PREFIX`); and, if something is still missing, everywhere that the `python3` on the
//! path imports from. Of each folder, the usual places of libraries inside are searched, and
//! Python's `nvidia-*` wheels.
//!
//! | installed by | folders |
//! | --- | --- |
//! | a toolkit | `/usr/local/cuda/lib64`, `…/targets/x86_64-linux/lib` |
//! | a distribution | `/usr/lib/x86_64-linux-gnu`, `/usr/lib64`, `/opt/cuda/lib64` |
//! | `pip install nvidia-*` | `…/site-packages/nvidia/cu13/lib`, `…/nvidia/cuda_nvrtc/lib` |
//! | conda | `$CONDA_PREFIX/lib` |
//!
//! The folders that the user named come first, so they win over those of the system. Asking Python
//! starts a process, so it is done last and only if a part is missing.

use super::folders::{Libraries, Toolkit, choose, subfolders, toolkits_in};
use crate::version::Version;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Folders of a system's own libraries, besides `/usr/lib/x86_64-linux-gnu` or so.
const SYSTEM: [&str; 6] = [
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/lib/cuda",
    "/opt/cuda",
    "/run/opengl-driver/lib",
];

/// Where to look: folders in the order of preference.
///
/// ```
/// use nearfield_gpu::Search;
///
/// // Nothing is found where nothing is, and that is no error of the search.
/// let nowhere = Search::only(["/no/such/folder".into()]);
/// assert!(nowhere.libraries(None).nvrtc.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Search {
    places: Vec<PathBuf>,
    /// True if the interpreter on the path is asked for its folders.
    asks_python: bool,
    /// In words, for messages.
    description: String,
}

impl Search {
    /// Looks where the environment says and where CUDA usually is.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var_os(name))
    }

    /// Looks in these folders and nowhere else.
    pub fn only(places: impl IntoIterator<Item = PathBuf>) -> Self {
        let places: Vec<_> = places.into_iter().collect();
        let names: Vec<_> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        Self {
            description: names.join(", "),
            places,
            asks_python: false,
        }
    }

    /// The places that variables of the environment name, and those where CUDA usually is.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folders = |name: &str| -> Vec<PathBuf> {
            let value = variable(name).unwrap_or_default();
            let folders = env::split_paths(&value);
            folders
                .filter(|path| !path.as_os_str().is_empty())
                .collect()
        };
        let named = folders("NEARFIELD_CUDA_PATH");
        if !named.is_empty() {
            let only = Self::only(named);
            return Self {
                description: format!("NEARFIELD_CUDA_PATH ({})", only.description),
                ..only
            };
        }
        let mut places = Vec::new();
        for name in ["CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"] {
            places.extend(folders(name));
        }
        places.extend(installed_toolkits(Path::new("/usr/local")));
        places.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
        places.extend(SYSTEM.map(PathBuf::from));
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            places.extend(folders(name));
        }
        Self {
            places,
            asks_python: true,
            description: "CUDA_HOME, CUDA_PATH, LD_LIBRARY_PATH, /usr/local/cuda*, the system's \
                          libraries, VIRTUAL_ENV, CONDA_PREFIX and the packages of python3"
                .to_owned(),
        }
    }

    /// In words, for messages.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Looks for libraries that work together, for a driver that supports `cuda` if there is one.
    /// Reads folders and opens nothing; parts that are not found are None.
    pub fn libraries(&self, cuda: Option<Version>) -> Libraries {
        let scan = |places: &[PathBuf]| -> Vec<Toolkit> {
            places.iter().flat_map(|place| toolkits_in(place)).collect()
        };
        let mut toolkits = scan(&self.places);
        let found = choose(&toolkits, cuda);
        if found.complete() || !self.asks_python {
            return found;
        }
        toolkits.extend(scan(&python_folders()));
        choose(&toolkits, cuda)
    }
}

/// `cuda` and then `cuda-13.0` and so on under `root`, the newest first.
fn installed_toolkits(root: &Path) -> Vec<PathBuf> {
    let number = |path: &Path| -> Option<Vec<u32>> {
        let version = path.file_name()?.to_str()?.strip_prefix("cuda-")?;
        version.split('.').map(|part| part.parse().ok()).collect()
    };
    let mut versioned: Vec<_> = subfolders(root)
        .filter_map(|path| Some((number(&path)?, path)))
        .collect();
    versioned.sort_by(|a, b| b.0.cmp(&a.0));
    let versioned = versioned.into_iter().map(|(_, path)| path);
    [root.join("cuda")].into_iter().chain(versioned).collect()
}

/// Where the `python3` on the path imports from. Only the interpreter knows: environments,
/// version managers and distributions all differ.
fn python_folders() -> Vec<PathBuf> {
    let answer = Command::new("python3")
        .args(["-c", "import sys; print('\\n'.join(sys.path))"])
        .stdin(Stdio::null())
        .output();
    let Ok(answer) = answer else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&answer.stdout);
    let folders = text.lines().filter(|line| !line.is_empty());
    folders.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A machine with these files, given by their paths.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn with(files: &[&str]) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for file in files {
                let path = machine.path(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            machine
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Libraries found in `places`: compiler, linker, device runtime.
        fn finds(&self, places: &[&str], cuda: Option<Version>) -> [Option<String>; 3] {
            let search = Search::only(places.iter().map(|place| self.path(place)));
            let found = search.libraries(cuda);
            let name = |path: PathBuf| {
                let path = path.strip_prefix(self.0.path()).unwrap();
                path.to_str().unwrap().to_owned()
            };
            [
                found.nvrtc.map(|found| name(found.path)),
                found.nvjitlink.map(|found| name(found.path)),
                found.device_runtime.map(name),
            ]
        }
    }

    fn some(names: [&str; 3]) -> [Option<String>; 3] {
        names.map(|name| (!name.is_empty()).then(|| name.to_owned()))
    }

    /// The layouts of Python's wheels, of a toolkit, and of a distribution's folder.
    const SITE: &str = "env/lib/python3.11/site-packages/nvidia";

    fn thirteen() -> Vec<String> {
        [
            "libnvrtc.so.13",
            "libnvrtc.alt.so.13",
            "libnvJitLink.so.13",
            "libcudart.so.13",
            "libcudadevrt.a",
        ]
        .map(|file| format!("{SITE}/cu13/lib/{file}"))
        .into()
    }

    fn twelve() -> Vec<String> {
        [
            "cuda_nvrtc/lib/libnvrtc.so.12",
            "nvjitlink/lib/libnvJitLink.so.12",
            "cuda_runtime/lib/libcudart.so.12",
            "cuda_runtime/lib/libcudadevrt.a",
        ]
        .map(|file| format!("{SITE}/{file}"))
        .into()
    }

    fn machine(files: &[Vec<String>]) -> Machine {
        let files = files.concat();
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        Machine::with(&files)
    }

    /// Each folder that a user may name leads to the same files: the environment, its packages, the
    /// folder of the wheels, and the folder of the libraries.
    #[test]
    fn wheels_are_found_in_an_environment_and_in_its_packages() {
        let thirteen = machine(&[thirteen()]);
        let expected = ["libnvrtc.so.13", "libnvJitLink.so.13", "libcudadevrt.a"]
            .map(|file| Some(format!("{SITE}/cu13/lib/{file}")));
        for place in [
            "env",
            "env/lib/python3.11/site-packages",
            &format!("{SITE}/cu13"),
            &format!("{SITE}/cu13/lib"),
        ] {
            assert_eq!(thirteen.finds(&[place], None), expected, "{place}");
        }
        let twelve = machine(&[twelve()]);
        let expected = [
            "cuda_nvrtc/lib/libnvrtc.so.12",
            "nvjitlink/lib/libnvJitLink.so.12",
            "cuda_runtime/lib/libcudadevrt.a",
        ]
        .map(|file| Some(format!("{SITE}/{file}")));
        assert_eq!(twelve.finds(&["env"], None), expected);
    }

    /// A compiler newer than the driver would make code that the driver refuses.
    #[test]
    fn the_drivers_version_decides_between_versions_side_by_side() {
        let machine = machine(&[thirteen(), twelve()]);
        for (cuda, version) in [(None, 13), (Some(13), 13), (Some(14), 13), (Some(12), 12)] {
            let found = machine.finds(&["env"], cuda.map(|major| Version::new(major, 1)));
            let [nvrtc, nvjitlink, runtime] = found.map(Option::unwrap);
            assert!(
                nvrtc.ends_with(&format!("libnvrtc.so.{version}")),
                "{cuda:?}: {nvrtc}"
            );
            assert!(
                nvjitlink.ends_with(&format!("libnvJitLink.so.{version}")),
                "{cuda:?}: {nvjitlink}"
            );
            let home = if version == 13 {
                "cu13"
            } else {
                "cuda_runtime"
            };
            assert!(runtime.contains(home), "{cuda:?}: {runtime}");
        }
    }

    /// Names without a version are taken, names of other libraries that begin alike are not, and
    /// versions before 12 are passed over.
    #[test]
    fn a_toolkit_and_a_systems_folder_are_searched() {
        let machine = Machine::with(&[
            "cuda/lib64/libnvrtc.so",
            "cuda/lib64/libcudadevrt.a",
            "cuda/targets/x86_64-linux/lib/libnvJitLink.so.12",
            "lib/libnvrtc.so.11.2",
            "lib/libnvrtc.so.12",
            "lib/libnvrtc-builtins.so.12.9",
        ]);
        let expected = [
            "cuda/lib64/libnvrtc.so",
            "cuda/targets/x86_64-linux/lib/libnvJitLink.so.12",
            "cuda/lib64/libcudadevrt.a",
        ];
        assert_eq!(machine.finds(&["cuda"], None), some(expected));
        assert_eq!(
            machine.finds(&["lib"], None),
            some(["lib/libnvrtc.so.12", "", ""])
        );
    }

    /// A linker of another major version than the compiler is worse than none: the driver links
    /// then. The device runtime, which has no version in its name, goes by the files beside it.
    #[test]
    fn parts_of_other_versions_are_not_mixed() {
        let machine = Machine::with(&[
            "a/libnvrtc.so.12",
            "b/libnvJitLink.so.13",
            "b/libcudart.so.13",
            "b/libcudadevrt.a",
            "c/libnvJitLink.so.12",
            "d/libcudadevrt.a",
        ]);
        assert_eq!(
            machine.finds(&["a", "b"], None),
            some(["a/libnvrtc.so.12", "", ""])
        );
        let all = [
            "a/libnvrtc.so.12",
            "c/libnvJitLink.so.12",
            "d/libcudadevrt.a",
        ];
        assert_eq!(machine.finds(&["a", "b", "c", "d"], None), some(all));
    }

    /// With nothing better a compiler that is newer than the driver is taken: it can at least check
    /// programs.
    #[test]
    fn a_compiler_that_is_too_old_is_none_and_one_too_new_is_the_last_resort() {
        let machine = Machine::with(&["old/libnvrtc.so.11.8", "new/libnvrtc.so.13"]);
        let driver = Some(Version::new(12, 4));
        assert_eq!(machine.finds(&["old"], driver), some(["", "", ""]));
        assert_eq!(
            machine.finds(&["old", "new"], driver),
            some(["new/libnvrtc.so.13", "", ""])
        );
        assert_eq!(machine.finds(&["absent", ""], None), some(["", "", ""]));
    }

    /// The order of the folders, and that NEARFIELD_CUDA_PATH switches all others off unless it is
    /// empty.
    #[test]
    fn variables_come_first_and_our_own_alone() {
        let variables = |set: &'static [(&str, &str)]| {
            Search::from_variables(move |name| {
                let entry = set.iter().find(|(known, _)| *known == name)?;
                Some(entry.1.into())
            })
        };
        let own = variables(&[
            ("NEARFIELD_CUDA_PATH", "/own:/other"),
            ("CUDA_HOME", "/home"),
        ]);
        assert_eq!(own.places, ["/own", "/other"].map(PathBuf::from));
        assert!(!own.asks_python);
        assert!(
            own.description()
                .contains("NEARFIELD_CUDA_PATH (/own, /other)")
        );
        let usual = variables(&[
            ("NEARFIELD_CUDA_PATH", ""),
            ("LD_LIBRARY_PATH", "/c::/d"),
            ("CUDA_PATH", "/b"),
            ("CUDA_HOME", "/a"),
            ("VIRTUAL_ENV", "/e"),
        ]);
        let first: Vec<_> = usual.places.iter().take(5).collect();
        assert_eq!(
            first,
            ["/a", "/b", "/c", "/d", "/usr/local/cuda"].map(Path::new)
        );
        assert_eq!(usual.places.last(), Some(&PathBuf::from("/e")));
        assert!(usual.asks_python);
    }

    /// Versions are compared as numbers: 12.10 is newer than 12.9.
    #[test]
    fn installed_toolkits_come_newest_first() {
        let machine = Machine::with(&[
            "cuda-9.2/a",
            "cuda-12.10/a",
            "cuda-12.9/a",
            "cuda-old/a",
            "cuda/a",
        ]);
        let root = machine.path("");
        let expected = ["cuda", "cuda-12.10", "cuda-12.9", "cuda-9.2"].map(|name| root.join(name));
        assert_eq!(installed_toolkits(&root), expected);
    }
}

//! The files of CUDA that are loaded at run time: what they are called, what holds them, how to
//! get them, and how they are opened.
//!
//! Names have a stem and maybe version numbers behind it (`libnvrtc.so.12.8.93`), which `recognise`
//! tells from other libraries that begin alike (`libnvrtc-builtins.so`). A version is read from the
//! name that symbolic links lead to.
//!
//! A library is opened once per process and never closed. Therefore its functions are plain
//! function pointers without a lifetime, and structs of them are `Copy`.

use crate::{
    error::{Error, ErrorKind},
    version::Version,
};
use libloading::Library;
use nearfield_grid::PerProcess;
use std::{
    collections::HashMap,
    ffi::{c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A file of CUDA that the GPU backend can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// The run-time compiler.
    Nvrtc,
    /// The linker.
    NvJitLink,
    /// The device runtime, which kernels that launch kernels are linked with.
    DeviceRuntime,
    /// The host runtime; not used, but its name tells the version of the toolkit around it.
    HostRuntime,
}

/// CUDA's version in remedies when no driver says otherwise.
const USUAL: Version = Version::new(13, 0);

impl Component {
    /// Every part.
    pub(crate) const ALL: [Self; 4] = [
        Self::Nvrtc,
        Self::NvJitLink,
        Self::DeviceRuntime,
        Self::HostRuntime,
    ];

    /// Name in messages.
    fn title(self) -> &'static str {
        match self {
            Self::Nvrtc => "NVRTC (libnvrtc.so)",
            Self::NvJitLink => "nvJitLink (libnvJitLink.so)",
            Self::DeviceRuntime => "the CUDA device runtime (libcudadevrt.a)",
            Self::HostRuntime => "the CUDA runtime (libcudart.so)",
        }
    }

    /// Name of the file without version numbers.
    fn stem(self) -> &'static str {
        match self {
            Self::Nvrtc => "libnvrtc.so",
            Self::NvJitLink => "libnvJitLink.so",
            Self::DeviceRuntime => "libcudadevrt.a",
            Self::HostRuntime => "libcudart.so",
        }
    }

    /// Whether `file`, a file's name, is this part, and the version numbers at its end.
    pub(crate) fn recognise(self, file: &str) -> Option<&str> {
        let end = file.strip_prefix(self.stem())?;
        match self {
            Self::DeviceRuntime => end.is_empty().then_some(end),
            _ if end.is_empty() => Some(end),
            _ => end.strip_prefix('.'),
        }
    }

    /// The error that the part was not found in `searched`, with its remedy.
    pub(crate) fn missing(self, searched: &str, cuda: Option<Version>) -> Error {
        Error::from(ErrorKind::NoLibrary {
            library: self.title(),
            searched: searched.to_owned(),
            remedy: self.remedy(cuda),
        })
    }

    /// How to get it for a driver that supports `cuda`.
    pub(crate) fn remedy(self, cuda: Option<Version>) -> String {
        let Version { major, minor } = cuda.unwrap_or(USUAL);
        let (wheel, deb) = match self {
            Self::Nvrtc => ("nvidia-cuda-nvrtc", "cuda-nvrtc"),
            Self::NvJitLink => ("nvidia-nvjitlink", "libnvjitlink"),
            Self::DeviceRuntime => ("nvidia-cuda-runtime", "cuda-cudart-dev"),
            Self::HostRuntime => ("nvidia-cuda-runtime", "cuda-cudart"),
        };
        let wheel = match major {
            ..=12 => format!("{wheel}-cu12"),
            _ => format!("\"{wheel}=={major}.*\""),
        };
        format!(
            "install it by `pip install {wheel}` or, from NVIDIA's repository, `apt install \
             {deb}-{major}-{minor}`, or let NEARFIELD_CUDA_PATH name the folder that holds it"
        )
    }
}

/// The version in a library's file name, through symbolic links: 12.8 for `libnvrtc.so.12.8.93`.
///
/// Libraries that give only a major version get minor 0.
pub(crate) fn version_of(part: Component, path: &Path) -> Option<Version> {
    let parse = |path: &Path| {
        let end = part.recognise(path.file_name()?.to_str()?)?;
        let mut numbers = end.split('.').map_while(|number| number.parse().ok());
        let major = numbers.next()?;
        Some(Version::new(major, numbers.next().unwrap_or(0)))
    };
    let real = fs::canonicalize(path).ok();
    real.as_deref().and_then(parse).or_else(|| parse(path))
}

/// The libraries opened so far. A forked child opens them anew, which is quick: the lock may have
/// been held when it was forked.
static OPENED: PerProcess<Mutex<HashMap<PathBuf, &'static Library>>> = PerProcess::empty();

/// Opens a library for good: the functions taken from it stay valid as long as the process lives.
///
/// # Errors
/// [`ErrorKind::BadLibrary`] with the loader's reason.
pub(crate) fn open(path: &Path) -> Result<&'static Library, Error> {
    let opened = OPENED.get_or_make(Mutex::default);
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = opened.get(path) {
        return Ok(library);
    }
    // SAFETY: loading runs the library's initialisers. It was found by the name of a library of
    // CUDA where the user or the system keeps these; those initialisers need nothing from us.
    let library = unsafe { Library::new(path) }.map_err(|error| {
        Error::from(ErrorKind::BadLibrary {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    })?;
    let library: &'static Library = Box::leak(Box::new(library));
    opened.insert(path.to_owned(), library);
    Ok(library)
}

/// A function of an opened library; `path` is for the message.
///
/// # Errors
/// [`ErrorKind::BadLibrary`] if the library has no function of that name.
///
/// # Safety
///
/// `F` must be the function's type as CUDA's header declares it.
pub(crate) unsafe fn function<F: Copy>(
    library: &'static Library,
    path: &Path,
    name: &str,
) -> Result<F, Error> {
    // SAFETY: the caller vouches for the type; the library is never closed.
    match unsafe { library.get::<F>(name.as_bytes()) } {
        Ok(function) => Ok(*function),
        Err(_) => Err(Error::from(ErrorKind::BadLibrary {
            path: path.to_owned(),
            reason: format!("it has no function {name}; a newer version is needed"),
        })),
    }
}

/// An object of the compiler or the linker.
pub(crate) type Handle = *mut c_void;
/// Tells the size of something that the library made, a NUL at its end included.
pub(crate) type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
/// Fills a buffer whose size the companion function told.
pub(crate) type GetData = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
/// Tells a version: major and minor number.
pub(crate) type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// Two functions of a library that hand out the same thing: its size, and its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputCalls {
    /// How many bytes there are.
    pub(crate) size: GetSize,
    /// Fills a buffer of that size.
    pub(crate) data: GetData,
}

impl OutputCalls {
    /// Copies what the library made for `handle`. The error is the library's status.
    ///
    /// # Safety
    /// Both functions belong to the library that `handle` came from, and the handle lives.
    pub(crate) unsafe fn read(self, handle: Handle) -> Result<Vec<u8>, c_int> {
        let mut bytes = 0;
        // SAFETY: the handle lives, says the caller, and one number is written.
        let mut status = unsafe { (self.size)(handle, &mut bytes) };
        let mut buffer = vec![0u8; bytes];
        if status == 0 && bytes > 0 {
            // SAFETY: the buffer has the size that the call before told.
            status = unsafe { (self.data)(handle, buffer.as_mut_ptr().cast()) };
        }
        if status == 0 { Ok(buffer) } else { Err(status) }
    }

    /// Messages that the library wrote for `handle`, without NULs and line ends around them; empty
    /// if they cannot be read.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(crate) unsafe fn messages(self, handle: Handle) -> String {
        // SAFETY: as the caller of this function says.
        let bytes = unsafe { self.read(handle) }.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.trim_matches(['\0', '\n']).to_owned()
    }
}

/// The version that a library tells. The error is its status.
pub(crate) fn version_told(function: GetVersion) -> Result<Version, c_int> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: it writes two numbers.
    let status = unsafe { function(&mut major, &mut minor) };
    match (status, u32::try_from(major), u32::try_from(minor)) {
        (0, Ok(major), Ok(minor)) => Ok(Version::new(major, minor)),
        _ => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVRTC comes with libraries whose names begin like its own.
    #[test]
    fn files_are_told_apart_by_their_names() {
        for (part, file, end) in [
            (Component::Nvrtc, "libnvrtc.so", Some("")),
            (Component::Nvrtc, "libnvrtc.so.13", Some("13")),
            (Component::Nvrtc, "libnvrtc.so.12.8.93", Some("12.8.93")),
            (Component::Nvrtc, "libnvrtc.alt.so.13", None),
            (Component::Nvrtc, "libnvrtc-builtins.so.13.0", None),
            (Component::Nvrtc, "libnvrtc.sock", None),
            (Component::DeviceRuntime, "libcudadevrt.a", Some("")),
            (Component::DeviceRuntime, "libcudadevrt.a.old", None),
        ] {
            assert_eq!(part.recognise(file), end, "{file}");
        }
    }

    /// Distributions install `libnvrtc.so` as a link to the file with the version.
    #[test]
    fn a_version_is_read_through_links() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().join("libnvrtc.so.12.8.93");
        fs::write(&real, "").unwrap();
        assert_eq!(
            version_of(Component::Nvrtc, &real),
            Some(Version::new(12, 8))
        );
        #[cfg(unix)]
        {
            let link = place.path().join("libnvrtc.so");
            std::os::unix::fs::symlink(&real, &link).unwrap();
            assert_eq!(
                version_of(Component::Nvrtc, &link),
                Some(Version::new(12, 8))
            );
        }
        let bare = place.path().join("libnvJitLink.so");
        assert_eq!(version_of(Component::NvJitLink, &bare), None);
    }

    /// Since CUDA 13 wheels carry the version behind `==` and no longer in the name.
    #[test]
    fn remedies_fit_the_driver() {
        let remedy = Component::Nvrtc.remedy(Some(Version::new(12, 4)));
        assert!(
            remedy.contains("pip install nvidia-cuda-nvrtc-cu12`"),
            "{remedy}"
        );
        assert!(remedy.contains("cuda-nvrtc-12-4"), "{remedy}");
        let remedy = Component::DeviceRuntime.remedy(None);
        assert!(remedy.contains("\"nvidia-cuda-runtime==13.*\""), "{remedy}");
    }

    /// The message names the file, since several may be installed.
    #[test]
    fn a_file_that_is_no_library_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("libnvrtc.so.13");
        fs::write(&path, "no library").unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("libnvrtc.so.13 cannot be used"), "{error}");
    }
}

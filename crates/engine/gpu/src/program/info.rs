//! What this machine offers to the GPU backend, and how to get what is missing.
//!
//! A probe goes through the same steps as a backend that starts (driver, devices, compiler, device
//! runtime, linker) and never stops at a failure: each missing part becomes an entry with the
//! message that the failing call would have had. Libraries are opened, not only found, because a
//! file that cannot be loaded is as good as missing. No context is made, so a probe takes no memory
//! of a GPU.

use super::{nvjitlink::NvJitLink, nvrtc::Nvrtc};
use crate::{
    driver::{self, DeviceInfo, Driver},
    error::{Error, ErrorKind},
    toolkit::{Component, Search},
    version::Version,
};
use std::path::{Path, PathBuf};

/// The parts of the GPU backend that this machine has.
///
/// ```no_run
/// use nearfield_gpu::GpuInfo;
///
/// let info = GpuInfo::probe();
/// for device in &info.devices {
///     println!("GPU {}: {}, {}, {} bytes", device.index, device.name, device.arch, device.memory);
/// }
/// for part in &info.missing {
///     println!("{}: {}", part.what, part.message);
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuInfo {
    /// The driver's version, such as 580.95.05, where the system tells it.
    pub driver: Option<String>,
    /// The newest CUDA whose programs the driver loads. None where no driver works.
    pub cuda: Option<Version>,
    /// The GPUs that the driver shows.
    pub devices: Vec<DeviceInfo>,
    /// The compiler, opened to see that it works.
    pub nvrtc: Option<Tool>,
    /// The linker, opened to see that it works.
    pub nvjitlink: Option<Tool>,
    /// The device runtime.
    pub device_runtime: Option<PathBuf>,
    /// Parts that are missing or do not work, most important first.
    pub missing: Vec<Missing>,
}

/// A library that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The file.
    pub path: PathBuf,
    /// Its version.
    pub version: Option<Version>,
}

/// Something that is missing, with the message that a backend would fail with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The part, in a word: `driver`, `device`, `nvrtc`, `nvjitlink`, `device runtime`.
    pub what: &'static str,
    /// Why it is missing and how to get it.
    pub message: String,
}

impl GpuInfo {
    /// Looks for everything. Never fails: what is missing is part of the answer. Starts the driver,
    /// and may ask `python3` for its folders.
    pub fn probe() -> Self {
        Self::probe_with(&Search::from_env())
    }

    /// As [`probe`](Self::probe), with libraries looked for elsewhere.
    pub fn probe_with(search: &Search) -> Self {
        let mut info = Self::default();
        info.find_devices();
        info.find_libraries(search);
        info
    }

    /// Notes a missing part.
    fn lacks(&mut self, what: &'static str, message: impl ToString) {
        let message = message.to_string();
        self.missing.push(Missing { what, message });
    }

    /// Starts the driver and describes every GPU it shows.
    fn find_devices(&mut self) {
        self.driver = driver::release();
        let driver = match Driver::open() {
            Ok(driver) => driver,
            Err(error) => return self.lacks("driver", error),
        };
        self.cuda = Some(driver.cuda());
        let count = driver.device_count().unwrap_or_else(|error| {
            self.lacks("device", error);
            0
        });
        for index in 0..count {
            match driver.device(index) {
                Ok(device) => self.devices.push(device),
                Err(error) => self.lacks("device", error),
            }
        }
        if count == 0 {
            let none = ErrorKind::NoDevice { device: 0, count };
            self.lacks("device", Error::from(none));
        }
    }

    /// Finds and opens compiler, device runtime and linker, as they fit the driver.
    fn find_libraries(&mut self, search: &Search) {
        let cuda = self.cuda;
        let found = search.libraries(cuda);
        let absent = |part: Component| part.missing(search.description(), cuda);
        match found.nvrtc {
            None => self.lacks("nvrtc", absent(Component::Nvrtc)),
            Some(found) => match Nvrtc::open(&found.path) {
                Ok(nvrtc) => self.accept_compiler(&found.path, nvrtc.version()),
                Err(error) => self.lacks("nvrtc", error),
            },
        }
        match found.device_runtime {
            None => self.lacks("device runtime", absent(Component::DeviceRuntime)),
            Some(path) => self.device_runtime = Some(path),
        }
        match found
            .nvjitlink
            .map(|found| (NvJitLink::open(&found.path), found))
        {
            None => {
                let message = format!(
                    "{}; without it the driver links",
                    absent(Component::NvJitLink)
                );
                self.lacks("nvjitlink", message);
            }
            Some((Ok(linker), found)) => {
                self.nvjitlink = Some(Tool {
                    version: linker.version().or(found.version),
                    path: found.path,
                });
            }
            Some((Err(error), _)) => self.lacks("nvjitlink", error),
        }
    }

    /// Notes a compiler that opens, and a complaint if the driver is too old for its code.
    fn accept_compiler(&mut self, path: &Path, version: Version) {
        if let Some(cuda) = self.cuda.filter(|cuda| cuda.major < version.major) {
            self.lacks(
                "nvrtc",
                format!(
                    "{} is of CUDA {version}, and the driver loads no programs newer than {cuda}; \
                     install a newer driver, or {}",
                    path.display(),
                    Component::Nvrtc.remedy(Some(cuda)),
                ),
            );
        }
        self.nvrtc = Some(Tool {
            path: path.to_owned(),
            version: Some(version),
        });
    }
}

//! `nearfield info`: processors, GPUs and libraries of this machine.

use crate::{failure::Failure, output};
use nearfield::{Engine, report::SimdLevel};
use nearfield_gpu::{Cache, DeviceInfo, GpuInfo, Missing, Tool};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `nearfield info`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    cores: usize,
    simd: Vec<&'static str>,
    gpu: Gpu,
    auto: String,
    reason: String,
}

/// State of the GPU backend.
#[derive(Debug, Serialize)]
struct Gpu {
    driver: Option<String>,
    cuda: Option<String>,
    devices: Vec<Device>,
    nvrtc: Option<Library>,
    nvjitlink: Option<Library>,
    device_runtime: Option<PathBuf>,
    cache: Option<PathBuf>,
    missing: Vec<Lack>,
}

#[derive(Debug, Serialize)]
struct Device {
    index: u32,
    name: String,
    arch: String,
    multiprocessors: u32,
    memory_bytes: usize,
    pci: String,
}

#[derive(Debug, Serialize)]
struct Library {
    path: PathBuf,
    version: Option<String>,
}

#[derive(Debug, Serialize)]
struct Lack {
    what: &'static str,
    message: String,
}

impl From<DeviceInfo> for Device {
    fn from(device: DeviceInfo) -> Self {
        Self {
            index: device.index,
            name: device.name,
            arch: device.arch.to_string(),
            multiprocessors: device.multiprocessors,
            memory_bytes: device.memory,
            pci: device.pci,
        }
    }
}

impl From<Tool> for Library {
    fn from(tool: Tool) -> Self {
        Self {
            path: tool.path,
            version: tool.version.map(|version| version.to_string()),
        }
    }
}

impl From<Missing> for Lack {
    fn from(Missing { what, message }: Missing) -> Self {
        Self { what, message }
    }
}

impl Gpu {
    fn probe() -> Self {
        let info = GpuInfo::probe();
        let cache = Cache::from_env();
        let refused = cache.as_ref().and_then(|cache| cache.check().err());
        let refused = refused.map(|error| Lack {
            what: "cache",
            message: error.to_string(),
        });
        let missing = info.missing.into_iter().map(Lack::from).chain(refused);
        Self {
            driver: info.driver,
            cuda: info.cuda.map(|version| version.to_string()),
            devices: info.devices.into_iter().map(Device::from).collect(),
            nvrtc: info.nvrtc.map(Library::from),
            nvjitlink: info.nvjitlink.map(Library::from),
            device_runtime: info.device_runtime,
            cache: cache.as_ref().map(|cache| cache.folder().to_owned()),
            missing: missing.collect(),
        }
    }

    /// For people.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |title: &str, text: String| lines.push(format!("{title:<12} {text}"));
        if let Some(cuda) = &self.cuda {
            let release = self.driver.as_deref().unwrap_or("of unknown version");
            add("GPU driver", format!("{release}, for CUDA up to {cuda}"));
        }
        for device in &self.devices {
            let gib = device.memory_bytes as f64 / f64::from(1 << 30);
            add(
                &format!("GPU {}", device.index),
                format!(
                    "{}, {}, {} multiprocessors, {gib:.1} GiB, PCI {}",
                    device.name, device.arch, device.multiprocessors, device.pci
                ),
            );
        }
        for (title, name, library) in [
            ("GPU compiler", "NVRTC", &self.nvrtc),
            ("GPU linker", "nvJitLink", &self.nvjitlink),
        ] {
            if let Some(Library { path, version }) = library {
                let version = version.as_deref().unwrap_or("of unknown version");
                add(title, format!("{name} {version}, {}", path.display()));
            }
        }
        for (title, path) in [
            ("GPU runtime", &self.device_runtime),
            ("GPU cache", &self.cache),
        ] {
            if let Some(path) = path {
                add(title, path.display().to_string());
            }
        }
        for lack in &self.missing {
            add("missing", format!("{}: {}", lack.what, lack.message));
        }
        lines
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = Engine::builder(1.0).build()?.report();
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        cores: report.threads,
        simd: SimdLevel::available()
            .iter()
            .map(|level| level.name())
            .collect(),
        gpu: Gpu::probe(),
        auto: report.device.to_string(),
        reason: report.reason,
    };
    output::print(args.json, &info, || {
        let (cores, simd) = (info.cores, info.simd.join(", "));
        let mut lines = vec![
            format!("nearfield {}", info.version),
            format!("CPU backend     {cores} threads, vectors: {simd}"),
        ];
        lines.extend(info.gpu.lines());
        let reason = if info.gpu.missing.iter().any(|lack| lack.what == "driver") {
            "no GPU can be used"
        } else {
            &info.reason
        };
        lines.push(format!("device auto  {} ({reason})", info.auto));
        lines
    })
}

//! What is missing is said, with its remedy, on any machine.

use nearfield_gpu::{GpuInfo, Search, open};
use std::path::Path;

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let info = GpuInfo::probe_with(&Search::only([Path::new("/nowhere").to_owned()]));
    assert_eq!(
        (&info.nvrtc, &info.nvjitlink, &info.device_runtime),
        (&None, &None, &None)
    );
    for (what, package) in [
        ("nvrtc", "nvidia-cuda-nvrtc"),
        ("nvjitlink", "nvidia-nvjitlink"),
        ("device runtime", "nvidia-cuda-runtime"),
    ] {
        let missing = info
            .missing
            .iter()
            .find(|missing| missing.what == what)
            .unwrap();
        for word in [
            "/nowhere",
            "pip install",
            package,
            "apt install",
            "NEARFIELD_CUDA_PATH",
        ] {
            assert!(
                missing.message.contains(word),
                "{what}: {}",
                missing.message
            );
        }
    }
}

#[test]
fn a_machine_without_a_gpu_is_told_so_and_one_with_is_described() {
    let info = GpuInfo::probe();
    let lacks = |what: &str| info.missing.iter().any(|missing| missing.what == what);
    assert_eq!(info.cuda.is_none(), lacks("driver"));
    match info.devices.first() {
        None => assert!(lacks("driver") || lacks("device")),
        Some(device) => {
            assert!(device.arch.number() >= 50 && device.multiprocessors > 0 && device.memory > 0);
            assert!(
                !device.name.is_empty() && device.pci.contains(':'),
                "{device:?}"
            );
        }
    }
}

#[test]
fn a_gpu_that_is_not_there_is_refused_by_number_or_by_driver() {
    let error = open(4_000_000_000).unwrap_err().to_string();
    let expected = match GpuInfo::probe().cuda {
        Some(_) => "there is no GPU 4000000000",
        None => "NVIDIA driver",
    };
    assert!(error.contains(expected), "{error}");
}

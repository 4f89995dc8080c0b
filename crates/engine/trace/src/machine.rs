//! Names of the machine and the program, for the header of a trace.

use crate::model::{Machine, Program};
use std::{env, path::Path, thread};

/// The processor's name without signs of trade; `unknown processor` where the system does not tell.
pub fn processor() -> String {
    match tidy(&brand()) {
        name if name.is_empty() => "unknown processor".into(),
        name => name,
    }
}

/// The name that the processor itself returns, under any system.
#[cfg(target_arch = "x86_64")]
fn brand() -> String {
    use std::arch::x86_64::__cpuid;
    // 48 bytes of text in three leaves (AMD64 Architecture Programmer's Manual, volume 3, E.4.3).
    const LEAVES: [u32; 3] = [0x8000_0002, 0x8000_0003, 0x8000_0004];
    let highest = __cpuid(0x8000_0000).eax;
    let words = (LEAVES.into_iter().filter(|&leaf| leaf <= highest)).flat_map(|leaf| {
        let found = __cpuid(leaf);
        [found.eax, found.ebx, found.ecx, found.edx]
    });
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The processor's name as the system knows it.
#[cfg(not(target_arch = "x86_64"))]
fn brand() -> String {
    use sysinfo::{CpuRefreshKind, RefreshKind, System};
    let refresh = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(refresh).ok();
    let cpu = system.as_ref().and_then(|system| system.cpus().first());
    cpu.map_or_else(String::new, |cpu| cpu.brand().to_owned())
}

fn tidy(brand: &str) -> String {
    let plain = brand.replace("(R)", "").replace("(TM)", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Machine {
    /// This machine, without its GPUs, which only their backend knows.
    pub fn here() -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        Self {
            processor: processor(),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            system: format!("{} {}", env::consts::OS, env::consts::ARCH),
            gpus: Vec::new(),
        }
    }
}

impl Program {
    /// The program that runs, with its arguments and without a version.
    pub fn here() -> Self {
        let mut arguments = env::args_os().map(|text| text.to_string_lossy().into_owned());
        let path = arguments.next().unwrap_or_default();
        let name = Path::new(&path).file_stem().unwrap_or_default();
        Self {
            name: name.to_string_lossy().into_owned(),
            version: String::new(),
            arguments: arguments.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_signs_of_trade_and_no_needless_spaces() {
        assert_eq!(
            tidy("Intel(R) Xeon(R)  Processor @ 2.50GHz "),
            "Intel Xeon Processor @ 2.50GHz"
        );
        assert_eq!(tidy("Intel(R) Core(TM) i7"), "Intel Core i7");
        assert!(!processor().is_empty());
    }

    #[test]
    fn the_program_has_a_name() {
        assert!(Program::here().name.starts_with("nearfield_trace"));
        assert!(Machine::here().cores >= 1);
    }
}

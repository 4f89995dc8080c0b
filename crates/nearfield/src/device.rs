//! Which hardware an engine is asked to use.

use std::{fmt, str::FromStr};

/// Hardware an engine runs on.
///
/// Written `auto`, `cpu`, `gpu`, `gpu:1`, `hybrid` or `hybrid:1` on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Device {
    /// The best there is; the report says what was chosen and why.
    #[default]
    Auto,
    /// The CPU lane.
    Cpu,
    /// The GPU with this number.
    Gpu(u32),
    /// The CPU lane and the GPU with this number together.
    Hybrid(u32),
}

/// A device name that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown device \"{0}\": use auto, cpu, gpu[:N] or hybrid[:N]")]
pub struct ParseDeviceError(String);

impl FromStr for Device {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, number.parse().ok()),
            None => (text, Some(0)),
        };
        match (name, number) {
            ("auto", Some(_)) if text == name => Ok(Self::Auto),
            ("cpu", Some(_)) if text == name => Ok(Self::Cpu),
            ("gpu", Some(number)) => Ok(Self::Gpu(number)),
            ("hybrid", Some(number)) => Ok(Self::Hybrid(number)),
            _ => Err(ParseDeviceError(text.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(number) => write!(f, "gpu:{number}"),
            Self::Hybrid(number) => write!(f, "hybrid:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_printed() {
        for (text, device) in [
            ("auto", Device::Auto),
            ("cpu", Device::Cpu),
            ("gpu:2", Device::Gpu(2)),
            ("hybrid:0", Device::Hybrid(0)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("gpu".parse(), Ok(Device::Gpu(0)));
        for text in ["", "cpu:1", "gpu:", "gpu:x", "tpu"] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.to_string().contains("use auto"), "{error}");
        }
    }
}

//! Names of devices, as command lines give them.
//!
//! A name is a word, followed by a number or by keys after a colon. The text that [`Device`] prints
//! is read as the same value, which the tests and a fuzz target check.
//!
//! A number may be left out and is 0. Keys of an emulated device may be left out too and have their
//! defaults then. A name that ends with its colon is refused as incomplete.

use crate::{Device, Error, ErrorKind};
use std::str::FromStr;

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || Error::from(ErrorKind::UnknownDevice(text.to_owned()));
        let (name, rest) = match text.split_once(':') {
            Some((_, "")) => return Err(unknown()),
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let number = || match rest {
            Some(number) => number.parse().map_err(|_| unknown()),
            None => Ok(0),
        };
        match (name, rest) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("gpu", _) => Ok(Self::Gpu(number()?)),
            ("hybrid", _) => Ok(Self::Hybrid(number()?)),
            ("emulated", _) => Ok(Self::Emulated(rest.unwrap_or_default().parse()?)),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_balance::EmulatedSpec;

    #[test]
    fn names_are_parsed_and_printed() {
        for (text, device) in [
            ("auto", Device::Auto),
            ("cpu", Device::Cpu),
            ("gpu:2", Device::Gpu(2)),
            ("hybrid:0", Device::Hybrid(0)),
        ] {
            assert_eq!(text.parse::<Device>().unwrap(), device);
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("gpu".parse::<Device>().unwrap(), Device::Gpu(0));
        assert_eq!("hybrid".parse::<Device>().unwrap(), Device::Hybrid(0));
        for text in [
            "",
            "cpu:1",
            "auto:",
            "gpu:",
            "gpu:x",
            "hybrid:-1",
            "emulated:",
            "tpu",
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.to_string().contains("use auto"), "{error}");
        }
    }

    #[test]
    fn emulated_gpus_are_described_by_keys_and_printed_in_full() {
        let default = EmulatedSpec::default();
        assert_eq!(
            "emulated".parse::<Device>().unwrap(),
            Device::Emulated(default)
        );
        let device = Device::Emulated(EmulatedSpec {
            speed: 8.0,
            bandwidth: 25.5,
            ..default
        });
        assert_eq!(
            "emulated:speed=8,bandwidth=25.5".parse::<Device>().unwrap(),
            device
        );
        assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        for (text, expected) in [
            ("emulated:speed=0", "speed=0"),
            ("emulated:8", "unknown key \"8\""),
            ("emulated:speed=8,speed=9", "speed is given twice"),
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

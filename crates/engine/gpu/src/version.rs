//! Versions of CUDA and architectures of GPUs: two numbers that are written in many ways.
//!
//! A version orders by major and minor number. Code of CUDA runs on drivers of its own major
//! version and later, so most comparisons are of major numbers. An architecture is a compute
//! capability times ten; machine code runs on the architecture that it was made for and on later
//! ones of the same major number.

use std::{fmt, str::FromStr};

/// A version of CUDA, of its compiler or of what the driver supports.
///
/// ```
/// use nearfield_gpu::Version;
///
/// let driver = Version::new(12, 9);
/// assert!(driver < Version::new(13, 0));
/// assert_eq!(driver.to_string(), "12.9");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl Version {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads the driver's number: 13000 is 13.0, 12090 is 12.9.
    pub(crate) fn from_driver(number: u32) -> Self {
        Self::new(number / 1000, number % 1000 / 10)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Architecture of machine code: a compute capability, 90 for 9.0.
///
/// ```
/// use nearfield_gpu::Arch;
///
/// let hopper: Arch = "9.0".parse()?;
/// assert_eq!(hopper, Arch::new(90));
/// assert_eq!(hopper.to_string(), "sm_90");
/// assert!("sm_80".parse::<Arch>()? < hopper);
/// # Ok::<(), nearfield_gpu::NotAnArch>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(u32);

impl Arch {
    /// The architectures that every kernel is checked for: one of each generation since Turing, and
    /// those variants that data centres and workstations have.
    pub const CHECKED: [Self; 7] = [
        Self(75),
        Self(80),
        Self(86),
        Self(89),
        Self(90),
        Self(100),
        Self(120),
    ];

    /// From a compute capability times ten: 90 for 9.0. Any number is taken; the compiler refuses
    /// those that it does not know.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Compute capability times ten: 90 for 9.0.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

impl FromStr for Arch {
    type Err = NotAnArch;

    /// Reads `90`, `sm_90` or `9.0`.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let refused = || NotAnArch(text.to_owned());
        let digits = match text.split_once('.') {
            Some((major, minor)) if minor.len() == 1 => format!("{major}{minor}"),
            Some(_) => return Err(refused()),
            None => text.strip_prefix("sm_").unwrap_or(text).to_owned(),
        };
        let number = digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(arch @ 10..1000) if number => Ok(Self(arch)),
            _ => Err(refused()),
        }
    }
}

/// The text names no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a GPU architecture; write it as 90, sm_90 or 9.0")]
pub struct NotAnArch(String);

#[cfg(test)]
mod tests {
    use super::*;

    /// All that users and NVIDIA write, and texts that look alike and are none.
    #[test]
    fn an_architecture_is_read_in_each_of_its_ways_of_writing() {
        for (text, number) in [
            ("90", 90),
            ("sm_90", 90),
            ("9.0", 90),
            ("sm_120", 120),
            ("12.0", 120),
        ] {
            assert_eq!(text.parse(), Ok(Arch::new(number)), "{text}");
        }
        for text in [
            "",
            "sm_",
            "9",
            "9.",
            "9.00",
            "+90",
            "-1.0",
            "90a",
            "sm_9.0",
            "1000",
            "99999999999",
        ] {
            assert_eq!(
                text.parse::<Arch>(),
                Err(NotAnArch(text.to_owned())),
                "{text}"
            );
        }
    }

    /// 1000 times the major number and 10 times the minor one.
    #[test]
    fn the_drivers_number_is_a_version() {
        assert_eq!(Version::from_driver(13000).to_string(), "13.0");
        assert_eq!(Version::from_driver(12090), Version::new(12, 9));
        assert!(Version::new(12, 9) < Version::new(13, 0));
    }
}

//! The description of an emulated machine as text.
//!
//! `speed=8,launch_us=5,bandwidth=25` is short enough for a command line and a test's name. Every
//! key has a default, unknown and repeated keys are refused, and a value that is out of range is
//! an error that says what it must be.
//!
//! **Invariant:** a parsed description has positive speeds and bandwidths and a jitter between 0
//! and 1.

use crate::{Error, ErrorKind};
use std::{fmt, str::FromStr};

/// A GPU that does not exist.
///
/// Written `speed=8,launch_us=5,bandwidth=25,memory_mib=4096,jitter=0.05,fail=oom@3,seed=7`; keys
/// may be left out and come in any order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EmulatedSpec {
    /// Pairs tested per time on full cells, relative to the whole CPU backend. Default 4.
    pub speed: f64,
    /// Fixed cost of every copy and every launch, microseconds. Default 10.
    pub launch_us: f64,
    /// Copies each way, GB/s. Default 12.
    pub bandwidth: f64,
    /// Device memory, MiB. Default 8192.
    pub memory_mib: u64,
    /// Standard deviation of the logarithm of every duration, and once more of every backend's
    /// speed from step to step; at most 1. Default 0.
    pub jitter: f64,
    /// The fault, if there is one.
    pub fail: Option<FaultAt>,
    /// Seed of the jitter. Default 1.
    pub seed: u64,
}

/// A fault at a step, counted from 0.
///
/// `fail=oom@3` and `fail=lost@10` in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAt {
    /// Out of memory in this step only.
    OutOfMemory(u64),
    /// Gone from this step on.
    Lost(u64),
}

impl Default for EmulatedSpec {
    fn default() -> Self {
        Self {
            speed: 4.0,
            launch_us: 10.0,
            bandwidth: 12.0,
            memory_mib: 8192,
            jitter: 0.0,
            fail: None,
            seed: 1,
        }
    }
}

impl FromStr for EmulatedSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut spec = Self::default();
        let mut seen = Vec::new();
        for item in text.split(',').filter(|item| !item.trim().is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(ErrorKind::KeyTwice(key.to_owned()).into());
            }
            spec.set(key, value)?;
            seen.push(key);
        }
        Ok(spec)
    }
}

impl EmulatedSpec {
    /// Sets one key.
    fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "speed" => self.speed = number("speed", value, POSITIVE, |v| v > 0.0)?,
            "launch_us" => {
                let must = "a number of microseconds, 0 or more";
                self.launch_us = number("launch_us", value, must, |v| v >= 0.0)?;
            }
            "bandwidth" => self.bandwidth = number("bandwidth", value, POSITIVE, |v| v > 0.0)?,
            "memory_mib" => {
                let must = "a whole number of MiB, at least 1";
                self.memory_mib = value
                    .parse()
                    .ok()
                    .filter(|&mib| mib > 0)
                    .ok_or_else(|| refused("memory_mib", value, must))?;
            }
            "jitter" => {
                let must = "a number between 0 and 1";
                self.jitter = number("jitter", value, must, |v| (0.0..=1.0).contains(&v))?;
            }
            "fail" => self.fail = Some(fault(value)?),
            "seed" => {
                let must = "a whole number below 2^64";
                self.seed = value.parse().map_err(|_| refused("seed", value, must))?;
            }
            _ => return Err(ErrorKind::UnknownKey(key.to_owned()).into()),
        }
        Ok(())
    }
}

/// The requirement of speeds and bandwidths, in messages.
const POSITIVE: &str = "a finite number above 0";

/// The error of a value that a key cannot have.
fn refused(key: &'static str, value: &str, must: &'static str) -> Error {
    let value = value.to_owned();
    ErrorKind::KeyValue { key, value, must }.into()
}

/// A number that meets a requirement.
fn number(
    key: &'static str,
    text: &str,
    must: &'static str,
    fits: impl Fn(f64) -> bool,
) -> Result<f64, Error> {
    text.parse()
        .ok()
        .filter(|&value: &f64| value.is_finite() && fits(value))
        .ok_or_else(|| refused(key, text, must))
}

/// A fault such as `oom@3` or `lost@10`.
fn fault(text: &str) -> Result<FaultAt, Error> {
    let step = |step: &str| step.parse().ok();
    match text.split_once('@') {
        Some(("oom", at)) => step(at).map(FaultAt::OutOfMemory),
        Some(("lost", at)) => step(at).map(FaultAt::Lost),
        _ => None,
    }
    .ok_or_else(|| refused("fail", text, "oom@STEP or lost@STEP, steps counted from 0"))
}

impl fmt::Display for EmulatedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "speed={},launch_us={},bandwidth={},memory_mib={},jitter={}",
            self.speed, self.launch_us, self.bandwidth, self.memory_mib, self.jitter
        )?;
        match self.fail {
            None => {}
            Some(FaultAt::OutOfMemory(step)) => write!(f, ",fail=oom@{step}")?,
            Some(FaultAt::Lost(step)) => write!(f, ",fail=lost@{step}")?,
        }
        write!(f, ",seed={}", self.seed)
    }
}

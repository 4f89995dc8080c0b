//! The command-line flags of the dam break.

use std::path::PathBuf;
use std::str::FromStr;

use nearfield::Device;
use nearfield::balance::{Equal, Policy, Strategy};

use nearfield_sph::Dimensions;

use crate::scene::Scene;
use crate::{Error, ErrorKind};

/// Directory of the output when none is named.
const OUTPUT: &str = "dam_break";

/// How much larger the spacing of a scene's own is with --quick.
const QUICK: f64 = 1.5;

/// Simulates the collapse of a water column and compares its front with
/// experiments.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub struct Args {
    /// Simulate the scene of this file (TOML) in place of the column; see docs/cli.md
    #[arg(long, value_name = "FILE")]
    pub scene: Option<PathBuf>,

    /// Fluid particles, about: the spacing divides one side of a box [default: 65000 in space, 3200
    /// in the plane, or the spacing of the scene]
    #[arg(long, value_name = "N", value_parser = count)]
    pub particles: Option<usize>,

    /// Simulated time, seconds [default: the end of the scene, or until t·√(2g/a) = 5]
    #[arg(long, value_name = "T_END")]
    pub seconds: Option<f64>,

    /// A small run: fewer particles and frames
    #[arg(long)]
    pub quick: bool,

    /// Dimensions, 2 or 3 [default: those of the scene, or 3]
    #[arg(long, value_name = "2|3", value_parser = dimensions)]
    pub dim: Option<Dimensions>,

    /// Where the neighbour engine runs: auto, cpu, gpu, gpu:N, hybrid, hybrid:N, emulated or
    /// emulated:KEY=VALUE,…; ranks take GPUs without a number in turn
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceFlag,

    /// Threads to use, 0 for all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,

    /// How a GPU maps cells to threads: flat, child-per-cell, child-aggregated or auto
    #[arg(long, value_name = "NAME", default_value_t = Strategy::Flat)]
    pub strategy: Strategy,

    /// Policy that divides the work between both backends (hybrid, emulated): model,
    /// band or band:ALPHA:BETA, fraction or fixed:THETA
    #[arg(long, value_name = "NAME", default_value_t = Policy::Model)]
    pub policy: Policy,

    /// What the parts of a step of both backends have about as much of (hybrid,
    /// emulated): work or points
    #[arg(long, value_name = "WHAT", default_value_t = Equal::Work)]
    pub equal_subregions: Equal,

    /// Directory for frames, pictures and tables; made when missing
    #[arg(long, value_name = "DIR", default_value = OUTPUT)]
    pub output: PathBuf,

    /// Frames to write, the first and the last moment among them; 1 writes the
    /// first alone
    /// [default: 48, with --quick 16]
    #[arg(long, value_name = "N", value_parser = count)]
    pub frames: Option<usize>,

    /// Frames in pieces, one of each rank, and no pictures: no particle leaves its rank
    #[arg(long)]
    pub pieces: bool,

    /// Write dam_break.checkpoint into the output directory every N frames, to go on from with
    /// --restart
    #[arg(long, value_name = "N", value_parser = positive_count)]
    pub checkpoint: Option<usize>,

    /// Go on from a checkpoint, with the flags and the output of its run
    #[arg(long, value_name = "FILE")]
    pub restart: Option<PathBuf>,

    /// Record where the time goes into a file, for nearfield trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print the summary as one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The hardware that `--device` names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceFlag {
    /// The device. A GPU without a number is the first.
    pub device: Device,
    /// True for a GPU without a number: ranks of one machine then take different ones.
    pub any_gpu: bool,
}

impl From<Device> for DeviceFlag {
    /// This very device.
    fn from(device: Device) -> Self {
        Self {
            device,
            any_gpu: false,
        }
    }
}

impl FromStr for DeviceFlag {
    type Err = nearfield::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            device: text.parse()?,
            any_gpu: ["gpu", "hybrid"].contains(&text),
        })
    }
}

impl DeviceFlag {
    /// The device, with the GPU of this number if any will do.
    #[must_use]
    pub fn with(self, number: u32) -> Device {
        match self.device {
            Device::Gpu(_) if self.any_gpu => Device::Gpu(number),
            Device::Hybrid(_) if self.any_gpu => Device::Hybrid(number),
            device => device,
        }
    }
}

/// Reads a count: digits, or a decimal that is an integer, such as 1e6 or 2.5e5.
///
/// # Errors
/// When it is not a whole number, or more than a `usize` holds.
pub fn count(text: &str) -> Result<usize, String> {
    match whole(text.strip_prefix('+').unwrap_or(text)) {
        None => Err("expected a whole number such as 20000 or 1e6".into()),
        Some(count) => count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| format!("at most {} can be counted", usize::MAX)),
    }
}

fn positive_count(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("at least one is needed".to_owned()),
        count => Ok(count),
    }
}

/// The integer value of a decimal, exactly, which an `f64` would not be beyond 2^53: `None` if it
/// is not one, `Some(None)` if it is too large.
fn whole(text: &str) -> Option<Option<u128>> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    let digits = before.to_owned() + after;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    let zeros = (digits.len() - significant.len()) as i64 - after.len() as i64;
    if significant.is_empty() {
        exponent.parse::<i64>().ok()?;
        return Some(Some(0));
    }
    let zeros = exponent.parse::<i64>().ok()?.saturating_add(zeros);
    let zeros = u64::try_from(zeros).ok()?;
    let power = 10u128.checked_pow(u32::try_from(zeros).unwrap_or(u32::MAX));
    let value = significant.parse::<u128>().ok();
    Some(
        value
            .zip(power)
            .and_then(|(value, power)| value.checked_mul(power)),
    )
}

fn dimensions(text: &str) -> Result<Dimensions, String> {
    match text {
        "2" => Ok(Dimensions::Two),
        "3" => Ok(Dimensions::Three),
        _ => Err("must be 2 or 3".to_owned()),
    }
}

impl Default for Args {
    /// The settings without any flag.
    fn default() -> Self {
        Self {
            scene: None,
            particles: None,
            seconds: None,
            quick: false,
            dim: None,
            device: Device::Auto.into(),
            threads: 0,
            strategy: Strategy::Flat,
            policy: Policy::Model,
            equal_subregions: Equal::Work,
            output: PathBuf::from(OUTPUT),
            frames: None,
            pieces: false,
            checkpoint: None,
            restart: None,
            trace: None,
            json: false,
        }
    }
}

impl Args {
    /// The scene asked for.
    ///
    /// # Errors
    /// If its file cannot be read or describes something that cannot be simulated.
    pub fn scene(&self) -> Result<Scene, Error> {
        let Some(path) = &self.scene else {
            return Ok(Scene::column(self.dim.unwrap_or(Dimensions::Three)));
        };
        let scene = Scene::read(path)?;
        match self.dim {
            Some(dim) if dim != scene.dimensions => {
                let (asked, has) = (dim.count(), scene.dimensions.count());
                let reason = format!("it has {has} dimensions, but --dim is {asked}");
                let path = path.clone();
                Err(ErrorKind::Scene { path, reason }.into())
            }
            _ => Ok(scene),
        }
    }

    /// The distance of particles asked for, metres.
    #[must_use]
    pub fn spacing(&self, scene: &Scene) -> f64 {
        match (self.particles, scene.spacing) {
            (None, Some(spacing)) if self.quick => QUICK * spacing,
            (None, Some(spacing)) => spacing,
            _ => scene.spacing_for(self.particle_count(scene.dimensions)),
        }
    }

    /// Fluid particles asked for where a scene has no spacing of its own.
    fn particle_count(&self, dimensions: Dimensions) -> usize {
        self.particles.unwrap_or(match (dimensions, self.quick) {
            (Dimensions::Two, false) => 3200,
            (Dimensions::Two, true) => 1800,
            (Dimensions::Three, false) => 65_000,
            (Dimensions::Three, true) => 8000,
        })
    }

    /// The file of the checkpoints.
    #[must_use]
    pub fn checkpoint_path(&self) -> PathBuf {
        self.output.join("dam_break.checkpoint")
    }

    /// Frames asked for.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.unwrap_or(if self.quick { 16 } else { 48 })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        Cli::try_parse_from(["dam_break"].iter().chain(flags)).map(|cli| cli.args)
    }

    #[test]
    fn the_default_is_a_run_in_space() {
        let args = parse(&[]).unwrap();
        assert_eq!(
            (
                args.scene().unwrap(),
                args.particle_count(Dimensions::Three),
                args.frame_count()
            ),
            (Scene::column(Dimensions::Three), 65_000, 48)
        );
    }

    #[test]
    fn no_flag_is_the_default() {
        assert_eq!(parse(&[]).unwrap(), Args::default());
    }

    #[test]
    fn quick_asks_for_less_but_explicit_numbers_win() {
        let args = parse(&["--quick", "--dim", "2", "--frames", "3"]).unwrap();
        assert_eq!(args.scene().unwrap(), Scene::column(Dimensions::Two));
        assert_eq!(args.particle_count(Dimensions::Two), 1800);
        assert_eq!(args.frame_count(), 3);
    }

    #[test]
    fn a_gpu_with_a_number_is_that_one_and_any_other_device_stays() {
        let device = |text: &str| parse(&["--device", text]).unwrap().device.with(3);
        assert_eq!(device("gpu"), Device::Gpu(3));
        assert_eq!(device("hybrid"), Device::Hybrid(3));
        assert_eq!(device("gpu:0"), Device::Gpu(0));
        assert_eq!(device("hybrid:1"), Device::Hybrid(1));
        assert_eq!((device("auto"), device("cpu")), (Device::Auto, Device::Cpu));
        assert!(parse(&["--device", "gpu:"]).is_err());
    }

    #[test]
    fn counts_may_have_an_exponent_but_must_be_whole() {
        for (text, value) in [
            ("0", 0),
            ("20000", 20_000),
            ("1e6", 1_000_000),
            ("2.5e5", 250_000),
            ("+3", 3),
            ("0e9", 0),
            ("150e-1", 15),
            ("1.50E+1", 15),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("1e18", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(count(text), Ok(value));
        }
        for text in [
            "", "1.5", "-1", "-1e3", "nan", "inf", "1e-2", "1 000", "many", "e5", "1e", "++1",
            "1e5e", "15e-2", ".",
        ] {
            let error = count(text).unwrap_err();
            assert!(
                error.starts_with("expected a whole number"),
                "{text:?}: {error}"
            );
        }
        for text in ["1e30", "1e300", "18446744073709551616", "1e99999999999"] {
            assert_eq!(
                count(text),
                Err("at most 18446744073709551615 can be counted".to_owned())
            );
        }
        let args = parse(&["--particles", "1e6", "--frames", "1e1"]).unwrap();
        assert_eq!((args.particles, args.frames), (Some(1_000_000), Some(10)));
        assert!(parse(&["--particles", "1.5"]).is_err());
    }

    #[test]
    fn a_fourth_dimension_and_checkpoints_after_no_frame_are_refused() {
        assert!(parse(&["--dim", "4"]).is_err());
        assert!(parse(&["--checkpoint", "0"]).is_err());
    }
}

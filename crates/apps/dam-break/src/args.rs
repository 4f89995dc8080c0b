//! The command-line flags of the dam break.

use std::path::PathBuf;

use nearfield::Device;

use nearfield_sph::Dimensions;

/// Directory of the output when none is named.
const OUTPUT: &str = "dam_break";

/// Simulates the collapse of a water column and compares its front with
/// experiments.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub struct Args {
    /// Fluid particles, about: the column takes the nearest whole number of
    /// particles along each edge [default: 65000 in space, 3200 in the plane]
    #[arg(long, value_name = "N")]
    pub particles: Option<usize>,

    /// Simulated time, seconds [default: until t·√(2g/a) = 5]
    #[arg(long, value_name = "T_END")]
    pub seconds: Option<f64>,

    /// A small run: fewer particles and frames
    #[arg(long)]
    pub quick: bool,

    /// Dimensions, 2 or 3
    #[arg(long, value_name = "2|3", default_value = "3", value_parser = dimensions)]
    pub dim: Dimensions,

    /// Where the neighbour engine runs: auto, cpu, gpu, gpu:N, hybrid, hybrid:N, emulated or
    /// emulated:KEY=VALUE,…
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: Device,

    /// Threads to use, 0 for all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,

    /// Directory for frames, pictures and tables; made when missing
    #[arg(long, value_name = "DIR", default_value = OUTPUT)]
    pub output: PathBuf,

    /// Frames to write, the first and the last moment among them; 1 writes the
    /// first alone
    /// [default: 48, with --quick 16]
    #[arg(long, value_name = "N")]
    pub frames: Option<usize>,

    /// Record where the time goes into a file, for nearfield trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print the summary as one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
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
            particles: None,
            seconds: None,
            quick: false,
            dim: Dimensions::Three,
            device: Device::Auto,
            threads: 0,
            output: PathBuf::from(OUTPUT),
            frames: None,
            trace: None,
            json: false,
        }
    }
}

impl Args {
    /// Fluid particles asked for.
    #[must_use]
    pub fn particle_count(&self) -> usize {
        self.particles.unwrap_or(match (self.dim, self.quick) {
            (Dimensions::Two, false) => 3200,
            (Dimensions::Two, true) => 1800,
            (Dimensions::Three, false) => 65_000,
            (Dimensions::Three, true) => 8000,
        })
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
            (args.dim, args.particle_count(), args.frame_count()),
            (Dimensions::Three, 65_000, 48)
        );
    }

    #[test]
    fn no_flag_is_the_default() {
        assert_eq!(parse(&[]).unwrap(), Args::default());
    }

    #[test]
    fn quick_asks_for_less_but_explicit_numbers_win() {
        let args = parse(&["--quick", "--dim", "2", "--frames", "3"]).unwrap();
        assert_eq!((args.particle_count(), args.frame_count()), (1800, 3));
    }

    #[test]
    fn a_fourth_dimension_is_refused() {
        assert!(parse(&["--dim", "4"]).is_err());
    }
}

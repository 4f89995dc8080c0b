//! `nearfield lj`: energy, virial and forces of Lennard-Jones atoms with cut-off charges, and short runs.

mod forces;
mod input;
mod run;

use crate::{
    domain::DomainOptions,
    failure::Failure,
    neighbors::milliseconds,
    options::{EngineOptions, Precision, positive_count},
    output,
    precision::{self, Length},
};
use indicatif::HumanCount;
use nearfield::{Mixing, Screening, Truncation};
use nearfield_files::Plan;
use nearfield_md::{Checkpoint, Options, Simulation, System};
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

/// Flags of `nearfield lj`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Atoms: .txt (NIST: the box, the count, then index x y z), .xyz, .extxyz, .npy, .csv, .vtk, .vtp,
    /// .vtu or .ply
    #[arg(required_unless_present = "restart")]
    file: Option<PathBuf>,
    /// Cut-off, in the unit of the coordinates; atoms exactly at it count
    #[arg(long)]
    cutoff: f64,
    /// What is done about the jump at the cut-off
    #[arg(long, value_enum, default_value_t = Shift::None)]
    shift: Shift,
    /// Depth of the well, for atoms of one kind
    #[arg(long, default_value_t = 1.0, conflicts_with = "coefficients")]
    epsilon: f64,
    /// Where the energy is 0, for atoms of one kind
    #[arg(long, default_value_t = 1.0, conflicts_with = "coefficients")]
    sigma: f64,
    /// Coefficients of several kinds: lines NAME EPSILON SIGMA [CHARGE [MASS]], or NAME NAME EPSILON
    /// SIGMA for two kinds that are not to be mixed; .xyz files name the kind of every atom
    #[arg(long, value_name = "FILE")]
    coefficients: Option<PathBuf>,
    /// How coefficients of unlike atoms follow from those of like ones
    #[arg(long, value_enum, default_value_t = Rule::LorentzBerthelot)]
    mixing: Rule,
    /// Let charges act within the cut-off: those of the file's column charge, charges or q, or else of
    /// the coefficients
    #[arg(long)]
    charges: bool,
    /// What is done about the jump of the charges' energy: none, energy, force, or rf:EPSILON for a
    /// medium of that permittivity beyond the cut-off
    #[arg(long, value_name = "SHIFT", default_value = "none", value_parser = screening)]
    coulomb: Screening,
    /// Energy of two unit charges at distance 1
    #[arg(long, value_name = "K", default_value_t = 1.0)]
    coulomb_constant: f64,
    /// What positions are rounded to and pairs are summed in; f64 sums on the CPU [default: f64 where
    /// f32 would move an atom by more than a thousandth of the cut-off, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    #[command(flatten)]
    domain: DomainOptions,
    #[command(flatten)]
    engine: EngineOptions,
    #[command(flatten)]
    run: run::Args,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Shift {
    None,
    Energy,
    Force,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rule {
    LorentzBerthelot,
    Geometric,
}

impl From<Shift> for Truncation {
    fn from(shift: Shift) -> Self {
        match shift {
            Shift::None => Self::Plain,
            Shift::Energy => Self::EnergyShift,
            Shift::Force => Self::ForceShift,
        }
    }
}

impl From<Rule> for Mixing {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::LorentzBerthelot => Self::LorentzBerthelot,
            Rule::Geometric => Self::Geometric,
        }
    }
}

fn screening(text: &str) -> Result<Screening, String> {
    match text {
        "none" => Ok(Screening::Plain),
        "energy" => Ok(Screening::EnergyShift),
        "force" => Ok(Screening::ForceShift),
        _ => {
            let number = text
                .strip_prefix("rf:")
                .and_then(|number| number.parse().ok());
            match number {
                Some(permittivity) if permittivity >= 1.0 => {
                    Ok(Screening::ReactionField(permittivity))
                }
                _ => Err(
                    "it is none of none, energy, force and rf:EPSILON, EPSILON from 1 to inf"
                        .into(),
                ),
            }
        }
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    atoms: usize,
    cutoff: f64,
    shift: Shift,
    precision: Precision,
    pairs: u64,
    pair_energy: f64,
    pair_virial: f64,
    long_range_correction: f64,
    long_range_virial: f64,
    device: String,
    #[serde(flatten)]
    run: Option<run::Summary>,
    milliseconds: f64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let coefficients = input::coefficients(args)?;
    let (precision, mut run) = match &args.run.restart {
        Some(path) => {
            let checkpoint = Checkpoint::read(path)?;
            let precision = args.precision_for(checkpoint.system());
            let (field, options) = (input::field(args, &coefficients)?, args.options(precision));
            (precision, Simulation::resume(checkpoint, field, options)?)
        }
        None => {
            let (system, field) = input::read(args, &coefficients)?;
            let precision = args.precision_for(&system);
            let options = args.options(precision);
            (precision, Simulation::new(system, field, options)?)
        }
    };
    let begin = Instant::now();
    let depth = (coefficients.types.iter()).fold(0.0, |most: f64, of| most.max(of.epsilon));
    let done = args.run.run(&mut run, coefficients.names, depth)?;
    let seen = run.look()?;
    let beyond = run.long_range()?;
    let summary = Summary {
        atoms: run.atoms(),
        cutoff: args.cutoff,
        shift: args.shift,
        precision,
        pairs: run.pairs()?,
        pair_energy: seen.potential,
        pair_virial: seen.virial,
        long_range_correction: beyond.energy,
        long_range_virial: beyond.virial,
        device: run.device(),
        run: done,
        milliseconds: milliseconds(begin),
    };
    if args.json {
        output::print_json(&summary)
    } else {
        output::print_lines(summary.lines())
    }
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        for path in self.file.iter().chain(&self.coefficients) {
            plan.read(path);
        }
        self.run.files(plan);
    }

    /// The precision for these atoms, as they are in the box.
    fn precision_for(&self, system: &System) -> Precision {
        let cell = system.cell();
        let inside: Vec<_> = system.positions().iter().map(|&at| cell.wrap(at)).collect();
        let cutoff = Length {
            name: "cut-off",
            value: self.cutoff,
        };
        precision::choose(self.precision, Some(&inside), cutoff)
    }

    fn options(&self, precision: Precision) -> Options {
        let EngineOptions {
            device,
            threads,
            strategy,
            policy,
            deterministic,
        } = self.engine;
        Options {
            device,
            threads,
            strategy,
            policy,
            deterministic,
            skin: self.run.skin(self.cutoff, device),
            precision: match precision {
                Precision::F32 => nearfield::Precision::Single,
                Precision::F64 => nearfield::Precision::Double,
            },
        }
    }
}

impl Summary {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("atoms       {}", HumanCount(self.atoms as u64)),
            format!(
                "pairs       {} within {}",
                HumanCount(self.pairs),
                self.cutoff
            ),
            format!(
                "energy      {:.6e}, virial {:.6e}",
                self.pair_energy, self.pair_virial
            ),
            format!(
                "long range  {:.6e}, virial {:.6e} (not included)",
                self.long_range_correction, self.long_range_virial
            ),
        ];
        lines.extend(self.run.iter().flat_map(run::Summary::lines));
        lines.push(format!(
            "time        {:.1} ms in {} on {}",
            self.milliseconds,
            self.precision.name(),
            self.device
        ));
        lines
    }
}

/// Reads a count of steps.
fn steps(text: &str) -> Result<u64, String> {
    positive_count(text).map(|count| count as u64)
}

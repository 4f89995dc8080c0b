//! Flags of `nearfield lj`, and the settings made from them.

use super::run;
use crate::{
    domain::DomainOptions,
    failure::Failure,
    files::sum_of,
    input::FrameOption,
    options::{EngineOptions, Precision, name},
    precision::{self, Length},
};
use nearfield::kernels::{Mixing, Screening, Truncation};
use nearfield_files::{Plan, Run, checksum};
use nearfield_grid::memory::{Shortage, collected};
use nearfield_md::{FieldFile, Options, Simulation, System};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `nearfield lj`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Atoms: .txt (NIST: the box, the count, then index x y z), .xyz, .extxyz, .npy, .csv, .vtk,
    /// .vtp, .vtu or .ply
    #[arg(required_unless_present = "restart")]
    pub(super) file: Option<PathBuf>,
    /// Cut-off, in the unit of the coordinates; atoms exactly at it count
    #[arg(long)]
    pub(super) cutoff: f64,
    /// Treatment of the jump at the cut-off
    #[arg(long, value_enum, default_value_t = Shift::None)]
    pub(super) shift: Shift,
    /// Depth of the well, for atoms of one kind, or with --sigma for atoms of all kinds
    /// [default: 1]
    #[arg(long, conflicts_with = "coefficients")]
    pub(super) epsilon: Option<f64>,
    /// Where the energy is 0, for atoms of one kind, or with --epsilon for atoms of all kinds
    /// [default: 1]
    #[arg(long, conflicts_with = "coefficients")]
    pub(super) sigma: Option<f64>,
    /// Coefficients of several kinds: lines NAME EPSILON SIGMA [CHARGE [MASS]], or NAME NAME
    /// EPSILON SIGMA for two kinds that are not to be mixed; .xyz files name the kind of every atom
    #[arg(long, value_name = "FILE")]
    pub(super) coefficients: Option<PathBuf>,
    /// Rule by which coefficients of unlike atoms are mixed
    #[arg(long, value_enum, default_value_t = Rule::LorentzBerthelot)]
    pub(super) mixing: Rule,
    /// Add the Coulomb force of charges within the cut-off. Charges are the file's column charge,
    /// charges, q or initial_charges, else those of the coefficients
    #[arg(long)]
    pub(super) charges: bool,
    /// Treatment of the jump of the charges' energy: none, energy, force, or rf:EPSILON for a
    /// medium of that permittivity beyond the cut-off
    #[arg(long, value_name = "SHIFT", default_value = "none", value_parser = screening)]
    pub(super) coulomb: Screening,
    /// Energy of two unit charges at distance 1
    #[arg(long, value_name = "K", default_value_t = 1.0)]
    pub(super) coulomb_constant: f64,
    /// Precision of positions and of the sums over pairs; f64 sums on the CPU [default: f64
    /// where f32 would move an atom by more than a thousandth of the cut-off, else f32]
    #[arg(long, value_enum)]
    pub(super) precision: Option<Precision>,
    #[command(flatten)]
    pub(super) frame: FrameOption,
    #[command(flatten)]
    pub(super) domain: DomainOptions,
    #[command(flatten)]
    pub(super) engine: EngineOptions,
    #[command(flatten)]
    pub(super) run: run::Args,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shift {
    None,
    Energy,
    Force,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Rule {
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
                _ => {
                    Err("expected none, energy, force or rf:EPSILON, EPSILON from 1 to inf".into())
                }
            }
        }
    }
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        for path in self.file.iter().chain(&self.coefficients) {
            plan.read(path);
        }
        self.run.files(plan);
    }

    /// The precision for these atoms, as they are in the box.
    ///
    /// # Errors
    /// When memory is short.
    pub(super) fn precision_for(&self, system: &System) -> Result<Precision, Shortage> {
        let cell = system.cell();
        let inside = system.positions().iter().map(|&at| cell.wrap(at));
        let inside = collected(inside, "positions of atoms in the box")?;
        let cutoff = Length {
            name: "cut-off",
            value: self.cutoff,
        };
        Ok(precision::choose(self.precision, Some(&inside), cutoff))
    }

    /// The settings that identify the run; a checkpoint adds its input.
    pub(super) fn describe(
        &self,
        precision: Precision,
        coefficients: &FieldFile,
        simulation: &mut Simulation,
        before: Option<&Run>,
    ) -> Result<Run, Failure> {
        let known = checksum(format!("{coefficients:?}").as_bytes());
        let mut run = Run::new("lj")
            .set("cutoff", self.cutoff)
            .set("shift", name(self.shift))
            .set("precision", name(precision))
            .set("coefficients", format_args!("{known:016x}"))
            .set("mixing", name(self.mixing));
        if self.charges {
            run = run
                .set("coulomb", format_args!("{:?}", self.coulomb))
                .set("coulomb-constant", self.coulomb_constant);
        }
        let skin = self.run.skin(self.cutoff, self.engine.device);
        run = self.run.settings(run, skin);
        if let Some(before) = before {
            return Ok(run.after(before));
        }
        let system = simulation.system()?;
        let vectors = system.positions().iter().chain(system.velocities());
        Ok(run.set("atoms", sum_of(vectors.flatten().copied())?))
    }

    pub(super) fn options(&self, precision: Precision) -> Options {
        let EngineOptions {
            device,
            threads,
            strategy,
            policy,
            equal_subregions,
            deterministic,
        } = self.engine;
        Options {
            device,
            threads,
            strategy,
            policy,
            equal_subregions,
            deterministic,
            skin: self.run.skin(self.cutoff, device),
            precision: match precision {
                Precision::F32 => nearfield::Precision::Single,
                Precision::F64 => nearfield::Precision::Double,
            },
        }
    }
}

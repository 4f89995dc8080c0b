//! `nearfield lj`: energy, virial and forces of Lennard-Jones atoms with cut-off charges, and short
//! runs.

mod args;
mod columns;
mod forces;
mod input;
mod picture;
mod run;

pub(crate) use args::Args;

use crate::{
    failure::Failure,
    options::{Precision, name},
    output::{self, milliseconds},
};
use args::Shift;
use indicatif::HumanCount;
use nearfield_files::Run;
use nearfield_md::{Checkpoint, Simulation};
use run::Runs;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

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
    #[serde(skip)]
    written: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.run.check_output()?;
    let coefficients = input::coefficients(args)?;
    let mut before = None;
    let (precision, mut run) = match &args.run.restart {
        Some(path) => {
            let checkpoint = Checkpoint::read(path)?;
            before = Some(run_before(&checkpoint, path)?);
            let precision = args.precision_for(checkpoint.system())?;
            let (field, options) = (input::field(args, &coefficients)?, args.options(precision));
            (precision, Simulation::resume(checkpoint, field, options)?)
        }
        None => {
            let (system, field) = input::read(args, &coefficients)?;
            let precision = args.precision_for(&system)?;
            let options = args.options(precision);
            (precision, Simulation::new(system, field, options)?)
        }
    };
    let begin = Instant::now();
    let depth = (coefficients.types.iter()).fold(0.0, |most: f64, of| most.max(of.epsilon));
    let runs = Runs {
        here: args.describe(precision, &coefficients, &mut run, before.as_ref())?,
        before,
    };
    let done = args.run.run(&mut run, coefficients.names, depth, runs)?;
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
        written: args.run.output.clone(),
    };
    output::print(args.json, &summary, || summary.lines())
}

/// The run that wrote a checkpoint.
fn run_before(checkpoint: &Checkpoint, path: &Path) -> Result<Run, Failure> {
    let text = str::from_utf8(checkpoint.notes()).map_err(|error| error.to_string());
    let run = text.and_then(Run::parse);
    run.map_err(|reason| {
        let path = path.display();
        Failure::Wrong(format!(
            "checkpoint {path}: its notes were not written by nearfield lj: {reason}"
        ))
    })
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
            name(self.precision),
            self.device
        ));
        lines.extend(self.written.iter().map(|path| output::wrote(path)));
        lines
    }
}

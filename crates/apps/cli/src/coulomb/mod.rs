//! `nearfield coulomb`: the electric potential of atoms at the points of a grid.

mod atoms;
mod cutoff;
mod picture;

use crate::{
    failure::Failure,
    files::{self, extension},
    input::FrameOption,
    options::{Precision, Radius, RadiusText},
    output::{self, milliseconds},
    precision::{self, Length},
    progress::progress_bar,
};
use atoms::Atoms;
use cutoff::CutoffEngine;
use nearfield::{
    Device, Engine,
    all_pairs::{AllPairs, Arithmetic, Real, SampleGrid, Sources},
};
use nearfield_files::Plan;
use nearfield_grid::memory::{collected, filled};
use nearfield_io::{PointData, Values, write_array, write_vti};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

/// Minimum number of pairs summed between two updates of the progress bar.
const MIN_PAIRS_PER_UPDATE: usize = 1 << 30;

/// Flags of `nearfield coulomb`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Atoms: a table (.csv, .txt, ...) with x, y, z and charge, or a particle file with charges
    atoms: PathBuf,
    /// Points of the grid along x, y and z
    #[arg(long, value_name = "NX,NY,NZ", value_parser = triple::<usize>)]
    grid: [usize; 3],
    /// Distance between grid points
    #[arg(long, value_name = "H")]
    spacing: f64,
    /// The first grid point [default: the grid is centred on the atoms]
    #[arg(long, value_name = "X,Y,Z", value_parser = triple::<f64>, allow_hyphen_values = true)]
    origin: Option<[f64; 3]>,
    /// Only atoms within this distance of a grid point count for it
    #[arg(long, value_name = "R")]
    cutoff: Option<RadiusText>,
    /// Name of the column or quantity of charges [default: the first of charge, charges, q and
    /// initial_charges]
    #[arg(long, value_name = "NAME")]
    charges: Option<String>,
    #[command(flatten)]
    frame: FrameOption,
    /// Softening length; 0 for none: an atom at exactly a grid point then adds nothing to it
    #[arg(long, value_name = "E", default_value_t = 0.0)]
    softening: f64,
    /// The electric field as well
    #[arg(long)]
    field: bool,
    /// Correctly rounded roots: the same bits on every device
    #[arg(long)]
    exact: bool,
    /// Precision of positions and potentials [default: f64 where f32 would move an
    /// atom by more than a thousandth of the grid's spacing, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Where to run: auto, cpu, gpu[:N] or hybrid[:N]
    #[arg(long, default_value_t = Device::Auto)]
    device: Device,
    /// Worker threads on the CPU; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Where to write the potentials: .npy (nz, ny, nx) or .vti
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Draw the potentials in the middle of z to a .png file
    #[arg(long, value_name = "PATH")]
    picture: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        plan.read(&self.atoms);
        if let Some(path) = &self.picture {
            plan.write("--picture", path);
        }
        if let Some(path) = &self.output {
            plan.write("--output", path);
            if self.field && !is_image(path) {
                plan.write("--field", field_path(path));
            }
        }
    }
}

/// Reads three values with commas between them.
fn triple<T: std::str::FromStr + Copy>(text: &str) -> Result<[T; 3], String> {
    let values = text.split(',').map(|part| part.trim().parse().ok());
    match values.collect::<Option<Vec<T>>>().as_deref() {
        Some(&[x, y, z]) => Ok([x, y, z]),
        _ => Err("expected three numbers, for example 64,64,32".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    atoms: usize,
    grid: [usize; 3],
    spacing: f64,
    origin: [f64; 3],
    cutoff: Option<Radius>,
    softening: f64,
    precision: &'static str,
    exact: bool,
    device: String,
    reason: String,
    min: f64,
    mean: f64,
    max: f64,
    evaluations_per_second: Option<f64>,
    milliseconds: Times,
    output: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Times {
    read: f64,
    sum: f64,
    write: f64,
}

/// Input of a run.
struct Run<'a> {
    args: &'a Args,
    atoms: Atoms,
    grid: SampleGrid,
    precision: Precision,
}

/// The engine that sums potentials: over all atoms, or over those within the cut-off.
enum PotentialEngine {
    All(Box<AllPairs>),
    Cutoff(Box<CutoffEngine>),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        files::check_extension(path, "potentials", &["npy", "vti"])?;
    }
    if let Some(path) = &args.picture {
        files::check_extension(path, "pictures", &["png"])?;
    }
    let begin = Instant::now();
    let atoms = atoms::read(&args.atoms, args.charges.as_deref(), args.frame)?;
    let grid = SampleGrid {
        dims: args.grid,
        spacing: args.spacing,
        origin: args
            .origin
            .unwrap_or_else(|| around(&atoms.positions, args)),
    };
    grid.check()
        .map_err(|error| Failure::Engine(error.into()))?;
    let spacing = Length {
        name: "spacing",
        value: args.spacing,
    };
    let precision = precision::choose(args.precision, Some(&atoms.positions), spacing);
    let run = Run {
        args,
        atoms,
        grid,
        precision,
    };
    let read = milliseconds(begin);
    let summary = match precision {
        Precision::F32 => run.all::<f32>(read)?,
        Precision::F64 => run.all::<f64>(read)?,
    };
    let [x, y, z] = summary.grid;
    let rate = summary
        .evaluations_per_second
        .map_or(String::new(), |rate| {
            format!(", {rate:.3e} evaluations a second")
        });
    output::print(args.json, &summary, || {
        let written = summary.output.iter().map(|path| output::wrote(path));
        let lines = [
            format!("atoms       {}", summary.atoms),
            format!(
                "grid        {x} x {y} x {z} points, {} apart, in {}",
                summary.spacing, summary.precision
            ),
            format!(
                "potential   {:.6} to {:.6}, {:.6} on average",
                summary.min, summary.max, summary.mean
            ),
            format!(
                "time        {:.1} ms on {} ({}){rate}",
                summary.milliseconds.sum,
                summary.device,
                output::brief(&summary.reason)
            ),
        ];
        lines.into_iter().chain(written)
    })
}

/// The origin of a grid centred on the bounding box of the atoms.
fn around(atoms: &[[f64; 3]], args: &Args) -> [f64; 3] {
    std::array::from_fn(|axis| {
        let ends = atoms.iter().fold(None, |ends: Option<(f64, f64)>, atom| {
            let (low, high) = ends.unwrap_or((atom[axis], atom[axis]));
            Some((low.min(atom[axis]), high.max(atom[axis])))
        });
        let middle = ends.map_or(0.0, |(low, high)| 0.5 * (low + high));
        middle - 0.5 * args.spacing * args.grid[axis].saturating_sub(1) as f64
    })
}

impl Run<'_> {
    fn cutoff_radius(&self) -> Option<Radius> {
        self.args.cutoff.map(|radius| radius.to(self.precision))
    }

    fn all<T: Real>(&self, read: f64) -> Result<Summary, Failure> {
        let args = self.args;
        let positions = self.atoms.positions.iter().map(|x| x.map(T::of));
        let positions = collected(positions, "positions of atoms")?;
        let charges = self.atoms.charges.iter().map(|&charge| T::of(charge));
        let charges = collected(charges, "charges of atoms")?;
        let mut engine = self.engine()?;
        let mut potentials = filled(self.grid.len(), T::default(), "potentials on the grid")?;
        let points = if args.field { self.grid.len() } else { 0 };
        let mut field = filled(points, [T::default(); 3], "the field on the grid")?;
        let begin = Instant::now();
        let atoms = Sources {
            points: &positions,
            weights: &charges,
        };
        self.sum(&mut engine, atoms, &mut potentials, &mut field)?;
        let sum = milliseconds(begin);
        let begin = Instant::now();
        let mut written = self.write(&potentials, &field)?;
        if let Some(path) = &args.picture {
            picture::draw(path, &self.grid, &potentials)?;
            written.push(path.clone());
        }
        let (device, reason) = match &engine {
            PotentialEngine::Cutoff(engine) => engine.device(),
            PotentialEngine::All(sums) => (sums.report().device.to_string(), sums.report().reason),
        };
        let value = |potential: &T| potential.double();
        let evaluations = self.grid.len() as f64 * charges.len() as f64;
        let rate = evaluations / (sum * 1e-3).max(1e-9);
        Ok(Summary {
            atoms: charges.len(),
            grid: self.grid.dims,
            spacing: self.grid.spacing,
            origin: self.grid.origin,
            cutoff: self.cutoff_radius(),
            softening: args.softening,
            precision: T::NAME,
            // Sums within a cut-off are always exact.
            exact: args.exact || args.cutoff.is_some(),
            device,
            reason,
            min: potentials.iter().map(value).fold(f64::INFINITY, f64::min),
            mean: potentials.iter().map(value).sum::<f64>() / self.grid.len() as f64,
            max: (potentials.iter().map(value)).fold(f64::NEG_INFINITY, f64::max),
            evaluations_per_second: args.cutoff.is_none().then_some(rate),
            milliseconds: Times {
                read,
                sum,
                write: milliseconds(begin),
            },
            output: written,
        })
    }

    /// Sums over the grid, a few rows at a time.
    fn sum<T: Real>(
        &self,
        engine: &mut PotentialEngine,
        atoms: Sources<'_, T>,
        potentials: &mut [T],
        field: &mut [[T; 3]],
    ) -> Result<(), Failure> {
        let (row, rows) = (self.grid.dims[0], self.grid.rows());
        let bar = progress_bar(rows as u64);
        let softening = T::of(self.args.softening);
        let step = rows
            .div_ceil(100)
            .max(MIN_PAIRS_PER_UPDATE / (row * atoms.weights.len().max(1)))
            .min(rows);
        for first in (0..rows).step_by(step) {
            let part = first..(first + step).min(rows);
            let points = part.start * row..part.end * row;
            let to_field = if field.is_empty() {
                &mut []
            } else {
                &mut field[points.clone()]
            };
            let to = &mut potentials[points];
            match engine {
                PotentialEngine::Cutoff(engine) => {
                    engine.rows(&self.grid, part.clone(), to, to_field)?;
                }
                PotentialEngine::All(sums) => {
                    sums.coulomb_rows(&self.grid, part.clone(), atoms, softening, to)?;
                    if !to_field.is_empty() {
                        let rows = part.clone();
                        sums.coulomb_field_rows(&self.grid, rows, atoms, softening, to_field)?;
                    }
                }
            }
            bar.set_position(part.end as u64);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn engine(&self) -> Result<PotentialEngine, Failure> {
        let args = self.args;
        if let Some(radius) = self.cutoff_radius() {
            let builder = radius.builder().device(args.device).threads(args.threads);
            let engine = CutoffEngine::new(&self.atoms, radius, builder, args.softening as f32)?;
            return Ok(PotentialEngine::Cutoff(Box::new(engine)));
        }
        let arithmetic = if args.exact {
            Arithmetic::Exact
        } else {
            Arithmetic::Fast
        };
        let settings = Engine::all_pairs()
            .device(args.device)
            .threads(args.threads);
        Ok(PotentialEngine::All(Box::new(
            settings.arithmetic(arithmetic).build()?,
        )))
    }

    /// Writes the potentials, and the field if there is one; returns the files.
    fn write<T: Real>(&self, potentials: &[T], field: &[[T; 3]]) -> Result<Vec<PathBuf>, Failure> {
        let Some(path) = &self.args.output else {
            return Ok(Vec::new());
        };
        let [x, y, z] = self.grid.dims;
        let potentials = values(potentials)?;
        let field = if field.is_empty() {
            None
        } else {
            Some(values(field.as_flattened())?)
        };
        if is_image(path) {
            let mut data = vec![PointData::scalars("potential", potentials)];
            data.extend(field.and_then(|field| PointData::tuples("field", 3, field)));
            write_vti(
                path,
                self.grid.dims,
                self.grid.origin,
                self.grid.spacing,
                &data,
            )?;
            return Ok(vec![path.clone()]);
        }
        write_array(path, &[z, y, x], &potentials)?;
        let mut written = vec![path.clone()];
        if let Some(field) = field {
            let field_path = field_path(path);
            write_array(&field_path, &[z, y, x, 3], &field)?;
            written.push(field_path);
        }
        Ok(written)
    }
}

/// Whether potentials are written as an image, which holds the field too.
fn is_image(path: &Path) -> bool {
    extension(path) == "vti"
}

/// File of the field, in the folder of the potentials.
fn field_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}_field.npy"))
}

/// The numbers in their own precision.
fn values<T: Real>(numbers: &[T]) -> Result<Values<'static>, nearfield::Error> {
    const WHAT: &str = "values to be written";
    let doubles = numbers.iter().map(|number| number.double());
    if size_of::<T>() == size_of::<f64>() {
        return Ok(collected(doubles, WHAT)?.into());
    }
    Ok(collected(doubles.map(|number| number as f32), WHAT)?.into())
}

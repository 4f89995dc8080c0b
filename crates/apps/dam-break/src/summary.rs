//! The results of a run in numbers.

use indicatif::HumanCount;
use std::fmt;
use std::path::PathBuf;

use nearfield_sph::Spread;
use serde::Serialize;

use crate::reference::{BAND, Comparison};

/// The outcome of a run; serialises to the JSON of `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Title of the scene.
    pub scene: String,
    /// Fluid particles.
    pub particles: usize,
    /// Wall particles.
    pub wall_particles: usize,
    /// Dimensions, 2 or 3.
    pub dim: u32,
    /// Distance of particles at rest, metres.
    pub spacing_m: f64,
    /// Largest distance of a face of the tank or a box from its place in the scene, metres: faces
    /// lie on the lattice of the particles.
    pub rounding_m: f64,
    /// Time steps.
    pub steps: u64,
    /// Time steps per second of the solver.
    pub steps_per_second: f64,
    /// Simulated time, seconds.
    pub simulated_seconds: f64,
    /// The same as T = t·√(2g/a).
    #[serde(rename = "T")]
    pub scaled_time: f64,
    /// Time the whole run took, seconds.
    pub wall_seconds: f64,
    /// Time the steps took of that, seconds; the rest is the start, notes on
    /// front and energy, and output.
    pub solver_seconds: f64,
    /// Time the solver's thread spent with frames instead, seconds: copying the particles, waiting
    /// where too many frames were unfinished and, in the end, for the last ones. Frames are written
    /// and drawn while the solver runs.
    pub output_seconds: f64,
    /// Where the neighbour engine ran.
    pub device: String,
    /// Why there.
    pub device_reason: String,
    /// How the GPU maps cells to threads; `null` without one.
    pub strategy: Option<String>,
    /// The policy that divided the work between two backends; `null` where one did it all.
    pub policy: Option<String>,
    /// Threads of the neighbour engine.
    pub threads: usize,
    /// Mass of the fluid, kg (in the plane: per metre of depth); exact, as
    /// particles neither change nor get lost.
    pub mass_kg: f64,
    /// Where the energy went.
    pub energy: EnergySummary,
    /// Momentum that is not accounted for, as a share of the impulse of
    /// gravity.
    pub momentum_residual: f64,
    /// How the front compares with experiments; `null` for the scene of a file.
    pub front: Option<FrontSummary>,
    /// The readings of probes; `null` without probes.
    pub probes: Option<ProbesSummary>,
    /// Frames written.
    pub frames: usize,
    /// The directory with all files of the run.
    pub output: PathBuf,
    /// The particles by rank; omitted without ranks.
    #[serde(flatten)]
    pub spread: Option<SpreadSummary>,
}

/// How a run was spread over ranks.
#[derive(Clone, Debug, Serialize)]
pub struct SpreadSummary {
    /// Number of ranks.
    pub ranks: usize,
    /// Fluid particles of each rank at the end.
    pub particles_per_rank: Vec<u64>,
    /// Particles of others that ranks see at the end, fluid and walls, of all ranks together.
    pub halo_points: u64,
    /// Where the engine of each rank ran at the end.
    pub device_per_rank: Vec<String>,
}

impl From<Spread> for SpreadSummary {
    fn from(spread: Spread) -> Self {
        Self {
            ranks: spread.particles_per_rank.len(),
            particles_per_rank: spread.particles_per_rank,
            halo_points: spread.halo_points,
            device_per_rank: spread.devices,
        }
    }
}

/// Energies, joules (in the plane: per metre of depth).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EnergySummary {
    /// Mechanical energy at the start.
    pub initial_j: f64,
    /// Mechanical energy at the end.
    pub final_j: f64,
    /// Kinetic energy at the end.
    pub kinetic_j: f64,
    /// Potential energy at the end.
    pub potential_j: f64,
    /// Energy of compression at the end.
    pub internal_j: f64,
    /// Lost to viscosity.
    pub viscous_loss_j: f64,
    /// Lost to friction at the floor.
    pub friction_loss_j: f64,
    /// Lost to density diffusion.
    pub diffusion_loss_j: f64,
    /// Given by the pressure of the walls.
    pub wall_work_j: f64,
    /// Energy that is not accounted for, as a share of the initial energy.
    pub drift: f64,
}

/// The readings of probes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProbesSummary {
    /// Samples in `probes.csv`.
    pub samples: usize,
    /// Time between them, seconds, or a step where that is longer.
    pub interval_s: f64,
    /// Time spent with reading them.
    pub seconds: f64,
}

/// The front against experiments.
#[derive(Clone, Debug, Serialize)]
pub struct FrontSummary {
    /// Z at the end.
    #[serde(rename = "final_Z")]
    pub final_z: Option<f64>,
    /// The deviation that passes, as a share of Z at equal T.
    pub band: f64,
    /// Whether the front is inside the band of every experiment it was
    /// compared with; `null` when the run is too short to compare.
    pub inside: Option<bool>,
    /// The experiments.
    pub series: Vec<Comparison>,
}

impl FrontSummary {
    /// Each experiment with its comparison.
    fn rows(&self) -> impl Iterator<Item = (&Self, &Comparison)> {
        self.series.iter().map(move |one| (self, one))
    }

    /// The summary of a front that ends at `final_z`.
    pub(crate) fn new(final_z: Option<f64>, series: Vec<Comparison>) -> Self {
        let inside = (!series.is_empty()).then(|| series.iter().all(|one| one.inside));
        Self {
            final_z,
            band: BAND,
            inside,
            series,
        }
    }
}

/// Each device once, with the number of ranks that have it.
fn counted(devices: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for device in devices {
        match counts.iter_mut().find(|(known, _)| known == device) {
            Some((_, count)) => *count += 1,
            None => counts.push((device, 1)),
        }
    }
    let texts = counts.into_iter().map(|(device, count)| match count {
        1 => device.to_owned(),
        _ => format!("{device} ({count} ranks)"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} particles and {} wall particles in {}D, {} steps to t = {:.3} s (T = {:.2})",
            self.scene,
            HumanCount(self.particles as u64),
            HumanCount(self.wall_particles as u64),
            self.dim,
            HumanCount(self.steps),
            self.simulated_seconds,
            self.scaled_time,
        )?;
        write!(
            f,
            "{:.1} s, {:.1} s of it solving: {:.1} steps/s on {} with {} threads",
            self.wall_seconds,
            self.solver_seconds,
            self.steps_per_second,
            self.device,
            self.threads,
        )?;
        let settings = [("strategy", &self.strategy), ("policy", &self.policy)];
        for (name, value) in settings {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        writeln!(f)?;
        writeln!(
            f,
            "energy drift {:+.1e}, momentum residual {:.1e}",
            self.energy.drift, self.momentum_residual,
        )?;
        if self.front.is_none() {
            writeln!(
                f,
                "spacing {:.4} m; faces lie within {:.4} m of their places",
                self.spacing_m, self.rounding_m,
            )?;
        }
        if let Some(probes) = &self.probes {
            writeln!(
                f,
                "{} samples of the probes in {:.1} s",
                HumanCount(probes.samples as u64),
                probes.seconds,
            )?;
        }
        if let Some(spread) = &self.spread {
            let (ranks, counts) = (spread.ranks, &spread.particles_per_rank);
            let mean = self.particles as f64 / ranks as f64;
            let most = counts.iter().max().copied().unwrap_or(0) as f64 / mean;
            writeln!(
                f,
                "{ranks} ranks on {}, the largest with {most:.2} of the mean, {} halo points",
                counted(&spread.device_per_rank),
                HumanCount(spread.halo_points)
            )?;
        }
        for (front, one) in self.front.iter().flat_map(FrontSummary::rows) {
            let verdict = if one.inside { "inside" } else { "outside" };
            writeln!(
                f,
                "front against {}: at most {:+.1} % (T = {:.2}), {verdict} ±{:.0} %",
                one.series,
                100.0 * one.max_deviation,
                one.at_t,
                100.0 * front.band,
            )?;
        }
        write!(
            f,
            "Wrote {} frames, pictures and tables to {}",
            self.frames,
            self.output.display()
        )
    }
}

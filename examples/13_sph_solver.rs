//! A solver to start from: weakly compressible SPH, water and walls, in 2D or 3D. Densities come
//! from a kernel of the library, accelerations from one of its own.
//!
//! `cargo run --release --example 13_sph_solver [-- 2|3 [DEVICE [FILE]]]` prints the front of a
//! column of water that collapses, and writes the last moment to the file, which ParaView opens.

use nearfield::{
    kernels::{SphDensity, WendlandC2},
    prelude::*,
};
use std::{env, error::Error, fs::File, io::Write};

const SPACING: f32 = 0.02;
const SUPPORT: f32 = 2.6 * SPACING;
/// Density in kg/m³, speed of sound in m/s (ten times that of the water), gravity in m/s².
const DENSITY: f32 = 1000.0;
const SOUND: f32 = 30.0;
const GRAVITY: f32 = 9.81;
const STEP: f32 = 0.25 * SUPPORT / 2.0 / SOUND;

/// Pressure and artificial viscosity (Monaghan 2005, DOI 10.1088/0034-4885/68/8/R01).
struct Acceleration {
    kernel: WendlandC2,
    mass: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Acceleration {
    type Target = ([f32; 3], f32, f32); // velocity, density, p/ρ²
    type Source = ([f32; 3], f32, f32);
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: Self::Target, source: Self::Source) -> [f32; 3] {
        let (vi, rho_i, pi) = target;
        let (vj, rho_j, pj) = source;
        // d points from the target to the source.
        let d = pair.d;
        let closing = (vj[0] - vi[0]) * d[0] + (vj[1] - vi[1]) * d[1] + (vj[2] - vi[2]) * d[2];
        let mu = 0.5 * SUPPORT * closing.min(0.0) / (pair.d2 + 0.0025 * SUPPORT * SUPPORT);
        let viscosity = -0.1 * SOUND * mu * 2.0 / (rho_i + rho_j);
        let slope = self.kernel.gradient_over_distance(pair.d2);
        d.map(|d| self.mass * (pi + pj + viscosity) * slope * d)
    }
}

/// Points of a lattice from `low` to `high`, in cells of one spacing.
fn block(low: [i32; 3], high: [i32; 3]) -> impl Iterator<Item = [i32; 3]> {
    (low[0]..high[0]).flat_map(move |x| {
        (low[1]..high[1]).flat_map(move |y| (low[2]..high[2]).map(move |z| [x, y, z]))
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let plane = env::args()
        .nth(1)
        .is_some_and(|dimensions| dimensions == "2");
    let device = env::args().nth(2).unwrap_or_else(|| "cpu".to_owned());
    // A column of water, 0.4 m wide and 0.4 m high, in a tank of 1.2 m; z is up in 3D, y in 2D.
    let (up, deep) = if plane { (1, 1) } else { (2, 8) };
    let size = |length: i32, height: i32| {
        if plane {
            [length, height, 1]
        } else {
            [length, deep, height]
        }
    };
    let wall = if plane { [3, 3, 0] } else { [3, 3, 3] };
    let inside = size(60, 40);
    let outside = [0, 1, 2].map(|axis| inside[axis] + wall[axis]);
    let is_inside = |at: &[i32; 3]| (0..3).all(|axis| (0..inside[axis]).contains(&at[axis]));
    let water = block([0; 3], size(20, 20));
    let walls = block(wall.map(|cells| -cells), outside).filter(|at| !is_inside(at) && at[up] < 40);
    let place = |at: [i32; 3]| at.map(|cell| SPACING * cell as f32);
    let mut positions: Vec<[f32; 3]> = water.map(place).collect();
    let fluid = positions.len();
    positions.extend(walls.map(place));
    println!(
        "{fluid} particles of water, {} of walls",
        positions.len() - fluid
    );

    let kernel = WendlandC2::with_support(SUPPORT);
    let kernel = if plane { kernel.in_2d() } else { kernel };
    let mass = DENSITY * SPACING.powi(if plane { 2 } else { 3 });
    let mut engine = Engine::builder(SUPPORT).device(device.parse()?).build()?;
    let set = engine.add_point_set(&positions)?;
    let masses = vec![mass; positions.len()];
    let mut velocities = vec![[0.0f32; 3]; positions.len()];
    for step in 0..=1600 {
        let sums = engine
            .traverse(&SphDensity { kernel }, set, set)
            .sources(&masses)
            .run()?;
        // A particle is not its own neighbour: it adds its own mass. Water at the surface, and
        // walls that few neighbours press on, do not pull.
        let own = mass * kernel.value(0.0);
        let densities: Vec<f32> = sums.iter().map(|sum| (sum + own).max(DENSITY)).collect();
        let pressures: Vec<f32> = (densities.iter())
            .map(|rho| SOUND * SOUND * (rho - DENSITY) / (rho * rho))
            .collect();
        let accelerations = engine
            .traverse(&Acceleration { kernel, mass }, set, set)
            .targets((&velocities, &densities, &pressures))
            .sources((&velocities, &densities, &pressures))
            .run()?;
        for i in 0..fluid {
            for axis in 0..3 {
                let gravity = if axis == up { GRAVITY } else { 0.0 };
                velocities[i][axis] += STEP * (accelerations[i][axis] - gravity);
                positions[i][axis] += STEP * velocities[i][axis];
            }
        }
        engine.update(set, &positions)?;
        if step % 400 == 0 {
            let front = positions[..fluid]
                .iter()
                .map(|at| at[0])
                .fold(0.0, f32::max);
            println!("{:.2} s: the front is at {front:.2} m", STEP * step as f32);
        }
    }
    if let Some(path) = env::args().nth(3) {
        let mut file = File::create(&path)?;
        writeln!(file, "x,y,z")?;
        for [x, y, z] in &positions[..fluid] {
            writeln!(file, "{x},{y},{z}")?;
        }
        println!("wrote {path}");
    }
    Ok(())
}

//! A dam break in two dimensions with particles of two sizes: coarse where the water stands, a
//! third as wide where it runs out. The larger support of both particles decides whether they are
//! neighbours, so every pair acts on both, and momentum is kept where the sizes meet.
//!
//! `cargo run --release -p nearfield-dam-break --example 12_adaptive_sph [-- DEVICE [PICTURE]]`: a
//! device is `cpu`, `gpu` or `auto`; the picture is a PNG file.

use glam::Vec3;
use nearfield::{kernels::WendlandC2, prelude::*};
use nearfield_plot::{Area, COOL, Drawn, FAINT, INK, WARM, save_png, text};
use plotters::prelude::*;
use std::{error::Error, path::Path};

/// Spacing of fine and of coarse particles, in metres.
const SPACINGS: [f32; 2] = [0.02, 0.06];
/// Supports of the smoothing kernels, in spacings.
const SUPPORT: f32 = 2.6;
/// Width and height of the water, of which this share stands on coarse particles, and of the tank.
const WATER: [f32; 2] = [1.2, 1.02];
const COARSE: f32 = 0.6;
const TANK: [f32; 2] = [3.0, 1.6];
/// Density in kg/m³, speed of sound in m/s, gravity in m/s².
const DENSITY: f32 = 1000.0;
const SOUND: f32 = 45.0;
const GRAVITY: f32 = 9.81;
/// Time step in seconds, and the moments that are drawn.
const STEP: f32 = 2.4e-4;
const MOMENTS: [f32; 4] = [0.0, 0.25, 0.5, 0.75];

/// The equations of weakly compressible SPH (Monaghan 2005, DOI 10.1088/0034-4885/68/8/R01) with
/// the mean of both particles' kernels (Hernquist and Katz 1989, DOI 10.1086/191344), artificial
/// viscosity, and diffusion of density (Molteni and Colagrossi 2009, DOI
/// 10.1016/j.cpc.2008.12.004).
struct Water {
    /// The kernel of support 1 in two dimensions.
    unit: WendlandC2,
    viscosity: f32,
    diffusion: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Water {
    type Target = (Vec3, f32, f32, f32); // velocity, density, pressure, support
    type Source = (Vec3, f32, f32, f32, f32); // and mass
    type Output = (Vec3, f32); // acceleration, change of density

    #[inline(always)]
    fn pair(&self, pair: Pair, target: Self::Target, source: Self::Source) -> (Vec3, f32) {
        let (vi, rho_i, pi, hi) = target;
        let (vj, rho_j, pj, hj, mass) = source;
        let (d, slope) = (
            Vec3::from(pair.d),
            0.5 * (self.slope(pair.d2, hi) + self.slope(pair.d2, hj)),
        );
        // From here on d points from the target to the source, and the slope is negative.
        let approach = (vj - vi).dot(d).min(0.0) / (pair.d2 + 2.5e-3 * hi * hj);
        let reach = 0.25 * (hi + hj);
        let rub = -self.viscosity * SOUND * reach * approach * 2.0 / (rho_i + rho_j);
        let push = pi / (rho_i * rho_i) + pj / (rho_j * rho_j) + rub;
        let spread = self.diffusion * SOUND * reach * 2.0 * (rho_i - rho_j) / rho_j;
        let change = mass * slope * ((vj - vi).dot(d) * rho_i / rho_j + spread);
        (mass * push * slope * d, change)
    }
}

impl Water {
    /// (dW/dd)/d of a kernel of a support, by that of support 1.
    #[nearfield::pair_fn]
    fn slope(&self, d2: f32, support: f32) -> f32 {
        let inverse = support.recip();
        let square = inverse * inverse;
        self.unit.gradient_over_distance(d2 * square) * square * square
    }
}

/// What is kept of every particle.
#[derive(Default)]
struct Particles {
    positions: Vec<Vec3>,
    velocities: Vec<Vec3>,
    densities: Vec<f32>,
    pressures: Vec<f32>,
    /// Of the smoothing kernels.
    supports: Vec<f32>,
    masses: Vec<f32>,
    /// The first this many are water; the others are walls.
    water: usize,
}

impl Particles {
    /// Fills a rectangle, in which water is under the pressure of the water above it.
    fn fill(&mut self, low: [f32; 2], high: [f32; 2], spacing: f32) {
        let counts = [0, 1].map(|axis| ((high[axis] - low[axis]) / spacing).round() as usize);
        for k in 0..counts[0] * counts[1] {
            let place = [k / counts[1], k % counts[1]];
            let at = [0, 1].map(|axis| low[axis] + (place[axis] as f32 + 0.5) * spacing);
            let depth = (WATER[1] - at[1]).clamp(0.0, WATER[1]);
            let is_below = at[0] < WATER[0];
            let head = if is_below { GRAVITY * depth } else { 0.0 };
            self.positions.push(Vec3::new(at[0], at[1], 0.0));
            self.velocities.push(Vec3::ZERO);
            self.densities
                .push(DENSITY * (1.0 + 7.0 * head / (SOUND * SOUND)).powf(1.0 / 7.0));
            self.pressures.push(0.0);
            self.supports.push(SUPPORT * spacing);
            self.masses.push(DENSITY * spacing * spacing);
        }
    }

    /// Water in a tank whose walls are as thick as the largest support reaches.
    fn scene() -> Self {
        let [fine, coarse] = SPACINGS;
        let mut all = Self::default();
        all.fill([0.0, 0.0], [COARSE, WATER[1]], coarse);
        all.fill([COARSE, 0.0], WATER, fine);
        all.water = all.positions.len();
        let [width, height] = TANK;
        let (far, thick) = (3.0 * coarse, 3.0 * fine);
        all.fill([-far, -far], [COARSE, 0.0], coarse);
        all.fill([-far, 0.0], [0.0, height], coarse);
        all.fill([COARSE, -far], [width + thick, 0.0], fine);
        all.fill([width, 0.0], [width + thick, height], fine);
        all
    }

    /// Moves everything by a time step. Walls stay, and their density follows the water's.
    fn advance(&mut self, rates: &[(Vec3, f32)]) {
        for (i, &(acceleration, change)) in rates.iter().enumerate() {
            let density = self.densities[i] + STEP * change;
            // Water at the surface is not pulled together.
            self.densities[i] = density.max(DENSITY);
            if i < self.water {
                self.velocities[i] += STEP * (acceleration - GRAVITY * Vec3::Y);
                self.positions[i] += STEP * self.velocities[i];
            }
        }
        for (pressure, density) in self.pressures.iter_mut().zip(&self.densities) {
            let ratio = density / DENSITY;
            *pressure = SOUND * SOUND * DENSITY / 7.0 * (ratio.powi(7) - 1.0);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().unwrap_or_else(|| "cpu".to_owned());
    let picture = arguments.next();
    let mut all = Particles::scene();
    let largest = SUPPORT * SPACINGS[1];
    let mut engine = Engine::builder(largest)
        .radii(RadiusRule::Symmetric)
        .device(device.parse()?)
        .build()?;
    let set = engine.add_point_set(&all.positions)?;
    engine.set_radii(set, &all.supports)?;
    let kernel = Water {
        unit: WendlandC2::with_support(1.0).in_2d(),
        viscosity: 0.1,
        diffusion: 0.1,
    };
    println!(
        "{} particles of water, {} of walls",
        all.water,
        all.positions.len() - all.water
    );

    let mut rates = vec![(Vec3::ZERO, 0.0); all.positions.len()];
    let mut shown: Vec<Vec<Vec3>> = Vec::new();
    for step in 0.. {
        let time = step as f32 * STEP;
        if time >= MOMENTS[shown.len()] {
            let water = &all.positions[..all.water];
            let front = water.iter().map(|at| at.x).fold(0.0, f32::max);
            println!("{time:.2} s: the front is at {front:.2} m");
            shown.push(water.to_vec());
            if shown.len() == MOMENTS.len() {
                break;
            }
        }
        engine
            .traverse(&kernel, set, set)
            .targets((
                &all.velocities,
                &all.densities,
                &all.pressures,
                &all.supports,
            ))
            .sources((
                &all.velocities,
                &all.densities,
                &all.pressures,
                &all.supports,
                &all.masses,
            ))
            .run_into(&mut rates)?;
        all.advance(&rates);
        engine.update(set, &all.positions)?;
    }
    let counts = engine.count_neighbors(set, set)?;
    let mean = counts.iter().sum::<u32>() as f32 / counts.len() as f32;
    println!("{mean:.1} neighbours of a particle by the larger support of both");
    if let Some(path) = picture {
        save_png(Path::new(&path), (1240, 760), |area| {
            draw(area, &all, &shown)
        })?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Draws the moments, each in a quarter of the area.
fn draw<'b>(area: &Area<'b>, all: &Particles, moments: &[Vec<Vec3>]) -> Drawn<'b> {
    for (panel, (water, time)) in area
        .split_evenly((2, 2))
        .iter()
        .zip(moments.iter().zip(MOMENTS))
    {
        let (width, height) = panel.dim_in_pixel();
        // Pixels of a metre, with a margin.
        let scale = (width as f32 / (TANK[0] + 0.5)).min(height as f32 / (TANK[1] + 0.45));
        let pixel = |at: Vec3| {
            let x = (at.x + 0.25) * scale;
            (x as i32, height as i32 - ((at.y + 0.2) * scale) as i32)
        };
        let dot = |at: Vec3, support: f32, color: RGBColor| {
            let radius = (0.45 * support / SUPPORT * scale) as i32;
            panel.draw(&Circle::new(pixel(at), radius, color.filled()))
        };
        for i in all.water..all.positions.len() {
            dot(all.positions[i], all.supports[i], FAINT)?;
        }
        let is_shown = |(at, _): &(&Vec3, &f32)| at.y < TANK[1];
        for (at, &support) in water.iter().zip(&all.supports).filter(is_shown) {
            let is_fine = support < SUPPORT * SPACINGS[1];
            dot(*at, support, if is_fine { COOL[0] } else { WARM[0] })?;
        }
        let label = format!("{time:.2} s");
        let place = pixel(Vec3::new(TANK[0] - 0.6, TANK[1], 0.0));
        panel.draw(&Text::new(label, place, text(18).color(&INK)))?;
    }
    Ok(())
}

//! The scene: a water column in the left end of a closed tank.
//!
//! The column is a = 1 m wide, 2a high and, in space, a deep; the tank is 4a
//! long, 3a high and as deep as the column. Its floor is rough, as floors of
//! experiments are; along the other walls the water slips.

use std::f64::consts::PI;

use glam::Vec3;
use nearfield_grid::memory::collected;

use nearfield_sph::scene::{self, Top};
use nearfield_sph::{Config, Dimensions, Domain, Error, Simulation, SimulationBuilder};

/// Width a of the column, metres.
pub const WIDTH: f64 = 1.0;

/// Height of the column, metres.
pub const HEIGHT: f64 = 2.0;

/// Length and height of the tank, metres; in space it is as deep as the column.
pub const TANK: [f64; 2] = [4.0, 3.0];

/// Kinematic viscosity of the water, m²/s, the same at every resolution: enough
/// for calm pressures, and it takes less than a tenth of the energy until the
/// water has met the far wall.
const VISCOSITY: f64 = 0.009;

/// Kinematic viscosity with which the floor holds the water, m²/s, the same at
/// every resolution.
const FLOOR_VISCOSITY: f64 = 0.03;

/// How far particles start from their lattice sites at most, in spacings.
const STIRRING: f32 = 0.05;

/// The column at one resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Plane or space.
    pub dimensions: Dimensions,
    /// Particles along the width of the column.
    pub cells: i32,
}

impl Column {
    /// The column whose number of particles is nearest to `particles`.
    #[must_use]
    pub fn with_particles(dimensions: Dimensions, particles: usize) -> Self {
        let per_square = particles as f64 / 2.0;
        let cells = match dimensions {
            Dimensions::Two => per_square.sqrt(),
            Dimensions::Three => per_square.cbrt(),
        };
        Self {
            dimensions,
            cells: (cells.round() as i32).max(4),
        }
    }

    /// Distance between particles, metres.
    #[must_use]
    pub fn spacing(&self) -> f32 {
        (WIDTH / f64::from(self.cells)) as f32
    }

    /// Physics and numerics of the run.
    #[must_use]
    pub fn config(&self) -> Config {
        let spacing = self.spacing();
        let high = self.upright(TANK[0] as f32, WIDTH as f32, TANK[1] as f32);
        let slack = Vec3::splat(0.5 * spacing);
        let water = Config::water(self.dimensions, spacing, HEIGHT as f32);
        Config {
            viscosity: (VISCOSITY / water.kinematic_viscosity(1.0)) as f32,
            wall_friction: (FLOOR_VISCOSITY / water.kinematic_viscosity(1.0)) as f32,
            domain: Domain {
                low: -slack,
                high: high + slack,
            },
            ..water
        }
    }

    /// The scene, ready to be built; the water is at rest under the pressure it
    /// has the moment the dam is gone.
    ///
    /// # Errors
    /// When there is no memory for the particles.
    pub fn scene(&self) -> Result<SimulationBuilder, Error> {
        let (dimensions, config) = (self.dimensions, self.config());
        let fluid = self.cell_box(1, 2);
        let layers = (2.0 * config.smoothing).ceil() as i32;
        let inside = self.cell_box(TANK[0] as i32, TANK[1] as i32);
        let walls = scene::tank(dimensions, inside, Top::Closed, layers, config.spacing)?;
        let up = dimensions.up();
        let part = |of_floor| {
            let walls = walls.iter().copied();
            collected(
                walls.filter(|wall| (wall.dot(up) < 0.0) == of_floor),
                "wall particles",
            )
        };
        let (floor, sides) = (part(true)?, part(false)?);
        let water = scene::block(dimensions, [0; 3], fluid, config.spacing)?;
        let weight = f64::from(config.density * config.gravity.length());
        let head = ReleasedHead::new();
        Ok(Simulation::builder(config)
            .fluid(&self.stirred(water))
            .rough_walls(&floor)
            .walls(&sides)
            .pressure(move |x| (weight * head.at(f64::from(x.x), f64::from(x.dot(up)))) as f32))
    }

    /// `length` widths by `height` widths in cells, as deep as the column.
    fn cell_box(&self, length: i32, height: i32) -> [i32; 3] {
        match self.dimensions {
            Dimensions::Two => [length * self.cells, height * self.cells, 0],
            Dimensions::Three => [length * self.cells, self.cells, height * self.cells],
        }
    }

    /// Moves each particle a little off its lattice site, by the same amounts in
    /// every run, so that rows of particles do not march in step for ever.
    fn stirred(&self, mut positions: Vec<Vec3>) -> Vec<Vec3> {
        let reach = STIRRING * self.spacing();
        let mut state = 0x9E37_79B9_u32;
        for position in &mut positions {
            let mut draw = || {
                // Marsaglia's xorshift, DOI 10.18637/jss.v008.i14.
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                reach * (state as f32 / u32::MAX as f32 * 2.0 - 1.0)
            };
            let off = Vec3::new(draw(), draw(), draw());
            *position += match self.dimensions {
                Dimensions::Two => off.with_z(0.0),
                Dimensions::Three => off,
            };
        }
        positions
    }

    fn upright(&self, length: f32, depth: f32, height: f32) -> Vec3 {
        match self.dimensions {
            Dimensions::Two => Vec3::new(length, height, 0.0),
            Dimensions::Three => Vec3::new(length, depth, height),
        }
    }
}

/// Terms of the series for the released pressure.
const TERMS: usize = 64;

/// Factor e^(−λz) below which terms no longer change a sum in double precision.
const NEGLIGIBLE: f64 = 1e-18;

/// The pressure head in the column at the moment the dam is gone.
///
/// Incompressible water solves ∇²p = 0 with no pressure at its top and at the
/// face x = a, no flow through the wall x = 0, and ∂p/∂z = −ρg on the floor. By
/// separation of variables
/// `p/(ρg) = Σ 2(−1)ᵏ/(a λₖ²) · sinh λₖ(H − z)/cosh λₖH · cos λₖx`,
/// `λₖ = (k + ½)π/a`. Hydrostatic pressure behind the vanished dam would send
/// a shock through the column instead.
///
/// The exponentials are powers and the cosines follow a recurrence, so a point
/// takes five calls of such functions instead of five per term.
struct ReleasedHead {
    /// 2(−1)ᵏ/(a λₖ²)/(1 + e^(−2λₖH)).
    factors: [f64; TERMS],
}

impl ReleasedHead {
    fn new() -> Self {
        let factor = |k: usize| {
            let rate = (k as f64 + 0.5) * PI / WIDTH;
            let sign = if k.is_multiple_of(2) { 2.0 } else { -2.0 };
            sign / (WIDTH * rate * rate) / (1.0 + (-2.0 * rate * HEIGHT).exp())
        };
        Self {
            factors: std::array::from_fn(factor),
        }
    }

    /// p/(ρg), metres, at distance `x` from the wall and `height` above the floor.
    fn at(&self, x: f64, height: f64) -> f64 {
        // sinh λ(H − z)/cosh λH without overflow: these two, over 1 + e^(−2λH).
        let (rising, falling) = (-height * PI / WIDTH, (height - 2.0 * HEIGHT) * PI / WIDTH);
        let (mut from_floor, from_floor_ratio) = ((0.5 * rising).exp(), rising.exp());
        let (mut from_top, from_top_ratio) = ((0.5 * falling).exp(), falling.exp());
        let turn = x * PI / WIDTH;
        let (mut wave, double_cosine) = ((0.5 * turn).cos(), 2.0 * turn.cos());
        let mut last_wave = wave;
        let mut sum = 0.0;
        for factor in self.factors {
            sum += factor * (from_floor - from_top) * wave;
            from_floor *= from_floor_ratio;
            from_top *= from_top_ratio;
            (wave, last_wave) = (double_cosine * wave - last_wave, wave);
            if from_floor < NEGLIGIBLE {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(x: f64, height: f64) -> f64 {
        ReleasedHead::new().at(x, height)
    }

    #[test]
    fn the_column_takes_the_nearest_whole_number_of_particles() {
        assert_eq!(Column::with_particles(Dimensions::Two, 3200).cells, 40);
        assert_eq!(Column::with_particles(Dimensions::Three, 65_000).cells, 32);
        assert_eq!(Column::with_particles(Dimensions::Three, 0).cells, 4);
    }

    #[test]
    fn the_released_pressure_vanishes_at_the_free_faces() {
        for k in 0..10 {
            let part = f64::from(k) / 10.0;
            assert!(head(WIDTH, 0.1 + part).abs() < 1e-6);
            assert!(head(part * WIDTH, HEIGHT).abs() < 1e-6);
        }
    }

    #[test]
    fn the_released_pressure_is_the_series_term_by_term() {
        for (x, height) in [
            (0.0, 0.003),
            (0.3, 0.01),
            (0.77, 0.4),
            (0.999, 1.9),
            (0.5, 0.0),
        ] {
            let terms = (0..TERMS).map(|k| {
                let rate = (k as f64 + 0.5) * PI / WIDTH;
                let sign = if k % 2 == 0 { 2.0 } else { -2.0 };
                let decay = ((-rate * height).exp() - (-rate * (2.0 * HEIGHT - height)).exp())
                    / (1.0 + (-2.0 * rate * HEIGHT).exp());
                sign / (WIDTH * rate * rate) * decay * (rate * x).cos()
            });
            let (series, head) = (terms.sum::<f64>(), head(x, height));
            assert!(
                (series - head).abs() < 1e-12,
                "{series} and {head} at {x}, {height}"
            );
        }
    }

    #[test]
    fn the_released_pressure_carries_the_water_above_the_floor() {
        let step = 1e-3;
        for x in [0.1, 0.4, 0.7] {
            let slope = (head(x, 0.05 + step) - head(x, 0.05 - step)) / (2.0 * step);
            let laplacian = (head(x + step, 0.5)
                + head(x - step, 0.5)
                + head(x, 0.5 + step)
                + head(x, 0.5 - step)
                - 4.0 * head(x, 0.5))
                / (step * step);
            assert!((-1.0..-0.8).contains(&slope), "slope at {x}: {slope}");
            assert!(laplacian.abs() < 1e-4, "Laplacian at {x}: {laplacian}");
            assert!(head(x, 0.0) < HEIGHT);
        }
    }
}

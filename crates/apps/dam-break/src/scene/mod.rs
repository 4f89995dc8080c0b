//! A scene: a tank, boxes of water and obstacles in it, and probes.
//!
//! A [`Scene`] is in metres and knows no particles; [`Scene::builder`] fills it with them at some
//! spacing. [`Scene::column`] is the classic dam break, [`Scene::read`] takes one from a file.
//! Coordinates are as in the solver: x along the tank, then the height in the plane, or the depth
//! and the height in space. The tank's lower corner is the origin.

mod build;
mod file;
mod released;

pub(crate) use build::MAX_PARTICLES;

use glam::DVec3;
use nearfield_sph::{Dimensions, FrontRule};

/// Width a of the column of [`Scene::column`], metres.
pub const WIDTH: f64 = 1.0;

/// Height of that column, metres.
pub const HEIGHT: f64 = 2.0;

/// Length and height of its tank, metres; in space it is as deep as the column.
pub const TANK: [f64; 2] = [4.0, 3.0];

/// Kinematic viscosity of the column's water, m²/s, the same at every spacing: enough for calm
/// pressures, and it takes less than a tenth of the energy until the water has met the far wall.
const VISCOSITY: f64 = 0.009;

/// Kinematic viscosity with which the floor holds the column's water, m²/s, the same at every
/// spacing.
const FLOOR_VISCOSITY: f64 = 0.03;

/// The front of the column: 0.5 % of the water lies ahead of it, in the plane a square of 0.1a.
/// That is 3 to 6 mm in the experiments, about as high as surface tension makes the rim of water
/// that spreads on a dry floor. Without surface tension the tongue has no such rim, and a rule by
/// the size of the particles follows it further the finer they are.
const FRONT: FrontRule = FrontRule {
    share: 0.005,
    low: 0.0,
    high: TANK[0] as f32,
};

/// Gravity where a scene names none, m/s².
const GRAVITY: f64 = 9.81;

/// Smoothing length over spacing where a scene names none.
const SMOOTHING: f64 = 1.25;

/// Fewest particles along the side that the spacing divides; see [`Scene::spacing_for`].
const MIN_CELLS: f64 = 4.0;

/// A box with sides along the axes, metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Lowest corner.
    pub low: DVec3,
    /// Highest corner.
    pub high: DVec3,
}

impl Block {
    /// Whether the insides of two boxes meet.
    fn overlaps(&self, other: &Self, dimensions: Dimensions) -> bool {
        let axes = axes(dimensions);
        (axes.iter())
            .all(|&axis| self.low[axis] < other.high[axis] && other.low[axis] < self.high[axis])
    }

    /// Lengths of the sides.
    fn sides(&self) -> DVec3 {
        self.high - self.low
    }
}

/// A place at which something is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Its name in tables.
    pub name: String,
    /// Its place, metres; the height of a height probe is without meaning.
    pub at: DVec3,
}

/// All probes of a scene.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Time between two samples, seconds. A step that is longer is sampled once.
    pub interval: f64,
    /// Where pressures are measured.
    pub pressure: Vec<Probe>,
    /// Where the height of the water is measured.
    pub height: Vec<Probe>,
}

/// A scene: the initial state and the physics.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its name, for the summary.
    pub title: String,
    /// Plane or space.
    pub dimensions: Dimensions,
    /// The highest corner of the tank, metres; it is closed on all sides.
    pub tank: DVec3,
    /// The water at the start; boxes do not overlap.
    pub water: Vec<Block>,
    /// Boxes that do not move.
    pub obstacles: Vec<Block>,
    /// Gravity, m/s², downwards.
    pub gravity: f64,
    /// Kinematic viscosity of the water, m²/s, the same at every spacing; without one, the
    /// artificial viscosity of [`Config::water`](nearfield_sph::Config::water), which shrinks with
    /// the spacing.
    pub viscosity: Option<f64>,
    /// Kinematic viscosity with which the floor holds the water, m²/s; along all other walls, and
    /// along obstacles, it slips.
    pub floor_viscosity: f64,
    /// Smoothing length over spacing, between 1 and 3; walls are as thick as the support, twice the
    /// smoothing length.
    pub smoothing: f64,
    /// Distance between particles, metres, unless a number of particles is asked for.
    pub spacing: Option<f64>,
    /// Simulated time, seconds, unless another one is asked for.
    pub seconds: Option<f64>,
    /// The probes.
    pub probes: Probes,
    /// Artificial sound speed, m/s: ten times the fastest water to be expected.
    pub sound_speed: f64,
    /// The rule of the front, if the scene is that of the experiments.
    pub front: Option<FrontRule>,
}

/// The axes that a scene of these dimensions has.
fn axes(dimensions: Dimensions) -> &'static [usize] {
    match dimensions {
        Dimensions::Two => &[0, 1],
        Dimensions::Three => &[0, 1, 2],
    }
}

/// A corner at `length`, `depth` and `height`; the plane has no depth.
fn corner(dimensions: Dimensions, length: f64, depth: f64, height: f64) -> DVec3 {
    match dimensions {
        Dimensions::Two => DVec3::new(length, height, 0.0),
        Dimensions::Three => DVec3::new(length, depth, height),
    }
}

impl Scene {
    /// The classic dam break: a column a = 1 m wide, 2a high and, in space, a deep, in the left
    /// end of a closed tank 4a long, 3a high and as deep as the column. Its floor is rough, as
    /// floors of experiments are; along the other walls the water slips.
    #[must_use]
    pub fn column(dimensions: Dimensions) -> Self {
        let water = Block {
            low: DVec3::ZERO,
            high: corner(dimensions, WIDTH, WIDTH, HEIGHT),
        };
        Self {
            title: "dam break".to_owned(),
            dimensions,
            tank: corner(dimensions, TANK[0], WIDTH, TANK[1]),
            water: vec![water],
            obstacles: Vec::new(),
            gravity: GRAVITY,
            viscosity: Some(VISCOSITY),
            floor_viscosity: FLOOR_VISCOSITY,
            smoothing: SMOOTHING,
            spacing: None,
            seconds: None,
            probes: Probes::default(),
            sound_speed: 10.0 * (GRAVITY * HEIGHT).sqrt(),
            front: Some(FRONT),
        }
    }

    /// Length of the first box of water along x, metres: the unit of lengths in the experiments.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.water[0].sides().x
    }

    /// Index of the axis that points upwards.
    fn up(&self) -> usize {
        match self.dimensions {
            Dimensions::Two => 1,
            Dimensions::Three => 2,
        }
    }

    /// Height of the highest water above the floor, metres.
    pub(crate) fn depth(&self) -> f64 {
        let tops = self.water.iter().map(|water| water.high[self.up()]);
        tops.fold(0.0, f64::max)
    }

    /// Volume of a box, m³, or its area in the plane, m².
    fn volume(&self, block: &Block) -> f64 {
        let sides = block.sides();
        (axes(self.dimensions).iter())
            .map(|&axis| sides[axis])
            .product()
    }

    /// The spacing, metres, at which the water takes about `particles` particles. It divides the
    /// shortest side of the first obstacle, or of the first box of water where there is none, so
    /// that the box that matters most keeps its size.
    #[must_use]
    pub fn spacing_for(&self, particles: usize) -> f64 {
        let volume: f64 = self.water.iter().map(|water| self.volume(water)).sum();
        let per_particle = volume / particles.max(1) as f64;
        let spacing = match self.dimensions {
            Dimensions::Two => per_particle.sqrt(),
            Dimensions::Three => per_particle.cbrt(),
        };
        let sides = self.obstacles.first().unwrap_or(&self.water[0]).sides();
        let divided = (axes(self.dimensions).iter()).map(|&axis| sides[axis]);
        let divided = divided.fold(f64::INFINITY, f64::min);
        divided / (divided / spacing).round().max(MIN_CELLS)
    }

    /// The number of particles that the water takes at this spacing, about.
    pub(crate) fn particles_at(&self, spacing: f64) -> f64 {
        let volume: f64 = self.water.iter().map(|water| self.volume(water)).sum();
        volume / spacing.powi(self.dimensions.count() as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_takes_the_nearest_whole_number_of_particles() {
        let cells = |dimensions, particles| {
            (WIDTH / Scene::column(dimensions).spacing_for(particles)).round()
        };
        assert_eq!(cells(Dimensions::Two, 3200), 40.0);
        assert_eq!(cells(Dimensions::Three, 65_000), 32.0);
        assert_eq!(cells(Dimensions::Three, 0), 4.0);
    }

    #[test]
    fn walls_beyond_all_memory_are_refused_before_they_are_made() {
        for far in [1e9, 1e30, f64::MAX] {
            let mut scene = Scene::column(Dimensions::Three);
            scene.tank.x = far;
            let error = scene.builder_on(0.01, 0, 1).err().unwrap().to_string();
            assert!(error.contains("wall particles"), "{error}");
        }
    }

    #[test]
    fn boxes_that_touch_do_not_overlap() {
        let block = |low: f64, high: f64| Block {
            low: DVec3::new(low, 0.0, 0.0),
            high: DVec3::new(high, 1.0, 0.0),
        };
        let plane = Dimensions::Two;
        assert!(!block(0.0, 1.0).overlaps(&block(1.0, 2.0), plane));
        assert!(block(0.0, 1.0).overlaps(&block(0.9, 2.0), plane));
        // In the plane the third axis has no extent and tells nothing apart.
        assert!(!block(0.0, 1.0).overlaps(&block(0.9, 2.0), Dimensions::Three));
    }
}

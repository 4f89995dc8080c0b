//! Fills a scene with particles.
//!
//! All particles sit on one lattice from the tank's lower corner on. Faces of boxes and of the
//! tank go to the nearest plane between its cells, at most half a spacing away; faces that touch
//! in the scene touch on the lattice.

use glam::{DVec3, IVec3, Vec3};
use nearfield_grid::memory::collected;
use nearfield_sph::scene::{self, Top};
use nearfield_sph::{Config, Dimensions, Domain, Simulation, SimulationBuilder};

use super::released::ReleasedHead;
use super::{Block, Scene, axes};
use crate::Error;

/// Most fluid particles of a run on one rank, and most wall particles; together they take some tens
/// of gigabytes.
pub(crate) const MAX_PARTICLES: f64 = 50e6;

/// How far particles start from their lattice sites at most, in spacings.
const STIRRING: f32 = 0.05;

/// A box of lattice cells, `low ≤ cell < high`.
#[derive(Clone, Copy)]
struct Cells {
    low: IVec3,
    high: IVec3,
}

impl Scene {
    /// Physics and numerics at this spacing, metres.
    #[must_use]
    pub fn config(&self, spacing: f64) -> Config {
        let depth = self.depth() as f32;
        let gravity = self.gravity as f32;
        let slack = Vec3::splat(0.5 * spacing as f32);
        let high = self.cell(self.tank, spacing).as_dvec3() * spacing;
        let water = Config::water(self.dimensions, spacing as f32, depth);
        let water = Config {
            gravity: -gravity * self.dimensions.up(),
            sound_speed: self.sound_speed as f32,
            smoothing: self.smoothing as f32,
            ..water
        };
        let alpha = |viscosity: f64| (viscosity / water.kinematic_viscosity(1.0)) as f32;
        Config {
            viscosity: self.viscosity.map_or(water.viscosity, alpha),
            wall_friction: alpha(self.floor_viscosity),
            domain: Domain {
                low: -slack,
                high: high.as_vec3() + slack,
            },
            ..water
        }
    }

    /// The scene, ready to be built; the water is at rest. A box of water that stands on the floor
    /// at one end of the tank has the pressure of the moment its dam is gone; in other boxes
    /// pressure grows with the depth below their top.
    ///
    /// # Errors
    /// If memory for the particles is refused, or a box is thinner than half a spacing.
    pub fn builder(&self, spacing: f64) -> Result<SimulationBuilder, Error> {
        self.builder_on(spacing, 0, 1)
    }

    /// As [`builder`](Self::builder), with the share of one of `ranks` ranks.
    pub(crate) fn builder_on(
        &self,
        spacing: f64,
        rank: usize,
        ranks: usize,
    ) -> Result<SimulationBuilder, Error> {
        let walls = self.walls_at(spacing);
        // No number where the tank is so large that the water in it is infinite too.
        if walls.is_nan() || walls > MAX_PARTICLES * ranks as f64 {
            let wanted = "at most 50 million on each rank: take a smaller tank or fewer particles";
            return Err(Error::setting(
                "the number of wall particles",
                walls,
                wanted,
            ));
        }
        let builder = Simulation::builder_on(self.config(spacing), rank, ranks)?;
        self.fill(builder, spacing)
    }

    /// The number of particles that the tank's walls and the obstacles take at this spacing, about;
    /// the hearts of obstacles are made too, and then left out.
    fn walls_at(&self, spacing: f64) -> f64 {
        let layers = (2.0 * self.smoothing).ceil();
        let count = |sides: DVec3, more: f64| -> f64 {
            let sides = (axes(self.dimensions).iter()).map(|&axis| sides[axis] / spacing + more);
            sides.product()
        };
        let tank = count(self.tank, 2.0 * layers) - count(self.tank, 0.0);
        let obstacles = self.obstacles.iter().map(|one| count(one.sides(), 0.0));
        tank + obstacles.sum::<f64>()
    }

    /// Adds all particles to a description.
    fn fill(
        &self,
        mut builder: SimulationBuilder,
        spacing: f64,
    ) -> Result<SimulationBuilder, Error> {
        let config = self.config(spacing);
        let layers = (2.0 * config.smoothing).ceil() as i32;
        let mut stirrer = Stirrer::new(self.dimensions, config.spacing);
        for (index, water) in self.water.iter().enumerate() {
            let cells = self.filled("water", index, water, spacing)?;
            let (low, high) = (cells.low.to_array(), cells.high.to_array());
            let mut block = scene::block(self.dimensions, low, high, config.spacing)?;
            stirrer.stir(&mut block);
            builder = builder.fluid(&block);
        }
        let inside = self.cell(self.tank, spacing).to_array();
        let walls = scene::tank(self.dimensions, inside, Top::Closed, layers, config.spacing)?;
        let up = self.dimensions.up();
        let part = |of_floor| {
            let walls = walls.iter().copied();
            collected(
                walls.filter(|wall| (wall.dot(up) < 0.0) == of_floor),
                "wall particles",
            )
            .map_err(nearfield_sph::Error::from)
        };
        builder = builder.rough_walls(&part(true)?).walls(&part(false)?);
        for (index, obstacle) in self.obstacles.iter().enumerate() {
            let cells = self.filled("obstacle", index, obstacle, spacing)?;
            let (low, high) = (cells.low.to_array(), cells.high.to_array());
            let mut block = scene::block(self.dimensions, low, high, config.spacing)?;
            // Water sees the particles within its support; the heart of a box adds nothing.
            let reach = layers as f32 * config.spacing;
            block.retain(|&particle| self.below_surface(cells, particle, config.spacing) < reach);
            builder = builder.walls(&block);
        }
        let weight = f64::from(config.density) * self.gravity;
        let heads: Vec<(Block, Head)> = (self.water.iter())
            .map(|water| {
                let built = self.on_lattice(water, spacing);
                (built, Head::of(self, water, &built))
            })
            .collect();
        let (up, slack) = (self.up(), 0.5 * spacing);
        Ok(builder.pressure(move |particle| {
            let x = particle.as_dvec3();
            let own = |(block, _): &&(Block, Head)| {
                x.cmpge(block.low - slack).all() && x.cmple(block.high + slack).all()
            };
            let head = heads.iter().find(own);
            head.map_or(0.0, |(_, head)| (weight * head.at(x.x, x[up])) as f32)
        }))
    }

    /// Largest distance of a face on the lattice from its place in the scene, metres.
    #[must_use]
    pub fn rounding(&self, spacing: f64) -> f64 {
        let tank = Block {
            low: DVec3::ZERO,
            high: self.tank,
        };
        let blocks = self.water.iter().chain(&self.obstacles).chain([&tank]);
        let off = blocks.flat_map(|block| {
            let built = self.on_lattice(block, spacing);
            let [low, high] = [block.low - built.low, block.high - built.high];
            (axes(self.dimensions).iter())
                .flat_map(move |&axis| [low[axis].abs(), high[axis].abs()])
        });
        off.fold(0.0, f64::max)
    }

    /// The lattice plane next to each coordinate.
    fn cell(&self, corner: DVec3, spacing: f64) -> IVec3 {
        (corner / spacing).round().as_ivec3()
    }

    fn on_lattice(&self, block: &Block, spacing: f64) -> Block {
        let plane = |corner| self.cell(corner, spacing).as_dvec3() * spacing;
        Block {
            low: plane(block.low),
            high: plane(block.high),
        }
    }

    /// The cells of a box.
    ///
    /// # Errors
    /// When there are none.
    fn filled(
        &self,
        what: &str,
        index: usize,
        block: &Block,
        spacing: f64,
    ) -> Result<Cells, Error> {
        let (low, high) = (
            self.cell(block.low, spacing),
            self.cell(block.high, spacing),
        );
        if (axes(self.dimensions).iter()).any(|&axis| low[axis] >= high[axis]) {
            return Err(Error::too_coarse(what, index + 1, block.sides(), spacing));
        }
        Ok(Cells { low, high })
    }

    /// Distance of a particle of a box from its nearest face, metres.
    fn below_surface(&self, cells: Cells, particle: Vec3, spacing: f32) -> f32 {
        let (low, high) = (
            particle - cells.low.as_vec3() * spacing,
            cells.high.as_vec3() * spacing - particle,
        );
        let nearest = low.min(high);
        (axes(self.dimensions).iter()).fold(f32::INFINITY, |least, &axis| least.min(nearest[axis]))
    }
}

/// The pressure head in a box of water at the start.
enum Head {
    /// Behind a dam that is gone: the end wall at `wall`, the water on its side of larger x or not.
    Released {
        head: Box<ReleasedHead>,
        wall: f64,
        forward: bool,
    },
    /// At rest below `top`.
    Still { top: f64 },
}

impl Head {
    fn of(scene: &Scene, water: &Block, built: &Block) -> Self {
        let up = scene.up();
        let (left, right) = (water.low.x == 0.0, water.high.x == scene.tank.x);
        if left == right || water.low[up] != 0.0 {
            return Self::Still {
                top: built.high[up],
            };
        }
        let sides = built.sides();
        Self::Released {
            head: Box::new(ReleasedHead::new(sides.x, sides[up])),
            wall: if left { built.low.x } else { built.high.x },
            forward: left,
        }
    }

    /// The head, metres, at `x` and `height`; never negative.
    fn at(&self, x: f64, height: f64) -> f64 {
        match self {
            Self::Still { top } => (top - height).max(0.0),
            Self::Released {
                head,
                wall,
                forward,
            } => {
                let from_wall = if *forward { x - wall } else { wall - x };
                head.at(from_wall, height)
            }
        }
    }
}

/// Moves particles a little off their lattice sites, by the same amounts in every run, so that rows
/// of particles do not march in step for ever.
struct Stirrer {
    dimensions: Dimensions,
    reach: f32,
    state: u32,
}

impl Stirrer {
    fn new(dimensions: Dimensions, spacing: f32) -> Self {
        Self {
            dimensions,
            reach: STIRRING * spacing,
            state: 0x9E37_79B9,
        }
    }

    fn stir(&mut self, positions: &mut [Vec3]) {
        for position in positions {
            let off = Vec3::new(self.draw(), self.draw(), self.draw());
            *position += match self.dimensions {
                Dimensions::Two => off.with_z(0.0),
                Dimensions::Three => off,
            };
        }
    }

    /// Marsaglia's xorshift, DOI 10.18637/jss.v008.i14.
    fn draw(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        self.reach * (self.state as f32 / u32::MAX as f32 * 2.0 - 1.0)
    }
}

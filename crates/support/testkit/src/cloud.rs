//! The named clouds that benches and tests run on.
//!
//! A cloud is a name, a number of points and a seed; the same three give the
//! same bits on every platform. All clouds come shuffled, so that the order
//! of the points says nothing about where they lie, and all keep their local
//! density when the number of points changes (but for [`Cloud::Plummer`],
//! whose size is fixed by its units), so a radius means the same at any size.

use std::str::FromStr;

use nearfield_grid::memory::{Shortage, with_room};
use thiserror::Error;

use crate::{random::Random, shapes::lattice_points};

const JITTER: f64 = 0.1;
const POINTS: &str = "the points of a cloud";

/// The points of a cloud in the order in which they are drawn.
type Drawn = Result<Vec<[f32; 3]>, Shortage>;

/// A name that is none of the clouds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown cloud {name:?}: the named clouds are {}", Cloud::names().join(", "))]
pub struct UnknownCloud {
    /// The name that was asked for.
    pub name: String,
}

/// One of the named clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cloud {
    /// A cubic lattice of m³ points, m = round(∛points), at whole coordinates 0 … m − 1, each moved
    /// by up to 0.1 along each axis. The number of points is therefore the nearest cube to the
    /// requested number.
    ///
    /// A million points make about 28.3 million directed pairs at r = 2 and
    /// 103 million at r = 3. Default radius 2.
    Lattice,
    /// A pool of liquid with spray above it: 70 % of the points are a
    /// jittered lattice of aspect 100 × 100 × 70, the others lie above its
    /// footprint at a height that is exponential with scale 200, at most
    /// 1400. Lengths are given for a million points and scale with ∛points. The number of points is
    ///       exact.
    ///
    /// A million points make about 20.5 million directed pairs at r = 2.
    /// Default radius 2.
    PoolSpray,
    /// 200 Gaussian clusters with centres uniform in [5, 95]³. Sizes are
    /// log-uniform in 100 … 10,000, then rescaled to the number of points
    /// asked for; the width of a cluster is sigma = 0.8·∛(size / 1500) of
    /// its rescaled size, so the density inside is the same at any number of
    /// points.
    ///
    /// 450,000 points make about 110 million directed pairs at r = 1.
    /// Default radius 1.
    Clusters,
    /// A Plummer sphere (Plummer 1911, DOI 10.1093/mnras/71.5.460) in Hénon
    /// units: total mass 1, G = 1, energy −1/4, hence scale radius 3π/16.
    /// Positions are drawn as by Aarseth, Hénon and Wielen (1974, Astronomy
    /// and Astrophysics 37, 183) from the inner 99.9 % of the mass, which
    /// ends at 38.7 scale radii.
    ///
    /// Default radius 3.8/∛points: about 50 neighbours on average.
    Plummer,
    /// Independent points, uniform in a cube at one point per unit volume.
    /// Default radius 2: about 33 neighbours.
    Uniform,
}

impl Cloud {
    /// All named clouds.
    pub const ALL: [Self; 5] = [
        Self::Lattice,
        Self::PoolSpray,
        Self::Clusters,
        Self::Plummer,
        Self::Uniform,
    ];

    /// The names of all clouds, as [`Cloud::by_name`] takes them.
    pub fn names() -> [&'static str; 5] {
        Self::ALL.map(Self::name)
    }

    /// The name of this cloud.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lattice => "lattice",
            Self::PoolSpray => "pool-spray",
            Self::Clusters => "clusters",
            Self::Plummer => "plummer",
            Self::Uniform => "uniform",
        }
    }

    /// The points of the cloud called `name`: see [`Cloud::points`].
    ///
    /// # Errors
    /// [`UnknownCloud`] when no cloud has that name.
    pub fn by_name(name: &str, points: usize, seed: u64) -> Result<Vec<[f32; 3]>, UnknownCloud> {
        Ok(name.parse::<Self>()?.points(points, seed))
    }

    /// `points` points of this cloud ([`Cloud::Lattice`]: the nearest cube
    /// number of them), in random order.
    ///
    /// # Panics
    /// When memory is short; [`try_points`](Self::try_points) returns an error
    /// instead.
    pub fn points(self, points: usize, seed: u64) -> Vec<[f32; 3]> {
        match self.try_points(points, seed) {
            Ok(cloud) => cloud,
            Err(shortage) => panic!("{shortage}"),
        }
    }

    /// As [`points`](Self::points).
    ///
    /// # Errors
    /// [`Shortage`], with the bytes, before any point is drawn.
    pub fn try_points(self, points: usize, seed: u64) -> Result<Vec<[f32; 3]>, Shortage> {
        let mut random = Random::new(seed);
        let mut cloud = match self {
            Self::Lattice => lattice(points, &mut random),
            Self::PoolSpray => pool_spray(points, &mut random),
            Self::Clusters => clusters(points, &mut random),
            Self::Plummer => plummer(points, &mut random),
            Self::Uniform => uniform(points, &mut random),
        }?;
        random.shuffle(&mut cloud);
        Ok(cloud)
    }

    /// The search radius this cloud is usually run with, given its number of
    /// points (only [`Cloud::Plummer`] depends on it).
    pub fn default_radius(self, points: usize) -> f32 {
        match self {
            Self::Lattice | Self::PoolSpray | Self::Uniform => 2.0,
            Self::Clusters => 1.0,
            Self::Plummer => (3.8 / libm::cbrt(points.max(1) as f64)) as f32,
        }
    }
}

impl FromStr for Cloud {
    type Err = UnknownCloud;

    fn from_str(name: &str) -> Result<Self, UnknownCloud> {
        let known = Self::ALL.into_iter().find(|cloud| cloud.name() == name);
        known.ok_or_else(|| UnknownCloud {
            name: name.to_owned(),
        })
    }
}

/// Puts points (or anything else) into the random order of `seed`.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    Random::new(seed).shuffle(items);
}

/// Moves every coordinate by a random amount within ±`amplitude`, as a
/// bench does between repetitions so that no answer can be reused.
pub fn drift(positions: &mut [[f32; 3]], amplitude: f32, seed: u64) {
    let mut random = Random::new(seed);
    let amplitude = f64::from(amplitude);
    for coordinate in positions.as_flattened_mut() {
        *coordinate += random.between(-amplitude, amplitude) as f32;
    }
}

/// One of `parts` parts of a jittered lattice as [`Cloud::Lattice`] has it, for clouds that are too
/// large for one thread: whole layers across z, each drawn and shuffled by a stream of its own.
pub fn part_of_lattice(points: usize, part: usize, parts: usize, seed: u64) -> Vec<[f32; 3]> {
    let side = nearest_cube_root(points);
    let layers = side * part / parts..side * (part + 1) / parts;
    let mut cloud = Vec::with_capacity(layers.len() * side * side);
    for z in layers {
        let mut random = Random::new(seed.wrapping_add(z as u64));
        let mut layer = crate::shapes::lattice([side, side, 1]);
        jitter(&mut layer, &mut random);
        layer.iter_mut().for_each(|point| point[2] += z as f32);
        random.shuffle(&mut layer);
        cloud.append(&mut layer);
    }
    cloud
}

fn lattice(points: usize, random: &mut Random) -> Drawn {
    let side = nearest_cube_root(points);
    let mut cloud = with_room(side.saturating_mul(side).saturating_mul(side), POINTS)?;
    cloud.extend(lattice_points([side; 3]));
    jitter(&mut cloud, random);
    Ok(cloud)
}

/// The pool fills whole layers, the spray takes all remaining points.
fn pool_spray(points: usize, random: &mut Random) -> Drawn {
    let mut cloud = with_room(points, POINTS)?;
    let side = nearest_cube_root(points).max(1);
    let layers = points * 7 / 10 / (side * side);
    cloud.extend(lattice_points([side, side, layers]));
    jitter(&mut cloud, random);
    let scale = side as f64 / 100.0;
    cloud.resize_with(points, || {
        let [x, y] = [(); 2].map(|()| random.between(-0.5, side as f64 - 0.5));
        let height = (200.0 * random.exponential()).min(1400.0) * scale;
        [x, y, layers as f64 - 0.5 + height].map(|coordinate| coordinate as f32)
    });
    Ok(cloud)
}

fn clusters(points: usize, random: &mut Random) -> Drawn {
    const CLUSTERS: usize = 200;
    let weights: Vec<f64> = (0..CLUSTERS)
        .map(|_| 100.0 * libm::exp(random.between(0.0, std::f64::consts::LN_10 * 2.0)))
        .collect();
    let mut cloud = with_room(points, POINTS)?;
    for size in shares(points, &weights) {
        let center = [(); 3].map(|()| random.between(5.0, 95.0));
        let sigma = 0.8 * libm::cbrt(size as f64 / 1500.0);
        cloud.extend((0..size).map(|_| center.map(|at| (at + sigma * random.normal()) as f32)));
    }
    Ok(cloud)
}

fn plummer(points: usize, random: &mut Random) -> Drawn {
    const SCALE_RADIUS: f64 = 3.0 * std::f64::consts::PI / 16.0;
    let point = |_| {
        let root = libm::cbrt(random.between(0.0, 0.999));
        let radius = SCALE_RADIUS / (1.0 / (root * root) - 1.0).sqrt();
        random.direction().map(|axis| (radius * axis) as f32)
    };
    let mut cloud = with_room(points, POINTS)?;
    cloud.extend((0..points).map(point));
    Ok(cloud)
}

fn uniform(points: usize, random: &mut Random) -> Drawn {
    let side = libm::cbrt(points as f64);
    let point = |_| [(); 3].map(|()| random.between(0.0, side) as f32);
    let mut cloud = with_room(points, POINTS)?;
    cloud.extend((0..points).map(point));
    Ok(cloud)
}

/// Moves every coordinate by up to [`JITTER`].
fn jitter(cloud: &mut [[f32; 3]], random: &mut Random) {
    for coordinate in cloud.as_flattened_mut() {
        *coordinate = (f64::from(*coordinate) + random.between(-JITTER, JITTER)) as f32;
    }
}

fn nearest_cube_root(points: usize) -> usize {
    libm::round(libm::cbrt(points as f64)) as usize
}

/// `total` split into whole numbers in proportion to `weights`, exactly.
fn shares(total: usize, weights: &[f64]) -> Vec<usize> {
    let sum: f64 = weights.iter().sum();
    let (mut reached, mut given) = (0.0, 0);
    let mut share = |weight: &f64| {
        reached += weight;
        let until = (libm::round(total as f64 * (reached / sum)) as usize).min(total);
        until - std::mem::replace(&mut given, until)
    };
    weights.iter().map(&mut share).collect()
}

//! Many systems of points in one array, and their pairs by definition.
//!
//! [`Batch::drawn`] makes systems that a search gets wrong first: cells that lean far, are
//! left-handed or much smaller than the radius, open axes whose vectors are zero, points in other
//! cells than their own, systems of one point or none, and points exactly at the radius.

use crate::{
    oracle::{ListKind, Pairing, Problem, Real, normals},
    random::Random,
};

/// Systems that own their arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<T> {
    /// Points of all systems.
    pub positions: Vec<[T; 3]>,
    /// The first point of every system, and their number.
    pub offsets: Vec<i64>,
    /// Radius of every system.
    pub radii: Vec<f64>,
    /// Cell of every system; a row is a vector.
    pub cells: Vec<[[f64; 3]; 3]>,
    /// Which vectors every system repeats along.
    pub periodic: Vec<[bool; 3]>,
}

/// A pair of points of one system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<T> {
    /// The point, by its place in the array of all systems.
    pub target: i64,
    /// Its neighbour.
    pub source: i64,
    /// By how many vectors the neighbour is moved.
    pub image: [i32; 3],
    /// From the point to that image.
    pub displacement: [T; 3],
    /// The root of the squared distance, rounded once.
    pub distance: T,
}

/// A box in which no system has more images of a point within 5 radii of 1 than this.
const MAX_IMAGES: f64 = 3000.0;
/// Vectors are at most this many times as long as the distance between the faces they connect.
const MAX_STRETCH: f64 = 500.0;

impl<T> Default for Batch<T> {
    /// No systems.
    fn default() -> Self {
        Self {
            positions: Vec::new(),
            offsets: vec![0],
            radii: Vec::new(),
            cells: Vec::new(),
            periodic: Vec::new(),
        }
    }
}

impl<T: Real> Batch<T> {
    /// So many systems of fewer than `max` points each.
    pub fn drawn(seed: u64, systems: usize, max: u64) -> Self {
        let random = &mut Random::new(seed);
        let mut batch = Self::default();
        for system in 0..systems {
            let bits = random.below(8);
            let periodic = [0, 1, 2].map(|k| bits >> k & 1 == 1);
            let cell = drawn_cell(random, periodic);
            let points = match random.below(4) {
                0 => random.below(3),
                _ => random.below(max),
            };
            // Systems of whole and half numbers put pairs exactly at the radius.
            let whole = random.below(4) == 0;
            let outside = [0.0, 0.0, 1.0, 6.0][random.below(4) as usize];
            let mut positions = Vec::new();
            for _ in 0..points {
                let mut at = [0.0; 3];
                for k in 0..3 {
                    let share = random.between(-0.1, 1.0) + outside * random.between(-1.0, 1.0);
                    if periodic[k] {
                        at = [0, 1, 2].map(|axis| at[axis] + share * cell[k][axis]);
                    } else {
                        at[k] += random.between(-2.0, 2.0);
                    }
                }
                if whole {
                    at = at.map(|x: f64| (2.0 * x).round() / 2.0);
                }
                positions.push(at.map(T::round));
            }
            let radius = match (system % 7, whole) {
                // No pair at all.
                (3, _) => 1e-3,
                (_, true) => 1.0,
                _ => random.between(0.2, if points > 30 { 1.2 } else { 2.5 }),
            };
            batch.push(&positions, radius, cell, periodic);
        }
        batch
    }

    /// Appends a system.
    pub fn push(
        &mut self,
        positions: &[[T; 3]],
        radius: f64,
        cell: [[f64; 3]; 3],
        periodic: [bool; 3],
    ) {
        self.positions.extend(positions);
        self.offsets.push(self.positions.len() as i64);
        self.radii.push(radius);
        self.cells.push(cell);
        self.periodic.push(periodic);
    }

    /// Appends the systems of another batch.
    pub fn append(&mut self, other: &Self) {
        for (system, ends) in other.offsets.windows(2).enumerate() {
            let points = &other.positions[ends[0] as usize..ends[1] as usize];
            let (cell, periodic) = (other.cells[system], other.periodic[system]);
            self.push(points, other.radii[system], cell, periodic);
        }
    }

    /// The first systems alone.
    pub fn truncate(&mut self, systems: usize) {
        self.offsets.truncate(systems + 1);
        self.positions.truncate(self.offsets[systems] as usize);
        self.radii.truncate(systems);
        self.cells.truncate(systems);
        self.periodic.truncate(systems);
    }

    /// The pairs of all systems by the definition, sorted by (target, source, image).
    pub fn pairs(&self, kind: ListKind) -> Vec<Pair<T>> {
        let mut pairs = Vec::new();
        for (system, ends) in self.offsets.windows(2).enumerate() {
            let points = &self.positions[ends[0] as usize..ends[1] as usize];
            let radius = T::round(self.radii[system]);
            let mut problem = Problem::open(radius, points, Pairing::Within(kind));
            let (cell, periodic) = (self.cells[system], self.periodic[system]);
            problem.vectors = Some([0, 1, 2].map(|k| periodic[k].then_some(cell[k])));
            for (i, list) in problem.brute_force().into_iter().enumerate() {
                for found in list {
                    let [from, to] = [points[i], points[found.index as usize]];
                    let d2 = problem.distance_squared(from, to, found.image);
                    pairs.push(Pair {
                        target: ends[0] + i as i64,
                        source: ends[0] + i64::from(found.index),
                        image: found.image.map(|n| n as i32),
                        displacement: problem.displacement(from, to, found.image),
                        distance: T::round(d2.to_f64().sqrt()),
                    });
                }
            }
        }
        pairs
    }
}

/// A cell of any shape and handedness; half of the vectors of open axes are zero.
fn drawn_cell(random: &mut Random, periodic: [bool; 3]) -> [[f64; 3]; 3] {
    loop {
        let size = random.between(0.4, 3.0);
        let lean = [0.0, 0.3, 1.0, 4.0][random.below(4) as usize];
        let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
        let zeros = random.below(2) == 0;
        let mut cell = [[0.0; 3]; 3];
        for k in (0..3).filter(|&k| periodic[k] || !zeros) {
            for (axis, component) in cell[k].iter_mut().enumerate() {
                *component = if axis == k {
                    sign * random.between(0.6, 1.4) * size
                } else {
                    lean * size * random.between(-1.0, 1.0)
                };
            }
        }
        let length = |[x, y, z]: [f64; 3]| x.hypot(y).hypot(z);
        let vectors = [0, 1, 2].map(|k| periodic[k].then_some(cell[k]));
        let normals = normals(vectors).map(|normal| length(normal.unwrap_or_default()));
        let images: f64 = normals.iter().map(|normal| 1.0 + 5.0 * normal).product();
        let is_flat = (0..3).any(|k| periodic[k] && length(cell[k]) * normals[k] > MAX_STRETCH);
        if images < MAX_IMAGES && !is_flat {
            return cell;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_systems_of_every_kind_and_half_of_the_pairs_stand_once() {
        let batch = Batch::<f32>::drawn(1, 80, 40);
        let points = |system: usize| batch.offsets[system + 1] - batch.offsets[system];
        for wanted in [0, 1] {
            assert!((0..80).any(|system| points(system) == wanted));
        }
        let full = batch.pairs(ListKind::Full);
        assert_eq!(2 * batch.pairs(ListKind::Half).len(), full.len());
        assert!(full.iter().any(|pair| pair.target == pair.source));
        assert!(full.iter().any(|pair| pair.distance == 1.0));
        let keys = full
            .iter()
            .map(|pair| (pair.target, pair.source, pair.image));
        assert!(keys.is_sorted());
    }
}

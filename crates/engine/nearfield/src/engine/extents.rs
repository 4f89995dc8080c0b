//! Bounds and number of points of all sets together, kept while single sets change.
//!
//! The lattice of a periodic box, or of an `f64` engine, follows from the bounds of all sets. Were
//! these put together anew whenever one set is placed, a step that moves every set would take the
//! square of their number. So they stand in a binary tree: a leaf per slot, and above every two
//! nodes their union. Changing a set takes as many unions as the tree is high.
//!
//! **Invariant:** a leaf is the extent of its set, and a node is the union of its two children.
//! Minima and maxima do not depend on the order in which they are taken, so the bounds are those of
//! a pass over all sets.

use nearfield_grid::{
    Bounds,
    memory::{Shortage, filled},
};

/// Bounds and number of points of some sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) bounds: Bounds,
    pub(crate) points: usize,
}

impl Extent {
    /// The extent of no points.
    const EMPTY: Self = Self {
        bounds: Bounds::EMPTY,
        points: 0,
    };

    fn union(&self, other: &Self) -> Self {
        Self {
            bounds: self.bounds.union(&other.bounds),
            points: self.points + other.points,
        }
    }
}

/// The extents of all sets, by slot.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// A complete binary tree: node 1 is the root, the children of node k are 2k and 2k + 1, and
    /// the second half are the leaves. Empty, or a power of two long.
    nodes: Vec<Extent>,
}

impl Extents {
    /// Makes room for as many slots.
    ///
    /// The tree is doubled, so adding sets one by one copies every leaf a few times.
    ///
    /// # Errors
    /// [`Shortage`]; nothing has changed then.
    pub(crate) fn make_room(&mut self, slots: usize) -> Result<(), Shortage> {
        let leaves = self.nodes.len() / 2;
        if slots <= leaves {
            return Ok(());
        }
        let wider = slots.next_power_of_two();
        let mut nodes = filled(2 * wider, Extent::EMPTY, "bounds of sets")?;
        nodes[wider..wider + leaves].copy_from_slice(&self.nodes[leaves..]);
        for node in (1..wider).rev() {
            nodes[node] = nodes[2 * node].union(&nodes[2 * node + 1]);
        }
        self.nodes = nodes;
        Ok(())
    }

    /// A set has other points; there is room for its slot.
    pub(crate) fn set(&mut self, slot: usize, extent: Extent) {
        let mut node = self.nodes.len() / 2 + slot;
        self.nodes[node] = extent;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].union(&self.nodes[2 * node + 1]);
        }
    }

    /// All sets together.
    pub(crate) fn all(&self) -> Extent {
        self.nodes.get(1).copied().unwrap_or(Extent::EMPTY)
    }

    /// Bounds of all sets if the one in `slot`, which has room, had others.
    pub(crate) fn bounds_with(&self, slot: usize, bounds: &Bounds) -> Bounds {
        let (mut all, mut node) = (*bounds, self.nodes.len() / 2 + slot);
        while node > 1 {
            all = all.union(&self.nodes[node ^ 1].bounds);
            node /= 2;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_the_bounds_of_a_pass_over_all_sets() {
        let extent = |number: usize| {
            let at = [number, number * 7 % 5, number * 3 % 11].map(|x| x as f64 - 3.0);
            let bounds = Bounds {
                min: at,
                max: at.map(|x| x + 1.0),
            };
            let points = number + 1;
            Extent { bounds, points }
        };
        let (mut tree, mut plain) = (Extents::default(), Vec::new());
        let of = |all: &[Extent]| all.iter().fold(Extent::EMPTY, |all, one| all.union(one));
        for number in 0..37 {
            tree.make_room(number + 1).unwrap();
            plain.push(extent(number));
            tree.set(number, extent(number));
            // Some set before it shrinks to nothing, or grows.
            let other = number * 5 % (number + 1);
            plain[other] = [Extent::EMPTY, extent(99 + number)][number % 2];
            tree.set(other, plain[other]);
            let (all, expected) = (tree.all(), of(&plain));
            assert_eq!(
                (all.bounds, all.points),
                (expected.bounds, expected.points),
                "{number}"
            );
            let mut with = plain.clone();
            with[other] = extent(7);
            let found = tree.bounds_with(other, &extent(7).bounds);
            assert_eq!(found, of(&with).bounds, "{number}");
        }
    }
}

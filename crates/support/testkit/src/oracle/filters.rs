//! Pairs within the radius that are no neighbours, by definition.
//!
//! Filters are applied to every pair that a search finds, in this order: cut-offs of types,
//! exclusions, chosen targets, then the k nearest of what is left.

use std::collections::HashSet;

use super::{Neighbor, Problem, Real};

/// What keeps pairs within the radius out of lists; nothing by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters<T> {
    /// A cut-off for each pair of types, row by row; 0 for never. Empty for none.
    pub cutoffs: Vec<Vec<T>>,
    /// The type of every target and of every source, below the number of rows.
    pub types: [Vec<usize>; 2],
    /// Pairs of points of one set that are no neighbours, in either order and any image.
    pub excluded: HashSet<[u32; 2]>,
    /// Whether each target has neighbours; empty if all have.
    pub chosen: Vec<bool>,
    /// How many of the nearest are kept: by d², then index, then image.
    pub nearest: Option<usize>,
}

impl<T: Real> Problem<'_, T> {
    /// The lists of [`Problem::neighbors`] without the pairs that `filters` leave out, ascending;
    /// with the nearest in the order of their distance.
    pub fn filtered(&self, filters: &Filters<T>) -> Vec<Vec<Neighbor>> {
        self.without(filters, self.neighbors())
    }

    /// The lists of [`Problem::neighbors`] without the pairs that `filters` leave out.
    pub fn without(&self, filters: &Filters<T>, lists: Vec<Vec<Neighbor>>) -> Vec<Vec<Neighbor>> {
        let lists = lists.into_iter().enumerate();
        lists
            .map(|(target, list)| self.filtered_list(filters, target, list))
            .collect()
    }

    fn filtered_list(
        &self,
        filters: &Filters<T>,
        target: usize,
        mut list: Vec<Neighbor>,
    ) -> Vec<Neighbor> {
        if filters.chosen.get(target) == Some(&false) {
            return Vec::new();
        }
        let squared = |near: &Neighbor| {
            let [from, to] = [self.targets[target], self.sources()[near.index as usize]];
            self.distance_squared(from, to, near.image)
        };
        list.retain(|near| {
            let [targets, sources] = &filters.types;
            let cutoff = match filters.cutoffs.is_empty() {
                true => None,
                false => Some(filters.cutoffs[targets[target]][sources[near.index as usize]]),
            };
            let within = cutoff.is_none_or(|r| r != T::default() && squared(near) <= r * r);
            let pair = [target as u32, near.index];
            let [a, b] = pair;
            within && !filters.excluded.contains(&pair) && !filters.excluded.contains(&[b, a])
        });
        if let Some(k) = filters.nearest {
            list.sort_by(|a, b| squared(a).total_cmp(&squared(b)).then(a.cmp(b)));
            list.truncate(k);
        }
        list
    }
}

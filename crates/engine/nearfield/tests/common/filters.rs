//! Filters drawn for conformance cases, as the oracle and engines take them.

use super::Precise;
use nearfield::{Builder, prelude::*};
use nearfield_testkit::{
    conformance::Case,
    oracle::{self, Filters, Neighbor},
    random::Random,
};
use std::collections::HashSet;

/// Filters for a case, and how an engine is given them.
pub(crate) struct Drawn<T> {
    pub(crate) filters: Filters<T>,
    /// The types of every set.
    pub(crate) types: Vec<Vec<u16>>,
    /// CSR of the exclusions of the target set.
    pub(crate) lists: Option<(Vec<u64>, Vec<u32>)>,
    pub(crate) molecules: Option<Vec<u32>>,
}

/// Filters of the kinds in the bits of `kinds`, as far as they suit the case.
pub(crate) fn draw<T: Precise>(case: &Case<T>, kinds: u32, random: &mut Random) -> Drawn<T> {
    let (targets, sources) = (case.targets().len(), case.sources().len());
    let full = case.list == oracle::ListKind::Full;
    let mut drawn = Drawn {
        filters: Filters::default(),
        types: case.sets.iter().map(|set| vec![0; set.len()]).collect(),
        lists: None,
        molecules: None,
    };
    let filters = &mut drawn.filters;
    if kinds & 1 != 0 && case.rule == oracle::RadiusRule::Uniform {
        let types = 1 + random.below(4) as usize;
        let radius = case.radius.to_f64();
        filters.cutoffs = vec![vec![T::default(); types]; types];
        for a in 0..types {
            for b in 0..=a {
                let share = [0.0, 0.5, 0.8, 1.0][random.below(4) as usize];
                // Not below the smallest radius there may be.
                let tiny = radius < 1e-14 && share > 0.0;
                let share = if tiny { 1.0 } else { share };
                let cutoff = T::round(share * radius);
                (filters.cutoffs[a][b], filters.cutoffs[b][a]) = (cutoff, cutoff);
            }
        }
        for of_set in &mut drawn.types {
            of_set.fill_with(|| random.below(types as u64) as u16);
        }
        filters.types = [case.target, case.source]
            .map(|set| drawn.types[set].iter().map(|&of| of.into()).collect());
    }
    if kinds & 2 != 0 && case.target == case.source {
        for _ in 0..2 * targets {
            let pair = [0; 2].map(|_| random.below(targets as u64) as u32);
            // Near in number, as bonded atoms are.
            let near = (pair[0] + pair[1] % 4).min(targets as u32 - 1);
            filters.excluded.insert([pair[0], near]);
        }
        drawn.lists = Some(csr(&filters.excluded, targets));
    } else if kinds & 4 != 0 && case.target == case.source {
        let of_points: Vec<u32> = (0..targets).map(|i| (i / 3) as u32 * 7).collect();
        for i in 0..targets {
            for j in i / 3 * 3..(i / 3 * 3 + 3).min(targets) {
                filters.excluded.insert([i as u32, j as u32]);
            }
        }
        drawn.molecules = Some(of_points);
    }
    if kinds & 8 != 0 && full {
        let share = [0.02, 0.3, 0.9][random.below(3) as usize];
        filters.chosen = (0..targets).map(|_| random.unit() < share).collect();
    }
    if kinds & 16 != 0 && full {
        filters.nearest = Some(1 + random.below(1 + sources.min(40) as u64) as usize);
    }
    drawn
}

/// Symmetric lists of pairs.
pub(crate) fn csr(excluded: &HashSet<[u32; 2]>, points: usize) -> (Vec<u64>, Vec<u32>) {
    let mut of_points = vec![Vec::new(); points];
    for &[a, b] in excluded {
        of_points[a as usize].push(b);
        of_points[b as usize].push(a);
    }
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for list in &mut of_points {
        list.sort_unstable();
        list.dedup();
        indices.extend_from_slice(list);
        offsets.push(indices.len() as u64);
    }
    (offsets, indices)
}

impl<T: Precise> Drawn<T> {
    pub(crate) fn settings(&self, mut builder: Builder) -> Builder {
        if !self.filters.cutoffs.is_empty() {
            let rows = self.filters.cutoffs.iter();
            let rows = rows.map(|row| row.iter().map(|r| r.to_f64()).collect());
            let rows: Vec<Vec<f64>> = rows.collect();
            builder = builder.cutoffs(&rows);
        }
        match self.filters.nearest {
            Some(k) => builder.nearest(k as u32),
            None => builder,
        }
    }

    pub(crate) fn give(&self, engine: &mut Engine, case: &Case<T>, sets: &[PointSetId]) {
        if !self.filters.cutoffs.is_empty() {
            for (set, types) in sets.iter().zip(&self.types) {
                engine.set_types(*set, types).unwrap();
            }
        }
        let target = sets[case.target];
        if let Some((offsets, indices)) = &self.lists {
            engine.set_exclusions(target, offsets, indices).unwrap();
        }
        if let Some(molecules) = &self.molecules {
            engine.set_molecules(target, molecules).unwrap();
        }
        if !self.filters.chosen.is_empty() {
            engine
                .set_target_mask(target, &self.filters.chosen)
                .unwrap();
        }
    }
}

/// The lists with their order if that is said, else ascending.
pub(crate) fn comparable(mut lists: Vec<Vec<u32>>, ordered: bool) -> Vec<Vec<u32>> {
    if !ordered {
        lists.iter_mut().for_each(|list| list.sort_unstable());
    }
    lists
}

pub(crate) fn indices(lists: &[Vec<Neighbor>]) -> Vec<Vec<u32>> {
    let lists = lists.iter();
    lists
        .map(|list| list.iter().map(|near| near.index).collect())
        .collect()
}

//! Energies and forces in double precision, on the host.
//!
//! The engine finds the pairs, in double precision too, and returns their displacements rounded to
//! single precision. These identify the image of a pair; the displacement itself is computed again
//! from the positions. Every atom sums over its own neighbours in their order, so sums do not
//! depend on the number of threads.

use crate::{Cell, ForceField, System, cell::dot};
use nearfield::{
    Engine, Error, PointSetId,
    kernels::EnergyVirial,
    lists::{PairBatch, VerletLists},
};
use std::{
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

/// Sums over the pairs of an atom: half their energy, half their virial, and the force.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct AtomSum {
    pub(crate) energy: f64,
    pub(crate) virial: f64,
    pub(crate) force: [f64; 3],
}

impl AtomSum {
    fn add(&mut self, other: Self) {
        self.energy += other.energy;
        self.virial += other.virial;
        for (sum, force) in self.force.iter_mut().zip(other.force) {
            *sum += force;
        }
    }

    /// The same pair as the other atom sees it.
    fn reversed(self) -> Self {
        Self {
            force: self.force.map(|x| -x),
            ..self
        }
    }
}

/// Input of the sums.
pub(crate) struct Terms<'a> {
    /// In the box, as the engine has them.
    pub(crate) positions: &'a [[f64; 3]],
    pub(crate) system: &'a System,
    pub(crate) field: &'a ForceField,
}

impl Terms<'_> {
    /// A pair with this displacement, but for rounding.
    fn pair(&self, i: usize, j: usize, near: [f32; 3]) -> AtomSum {
        let cell: &Cell = self.system.cell();
        let ([x, y, z], [u, v, w]) = (self.positions[i], self.positions[j]);
        let plain = [u - x, v - y, w - z];
        let image = cell.image(std::array::from_fn(|k| f64::from(near[k]) - plain[k]));
        let d: [f64; 3] = std::array::from_fn(|k| plain[k] + image[k]);
        let square = dot(d, d);
        let r = square.sqrt();
        let [a, b] = [i, j].map(|atom| self.system.types[atom] as usize);
        let table = &self.field.lennard_jones;
        let of = table.coefficients(a, b);
        let EnergyVirial {
            mut energy,
            mut virial,
        } = if of.epsilon > 0.0 {
            of.truncated(r, table.cutoff(), table.truncation())
        } else {
            EnergyVirial::default()
        };
        if let Some(coulomb) = &self.field.coulomb {
            let [a, b] = [i, j].map(|atom| f64::from(self.system.charges[atom]));
            let of_charges = coulomb.at(r);
            energy += a * b * of_charges.energy;
            virial += a * b * of_charges.virial;
        }
        let over = virial / square;
        AtomSum {
            energy: 0.5 * energy,
            virial: 0.5 * virial,
            force: d.map(|x| -over * x),
        }
    }

    /// Sums over pairs, found by a search now.
    pub(crate) fn over_engine(
        &self,
        engine: &Engine,
        set: PointSetId,
        sums: &mut [AtomSum],
    ) -> Result<(), Error> {
        let sums = Mutex::new(sums);
        let visit = |batch: PairBatch<'_>| {
            let of_targets: Vec<_> = (batch.targets.iter().zip(batch.offsets.windows(2)))
                .map(|(&target, pairs)| {
                    let mut sum = AtomSum::default();
                    for at in pairs[0] as usize..pairs[1] as usize {
                        let near = batch.d.map(|axis| axis[at]);
                        sum.add(self.pair(target as usize, batch.sources[at] as usize, near));
                    }
                    (target, sum)
                })
                .collect();
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            for (target, sum) in of_targets {
                sums[target as usize] = sum;
            }
            ControlFlow::Continue(())
        };
        // Never left early.
        let _ = engine.for_each_batch(set, set, visit)?;
        Ok(())
    }

    /// Sums over pairs of lists, which have each once.
    pub(crate) fn over_lists(
        &self,
        lists: &VerletLists,
        set: PointSetId,
        sums: &mut [AtomSum],
    ) -> Result<(), Error> {
        sums.fill(AtomSum::default());
        lists.for_each_pair(set, set, |i, j, pair| {
            let (i, j) = (i as usize, j as usize);
            let of = self.pair(i, j, pair.d);
            sums[i].add(of);
            sums[j].add(of.reversed());
        })
    }
}

//! Sums the potentials of atoms within a cut-off by the fixed-radius engine, whose targets are the
//! grid points of a few rows at a time.

use super::atoms::Atoms;
use crate::{failure::Failure, options::Radius};
use nearfield::{
    Builder, Engine, PointSetId, Positions,
    all_pairs::{Real, SampleGrid},
    kernels::{ChargeField, ChargePotential},
};
use nearfield_grid::memory::{Shortage, collected};
use std::ops::Range;

/// An engine with the atoms as sources and the grid points of the current rows as targets.
pub(super) struct CutoffEngine {
    radius: Radius,
    engine: Engine,
    grid: PointSetId,
    atoms: PointSetId,
    charges: Vec<f32>,
    softening: f32,
}

impl CutoffEngine {
    /// The engine of `builder`, which searches within `radius`.
    pub(super) fn new(
        atoms: &Atoms,
        radius: Radius,
        builder: Builder,
        softening: f32,
    ) -> Result<Self, Failure> {
        let mut engine = builder.build()?;
        let positions = &atoms.positions;
        let set = match radius {
            Radius::Single(_) => {
                let single = positions.iter().map(|x| x.map(|x| x as f32));
                engine.add_point_set(&collected(single, "positions of atoms")?)
            }
            Radius::Double(_) => engine.add_point_set(Positions::from(positions)),
        }?;
        let charges = atoms.charges.iter().map(|&charge| charge as f32);
        let grid = engine.add_point_set(&[] as &[[f32; 3]])?;
        Ok(Self {
            radius,
            engine,
            grid,
            atoms: set,
            charges: collected(charges, "charges of atoms")?,
            softening,
        })
    }

    /// Sums potentials, and the field unless its slice is empty, at the grid points of some rows.
    pub(super) fn rows<T: Real>(
        &mut self,
        grid: &SampleGrid,
        rows: Range<usize>,
        potentials: &mut [T],
        field: &mut [[T; 3]],
    ) -> Result<(), Failure> {
        let points = rows.len().saturating_mul(grid.dims[0]);
        let short = |_| Shortage::of::<[f64; 3]>(points, "points of a grid");
        let (engine, set) = (&mut self.engine, self.grid);
        match self.radius {
            Radius::Double(_) => engine.update(set, &grid.points::<f64>(rows).map_err(short)?)?,
            Radius::Single(_) => engine.update(set, &grid.points::<f32>(rows).map_err(short)?)?,
        }
        let charges = &self.charges;
        let potential = ChargePotential {
            softening: self.softening,
        };
        let found = (self.engine.traverse(&potential, self.grid, self.atoms))
            .sources(charges)
            .run()?;
        for (to, from) in potentials.iter_mut().zip(found) {
            *to = T::of(from.into());
        }
        if !field.is_empty() {
            let kernel = ChargeField {
                softening: self.softening,
            };
            let found = (self.engine.traverse(&kernel, self.grid, self.atoms))
                .sources(charges)
                .run()?;
            for (to, from) in field.iter_mut().zip(found) {
                *to = from.map(|x| T::of(x.into()));
            }
        }
        Ok(())
    }

    /// The device it ran on, and the reason for this choice.
    pub(super) fn device(&self) -> (String, String) {
        let report = self.engine.report();
        (report.device.to_string(), report.reason)
    }
}

//! Potentials of the atoms within a cut-off, by the fixed-radius engine: the grid's points are its
//! targets, a slab at a time.

use super::atoms::Atoms;
use crate::{failure::Failure, options::Radius};
use nearfield::{
    Device, Engine, PointSetId, Positions,
    all_pairs::{Real, SampleGrid},
    kernels::{ChargeField, ChargePotential},
};
use nearfield_grid::memory::{Shortage, collected};
use std::ops::Range;

/// How potentials within a cut-off are computed.
pub(super) struct Settings {
    pub(super) radius: Radius,
    pub(super) device: Device,
    /// 0 for one per core.
    pub(super) threads: usize,
    pub(super) softening: f64,
}

/// The engine with the atoms, and grid points to come.
pub(super) struct Within {
    radius: Radius,
    engine: Engine,
    grid: PointSetId,
    atoms: PointSetId,
    charges: Vec<f32>,
    softening: f32,
}

impl Within {
    pub(super) fn new(atoms: &Atoms, settings: &Settings) -> Result<Self, Failure> {
        let short = |shortage: Shortage| nearfield::Error::from(shortage);
        let mut engine = settings
            .radius
            .builder()
            .device(settings.device)
            .threads(settings.threads)
            .build()?;
        let positions = &atoms.positions;
        let set = match settings.radius {
            Radius::Single(_) => {
                let single = positions.iter().map(|x| x.map(|x| x as f32));
                engine.add_point_set(&collected(single, "positions of atoms").map_err(short)?)
            }
            Radius::Double(_) => engine.add_point_set(Positions::from(positions)),
        }?;
        let charges = atoms.charges.iter().map(|&charge| charge as f32);
        let grid = engine.add_point_set(&[] as &[[f32; 3]])?;
        Ok(Self {
            radius: settings.radius,
            engine,
            grid,
            atoms: set,
            charges: collected(charges, "charges of atoms").map_err(short)?,
            softening: settings.softening as f32,
        })
    }

    /// Potentials, and the field if it is wanted, at the points of some rows.
    pub(super) fn rows<T: Real>(
        &mut self,
        grid: &SampleGrid,
        rows: Range<usize>,
        potentials: &mut [T],
        field: &mut [[T; 3]],
    ) -> Result<(), Failure> {
        let points = rows.len().saturating_mul(grid.dims[0]);
        let short =
            |_| nearfield::Error::from(Shortage::of::<[f64; 3]>(points, "points of a grid"));
        match self.radius {
            Radius::Double(_) => {
                let points = grid.points::<f64>(rows);
                self.engine.update(self.grid, &points.map_err(short)?)?;
            }
            Radius::Single(_) => {
                let points = grid.points::<f32>(rows);
                self.engine.update(self.grid, &points.map_err(short)?)?;
            }
        }
        let charges = &self.charges;
        let potential = ChargePotential {
            softening: self.softening,
        };
        let found = self
            .engine
            .traverse(&potential, self.grid, self.atoms)
            .sources(charges)
            .run()?;
        for (to, from) in potentials.iter_mut().zip(found) {
            *to = T::of(from.into());
        }
        if !field.is_empty() {
            let kernel = ChargeField {
                softening: self.softening,
            };
            let found = self
                .engine
                .traverse(&kernel, self.grid, self.atoms)
                .sources(charges)
                .run()?;
            for (to, from) in field.iter_mut().zip(found) {
                *to = from.map(|x| T::of(x.into()));
            }
        }
        Ok(())
    }

    /// Where it ran, and why there.
    pub(super) fn ran(&self) -> (String, String) {
        let report = self.engine.report();
        (report.device.to_string(), report.reason)
    }
}

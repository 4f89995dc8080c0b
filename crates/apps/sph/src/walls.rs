//! The wall particles, which do not move and get their pressure from the fluid.

use glam::Vec3;
use nearfield_grid::memory::{Shortage, copied, make_room};

use crate::{
    Error,
    neighborhood::{Arrays, Column},
};

/// All wall particles, in one order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walls {
    /// Metres.
    pub(crate) position: Vec<Vec3>,
    /// 0 where the fluid slips freely, 1 where friction holds it.
    pub(crate) roughness: Vec<f32>,
    /// ρ₀/ρ, from the pressure.
    pub(crate) volume: Vec<f32>,
    /// p/ρ₀, extrapolated from the fluid, m²/s².
    pub(crate) pressure: Vec<f32>,
}

impl Walls {
    /// Adds wall particles of one roughness; all of them or, without memory, none.
    pub(crate) fn add(&mut self, positions: &[Vec3], roughness: f32) -> Result<(), Shortage> {
        const WHAT: &str = "wall particles";
        let len = self.len() + positions.len();
        make_room(&mut self.position, len, WHAT)?;
        make_room(&mut self.roughness, len, WHAT)?;
        make_room(&mut self.volume, len, WHAT)?;
        make_room(&mut self.pressure, len, WHAT)?;
        self.position.extend_from_slice(positions);
        self.roughness.resize(len, roughness);
        self.volume.resize(len, 1.0);
        self.pressure.resize(len, 0.0);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.position.len()
    }

    /// A copy, if there is memory for one.
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        const WHAT: &str = "a copy of the walls";
        Ok(Self {
            position: copied(&self.position, WHAT)?,
            roughness: copied(&self.roughness, WHAT)?,
            volume: copied(&self.volume, WHAT)?,
            pressure: copied(&self.pressure, WHAT)?,
        })
    }

    /// All arrays, as a neighbourhood takes them.
    pub(crate) fn arrays(&mut self) -> Arrays<'_> {
        Arrays {
            positions: &mut self.position,
            columns: vec![
                Column::Numbers(&mut self.roughness),
                Column::Numbers(&mut self.volume),
                Column::Numbers(&mut self.pressure),
            ],
        }
    }

    /// The fields of [`Still`](crate::passes::Still).
    pub(crate) fn still(&self) -> (&[f32], &[f32], &[f32]) {
        (&self.volume, &self.pressure, &self.roughness)
    }
}

//! The particles of a rank on the host: downloaded when they are asked for, and at most once
//! between two steps.

use std::sync::PoisonError;

use glam::Vec3;

use super::{
    DeviceBody, DeviceNeighborhood,
    arrays::{PARTICLES, id_of},
};
use crate::{Error, matter::Matter, particles::Particles, walls::Walls};

impl<N: DeviceNeighborhood> DeviceBody<N> {
    /// The particles; as they were last seen if the GPU has failed, which the next step reports.
    pub(super) fn seen(&self) -> &Matter {
        self.seen.get_or_init(|| match self.look() {
            Ok(seen) => seen,
            Err(error) => {
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                *fault = Some(error);
                self.last.clone()
            }
        })
    }

    fn look(&self) -> Result<Matter, Error> {
        let (arrays, count, walls) = (&self.arrays, self.count, self.walls);
        let near = self.near();
        let ids = near.ids()?;
        if ids.len() < 2 * count {
            return Err(Error::elsewhere("particles are on their way between ranks"));
        }
        let moving = self.copy(PARTICLES, &arrays.moving.slice(0..4 * count))?;
        let still = self.copy(PARTICLES, &arrays.still.slice(0..3 * walls))?;
        let [moving, still] = [moving.chunks_exact(4), still.chunks_exact(3)];
        Ok(Matter {
            fluid: Particles {
                position: vectors(&self.copy(PARTICLES, &arrays.position.slice(0..3 * count))?),
                velocity: moving
                    .clone()
                    .map(|one| Vec3::new(one[0], one[1], one[2]))
                    .collect(),
                compression: moving.map(|one| one[3]).collect(),
                id: {
                    let ids = self.copy(PARTICLES, &ids.slice(0..2 * count))?;
                    ids.as_chunks()
                        .0
                        .iter()
                        .map(|&words| id_of(words))
                        .collect()
                },
            },
            walls: Walls {
                position: vectors(
                    &self.copy(PARTICLES, &arrays.wall_position.slice(0..3 * walls))?,
                ),
                volume: still.clone().map(|one| one[0]).collect(),
                pressure: still.clone().map(|one| one[1]).collect(),
                roughness: still.map(|one| one[2]).collect(),
            },
            forces: None,
        })
    }
}

fn vectors(values: &[f32]) -> Vec<Vec3> {
    values.chunks_exact(3).map(Vec3::from_slice).collect()
}

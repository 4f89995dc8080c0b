//! Probes of a fluid on a GPU: their places on the device, and their sums over the particles.

use nearfield::device::{DeviceBuffer, copies::Queue};
use nearfield_grid::memory::{collected, filled};

use super::{
    arrays::{Arrays, zeros},
    kernels::{Kernels, MAX_BLOCKS, Meter, PROBE_SLOTS, Probed},
};
use crate::{
    Config, Error,
    probes::{ProbeSums, Probes},
};

/// Arrays of the device for the probes that were read last.
pub(super) struct ProbeArrays {
    /// Whose places are there.
    of: Probes,
    /// Four numbers a probe: a point and 0, or the middle of a column, 0 and its reach.
    places: DeviceBuffer<f32>,
    partials: DeviceBuffer<f64>,
    totals: DeviceBuffer<f64>,
}

impl ProbeArrays {
    /// Brings the places of at least one probe to the device.
    fn of(queue: &Queue, probes: &Probes) -> Result<Self, Error> {
        let points = probes.points.iter();
        let points = points.map(|at| [at.x as f32, at.y as f32, at.z as f32, 0.0]);
        let columns = probes.columns.iter().map(|column| {
            let middle = column.middle.as_vec2();
            [middle.x, middle.y, 0.0, column.reach as f32]
        });
        let places = collected(points.chain(columns), "places of probes")?;
        let slots = PROBE_SLOTS * probes.len();
        Ok(Self {
            of: probes.clone(),
            places: queue.array("places of probes", places.as_flattened())?,
            partials: zeros(queue, MAX_BLOCKS * slots)?,
            totals: zeros(queue, slots)?,
        })
    }

    /// The sums of `probes` over `count` particles; waits for them. `kept` holds the arrays of the
    /// probes that were read last, which are used again as long as the probes are the same.
    pub(super) fn sums(
        kept: &mut Option<Self>,
        kernels: &Kernels,
        fluid: (&Arrays, usize),
        config: &Config,
        probes: &Probes,
    ) -> Result<Vec<ProbeSums>, Error> {
        if probes.len() == 0 {
            return Ok(Vec::new());
        }
        let queue = kernels.queue();
        let arrays = match kept.take() {
            Some(arrays) if arrays.of == *probes => kept.insert(arrays),
            _ => kept.insert(Self::of(queue, probes)?),
        };
        let fluid = Probed {
            position: &fluid.0.position,
            moving: &fluid.0.moving,
            count: fluid.1,
            places: &arrays.places,
            probes: probes.len(),
            meter: Meter::of(config, probes.points.len()),
        };
        let totals = &mut arrays.totals.as_view_mut();
        kernels.probe(fluid, &mut arrays.partials, totals)?;
        let mut found = filled(PROBE_SLOTS * probes.len(), 0.0, "sums of probes")?;
        queue.copy_to_host("sums of probes", &arrays.totals.as_view(), &mut found)?;
        Ok(collected(
            found.as_chunks().0.iter().copied(),
            "sums of probes",
        )?)
    }
}

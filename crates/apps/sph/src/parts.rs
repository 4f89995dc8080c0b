//! Loops over particles on the workers of a neighbourhood, with sums over them.
//!
//! Particles are processed in parts of [`AT_A_TIME`]. A part is summed in the order of its
//! particles, and the parts are added in their order.
//!
//! **Invariant:** sums do not depend on the number of threads.

use std::ops::Range;

use glam::Vec3;
use nearfield_grid::parallel::PoolLoops;
use rayon::prelude::*;

use crate::{Neighborhood, Tait, neighborhood::Accumulator, state::MAX_STRETCHED};

/// Particles of a part.
pub(crate) const AT_A_TIME: usize = 1 << 12;

/// The results of `part` for all parts of `len` particles, in their order.
pub(crate) fn of_all<N: Neighborhood, R: Send>(
    near: &N,
    len: usize,
    part: impl Fn(Range<usize>) -> R + Sync + Send,
) -> Vec<R> {
    near.on_workers(len, || {
        let parts = (0..len.div_ceil(AT_A_TIME)).into_par_iter();
        let range = |number: usize| {
            let begin = number * AT_A_TIME;
            begin..(begin + AT_A_TIME).min(len)
        };
        parts.map(|number| part(range(number))).listed()
    })
}

/// Adds up the sums of all parts.
pub(crate) fn added<S: Accumulator, const N: usize>(
    parts: impl IntoIterator<Item = [S; N]>,
) -> [S; N] {
    let mut sums = blank();
    for part in parts {
        for (sum, part) in sums.iter_mut().zip(part) {
            S::merge(sum, part);
        }
    }
    sums
}

/// Sums that nothing has been added to.
pub(crate) fn blank<S: Accumulator, const N: usize>() -> [S; N] {
    std::array::from_fn(|_| S::default())
}

/// A kick of the particles of a part.
pub(crate) struct KickOfPart<S> {
    /// Heating by viscosity and by friction, the work of the walls, and their accelerations along
    /// each axis.
    pub(crate) sums: [S; 6],
    /// Squares of the largest speed and acceleration.
    pub(crate) largest: [f32; 2],
}

impl<S: Accumulator> KickOfPart<S> {
    /// Changes the velocities of a part over `step` seconds, by gravity and the forces of the fluid
    /// and of the walls.
    pub(crate) fn make(
        velocity: &mut [Vec3],
        [fluid, walls]: [&[(Vec3, f32)]; 2],
        gravity: Vec3,
        step: f32,
    ) -> Self {
        let [mut speed, mut acceleration] = [0.0f32; 2];
        let [mut viscous, mut rubbed, mut work, mut x, mut y, mut z] = blank::<S, 6>();
        for (velocity, (fluid, wall)) in velocity.iter_mut().zip(fluid.iter().zip(walls)) {
            let rate = gravity + fluid.0 + wall.0;
            let change = step * rate;
            viscous.add(f64::from(fluid.1));
            rubbed.add(f64::from(wall.1));
            work.add(f64::from(wall.0.dot(*velocity + 0.5 * change)));
            x.add(f64::from(wall.0.x));
            y.add(f64::from(wall.0.y));
            z.add(f64::from(wall.0.z));
            *velocity += change;
            speed = speed.max(velocity.length_squared());
            acceleration = acceleration.max(rate.length_squared());
        }
        Self {
            sums: [viscous, rubbed, work, x, y, z],
            largest: [speed, acceleration],
        }
    }
}

/// Changes the compressions of a part over `step` seconds by the rates that fluid and walls give.
/// Returns the sums of what diffusion lost and of the work of the walls.
pub(crate) fn compress<S: Accumulator>(
    compression: &mut [f32],
    (fluid, walls): (&[(f32, f32)], &[f32]),
    water: Tait,
    step: f32,
) -> [S; 2] {
    let [mut lost, mut work] = blank::<S, 2>();
    let rates = fluid.iter().zip(walls);
    for (s, (&(divergence, diffusion), &wall)) in compression.iter_mut().zip(rates) {
        let change = step * ((1.0 + *s) * (divergence + wall) + diffusion);
        let middle = *s + 0.5 * change;
        let pressure = water.specific_pressure(middle) / (1.0 + middle);
        lost.add(-f64::from(pressure * diffusion / (1.0 + middle)));
        work.add(f64::from(pressure * wall));
        *s = (*s + change).max(MAX_STRETCHED);
    }
    [lost, work]
}

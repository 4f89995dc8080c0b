//! Forces between points that depend on their distance alone, and the kernels made of them.
//!
//! A potential is written once, as energy and force of a pair at a squared distance;
//! [`Interactions`] and [`Forces`] make pair kernels of it that evaluate every pair once for both
//! points, and [`Sum`] adds two, such as Lennard-Jones and Coulomb.
//!
//! The force of a pair is F = −(dU/dr)·r̂, which is (−(dU/dr)/r)·d with the displacement d. The
//! factor in brackets is returned, so no kernel divides by r or normalises a vector. Energy and
//! virial of a pair are halved per point, so sums over all points are sums over all pairs.
//!
//! On a GPU a kernel is compiled with the text of its potential in it, which
//! [`pair_kernel`](macro@crate::pair_kernel) translates.

use crate::{
    Channels, Cuda, Pair, PairKernel,
    device::{Device, DeviceValue, Method},
    pair_fn, pair_kernel,
};

/// Energy and force of a pair, as a [`PairPotential`] returns them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Channels)]
#[channels(crate = crate)]
pub struct EnergyForce {
    /// Energy U.
    pub energy: f32,
    /// −(dU/dr)/r, the factor of the displacement in the force: positive where points repel.
    pub force_over_r: f32,
}

/// Energy and virial of a pair in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EnergyVirial {
    /// Energy U.
    pub energy: f64,
    /// Virial −r·dU/dr, which is the force times the distance: positive where points repel.
    pub virial: f64,
}

/// A pair potential U(r): the same whichever point of a pair asks.
///
/// ```
/// use nearfield_pairs::{EnergyForce, Forces, PairPotential, cuda_source, pair_kernel};
///
/// /// ½k·(r − d)² for r below d, the diameter.
/// struct SoftSphere {
///     stiffness: f32,
///     diameter: f32,
/// }
///
/// #[pair_kernel(crate = nearfield_pairs)] // #[nearfield::pair_kernel] elsewhere
/// impl PairPotential for SoftSphere {
///     type Point = ();
///
///     #[inline(always)]
///     fn evaluate(&self, d2: f32, _: (), _: ()) -> EnergyForce {
///         let r = d2.sqrt();
///         let overlap = (self.diameter - r).max(0.0);
///         EnergyForce {
///             energy: 0.5 * self.stiffness * overlap * overlap,
///             force_over_r: self.stiffness * overlap / r.max(1e-12),
///         }
///     }
/// }
///
/// let forces = Forces(SoftSphere { stiffness: 10.0, diameter: 1.0 });
/// // engine.traverse(&forces, grains, grains).run() adds up the forces, on a GPU too.
/// assert!(cuda_source(&forces).is_some());
/// ```
pub trait PairPotential: Sync {
    /// The values read per point, such as a charge.
    type Point: Channels + DeviceValue;

    /// Energy and force of a pair at squared distance `d2`.
    ///
    /// Must not change when `a` and `b` change places. Mark it `#[inline(always)]` and write it as
    /// [`PairKernel::pair`] asks: it is evaluated for candidates beyond the radius too.
    fn evaluate(&self, d2: f32, a: Self::Point, b: Self::Point) -> EnergyForce;

    /// The same function as CUDA C++; `None`, the default, leaves it to the CPU backend.
    /// [`pair_kernel`](macro@crate::pair_kernel) translates it from [`evaluate`](Self::evaluate). A
    /// text defines
    ///
    /// ```cuda
    /// void NAME(const float* uniform, float d2, const float* a, const float* b,
    ///           float& energy, float& over);
    /// ```
    ///
    /// under the name that [`Cuda::function`] says, with all names in it its own: texts of several
    /// potentials may be compiled together.
    fn cuda(&self) -> Option<Cuda> {
        None
    }

    /// Adds the text to that of a kernel: `pair_kernel` writes this method, and texts by hand are
    /// called through it.
    #[doc(hidden)]
    fn __nearfield_device_evaluate(&self, device: &mut Device) -> Method {
        device.by_hand::<EnergyForce, Self::Point>(self.cuda())
    }
}

impl<P: PairPotential> PairPotential for &P {
    type Point = P::Point;

    #[inline(always)]
    fn evaluate(&self, d2: f32, a: Self::Point, b: Self::Point) -> EnergyForce {
        P::evaluate(self, d2, a, b)
    }

    fn cuda(&self) -> Option<Cuda> {
        P::cuda(self)
    }

    fn __nearfield_device_evaluate(&self, device: &mut Device) -> Method {
        P::__nearfield_device_evaluate(self, device)
    }
}

/// Two potentials added up. Points have the channels of the first, then those of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum<A, B>(pub A, pub B);

#[pair_kernel(crate = crate)]
impl<A: PairPotential, B: PairPotential> PairPotential for Sum<A, B> {
    type Point = (A::Point, B::Point);

    #[inline(always)]
    fn evaluate(&self, d2: f32, a: Self::Point, b: Self::Point) -> EnergyForce {
        let first = self.0.evaluate(d2, a.0, b.0);
        let second = self.1.evaluate(d2, a.1, b.1);
        EnergyForce {
            energy: first.energy + second.energy,
            force_over_r: first.force_over_r + second.force_over_r,
        }
    }
}

/// Energy, virial and force on every point.
///
/// Output: half the energy of each of its pairs, half their virial −r·dU/dr, and the force (3).
/// Sums over all points are thus those over all pairs, each counted once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interactions<P>(pub P);

#[pair_kernel(crate = crate)]
impl<P: PairPotential> PairKernel for Interactions<P> {
    type Target = P::Point;
    type Source = P::Point;
    type Output = (f32, f32, [f32; 3]);

    #[inline(always)]
    fn pair(&self, pair: Pair, target: P::Point, source: P::Point) -> Self::Output {
        let EnergyForce {
            energy,
            force_over_r,
        } = self.0.evaluate(pair.d2, target, source);
        let virial = 0.5 * force_over_r * pair.d2;
        (0.5 * energy, virial, force(pair, force_over_r))
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        (target, _): (P::Point, P::Point),
        (_, source): (P::Point, P::Point),
    ) -> (Self::Output, Self::Output) {
        let (energy, virial, [x, y, z]) = self.pair(pair, target, source);
        ((energy, virial, [x, y, z]), (energy, virial, [-x, -y, -z]))
    }
}

/// The force on every point, for steps that ask for nothing else.
///
/// Output: the force (3), the same bits as that of [`Interactions`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forces<P>(pub P);

#[pair_kernel(crate = crate)]
impl<P: PairPotential> PairKernel for Forces<P> {
    type Target = P::Point;
    type Source = P::Point;
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: P::Point, source: P::Point) -> [f32; 3] {
        let found = self.0.evaluate(pair.d2, target, source);
        force(pair, found.force_over_r)
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        (target, _): (P::Point, P::Point),
        (_, source): (P::Point, P::Point),
    ) -> ([f32; 3], [f32; 3]) {
        let [x, y, z] = self.pair(pair, target, source);
        ([x, y, z], [-x, -y, -z])
    }
}

/// The force on the target: away from the source where they repel.
#[pair_fn(crate = crate)]
#[inline(always)]
fn force(pair: Pair, force_over_r: f32) -> [f32; 3] {
    pair.d.map(|component| -force_over_r * component)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PowerLaw;

    /// Whether `symmetric` gives either point what `pair` gives it.
    fn gives_what_pair_gives<K>(kernel: &K)
    where
        K: PairKernel<Target = (), Source = (), Output: PartialEq + std::fmt::Debug>,
    {
        let d = [0.3, -0.4, 0.5];
        let pair = Pair { d, d2: 0.5 };
        let alone = (
            kernel.pair(pair, (), ()),
            kernel.pair(pair.reversed(), (), ()),
        );
        assert_ne!(alone.0, alone.1);
        assert_eq!(kernel.symmetric(pair, ((), ()), ((), ())), alone);
    }

    #[test]
    fn both_points_at_once_get_what_they_get_alone() {
        let power = PowerLaw::new(1.0, 1.0, 12, 0.1).unwrap();
        gives_what_pair_gives(&Interactions(power));
        gives_what_pair_gives(&Forces(power));
    }
}

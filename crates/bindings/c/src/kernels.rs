//! The named pair kernels.

use crate::{
    args::{self, Array, FieldArray, check_len, choice},
    call,
    engine::{ENGINES, NfEngine},
    status::{Failure, NfStatus},
};
use nearfield::{
    PairKernel, Traversal,
    kernels::{Dimensions, Field, SphDensity, SphForce, WendlandC2},
};

/// Use of a kernel's results.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfDeliver {
    /// They overwrite what was there.
    Write = 0,
    /// They are added to it: the way to sum over several source sets.
    Add = 1,
}

/// Parameters of nf_sph_force().
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfSphForce {
    /// Support radius of the smoothing kernel, at most the search radius.
    pub support: f32,
    /// Viscosity coefficient alpha times the speed of sound.
    pub alpha_c: f32,
    /// 3, or 2 for points in a plane, which the smoothing kernel is normalised for.
    pub dimensions: u32,
}

/// Fields of a point set for nf_sph_force(), one value (of the velocity three) per point.
///
/// A stride is the bytes from one point's values to the next point's, a multiple of 4: the size of
/// your structure where they lie in one, 0 where the values of all points lie one behind the other.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfSphPoints {
    /// Number of points.
    pub points: usize,
    /// Velocity, three numbers per point.
    pub velocity: *const f32,
    /// Density.
    pub density: *const f32,
    /// Pressure.
    pub pressure: *const f32,
    /// Mass; not read of targets.
    pub mass: *const f32,
    /// Bytes from one velocity to the next, or 0.
    pub velocity_stride: usize,
    /// Bytes from one density to the next, or 0.
    pub density_stride: usize,
    /// Bytes from one pressure to the next, or 0.
    pub pressure_stride: usize,
    /// Bytes from one mass to the next, or 0.
    pub mass_stride: usize,
}

/// Number of neighbours in `sources` of every point of `targets`; no lists are written or needed.
///
/// # Safety
/// `counts` points to `len` numbers; `len` is the number of targets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_count_neighbors(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    counts: *mut u32,
    len: usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        check_len("counts", len, engine.points(targets)?)?;
        // SAFETY: the caller guarantees that `counts` is null or has room for that many elements,
        // for this call alone.
        let counts = unsafe { Array::new(counts, len, "counts").write()? };
        counts.copy_from_slice(&engine.count_neighbors(targets, sources)?);
        Ok(())
    })
}

/// Mass density of every target: the sum of m W(d) over its neighbours in `sources`, its own m W(0)
/// left out, with the C2 kernel of Wendland (1995, DOI 10.1007/BF02123482).
///
/// The kernel is normalised for `dimensions`: 3, or 2 for points in a plane, whose densities are
/// masses per area. `deliver` is an nf_deliver. A support larger than the search radius is refused.
/// The kernel computes in float, also in an engine in f64, which rounds distances for it after it
/// has decided pairs in double.
///
/// `mass_stride` is the bytes from one mass to the next, a multiple of 4; 0 where they lie one
/// behind the other.
///
/// # Safety
/// `mass` points to `masses` numbers, one per source, at these distances, `density` to `len`
/// numbers, one per target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_sph_density(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    support: f32,
    dimensions: u32,
    mass: *const f32,
    masses: usize,
    mass_stride: usize,
    density: *mut f32,
    len: usize,
    deliver: u32,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let kernel = SphDensity {
            kernel: wendland(support, dimensions)?,
        };
        let density = Array::new(density, len, "density");
        let mass = FieldArray {
            first: mass,
            points: masses,
            channels: 1,
            stride: mass_stride,
            what: "mass",
        };
        // SAFETY: the caller guarantees that `mass` is null or holds that many elements at these
        // distances.
        let mass = unsafe { mass.read_beside(&density)? };
        let traversal = engine
            .traverse(
                &kernel,
                engine.point_set(targets)?,
                engine.point_set(sources)?,
            )
            .sources(mass);
        // SAFETY: the caller guarantees that `density` is null or has room for that many elements,
        // for this call alone.
        unsafe { run(traversal, density, deliver) }
    })
}

/// Acceleration of every target by the pressure and the artificial viscosity of its neighbours in
/// `sources` (Monaghan 1992, DOI 10.1146/annurev.aa.30.090192.002551, eq. 3.3 and 4.1).
///
/// Accelerations have three numbers also for points in a plane. `deliver` is an nf_deliver. A
/// support larger than the search radius is refused. The kernel computes in float, as that of
/// nf_sph_density().
///
/// # Safety
/// The fields hold as many points as they say, `acceleration` three numbers for each of `len`
/// targets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_sph_force(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    parameters: *const NfSphForce,
    target_fields: *const NfSphPoints,
    source_fields: *const NfSphPoints,
    acceleration: *mut f32,
    len: usize,
    deliver: u32,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that the three pointers are null or point to readable
        // structures.
        let (parameters, of_targets, of_sources) = unsafe {
            (
                args::one(parameters, "parameters")?,
                args::one(target_fields, "the targets' fields")?,
                args::one(source_fields, "the sources' fields")?,
            )
        };
        let kernel = SphForce {
            kernel: wendland(parameters.support, parameters.dimensions)?,
            h: 0.5 * parameters.support,
            alpha_c: parameters.alpha_c,
        };
        let acceleration = Array::new(acceleration.cast::<[f32; 3]>(), len, "acceleration");
        // SAFETY: the caller guarantees that all fields are null or as long as they say.
        let (of_targets, [velocity, density, pressure], mass) = unsafe {
            (
                of_targets.fields(&acceleration)?,
                of_sources.fields(&acceleration)?,
                of_sources.mass().read_beside(&acceleration)?,
            )
        };
        let traversal = engine
            .traverse(
                &kernel,
                engine.point_set(targets)?,
                engine.point_set(sources)?,
            )
            .targets(&of_targets[..])
            .sources(&[velocity, density, pressure, mass][..]);
        // SAFETY: the caller guarantees that `acceleration` is null or has room for that many
        // elements, for this call alone.
        unsafe { run(traversal, acceleration, deliver) }
    })
}

impl NfSphPoints {
    /// Velocity, density and pressure, for a call that writes `results`.
    ///
    /// # Safety
    /// The arrays have as many elements as the structure says.
    unsafe fn fields<'a>(&self, results: &Array<'_, [f32; 3]>) -> Result<[Field<'a>; 3], Failure> {
        let velocity = self.field(self.velocity, 3, self.velocity_stride, "velocity");
        let density = self.field(self.density, 1, self.density_stride, "density");
        let pressure = self.field(self.pressure, 1, self.pressure_stride, "pressure");
        // SAFETY: the caller guarantees that the arrays have `points` elements at these distances.
        unsafe {
            Ok([
                velocity.read_beside(results)?,
                density.read_beside(results)?,
                pressure.read_beside(results)?,
            ])
        }
    }

    fn mass(&self) -> FieldArray<'static> {
        self.field(self.mass, 1, self.mass_stride, "mass")
    }

    fn field(
        &self,
        first: *const f32,
        channels: usize,
        stride: usize,
        what: &'static str,
    ) -> FieldArray<'static> {
        FieldArray {
            first,
            points: self.points,
            channels,
            stride,
            what,
        }
    }
}

/// The C2 kernel of Wendland, normalised for 2 or 3 dimensions.
pub(crate) fn wendland(support: f32, dimensions: u32) -> Result<WendlandC2, Failure> {
    let dimensions = match dimensions {
        2 => Dimensions::Two,
        3 => Dimensions::Three,
        other => {
            return Err(args::bad(format!(
                "dimensions is {other}: it must be 2 or 3"
            )));
        }
    };
    if support.is_finite() && support > 0.0 {
        Ok(WendlandC2::with_support(support).in_dimensions(dimensions))
    } else {
        Err(args::bad(format!(
            "the support is {support}: it must be finite and positive"
        )))
    }
}

/// # Safety
/// As for [`Array::write`].
unsafe fn run<K: PairKernel>(
    traversal: Traversal<'_, K>,
    results: Array<'_, K::Output>,
    deliver: u32,
) -> Result<(), Failure> {
    let add = choice("deliver", deliver, 2)? == 1;
    // SAFETY: `write` needs exactly what the caller of this function guarantees.
    let results = unsafe { results.write()? };
    if add {
        Ok(traversal.add_into(results)?)
    } else {
        Ok(traversal.run_into(results)?)
    }
}

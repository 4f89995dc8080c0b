//! The named pair kernels.

use crate::{
    args::{self, Extent},
    call,
    engine::{ENGINES, NfEngine, check_len},
    options::choice,
    status::{Failure, NfStatus},
};
use nearfield::{
    Engine, PairKernel,
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
}

/// Fields of a point set for nf_sph_force(), one value (of the velocity three) per point.
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
        check_len("counts", len, engine.points(engine.point_set(targets)?)?)?;
        // SAFETY: the caller guarantees that `counts` is null or has room for that many elements,
        // for this call alone.
        let counts = unsafe { args::results(counts, len, "counts")? };
        counts.copy_from_slice(
            &engine.count_neighbors(engine.point_set(targets)?, engine.point_set(sources)?)?,
        );
        Ok(())
    })
}

/// Mass density of every target: the sum of m W(d) over its neighbours in `sources`, its own m W(0)
/// left out, with the C2 kernel of Wendland (1995, DOI 10.1007/BF02123482) in three dimensions.
///
/// `deliver` is an nf_deliver. A support larger than the search radius is refused.
///
/// # Safety
/// `mass` points to `masses` numbers, one per source, `density` to `len` numbers, one per target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_sph_density(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    support: f32,
    mass: *const f32,
    masses: usize,
    density: *mut f32,
    len: usize,
    deliver: u32,
) -> NfStatus {
    let kernel = wendland(support, Dimensions::Three);
    let (sets, fields) = ([targets, sources], (mass, masses));
    // SAFETY: `sph_density` needs exactly what the caller of this function guarantees.
    unsafe { sph_density(engine, sets, kernel, fields, (density, len), deliver) }
}

/// The same for points in a plane: masses per area, with the kernel normalised for two dimensions.
///
/// # Safety
/// As for nf_sph_density().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_sph_density_2d(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    support: f32,
    mass: *const f32,
    masses: usize,
    density: *mut f32,
    len: usize,
    deliver: u32,
) -> NfStatus {
    let kernel = wendland(support, Dimensions::Two);
    let (sets, fields) = ([targets, sources], (mass, masses));
    // SAFETY: `sph_density` needs exactly what the caller of this function guarantees.
    unsafe { sph_density(engine, sets, kernel, fields, (density, len), deliver) }
}

/// # Safety
/// As for [`nf_sph_density`].
unsafe fn sph_density(
    engine: *const NfEngine,
    sets: [u32; 2],
    kernel: Result<WendlandC2, Failure>,
    (mass, masses): (*const f32, usize),
    (density, len): (*mut f32, usize),
    deliver: u32,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        Extent::of(density, len, "density").apart_from(Extent::of(mass, masses, "mass"))?;
        // SAFETY: the caller guarantees that `mass` is null or holds that many elements.
        let mass = unsafe { args::array(mass, masses, "mass")? };
        // SAFETY: the caller guarantees that `density` is null or has room for that many elements,
        // for this call alone.
        let density = unsafe { args::results(density, len, "density")? };
        let kernel = SphDensity { kernel: kernel? };
        let fields = (&[][..], &[Field::from(mass)][..]);
        run(engine, &kernel, sets, fields, density, deliver)
    })
}

/// Acceleration of every target by the pressure and the artificial viscosity of its neighbours in
/// `sources` (Monaghan 1992, DOI 10.1146/annurev.aa.30.090192.002551, eq. 3.3 and 4.1), with the
/// kernel of three dimensions.
///
/// `deliver` is an nf_deliver. A support larger than the search radius is refused.
///
/// # Safety
/// The fields hold so many points as they say, `acceleration` three numbers for each of `len`
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
    let (sets, fields) = ([targets, sources], [target_fields, source_fields]);
    let (kernel, results) = ((parameters, Dimensions::Three), (acceleration, len));
    // SAFETY: `sph_force` needs exactly what the caller of this function guarantees.
    unsafe { sph_force(engine, sets, kernel, fields, results, deliver) }
}

/// The same for points in a plane, with the kernel normalised for two dimensions; accelerations
/// have three numbers all the same.
///
/// # Safety
/// As for nf_sph_force().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_sph_force_2d(
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
    let (sets, fields) = ([targets, sources], [target_fields, source_fields]);
    let (kernel, results) = ((parameters, Dimensions::Two), (acceleration, len));
    // SAFETY: `sph_force` needs exactly what the caller of this function guarantees.
    unsafe { sph_force(engine, sets, kernel, fields, results, deliver) }
}

/// # Safety
/// As for [`nf_sph_force`].
unsafe fn sph_force(
    engine: *const NfEngine,
    sets: [u32; 2],
    (parameters, dimensions): (*const NfSphForce, Dimensions),
    [target_fields, source_fields]: [*const NfSphPoints; 2],
    (acceleration, len): (*mut f32, usize),
    deliver: u32,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that `parameters` is null or points to a readable
        // structure.
        let parameters = unsafe { args::one(parameters, "parameters")? };
        let kernel = SphForce {
            kernel: wendland(parameters.support, dimensions)?,
            h: 0.5 * parameters.support,
            alpha_c: parameters.alpha_c,
        };
        // SAFETY: the caller guarantees that `target_fields` is null or points to a readable
        // structure.
        let of_targets = unsafe { args::one(target_fields, "the targets' fields")? };
        // SAFETY: the caller guarantees that `source_fields` is null or points to a readable
        // structure.
        let of_sources = unsafe { args::one(source_fields, "the sources' fields")? };
        let results = Extent::of(acceleration.cast::<[f32; 3]>(), len, "acceleration");
        for fields in [of_targets, of_sources] {
            for field in fields.extents() {
                results.apart_from(field)?;
            }
        }
        results.apart_from(Extent::of(of_sources.mass, of_sources.points, "mass"))?;
        // SAFETY: `fields` needs exactly what the caller of this function guarantees.
        let of_targets = unsafe { of_targets.fields()? };
        // SAFETY: `fields` needs exactly what the caller of this function guarantees.
        let [velocity, density, pressure] = unsafe { of_sources.fields()? };
        // SAFETY: the caller guarantees that `of_sources.mass` is null or holds that many elements.
        let mass = unsafe { args::array(of_sources.mass, of_sources.points, "mass")? };
        let sources_all = [velocity, density, pressure, Field::from(mass)];
        // SAFETY: the caller guarantees that `acceleration` is null or has room for that many
        // elements, for this call alone.
        let results =
            unsafe { args::results(acceleration.cast::<[f32; 3]>(), len, "acceleration")? };
        let fields = (&of_targets[..], &sources_all[..]);
        run(engine, &kernel, sets, fields, results, deliver)
    })
}

impl NfSphPoints {
    /// Where velocity, density and pressure lie.
    fn extents(&self) -> [Extent<'static>; 3] {
        let points = self.points;
        [
            Extent::of(self.velocity.cast::<[f32; 3]>(), points, "velocity"),
            Extent::of(self.density, points, "density"),
            Extent::of(self.pressure, points, "pressure"),
        ]
    }

    /// Velocity, density and pressure.
    ///
    /// # Safety
    /// The arrays have so many elements as the structure says.
    unsafe fn fields<'a>(&self) -> Result<[Field<'a>; 3], Failure> {
        let points = self.points;
        // SAFETY: the caller guarantees that `velocity` and the other fields have `points`
        // elements.
        unsafe {
            let velocity = args::array(self.velocity.cast::<[f32; 3]>(), points, "velocity")?;
            let density = args::array(self.density, points, "density")?;
            let pressure = args::array(self.pressure, points, "pressure")?;
            Ok([velocity.into(), density.into(), pressure.into()])
        }
    }
}

pub(crate) fn wendland(support: f32, dimensions: Dimensions) -> Result<WendlandC2, Failure> {
    match support.is_finite() && support > 0.0 {
        true => Ok(WendlandC2::with_support(support).in_dimensions(dimensions)),
        false => Err(args::bad(format!(
            "the support is {support}: it must be finite and positive"
        ))),
    }
}

fn run<K: PairKernel>(
    engine: &Engine,
    kernel: &K,
    [targets, sources]: [u32; 2],
    (target_fields, source_fields): (&[Field<'_>], &[Field<'_>]),
    results: &mut [K::Output],
    deliver: u32,
) -> Result<(), Failure> {
    let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
    let traversal = engine
        .traverse(kernel, targets, sources)
        .targets(target_fields)
        .sources(source_fields);
    match choice("deliver", deliver, 2)? {
        0 => traversal.run_into(results)?,
        _ => traversal.add_into(results)?,
    }
    Ok(())
}

//! The settings of an engine.

use crate::{
    args::{self, Array, MAX_NAME, bad, choice},
    call,
    status::{Failure, NfStatus},
};
use nearfield::{
    Builder, Device, Engine, ListKind, ListOrder, Precision, RadiusRule, balance::Strategy,
};
use std::{ffi::c_char, ptr};

/// The precision that coordinates are taken and pairs are decided in.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfPrecision {
    /// float
    F32 = 0,
    /// double; not with a hybrid or emulated device.
    F64 = 1,
}

/// Which pairs of a set with itself stand in lists.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfListKind {
    /// Every pair in the lists of both points.
    Full = 0,
    /// Every pair once: in the list of the smaller index, of a point's own images those with a
    /// lexicographically positive image vector.
    Half = 1,
}

/// The order inside a list.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfListOrder {
    /// As found: the same for every number of threads, but not for every device.
    Unspecified = 0,
    /// By index: the same bytes everywhere.
    Ascending = 1,
}

/// Whose radius decides whether two points are neighbours.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfRadiusRule {
    /// The engine's, for all points.
    Uniform = 0,
    /// The target's own, which nf_set_radii() takes.
    Gather = 1,
    /// The source's own.
    Scatter = 2,
    /// The larger of the two.
    Symmetric = 3,
}

/// Largest number of types.
const MAX_TYPES: u32 = 1024;

/// Settings of an engine; nf_options_init() sets all but the radius, which has no default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfOptions {
    /// Size of this structure as the program was compiled; set by nf_options_init().
    pub struct_size: usize,
    /// Search radius in the unit of the coordinates; an engine in f32 rounds it to float. The
    /// largest one where points have radii of their own.
    pub radius: f64,
    /// An nf_precision; NF_PRECISION_F32 by default.
    pub precision: u32,
    /// An nf_list_kind; full lists by default.
    pub lists: u32,
    /// An nf_list_order; unspecified by default.
    pub order: u32,
    /// 0, the default: pairs exactly as far apart as the radius are neighbours; 1: they are not.
    pub strict: u32,
    /// An nf_radius_rule; NF_RADIUS_RULE_UNIFORM by default. By any other rule every set needs
    /// radii of its points: nf_set_radii(). Not strictly within the radius.
    pub radii: u32,
    /// Only this many of the nearest neighbours, nearest first, at equal distances the smaller
    /// index; 0, the default, for all within the radius. Not with half or ascending
    /// lists.
    pub nearest: u32,
    /// Number of types of points that `cutoffs` is for; 0, the default, for none.
    pub types: u32,
    /// Worker threads; 0, the default, for one per core.
    pub threads: u32,
    /// Cells per radius along each axis, 1 to 8; 0, the default, is 1.
    pub subdivision: u32,
    /// Bytes that lists may take, all together; 0, the default, for no limit.
    pub memory_limit: u64,
    /// A cut-off for each pair of types, `types` rows of `types` numbers: symmetric, each at most
    /// the radius, 0 for never. Every set then needs nf_set_types(). Copied; not read if `types` is
    /// 0.
    pub cutoffs: *const f64,
    /// "auto", "cpu", "gpu", "gpu:1", "hybrid", ...; null, the default, is "auto".
    pub device: *const c_char,
    /// How a GPU maps cells to threads, such as "flat" or "auto"; null, the default, is "flat".
    pub strategy: *const c_char,
    /// For every axis 1 where the domain repeats, 0, the default, where it is open.
    pub periodic: [u32; 3],
    /// For every periodic axis the vector along which the domain repeats; an orthogonal box has its
    /// lengths on the diagonal. Those of open axes are not read.
    pub box_vectors: [[f64; 3]; 3],
}

impl NfOptions {
    fn defaults() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            radius: 0.0,
            precision: NfPrecision::F32 as u32,
            lists: NfListKind::Full as u32,
            order: NfListOrder::Unspecified as u32,
            strict: 0,
            radii: NfRadiusRule::Uniform as u32,
            nearest: 0,
            types: 0,
            threads: 0,
            subdivision: 0,
            memory_limit: 0,
            cutoffs: ptr::null(),
            device: ptr::null(),
            strategy: ptr::null(),
            periodic: [0; 3],
            box_vectors: [[0.0; 3]; 3],
        }
    }

    /// # Safety
    /// The texts are null or end with a NUL; there are as many cut-offs as is said.
    pub(crate) unsafe fn builder(&self) -> Result<Builder, Failure> {
        let mut builder = Engine::builder(self.radius)
            .precision(precision(self.precision)?)
            .lists(list_kind(self.lists)?)
            .list_order(list_order(self.order)?)
            .radii(radius_rule(self.radii)?)
            .subdivision(subdivision(self.subdivision)?.max(1));
        if choice("strict", self.strict, 2)? == 1 {
            builder = builder.strictly_within();
        }
        if self.nearest > 0 {
            builder = builder.nearest(self.nearest);
        }
        // SAFETY: the caller guarantees as many cut-offs as is said.
        if let Some(rows) = unsafe { cutoff_rows(self.types, self.cutoffs)? } {
            builder = builder.cutoffs(&rows);
        }
        if self.memory_limit > 0 {
            builder = builder.memory_limit(self.memory_limit);
        }
        // SAFETY: the caller guarantees that `self.device` is null or ends with a NUL.
        if let Some(device) = unsafe { args::text(self.device, MAX_NAME, "device")? } {
            let device: Device = device.parse().map_err(unreadable)?;
            builder = builder.device(device);
        }
        // SAFETY: the caller guarantees that `self.strategy` is null or ends with a NUL.
        if let Some(strategy) = unsafe { strategy(self.strategy)? } {
            builder = builder.strategy(strategy);
        }
        let vectors = periodic_vectors(self.periodic, self.box_vectors)?;
        if vectors.iter().any(Option::is_some) {
            builder = builder.box_vectors(vectors);
        }
        Ok(builder.threads(self.threads as usize))
    }
}

impl From<Precision> for NfPrecision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Single => Self::F32,
            Precision::Double => Self::F64,
        }
    }
}

/// The precision that an `NfPrecision` names.
pub(crate) fn precision(given: u32) -> Result<Precision, Failure> {
    Ok(match choice("precision", given, 2)? {
        0 => Precision::Single,
        _ => Precision::Double,
    })
}

/// The kind that an `NfListKind` names.
pub(crate) fn list_kind(given: u32) -> Result<ListKind, Failure> {
    Ok(match choice("lists", given, 2)? {
        0 => ListKind::Full,
        _ => ListKind::Half,
    })
}

/// The order that an `NfListOrder` names.
pub(crate) fn list_order(given: u32) -> Result<ListOrder, Failure> {
    Ok(match choice("order", given, 2)? {
        0 => ListOrder::Unspecified,
        _ => ListOrder::Ascending,
    })
}

/// The rule that an `NfRadiusRule` names.
pub(crate) fn radius_rule(given: u32) -> Result<RadiusRule, Failure> {
    Ok(match choice("radii", given, 4)? {
        0 => RadiusRule::Uniform,
        1 => RadiusRule::Gather,
        2 => RadiusRule::Scatter,
        _ => RadiusRule::Symmetric,
    })
}

/// Cells per radius, 0 for the default.
pub(crate) fn subdivision(given: u32) -> Result<u32, Failure> {
    if given <= 8 {
        return Ok(given);
    }
    Err(bad(format!(
        "subdivision is {given}: a radius is 1 to 8 cells, or 0 for the default"
    )))
}

/// The rows of a table of cut-offs for so many types; none for 0.
///
/// # Safety
/// `cutoffs` is null or points to as many numbers as the square of `types`, which are not written
/// to during `'a`.
pub(crate) unsafe fn cutoff_rows<'a>(
    types: u32,
    cutoffs: *const f64,
) -> Result<Option<Vec<&'a [f64]>>, Failure> {
    if types == 0 {
        return Ok(None);
    }
    if types > MAX_TYPES {
        return Err(bad(format!(
            "types is {types}: cut-offs are for 1 to {MAX_TYPES} types"
        )));
    }
    let types = types as usize;
    let numbers = types.saturating_mul(types);
    // SAFETY: the caller guarantees that many numbers.
    let cutoffs = unsafe { Array::new(cutoffs, numbers, "cutoffs").read()? };
    Ok(Some(cutoffs.chunks_exact(types).collect()))
}

/// The strategy of this name; none for null.
///
/// # Safety
/// `name` is null or ends with a NUL.
pub(crate) unsafe fn strategy(name: *const c_char) -> Result<Option<Strategy>, Failure> {
    // SAFETY: the caller guarantees that `name` is null or ends with a NUL.
    let name = unsafe { args::text(name, MAX_NAME, "strategy")? };
    name.map(|name| name.parse().map_err(unreadable))
        .transpose()
}

/// The vectors of the periodic axes.
pub(crate) fn periodic_vectors(
    periodic: [u32; 3],
    vectors: [[f64; 3]; 3],
) -> Result<[Option<[f64; 3]>; 3], Failure> {
    let mut found = [None; 3];
    for axis in 0..3 {
        if choice("periodic", periodic[axis], 2)? == 1 {
            found[axis] = Some(vectors[axis]);
        }
    }
    Ok(found)
}

fn unreadable(error: impl std::fmt::Display) -> Failure {
    bad(error.to_string())
}

/// Sets options to their defaults. Pass sizeof(nf_options): a size that is not the library's is
/// refused, because header and library are then of different versions.
///
/// # Safety
/// `options` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_options_init(options: *mut NfOptions, size: usize) -> NfStatus {
    // SAFETY: `put_options` needs exactly what the caller of this function guarantees.
    call::plain(|| unsafe { args::put_options(options, size, NfOptions::defaults()) })
}

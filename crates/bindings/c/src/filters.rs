//! What leaves out pairs within the radius: types, exclusions, chosen targets.

use crate::{
    args::{Array, check_len},
    call,
    engine::{ENGINES, NfEngine},
    status::{Failure, NfStatus},
};

/// Gives every point of a set a type, below the number of types of the engine's cut-offs. Types
/// stay with the numbers of the points, and nf_retain_points() keeps them; after an update to
/// another number of points they are asked for anew. Lists that involve the set are gone until
/// nf_find_neighbors(). Refused types leave the set as it was.
///
/// # Safety
/// `types` points to `points` numbers; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_types(
    engine: *mut NfEngine,
    set: u32,
    types: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("types", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a type for every point.
        let types = unsafe { Array::new(types, points, "types").read()? };
        Ok(engine.set_types(set, types)?)
    })
}

/// Leaves out pairs of points of a set: two numbers of points for each of `pairs` pairs, in any
/// order, such as bonds. A pair is left out in every periodic image. Exclusions replace those given
/// before; otherwise as nf_set_types().
///
/// # Safety
/// `points` points to twice `pairs` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_exclude_pairs(
    engine: *mut NfEngine,
    set: u32,
    points: *const u32,
    pairs: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees two numbers for every pair.
        let pairs = unsafe { Array::new(points.cast::<[u32; 2]>(), pairs, "pairs").read()? };
        Ok(engine.exclude_pairs(set, pairs)?)
    })
}

/// Leaves out pairs of a set by a list for every point, as one array: the points that point i
/// excludes are the entries of `indices` from `offsets[i]` to the one before `offsets[i + 1]`,
/// ascending. Lists must be symmetric. Otherwise as nf_exclude_pairs().
///
/// # Safety
/// `offsets` points to `points` + 1 numbers, where `points` is the number of points of the set, and
/// `indices` to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_exclusions(
    engine: *mut NfEngine,
    set: u32,
    offsets: *const u64,
    points: usize,
    indices: *const u32,
    count: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        let given = Excluded {
            offsets,
            points,
            indices,
            count,
        };
        // SAFETY: `read` needs exactly what the caller of this function guarantees.
        let (offsets, indices) = unsafe { given.read(engine.points(set)?)? };
        Ok(engine.set_exclusions(set, offsets, indices)?)
    })
}

/// Leaves out pairs of points of the same molecule, whose number is given for every point of the
/// set, and the images of a point itself; otherwise as nf_exclude_pairs(), which it replaces.
///
/// # Safety
/// `molecules` points to `points` numbers; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_molecules(
    engine: *mut NfEngine,
    set: u32,
    molecules: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("molecules", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a molecule for every point.
        let molecules = unsafe { Array::new(molecules, points, "molecules").read()? };
        Ok(engine.set_molecules(set, molecules)?)
    })
}

/// Leaves out no pair of a set any longer.
#[unsafe(no_mangle)]
pub extern "C" fn nf_clear_exclusions(engine: *mut NfEngine, set: u32) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        Ok(engine.clear_exclusions(engine.point_set(set)?)?)
    })
}

/// Searches for `count` points of a set only, by their numbers in any order. The others have empty
/// lists and no neighbours counted, and sums leave their results as they are; they are found as
/// before. Otherwise as nf_set_types(). Not with half lists.
///
/// # Safety
/// `indices` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_targets(
    engine: *mut NfEngine,
    set: u32,
    indices: *const u32,
    count: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees that many numbers.
        let indices = unsafe { Array::new(indices, count, "indices").read()? };
        Ok(engine.set_targets(set, indices)?)
    })
}

/// The same by one byte a point, 0 for the points that are not searched for.
///
/// # Safety
/// `mask` points to `points` bytes; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_target_mask(
    engine: *mut NfEngine,
    set: u32,
    mask: *const u8,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("the mask", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a byte for every point.
        let mask = unsafe { Array::new(mask, points, "the mask").read()? };
        Ok(engine.set_target_mask(set, &chosen(mask)?)?)
    })
}

/// Searches for all points of a set again.
#[unsafe(no_mangle)]
pub extern "C" fn nf_clear_targets(engine: *mut NfEngine, set: u32) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        Ok(engine.clear_targets(engine.point_set(set)?)?)
    })
}

/// Lists of exclusions of the caller.
pub(crate) struct Excluded {
    pub(crate) offsets: *const u64,
    pub(crate) points: usize,
    pub(crate) indices: *const u32,
    pub(crate) count: usize,
}

impl Excluded {
    /// Offsets and indices for a set of `points` points.
    ///
    /// # Safety
    /// There is an offset more than points, and as many indices as is said; they are not written to
    /// during `'a`.
    pub(crate) unsafe fn read<'a>(&self, points: usize) -> Result<(&'a [u64], &'a [u32]), Failure> {
        check_len("exclusions", self.points, points)?;
        // SAFETY: the caller guarantees that there is an offset more than points, and the indices.
        unsafe {
            Ok((
                Array::new(self.offsets, points.saturating_add(1), "offsets").read()?,
                Array::new(self.indices, self.count, "indices").read()?,
            ))
        }
    }
}

/// The points that a mask of bytes chooses.
pub(crate) fn chosen(mask: &[u8]) -> Result<Vec<bool>, Failure> {
    let mut chosen = Vec::new();
    let room = chosen.try_reserve_exact(mask.len());
    room.map_err(|_| {
        Failure::new(
            NfStatus::OutOfMemory,
            "there is no memory for a copy of the mask",
        )
    })?;
    chosen.extend(mask.iter().map(|&byte| byte != 0));
    Ok(chosen)
}

//! Neighbour lists: found, viewed in place, or copied as CSR.

use crate::{
    args::{self, Array, check_len},
    call,
    engine::{ENGINES, NfEngine},
    status::{Failure, NfStatus},
};
use nearfield::NeighborLists;

/// Neighbour lists, viewed where the library keeps them: the neighbours of point i are
/// `indices[start[i]]` and the `count[i] - 1` entries behind it.
///
/// The pointers are valid until the engine is next changed (any function that takes it by pointer
/// to non-const, whatever it returns except NF_STATUS_BUSY) or the query freed. nf_neighbors_of()
/// tells lists that are out of date; reading through the pointers does not.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfLists {
    /// First entry of the list of every point.
    pub start: *const u64,
    /// Its length.
    pub count: *const u32,
    /// The lists, with room between them that holds nothing of use.
    pub indices: *const u32,
    /// Number of points.
    pub points: usize,
    /// Neighbours of all points together.
    pub pairs: u64,
    /// Tells this state of the engine from others.
    pub state: u64,
}

impl NfLists {
    pub(crate) fn of(lists: &NeighborLists, state: u64) -> Self {
        Self {
            start: lists.starts().as_ptr(),
            count: lists.counts().as_ptr(),
            indices: lists.storage().as_ptr(),
            points: lists.len(),
            pairs: lists.pairs(),
            state,
        }
    }

    /// # Safety
    /// The lists are as they were when this was made by [`of`](Self::of).
    unsafe fn of_point(&self, point: usize) -> Result<(*const u32, usize), Failure> {
        if point >= self.points {
            return Err(Failure::new(
                NfStatus::UnknownPoint,
                format!(
                    "there is no point {point}: there are lists for {} points",
                    self.points
                ),
            ));
        }
        // SAFETY: the point is there, and so are its start, its length and its entries.
        unsafe {
            let start = *self.start.add(point) as usize;
            Ok((self.indices.add(start), *self.count.add(point) as usize))
        }
    }
}

/// Writes the lists of every active pair of sets.
#[unsafe(no_mangle)]
pub extern "C" fn nf_find_neighbors(engine: *mut NfEngine) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        Ok(engine.find_neighbors()?)
    })
}

/// The lists that nf_find_neighbors() wrote for a pair of sets; nothing is copied.
///
/// # Safety
/// `lists` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_neighbors(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    lists: *mut NfLists,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, state| {
        let found = engine.neighbors(engine.point_set(targets)?, engine.point_set(sources)?)?;
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "lists", NfLists::of(found, state)) }
    })
}

/// The neighbours of one point in lists of this engine; NF_STATUS_OUT_OF_DATE when the engine was
/// changed since they were got. In loops over all points read the lists directly.
///
/// # Safety
/// `lists` points to lists that nf_neighbors() filled and that were not altered, `neighbors` and
/// `count` to places for the results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_neighbors_of(
    engine: *const NfEngine,
    lists: *const NfLists,
    point: usize,
    neighbors: *mut *const u32,
    count: *mut usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |_, state| {
        args::place(neighbors, "the place for the neighbours")?;
        args::place(count, "the place for their number")?;
        // SAFETY: the caller guarantees that `lists` is null or points to a readable structure.
        let lists = unsafe { args::one(lists, "lists")? };
        if lists.state != state {
            return Err(Failure::new(
                NfStatus::OutOfDate,
                "the engine was changed since these lists were got, or they are not its: call \
                 nf_neighbors again",
            ));
        }
        // SAFETY: the state is that in which the lists were got, and no two states of any engines
        // have the same number.
        let (first, len) = unsafe { lists.of_point(point)? };
        // SAFETY: the caller guarantees that `neighbors` is null or points to a writable value.
        unsafe {
            args::put(neighbors, "the place for the neighbours", first)?;
            args::put(count, "the place for their number", len)
        }
    })
}

/// Copies lists one behind the other: those of point i are `indices[offsets[i]]` to
/// `indices[offsets[i + 1] - 1]`, as sparse matrices have them. `offsets_len` is the number of
/// points and one, `indices_len` the number of pairs; nf_neighbors() tells both.
///
/// # Safety
/// The arrays have as many elements as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_neighbors_csr(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    offsets: *mut u64,
    offsets_len: usize,
    indices: *mut u32,
    indices_len: usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let lists = engine.neighbors(engine.point_set(targets)?, engine.point_set(sources)?)?;
        check_len("offsets", offsets_len, lists.len() + 1)?;
        check_len("indices", indices_len, lists.pairs() as usize)?;
        let offsets = Array::new(offsets.cast_const(), offsets_len, "offsets");
        let indices = Array::new(indices.cast_const(), indices_len, "indices");
        offsets.apart_from(&indices)?;
        // SAFETY: the caller guarantees that `offsets` is null or has room for that many elements,
        // for this call alone.
        let offsets = unsafe { offsets.write()? };
        // SAFETY: the caller guarantees that `indices` is null or has room for that many elements,
        // for this call alone.
        let indices = unsafe { indices.write()? };
        let mut end = 0;
        offsets[0] = 0;
        for (list, offset) in lists.iter().zip(&mut offsets[1..]) {
            indices[end..end + list.len()].copy_from_slice(list);
            end += list.len();
            *offset = end as u64;
        }
        Ok(())
    })
}

//! Neighbours of positions that are not points of any set, and of a few points of a set.

use crate::{
    args::{self, Array, Coordinate},
    call,
    engine::{ENGINES, NfEngine},
    handle::Table,
    lists::NfLists,
    status::NfStatus,
};
use nearfield::{NeighborLists, Radii, lists::QueryScratch};
use std::marker::PhantomData;

/// Lists that a query found; they stay as they are whatever becomes of the engine.
#[derive(Debug)]
pub struct NfQuery {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<NeighborLists>,
}

static QUERIES: Table<NeighborLists> = Table::new("query");

/// Finds the neighbours in a set of positions that are not points; free what is found with
/// nf_query_free(). Any number of threads may query an engine at the same time.
///
/// # Safety
/// `positions` points to `points` points, `query` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_f32(
    engine: *const NfEngine,
    positions: *const f32,
    points: usize,
    stride: usize,
    sources: u32,
    query: *mut *mut NfQuery,
) -> NfStatus {
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe { find(engine, positions, points, stride, NO_RADII, sources, query) }
}

/// The same in double precision.
///
/// # Safety
/// As for nf_query_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_f64(
    engine: *const NfEngine,
    positions: *const f64,
    points: usize,
    stride: usize,
    sources: u32,
    query: *mut *mut NfQuery,
) -> NfStatus {
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe { find(engine, positions, points, stride, NO_RADII, sources, query) }
}

/// The same for positions with search radii of their own, one for each, positive and at most the
/// engine's radius: in engines with the nf_radius_rule gather or symmetric, and no others.
///
/// # Safety
/// As for nf_query_f32(), and `radii` points to `radius_count` numbers, which must be as many as
/// there are positions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_radii_f32(
    engine: *const NfEngine,
    positions: *const f32,
    points: usize,
    stride: usize,
    radii: *const f32,
    radius_count: usize,
    sources: u32,
    query: *mut *mut NfQuery,
) -> NfStatus {
    let radii = Some(Array::new(radii, radius_count, "radii"));
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe { find(engine, positions, points, stride, radii, sources, query) }
}

/// The same in double precision.
///
/// # Safety
/// As for nf_query_radii_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_radii_f64(
    engine: *const NfEngine,
    positions: *const f64,
    points: usize,
    stride: usize,
    radii: *const f64,
    radius_count: usize,
    sources: u32,
    query: *mut *mut NfQuery,
) -> NfStatus {
    let radii = Some(Array::new(radii, radius_count, "radii"));
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe { find(engine, positions, points, stride, radii, sources, query) }
}

/// Finds the neighbours in a set of some points of another, or of the same, given by their indices
/// in any order: the lists of the query are theirs, one per index. Lists are full; the engine's
/// filters hold, but nf_set_targets() does not matter.
///
/// # Safety
/// `points` points to `point_count` indices, `query` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_points(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    points: *const u32,
    point_count: usize,
    query: *mut *mut NfQuery,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        args::place(query, "the place for the query")?;
        let points = Array::new(points, point_count, "points");
        // SAFETY: the caller guarantees that they are there.
        let points = unsafe { points.read()? };
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        let name = QUERIES.insert(engine.neighbors_of(sets[0], sets[1], points)?);
        // SAFETY: the caller guarantees that `query` is null or points to a writable value.
        unsafe { args::put(query, "the place for the query", name as *mut NfQuery) }
    })
}

/// Of positions that have none.
const NO_RADII: Option<Array<'_, f32>> = None;

unsafe fn find<T: Coordinate, R>(
    engine: *const NfEngine,
    data: *const T,
    points: usize,
    stride: usize,
    radii: Option<Array<'_, R>>,
    sources: u32,
    query: *mut *mut NfQuery,
) -> NfStatus
where
    for<'a> Radii<'a>: From<&'a [R]>,
{
    call::read(&ENGINES, engine as usize, |engine, _| {
        args::place(query, "the place for the query")?;
        // SAFETY: the caller guarantees that `data` is null or holds that many positions at this
        // stride.
        let positions = unsafe { args::positions(data, points, stride)? };
        if let Some(radii) = &radii {
            args::check_len("radii", radii.len(), points)?;
        }
        // SAFETY: the caller guarantees that they are there.
        let radii = radii.map(|radii| unsafe { radii.read() }).transpose()?;
        let (sources, mut scratch) = (engine.point_set(sources)?, QueryScratch::default());
        let radii = radii.map(Into::into);
        engine.query_into(positions, radii, sources, &mut scratch)?;
        let name = QUERIES.insert(scratch.into_lists());
        // SAFETY: the caller guarantees that `query` is null or points to a writable value.
        unsafe { args::put(query, "the place for the query", name as *mut NfQuery) }
    })
}

/// The lists of a query, one per position or index; nothing is copied.
///
/// # Safety
/// `lists` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_query_lists(query: *const NfQuery, lists: *mut NfLists) -> NfStatus {
    call::read(&QUERIES, query as usize, |found, state| {
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "lists", NfLists::of(found, state)) }
    })
}

/// Frees a query; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_query_free(query: *mut NfQuery) -> NfStatus {
    call::free(&QUERIES, query as usize)
}

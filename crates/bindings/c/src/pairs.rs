//! Pairs with their geometry: compact arrays of the library.

use crate::{
    args::{self, Array, bad, check_len, choice},
    call,
    engine::{ENGINES, NfEngine},
    handle::Table,
    status::{Failure, NfStatus},
};
use nearfield::{
    Precision,
    lists::{PairArrays, PairGeometry},
    systems::{Quantities, SystemPairs},
};
use std::{ffi::c_void, marker::PhantomData, ptr};

/// Quantities of pairs, to be added up: what is not asked for is not computed.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfQuantity {
    /// i, the point that has the neighbour.
    Targets = 1,
    /// j, the neighbour.
    Sources = 2,
    /// S, by how many box vectors the neighbour is moved.
    Images = 4,
    /// D, from the point to its neighbour, moved so.
    Displacements = 8,
    /// d, the length of that.
    Distances = 16,
    /// The vector by which the neighbour is moved; on a GPU only, for sets.
    Shifts = 32,
    /// The square of d; on a GPU only, for sets.
    Squares = 64,
}

/// Pairs and the memory that they are in, used again by later searches: nf_pairs_new().
#[derive(Debug)]
pub struct NfPairs {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Pairs>,
}

/// What a handle names.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    single: SystemPairs<f32, u32>,
    double: SystemPairs<f64, u32>,
    /// Which of them a search has written.
    precision: Precision,
    geometry: PairGeometry,
}

pub(crate) static PAIRS: Table<Pairs> = Table::new("set of pairs");

/// Pairs, viewed where the library keeps them, valid until their handle is next used for a search
/// or freed. Entry k of every array belongs to the same pair; pairs are in the order of `targets`.
/// Arrays that were not asked for are null.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfPairArrays {
    /// Number of points that have neighbours looked for.
    pub points: usize,
    /// Number of pairs.
    pub pairs: usize,
    /// The first pair of every point, and behind them the number of pairs.
    pub offsets: *const u64,
    /// The point of every pair, and its neighbour.
    pub targets: *const u32,
    /// By its index in the array that was searched.
    pub sources: *const u32,
    /// Three counts a pair.
    pub images: *const i32,
    /// Three numbers a pair: float or double, as `precision` says.
    pub displacements: *const c_void,
    /// A number a pair, of the same type.
    pub distances: *const c_void,
    /// An nf_precision: that of the engine, or of the positions of systems.
    pub precision: u32,
}

/// The quantities of a sum of `NfQuantity`.
pub(crate) fn quantities(given: u32) -> Result<Quantities, Failure> {
    choice("quantities", given, 128)?;
    if given & (NfQuantity::Shifts as u32 | NfQuantity::Squares as u32) != 0 {
        return Err(bad(
            "NF_QUANTITY_SHIFTS and NF_QUANTITY_SQUARES are there for sets on a GPU only: ask for \
             images or distances",
        ));
    }
    let has = |quantity: NfQuantity| given & quantity as u32 != 0;
    Ok(Quantities {
        targets: has(NfQuantity::Targets),
        sources: has(NfQuantity::Sources),
        images: has(NfQuantity::Images),
        displacements: has(NfQuantity::Displacements),
        distances: has(NfQuantity::Distances),
    })
}

/// Makes a place for pairs, which searches fill; free it with nf_pairs_free().
///
/// # Safety
/// `pairs` points to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_pairs_new(pairs: *mut *mut NfPairs) -> NfStatus {
    call::plain(|| {
        args::place(pairs, "the place for the pairs")?;
        let name = PAIRS.insert(Pairs::default());
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "the place for the pairs", name as *mut NfPairs) }
    })
}

/// Frees pairs; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_pairs_free(pairs: *mut NfPairs) -> NfStatus {
    call::free(&PAIRS, pairs as usize)
}

/// The arrays of the last search; nothing is copied.
///
/// # Safety
/// `arrays` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_pairs_arrays(
    pairs: *const NfPairs,
    arrays: *mut NfPairArrays,
) -> NfStatus {
    call::read(&PAIRS, pairs as usize, |pairs, _| {
        let found = match pairs.precision {
            Precision::Single => view(&pairs.single, 0),
            Precision::Double => view(&pairs.double, 1),
        };
        // SAFETY: the caller guarantees that `arrays` is null or points to a writable value.
        unsafe { args::put(arrays, "arrays", found) }
    })
}

fn view<T>(pairs: &SystemPairs<T, u32>, precision: u32) -> NfPairArrays {
    fn of<E>(array: &[E]) -> *const E {
        if array.is_empty() {
            ptr::null()
        } else {
            array.as_ptr()
        }
    }
    NfPairArrays {
        points: pairs.offsets().len().saturating_sub(1),
        pairs: pairs.len(),
        offsets: of(pairs.offsets()),
        targets: of(pairs.targets()),
        sources: of(pairs.sources()),
        images: of(pairs.images().as_flattened()),
        displacements: of(pairs.displacements().as_flattened()).cast(),
        distances: of(pairs.distances()).cast(),
        precision,
    }
}

/// Copies the neighbours of the last search, which was asked for NF_QUANTITY_SOURCES, into rows of
/// a fixed length: those of point i are the first numbers of `indices` from i * max_neighbors on,
/// and `fill` stands in the other places. `counts` gets how many of a row are neighbours. A point
/// that has more than `max_neighbors` keeps the first, in the order of the search; `largest` gets
/// how many neighbours a point has at most, so look whether it is larger than the rows are long.
/// Entry k of row i belongs to pair `offsets[i]` + k of nf_pairs_arrays().
///
/// # Safety
/// `indices` points to `indices_len` numbers, which must be points * max_neighbors, `counts` to
/// `points`, which must be the number of points, and `largest` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_pairs_padded(
    pairs: *const NfPairs,
    max_neighbors: usize,
    fill: u32,
    indices: *mut u32,
    indices_len: usize,
    counts: *mut u32,
    points: usize,
    largest: *mut usize,
) -> NfStatus {
    call::read(&PAIRS, pairs as usize, |pairs, _| {
        args::place(largest, "the place for the largest number")?;
        let (offsets, sources) = match pairs.precision {
            Precision::Single => (pairs.single.offsets(), pairs.single.sources()),
            Precision::Double => (pairs.double.offsets(), pairs.double.sources()),
        };
        let found = offsets.last().copied().unwrap_or_default();
        if sources.len() as u64 != found {
            return Err(bad(
                "the last search was not asked for NF_QUANTITY_SOURCES, which rows consist of",
            ));
        }
        check_len("counts", points, offsets.len().saturating_sub(1))?;
        check_len("indices", indices_len, points.saturating_mul(max_neighbors))?;
        let indices = Array::new(indices.cast_const(), indices_len, "indices");
        let counts = Array::new(counts.cast_const(), points, "counts");
        indices.apart_from(&counts)?;
        // SAFETY: the caller guarantees that `indices` is null or has room for that many elements,
        // for this call alone.
        let indices = unsafe { indices.write()? };
        // SAFETY: the caller guarantees that `counts` is null or has room for that many elements,
        // for this call alone.
        let counts = unsafe { counts.write()? };
        indices.fill(fill);
        let mut most = 0;
        for (point, (range, count)) in offsets.windows(2).zip(counts).enumerate() {
            let row = &sources[range[0] as usize..range[1] as usize];
            most = most.max(row.len());
            let kept = row.len().min(max_neighbors);
            let first = point * max_neighbors;
            indices[first..first + kept].copy_from_slice(&row[..kept]);
            *count = kept as u32;
        }
        // SAFETY: the caller guarantees that `largest` is null or points to a writable value.
        unsafe { args::put(largest, "the place for the largest number", most) }
    })
}

/// Finds the neighbours of every point of one set in another with the geometry of each pair.
/// `quantities` is a sum of nf_quantity. No lists are written or needed. Where it fails there are
/// no pairs. `pairs` keeps the memory of the engine's pairs too, for the next call.
#[unsafe(no_mangle)]
pub extern "C" fn nf_pair_geometry(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    quantities: u32,
    pairs: *mut NfPairs,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        geometry_into(pairs, quantities, |geometry| {
            let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
            engine.pair_geometry(sets[0], sets[1], geometry)
        })
    })
}

/// Fills pairs with the quantities that are wanted of the geometry that `find` writes.
pub(crate) fn geometry_into(
    pairs: *mut NfPairs,
    quantities: u32,
    find: impl FnOnce(&mut PairGeometry) -> Result<(), nearfield::Error>,
) -> Result<(), Failure> {
    none_after_an_error(pairs, || {
        let wanted = self::quantities(quantities)?;
        PAIRS.get(pairs as usize)?.write(|pairs| {
            find(&mut pairs.geometry)?;
            let copied = match pairs.geometry.arrays() {
                PairArrays::Single { .. } => {
                    pairs.precision = Precision::Single;
                    pairs.single.copy_geometry(&pairs.geometry, wanted)
                }
                PairArrays::Double { .. } => {
                    pairs.precision = Precision::Double;
                    pairs.double.copy_geometry(&pairs.geometry, wanted)
                }
            };
            Ok(copied.map_err(nearfield::Error::from)?)
        })
    })
}

/// Does `work`, which writes pairs; empties them if it fails, for whatever reason. Not before it:
/// arrays of as many pairs as the last time need not be filled with zeros.
pub(crate) fn none_after_an_error(
    pairs: *mut NfPairs,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let done = work();
    if done.is_err()
        && let Ok(pairs) = PAIRS.get(pairs as usize)
    {
        pairs.write(|pairs| {
            pairs.clear();
            Ok(())
        })?;
    }
    done
}

impl Pairs {
    /// Pairs in single precision, which a search is about to write.
    pub(crate) fn in_single(&mut self) -> &mut SystemPairs<f32, u32> {
        self.precision = Precision::Single;
        &mut self.single
    }

    /// The same in double precision.
    pub(crate) fn in_double(&mut self) -> &mut SystemPairs<f64, u32> {
        self.precision = Precision::Double;
        &mut self.double
    }

    fn clear(&mut self) {
        self.single.clear();
        self.double.clear();
    }
}

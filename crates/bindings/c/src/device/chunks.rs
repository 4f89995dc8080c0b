//! Lists on the device in chunks that stay within a limit.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::address,
    lists::{NfDeviceLists, NfDevicePairs, quantities},
};
use crate::{args, call, handle::Table, options::NfPrecision, status::NfStatus};
use nearfield::device::{DeviceEngine, DeviceListChunk, DeviceListChunks};
use std::marker::PhantomData;

/// Lists of a pair of sets on a GPU that are handed out in chunks: nf_device_chunks_new().
#[derive(Debug)]
pub struct NfDeviceChunks {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<DeviceListChunks>,
}

static CHUNKS: Table<DeviceListChunks> = Table::new("row of chunks on a GPU");

/// Lists of some targets on the device, on the stream of the engine, until the next call with these
/// chunks. They are not provisional.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceChunk {
    /// CUdeviceptr to 32-bit numbers: the targets, by their index in their set.
    pub targets: u64,
    /// Number of targets; 0 after the last chunk.
    pub target_count: usize,
    /// The lists of these, one per target, and the numbers of pairs that were asked for.
    pub pairs: NfDevicePairs,
}

impl NfDeviceChunk {
    /// The chunk behind the last.
    const fn none(precision: NfPrecision) -> Self {
        let lists = NfDeviceLists {
            start: 0,
            count: 0,
            indices: 0,
            points: 0,
            entries: 0,
        };
        Self {
            targets: 0,
            target_count: 0,
            pairs: NfDevicePairs {
                lists,
                targets: 0,
                images: 0,
                shifts: 0,
                displacements: 0,
                squares: 0,
                distances: 0,
                precision: precision as u32,
            },
        }
    }

    fn of(chunk: &DeviceListChunk<'_>, engine: &DeviceEngine) -> Self {
        let stream = engine.stream();
        let with = (stream, engine.precision().into());
        Self {
            targets: address(Some(&chunk.targets), stream),
            target_count: chunk.targets.len(),
            pairs: NfDevicePairs::of(&chunk.lists, &chunk.pairs, with),
        }
    }
}

/// Begins the lists of a pair of sets in chunks of at most `memory_limit` bytes on the GPU each; 0
/// is the limit of the engine's options, and without that all lists are one chunk. `quantities` is
/// a sum of nf_quantity, 0 for lists alone. Neighbours are counted now, which waits for the device;
/// `pairs`, unless null, gets their number. Free the chunks with nf_device_chunks_free().
///
/// # Safety
/// `pairs` is null or points to a number, `chunks` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_chunks_new(
    engine: *mut NfDeviceEngine,
    targets: u32,
    sources: u32,
    quantities: u32,
    memory_limit: u64,
    pairs: *mut u64,
    chunks: *mut *mut NfDeviceChunks,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        args::place(chunks, "the place for the chunks")?;
        let wanted = self::quantities(quantities)?;
        let [t, s] = [engine.point_set(targets)?, engine.point_set(sources)?];
        let limit = match memory_limit {
            0 => engine.memory_limit(),
            limit => Some(limit),
        };
        let begun = engine.list_chunks_within(t, s, wanted, limit)?;
        if !pairs.is_null() {
            // SAFETY: the caller guarantees that `pairs` points to a writable value.
            unsafe { args::put(pairs, "the place for the number of pairs", begun.pairs())? };
        }
        let name = CHUNKS.insert(begun);
        // SAFETY: the caller guarantees that `chunks` is null or points to a writable value.
        unsafe {
            args::put(
                chunks,
                "the place for the chunks",
                name as *mut NfDeviceChunks,
            )
        }
    })
}

/// Writes the lists of the next chunk; `chunk->target_count` is 0 after the last. All chunks are in
/// one storage, which the next overwrites in the order of the stream. NF_STATUS_NO_LISTS when a
/// set, or what filters read of its points, was changed since the chunks were begun: begin anew.
/// After a failure the next call tries the same chunk again.
///
/// # Safety
/// `chunk` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_chunks_next(
    engine: *const NfDeviceEngine,
    chunks: *mut NfDeviceChunks,
    chunk: *mut NfDeviceChunk,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        args::place(chunk, "chunk")?;
        CHUNKS.get(chunks as usize)?.write(|chunks| {
            let next = chunks.next_chunk(engine)?;
            let none = NfDeviceChunk::none(engine.precision().into());
            let found = next.map_or(none, |next| NfDeviceChunk::of(&next, engine));
            // SAFETY: the caller guarantees that `chunk` is null or points to a writable value.
            unsafe { args::put(chunk, "chunk", found) }
        })
    })
}

/// Frees chunks; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_chunks_free(chunks: *mut NfDeviceChunks) -> NfStatus {
    call::free(&CHUNKS, chunks as usize)
}

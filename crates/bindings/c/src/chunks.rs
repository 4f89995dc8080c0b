//! Lists in chunks that stay within a limit.

use crate::{
    args, call,
    engine::{ENGINES, NfEngine},
    handle::Table,
    status::{Failure, NfStatus},
};
use nearfield::{
    Engine,
    lists::{ListChunk, PausedChunks},
};
use std::{marker::PhantomData, ptr};

/// Lists of a pair of sets that are handed out in chunks: nf_chunks_new().
#[derive(Debug)]
pub struct NfChunks {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Chunks>,
}

/// What a handle names.
#[derive(Debug)]
struct Chunks {
    /// None after the engine could not go on with them.
    paused: Option<PausedChunks>,
    /// The state of the engine that they are of.
    state: u64,
}

impl Chunks {
    /// Finds the next chunk. After an error of the search the same chunk is tried again by the next
    /// call; after one of going on there are no more.
    fn next(&mut self, engine: &Engine) -> Result<NfChunk, Failure> {
        let Some(before) = self.paused.take() else {
            return Err(Failure::new(
                NfStatus::OutOfDate,
                "an earlier call could not go on with these chunks: begin anew",
            ));
        };
        let mut resumed = engine.resume_chunks(before)?;
        let next = resumed.next_chunk();
        let found = next.map(|next| next.as_ref().map_or(NfChunk::NONE, NfChunk::of));
        // The lists stay where they are.
        self.paused = Some(resumed.pause());
        Ok(found?)
    }
}

static CHUNKS: Table<Chunks> = Table::new("row of chunks");

/// Lists of some targets, viewed where the library keeps them, until the next call with these
/// chunks or a change of the engine; freeing either ends the view too. The neighbours of
/// `targets[k]` are `indices[offsets[k]]` to `indices[offsets[k + 1] - 1]`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfChunk {
    /// The targets, by their index in their set, near each other in space.
    pub targets: *const u32,
    /// Number of targets; 0 after the last chunk.
    pub target_count: usize,
    /// One element more than there are targets.
    pub offsets: *const u64,
    /// The lists, one after the other.
    pub indices: *const u32,
    /// Number of neighbours.
    pub pairs: u64,
}

impl NfChunk {
    /// The chunk behind the last.
    const NONE: Self = Self {
        targets: ptr::null(),
        target_count: 0,
        offsets: ptr::null(),
        indices: ptr::null(),
        pairs: 0,
    };

    fn of(chunk: &ListChunk<'_>) -> Self {
        Self {
            targets: chunk.targets().as_ptr(),
            target_count: chunk.len(),
            offsets: chunk.offsets().as_ptr(),
            indices: chunk.indices().as_ptr(),
            pairs: chunk.pairs(),
        }
    }
}

/// Begins the lists of a pair of sets in chunks of at most `memory_limit` bytes each; 0 is the
/// limit of the engine's options, and without that all lists are one chunk. Neighbours are counted
/// now; `pairs`, unless null, gets their number. Free the chunks with nf_chunks_free().
///
/// # Safety
/// `pairs` is null or points to a number, `chunks` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_chunks_new(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    memory_limit: u64,
    pairs: *mut u64,
    chunks: *mut *mut NfChunks,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, state| {
        args::place(chunks, "the place for the chunks")?;
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        let begun = match memory_limit {
            0 => engine.list_chunks(sets[0], sets[1]),
            limit => engine.list_chunks_within(sets[0], sets[1], Some(limit)),
        }?;
        if !pairs.is_null() {
            // SAFETY: the caller guarantees that `pairs` points to a writable value.
            unsafe { args::put(pairs, "the place for the number of pairs", begun.pairs())? };
        }
        let paused = Some(begun.pause());
        let name = CHUNKS.insert(Chunks { paused, state });
        // SAFETY: the caller guarantees that `chunks` is null or points to a writable value.
        unsafe { args::put(chunks, "the place for the chunks", name as *mut NfChunks) }
    })
}

/// Finds the lists of the next chunk; `chunk->target_count` is 0 after the last.
/// NF_STATUS_OUT_OF_DATE when the engine was changed since the chunks were begun, or is another.
/// After any other failure, such as NF_STATUS_OUT_OF_MEMORY, the next call tries the same chunk
/// again. If the engine could not even go on with the chunks, it fails with NF_STATUS_OUT_OF_DATE:
/// begin anew.
///
/// # Safety
/// `chunk` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_chunks_next(
    engine: *const NfEngine,
    chunks: *mut NfChunks,
    chunk: *mut NfChunk,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, now| {
        args::place(chunk, "chunk")?;
        CHUNKS.get(chunks as usize)?.write(|chunks| {
            if chunks.state != now {
                return Err(Failure::new(
                    NfStatus::OutOfDate,
                    "the engine was changed since these chunks were begun, or they are another \
                     engine's: begin anew",
                ));
            }
            let found = chunks.next(engine)?;
            // SAFETY: the caller guarantees that `chunk` is null or points to a writable value.
            unsafe { args::put(chunk, "chunk", found) }
        })
    })
}

/// Frees chunks; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_chunks_free(chunks: *mut NfChunks) -> NfStatus {
    call::free(&CHUNKS, chunks as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{thread::sleep, time::Duration};

    #[test]
    fn a_chunk_that_failed_is_tried_again_and_chunks_of_another_engine_stay_refused() {
        let row: Vec<[f32; 3]> = (0..3000).map(|x| [x as f32, 0.0, 0.0]).collect();
        let mut engine = Engine::builder(1.0).threads(1).build().unwrap();
        let set = engine.add_point_set(&row).unwrap();
        let mut chunks = Chunks {
            paused: Some(engine.list_chunks(set, set).unwrap().pause()),
            state: 0,
        };
        let ended = Engine::interruptible(
            || true,
            || {
                // Longer than from one question to the next.
                sleep(Duration::from_millis(100));
                chunks.next(&engine)
            },
        );
        assert!(ended.unwrap_err().text.contains("ended early"));
        let found = chunks.next(&engine).unwrap();
        assert_eq!((found.target_count, found.pairs), (3000, 5998));
        for _ in 0..2 {
            assert_eq!(chunks.next(&engine).unwrap().target_count, 0);
        }

        let other = Engine::builder(1.0f32).build().unwrap();
        let refused = chunks.next(&other).unwrap_err();
        assert_ne!(
            refused.status,
            NfStatus::OutOfDate,
            "the set is another engine's"
        );
        for _ in 0..2 {
            let refused = chunks.next(&engine).unwrap_err();
            assert_eq!(refused.status, NfStatus::OutOfDate);
            assert!(refused.text.contains("begin anew"), "{}", refused.text);
        }
    }
}

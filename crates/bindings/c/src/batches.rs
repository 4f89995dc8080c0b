//! Pair kernels on the CPU as a function of the caller, which gets pairs in batches.

use crate::{
    args, call,
    engine::{ENGINES, NfEngine},
    status::{Failure, NfStatus},
};
use nearfield::lists::PairBatch;
use std::{ffi::c_void, ops::ControlFlow};

/// Some targets with all their neighbours, lent for one call of an nf_batch_function. Displacements
/// and squares are float, also of an engine in f64, which rounds them after it has decided pairs.
#[repr(C)]
#[derive(Debug)]
pub struct NfBatch {
    /// The targets, by their index in their set.
    pub targets: *const u32,
    /// Number of targets.
    pub target_count: usize,
    /// The pairs of target number k are `offsets[k]` to `offsets[k + 1] - 1`; one element more than
    /// there are targets.
    pub offsets: *const u32,
    /// Of every pair the source, by its index in its set; once per periodic image.
    pub sources: *const u32,
    /// Of every pair the x of the displacement from target to source, periodic image included.
    pub dx: *const f32,
    /// The y.
    pub dy: *const f32,
    /// The z.
    pub dz: *const f32,
    /// Of every pair the squared distance.
    pub d2: *const f32,
    /// Number of pairs.
    pub pairs: usize,
}

/// A function that is given every target once, with all its neighbours, from several threads at a
/// time. It may write results to places that belong to the targets of its batch alone, may read the
/// engine and must not change it (NF_STATUS_BUSY), and must return by returning: no exception and
/// no longjmp may leave it. Anything but 0 ends the work early.
pub type NfBatchFunction =
    Option<unsafe extern "C" fn(user: *mut c_void, batch: *const NfBatch) -> i32>;

/// As [`NfBatchFunction`], called as one that may unwind.
type UnwindingFunction = unsafe extern "C-unwind" fn(*mut c_void, *const NfBatch) -> i32;

/// The caller's pointer on its way to other threads.
struct User(*mut c_void);

// SAFETY: it is handed to the caller's function and not used otherwise; that the function may be
// called from several threads with it is promised by the caller of the interface.
unsafe impl Sync for User {}

impl User {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Calls a function with all pairs of `targets` and `sources` in batches, on the engine's worker
/// threads; NF_STATUS_STOPPED when it asked to end early. A named GPU finds the pairs; no lists are
/// written or needed.
///
/// # Safety
/// The function may be called from several threads at a time with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_for_each_batch(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    function: NfBatchFunction,
    user: *mut c_void,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let function = function.ok_or_else(|| args::null("the function"))?;
        // SAFETY: the same function by the same convention. Were it not called as one that may
        // unwind, an exception that leaves it all the same would be undefined; now the process
        // ends.
        let function: UnwindingFunction = unsafe { std::mem::transmute(function) };
        let user = User(user);
        let visit = |batch: PairBatch<'_>| {
            let batch = NfBatch::from(batch);
            // SAFETY: the caller promises that it may be called here; the batch is lent for the
            // call.
            match unsafe { function(user.get(), &batch) } {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        match engine.for_each_batch(
            engine.point_set(targets)?,
            engine.point_set(sources)?,
            visit,
        )? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Failure::new(
                NfStatus::Stopped,
                "the function asked to stop",
            )),
        }
    })
}

impl From<PairBatch<'_>> for NfBatch {
    fn from(batch: PairBatch<'_>) -> Self {
        let [dx, dy, dz] = batch.d.map(<[f32]>::as_ptr);
        Self {
            targets: batch.targets.as_ptr(),
            target_count: batch.targets.len(),
            offsets: batch.offsets.as_ptr(),
            sources: batch.sources.as_ptr(),
            dx,
            dy,
            dz,
            d2: batch.d2.as_ptr(),
            pairs: batch.sources.len(),
        }
    }
}

//! The settings of engines on a GPU, and of lists with a skin there.

use crate::{
    args::{self, choice},
    call,
    options::{
        cutoff_rows, list_kind, list_order, periodic_vectors, precision, radius_rule, strategy,
        subdivision,
    },
    status::{Failure, NfStatus},
};
use nearfield::{
    Error,
    device::{DeviceEngine, DeviceEngineBuilder},
};
use std::{
    ffi::{c_char, c_void},
    ptr,
};

/// Settings of an engine on a GPU; nf_device_options_init() sets all but the radius. Settings that
/// nf_options has too mean the same.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceOptions {
    /// Size of this structure as the program was compiled; set by nf_device_options_init().
    pub struct_size: usize,
    /// Search radius in the unit of the coordinates; an engine in f32 rounds it to float. The
    /// largest one where points have radii of their own.
    pub radius: f64,
    /// Number of the GPU, counted from 0.
    pub device: u32,
    /// 0, the default: the engine makes a stream of its own; 1: it uses `stream`.
    pub use_stream: u32,
    /// A CUstream (cudaStream_t) of the GPU's primary context, null for the default stream; it must
    /// stay there for as long as the engine.
    pub stream: *mut c_void,
    /// An nf_precision; NF_PRECISION_F32 by default. Coordinates are arrays of float or of double,
    /// as it says.
    pub precision: u32,
    /// An nf_list_kind; full lists by default.
    pub lists: u32,
    /// An nf_list_order; unspecified by default. Ascending lists are sorted on the GPU.
    pub order: u32,
    /// 0, the default: pairs exactly as far apart as the radius are neighbours; 1: they are not.
    pub strict: u32,
    /// An nf_radius_rule; NF_RADIUS_RULE_UNIFORM by default. By any other rule every set needs
    /// radii of its points: nf_device_engine_set_radii(). In f32 only, and not strictly within the
    /// radius.
    pub radii: u32,
    /// Only this many of the nearest neighbours, nearest first, at equal distances the smaller
    /// index; 0, the default, for all within the radius. Not with half or ascending lists.
    pub nearest: u32,
    /// Number of types of points that `cutoffs` is for; 0, the default, for none.
    pub types: u32,
    /// Cells per radius along each axis, 1 to 8; 0, the default, chooses by the points.
    pub subdivision: u32,
    /// Bytes on the GPU that the lists of a pair of sets may take; 0, the default, for no limit.
    pub memory_limit: u64,
    /// A cut-off for each pair of types, `types` rows of `types` numbers: symmetric, each at most
    /// the radius, 0 for never. Every set then needs nf_device_engine_set_types(). Copied; not read
    /// if `types` is 0.
    pub cutoffs: *const f64,
    /// How cells are mapped to threads, such as "flat"; null, the default, and "auto" are "flat".
    pub strategy: *const c_char,
    /// For every axis 1 where the domain repeats, 0, the default, where it is open.
    pub periodic: [u32; 3],
    /// 1: points are expected to stay in the box from `within_low` to `within_high`, which cells
    /// cover from the start; 0, the default: there is no such box. Points may still leave it.
    pub use_within: u32,
    /// For every periodic axis the vector along which the domain repeats; an orthogonal box has its
    /// lengths on the diagonal. Those of open axes are not read.
    pub box_vectors: [[f64; 3]; 3],
    /// The lower corner of that box, in the unit of the coordinates; finite.
    pub within_low: [f32; 3],
    /// The upper corner.
    pub within_high: [f32; 3],
}

/// Sets options to their defaults. Pass sizeof(nf_device_options).
///
/// # Safety
/// `options` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_options_init(
    options: *mut NfDeviceOptions,
    size: usize,
) -> NfStatus {
    call::plain(|| {
        let defaults = NfDeviceOptions {
            struct_size: size_of::<NfDeviceOptions>(),
            radius: 0.0,
            device: 0,
            use_stream: 0,
            stream: ptr::null_mut(),
            precision: 0,
            lists: 0,
            order: 0,
            strict: 0,
            radii: 0,
            nearest: 0,
            types: 0,
            subdivision: 0,
            memory_limit: 0,
            cutoffs: ptr::null(),
            strategy: ptr::null(),
            periodic: [0; 3],
            use_within: 0,
            box_vectors: [[0.0; 3]; 3],
            within_low: [0.0; 3],
            within_high: [0.0; 3],
        };
        // SAFETY: the caller promises `size` bytes.
        unsafe { args::put_options(options, size, defaults) }
    })
}

impl NfDeviceOptions {
    /// # Safety
    /// The text is null or ends with a NUL; there are as many cut-offs as is said.
    pub(super) unsafe fn builder(&self) -> Result<DeviceEngineBuilder, Failure> {
        let mut builder = DeviceEngine::builder(self.radius)
            .precision(precision(self.precision)?)
            .lists(list_kind(self.lists)?)
            .list_order(list_order(self.order)?)
            .radii(radius_rule(self.radii)?)
            .subdivision(subdivision(self.subdivision)?)
            .box_vectors(periodic_vectors(self.periodic, self.box_vectors)?);
        if choice("strict", self.strict, 2)? == 1 {
            builder = builder.strictly_within();
        }
        if self.nearest > 0 {
            builder = builder.nearest(self.nearest);
        }
        if self.memory_limit > 0 {
            builder = builder.memory_limit(self.memory_limit);
        }
        // SAFETY: the caller guarantees as many cut-offs as is said.
        if let Some(rows) = unsafe { cutoff_rows(self.types, self.cutoffs)? } {
            builder = builder.cutoffs(&rows);
        }
        // SAFETY: the caller guarantees that the text is null or ends with a NUL.
        if let Some(strategy) = unsafe { strategy(self.strategy)? } {
            builder = builder.strategy(strategy);
        }
        if choice("use_within", self.use_within, 2)? == 1 {
            let (low, high) = (self.within_low, self.within_high);
            if !low.iter().chain(&high).all(|edge| edge.is_finite()) {
                return Err(args::bad(
                    "within_low and within_high: the corners of the box must be finite",
                ));
            }
            builder = builder.within(low, high);
        }
        Ok(builder)
    }

    /// Checks the choice of a stream, which [`start`](Self::start) uses.
    pub(super) fn uses_stream(&self) -> Result<bool, Failure> {
        Ok(choice("use_stream", self.use_stream, 2)? == 1)
    }

    /// Starts an engine on the stream of these options, if it `uses_stream`.
    ///
    /// # Safety
    /// The stream is as the structure says.
    pub(super) unsafe fn start(
        &self,
        builder: DeviceEngineBuilder,
        uses_stream: bool,
    ) -> Result<DeviceEngine, Error> {
        if uses_stream {
            // SAFETY: `on_borrowed` needs exactly what the caller of this function guarantees.
            unsafe { builder.on_borrowed(self.device, self.stream) }
        } else {
            builder.on_gpu(self.device)
        }
    }
}

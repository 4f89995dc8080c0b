//! Pair kernels on the device, by a search or over lists.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::borrow_array,
};
use crate::{
    args::{self, Array, MAX_KERNEL, MAX_NAME, choice},
    call,
    kernels::wendland,
    status::{Failure, NfStatus},
};
use nearfield::{
    Reduce,
    device::{DeviceField, DeviceKernel, DeviceTraversal, Stream},
    kernels::{Cuda, SphDensity},
};
use std::ffi::c_char;

/// Values on the device, a fixed number per point; those of a point begin `stride` numbers behind
/// those of the point before.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceField {
    /// CUdeviceptr to floats; 0 where a kernel reads nothing.
    pub values: u64,
    /// Number of floats there.
    pub len: usize,
    /// Numbers from one point to the next.
    pub stride: usize,
}

/// How the contributions of a target's neighbours are combined.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfReduce {
    /// Added up; 0 without neighbours.
    Sum = 0,
    /// Smallest; infinity without neighbours.
    Min = 1,
    /// Largest; minus infinity without neighbours.
    Max = 2,
}

/// A pair kernel as CUDA C++, compiled into the traversal at run time. The text defines
///
/// void pair(const float* uniform, const Pair& pair, const float* target, const float* source,
///           float* result);
///
/// where `pair.d[3]` is the displacement from target to source and pair.d2 its square.
///
/// The text runs on the GPU as it is, in the context that the whole process shares, and nothing
/// checks what it does there. It must read target and source only below the numbers of channels
/// given here and uniform only below the number of parameters, write all numbers of result and
/// nothing else, and end for every pair, also for numbers that are NaN or infinite. An access to
/// other memory may end the use of CUDA in the process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceKernel {
    /// Name of the text in the compiler's messages, such as a file name.
    pub name: *const c_char,
    /// The text.
    pub text: *const c_char,
    /// Parameters of the kernel, at most 160; changing them compiles nothing.
    pub uniforms: *const f32,
    /// Number of parameters.
    pub uniform_count: usize,
    /// Numbers the kernel reads of a target.
    pub target_channels: u32,
    /// Numbers it reads of a source.
    pub source_channels: u32,
    /// Numbers it gives, 1 to 16.
    pub outputs: u32,
    /// An nf_reduce.
    pub reduce: u32,
}

/// Mass density as nf_sph_density(), all on the device.
///
/// With `over_lists` 0 the call searches; with 1 it runs over the lists of these sets that
/// nf_device_engine_find_neighbors() or nf_device_engine_pair_geometry() found, so that several
/// sums need one search. Sums may then differ in the last bits. NF_STATUS_NO_LISTS when there are
/// none. `deliver` is an nf_deliver.
///
/// # Safety
/// `mass` and `density` (with `len` floats) are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_sph_density(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    support: f32,
    dimensions: u32,
    mass: NfDeviceField,
    density: u64,
    len: usize,
    over_lists: u32,
    deliver: u32,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let kernel = SphDensity {
            kernel: wendland(support, dimensions)?,
        };
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        let traversal = pairs_of(engine.traverse(&kernel, targets, sources), over_lists)?;
        let results = Array::on_device(density, len, "results");
        // SAFETY: `run` needs exactly what the caller of this function guarantees.
        unsafe {
            run(
                engine.stream(),
                traversal,
                [None, Some(mass)],
                results,
                deliver,
            )
        }
    })
}

/// Evaluates a kernel of the caller's for all pairs, all on the device. `over_lists` and `deliver`
/// are as for nf_device_engine_sph_density().
///
/// # Safety
/// The texts end with a NUL and the parameters are there; fields and `results` (with `len` floats,
/// the outputs of one target after the other) are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_traverse(
    engine: *const NfDeviceEngine,
    kernel: *const NfDeviceKernel,
    targets: u32,
    sources: u32,
    target_field: NfDeviceField,
    source_field: NfDeviceField,
    results: u64,
    len: usize,
    over_lists: u32,
    deliver: u32,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that `kernel` is null or points to a readable structure.
        let kernel = unsafe { args::one(kernel, "the kernel")?.kernel()? };
        let fields = fields_of(&kernel, target_field, source_field);
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        let traversal = pairs_of(engine.traverse_with(&kernel, targets, sources), over_lists)?;
        let results = Array::on_device(results, len, "results");
        // SAFETY: `run` needs exactly what the caller of this function guarantees.
        unsafe { run(engine.stream(), traversal, fields, results, deliver) }
    })
}

impl NfDeviceKernel {
    /// # Safety
    /// The texts end with a NUL and the parameters are there.
    pub(super) unsafe fn kernel(&self) -> Result<DeviceKernel, Failure> {
        // SAFETY: the caller guarantees that `self.name` is null or ends with a NUL.
        let name = unsafe { args::text(self.name, MAX_NAME, "the kernel's name")? };
        // SAFETY: the caller guarantees that `self.text` is null or ends with a NUL.
        let text = unsafe { args::text(self.text, MAX_KERNEL, "the kernel's text")? };
        // SAFETY: the caller guarantees that `self.uniforms` is null or holds that many elements.
        let uniforms = unsafe { Array::new(self.uniforms, self.uniform_count, "uniforms").read()? };
        let name = name.unwrap_or("kernel").to_owned();
        let text = text
            .ok_or_else(|| args::null("the kernel's text"))?
            .to_owned();
        if !(1..=16).contains(&self.outputs) {
            return Err(args::bad(format!(
                "the kernel gives {} numbers: 1 to 16 are possible",
                self.outputs
            )));
        }
        Ok(DeviceKernel {
            // SAFETY: the caller promises what the text does, as the structure's documentation
            // says.
            cuda: unsafe { Cuda::new(name, text) }.uniforms(uniforms),
            target_channels: self.target_channels as usize,
            source_channels: self.source_channels as usize,
            outputs: self.outputs as usize,
            reduce: match choice("reduce", self.reduce, 3)? {
                0 => Reduce::Sum,
                1 => Reduce::Min,
                _ => Reduce::Max,
            },
        })
    }
}

/// The traversal, over lists if `over_lists` is 1.
fn pairs_of(
    traversal: DeviceTraversal<'_>,
    over_lists: u32,
) -> Result<DeviceTraversal<'_>, Failure> {
    Ok(match choice("over_lists", over_lists, 2)? {
        0 => traversal,
        _ => traversal.over_lists(),
    })
}

/// The fields of targets and sources, if the kernel reads any.
pub(super) fn fields_of(
    kernel: &DeviceKernel,
    of_targets: NfDeviceField,
    of_sources: NfDeviceField,
) -> [Option<NfDeviceField>; 2] {
    [
        (kernel.target_channels > 0).then_some(of_targets),
        (kernel.source_channels > 0).then_some(of_sources),
    ]
}

/// Runs a traversal, whose work is on this stream.
///
/// # Safety
/// Fields and results are on the stream's GPU.
pub(super) unsafe fn run(
    stream: &Stream,
    traversal: DeviceTraversal<'_>,
    [of_targets, of_sources]: [Option<NfDeviceField>; 2],
    results: Array<'_, f32>,
    deliver: u32,
) -> Result<(), Failure> {
    let add = choice("deliver", deliver, 2)? == 1;
    let lend = |field: Option<NfDeviceField>, what| {
        let lend = |field: NfDeviceField| {
            let array = Array::on_device(field.values, field.len, what);
            results.apart_from(&array)?;
            // SAFETY: the caller guarantees that the address is device memory of this length until
            // the stream has used it.
            let lent = unsafe { borrow_array(stream, &array)? };
            Ok::<_, Failure>((lent, field.stride))
        };
        field.map(lend).transpose()
    };
    let of_targets = lend(of_targets, "the targets' field")?;
    let of_sources = lend(of_sources, "the sources' field")?;
    // SAFETY: as above, of the results.
    let mut results = unsafe { borrow_array(stream, &results)? };
    // Again, for the lifetime of the loan.
    let mut traversal = traversal;
    if let Some((field, stride)) = &of_targets {
        traversal = traversal.targets(DeviceField::new(field.as_view(), *stride));
    }
    if let Some((field, stride)) = &of_sources {
        traversal = traversal.sources(DeviceField::new(field.as_view(), *stride));
    }
    if add {
        Ok(traversal.add_into(&mut results.as_view_mut())?)
    } else {
        Ok(traversal.run_into(&mut results.as_view_mut())?)
    }
}

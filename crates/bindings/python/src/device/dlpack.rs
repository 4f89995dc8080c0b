//! DLPack: tensors in capsules, in the layout of version 1 of the standard and of earlier ones.

use super::layout::{DLDataType, DLDevice, DLTensor, MAJOR, READ_ONLY, TensorFields};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    ffi,
    prelude::*,
    types::{PyCapsule, PyCapsuleMethods},
};
use std::{
    ffi::{CStr, c_void},
    ptr::{self, NonNull},
    sync::Arc,
};

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
struct DLManagedTensor {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DLTensor,
}

/// A tensor of another library, given back when dropped.
pub(crate) struct ForeignTensor(Kind);

enum Kind {
    Plain(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

// SAFETY: the standard lets a tensor be read and deleted by any thread.
unsafe impl Send for ForeignTensor {}

impl ForeignTensor {
    /// Takes the tensor out of a capsule, which is marked as used.
    pub(crate) fn take(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let odd = |why: &str| PyTypeError::new_err(format!("{what}: __dlpack__() gave {why}"));
        let capsule = capsule
            .cast::<PyCapsule>()
            .map_err(|_| odd("no PyCapsule"))?;
        let [versioned, plain] =
            [VERSIONED, PLAIN].map(|name| capsule.is_valid_checked(Some(name)));
        let (name, used) = match (versioned, plain) {
            (true, _) => (VERSIONED, VERSIONED_USED),
            (_, true) => (PLAIN, PLAIN_USED),
            _ => return Err(odd("a capsule that is not a tensor, or was used before")),
        };
        let tensor = capsule.pointer_checked(Some(name))?;
        let kind = if versioned {
            Kind::Versioned(tensor.cast())
        } else {
            Kind::Plain(tensor.cast())
        };
        let aligned = match &kind {
            Kind::Plain(tensor) => tensor.is_aligned(),
            Kind::Versioned(tensor) => tensor.is_aligned(),
        };
        if !aligned {
            return Err(odd("a capsule with an address that is none of a tensor"));
        }
        // SAFETY: a capsule, and a name that stays.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        let managed = Self(kind);
        if let Kind::Versioned(tensor) = managed.0 {
            // SAFETY: a capsule of this name holds a tensor, whose version may always be read.
            let major = unsafe { (*tensor.as_ptr()).major };
            if major != MAJOR {
                return Err(PyBufferError::new_err(format!(
                    "{what}: a tensor of version {major} of DLPack; {MAJOR} is understood"
                )));
            }
        }
        Ok(managed)
    }

    /// Describes the tensor; refuses an impossible one.
    pub(crate) fn describe(&self, what: &str) -> PyResult<TensorFields> {
        // SAFETY: `take` has found tensors of these kinds in the capsule, which are ours until they
        // are given back.
        let (tensor, flags) = unsafe {
            match self.0 {
                Kind::Plain(managed) => ((*managed.as_ptr()).tensor, 0),
                Kind::Versioned(managed) => ((*managed.as_ptr()).tensor, (*managed.as_ptr()).flags),
            }
        };
        // SAFETY: the shape and the strides of a tensor have one number an axis.
        let found = unsafe { TensorFields::of(&tensor, flags & READ_ONLY != 0) };
        found.map_err(|why| PyTypeError::new_err(format!("{what}: {why}")))
    }
}

impl Drop for ForeignTensor {
    fn drop(&mut self) {
        // SAFETY: ours alone since the capsule was marked as used, and given back once.
        unsafe {
            match self.0 {
                Kind::Plain(tensor) => {
                    if let Some(deleter) = (*tensor.as_ptr()).deleter {
                        deleter(tensor.as_ptr());
                    }
                }
                Kind::Versioned(tensor) => {
                    if let Some(deleter) = (*tensor.as_ptr()).deleter {
                        deleter(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

/// A tensor that we export, with the arrays it points to: at most two axes, contiguous rows.
struct ExportedTensor {
    plain: DLManagedTensor,
    versioned: DLManagedTensorVersioned,
    shape: [i64; 2],
    strides: [i64; 2],
    _memory: Arc<dyn Send + Sync>,
}

/// A capsule for a consumer. The memory lives until the capsule and everything made of it are
/// freed.
pub(crate) fn export<'py>(
    py: Python<'py>,
    memory: Arc<dyn Send + Sync>,
    pointer: u64,
    shape: &[usize],
    dtype: DLDataType,
    device: DLDevice,
    versioned: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let columns = shape.get(1).copied().unwrap_or(1) as i64;
    let rows = shape.first().copied().unwrap_or(1) as i64;
    let tensor = DLTensor {
        data: ptr::without_provenance_mut(pointer as usize),
        device,
        axes: shape.len().min(2) as i32,
        dtype,
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    let exported = Box::into_raw(Box::new(ExportedTensor {
        plain: DLManagedTensor {
            tensor,
            context: ptr::null_mut(),
            deleter: Some(delete_plain),
        },
        versioned: DLManagedTensorVersioned {
            major: MAJOR,
            minor: 0,
            context: ptr::null_mut(),
            deleter: Some(delete_versioned),
            flags: 0,
            tensor,
        },
        shape: [rows, columns],
        strides: [columns, 1],
        _memory: memory,
    }));
    // SAFETY: the box was just made, and stays where it is until a deleter frees it.
    let (plain, full) = unsafe {
        for tensor in [
            &raw mut (*exported).plain.tensor,
            &raw mut (*exported).versioned.tensor,
        ] {
            (*tensor).shape = (&raw mut (*exported).shape).cast();
            (*tensor).strides = (&raw mut (*exported).strides).cast();
        }
        (*exported).plain.context = exported.cast();
        (*exported).versioned.context = exported.cast();
        (
            NonNull::new_unchecked(&raw mut (*exported).plain).cast(),
            NonNull::new_unchecked(&raw mut (*exported).versioned).cast(),
        )
    };
    let (pointer, name, destructor): (_, _, ffi::PyCapsule_Destructor) = if versioned {
        (full, VERSIONED, drop_versioned)
    } else {
        (plain, PLAIN, drop_plain)
    };
    // SAFETY: the destructor frees what the capsule of that name holds, unless a consumer will.
    let capsule =
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(destructor)) };
    if capsule.is_err() {
        // SAFETY: no capsule holds it, so this is the only owner.
        drop(unsafe { Box::from_raw(exported) });
    }
    capsule
}

unsafe extern "C" fn delete_plain(tensor: *mut DLManagedTensor) {
    // SAFETY: the consumer gives back, once, what it got.
    unsafe { drop(Box::from_raw((*tensor).context.cast::<ExportedTensor>())) }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw((*tensor).context.cast::<ExportedTensor>())) }
}

unsafe extern "C" fn drop_plain(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has this name was never used.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

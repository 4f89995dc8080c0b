//! Layouts of arrays on a GPU, and whether an engine can use them: plain data, no Python.
//!
//! Other libraries describe their arrays by the structures of DLPack ([`TensorFields`] reads one)
//! or by the entries of `__cuda_array_interface__`. Both become a [`Layout`], which refuses arrays
//! that an engine cannot use: other types and shapes, rows with gaps, addresses where the values
//! cannot lie. The fuzz target `capsules` runs this file alone.

use std::ffi::c_void;

/// Device types of DLPack: memory of the host and of a CUDA device.
pub(crate) const CPU: i64 = 1;
pub(crate) const CUDA: i64 = 2;

/// Codes of numbers.
pub(crate) const SIGNED: u8 = 0;
pub(crate) const UNSIGNED: u8 = 1;
pub(crate) const FLOAT: u8 = 2;
pub(crate) const BOOL: u8 = 6;

/// Structures of this major version are laid out as here.
pub(crate) const MAJOR: u32 = 1;
pub(crate) const READ_ONLY: u64 = 1;

/// Maximum number of axes in the array libraries; more is not a tensor.
const MAX_AXES: i32 = 64;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DLDevice {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DLDataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) backends: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DLTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: DLDevice,
    pub(crate) axes: i32,
    pub(crate) dtype: DLDataType,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

/// Type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
    Bool,
}

impl Dtype {
    pub(crate) const ALL: [Self; 7] = [
        Self::F32,
        Self::F64,
        Self::I32,
        Self::I64,
        Self::U32,
        Self::U64,
        Self::Bool,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
        }
    }

    pub(crate) fn typestr(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::Bool => "|b1",
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::Bool => 1,
        }
    }

    pub(crate) fn dlpack(self) -> DLDataType {
        DLDataType {
            code: match self {
                Self::F32 | Self::F64 => FLOAT,
                Self::I32 | Self::I64 => SIGNED,
                Self::U32 | Self::U64 => UNSIGNED,
                Self::Bool => BOOL,
            },
            bits: 8 * self.size() as u8,
            backends: 1,
        }
    }
}

/// The fields of a tensor as its owner states them.
pub(crate) struct TensorFields {
    pub(crate) pointer: u64,
    pub(crate) device: DLDevice,
    pub(crate) dtype: DLDataType,
    pub(crate) shape: Vec<i64>,
    /// In elements; none where rows lie one behind the other.
    pub(crate) strides: Option<Vec<i64>>,
    pub(crate) read_only: bool,
}

impl TensorFields {
    /// Describes a tensor; refuses an impossible one.
    ///
    /// # Safety
    /// `shape` and `strides` are null or have one number for each of the axes.
    pub(crate) unsafe fn of(tensor: &DLTensor, read_only: bool) -> Result<Self, String> {
        if !(0..=MAX_AXES).contains(&tensor.axes) {
            return Err(format!("a tensor of {} axes", tensor.axes));
        }
        let axes = tensor.axes as usize;
        let number = |from: *mut i64, axis| {
            // SAFETY: promised: where there is such an array, it has one number an axis.
            unsafe { from.add(axis).read_unaligned() }
        };
        let numbers = |from: *mut i64| -> Option<Vec<i64>> {
            (!from.is_null()).then(|| (0..axes).map(|axis| number(from, axis)).collect())
        };
        let shape = match (axes, numbers(tensor.shape)) {
            (0, _) => Vec::new(),
            (_, Some(shape)) => shape,
            (_, None) => return Err("a tensor without a shape".to_owned()),
        };
        let pointer = (tensor.data.addr() as u64).checked_add(tensor.byte_offset);
        Ok(Self {
            pointer: pointer.ok_or("a tensor beyond all memory")?,
            device: tensor.device,
            dtype: tensor.dtype,
            shape,
            strides: numbers(tensor.strides),
            read_only,
        })
    }
}

/// The reason for which an array is refused, by the exception to raise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArrayError {
    /// A wrong type: TypeError.
    Type(String),
    /// Wrong lengths or a wrong place: ValueError.
    Value(String),
}

/// The address and layout of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Name in messages.
    pub(crate) what: &'static str,
    pub(crate) pointer: u64,
    pub(crate) shape: Vec<usize>,
    /// As NumPy calls it.
    pub(crate) dtype: String,
    /// Whether elements lie one behind the other.
    pub(crate) packed: bool,
}

impl Layout {
    /// Bytes of an element; those of the widest for types that are not known here.
    pub(crate) fn element_bytes(&self) -> u64 {
        let known = Dtype::ALL.iter().find(|dtype| dtype.name() == self.dtype);
        known.map_or(16, |dtype| dtype.size() as u64)
    }

    /// From a tensor.
    pub(crate) fn of_tensor(found: &TensorFields, what: &'static str) -> Result<Self, ArrayError> {
        let shape = lengths(&found.shape, what)?;
        let strides = found.strides.as_deref();
        Ok(Self {
            what,
            pointer: found.pointer,
            packed: strides.is_none_or(|strides| are_packed(&shape, strides, 1)),
            shape,
            dtype: name_of(found.dtype),
        })
    }

    /// From the entries of `__cuda_array_interface__`.
    pub(crate) fn of_interface(
        what: &'static str,
        pointer: u64,
        shape: &[i64],
        typestr: &str,
        strides: Option<&[i64]>,
    ) -> Result<Self, ArrayError> {
        let shape = lengths(shape, what)?;
        let (dtype, size) = of_typestr(typestr);
        Ok(Self {
            what,
            pointer,
            packed: strides.is_none_or(|strides| are_packed(&shape, strides, size)),
            shape,
            dtype,
        })
    }

    /// Three coordinates a point, of this type; returns how many points.
    pub(crate) fn points(&self, dtype: Dtype) -> Result<usize, ArrayError> {
        self.expect(dtype, |shape| matches!(shape, [_, 3]), "(n, 3)")?;
        Ok(self.shape[0])
    }

    /// Checks that the array holds values of this type and of a shape that is described.
    pub(crate) fn suits(
        &self,
        dtype: Dtype,
        fits: impl FnOnce(&[usize]) -> bool,
        wanted: &str,
    ) -> Result<(), ArrayError> {
        self.expect(dtype, fits, wanted)
    }

    /// Returns true if the array holds values of this type.
    pub(crate) fn is(&self, dtype: Dtype) -> bool {
        self.dtype == dtype.name()
    }

    /// Checks that the array holds values of this type in this shape.
    pub(crate) fn shaped(&self, dtype: Dtype, wanted: &[usize]) -> Result<(), ArrayError> {
        self.expect(dtype, |shape| shape == wanted, &tuple(wanted))
    }

    /// Checks that the array holds a whole number for each of `points` points; returns their type.
    pub(crate) fn whole_numbers(&self, points: usize) -> Result<Dtype, ArrayError> {
        let whole = [Dtype::U32, Dtype::I32, Dtype::I64, Dtype::U64];
        let Some(dtype) = whole.into_iter().find(|dtype| dtype.name() == self.dtype) else {
            return Err(ArrayError::Type(format!(
                "{} must be whole numbers of 32 or 64 bits, not {}",
                self.what, self.dtype
            )));
        };
        self.shaped(dtype, &[points])?;
        Ok(dtype)
    }

    /// A fixed number of float32 for each of `points` points; returns that number.
    pub(crate) fn field(&self, points: usize) -> Result<usize, ArrayError> {
        let fits = |shape: &[usize]| match shape {
            [rows] => *rows == points,
            [rows, channels] => *rows == points && *channels > 0,
            _ => false,
        };
        self.expect(
            Dtype::F32,
            fits,
            &format!("({points},) or ({points}, channels)"),
        )?;
        Ok(self.shape.get(1).copied().unwrap_or(1))
    }

    fn expect(
        &self,
        dtype: Dtype,
        fits: impl FnOnce(&[usize]) -> bool,
        wanted: &str,
    ) -> Result<(), ArrayError> {
        let what = self.what;
        if self.dtype != dtype.name() {
            return Err(ArrayError::Type(format!(
                "{what} must be of type {}, not {}",
                dtype.name(),
                self.dtype
            )));
        }
        if !fits(&self.shape) {
            return Err(ArrayError::Value(format!(
                "{what} must have the shape {wanted}, not {}",
                tuple(&self.shape)
            )));
        }
        if !self.packed {
            return Err(ArrayError::Value(format!(
                "{what} must lie side by side in memory: make a contiguous copy (ascontiguousarray, \
                 contiguous())"
            )));
        }
        let bytes = self
            .shape
            .iter()
            .try_fold(dtype.size(), |bytes, length| bytes.checked_mul(*length));
        let end = bytes.and_then(|bytes| self.pointer.checked_add(bytes as u64));
        let there = self.pointer != 0 || bytes == Some(0);
        if end.is_none() || !there || !self.pointer.is_multiple_of(dtype.size() as u64) {
            return Err(ArrayError::Value(format!(
                "{what}: {} values of {} cannot lie at address {:#x}",
                tuple(&self.shape),
                dtype.name(),
                self.pointer
            )));
        }
        Ok(())
    }
}

fn lengths(shape: &[i64], what: &str) -> Result<Vec<usize>, ArrayError> {
    let length = |length: &i64| usize::try_from(*length);
    let lengths: Result<_, _> = shape.iter().map(length).collect();
    lengths.map_err(|_| ArrayError::Value(format!("{what}: a shape of {shape:?}")))
}

/// Whether elements lie one behind the other, the last axis first; strides of axes along which
/// there is nothing to step over say nothing.
fn are_packed(shape: &[usize], strides: &[i64], size: i64) -> bool {
    let mut expected = Some(size);
    let axes = shape.iter().zip(strides).rev();
    let packed = axes.fold(true, |packed, (length, stride)| {
        let fits = *length < 2 || expected == Some(*stride);
        let length = i64::try_from(*length).ok();
        expected = expected.and_then(|bytes| bytes.checked_mul(length?));
        packed && fits
    });
    (packed && shape.len() == strides.len()) || shape.contains(&0)
}

/// As NumPy calls a type.
fn name_of(dtype: DLDataType) -> String {
    let kind = match dtype.code {
        SIGNED => "int",
        UNSIGNED => "uint",
        FLOAT => "float",
        4 => "bfloat",
        5 => "complex",
        BOOL if dtype.bits == 8 && dtype.backends == 1 => return "bool".to_owned(),
        BOOL => "bool",
        code => return format!("type {code} of DLPack"),
    };
    match dtype.backends {
        1 => format!("{kind}{}", dtype.bits),
        backends => format!("{kind}{} by {backends}", dtype.bits),
    }
}

/// The same, and the bytes of an element; little endian as all GPUs are.
fn of_typestr(typestr: &str) -> (String, i64) {
    let known = |dtype: &Dtype| dtype.typestr() == typestr;
    if let Some(dtype) = Dtype::ALL.iter().find(|dtype| known(dtype)) {
        return (dtype.name().to_owned(), dtype.size() as i64);
    }
    let kind = match typestr.get(1..2) {
        Some("f") => "float",
        Some("i") => "int",
        Some("u") => "uint",
        Some("c") => "complex",
        _ => return (format!("{typestr:?}"), 1),
    };
    match typestr.get(2..).map(str::parse::<i64>) {
        Some(Ok(size @ 1..=32)) if !typestr.starts_with('>') => {
            (format!("{kind}{}", 8 * size), size)
        }
        _ => (format!("{typestr:?}"), 1),
    }
}

/// As Python writes a tuple.
pub(crate) fn tuple(shape: &[usize]) -> String {
    let numbers: Vec<_> = shape.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", numbers.join(", ")),
    }
}

//! Reads arrays of numbers from the caller by copying them.
//!
//! Lists and tensors on the host become NumPy arrays first ([`as_array`]). Whole numbers
//! and numbers of lists have no precision of their own and take that of the engine; whole numbers
//! that it cannot hold are refused.
//!
//! While the engine works other Python threads run, and may write to any array. Rust promises
//! itself that borrowed memory stays as it is, so nothing is borrowed: every number is read once,
//! while the thread is attached to Python, by loads that another thread may race with. A change by
//! another thread is seen or not, number by number. A million points take 2.5 ms on one thread;
//! large arrays are read by several threads if the engine has them. The memory is kept from one
//! update to the next.

use crate::lists;
use nearfield::{Positions, Precision, Radii};
use numpy::{Element, PyArrayDyn, PyUntypedArray, PyUntypedArrayMethods, prelude::*};
use pyo3::{
    exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use std::{
    mem::MaybeUninit,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

/// Numbers that are worth a thread.
const PART: usize = 1 << 18;
/// Threads that copy an array at most: more do not read faster.
const MAX_THREADS: usize = 8;

/// A number that can be read while another thread writes it.
pub(crate) trait Number: Element + Copy + Default + Send {
    /// As NumPy calls the type.
    const NAME: &'static str;

    /// Reads a number.
    ///
    /// # Safety
    /// `place` is aligned and points to memory that is there during the call. Others may write to
    /// it.
    unsafe fn load(place: *const Self) -> Self;
}

macro_rules! number {
    ($type:ty, $name:literal, $atomic:ty, $of_bits:expr) => {
        impl Number for $type {
            const NAME: &'static str = $name;

            #[inline(always)]
            unsafe fn load(place: *const Self) -> Self {
                // SAFETY: the caller guarantees a readable place; an atomic has the size and the
                // alignment of the number.
                let bits = unsafe { <$atomic>::from_ptr(place.cast_mut().cast()) };
                $of_bits(bits.load(Ordering::Relaxed))
            }
        }
    };
}

number!(f32, "float32", AtomicU32, f32::from_bits);
number!(f64, "float64", AtomicU64, f64::from_bits);
number!(i64, "int64", AtomicU64, u64::cast_signed);
number!(bool, "bool", AtomicU8, |byte| byte != 0);

/// Memory for coordinates, used again.
#[derive(Debug, Default)]
pub(crate) struct Room {
    single: Vec<f32>,
    double: Vec<f64>,
}

/// An array of shape (n, 3) or (n, 2) that the engine can copy from.
pub(crate) struct Points<'py> {
    array: Bound<'py, PyUntypedArray>,
    /// The argument that they are, in messages.
    what: &'static str,
    precision: Precision,
    shape: [usize; 2],
}

impl<'py> Points<'py> {
    /// The points that `object` holds, brought into a layout that can be read; `what` names the
    /// argument in errors. Whole numbers and numbers of lists become those of `precision`, in
    /// double where there is none.
    pub(crate) fn of(
        object: &Bound<'py, PyAny>,
        what: &'static str,
        precision: Option<Precision>,
    ) -> PyResult<Self> {
        let array = as_array(object, what, precision.unwrap_or(Precision::Double))?;
        columns(&array, what)?;
        let (array, precision) = if holds::<f32>(&array)? {
            (readable::<f32>(&array)?, Precision::Single)
        } else if holds::<f64>(&array)? {
            (readable::<f64>(&array)?, Precision::Double)
        } else {
            return Err(PyTypeError::new_err(format!(
                "{what} must be of type float32 or float64, or whole numbers, not {}: convert by \
                 astype",
                array.dtype()
            )));
        };
        let shape = columns(&array, what)?;
        Ok(Self {
            array,
            what,
            precision,
            shape,
        })
    }

    /// Whether they have two coordinates each.
    pub(crate) fn are_flat(&self) -> bool {
        self.shape[1] == 2
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.shape[0]
    }

    /// True if several threads copy them.
    pub(crate) fn are_many(&self) -> bool {
        let [rows, columns] = self.shape;
        rows.saturating_mul(columns) >= 2 * PART
    }

    /// The precision the coordinates are in.
    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// Copies the coordinates to `room`, by up to `threads` threads.
    pub(crate) fn copied<'a>(&self, room: &'a mut Room, threads: usize) -> PyResult<Positions<'a>> {
        let [_, columns] = self.shape;
        match self.precision {
            Precision::Single => {
                let numbers = copy_to(&mut room.single, &self.array, threads, self.what)?;
                Ok(positions_of(numbers, columns))
            }
            Precision::Double => {
                let numbers = copy_to(&mut room.double, &self.array, threads, self.what)?;
                Ok(positions_of(numbers, columns))
            }
        }
    }
}

/// Points of three coordinates each, copied.
pub(crate) enum Rows<'a> {
    Single(&'a [[f32; 3]]),
    Double(&'a [[f64; 3]]),
}

impl Points<'_> {
    /// Copies points of three coordinates to `room`.
    pub(crate) fn rows<'a>(&self, room: &'a mut Room, threads: usize) -> PyResult<Rows<'a>> {
        if self.are_flat() {
            return Err(PyValueError::new_err(
                "points of systems must have the shape (n, 3), not (n, 2): give 0 for z",
            ));
        }
        self.copied(room, threads)?;
        Ok(match self.precision {
            Precision::Single => Rows::Single(room.single.as_chunks().0),
            Precision::Double => Rows::Double(room.double.as_chunks().0),
        })
    }
}

/// A copy of the values of a field in single precision, which kernels compute in. An engine in
/// double precision takes float64 too, and rounds it; numbers that float32 cannot hold are refused.
pub(crate) fn field(
    object: &Bound<'_, PyAny>,
    threads: usize,
    what: &str,
    precision: Precision,
) -> PyResult<Vec<f32>> {
    let array = as_array(object, what, precision)?;
    if precision == Precision::Single || !holds::<f64>(&array)? {
        return values::<f32>(&array, threads, what);
    }
    let given = values::<f64>(&array, threads, what)?;
    let mut rounded = lists::room(given.len(), what)?;
    rounded.extend(given.iter().map(|&value| value as f32));
    match (0..given.len()).find(|&k| given[k].is_finite() && !rounded[k].is_finite()) {
        None => Ok(rounded),
        Some(k) => Err(PyValueError::new_err(format!(
            "{what}: value {k} is {:e}, which float32 cannot hold, and kernels compute in it",
            given[k]
        ))),
    }
}

/// A copy of radii of points in the precision that they were given in.
pub(crate) enum OwnRadii {
    /// In float32.
    Single(Vec<f32>),
    /// In float64.
    Double(Vec<f64>),
}

impl OwnRadii {
    /// Those of an array; an engine in double precision takes float64 too, as it is.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        threads: usize,
        precision: Precision,
    ) -> PyResult<Self> {
        const WHAT: &str = "radii";
        let array = as_array(object, WHAT, precision)?;
        if precision == Precision::Double && holds::<f64>(&array)? {
            return values::<f64>(&array, threads, WHAT).map(Self::Double);
        }
        values::<f32>(&array, threads, WHAT).map(Self::Single)
    }

    /// As engines take them.
    pub(crate) fn get(&self) -> Radii<'_> {
        match self {
            Self::Single(radii) => radii.into(),
            Self::Double(radii) => radii.into(),
        }
    }
}

/// The array that an object is, or that NumPy makes of it (a list or a tensor on the host). Whole
/// numbers, and numbers of lists, become those of `precision`.
fn as_array<'py>(
    object: &Bound<'py, PyAny>,
    what: &str,
    precision: Precision,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let (array, is_typed) = match object.cast::<PyUntypedArray>() {
        Ok(array) => {
            check_unmasked(array, what)?;
            (array.clone(), true)
        }
        Err(_) => {
            let numpy = py.import("numpy")?;
            let [array, dlpack] = ["__array__", "__dlpack__"].map(|name| object.hasattr(name));
            let (array, dlpack) = (array?, dlpack?);
            let by = if dlpack && !array {
                "from_dlpack"
            } else {
                "asarray"
            };
            let wrong = |why: &dyn std::fmt::Display| {
                PyTypeError::new_err(format!(
                    "{what} must be an array, a list of numbers or a tensor on the host (arrays on \
                     a GPU are for DeviceEngine): {why}"
                ))
            };
            let made = numpy.call_method1(by, (object,)).map_err(|error| {
                if error.is_instance_of::<PyException>(py) {
                    wrong(&error)
                } else {
                    error
                }
            })?;
            let made = made.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
            if !matches!(made.dtype().kind(), b'f' | b'i' | b'u' | b'b') {
                return Err(wrong(&object.get_type()));
            }
            (made, array || dlpack)
        }
    };
    let kind = array.dtype().kind();
    let whole = matches!(kind, b'i' | b'u');
    // Numbers of a list come as float64, those of float32 in a list as float32.
    let unsaid = !is_typed && kind == b'f';
    let (name, digits) = match precision {
        Precision::Single => ("float32", f32::MANTISSA_DIGITS),
        Precision::Double => ("float64", f64::MANTISSA_DIGITS),
    };
    if whole && array.shape().iter().all(|&len| len > 0) {
        let bound = 1i128 << digits;
        for extreme in ["min", "max"] {
            let number: i128 = array.call_method0(extreme)?.extract()?;
            if !(-bound..=bound).contains(&number) {
                return Err(PyValueError::new_err(format!(
                    "{what}: {number} is beyond the whole numbers that {name} holds, up to \
                     2^{digits}; convert by astype, or use precision=\"f64\""
                )));
            }
        }
    }
    let rounded = unsaid && precision == Precision::Single;
    if !(whole || rounded) {
        return Ok(array);
    }
    let converted = array.call_method1("astype", (name,))?;
    converted.cast_into().map_err(PyErr::from)
}

/// Whole numbers from 0 to 2³² − 1, such as indices: of an array of any such type, of `columns`
/// columns, or of one axis if that is 1; or of a list.
pub(crate) fn whole_numbers(
    object: &Bound<'_, PyAny>,
    what: &str,
    columns: usize,
) -> PyResult<Vec<u32>> {
    let numpy = object.py().import("numpy")?;
    let array = numpy.call_method1("asanyarray", (object,))?;
    let untyped = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    check_unmasked(untyped, what)?;
    let fits = match *untyped.shape() {
        [_] if columns == 1 => true,
        [0] => true,
        [_, found] => columns > 1 && found == columns,
        _ => false,
    };
    if !fits {
        let wanted = match columns {
            1 => "(n,)".to_owned(),
            columns => format!("(n, {columns})"),
        };
        return Err(PyValueError::new_err(format!(
            "{what} must have the shape {wanted}, not {:?}",
            untyped.shape()
        )));
    }
    let flat = array.call_method1("reshape", (-1,))?;
    lists::whole_numbers(&flat, what, u32::MAX.into())
}

/// A copy of an array of one axis, called `what` in messages.
pub(crate) fn values<T: Number>(
    object: &Bound<'_, PyAny>,
    threads: usize,
    what: &str,
) -> PyResult<Vec<T>> {
    let name = T::NAME;
    let wanted = || PyTypeError::new_err(format!("{what} must be a NumPy array of {name}"));
    let array = object.cast::<PyUntypedArray>().map_err(|_| wanted())?;
    if !holds::<T>(array)? {
        return Err(wanted());
    }
    if array.ndim() != 1 {
        return Err(PyValueError::new_err(format!(
            "{what} must have the shape (n,), not {:?}",
            array.shape()
        )));
    }
    copied(array, threads, what)
}

/// A copy of an array of one axis, or of two row by row, whose numbers are of this type.
pub(crate) fn copied<T: Number>(
    array: &Bound<'_, PyUntypedArray>,
    threads: usize,
    what: &str,
) -> PyResult<Vec<T>> {
    check_unmasked(array, what)?;
    let mut copy = Vec::new();
    copy_to(&mut copy, &readable::<T>(array)?, threads, what)?;
    Ok(copy)
}

/// Refuses masked arrays with masked entries, whose memory holds no data.
fn check_unmasked(array: &Bound<'_, PyUntypedArray>, what: &str) -> PyResult<()> {
    let py = array.py();
    if array.get_type().is(py.get_type::<PyUntypedArray>()) {
        return Ok(());
    }
    let masked = py.import("numpy.ma")?;
    let any: bool = masked.call_method1("is_masked", (array,))?.extract()?;
    if !any {
        return Ok(());
    }
    let entries = masked.call_method1("count_masked", (array,))?;
    Err(PyValueError::new_err(format!(
        "{what}: {entries} of {} entries are masked and hold no data: leave them out \
         (numpy.ma.compress_rows), or fill them by filled()",
        array.shape().iter().product::<usize>()
    )))
}

/// Number of rows and columns of points.
fn columns(array: &Bound<'_, PyUntypedArray>, what: &str) -> PyResult<[usize; 2]> {
    match *array.shape() {
        [rows, columns @ (2 | 3)] => Ok([rows, columns]),
        ref shape => Err(PyValueError::new_err(format!(
            "{what} must have the shape (n, 3) or (n, 2), not {shape:?}"
        ))),
    }
}

/// Whether the elements are numbers of this type, in whichever byte order.
fn holds<T: Number>(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    let dtype = array.dtype();
    let native = match dtype.byteorder() {
        b'=' | b'|' => dtype,
        _ => dtype
            .call_method1("newbyteorder", ("=",))?
            .cast_into()
            .map_err(PyErr::from)?,
    };
    Ok(native.is_equiv_to(&T::get_dtype(array.py())))
}

/// The array itself, or a copy that NumPy makes, where it is not aligned, of another byte order, of
/// a class of its own, or does not ascend in memory.
fn readable<'py, T: Number>(
    array: &Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    if is_readable::<T>(array) {
        return Ok(array.clone());
    }
    let py = array.py();
    let keywords = PyDict::new(py);
    keywords.set_item("dtype", T::get_dtype(py))?;
    keywords.set_item("order", "C")?;
    keywords.set_item("copy", true)?;
    let made = py
        .import("numpy")?
        .call_method("array", (array,), Some(&keywords))?;
    let made = made.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
    if made.ndim() != array.ndim() || !is_readable::<T>(&made) {
        return Err(PyTypeError::new_err(
            "the array cannot be read: pass numpy.ascontiguousarray(array)",
        ));
    }
    Ok(made)
}

/// Whether numbers can be loaded where they are: aligned, of the processor's byte order, and at
/// distances that ascend.
fn is_readable<T: Number>(array: &Bound<'_, PyUntypedArray>) -> bool {
    let size = size_of::<T>() as isize;
    let ascends = |stride: &isize| *stride >= 0 && stride % size == 0;
    let typed = array.cast::<PyArrayDyn<T>>();
    typed.is_ok_and(|typed| typed.data().is_aligned()) && array.strides().iter().all(ascends)
}

/// Copies all numbers of a readable array, the last axis fastest.
fn copy_to<'a, T: Number>(
    room: &'a mut Vec<T>,
    array: &Bound<'_, PyUntypedArray>,
    threads: usize,
    what: &str,
) -> PyResult<&'a [T]> {
    let (shape, strides) = (array.shape(), array.strides());
    // An array of one axis has rows of one number.
    let [rows, columns, row, column] = match (shape, strides) {
        (&[len], &[stride]) => [len, 1, stride as usize, stride as usize],
        (&[rows, columns], &[row, column]) => [rows, columns, row as usize, column as usize],
        _ => {
            return Err(PyValueError::new_err(format!(
                "{what}: a shape of {shape:?}"
            )));
        }
    };
    let short = || {
        PyMemoryError::new_err(format!(
            "{what}: no memory for a copy of {rows} times {columns} numbers"
        ))
    };
    let len = rows.checked_mul(columns).ok_or_else(short)?;
    room.clear();
    room.try_reserve_exact(len).map_err(|_| short())?;
    // Where the array lies as long as this thread is attached to Python and refers to it.
    let first = array.cast::<PyArrayDyn<T>>().map_err(PyErr::from)?.data();
    let first = first.cast_const().cast::<u8>();
    let layout = Layout {
        first: first.expose_provenance(),
        columns,
        row,
        column,
    };
    let places = &mut room.spare_capacity_mut()[..len];
    layout.copy(places, threads);
    // SAFETY: `len` elements have just been written.
    unsafe { room.set_len(len) };
    Ok(room)
}

/// Where the numbers of a readable array lie.
#[derive(Clone, Copy)]
struct Layout {
    /// Address of the first.
    first: usize,
    columns: usize,
    /// Bytes from one row to the next, and from one number of a row to the next.
    row: usize,
    column: usize,
}

impl Layout {
    /// Copies all numbers with up to `threads` threads.
    fn copy<T: Number>(self, places: &mut [MaybeUninit<T>], threads: usize) {
        let parts = threads.min(places.len() / PART).clamp(1, MAX_THREADS);
        if parts == 1 {
            return self.copy_from(0, places);
        }
        // Of whole rows.
        let size = places.len().div_ceil(parts).next_multiple_of(self.columns);
        let left = Mutex::new(places.chunks_mut(size).enumerate());
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((number, part)) = next() {
                self.copy_from(number * size, part);
            }
        };
        thread::scope(|scope| {
            for _ in 1..parts {
                // If the system starts no other threads, this thread copies the rest.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }

    /// Copies numbers from number `begin` on, which begins a row.
    fn copy_from<T: Number>(self, begin: usize, places: &mut [MaybeUninit<T>]) {
        let load = |at: usize| {
            // SAFETY: within the array, as NumPy's shape and strides say, which stays while the
            // thread that waits for this is attached to Python; aligned, since the first number is
            // and all strides are multiples of its size (`is_readable`).
            unsafe { T::load(std::ptr::with_exposed_provenance(self.first + at)) }
        };
        let one_row = self.row == self.columns * self.column;
        if one_row {
            for (k, place) in places.iter_mut().enumerate() {
                place.write(load((begin + k) * self.column));
            }
            return;
        }
        let first = begin / self.columns.max(1);
        for (k, places) in places.chunks_mut(self.columns.max(1)).enumerate() {
            for (of, place) in places.iter_mut().enumerate() {
                place.write(load((first + k) * self.row + of * self.column));
            }
        }
    }
}

/// Points of two or three coordinates each.
fn positions_of<T>(numbers: &[T], columns: usize) -> Positions<'_>
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]> + From<&'a [[T; 2]]>,
{
    if columns == 2 {
        numbers.as_chunks::<2>().0.into()
    } else {
        numbers.as_chunks::<3>().0.into()
    }
}

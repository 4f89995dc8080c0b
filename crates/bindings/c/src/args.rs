//! Checks the arguments of C callers and turns them into slices.
//!
//! Null, alignment and sizes beyond the address space are found here. The caller of the interface
//! guarantees that the memory exists and is not written to while it is read.

use crate::status::{Failure, NfStatus};
use nearfield::Positions;
use std::{ffi::c_char, ptr, slice};

/// Longest name of a device, strategy or kernel, in bytes.
pub(crate) const MAX_NAME: usize = 4096;
/// Longest path.
pub(crate) const MAX_PATH: usize = 1 << 16;
/// Longest text of a kernel.
pub(crate) const MAX_KERNEL: usize = 1 << 24;

pub(crate) fn null(what: &str) -> Failure {
    Failure::new(NfStatus::NullPointer, format!("{what} is a null pointer"))
}

pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(NfStatus::BadArgument, text)
}

/// An array of the caller; null is an array of no elements.
///
/// # Safety
/// `data` is null or points to `len` elements that are not written to during `'a`.
pub(crate) unsafe fn array<'a, T>(
    data: *const T,
    len: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check(data, len, what)?;
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// An array that results go to.
///
/// # Safety
/// `data` is null or points to `len` elements that only this call uses during `'a`.
pub(crate) unsafe fn results<'a, T>(
    data: *mut T,
    len: usize,
    what: &str,
) -> Result<&'a mut [T], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    check(data, len, what)?;
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    Ok(unsafe { slice::from_raw_parts_mut(data, len) })
}

fn check<T>(data: *const T, len: usize, what: &str) -> Result<(), Failure> {
    if data.is_null() {
        return Err(null(what));
    }
    if !data.is_aligned() {
        return Err(bad(format!(
            "{what} is not aligned to {} bytes",
            align_of::<T>()
        )));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(bad(format!(
            "{what} has {len} elements: more than memory holds"
        ))),
    }
}

/// Writes one result.
///
/// # Safety
/// `place` is null or points to a `T` that only this call uses.
pub(crate) unsafe fn put<T>(place: *mut T, what: &str, value: T) -> Result<(), Failure> {
    check(place, 1, what)?;
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    unsafe { ptr::write(place, value) };
    Ok(())
}

/// Refuses a place for a result that [`put`] would refuse, before anything is done.
pub(crate) fn place<T>(place: *mut T, what: &str) -> Result<(), Failure> {
    check(place.cast_const(), 1, what)
}

/// Where an array of the caller lies; looked at before anything is made of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent<'a> {
    what: &'a str,
    start: usize,
    bytes: usize,
}

impl<'a> Extent<'a> {
    pub(crate) fn of<T>(data: *const T, len: usize, what: &'a str) -> Self {
        let (start, bytes) = (data.addr(), len.saturating_mul(size_of::<T>()));
        Self { what, start, bytes }
    }

    /// Refuses results that would be written over what is read, or over other results.
    pub(crate) fn apart_from(self, other: Extent<'_>) -> Result<(), Failure> {
        let end = |of: Extent<'_>| of.start.saturating_add(of.bytes);
        let overlap = self.start < end(other) && other.start < end(self);
        if overlap && self.bytes > 0 && other.bytes > 0 {
            return Err(bad(format!(
                "{} and {} share memory: results need an array of their own",
                self.what, other.what
            )));
        }
        Ok(())
    }
}

/// The size that a structure of the caller says it has, which is its first member: read alone,
/// because the rest need not be there.
///
/// # Safety
/// `place` is null or points to a size.
pub(crate) unsafe fn size_in<T>(place: *const T, what: &str) -> Result<usize, Failure> {
    if place.is_null() {
        return Err(null(what));
    }
    if !place.is_aligned() {
        return Err(bad(format!(
            "{what} is not aligned to {} bytes",
            align_of::<T>()
        )));
    }
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    Ok(unsafe { ptr::read(place.cast::<usize>()) })
}

/// A structure of the caller.
///
/// # Safety
/// `place` is null or points to a `T` that is not written to during `'a`.
pub(crate) unsafe fn one<'a, T>(place: *const T, what: &str) -> Result<&'a T, Failure> {
    check(place, 1, what)?;
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    Ok(unsafe { &*place })
}

/// A text of the caller of at most `max` bytes; `None` for null.
///
/// # Safety
/// `text` is null or points to bytes that end with a NUL, or to `max` bytes without one.
pub(crate) unsafe fn text<'a>(
    text: *const c_char,
    max: usize,
    what: &str,
) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and nothing is read behind the first NUL; the rest is promised.
    let end = (0..=max).find(|&at| unsafe { *text.add(at) } == 0);
    let Some(end) = end else {
        return Err(bad(format!(
            "{what} does not end within {max} bytes: a text ends with a NUL"
        )));
    };
    // SAFETY: so many bytes have just been read.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), end) };
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(bad(format!("{what} is not UTF-8"))),
    }
}

/// Coordinates in the precision of `T`.
pub(crate) trait Coordinate: Sized + 'static {
    fn packed(points: &[[Self; 3]]) -> Positions<'_>;
    fn strided(bytes: &[u8], stride: usize, len: usize) -> Option<Positions<'_>>;
}

impl Coordinate for f32 {
    fn packed(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn strided(bytes: &[u8], stride: usize, len: usize) -> Option<Positions<'_>> {
        Positions::strided(bytes, 0, stride, len).ok()
    }
}

impl Coordinate for f64 {
    fn packed(points: &[[Self; 3]]) -> Positions<'_> {
        points.into()
    }

    fn strided(bytes: &[u8], stride: usize, len: usize) -> Option<Positions<'_>> {
        Positions::strided_f64(bytes, 0, stride, len).ok()
    }
}

/// Coordinates of the caller, `stride` bytes from point to point.
///
/// # Safety
/// `data` is null or points to that many points of three `T`, which are not written to during
/// `'a`.
pub(crate) unsafe fn positions<'a, T: Coordinate>(
    data: *const T,
    points: usize,
    stride: usize,
) -> Result<Positions<'a>, Failure> {
    let size = size_of::<[T; 3]>();
    if stride < size {
        return Err(bad(format!(
            "the stride is {stride} bytes: a point's three coordinates take {size}"
        )));
    }
    if points == 0 {
        return Ok(T::packed(&[]));
    }
    if data.is_null() {
        return Err(null("the array of positions"));
    }
    if stride == size && data.is_aligned() {
        // SAFETY: the caller's promise is this one's.
        let packed = unsafe { array(data.cast::<[T; 3]>(), points, "the array of positions")? };
        return Ok(T::packed(packed));
    }
    let too_many = || {
        bad(format!(
            "{points} points {stride} bytes apart: more than memory holds"
        ))
    };
    let bytes = (points - 1)
        .checked_mul(stride)
        .and_then(|span| span.checked_add(size))
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(too_many)?;
    // SAFETY: not null, and bytes need no alignment; that the memory up to the last coordinate is
    // there is promised.
    let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), bytes) };
    T::strided(bytes, stride, points).ok_or_else(too_many)
}

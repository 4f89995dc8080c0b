//! Checks the arguments of C callers and turns them into slices.
//!
//! Null, alignment and sizes beyond the address space are found here. The caller of the interface
//! guarantees that the memory exists and is not written to while it is read.

use crate::status::{Failure, NfStatus, to_c};
use nearfield::{Positions, kernels::Field};
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

/// An array of the caller: its address, its length and its name in messages. Nothing is made of it
/// before it is asked for; null is an array of no elements.
#[derive(Debug)]
pub(crate) struct Array<'n, T> {
    first: *const T,
    len: usize,
    what: &'n str,
}

impl<'n, T> Array<'n, T> {
    pub(crate) fn new(first: *const T, len: usize, what: &'n str) -> Self {
        Self { first, len, what }
    }

    /// One on the device, by its address there.
    pub(crate) fn on_device(address: u64, len: usize, what: &'n str) -> Self {
        Self::new(ptr::without_provenance(address as usize), len, what)
    }

    pub(crate) fn address(&self) -> usize {
        self.first.addr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Refuses null, an address that is not aligned, and more elements than memory holds.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self { first, len, what } = self;
        if *len == 0 {
            return Ok(());
        }
        if first.is_null() {
            return Err(null(what));
        }
        if !first.is_aligned() {
            return Err(bad(format!(
                "{what}: address {first:p} is not aligned to {} bytes",
                align_of::<T>()
            )));
        }
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        match bytes.and_then(|bytes| self.address().checked_add(bytes)) {
            Some(_) => Ok(()),
            None => Err(bad(format!(
                "{what} has {len} elements: more than memory holds"
            ))),
        }
    }

    /// Refuses results that would overwrite inputs or other results.
    pub(crate) fn apart_from<U>(&self, other: &Array<'_, U>) -> Result<(), Failure> {
        let (size, others) = (size_of::<T>(), size_of::<U>());
        let end = self.address().saturating_add(self.len.saturating_mul(size));
        let others_end = other
            .address()
            .saturating_add(other.len.saturating_mul(others));
        let overlap = self.address() < others_end && other.address() < end;
        if overlap && self.len > 0 && other.len > 0 {
            return Err(bad(format!(
                "{} and {} share memory: results need an array of their own",
                self.what, other.what
            )));
        }
        Ok(())
    }

    /// The elements.
    ///
    /// # Safety
    /// The array is null or has `len` elements, which are not written to during `'a`.
    pub(crate) unsafe fn read<'a>(&self) -> Result<&'a [T], Failure> {
        self.check()?;
        if self.len == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null and aligned, as just checked; the rest is promised.
        Ok(unsafe { slice::from_raw_parts(self.first, self.len) })
    }

    /// The elements, for a call that writes `results`, which must not share memory with them.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    pub(crate) unsafe fn read_beside<'a, U>(
        &self,
        results: &Array<'_, U>,
    ) -> Result<&'a [T], Failure> {
        results.apart_from(self)?;
        // SAFETY: `read` needs exactly what the caller of this function guarantees.
        unsafe { self.read() }
    }

    /// The elements, for results.
    ///
    /// # Safety
    /// The array was made from a `*mut T`, and is null or has `len` elements that only this call
    /// uses during `'a`.
    pub(crate) unsafe fn write<'a>(&self) -> Result<&'a mut [T], Failure> {
        self.check()?;
        if self.len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: not null and aligned, as just checked; the rest is promised.
        Ok(unsafe { slice::from_raw_parts_mut(self.first.cast_mut(), self.len) })
    }
}

/// A field of the caller: `channels` floats for each of `points`.
#[derive(Debug)]
pub(crate) struct FieldArray<'n> {
    pub(crate) first: *const f32,
    pub(crate) points: usize,
    pub(crate) channels: usize,
    /// Bytes from one point's floats to the next point's; 0 if they lie one behind the other.
    pub(crate) stride: usize,
    pub(crate) what: &'n str,
}

impl FieldArray<'_> {
    /// The field, for a call that writes `results`, which must not lie between its floats either.
    ///
    /// # Safety
    /// `first` is null or points to that many floats for each of `points`, at those distances,
    /// which are not written to during `'a`.
    pub(crate) unsafe fn read_beside<'a, U>(
        &self,
        results: &Array<'_, U>,
    ) -> Result<Field<'a>, Failure> {
        let (points, channels, what) = (self.points, self.channels, self.what);
        let size = channels * size_of::<f32>();
        let stride = match self.stride {
            0 => {
                Array::new(self.first, points.saturating_mul(channels), what).check()?;
                size
            }
            stride if stride < size => {
                return Err(bad(format!(
                    "{what}: the stride is {stride} bytes, the numbers of a point take {size}"
                )));
            }
            stride => stride,
        };
        let bytes = match points {
            0 => Some(0),
            _ => (points - 1)
                .checked_mul(stride)
                .and_then(|span| span.checked_add(size)),
        };
        let bytes = bytes.ok_or_else(|| {
            bad(format!(
                "{what}: {points} points {stride} bytes apart are more than memory holds"
            ))
        })?;
        // SAFETY: the caller guarantees that everything up to the last number is there.
        let bytes =
            unsafe { Array::new(self.first.cast::<u8>(), bytes, what).read_beside(results)? };
        Field::strided(bytes, 0, stride, points, channels)
            .map_err(|error| bad(format!("{what}: {error}")))
    }
}

/// Writes one result.
///
/// # Safety
/// `place` is null or points to a `T` that only this call uses.
pub(crate) unsafe fn put<T>(place: *mut T, what: &str, value: T) -> Result<(), Failure> {
    self::place(place, what)?;
    // SAFETY: not null and aligned, as just checked; the rest is promised.
    unsafe { ptr::write(place, value) };
    Ok(())
}

/// Refuses a place for a result that [`put`] would refuse, before anything is done.
pub(crate) fn place<T>(place: *mut T, what: &str) -> Result<(), Failure> {
    Array::new(place.cast_const(), 1, what).check()
}

/// Copies a text with a NUL behind it; `needed`, unless null, gets the bytes it takes. With a null
/// buffer and capacity 0 nothing is copied.
///
/// # Safety
/// `buffer` is null or points to `capacity` bytes, `needed` is null or points to a size.
pub(crate) unsafe fn put_text(
    text: &str,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> Result<(), Failure> {
    let text = to_c(text);
    let bytes = text.as_bytes_with_nul();
    if !needed.is_null() {
        // SAFETY: the caller guarantees that `needed` points to a size.
        unsafe { put(needed, "needed", bytes.len())? };
    }
    if buffer.is_null() && capacity == 0 {
        return Ok(());
    }
    if buffer.is_null() {
        return Err(null("buffer"));
    }
    if capacity < bytes.len() {
        return Err(bad(format!(
            "the text takes {} bytes, the buffer holds {capacity}",
            bytes.len()
        )));
    }
    // SAFETY: the caller guarantees `capacity` bytes at `buffer`.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), buffer, bytes.len()) };
    Ok(())
}

/// A number that selects one of `count` choices.
pub(crate) fn choice(what: &str, given: u32, count: u32) -> Result<u32, Failure> {
    if given < count {
        Ok(given)
    } else {
        Err(bad(format!("{what} is {given}: it must be below {count}")))
    }
}

/// Refuses an array of the wrong length.
pub(crate) fn check_len(what: &str, given: usize, wanted: usize) -> Result<(), Failure> {
    if given == wanted {
        Ok(())
    } else {
        Err(bad(format!("{what} has {given} elements, not {wanted}")))
    }
}

/// Refuses options of another size than this library's.
fn check_size<T>(given: usize) -> Result<(), Failure> {
    let own = size_of::<T>();
    if given == own {
        Ok(())
    } else {
        Err(bad(format!(
            "options of {given} bytes, where this library has {own}: initialise them by their \
             function, and use header and library of one version"
        )))
    }
}

/// Writes default options.
///
/// # Safety
/// `place` is null or points to `size` bytes that only this call uses.
pub(crate) unsafe fn put_options<T>(place: *mut T, size: usize, value: T) -> Result<(), Failure> {
    self::place(place, "options")?;
    check_size::<T>(size)?;
    // SAFETY: the caller promises `size` bytes.
    unsafe { put(place, "options", value) }
}

/// Options of the caller, which begin with their size: that is read alone first, because the rest
/// need not be there.
///
/// # Safety
/// `place` is null or points to a size, behind which the rest of a `T` follows if it is that of a
/// `T`; it is not written to during `'a`.
pub(crate) unsafe fn options<'a, T>(place: *const T) -> Result<&'a T, Failure> {
    // SAFETY: a size is promised.
    let size = unsafe { *one(place.cast::<usize>(), "options")? };
    check_size::<T>(size)?;
    // SAFETY: the size is right, so the rest is there.
    unsafe { one(place, "options") }
}

/// A structure of the caller.
///
/// # Safety
/// `place` is null or points to a `T` that is not written to during `'a`.
pub(crate) unsafe fn one<'a, T>(place: *const T, what: &str) -> Result<&'a T, Failure> {
    Array::new(place, 1, what).check()?;
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
    // SAFETY: `end` bytes have just been read.
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
        let packed = Array::new(data.cast::<[T; 3]>(), points, "the array of positions");
        // SAFETY: the caller's promise is this one's.
        return Ok(T::packed(unsafe { packed.read()? }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_hold_no_such_array_are_refused() {
        let check = |address, len| {
            let array = Array::<f32>::on_device(address, len, "mass");
            array.check().map_err(|failure| failure.status)
        };
        assert!(check(0, 0).is_ok() && check(4096, 10).is_ok());
        assert_eq!(check(0, 1), Err(NfStatus::NullPointer));
        assert_eq!(check(4098, 10), Err(NfStatus::BadArgument));
        assert_eq!(check(4096, usize::MAX / 2), Err(NfStatus::BadArgument));
        assert_eq!(check(u64::MAX - 7, 3), Err(NfStatus::BadArgument));
    }
}

//! Inputs as C has them, and the checks that every call gets.

use super::{
    input::{Odd, Points, Room},
    memory::Results,
};
use nearfield_c::*;
use std::{ffi::CStr, ptr};

/// Radii, usual and impossible.
pub(super) const RADII: [f64; 12] = [
    1.0,
    0.5,
    2.0,
    1.0,
    0.25,
    3.0,
    0.0,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    1e-30,
    1e300,
];

/// A set at most.
pub(super) const MAX_POINTS: usize = 48;
/// Points as C has them.
pub(super) struct Array {
    pub(super) bytes: Vec<u8>,
    pub(super) first: usize,
    pub(super) points: usize,
    pub(super) stride: usize,
    pub(super) double: bool,
}

impl Array {
    pub(super) fn new(points: &Points) -> Self {
        let places = &points.places[..points.places.len().min(MAX_POINTS)];
        let size = if points.double { 24 } else { 12 };
        let stride = size + usize::from(points.gap % 9);
        let first = usize::from(points.shift % 9);
        let mut bytes = vec![0xff; first + places.len() * stride];
        for (n, place) in places.iter().enumerate() {
            let mut place = place.map(|x| f64::from(x) / 16.0);
            if let Some((at, odd)) = points.odd
                && usize::from(at) / 3 == n
            {
                place[usize::from(at) % 3] = odd.coordinate(points.double);
            }
            let begin = first + n * stride;
            for axis in 0..3 {
                if points.double {
                    bytes[begin + 8 * axis..][..8].copy_from_slice(&place[axis].to_ne_bytes());
                } else {
                    let single = place[axis] as f32;
                    bytes[begin + 4 * axis..][..4].copy_from_slice(&single.to_ne_bytes());
                }
            }
        }
        // Nothing lies behind the last coordinate.
        bytes.truncate((first + places.len() * stride).saturating_sub(stride - size));
        Self {
            first,
            points: places.len(),
            stride,
            double: points.double,
            bytes,
        }
    }

    pub(super) fn place<T>(&self) -> *const T {
        self.bytes.as_ptr().wrapping_add(self.first).cast()
    }
}

impl Odd {
    pub(super) fn coordinate(self, double: bool) -> f64 {
        match (self, double) {
            (Self::Nan, _) => f64::NAN,
            (Self::Infinite, _) => f64::NEG_INFINITY,
            (Self::Far, _) => 1e9,
            (Self::Largest, true) => f64::MAX,
            (Self::Largest, false) => f64::from(f32::MAX),
        }
    }
}

/// Checks that a call that failed left a text.
pub(super) fn failed(status: NfStatus) -> bool {
    assert_ne!(status, NfStatus::Internal, "{}", last_error());
    if status != NfStatus::Ok {
        let text = last_error();
        assert!(!text.is_empty() && text.len() < 4000, "{status:?}: {text}");
    }
    status != NfStatus::Ok
}

pub(super) fn last_error() -> String {
    // SAFETY: the text stays until the next call of this thread.
    let text = unsafe { CStr::from_ptr(nf_last_error()) };
    text.to_str().expect("texts are UTF-8").to_owned()
}

impl Room {
    /// The length that is announced.
    pub(super) fn length(self, wanted: usize) -> usize {
        match self {
            Self::Fits | Self::FitsToo | Self::Null => wanted,
            Self::Off(by) => wanted.saturating_add_signed(isize::from(by)),
        }
    }

    /// Where results go; null where there is to be no array.
    pub(super) fn place<T>(self, results: &mut Results) -> *mut T {
        match self {
            Self::Null => ptr::null_mut(),
            _ => results.place(),
        }
    }
}

/// Number of points of a set, if there is such an engine and set.
pub(super) fn points(engine: *mut NfEngine, set: u8) -> Option<usize> {
    let mut points = usize::MAX;
    // SAFETY: a place for the answer.
    let status = unsafe { nf_points(engine, set.into(), &raw mut points) };
    (!failed(status)).then_some(points)
}

//! Allocations whose size follows from input, which may be refused.
//!
//! `vec![x; n]`, `with_capacity`, `resize` and `collect` end the process when memory is short. A
//! library that is embedded in a simulation must not do that: hours of work may be in the memory
//! that is still there. These functions return [`Shortage`] with the bytes instead, and the error
//! types of all crates take it.
//!
//! **Invariant:** the functions either succeed or leave their argument unchanged, so a call that
//! fails leaves the engine with its last good state.
//!
//! # Overcommit
//!
//! Linux grants more memory than there is and ends a process that touches too much of it. These
//! functions cannot prevent that. They catch requests that exceed an address space or a limit
//! (`ulimit -v`, a container with strict accounting), and absurd sizes that follow from absurd
//! input.

use bytemuck::Zeroable;

/// The remedy of messages about refused memory, unless lists were asked for.
pub const REMEDY: &str = "raise the limit (ulimit -v, or that of a container), or ask for less: \
                          fewer points, a smaller radius or grid";

/// Memory that the system refused.
///
/// Small and `Copy`, so that a worker can note it in its scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {bytes} bytes are needed for {what}; {}", remedy(.what))]
pub struct Shortage {
    /// Bytes asked for.
    pub bytes: usize,
    /// The purpose of the memory, as messages name it.
    pub what: &'static str,
}

/// The remedy where there is no memory for `what`, for messages. Lists can be done without.
/// Everything else follows from the number of points and the radius.
///
/// Errors of other crates that pass a [`Shortage`] on end with it too.
pub fn remedy(what: &str) -> &'static str {
    if what.contains("lists") {
        "take a smaller radius, or count neighbours or evaluate kernels, which store no lists"
    } else {
        REMEDY
    }
}

impl Shortage {
    /// The refusal of memory for `len` values of type `T`.
    pub fn of<T>(len: usize, what: &'static str) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        Self { bytes, what }
    }
}

/// Makes room for `len` values in `vec` altogether, exactly as much where it has to grow. Neither
/// `resize` nor `extend` up to that length allocates afterwards.
///
/// # Errors
/// [`Shortage`]; the vector is then unchanged.
pub fn make_room<T>(vec: &mut Vec<T>, len: usize, what: &'static str) -> Result<(), Shortage> {
    vec.try_reserve_exact(len.saturating_sub(vec.len()))
        .map_err(|_| Shortage::of::<T>(len, what))
}

/// A vector with room for `len` values.
///
/// # Errors
/// [`Shortage`].
pub fn with_room<T>(len: usize, what: &'static str) -> Result<Vec<T>, Shortage> {
    let mut vec = Vec::new();
    make_room(&mut vec, len, what)?;
    Ok(vec)
}

/// Makes room for one value more in `vec`, which grows by doubling as it does by `push`.
///
/// # Errors
/// [`Shortage`]; the vector is then unchanged.
#[inline(always)]
pub fn make_room_for_one<T>(vec: &mut Vec<T>, what: &'static str) -> Result<(), Shortage> {
    if vec.len() < vec.capacity() {
        return Ok(());
    }
    (vec.try_reserve(1)).map_err(|_| Shortage::of::<T>(vec.len() + 1, what))
}

/// A vector of `len` copies of `value`.
///
/// # Errors
/// [`Shortage`].
pub fn filled<T: Clone>(len: usize, value: T, what: &'static str) -> Result<Vec<T>, Shortage> {
    let mut vec = with_room(len, what)?;
    vec.resize(len, value);
    Ok(vec)
}

/// A vector of `len` zeros, straight from the system, so that pages that are never touched cost
/// nothing.
///
/// # Errors
/// [`Shortage`].
pub fn zeroed<T: Zeroable>(len: usize, what: &'static str) -> Result<Vec<T>, Shortage> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| Shortage::of::<T>(len, what))
}

/// All of `values`, in room for as many as they announce and for more as they come.
///
/// # Errors
/// [`Shortage`].
pub fn collected<T>(
    values: impl IntoIterator<Item = T>,
    what: &'static str,
) -> Result<Vec<T>, Shortage> {
    let values = values.into_iter();
    let mut vec = with_room(values.size_hint().0, what)?;
    for value in values {
        make_room_for_one(&mut vec, what)?;
        vec.push(value);
    }
    Ok(vec)
}

/// A copy of `values`.
///
/// # Errors
/// [`Shortage`].
pub fn copied<T: Copy>(values: &[T], what: &'static str) -> Result<Vec<T>, Shortage> {
    let mut vec = with_room(values.len(), what)?;
    vec.extend_from_slice(values);
    Ok(vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any address space holds.
    const TOO_MANY: usize = usize::MAX / 16;

    #[test]
    fn what_there_is_no_memory_for_is_an_error_with_the_bytes() {
        let short = Shortage {
            bytes: TOO_MANY * 8,
            what: "a test",
        };
        assert_eq!(filled(TOO_MANY, 1u64, "a test"), Err(short));
        assert_eq!(zeroed::<u64>(TOO_MANY, "a test"), Err(short));
        assert_eq!(collected((0..TOO_MANY).map(|_| 1u64), "a test"), Err(short));
        let mut held = vec![1u64, 2];
        assert_eq!(make_room(&mut held, TOO_MANY, "a test"), Err(short));
        assert_eq!(held, [1, 2]);
        assert!(
            short.to_string().contains("for a test; raise the limit"),
            "{short}"
        );
        let lists = Shortage::of::<u32>(7, "neighbour lists").to_string();
        assert!(
            lists.contains("28 bytes") && lists.contains("store no lists"),
            "{lists}"
        );
        assert_eq!(Shortage::of::<u64>(usize::MAX, "a test").bytes, usize::MAX);
    }

    #[test]
    fn what_there_is_memory_for_is_there() {
        assert_eq!(filled(3, 'x', "a test").unwrap(), ['x'; 3]);
        assert_eq!(zeroed::<u32>(5, "a test").unwrap(), [0; 5]);
        assert_eq!(copied(&[1, 2], "a test").unwrap(), [1, 2]);
        let even = (0..100).filter(|number| number % 2 == 0);
        assert_eq!(collected(even, "a test").unwrap().len(), 50);
        let mut vec = Vec::new();
        make_room(&mut vec, 10, "a test").unwrap();
        let room = vec.capacity();
        vec.resize(10, 0u8);
        assert_eq!(vec.capacity(), room);
        for number in 0..100 {
            make_room_for_one(&mut vec, "a test").unwrap();
            vec.push(number);
        }
        assert_eq!(vec.len(), 110);
    }
}

//! NumPy files: arrays of positions (`.npy`) and neighbour lists (`.npz`).
//!
//! Arrays are written as they lie in memory, in this machine's byte order, which the header
//! states; nothing is copied. **Invariant others rely on:** headers are padded so that data begin
//! at a multiple of 64 bytes, as NumPy (NEP 1) wants it.

use std::{io::Write, path::Path};

use crate::{
    error::{Error, Fault},
    point_data::Values,
};

use super::{archive::Archive, output::write_file};

/// Writes positions as an array of N×3 `f32`.
///
/// # Errors
/// If the file cannot be written; an existing file is then unchanged.
pub fn write_npy(path: impl AsRef<Path>, positions: &[[f32; 3]]) -> Result<(), Error> {
    write_file(path.as_ref(), |output| {
        output.write_all(&header("f4", &[positions.len(), 3]))?;
        output.write_all(bytemuck::cast_slice(positions))
    })
}

/// Writes an array of any shape, the last axis fastest.
///
/// # Errors
/// If the shape does not fit the number of values, or the file cannot be written; an existing file
/// is then unchanged.
pub fn write_array(
    path: impl AsRef<Path>,
    shape: &[usize],
    values: &Values<'_>,
) -> Result<(), Error> {
    let path = path.as_ref();
    let room = shape.iter().try_fold(1usize, |all, n| all.checked_mul(*n));
    if room != Some(values.len()) {
        let message = format!("{} values do not fill the shape {shape:?}", values.len());
        return Err(Fault::argument(message).in_file(path));
    }
    let element = match values {
        Values::F32(_) => "f4",
        Values::F64(_) => "f8",
        Values::I32(_) => "i4",
        Values::U32(_) => "u4",
        Values::I64(_) => "i8",
        Values::U64(_) => "u8",
    };
    write_file(path, |output| {
        output.write_all(&header(element, shape))?;
        output.write_all(values.bytes())
    })
}

/// Writes neighbour lists in compressed-sparse-row form as an `.npz` archive of two arrays:
/// `offsets` (N + 1 values, 64-bit) and `indices` (32-bit); the neighbours of point `i` are
/// `indices[offsets[i]..offsets[i + 1]]`.
///
/// The archive is not compressed, may exceed 4 GiB (zip64), and is written without a copy of the
/// arrays.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("lists.npz");
/// // Point 0 has neighbours 1 and 2; points 1 and 2 have neighbour 0.
/// nearfield_io::write_csr_npz(&path, &[0, 2, 3, 4], &[1, 2, 0, 0])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the offsets do not fit the indices (they must begin with 0, never decrease, and end with the
/// number of indices), or the file cannot be written.
pub fn write_csr_npz(
    path: impl AsRef<Path>,
    offsets: &[u64],
    indices: &[u32],
) -> Result<(), Error> {
    let path = path.as_ref();
    check_offsets(offsets, indices.len()).map_err(|fault| fault.in_file(path))?;
    write_file(path, |output| {
        let mut archive = Archive::new(output);
        for (name, element, length, bytes) in [
            (
                "offsets.npy",
                "u8",
                offsets.len(),
                bytemuck::cast_slice(offsets),
            ),
            (
                "indices.npy",
                "u4",
                indices.len(),
                bytemuck::cast_slice(indices),
            ),
        ] {
            archive.add(name, &[&header(element, &[length]), bytes])?;
        }
        archive.finish()
    })
}

fn check_offsets(offsets: &[u64], indices: usize) -> Result<(), Fault> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Fault::argument(
            "the offsets are empty; N + 1 are needed for N points",
        ));
    };
    if first != 0 || last != indices as u64 {
        let message = format!(
            "the offsets run from {first} to {last}, but must run from 0 to {indices}, the number \
             of indices"
        );
        return Err(Fault::argument(message));
    }
    match offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(at) => {
            let (from, to) = (offsets[at], offsets[at + 1]);
            Err(Fault::argument(format!(
                "the offsets fall from {from} to {to} after point {at}"
            )))
        }
    }
}

/// The bytes before an array's data; `element` is NumPy's kind and size, such as `f4`.
fn header(element: &str, shape: &[usize]) -> Vec<u8> {
    const MAGIC_AND_VERSION: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGNMENT: usize = 64;
    let order = if cfg!(target_endian = "big") {
        '>'
    } else {
        '<'
    };
    let shape: String = shape.iter().map(|length| format!("{length}, ")).collect();
    let mut text = format!(
        "{{'descr': '{order}{element}', 'fortran_order': False, 'shape': ({}), }}",
        shape.trim_end()
    );
    let unpadded = MAGIC_AND_VERSION.len() + 2 + text.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let mut bytes = MAGIC_AND_VERSION.to_vec();
    // At most two lengths of 20 digits: the text always fits 16 bits.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

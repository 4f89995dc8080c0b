//! LZF (Lehmann): literal runs, and copies of at most 264 bytes from at most 8 KiB back.
//!
//! **Invariant others rely on:** memory does not depend on the data: contents are handed over in
//! parts.

/// Bytes that a copy can reach back.
const REACH: usize = 1 << 13;
/// Contents are handed over when this many wait.
const PART: usize = 1 << 16;

/// Unpacks `packed` to exactly `length` bytes. `part` gets the place of bytes in the contents, and
/// the bytes, in order.
pub(super) fn unpack(
    packed: &[u8],
    length: usize,
    mut part: impl FnMut(usize, &[u8]),
) -> Result<(), String> {
    let mut window: Vec<u8> = Vec::with_capacity(REACH + PART + 512);
    // Bytes before the window, and bytes of the window that were handed over.
    let (mut before, mut given) = (0, 0);
    let mut rest = packed;
    let ends = || "the compressed data end too early".to_owned();
    while let Some((&control, behind)) = rest.split_first() {
        rest = behind;
        if control < 32 {
            let run = usize::from(control) + 1;
            let (bytes, behind) = rest.split_at_checked(run).ok_or_else(ends)?;
            window.extend_from_slice(bytes);
            rest = behind;
        } else {
            let mut copy = usize::from(control >> 5);
            if copy == 7 {
                let (&more, behind) = rest.split_first().ok_or_else(ends)?;
                copy += usize::from(more);
                rest = behind;
            }
            let (&low, behind) = rest.split_first().ok_or_else(ends)?;
            rest = behind;
            let back = (usize::from(control & 31) << 8 | usize::from(low)) + 1;
            let from = window.len().checked_sub(back).ok_or_else(|| {
                format!(
                    "a copy reaches {back} bytes back from byte {}",
                    before + window.len()
                )
            })?;
            // A copy may overlap what it writes.
            for at in from..from + copy + 2 {
                window.push(window[at]);
            }
        }
        if before + window.len() > length {
            return Err(format!("the compressed data hold more than {length} bytes"));
        }
        if window.len() >= REACH + PART {
            part(before + given, &window[given..]);
            let gone = window.len() - REACH;
            window.drain(..gone);
            before += gone;
            given = REACH;
        }
    }
    part(before + given, &window[given..]);
    match before + window.len() {
        found if found == length => Ok(()),
        found => Err(format!(
            "the compressed data hold {found} bytes where {length} are announced"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], length: usize) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        unpack(packed, length, |at, bytes| {
            assert_eq!(at, all.len());
            all.extend_from_slice(bytes);
        })?;
        Ok(all)
    }

    #[test]
    fn runs_and_copies_are_joined_across_parts() {
        assert_eq!(
            unpacked(&[2, b'a', b'b', b'c', 0x20, 2], 6).unwrap(),
            b"abcabc"
        );
        // One byte, and copies of it: 9 + 255 bytes each from one byte back.
        let mut packed = vec![0, b'x'];
        packed.extend([0xe0, 255, 0].repeat(1000));
        let length = 1 + 264 * 1000;
        assert_eq!(unpacked(&packed, length).unwrap(), vec![b'x'; length]);
    }

    #[test]
    fn damaged_data_are_refused() {
        for (packed, length) in [
            (&[2, b'a'][..], 3),
            (&[0x20, 0], 3),
            (&[0, b'a', 0x20], 4),
            (&[0, b'a', 0xe0], 4),
            (&[0, b'a'], 2),
            (&[1, b'a', b'b'], 1),
            (&[], 1),
        ] {
            unpacked(packed, length).unwrap_err();
        }
        assert_eq!(unpacked(&[], 0).unwrap(), b"");
    }
}

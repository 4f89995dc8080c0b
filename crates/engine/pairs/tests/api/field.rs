//! Fields of packed and strided arrays.

use nearfield_pairs::{ErrorKind, Field};

#[test]
fn packed_arrays_are_fields_as_they_are() {
    let values = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let field = Field::from(&values);
    assert_eq!((field.len(), field.channels()), (2, 3));
    assert_eq!(field.packed(), Some(values.as_flattened()));
    assert_eq!(field.value(1, 2), 6.0);
    assert_eq!(format!("{field:?}"), "Field(2 points, 3 channels)");
    let flat = Field::from(values.as_flattened());
    assert_eq!((flat.len(), flat.channels(), flat.value(4, 0)), (6, 1, 5.0));
    assert!(flat.is_same_place(&Field::from(values.as_flattened())));
    assert!(!flat.is_same_place(&field));
    assert!(Field::from(&[0.0f32; 0]).is_empty());
}

#[test]
fn strided_fields_read_the_values_that_are_theirs() {
    let numbers: Vec<f32> = (0..200).map(|k| k as f32).collect();
    let aligned: &[u8] = bytemuck::cast_slice(&numbers);
    let mut shifted = vec![0xff; 3];
    shifted.extend_from_slice(aligned);
    for (bytes, shift) in [(aligned, 0), (&shifted[..], 3)] {
        for (offset, stride, len, channels) in [
            (0, 3, 66, 3),
            (2, 5, 39, 3),
            (199, 7, 1, 1),
            (5, 1, 195, 1),
            (1, 40, 5, 39),
        ] {
            let field =
                Field::strided(bytes, shift + 4 * offset, 4 * stride, len, channels).unwrap();
            assert_eq!((field.len(), field.channels()), (len, channels));
            let of = |point: usize, channel: usize| (offset + point * stride + channel) as f32;
            let places = || (0..len).flat_map(|p| (0..channels).map(move |c| (p, c)));
            assert!(
                places().all(|(p, c)| field.value(p, c) == of(p, c)),
                "{field:?}"
            );
            let expected: Vec<f32> = places().map(|(p, c)| of(p, c)).collect();
            if let Some(packed) = field.packed() {
                assert!(stride == channels && packed == expected, "{field:?}");
            } else {
                assert!(stride != channels || shift != 0, "{field:?}");
            }
            for first in [0, 1, channels, len * channels - 1] {
                let mut copy = vec![-1.0; len * channels - first];
                field.copy_to(first, &mut copy);
                assert_eq!(copy, expected[first..], "{field:?} from {first}");
            }
            for channel in [0, channels - 1] {
                for first in [0, len / 2, len - 1, len] {
                    let expected: Vec<f32> = (first..len).map(|p| of(p, channel)).collect();
                    let mut copy = vec![-1.0; len - first];
                    field.copy_channel(first, channel, &mut copy);
                    assert_eq!(copy, expected, "{field:?} from {first}");
                }
                let index: Vec<u32> = (0..len as u32).rev().chain([0, 0]).collect();
                let expected: Vec<f32> = index.iter().map(|&p| of(p as usize, channel)).collect();
                let mut picked = vec![-1.0; index.len()];
                field.pick_channel(&index, channel, &mut picked);
                assert_eq!(picked, expected, "{field:?}");
            }
        }
    }
    let field = Field::strided(aligned, 8, 20, 39, 3).unwrap();
    assert_eq!(
        format!("{field:?}"),
        "Field(39 points, 3 channels, 20 bytes apart)"
    );
}

#[test]
fn a_strided_field_that_does_not_fit_is_refused() {
    let bytes = [0u8; 40];
    let kind = |offset, stride, len, channels| {
        let made = Field::strided(&bytes, offset, stride, len, channels);
        made.err().map(|error| error.kind().clone())
    };
    assert_eq!(kind(4, 24, 2, 3), None);
    assert_eq!(kind(0, 40, 1, 10), None);
    let beyond = |offset, stride, len, channels, needed| {
        Some(ErrorKind::FieldBytes {
            len,
            channels,
            offset,
            stride,
            needed,
            bytes: 40,
        })
    };
    assert_eq!(kind(5, 24, 2, 3), beyond(5, 24, 2, 3, 41));
    assert_eq!(kind(0, 12, 4, 3), beyond(0, 12, 4, 3, 48));
    assert_eq!(kind(41, 12, 1, 3), beyond(41, 12, 1, 3, 53));
    // Sizes beyond the address space.
    let huge = usize::MAX - 3;
    for (offset, stride, len) in [
        (0, huge, 3),
        (huge, 12, 1),
        (28, 12, usize::MAX),
        (huge, huge, 2),
    ] {
        let refused = kind(offset, stride, len, 3);
        assert!(
            matches!(
                refused,
                Some(ErrorKind::FieldBytes {
                    needed: usize::MAX,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    for (stride, channels) in [
        (0, 1),
        (8, 3),
        (13, 3),
        (12, 0),
        (12, usize::MAX),
        (12, 1 << 62),
    ] {
        let refused = Some(ErrorKind::FieldStride { channels, stride });
        assert_eq!(kind(0, stride, 1, channels), refused);
        assert_eq!(kind(0, stride, 0, channels), refused);
    }
    // No points need no bytes.
    let empty = Field::strided(&bytes, 100, 4, 0, 1).unwrap();
    assert!(empty.is_empty());
    let message = Field::strided(&bytes, 5, 24, 2, 3).unwrap_err().to_string();
    assert_eq!(
        message,
        "a field of 2 points with 3 values of f32 at offset 5, stride 24 needs 41 bytes, but the \
         slice holds 40"
    );
}

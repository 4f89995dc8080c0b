//! Maps of bricks to parts.

use nearfield_grid::*;

#[test]
fn every_cell_has_a_part() {
    let mut parts = BrickParts::new(2, [-1, 0, 5], [3, 2, 1], 7, 6)
        .unwrap()
        .unwrap();
    parts.set([-1, 1, 5], 1);
    parts.set([1, 0, 5], 2);
    parts.set([2, 0, 5], 3);
    assert_eq!(parts.part([-2, 2, 10]), 1);
    assert_eq!(parts.part([-1, 3, 11]), 1);
    assert_eq!(parts.part([0, 3, 11]), 7);
    assert_eq!(parts.part([3, 1, 10]), 2);
    for outside in [
        [4, 0, 10],
        [-3, 2, 10],
        [3, 1, 12],
        [3, 1, 9],
        [i64::MIN; 3],
    ] {
        assert_eq!(parts.part(outside), 7, "{outside:?}");
    }
    assert_eq!(parts.parts(), [7, 7, 2, 1, 7, 7]);
}

#[test]
fn some_parts_are_told_from_all_others() {
    let mut parts = BrickParts::new(1, [0; 3], [3, 1, 1], 5, 3)
        .unwrap()
        .unwrap();
    parts.set([1, 0, 0], 2);
    let only = parts.only(|part| part == 2).unwrap();
    assert_eq!((only.parts(), only.elsewhere()), (&[1, 0, 1][..], 1));
    // Bricks are where they were, and cells outside belong to the default part.
    assert_eq!((only.part([1, 0, 0]), only.part([9, 0, 0])), (0, 1));
    assert_eq!(parts.only(|_| true).unwrap().part([9, 0, 0]), 1);
}

#[test]
fn boxes_that_are_too_large_are_refused() {
    assert!(
        BrickParts::new(1, [0; 3], [2, 2, 2], 0, 7)
            .unwrap()
            .is_none()
    );
    assert!(
        BrickParts::new(1, [0; 3], [u32::MAX; 3], 0, usize::MAX)
            .unwrap()
            .is_none()
    );
    assert!(BrickParts::new(0, [0; 3], [1; 3], 0, 8).unwrap().is_none());
    for empty in [
        BrickParts::new(1, [0; 3], [0; 3], 4, 0).unwrap().unwrap(),
        BrickParts::everywhere(4),
    ] {
        assert_eq!(empty.part([0; 3]), 4);
    }
}

#[test]
fn what_lies_around_bricks_is_found_beyond_the_box_too() {
    let mut parts = BrickParts::new(2, [0; 3], [4, 3, 2], 0, 24)
        .unwrap()
        .unwrap();
    parts.set([3, 0, 1], 9);
    parts.set([0, 2, 0], 8);
    for reach in [0, 1, 2] {
        let near = parts.around(|part| part == 9, reach).unwrap();
        for x in -4..8i64 {
            for y in -4..7i64 {
                for z in -4..6i64 {
                    let apart = [x - 3, y, z - 1].map(i64::abs);
                    let expected = apart.iter().all(|&apart| apart <= i64::from(reach));
                    let found = near.part([2 * x, 2 * y + 1, 2 * z]);
                    assert_eq!(found, u8::from(expected), "{reach}: {x} {y} {z}");
                }
            }
        }
    }
}

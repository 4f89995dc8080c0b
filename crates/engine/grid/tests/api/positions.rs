//! Views of positions in all layouts.

use glam::{DVec2, DVec3, Vec3};
use nearfield_grid::*;

#[test]
fn every_layout_gives_the_same_points() {
    let packed = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0f32]];
    let vectors = packed.map(Vec3::from);
    let bytes: &[u8] = bytemuck::cast_slice(&packed);
    let strided = Positions::strided(bytes, 0, 12, 2).unwrap();
    for index in 0..2 {
        let expected = Some(packed[index]);
        assert_eq!(Positions::from(&packed).get(index), expected);
        assert_eq!(Positions::from(&vectors).get(index), expected);
        assert_eq!(strided.get(index), expected);
    }
    assert_eq!(strided.get(2), None);
    assert_eq!(
        Positions::from(&[[7.0f32, 8.0]]).get(0),
        Some([7.0, 8.0, 0.0])
    );
}

#[test]
fn every_layout_in_double_precision_gives_the_same_points() {
    let packed = [[0.1, 2.0, 1e300], [4.0, -5.0, 6.0f64]];
    let vectors = packed.map(DVec3::from);
    let bytes: &[u8] = bytemuck::cast_slice(&packed);
    let strided = Positions::strided_f64(bytes, 0, 24, 2).unwrap();
    for index in 0..2 {
        let expected = Some(packed[index]);
        assert_eq!(Positions::from(&packed).get_f64(index), expected);
        assert_eq!(Positions::from(&vectors).get_f64(index), expected);
        assert_eq!(strided.get_f64(index), expected);
    }
    assert_eq!(strided.get_f64(2), None);
    assert_eq!(strided.get(0), Some([0.1, 2.0, f32::INFINITY]));
    let planar = [DVec2::new(7.0, 8.0)];
    assert_eq!(Positions::from(&planar).get_f64(0), Some([7.0, 8.0, 0.0]));
    let error = Positions::strided_f64(bytes, 1, 24, 2).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Stride { needed: 49, .. }),
        "{error}"
    );
}

#[test]
fn only_double_precision_takes_both() {
    let single = Positions::from(&[[0.1f32; 3]]).get_f64(0);
    assert_eq!(single, Some([f64::from(0.1f32); 3]), "widened as it is");
    let (f32s, f64s) = ([[0.0f32; 3]], [[0.0f64; 3]]);
    for (positions, precision, fits) in [
        (Positions::from(&f32s), Precision::Single, true),
        (Positions::from(&f32s), Precision::Double, true),
        (Positions::from(&f64s), Precision::Double, true),
        (Positions::from(&f64s), Precision::Single, false),
    ] {
        assert_eq!(positions.check_precision(precision).is_ok(), fits);
    }
}

#[test]
fn a_strided_view_that_does_not_fit_is_refused() {
    let bytes = [0u8; 40];
    assert!(Positions::strided(&bytes, 4, 24, 2).is_ok());
    let error = Positions::strided(&bytes, 5, 24, 2).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Stride { needed: 41, .. }),
        "{error}"
    );
    assert!(Positions::strided(&bytes, usize::MAX, usize::MAX, 3).is_err());
    assert!(Positions::strided(&bytes, 100, 4, 0).unwrap().is_empty());
}

//! Bounds of points, and the refusal of coordinates that cannot be searched.

use nearfield_grid::*;

#[test]
fn bounds_hold_every_point() {
    let points: Vec<[f32; 3]> = (0..100_000)
        .map(|i| [i as f32, -(i as f32), 0.5 * i as f32])
        .collect();
    let bounds = Bounds::of((&points).into(), &Domain::OPEN).unwrap();
    assert_eq!(bounds.min, [0.0, -99_999.0, 0.0]);
    assert_eq!(bounds.max, [99_999.0, 0.0, 49_999.5]);
    let none: [[f32; 3]; 0] = [];
    assert_eq!(
        Bounds::of((&none).into(), &Domain::OPEN).unwrap(),
        Bounds::EMPTY
    );
    assert_eq!(Bounds::EMPTY.extent(), [0.0; 3]);
}

#[test]
fn the_first_bad_coordinate_is_named_and_all_are_counted() {
    let mut points = vec![[0.0f32; 3]; 50_000];
    points[40_000][2] = f32::NAN;
    points[30_000][1] = f32::NEG_INFINITY;
    let error = Bounds::of((&points).into(), &Domain::OPEN).unwrap_err();
    assert_eq!(
        error,
        Error::from(ErrorKind::NotFinite {
            index: 30_000,
            axis: 'y',
            value: f32::NEG_INFINITY.into(),
            count: 2,
            points: 50_000
        })
    );
    assert!(error.to_string().contains("point 30000 has y = -inf"));
}

#[test]
fn bad_coordinates_in_double_precision_are_named_with_their_digits() {
    let points = [[0.0; 3], [0.0, 0.0, f64::INFINITY]];
    let error = Bounds::of((&points).into(), &Domain::OPEN).unwrap_err();
    assert!(error.to_string().contains("point 1 has z = inf"), "{error}");
    let domain = Domain::new([Some(1e-3), None, None]).unwrap();
    let points = [[0.0; 3], [-1234567.000000125, 0.0, 0.0f64]];
    let error = Bounds::of((&points).into(), &domain).unwrap_err();
    let named = "point 1 has x = -1234567.000000125,";
    assert!(error.to_string().contains(named), "{error}");
    let huge = [[1e300, -1e-300, 0.1]];
    let bounds = Bounds::of((&huge).into(), &Domain::OPEN).unwrap();
    assert_eq!((bounds.min, bounds.max), (huge[0], huge[0]));
}

#[test]
fn a_point_billions_of_boxes_away_is_refused() {
    let domain = Domain::new([None, Some(1e-3), None]).unwrap();
    let points = [[0.0, 0.0, 0.0], [0.0, 1e7, 0.0f32]];
    let error = Bounds::of((&points).into(), &domain).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::TooFarFromBox {
            index: 1,
            axis: 'y',
            ..
        }
    ));
}

#[test]
fn a_point_billions_of_tilted_boxes_away_is_refused() {
    let domain = Domain::triclinic([Some(1.0), Some(1.0), None], [2.0, 0.0, 0.0]).unwrap();
    let near = [0.5, 0.25, 1e30];
    let along_a = [
        [near, near, [3e9, 1.5e9, 0.0f32]],
        [near, near, [0.0, 8e8, 0.0]],
    ];
    for (points, vector, boxes) in [(along_a[0], 'b', 1.5e9), (along_a[1], 'a', 1.6e9)] {
        let error = Bounds::of((&points).into(), &domain).unwrap_err();
        let ErrorKind::TooFarFromTiltedBox {
            index: 2,
            vector: found,
            boxes: far,
            ..
        } = error.kind()
        else {
            panic!("{error}");
        };
        assert_eq!(*found, vector);
        assert!((far / boxes - 1.0).abs() < 1e-6, "{far}");
    }
    // The corners of these points' bounding box are too far away, the points are not.
    let points = [[1.2e9, 6e8, 0.0f32], [-1.2e9, -6e8, 0.0]];
    assert!(Bounds::of((&points).into(), &domain).is_ok());
}

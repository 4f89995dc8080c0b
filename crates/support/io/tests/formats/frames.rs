//! Real frames of SPH simulations (`tests/data/README.md` tells their origin).

use nearfield_io::{Dimensions, PointData, Values, read_points};

use crate::data;

#[test]
fn a_legacy_frame_is_read_with_its_identifiers() {
    let cloud = read_points(data("frames/double_dam_break_frame_26_4732_particles.vtk")).unwrap();
    assert_eq!((cloud.len(), cloud.dimensions), (4732, Dimensions::Three));
    assert_eq!(cloud.positions_f64, None);
    assert!(
        cloud
            .positions
            .as_flattened()
            .iter()
            .all(|x| x.is_finite() && x.abs() < 10.0)
    );
    let Values::U32(ids) = cloud.quantity("id").unwrap().values() else {
        panic!("identifiers are unsigned");
    };
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..4732));
    assert_eq!(
        cloud
            .quantity("velocity")
            .and_then(PointData::to_vectors)
            .unwrap()
            .len(),
        4732
    );
}

#[test]
fn an_xml_frame_in_double_precision_is_read_with_its_data() {
    let cloud = read_points(data("frames/fluid_250_particles.vtu")).unwrap();
    assert_eq!(cloud.len(), 250);
    let double = cloud.positions_f64.as_ref().unwrap();
    for (single, double) in cloud.positions.iter().zip(double) {
        assert_eq!(*single, double.map(|x| x as f32));
    }
    let names: Vec<_> = cloud
        .data
        .iter()
        .map(|data| (data.name(), data.components()))
        .collect();
    assert_eq!(
        names,
        [
            ("velocity", 3),
            ("pressure", 1),
            ("density", 1),
            ("index", 1)
        ]
    );
    assert!(matches!(cloud.data[3].values(), Values::I64(_)));
    // As VTK's own reader prints them.
    assert_eq!(
        double[0],
        [0.3286479863716946, 0.21009526877553064, 0.2049105240508048]
    );
    assert_eq!(
        double[249],
        [4.526842968782311, 0.7943321669635605, 0.8754105636240367]
    );
    let Values::F64(density) = cloud.data[2].values() else {
        panic!("density is double")
    };
    assert_eq!(
        (density[0], density[249]),
        (995.5487812638175, 895.1729532387676)
    );
}

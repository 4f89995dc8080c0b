//! The engine for data on a GPU in double precision against the CPU backend.

use crate::{assert_close, needs_gpu, on_gpu::start};
use nearfield::{
    Builder, Engine, ListOrder, PointSetId, Precision,
    device::{DeviceEngine, DeviceField, DeviceValue, DeviceView, GeometryQuantities, Progress},
    error::gpu,
    kernels::SphDensity,
    lists::PairGeometry,
    prelude::*,
};
use nearfield_testkit::random::Random;

const ALL: GeometryQuantities = GeometryQuantities {
    targets: true,
    images: true,
    shifts: true,
    displacements: true,
    squares: true,
    distances: true,
};

/// Index, image, and the bits of displacement, square and distance.
type Bits = (u32, [i32; 3], [u64; 3], u64, u64);

/// Pairs that a search wrote, by target in the order of its lists.
fn pairs_on_device(engine: &DeviceEngine, set: PointSetId) -> Vec<Vec<Bits>> {
    fn values<T: DeviceValue>(engine: &DeviceEngine, array: Option<&DeviceView<'_, T>>) -> Vec<T> {
        let array = array.expect("it was asked for");
        engine.stream().clone_dtoh(array).unwrap()
    }
    let found = engine.geometry(set, set).unwrap();
    assert!(found.pairs.displacements.is_none(), "they are in f64");
    assert_eq!(found.pairs.quantities(), ALL);
    let start = engine.stream().clone_dtoh(&found.lists.start).unwrap();
    let count = engine.stream().clone_dtoh(&found.lists.count).unwrap();
    let entries = engine.stream().clone_dtoh(&found.lists.entries).unwrap();
    let images = values(engine, found.pairs.images.as_ref());
    let double = &found.pairs.double;
    let displacements = values(engine, double.displacements.as_ref());
    let squares = values(engine, double.squares.as_ref());
    let distances = values(engine, double.distances.as_ref());
    assert_eq!(values(engine, double.shifts.as_ref()).len(), entries.len());
    let pair = |at: usize| {
        let d = displacements[at].map(f64::to_bits);
        let numbers = (squares[at].to_bits(), distances[at].to_bits());
        (entries[at], images[at], d, numbers.0, numbers.1)
    };
    let lists = start.iter().zip(&count);
    lists
        .map(|(&start, &count)| (start as usize..start as usize + count as usize).map(pair))
        .map(Iterator::collect)
        .collect()
}

/// The same by the CPU backend, with numbers of neighbours and densities of unit masses.
fn by_cpu(
    builder: Builder,
    points: &[[f64; 3]],
    kernel: &SphDensity,
) -> (Vec<Vec<Bits>>, Vec<f32>) {
    let builder = builder.device(Device::Cpu).list_order(ListOrder::Ascending);
    let mut engine = builder.build().unwrap();
    let set = engine.add_point_set(points).unwrap();
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    let pairs = (0..points.len()).map(|target| {
        let of = geometry.of(target);
        of.map(|pair| {
            let distance = pair.d2.sqrt().to_bits();
            (
                pair.index,
                pair.image,
                pair.d.map(f64::to_bits),
                pair.d2.to_bits(),
                distance,
            )
        })
        .collect()
    });
    let mass = vec![1.0f32; points.len()];
    let density = engine.traverse(kernel, set, set).sources(&mass).run();
    (pairs.collect(), density.unwrap())
}

/// Points that move, and then jump out of their cells, far from the origin and around boxes that
/// they have left; few enough for a warp each, and more.
#[test]
fn steps_in_double_have_the_bits_of_the_cpu() {
    needs_gpu!();
    let kernel = SphDensity::with_support(1.0);
    let boxes = [[None; 3], [Some(17.0); 3], [Some(18.0), None, Some(16.5)]];
    for (periodic, count) in boxes
        .into_iter()
        .flat_map(|periodic| [(periodic, 3_000), (periodic, 20_000)])
    {
        let mut random = Random::new(count as u64);
        let builder = DeviceEngine::builder(1.0).precision(Precision::Double);
        let mut engine = start(builder.periodic(periodic).list_order(ListOrder::Ascending));
        let mut points: Vec<[f64; 3]> = (0..count)
            .map(|_| [0; 3].map(|_| 1e6 + 17.0 * random.unit()))
            .collect();
        let on_device = engine.stream().clone_htod(points.as_flattened()).unwrap();
        let set = engine.add_point_set(&on_device.as_view()).unwrap();
        for step in 0..3 {
            for point in &mut points {
                // Whole boxes in the last step, so that many lie far outside of theirs.
                let far = if step == 2 {
                    (4.0 * random.unit()).floor()
                } else {
                    0.0
                };
                *point = [0, 1, 2].map(|axis| {
                    point[axis] + 0.1 * random.unit() + far * periodic[axis].unwrap_or(0.0)
                });
            }
            let on_device = engine.stream().clone_htod(points.as_flattened()).unwrap();
            engine.update(set, &on_device.as_view()).unwrap();
            let mass = engine.stream().clone_htod(&vec![1.0f32; count]).unwrap();
            let mut counts = engine.stream().alloc_zeros::<u32>(count).unwrap();
            let mut sums = engine.stream().alloc_zeros::<f32>(count).unwrap();
            while {
                engine.pair_geometry(set, set, ALL).unwrap();
                engine
                    .count_neighbors(set, set, &mut counts.as_view_mut())
                    .unwrap();
                let traversal = engine.traverse(&kernel, set, set);
                let field = DeviceField::new(mass.as_view(), 1);
                traversal
                    .sources(field)
                    .run_into(&mut sums.as_view_mut())
                    .unwrap();
                engine.finish().unwrap() == Progress::Repeat
            } {}
            let found = pairs_on_device(&engine, set);
            let builder = Engine::builder(1.0)
                .precision(Precision::Double)
                .periodic(periodic);
            let (expected, density) = by_cpu(builder, &points, &kernel);
            assert!(found == expected, "step {step} of {count} in {periodic:?}");
            let counts = engine.stream().clone_dtoh(&counts.as_view()).unwrap();
            assert!(
                expected
                    .iter()
                    .map(Vec::len)
                    .eq(counts.iter().map(|&n| n as usize))
            );
            let sums = engine.stream().clone_dtoh(&sums.as_view()).unwrap();
            assert_close(&sums, &density, 1e-5, 1e-6, "density");
        }
    }
}

#[test]
fn positions_of_another_precision_are_refused() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0).precision(Precision::Double));
    let single = engine.stream().clone_htod(&[0.0f32; 6]).unwrap();
    let error = engine.add_point_set(&single.as_view()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("f32") && text.contains("f64"), "{text}");
    let kind = matches!(error.kind(), nearfield::ErrorKind::OnDevice { source, .. }
        if matches!(source.kind(), gpu::ErrorKind::Precision { .. }));
    assert!(kind, "{error:?}");
    let double = engine.stream().clone_htod(&[0.0f64; 6]).unwrap();
    assert!(engine.add_point_set(&double.as_view()).is_ok());
}

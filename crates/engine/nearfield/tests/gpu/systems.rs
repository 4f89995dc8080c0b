//! Many systems on a GPU: the pairs are those of the CPU backend, bit for bit, in the same order.

use crate::{GPU, needs_gpu};
use nearfield::{
    Device, ErrorKind, ListKind, ListOrder,
    device::{Context, DeviceBuffer, DeviceSystemSearch, DeviceSystems, DeviceValue, Progress},
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, SystemSearch, Systems},
};
use nearfield_testkit::{oracle::Real, random::Random, systems::Batch};

/// The arrays of a batch.
fn systems<T>(batch: &Batch<T>) -> Systems<'_, T> {
    Systems::new(&batch.positions, &batch.offsets, &batch.radii)
        .in_cells(&batch.cells, &batch.periodic)
}

/// Systems of up to sixty points, and one of `large`.
fn drawn<T: Real>(seed: u64, systems: usize, large: usize) -> Batch<T> {
    let mut batch = Batch::drawn(seed, systems, 60);
    let random = &mut Random::new(seed);
    let size = (large as f64).cbrt() + 1.0;
    let cell = [[size, 0.0, 0.0], [0.2, -size, 0.0], [0.0, 1.0, size]];
    let points: Vec<[T; 3]> = (0..large)
        .map(|_| [0; 3].map(|_| T::round(random.between(-1.0, size))))
        .collect();
    batch.push(&points, 1.3, cell, [true, true, false]);
    batch.append(&Batch::drawn(seed + 1, systems, 60));
    batch
}

fn search(device: Device, kind: ListKind) -> SystemSearch {
    let builder = SystemSearch::builder().device(device).lists(kind);
    builder.list_order(ListOrder::Ascending).build().unwrap()
}

fn are_equal<T: SystemReal, I: PairIndex + PartialEq>(
    a: &SystemPairs<T, I>,
    b: &SystemPairs<T, I>,
) -> bool {
    a.offsets() == b.offsets()
        && a.targets() == b.targets()
        && a.sources() == b.sources()
        && a.images() == b.images()
        && bytemuck::cast_slice::<_, u8>(a.displacements())
            == bytemuck::cast_slice::<_, u8>(b.displacements())
        && a.distances() == b.distances()
}

fn pairs_are_those_of_the_cpu<T: SystemReal + Real, I: PairIndex + PartialEq>() {
    let mut on_gpu = SystemPairs::<T, I>::default();
    for (number, kind) in [ListKind::Full, ListKind::Half].into_iter().enumerate() {
        let mut gpu = search(GPU, kind);
        for (count, large) in [(1, 50), (300, 1500), (40, 300), (3, 0)] {
            let batch = drawn::<T>(7 + number as u64, count, large);
            let mut on_cpu = SystemPairs::<T, I>::default();
            search(Device::Cpu, kind)
                .neighbors(&systems(&batch), Quantities::ALL, &mut on_cpu)
                .unwrap();
            for wanted in [Quantities::ALL, Quantities::NONE, Quantities::EDGES] {
                gpu.neighbors(&systems(&batch), wanted, &mut on_gpu)
                    .unwrap();
                assert_eq!(on_gpu.offsets(), on_cpu.offsets());
                assert!(!wanted.sources || on_gpu.sources() == on_cpu.sources());
                assert!(wanted != Quantities::ALL || are_equal(&on_gpu, &on_cpu));
            }
            assert_eq!((gpu.report().device, gpu.report().failed), (GPU, None));
        }
    }
}

#[test]
fn pairs_of_systems_are_those_of_the_cpu() {
    needs_gpu!();
    pairs_are_those_of_the_cpu::<f32, i64>();
    pairs_are_those_of_the_cpu::<f32, i32>();
    pairs_are_those_of_the_cpu::<f64, u32>();
}

#[test]
fn what_the_cpu_refuses_is_refused_with_the_same_words() {
    needs_gpu!();
    let good = drawn::<f32>(3, 30, 40);
    let mut gpu = search(GPU, ListKind::Full);
    let mut pairs = SystemPairs::<f32>::default();
    type Change<'a> = &'a dyn Fn(&mut Batch<f32>);
    let changes: [Change<'_>; 8] = [
        &|batch| *batch.positions.last_mut().unwrap() = [0.0, f32::NAN, 0.0],
        &|batch| batch.positions[40][2] = f32::INFINITY,
        &|batch| batch.radii[8] = f64::NAN,
        &|batch| batch.radii[9] = -1.0,
        &|batch| batch.offsets[5] = batch.offsets[6] + 1,
        &|batch| {
            batch.cells[11] = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
            batch.periodic[11] = [true; 3];
        },
        &|batch| batch.offsets.clear(),
        &|batch| batch.radii.truncate(4),
    ];
    for change in changes {
        let mut batch = good.clone();
        change(&mut batch);
        let mut cpu = search(Device::Cpu, ListKind::Full);
        let expected = cpu.neighbors(&systems(&batch), Quantities::ALL, &mut pairs);
        let found = gpu.neighbors(&systems(&batch), Quantities::ALL, &mut pairs);
        assert_eq!(
            found.unwrap_err().to_string(),
            expected.unwrap_err().to_string()
        );
        gpu.neighbors(&systems(&good), Quantities::ALL, &mut pairs)
            .unwrap();
        assert_eq!(gpu.report().failed, None);
    }
    let large = drawn::<f32>(4, 3, 40_000);
    let error = gpu.neighbors(&systems(&large), Quantities::LISTS, &mut pairs);
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("system 3 has more than 32768 points"),
        "{text}"
    );
}

/// An array of the device.
fn upload<V: DeviceValue>(stream: &nearfield::device::Stream, values: &[V]) -> DeviceBuffer<V> {
    stream.clone_htod(values).unwrap()
}

#[test]
fn arrays_of_the_device_give_the_same_pairs_and_room_grows_by_itself() {
    needs_gpu!();
    let stream = Context::open(0).unwrap().new_stream().unwrap();
    let mut search_there = DeviceSystemSearch::<f32>::on(&stream).unwrap();
    for (count, large) in [(20, 100), (400, 900), (5, 5)] {
        let batch = drawn::<f32>(21, count, large);
        let mut on_cpu = SystemPairs::<f32>::default();
        search(Device::Cpu, ListKind::Full)
            .neighbors(&systems(&batch), Quantities::ALL, &mut on_cpu)
            .unwrap();
        let positions = upload(&stream, batch.positions.as_flattened());
        let offsets = upload(&stream, &batch.offsets);
        let radii = upload(&stream, &batch.radii);
        let cells = upload(&stream, batch.cells.as_flattened().as_flattened());
        let flags: Vec<u8> = batch
            .periodic
            .iter()
            .flatten()
            .map(|&flag| u8::from(flag))
            .collect();
        let periodic = upload(&stream, &flags);
        let there = DeviceSystems {
            positions: positions.as_view(),
            offsets: offsets.as_view(),
            radii: radii.as_view(),
            cells: Some(cells.as_view()),
            periodic: Some(periodic.as_view()),
            strict: false,
        };
        let mut repeats = 0;
        loop {
            search_there.neighbors(&there, Quantities::ALL).unwrap();
            match search_there.finish(&there).unwrap() {
                Progress::Valid => break,
                Progress::Repeat => repeats += 1,
            }
        }
        assert!(repeats <= 1);
        let pairs = search_there.pairs().unwrap();
        let count = pairs.count as usize;
        assert_eq!(count, on_cpu.len());
        let sources = stream
            .clone_dtoh(&pairs.sources.unwrap().slice(..count))
            .unwrap();
        assert_eq!(sources, on_cpu.sources());
        let images = stream
            .clone_dtoh(&pairs.images.unwrap().slice(..3 * count))
            .unwrap();
        assert_eq!(images, on_cpu.images().as_flattened());
        let d = pairs.displacements.unwrap();
        let d = stream.clone_dtoh(&d.slice(..3 * count)).unwrap();
        assert_eq!(d, on_cpu.displacements().as_flattened());
        let offsets = stream.clone_dtoh(&pairs.offsets).unwrap();
        assert_eq!(offsets, on_cpu.offsets());
    }
}

#[test]
fn a_system_on_the_device_that_cannot_be_searched_is_named() {
    needs_gpu!();
    let stream = Context::open(0).unwrap().new_stream().unwrap();
    let mut search = DeviceSystemSearch::<f32, i32>::on(&stream).unwrap();
    let positions = upload(&stream, &[0.0, 0.0, 0.0, 1.0, f32::NAN, 0.0]);
    let (offsets, radii) = (upload(&stream, &[0i64, 1, 2]), upload(&stream, &[1.0f64]));
    let systems = DeviceSystems {
        positions: positions.as_view(),
        offsets: offsets.as_view(),
        radii: radii.as_view(),
        cells: None,
        periodic: None,
        strict: false,
    };
    search.neighbors(&systems, Quantities::LISTS).unwrap();
    let error = search.finish(&systems).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cpu(_)));
    let text = error.to_string();
    assert!(text.starts_with("system 1: point 1 has y = NaN"), "{text}");
    assert!(search.pairs().is_none() && search.finish(&systems).is_err());
    // Axes that repeat without a cell are not searched as open ones.
    let (positions, periodic) = (upload(&stream, &[0.0f32; 6]), upload(&stream, &[1u8; 3]));
    let systems = DeviceSystems {
        positions: positions.as_view(),
        periodic: Some(periodic.as_view()),
        ..systems
    };
    search.neighbors(&systems, Quantities::LISTS).unwrap();
    assert!(
        search
            .finish(&systems)
            .unwrap_err()
            .to_string()
            .contains("cells")
    );
    // So many images of all points together that their pairs are not tested.
    let cells = [[1e-3f64, 0.0, 0.0], [0.0, 1e-3, 0.0], [0.0; 3]];
    let (cells, offsets) = (
        upload(&stream, cells.as_flattened()),
        upload(&stream, &[0i64, 64]),
    );
    let (positions, periodic) = (
        upload(&stream, &[0.0f32; 192]),
        upload(&stream, &[1u8, 1, 0]),
    );
    let systems = DeviceSystems {
        positions: positions.as_view(),
        offsets: offsets.as_view(),
        cells: Some(cells.as_view()),
        periodic: Some(periodic.as_view()),
        ..systems
    };
    search.neighbors(&systems, Quantities::LISTS).unwrap();
    let error = search.finish(&systems).unwrap_err().to_string();
    assert!(error.contains("system 0 has more than"), "{error}");
}

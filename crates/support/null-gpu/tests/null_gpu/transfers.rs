//! Programs whose data live on a GPU move the same few bytes in every step, however many particles
//! they have; and all that they move is counted by the engine's queue.
//!
//! The tests need NVRTC, as a real GPU does; without it they do nothing, or fail if
//! `NEARFIELD_REQUIRE_NVRTC=1`.

use crate::common::{counts, on_null_gpu};
use nearfield::{
    Device, Engine, Precision, RadiusRule,
    device::{
        DeviceEngine, DeviceKernel, DeviceVerletLists, Progress,
        copies::Transfers,
        programs::{LaunchShape, Program, UserKernel},
    },
    kernels::{
        Coefficients, Field, Forces, LennardJones, Mixing, PlainLennardJones, SphDensity, SphForce,
        Truncation, WendlandC2,
    },
    lists::{PairGeometry, VerletLists},
};
use nearfield_md::{Cell, ForceField, Options, Simulation as Molecules, System};
use nearfield_null_gpu::Counts;
use nearfield_sph::{
    Config, Dimensions, FrontRule, Probes, Simulation,
    scene::{self, Top},
};

const UNIT: Coefficients = Coefficients {
    epsilon: 1.0,
    sigma: 1.0,
};

/// Asserts that an engine has counted all that the driver copied since `start`.
fn assert_all_is_counted(transfers: Transfers, start: &Counts) {
    let now = counts();
    let copied = Transfers {
        to_host: now.to_host - start.to_host,
        to_device: now.to_device - start.to_device,
    };
    assert_eq!(transfers, copied);
}

/// Water in a tank, `edge`³·2 particles.
fn column(edge: i32) -> Simulation {
    let (space, spacing) = (Dimensions::Three, 1.0 / edge as f32);
    let inside = [3 * edge, edge, 3 * edge];
    let mut config = Config::water(space, spacing, 2.0);
    // Sorting, every third step here, moves all particles, but on the device.
    config.sort_every = 3;
    let water = scene::block(space, [0; 3], [edge, edge, 2 * edge], spacing);
    let walls = scene::tank(space, inside, Top::Closed, 3, spacing);
    Simulation::builder(config)
        .fluid(&water.unwrap())
        .walls(&walls.unwrap())
        .device(Device::Gpu(0))
        .build()
        .unwrap()
}

#[test]
fn a_fluid_steps_without_moving_its_particles() {
    on_null_gpu("transfers::fluid");
}

#[test]
#[ignore = "runs in a child"]
fn fluid() {
    let moved = [6, 12].map(|edge| {
        let mut water = column(edge);
        let rule = FrontRule {
            share: 0.01,
            low: 0.0,
            high: 3.0,
        };
        let probes = Probes {
            points: vec![[0.5; 3].into()],
            columns: Vec::new(),
        };
        let mut round = || {
            let before = counts();
            for _ in 0..6 {
                water.step().unwrap();
            }
            water.energy().unwrap();
            water.momentum().unwrap();
            water.front(&rule).unwrap();
            water.probe(&probes).unwrap();
            assert!((water.mass() - 2000.0).abs() < 1.0);
            let after = counts();
            let kernels = after.kernels - before.kernels;
            assert!(kernels > 6 * 10, "{kernels}: nothing was started");
            let waits = after.waits - before.waits;
            assert!(waits <= 6 * 2 + 8, "{waits}: the host waits within a step");
            let (up, down) = (
                after.to_device - before.to_device,
                after.to_host - before.to_host,
            );
            (up, down, kernels, waits)
        };
        // The first round makes room.
        round();
        let moved = round();
        assert_eq!(moved, round(), "{edge}");
        // Looking at the particles is what moves them, and is seen to.
        let before = counts();
        assert_eq!(water.positions().len(), water.len());
        let looked = counts().to_host - before.to_host;
        assert!(looked >= 12 * water.len() as u64, "{looked}");
        moved
    });
    assert_eq!(moved[0], moved[1], "bytes up and down, kernels, waits");
    assert!((1..64 << 10).contains(&moved[0].1), "{moved:?}");
}

#[test]
fn atoms_step_without_being_moved() {
    on_null_gpu("transfers::atoms");
}

#[test]
#[ignore = "runs in a child"]
fn atoms() {
    let moved = [8, 16].map(|side: usize| {
        let start = counts();
        let place = |k: usize| [k % side, k / side % side, k / side / side].map(|x| x as f64);
        // Without bounds that a kernel measured, points in a periodic box count as strayed.
        let cell = Cell::lengths([None; 3]).unwrap();
        let system = System::new((0..side.pow(3)).map(place).collect(), cell).unwrap();
        let potential = LennardJones::new(
            &[UNIT],
            Mixing::default(),
            &[],
            2.5,
            Truncation::EnergyShift,
        );
        let options = Options {
            device: Device::Gpu(0),
            skin: 0.3,
            ..Options::default()
        };
        let field = ForceField::from(potential.unwrap());
        let mut run = Molecules::new(system, field, options).unwrap();
        let mut round = || {
            let before = run.transfers().unwrap();
            for _ in 0..10 {
                run.step(0.005).unwrap();
            }
            run.observe().unwrap();
            let after = run.transfers().unwrap();
            (
                after.to_host - before.to_host,
                after.to_device - before.to_device,
            )
        };
        round();
        let moved = round();
        assert_all_is_counted(run.transfers().unwrap(), &start);
        moved
    });
    assert_eq!(moved[0], moved[1], "bytes down and up");
    assert!((1..4096).contains(&moved[0].0), "{moved:?}");
}

#[test]
fn lists_are_found_without_moving_points() {
    on_null_gpu("transfers::lists");
}

#[test]
#[ignore = "runs in a child"]
fn lists() {
    let moved = [1000, 20_000].map(|points: usize| {
        let start = counts();
        let mut engine = DeviceEngine::builder(0.1).on_gpu(0).unwrap();
        let positions = vec![0.5f32; 3 * points];
        let positions = engine.queue().array("positions", &positions).unwrap();
        let set = engine.add_point_set(&positions.as_view()).unwrap();
        let mut round = || {
            let before = engine.transfers();
            for _ in 0..5 {
                engine.update(set, &positions.as_view()).unwrap();
                engine.find_neighbors(set, set).unwrap();
                assert_eq!(engine.finish().unwrap(), Progress::Valid);
            }
            let after = engine.transfers();
            (
                after.to_host - before.to_host,
                after.to_device - before.to_device,
            )
        };
        round();
        let moved = round();
        assert_all_is_counted(engine.transfers(), &start);
        moved
    });
    assert_eq!(moved[0], moved[1], "bytes down and up");
    assert!((1..4096).contains(&moved[0].0), "{moved:?}");
}

#[test]
fn kernels_over_lists_wait_for_nothing() {
    on_null_gpu("transfers::over_lists");
}

#[test]
#[ignore = "runs in a child"]
fn over_lists() {
    let kernel = PlainLennardJones::new(UNIT, 0.1, false).unwrap();
    let kernel = Forces(kernel);
    let mut engine = DeviceEngine::builder(0.1).on_gpu(0).unwrap();
    let positions = engine.queue().array("positions", &[0.5f32; 3000]).unwrap();
    let mut forces = engine.queue().array("forces", &[0.0; 3000]).unwrap();
    let set = engine.add_point_set(&positions.as_view()).unwrap();
    let mut round = || {
        engine.find_neighbors(set, set).unwrap();
        let before = counts();
        let started = [0; 3].map(|_: u64| {
            let before = counts().kernels;
            let traversal = engine.traverse(&kernel, set, set).over_lists();
            traversal.run_into(&mut forces.as_view_mut()).unwrap();
            counts().kernels - before
        });
        let after = counts();
        let copied = after.to_host + after.to_device - before.to_host - before.to_device;
        assert_eq!((after.waits - before.waits, copied), (0, 0));
        assert_eq!(engine.finish().unwrap(), Progress::Valid);
        started
    };
    // The entries are looked up once per search, and kernels without channels gather none.
    assert_eq!(round(), [3, 1, 1]);
    assert_eq!(round(), [3, 1, 1]);
}

#[test]
fn lists_with_a_skin_of_two_sets_are_followed_without_a_wait_before_the_last() {
    on_null_gpu("transfers::skin");
}

#[test]
#[ignore = "runs in a child"]
fn skin() {
    let kernel = PlainLennardJones::new(UNIT, 0.1, false).unwrap();
    let kernel = DeviceKernel::of(&Forces(kernel)).unwrap();
    let settings = DeviceEngine::builder(0.1);
    let mut lists = DeviceVerletLists::new(settings, 0.02, |settings| settings.on_gpu(0)).unwrap();
    let queue = lists.engine().queue().clone();
    let positions = queue.array("positions", &[0.5f32; 3000]).unwrap();
    let mut forces = queue.array("forces", &[0.0f32; 3000]).unwrap();
    let set = lists.add_point_set(&positions.as_view()).unwrap();
    let walls = lists.add_point_set(&positions.as_view()).unwrap();
    assert_eq!(lists.finish().unwrap(), Progress::Repeat);
    let mut step = || {
        let before = counts();
        lists.update(set, &positions.as_view()).unwrap();
        lists.update(walls, &positions.as_view()).unwrap();
        let traversal = lists.traverse_with(&kernel, set, set);
        traversal.run_into(&mut forces.as_view_mut()).unwrap();
        let started = counts();
        assert_eq!(
            started.waits, before.waits,
            "the host waits before all is started"
        );
        assert_eq!(lists.finish().unwrap(), Progress::Valid);
        let after = counts();
        let down = after.to_host - before.to_host;
        let up = after.to_device - before.to_device;
        (
            after.kernels - before.kernels,
            after.waits - before.waits,
            down,
            up,
        )
    };
    // The first step looks up where the entries are.
    step();
    // Positions of either set are followed, the lists judged each time, and the forces computed.
    assert_eq!(step(), (5, 1, 8, 0));
    assert_eq!(step(), (5, 1, 8, 0));
    assert_eq!(lists.builds(), 1);
}

#[test]
fn lists_of_host_data_stay_on_the_device_for_kernels() {
    on_null_gpu("transfers::host_lists");
}

#[test]
#[ignore = "runs in a child"]
fn host_lists() {
    let points: Vec<[f32; 3]> = (0..20_000).map(|i| [i as f32, 0.5, 0.5]).collect();
    let density = SphDensity::with_support(1.5);
    let mass = vec![1.0f32; points.len()];
    let numbers = 4 * points.len() as u64;
    let mut engine = Engine::builder(1.5).device(Device::Gpu(0)).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let step = |engine: &mut Engine| {
        engine.update(set, &points).unwrap();
        engine.find_neighbors().unwrap();
        let passes = [0; 3].map(|_: u64| {
            let before = counts();
            let traversal = engine.traverse(&density, set, set).over_lists();
            traversal.sources(&mass).run().unwrap();
            let after = counts();
            // The masses go up and the sums come down, and little else.
            let (up, down) = (
                after.to_device - before.to_device,
                after.to_host - before.to_host,
            );
            assert!((numbers..numbers + 4096).contains(&up), "{up}");
            assert!((numbers..numbers + 4096).contains(&down), "{down}");
            after.kernels - before.kernels
        });
        assert_eq!(engine.report().device, Device::Gpu(0));
        passes
    };
    let [found, ..] = step(&mut engine);
    let [first, second, third] = step(&mut engine);
    // From the second step on the search leaves the lists, whose entries are looked up once.
    assert!(found > first, "{found}, {first}");
    assert_eq!(first, second + 2);
    assert_eq!(second, third);
    let traversal = engine.traverse(&density, set, set).sources(&mass);
    let before = counts().kernels;
    traversal.run().unwrap();
    assert!(counts().kernels - before <= second, "sets stay sorted");
}

#[test]
fn lists_with_a_skin_of_host_data_get_positions_once_a_step() {
    on_null_gpu("transfers::host_skin");
}

#[test]
#[ignore = "runs in a child"]
fn host_skin() {
    let mut points: Vec<[f32; 3]> = (0..20_000).map(|i| [i as f32, 0.5, 0.5]).collect();
    let density = SphDensity::with_support(1.5);
    let mass = vec![1.0f32; points.len()];
    let numbers = 4 * points.len() as u64;
    for precision in [Precision::Single, Precision::Double] {
        let words = if precision == Precision::Single { 3 } else { 6 };
        let builder = Engine::builder(1.5).precision(precision);
        let mut lists = VerletLists::new(builder.device(Device::Gpu(0)), 0.5).unwrap();
        let wide = |points: &[[f32; 3]]| -> Vec<[f64; 3]> {
            points.iter().map(|at| at.map(f64::from)).collect()
        };
        let give = |lists: &mut VerletLists, set, points: &Vec<[f32; 3]>| match precision {
            Precision::Single => lists.update(set, points).unwrap(),
            Precision::Double => lists.update(set, &wide(points)).unwrap(),
        };
        let set = match precision {
            Precision::Single => lists.add_point_set(&points).unwrap(),
            Precision::Double => lists.add_point_set(&wide(&points)).unwrap(),
        };
        lists.refresh().unwrap();
        let mut step = || {
            points[0][1] += 0.01;
            give(&mut lists, set, &points);
            lists.refresh().unwrap();
            let passes = [0; 2].map(|_: u64| {
                let before = counts().to_device;
                let traversal = lists.traverse(&density, set, set);
                traversal.sources(&mass).run().unwrap();
                counts().to_device - before
            });
            let mut geometry = PairGeometry::default();
            lists.pair_geometry(set, set, &mut geometry).unwrap();
            passes
        };
        step();
        let [first, second] = step();
        assert_eq!(lists.report().device, Device::Gpu(0));
        assert_eq!(lists.builds(), 1);
        let positions = words * numbers;
        assert!((numbers..numbers + 4096).contains(&second), "{second}");
        let more = first - second;
        assert!((positions..positions + 4096).contains(&more), "{more}");
    }
}

#[test]
fn a_launch_asks_for_the_shared_memory_of_its_shape() {
    on_null_gpu("transfers::shared");
}

#[test]
#[ignore = "runs in a child"]
fn shared() {
    let engine = DeviceEngine::builder(0.1).on_gpu(0).unwrap();
    let text = r#"extern "C" __global__ void idle(unsigned) {}"#;
    let module = engine.load(&Program::new("idle", text)).unwrap();
    let kernel = UserKernel::of(&module, "idle", engine.queue()).unwrap();
    kernel.allow_shared(60 << 10).unwrap();
    for bytes in [0, 1 << 10, 60 << 10] {
        let before = counts();
        let shape = LaunchShape::of(1, 32).with_shared(bytes);
        // SAFETY: the kernel takes one number, and does nothing.
        unsafe { kernel.start(shape, (&1u32,)) }.unwrap();
        let after = counts();
        assert_eq!(after.kernels - before.kernels, 1);
        assert_eq!(after.shared - before.shared, u64::from(bytes));
    }
}

#[test]
fn of_strided_fields_only_the_values_are_sent() {
    on_null_gpu("transfers::strided");
}

#[test]
#[ignore = "runs in a child"]
fn strided() {
    const POINTS: usize = 20_000;
    let points: Vec<[f32; 3]> = (0..POINTS)
        .map(|k| [k % 30, k / 30 % 30, k / 900].map(|x| x as f32))
        .collect();
    // Structures of twelve numbers: a velocity, a density, a pressure and a mass among them.
    let particles = vec![1.0f32; 12 * POINTS];
    let bytes: Vec<u8> = particles.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let inside =
        |first: usize, channels| Field::strided(&bytes, 4 * first, 48, POINTS, channels).unwrap();
    let (vectors, ones) = (
        vec![[1.0f32; 3]; POINTS],
        [(); 3].map(|()| vec![1.0f32; POINTS]),
    );
    let packed = [
        Field::from(&vectors),
        Field::from(&ones[0]),
        Field::from(&ones[1]),
        Field::from(&ones[2]),
    ];
    let kernel = SphForce {
        kernel: WendlandC2::with_support(1.5),
        h: 0.75,
        alpha_c: 0.1,
    };
    let mut engine = Engine::builder(1.5).device(Device::Gpu(0)).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let sent = |fields: [Field<'_>; 4]| {
        let before = counts().to_device;
        let traversal = engine.traverse(&kernel, set, set);
        traversal
            .targets(&fields[..3])
            .sources(&fields)
            .run()
            .unwrap();
        counts().to_device - before
    };
    // The positions go with the first traversal.
    sent(packed);
    let of_packed = sent(packed);
    assert!(
        (24..32).contains(&(of_packed / POINTS as u64)),
        "{of_packed}"
    );
    let strided = [inside(2, 3), inside(6, 1), inside(7, 1), inside(9, 1)];
    assert_eq!(sent(strided), of_packed);
}

#[test]
fn every_byte_is_counted() {
    on_null_gpu("transfers::bytes");
}

#[test]
#[ignore = "runs in a child"]
fn bytes() {
    let start = counts();
    let mut water = column(6);
    for _ in 0..4 {
        water.step().unwrap();
    }
    water.neighbor_counts().unwrap();
    assert_eq!(water.positions().len(), 432);
    let moments = [0; 3].map(|_| water.moment().unwrap());
    for moment in moments {
        assert_eq!(moment.wait().unwrap().positions(), water.positions());
    }
    assert_all_is_counted(water.transfers().unwrap(), &start);
}

#[test]
fn what_filters_read_is_sent_once() {
    on_null_gpu("transfers::filters");
}

#[test]
#[ignore = "runs in a child"]
fn filters() {
    let points: Vec<[f32; 3]> = (0..20_000).map(|i| [i as f32, 0.5, 0.5]).collect();
    let builder = Engine::builder(1.5).cutoffs(&[[1.5, 1.0], [1.0, 0.0]]);
    let mut engine = builder.device(Device::Gpu(0)).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.set_types(set, &vec![0u8; points.len()]).unwrap();
    engine.set_molecules(set, &vec![7; points.len()]).unwrap();
    let step = |engine: &mut Engine| {
        let before = counts();
        engine.update(set, &points).unwrap();
        engine.count_neighbors(set, set).unwrap();
        engine.count_neighbors(set, set).unwrap();
        assert_eq!(engine.report().device, Device::Gpu(0));
        counts().to_device - before.to_device
    };
    let numbers = 4 * points.len() as u64;
    let [first, second, third] = [(); 3].map(|()| step(&mut engine));
    assert!(first >= second + 2 * numbers, "{first} {second}");
    assert_eq!(second, third);
    // Positions, and what does not depend on their number.
    assert!(second < 3 * numbers + 4096, "{second}");
    engine.set_types(set, &vec![1u8; points.len()]).unwrap();
    assert_eq!(step(&mut engine), second + numbers);
    assert_eq!(step(&mut engine), second);
}

#[test]
fn data_from_the_device_pass_by_the_host() {
    on_null_gpu("transfers::data");
}

#[test]
#[ignore = "runs in a child"]
fn data() {
    let moved = [1_000, 20_000].map(|points: usize| {
        let settings = DeviceEngine::builder(0.1).radii(RadiusRule::Symmetric);
        let mut engine = settings.on_gpu(0).unwrap();
        let queue = engine.queue().clone();
        let positions = queue.array("positions", &vec![0.5f32; 3 * points]).unwrap();
        let radii = queue.array("radii", &vec![0.1f32; points]).unwrap();
        let molecules = queue.array("molecules", &vec![1u32; points]).unwrap();
        let set = engine.add_point_set(&positions.as_view()).unwrap();
        let mut round = || {
            let before = counts();
            for _ in 0..5 {
                engine.update(set, &positions.as_view()).unwrap();
                let start = counts();
                engine.set_radii_from_device(set, &radii.as_view()).unwrap();
                let molecules = molecules.as_view();
                engine.set_molecules_from_device(set, &molecules).unwrap();
                assert_eq!(counts().waits, start.waits, "data of points wait");
                engine.find_neighbors(set, set).unwrap();
                assert_eq!(engine.finish().unwrap(), Progress::Valid);
            }
            let after = counts();
            let down = after.to_host - before.to_host;
            (down, after.to_device - before.to_device)
        };
        round();
        round()
    });
    assert_eq!(moved[0], moved[1], "bytes down and up");
    assert!((1..4096).contains(&moved[0].0), "{moved:?}");
}

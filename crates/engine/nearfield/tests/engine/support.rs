//! Kernels that reach farther than pairs are searched for are refused, on every path.

use nearfield::{
    Engine, Error, ErrorKind, Pair,
    kernels::{Dimensions, SphDensity, SphForce, WendlandC2},
    lists::VerletLists,
    prelude::*,
};
use nearfield_testkit::shapes;

fn density(support: f32) -> SphDensity {
    SphDensity::with_support(support)
}

/// Checks the refusal of a support by a traversal.
fn check<T>(result: Result<T, Error>, expected: (f32, f32)) {
    let Err(error) = result else {
        panic!("the support {} was taken", expected.0);
    };
    let text = error.to_string();
    assert!(text.contains("SphDensity"), "{text}");
    let ErrorKind::Support {
        support, radius, ..
    } = error.kind()
    else {
        panic!("{text}");
    };
    assert_eq!((*support, *radius), expected);
    for number in [support, radius] {
        assert!(text.contains(&number.to_string()), "{text}");
    }
}

fn points() -> Vec<[f32; 3]> {
    shapes::uniform_box(2000, [[0.0; 3], [4.0; 3]], 7)
}

#[test]
fn a_support_beyond_the_radius_is_refused_wherever_the_kernel_would_run() {
    let (points, kernel) = (points(), density(0.75));
    let mass = vec![1.0f32; points.len()];
    let fields = &mass;
    for device in ["cpu", "auto", "emulated"] {
        let device: Device = device.parse().unwrap();
        let mut engine = Engine::builder(0.5).device(device).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.find_neighbors().unwrap();
        let before = vec![5.0; points.len()];
        for step in 0..3 {
            let mut values = before.clone();
            let run = |kernel| engine.traverse(kernel, set, set).sources(fields);
            check(run(&kernel).run(), (0.75, 0.5));
            check(run(&kernel).run_into(&mut values), (0.75, 0.5));
            check(run(&kernel).add_into(&mut values), (0.75, 0.5));
            check(run(&kernel).over_lists().run(), (0.75, 0.5));
            assert_eq!(values, before, "a refused kernel writes nothing");
            run(&density(0.5)).run_into(&mut values).unwrap();
            assert!(values[0] > 0.0, "step {step}: the engine goes on");
        }
    }
}

#[test]
fn an_engine_in_f64_and_lists_with_a_skin_refuse_it_too() {
    let points = points();
    let wide: Vec<[f64; 3]> = points.iter().map(|at| at.map(f64::from)).collect();
    let mass = vec![1.0f32; points.len()];
    let fields = &mass;
    let mut engine = Engine::builder(0.3)
        .precision(Precision::Double)
        .build()
        .unwrap();
    let set = engine.add_point_set(&wide).unwrap();
    let run = |support| {
        let kernel = density(support);
        engine.traverse(&kernel, set, set).sources(fields).run()
    };
    check(run(0.300_001), (0.300_001, 0.3));
    run(0.3).unwrap();
    // Lists reach as far as radius and skin together; kernels reach to the radius.
    let mut lists = VerletLists::new(Engine::builder(0.5), 0.25).unwrap();
    let set = lists.add_point_set(&points).unwrap();
    lists.refresh().unwrap();
    let run = |support| {
        let kernel = density(support);
        lists.traverse(&kernel, set, set).sources(fields).run()
    };
    check(run(0.625), (0.625, 0.5));
    run(0.5).unwrap();
}

#[test]
fn a_radius_that_is_rounded_differently_is_no_reason() {
    let points = [[0.0f32; 3], [0.01, 0.0, 0.0]];
    let mass = [1.0f32; 2];
    for radius in [0.1f32, 1.0, 0.3, 3.7e-5, 1e9] {
        let mut engine = Engine::builder(radius).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        for support in [radius, radius.next_up(), radius.next_down()] {
            let kernel = density(support);
            let fields = &mass;
            let run = engine.traverse(&kernel, set, set).sources(fields);
            run.run().unwrap();
        }
        let support = radius.next_up().next_up().next_up();
        let kernel = density(support);
        let fields = &mass;
        let run = engine.traverse(&kernel, set, set).sources(fields);
        check(run.run(), (support, radius));
    }
}

/// Counts what is nearer than a distance that it does, or does not, tell.
struct Within(Option<f32>);

impl PairKernel for Within {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        1.0
    }

    fn support(&self) -> Option<f32> {
        self.0
    }
}

#[test]
fn kernels_that_are_cut_off_on_purpose_are_taken() {
    let points = points();
    let mut engine = Engine::builder(0.5).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let counts = engine.count_neighbors(set, set).unwrap();
    for support in [
        None,
        Some(f32::INFINITY),
        Some(0.5),
        Some(0.0),
        Some(f32::NAN),
    ] {
        let found = engine.traverse(&Within(support), set, set).run().unwrap();
        assert!(
            found
                .iter()
                .zip(&counts)
                .all(|(found, count)| *found == *count as f32)
        );
    }
    let refused = engine.traverse(&Within(Some(0.6)), set, set).run();
    assert!(matches!(
        refused.as_ref().map_err(|error| error.kind()),
        Err(ErrorKind::Support { .. })
    ));
}

#[test]
fn a_density_in_a_plane_is_mass_per_area() {
    let side = 40;
    let points: Vec<[f32; 2]> = (0..side * side)
        .map(|k| [(k % side) as f32, (k / side) as f32])
        .collect();
    let mass = vec![1.0f32; points.len()];
    let mut engine = Engine::builder(2.5).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let density = |kernel: WendlandC2| {
        let kernel = SphDensity { kernel };
        let fields = &mass;
        let run = engine.traverse(&kernel, set, set).sources(fields);
        let middle = side * side / 2 + side / 2;
        run.run().unwrap()[middle] + kernel.kernel.value(0.0)
    };
    let kernel = WendlandC2::with_support(2.5);
    let flat = density(kernel.in_dimensions(Dimensions::Two));
    assert!((flat - 1.0).abs() < 0.05, "{flat} points per unit of area");
    assert!((density(kernel) - 1.0).abs() > 0.1);
    let force = SphForce {
        kernel,
        h: 1.25,
        alpha_c: 0.0,
    };
    assert_eq!(force.support(), Some(2.5));
}

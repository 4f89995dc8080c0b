//! Traversals of both backends over data on a GPU against those of the GPU alone.

use crate::{
    needs_gpu,
    on_gpu::{FromHost, start},
};
use nearfield::{
    PairKernel, PointSetId, Reduce,
    balance::{Policy, Strategy},
    device::{CpuHelper, DeviceBuffer, DeviceEngine, DeviceField, DeviceView, Progress},
    kernels::{SphDensity, SphForce, WendlandC2},
};
use nearfield_testkit::cloud::{Cloud, drift};

/// A dense half and a sparse one: thresholds between their occupancies tell them apart.
fn two_densities(seed: u64) -> Vec<[f32; 3]> {
    let mut points = Cloud::Uniform.points(6_000, seed);
    let edge = 6_000f32.cbrt();
    let sparse = Cloud::Uniform.points(3_000, seed + 1);
    let stretch = 2.5 * edge / 3_000f32.cbrt();
    points.extend(
        sparse
            .iter()
            .map(|at| [at[0] * stretch + edge, at[1] * stretch, at[2] * stretch]),
    );
    points
}

/// Something to be computed of a pair of sets, and how it is to come out.
struct Case<'a, K> {
    kernel: &'a K,
    sets: [PointSetId; 2],
    /// Numbers per target and source, with room between them.
    fields: [Option<(&'a DeviceBuffer<f32>, usize)>; 2],
    targets: usize,
}

impl<K: PairKernel> Case<'_, K> {
    fn outputs(&self) -> usize {
        <K::Output as nearfield::kernels::Channels>::COUNT
    }

    /// By the GPU alone, added to `before`.
    fn alone(&self, engine: &mut DeviceEngine, before: &[f32]) -> Vec<f32> {
        let stream = engine.stream().clone();
        loop {
            let mut results = stream.clone_htod(before).unwrap();
            let mut traversal = engine.traverse(self.kernel, self.sets[0], self.sets[1]);
            if let Some((field, stride)) = self.fields[0] {
                traversal = traversal.targets(DeviceField::new(field.as_view(), stride));
            }
            if let Some((field, stride)) = self.fields[1] {
                traversal = traversal.sources(DeviceField::new(field.as_view(), stride));
            }
            traversal.add_into(&mut results.as_view_mut()).unwrap();
            if engine.finish().unwrap() == Progress::Valid {
                return stream.clone_dtoh(&results).unwrap();
            }
        }
    }

    /// By both backends, added to `before` or written over it.
    fn shared(
        &self,
        engine: &mut DeviceEngine,
        cpu: &mut CpuHelper,
        before: &[f32],
        add: bool,
    ) -> Vec<f32> {
        let stream = engine.stream().clone();
        let mut results = stream.clone_htod(before).unwrap();
        let mut traversal =
            (engine.with_cpu(cpu)).traverse(self.kernel, self.sets[0], self.sets[1]);
        if let Some((field, stride)) = self.fields[0] {
            traversal = traversal.targets(DeviceField::new(field.as_view(), stride));
        }
        if let Some((field, stride)) = self.fields[1] {
            traversal = traversal.sources(DeviceField::new(field.as_view(), stride));
        }
        let mut view = results.as_view_mut();
        match add {
            true => traversal.add_into(&mut view).unwrap(),
            false => traversal.run_into(&mut view).unwrap(),
        }
        stream.clone_dtoh(&results).unwrap()
    }

    /// Compares both, also where results are there already.
    fn check(&self, engine: &mut DeviceEngine, cpu: &mut CpuHelper, what: &str) {
        let nothing = vec![0.0; self.targets * self.outputs()];
        let some: Vec<f32> = (0..nothing.len()).map(|k| (k % 7) as f32).collect();
        let rubbish = vec![f32::NAN; nothing.len()];
        let alone = self.alone(engine, &nothing);
        let written = self.shared(engine, cpu, &rubbish, false);
        close(&written, &alone, &format!("{what}, written"));
        let alone = self.alone(engine, &some);
        let added = self.shared(engine, cpu, &some, true);
        close(&added, &alone, &format!("{what}, added"));
    }
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    let largest = expected
        .iter()
        .fold(0.0f32, |most, value| most.max(value.abs()));
    assert!(largest > 0.0, "{what}: nothing to compare");
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        assert!(
            off <= 2e-5 * largest,
            "{what}: number {k} is {found}, not {expected}"
        );
    }
}

fn policies() -> [Policy; 5] {
    let fixed = |theta| Policy::Fixed { theta };
    [
        fixed(0.0),
        fixed(6.0),
        fixed(60.0),
        fixed(f64::INFINITY),
        Policy::Model,
    ]
}

#[test]
fn sums_by_both_backends_are_those_of_the_gpu() {
    needs_gpu!();
    let boxes: [[Option<f64>; 3]; 2] = [[None; 3], [Some(62.0), None, Some(40.0)]];
    let kernel = WendlandC2::with_support(2.0);
    let (density, force) = (
        SphDensity { kernel },
        SphForce {
            kernel,
            h: 1.0,
            alpha_c: 0.1,
        },
    );
    for strategy in [Strategy::Flat, Strategy::ChildPerCell] {
        for periodic in boxes {
            let builder = DeviceEngine::builder(2.0)
                .subdivision(1)
                .periodic(periodic)
                .strategy(strategy);
            let mut engine = start(builder);
            let stream = engine.stream().clone();
            let (mut fluid, walls) = (two_densities(1), Cloud::Uniform.points(2_000, 5));
            let sets = [&fluid, &walls].map(|points| engine.add(points));
            let numbers = |count: usize, stride: usize| {
                let values: Vec<f32> = (0..count * stride)
                    .map(|k| 0.5 + (k % 13) as f32 / 13.0)
                    .collect();
                stream.clone_htod(&values).unwrap()
            };
            // Mass, and all that a force reads of a point, among other numbers.
            let (mass, state) = (numbers(fluid.len(), 2), numbers(fluid.len(), 7));
            let wall_mass = numbers(walls.len(), 1);
            for policy in policies() {
                let mut cpu = CpuHelper::new(policy, 2).unwrap();
                let steps = if policy == Policy::Model { 12 } else { 2 };
                for step in 0..steps {
                    drift(&mut fluid, 0.05, step);
                    engine.put(sets[0], &fluid);
                    let what = format!("{strategy}, {periodic:?}, {policy}, step {step}");
                    Case {
                        kernel: &density,
                        sets: [sets[0]; 2],
                        fields: [None, Some((&mass, 2))],
                        targets: fluid.len(),
                    }
                    .check(&mut engine, &mut cpu, &format!("{what}, density"));
                    Case {
                        kernel: &force,
                        sets: [sets[0]; 2],
                        fields: [Some((&state, 7)); 2],
                        targets: fluid.len(),
                    }
                    .check(&mut engine, &mut cpu, &format!("{what}, force"));
                    Case {
                        kernel: &density,
                        sets,
                        fields: [None, Some((&wall_mass, 1))],
                        targets: fluid.len(),
                    }
                    .check(&mut engine, &mut cpu, &format!("{what}, walls"));
                }
                let of_backends: Vec<[usize; 2]> = (cpu.report().iter())
                    .map(|(_, split)| split.backends.each_ref().map(|backend| backend.points))
                    .collect();
                let count = fluid.len();
                let expected = |[cpu, gpu]: [usize; 2]| match policy {
                    Policy::Fixed { theta: 0.0 } => gpu == count,
                    Policy::Fixed {
                        theta: f64::INFINITY,
                    } => cpu == count,
                    Policy::Fixed { .. } => cpu > 0 && gpu > 0,
                    _ => true,
                };
                assert_eq!(of_backends.len(), 3);
                for backends in of_backends {
                    assert_eq!(backends[0] + backends[1], count);
                    assert!(
                        expected(backends),
                        "{strategy}, {periodic:?}, {policy}: {backends:?}"
                    );
                }
            }
        }
    }
}

/// The nearest neighbour's squared distance: a reduction that is no sum.
struct Nearest;

#[nearfield::pair_kernel]
impl PairKernel for Nearest {
    type Target = ();
    type Source = ();
    type Output = f32;
    const REDUCE: Reduce = Reduce::Min;

    fn pair(&self, pair: nearfield::Pair, (): (), (): ()) -> f32 {
        pair.d2
    }
}

#[test]
fn minima_are_kept_and_points_that_jump_are_found() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let mut points = two_densities(3);
    let set = engine.add(&points);
    let mut cpu = CpuHelper::new(Policy::Fixed { theta: 6.0 }, 2).unwrap();
    for step in 0..4 {
        if step == 2 {
            // Out of all room that the cells have.
            points.iter_mut().for_each(|point| point[2] -= 500.0);
        }
        engine.put(set, &points);
        let case = Case {
            kernel: &Nearest,
            sets: [set; 2],
            fields: [None, None],
            targets: points.len(),
        };
        let far = vec![9.0; points.len()];
        let shared = case.shared(&mut engine, &mut cpu, &far, true);
        let alone = case.alone(&mut engine, &far);
        assert_eq!(shared, alone, "step {step}");
    }
}

#[test]
fn lists_of_a_sort_that_was_not_valid_are_still_repeated() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let stream = engine.stream().clone();
    let mut points = two_densities(4);
    let set = engine.add(&points);
    points.iter_mut().for_each(|point| point[2] -= 500.0);
    engine.put(set, &points);
    engine.find_neighbors(set, set).unwrap();
    let mut cpu = CpuHelper::new(Policy::Model, 2).unwrap();
    let mut nearest = stream.alloc_zeros::<f32>(points.len()).unwrap();
    engine
        .with_cpu(&mut cpu)
        .traverse(&Nearest, set, set)
        .run_into(&mut nearest.as_view_mut())
        .unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    // Perhaps once more: what they need is only known now.
    let valid = (0..2).any(|_| {
        engine.find_neighbors(set, set).unwrap();
        engine.finish().unwrap() == Progress::Valid
    });
    assert!(valid, "lists are never valid");
    let counts = stream
        .clone_dtoh(&engine.neighbors(set, set).unwrap().count)
        .unwrap();
    let nearest = stream.clone_dtoh(&nearest).unwrap();
    for (target, (count, nearest)) in counts.iter().zip(&nearest).enumerate() {
        assert_eq!(*count > 0, *nearest <= 4.0, "target {target}");
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused_whoever_works() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let stream = engine.stream().clone();
    let points = two_densities(2);
    let set = engine.add(&points);
    let density = SphDensity::with_support(2.0);
    let mass = stream.alloc_zeros::<f32>(points.len()).unwrap();
    let mut results = stream.alloc_zeros::<f32>(points.len()).unwrap();
    for policy in policies() {
        let mut cpu = CpuHelper::new(policy, 1).unwrap();
        let mut refused = |mass: Option<DeviceView<'_, f32>>, from: usize, said: &str| {
            let shared = engine.with_cpu(&mut cpu);
            let mut traversal = shared.traverse(&density, set, set);
            if let Some(mass) = mass {
                traversal = traversal.sources(DeviceField::new(mass, 1));
            }
            let error = traversal.run_into(&mut results.slice_mut(from..));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(said), "{policy}: {error}");
        };
        refused(Some(mass.slice(1..)), 0, "fields of sources");
        refused(None, 0, "fields of sources");
        refused(Some(mass.as_view()), 1, "results");
    }
}

//! What the engine does with sets that change, with wrong input, and with its memory.

use nearfield::{
    Engine, Reduce,
    balance::Policy,
    kernels::Field,
    lists::Csr,
    prelude::*,
    report::{SimdLevel, TableKind},
};

fn row(count: usize, spacing: f32) -> Vec<[f32; 3]> {
    (0..count).map(|i| [i as f32 * spacing, 0.0, 0.0]).collect()
}

#[test]
fn a_set_may_shrink_and_grow_between_steps() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(10, 1.0)).unwrap();
    for count in [10, 3, 0, 1, 5000, 7] {
        engine.update(set, &row(count, 1.0)).unwrap();
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        assert_eq!(lists.len(), count);
        assert_eq!(lists.pairs(), 2 * (count as u64).saturating_sub(1));
    }
}

#[test]
fn one_call_finds_the_lists_of_an_engine() {
    let points = row(500, 0.25);
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = nearfield::neighbors(&points, 1.0).unwrap();
    let csr = lists.to_csr().unwrap();
    assert_eq!(csr, engine.neighbors(set, set).unwrap().to_csr().unwrap());
    assert!(nearfield::neighbors(&row(0, 1.0), 1.0).unwrap().is_empty());
    let refused = nearfield::neighbors(&points, f32::NAN).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Setup(_)), "{refused}");
    let refused = nearfield::neighbors(&[[f32::NAN; 3]], 1.0).unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Positions { .. }),
        "{refused}"
    );
}

#[test]
fn a_refused_update_leaves_the_last_good_state() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(10, 1.0)).unwrap();
    engine.find_neighbors().unwrap();
    let mut bad = row(10, 1.0);
    bad[4][1] = f32::INFINITY;
    let error = engine.update(set, &bad).unwrap_err().to_string();
    assert!(
        error.contains("point set 0") && error.contains("point 4 has y = inf"),
        "{error}"
    );
    assert_eq!(
        engine.neighbors(set, set).unwrap().of(4).len(),
        2,
        "old lists are still there"
    );
    let error = engine.add_point_set(&bad).unwrap_err().to_string();
    assert!(error.contains("point set 1"), "{error}");
    assert_eq!(engine.point_sets(), 1);
    engine.update(set, &row(4, 1.0)).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(set, set).unwrap().pairs(), 6);
}

#[test]
fn lists_are_only_given_out_while_they_are_current() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let a = engine.add_point_set(&row(4, 1.0)).unwrap();
    assert!(
        engine
            .neighbors(a, a)
            .unwrap_err()
            .to_string()
            .contains("call find_neighbors")
    );
    engine.find_neighbors().unwrap();
    let b = engine.add_point_set(&row(2, 1.0)).unwrap();
    assert!(
        engine.neighbors(a, a).is_ok(),
        "adding a set does not touch the others' lists"
    );
    assert!(engine.neighbors(a, b).is_err());
    engine.set_active(b, a, false).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(a, b).unwrap().pairs(), 5);
    assert!(engine.neighbors(b, a).is_err(), "inactive");
    engine.update(b, &row(1, 1.0)).unwrap();
    assert!(engine.neighbors(a, b).is_err(), "out of date");
    assert!(engine.neighbors(a, a).is_ok(), "not affected");
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    for radius in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-20] {
        let error = Engine::builder(radius).build().unwrap_err().to_string();
        assert!(error.contains("radius"), "{error}");
    }
    for length in [0.0, -2.0, f64::NAN, f64::INFINITY] {
        let builder = Engine::builder(1.0).periodic([None, Some(length), None]);
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains("box length along y"), "{error}");
    }
    let open = Engine::builder(1.0).triclinic([Some(4.0), None, None], [1.0, 0.0, 0.0]);
    let error = open.build().unwrap_err().to_string();
    assert!(
        error.contains("tilt xy") && error.contains("y axis is open"),
        "{error}"
    );
    let line = [None, Some([1.0, 2.0, 3.0]), None];
    let slanted = Engine::builder(1.0).box_vectors(line);
    let error = slanted.device(Device::Hybrid(0)).build().unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("leans along an open axis: use Device::Gpu, Device::Auto or Device::Cpu"),
        "{text}"
    );
    let slanted = Engine::builder(1.0).box_vectors(line).build().unwrap();
    let reason = slanted.report().reason;
    assert!(reason.contains("leans along an open axis"), "{reason}");
    let parallel = [Some([2.0, 4.0, 6.0]), line[1], None];
    let error = Engine::builder(1.0).box_vectors(parallel).build();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("or in one line"), "{error}");
    let flat = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]];
    let error = Engine::builder(1.0)
        .box_vectors(flat.map(Some))
        .build()
        .unwrap_err();
    assert!(
        error.to_string().contains("nearly lie in one plane"),
        "{error}"
    );
    let error = Engine::builder(1.0)
        .device(Device::Hybrid(99))
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("hybrid:99") && (error.contains("driver") || error.contains("GPU 99")),
        "{error}"
    );
    let error = Engine::builder(1.0)
        .threads(usize::MAX)
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("worker threads: at most 4096"), "{error}");
}

#[test]
fn how_a_step_is_divided_is_checked_whatever_the_device() {
    let builder = || Engine::builder(1.0).device(Device::Cpu);
    let band = |alpha, beta| Policy::Band { alpha, beta };
    for (builder, expected) in [
        (builder().brick_edge(0), "along an edge, not 0"),
        (builder().brick_edge(9), "along an edge, not 9"),
        (builder().subregions(0), "1 to 64 subregions, not 0"),
        (builder().subregions(65), "1 to 64 subregions, not 65"),
        (builder().policy(band(0.9, 0.8)), "the band is 0.9 to 0.8"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (edge, subregions, policy) in [(1, 1, Policy::BAND), (8, 64, Policy::Fraction)] {
        let builder = builder().brick_edge(edge).subregions(subregions);
        assert!(builder.policy(policy).build().is_ok());
    }
}

#[test]
fn sets_and_points_that_do_not_exist_are_refused() {
    let mut other = Engine::builder(1.0).build().unwrap();
    other.add_point_set(&row(1, 1.0)).unwrap();
    let foreign = other.add_point_set(&row(1, 1.0)).unwrap();
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(3, 1.0)).unwrap();
    let error = engine
        .update(foreign, &row(1, 1.0))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("point set 1 is one of another engine"),
        "{error}"
    );
    assert!(engine.traverse(&Largest, set, foreign).run().is_err());
    let error = engine
        .for_each_neighbor(set, set, 3, |_, _| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no point 3: it has 3"), "{error}");
}

#[test]
fn the_radius_can_change() {
    let mut engine = Engine::builder(1.0)
        .periodic([Some(10.0), None, None])
        .build()
        .unwrap();
    let set = engine.add_point_set(&row(10, 1.0)).unwrap();
    for (radius, each) in [(1.0, 2), (2.5, 4), (0.5, 0), (10.0, 20)] {
        engine.set_radius(radius).unwrap();
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        assert!(
            (0..10).all(|i| lists.count(i) == each),
            "{radius}: {}",
            lists.count(0)
        );
    }
    assert!(engine.set_radius(-1.0).is_err());
    assert_eq!(engine.radius(), 10.0);
}

#[test]
fn tilts_and_vectors_describe_the_same_box_and_wrapping_changes_nothing() {
    let (lengths, tilts) = ([Some(5.0), Some(4.0), Some(3.0)], [2.5, -7.0, 1.0]);
    let vectors = [[5.0, 0.0, 0.0], [2.5, 4.0, 0.0], [-7.0, 1.0, 3.0]];
    let points = row(40, 0.625);
    // Whole boxes away, exactly: all numbers are multiples of 1/8.
    let moved: Vec<[f32; 3]> = (points.iter().enumerate())
        .map(|(i, p)| {
            let boxes = [i % 3, i % 5, i % 2].map(|boxes| boxes as f32 - 1.0);
            [0, 1, 2]
                .map(|axis| (0..3).fold(p[axis], |at, k| at + boxes[k] * vectors[k][axis] as f32))
        })
        .collect();
    let sorted = |builder: nearfield::Builder, points: &[[f32; 3]]| -> Vec<Vec<u32>> {
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(points).unwrap();
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        lists
            .iter()
            .map(|list| {
                let mut list = list.to_vec();
                list.sort_unstable();
                list
            })
            .collect()
    };
    let by_tilts = sorted(Engine::builder(2.0).triclinic(lengths, tilts), &points);
    assert!(by_tilts.iter().all(|list| list.len() > 10));
    let by_vectors = || Engine::builder(2.0).box_vectors(vectors.map(Some));
    assert_eq!(sorted(by_vectors(), &points), by_tilts);
    assert_eq!(sorted(by_vectors(), &moved), by_tilts);
}

#[test]
fn a_tilted_set_sorted_by_its_own_permutation_stays_sorted() {
    let vectors = [[6.0, 0.0, 0.0], [3.0, 5.0, 0.0], [-2.0, 1.0, 4.0]];
    let points = nearfield_testkit::shapes::uniform_cell(500, vectors, 0.2, 3);
    let mut engine = Engine::builder(1.0)
        .box_vectors(vectors.map(Some))
        .build()
        .unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let order = engine.z_sort(set).unwrap();
    let sorted = order.reordered(&points).unwrap();
    assert_ne!(sorted, points);
    engine.update(set, &sorted).unwrap();
    let identity: Vec<u32> = (0..500).collect();
    assert_eq!(engine.z_sort(set).unwrap().order(), identity);
}

#[test]
fn a_set_that_leaves_the_box_moves_all_sets_to_a_wider_lattice() {
    let mut engine = Engine::builder(1.0)
        .periodic([Some(4.0), None, None])
        .build()
        .unwrap();
    let a = engine.add_point_set(&[[0.1f32, 0.0, 0.0]]).unwrap();
    let b = engine.add_point_set(&[[3.9f32, 0.0, 0.0]]).unwrap();
    engine.update(b, &[[3.9f32 + 4.0e4, 0.0, 0.0]]).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(a, b).unwrap().of(0), &[0]);
    assert_eq!(
        engine.query(&[[0.2f32 - 8.0, 0.0, 0.0]], a).unwrap().of(0),
        &[0]
    );
}

#[test]
fn lists_go_out_as_compressed_sparse_rows() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(3, 1.0)).unwrap();
    engine.find_neighbors().unwrap();
    let csr = engine.neighbors(set, set).unwrap().to_csr().unwrap();
    let expected = Csr {
        offsets: vec![0, 1, 3, 4],
        indices: vec![1, 0, 2, 1],
    };
    assert_eq!(csr, expected);
    assert_eq!(csr.row(1), &[0, 2]);
    assert_eq!(csr.row(9), &[] as &[u32]);
}

/// The largest label among the neighbours.
struct Largest;

impl PairKernel for Largest {
    type Target = ();
    type Source = f32;
    type Output = f32;
    const REDUCE: Reduce = Reduce::Max;

    #[inline(always)]
    fn pair(&self, _: Pair, _: (), label: f32) -> f32 {
        label
    }
}

#[test]
fn a_traversal_can_take_the_largest_contribution() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [1.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
        .unwrap();
    let labels = [-5.0f32, -7.0, -1.0];
    let fields = &labels;
    let traversal = || engine.traverse(&Largest, set, set).sources(fields);
    assert_eq!(traversal().run().unwrap(), [-7.0, -5.0, f32::NEG_INFINITY]);
    let mut values = vec![-6.0f32; 3];
    traversal().add_into(&mut values).unwrap();
    assert_eq!(values, [-6.0, -5.0, -6.0]);
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(3, 1.0)).unwrap();
    let short = [1.0f32; 2];
    let error = engine
        .traverse(&Largest, set, set)
        .sources(&short)
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("source field 0 holds 2 points, but the point set has 3"),
        "{error}"
    );
    let vectors = [[1.0f32; 3]; 3];
    let error = engine
        .traverse(&Largest, set, set)
        .sources(&[Field::from(&vectors)])
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("3 channels together, but the kernel reads 1"),
        "{error}"
    );
    let mut short_output = [0.0f32; 2];
    let labels = [1.0f32; 3];
    let error = engine
        .traverse(&Largest, set, set)
        .sources(&labels)
        .run_into(&mut short_output)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("output holds 2 values, but there are 3 targets"),
        "{error}"
    );
}

#[test]
fn sums_do_not_depend_on_threads_or_vector_width() {
    let points = nearfield_testkit::cloud::Cloud::Clusters.points(20_000, 3);
    let masses: Vec<f32> = (0..points.len())
        .map(|i| 1.0 + (i % 97) as f32 * 0.013)
        .collect();
    let kernel = nearfield::kernels::SphDensity {
        kernel: nearfield::kernels::WendlandC2::with_support(1.0),
    };
    let sums = |threads, simd| {
        let mut engine = Engine::builder(1.0)
            .threads(threads)
            .simd(simd)
            .build()
            .unwrap();
        let set = engine.add_point_set(&points).unwrap();
        let fields = &masses;
        let sums = engine
            .traverse(&kernel, set, set)
            .sources(fields)
            .run()
            .unwrap();
        sums.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let reference = sums(1, SimdLevel::Scalar);
    for threads in [1, 2, 5] {
        for &simd in SimdLevel::available() {
            assert!(
                sums(threads, simd) == reference,
                "{threads} threads, {}",
                simd.name()
            );
        }
    }
}

#[test]
fn z_sorting_the_users_arrays_changes_the_numbering_and_nothing_else() {
    let points = nearfield_testkit::cloud::Cloud::Uniform.points(5_000, 11);
    let mut engine = Engine::builder(1.5).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let before: Vec<Vec<u32>> = engine
        .neighbors(set, set)
        .unwrap()
        .iter()
        .map(<[u32]>::to_vec)
        .collect();
    let order = engine.z_sort(set).unwrap();
    engine
        .update(set, &order.reordered(&points).unwrap())
        .unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    for (place, &old) in order.order().iter().enumerate() {
        let mut now: Vec<u32> = lists
            .of(place)
            .iter()
            .map(|&j| order.order()[j as usize])
            .collect();
        let mut then = before[old as usize].clone();
        now.sort_unstable();
        then.sort_unstable();
        assert_eq!(now, then);
    }
    assert!(
        engine.z_sort(set).unwrap().order().is_sorted(),
        "sorting twice changes nothing"
    );
}

#[test]
fn the_report_says_what_ran_and_what_is_held() {
    let mut engine = Engine::builder(1.0).threads(2).build().unwrap();
    let mut points = row(1000, 0.5);
    points.push([1e7, 1e7, 1e7]);
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let report = engine.report();
    assert_eq!(
        (report.requested, report.device),
        (Device::Auto, Device::Cpu)
    );
    // Whether or not there is a GPU, the first step does not wait for it.
    assert!(
        report.reason.contains("the CPU backend"),
        "{}",
        report.reason
    );
    assert_eq!(report.threads, 2);
    assert_eq!(report.sets.len(), 1);
    assert_eq!(report.sets[0].points, 1001);
    assert_eq!(report.sets[0].table, TableKind::Hashed);
    assert_eq!(report.pairs, engine.neighbors(set, set).unwrap().pairs());
    assert!(report.list_bytes >= 4 * report.pairs as usize);
    assert!(report.times.search.as_nanos() > 0 && report.times.build.as_nanos() > 0);
}

#[test]
fn an_engine_can_be_used_inside_the_callers_own_thread_pool() {
    use rayon::prelude::*;
    let pairs: Vec<u64> = (0..8)
        .into_par_iter()
        .map(|i| {
            let mut engine = Engine::builder(1.0).threads(2).build().unwrap();
            let set = engine.add_point_set(&row(2000 + i, 1.0)).unwrap();
            engine.find_neighbors().unwrap();
            engine.neighbors(set, set).unwrap().pairs()
        })
        .collect();
    assert_eq!(pairs, (0..8).map(|i| 2 * (1999 + i)).collect::<Vec<_>>());
}

#[test]
fn queries_run_side_by_side_and_change_nothing() {
    let m = 12;
    let points: Vec<[f32; 3]> = (0..m * m * m)
        .map(|i| [i % m, i / m % m, i / m / m].map(|k| k as f32))
        .collect();
    let mut engine = Engine::builder(1.5)
        .periodic([Some(m as f64); 3])
        .list_order(ListOrder::Ascending)
        .threads(2)
        .build()
        .unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap().to_csr().unwrap();
    // Inside the box, beside it, and thousands of boxes away, which takes other cells.
    let probes = |k: usize| {
        let far = [0, 1, -3, 4096, -20_000][k % 5] * m as i64;
        points[40 * k..40 * k + 30]
            .iter()
            .map(|[x, y, z]| [x + far as f32, *y, z + 0.25])
            .collect::<Vec<_>>()
    };
    let (engine, points, probes) = (&engine, &points, &probes);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..40 {
                    let k = (thread + round) % 40;
                    let found = engine.query(&probes(k), set).unwrap();
                    for (at, list) in probes(k).iter().zip(found.iter()) {
                        // In whole numbers and quarters everything is exact.
                        let apart = |j: &u32| -> f32 {
                            let other = points[*j as usize];
                            let of = |axis: usize| {
                                let d = (at[axis] - other[axis]).rem_euclid(m as f32);
                                d.min(m as f32 - d)
                            };
                            (0..3).map(|axis| of(axis) * of(axis)).sum()
                        };
                        let all = 0..points.len() as u32;
                        let near: Vec<u32> = all.filter(|j| apart(j) <= 2.25).collect();
                        assert_eq!(list, near);
                    }
                }
            });
        }
    });
    let after = engine.neighbors(set, set).unwrap().to_csr().unwrap();
    assert_eq!(after, lists);
}

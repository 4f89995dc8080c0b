//! What comes back is what the engine finds.

use crate::misuse::{Made, engine, last_error, no_lists, options};
use nearfield::{
    kernels::{SphDensity, WendlandC2},
    prelude::*,
};
use nearfield_c::*;
use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

/// The neighbours of all points by a plain engine, sorted.
fn expected(points: &[[f32; 3]], radius: f32) -> Vec<Vec<u32>> {
    let mut engine = Engine::builder(radius)
        .list_order(ListOrder::Ascending)
        .build()
        .unwrap();
    let set = engine.add_point_set(points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    lists.iter().map(<[u32]>::to_vec).collect()
}

/// The lists of a view, sorted.
pub(crate) fn read(lists: &NfLists) -> Vec<Vec<u32>> {
    // SAFETY: the view was filled by the library, and the engine was not changed since.
    let of = |i| unsafe {
        let first = lists.indices.add(*lists.start.add(i) as usize);
        let mut list = std::slice::from_raw_parts(first, *lists.count.add(i) as usize).to_vec();
        list.sort_unstable();
        list
    };
    (0..lists.points).map(of).collect()
}

#[test]
fn lists_views_csr_and_counts_agree_with_the_engine() {
    let made = Made::new();
    let wanted = expected(&made.points, 1.5);
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    let mut lists = no_lists();
    let pairs: usize = wanted.iter().map(Vec::len).sum();
    // SAFETY: all places and arrays are there and as long as is said.
    unsafe {
        assert_eq!(nf_neighbors(made.engine, 0, 0, &mut lists), NfStatus::Ok);
        assert_eq!((lists.points, lists.pairs), (1000, pairs as u64));
        assert_eq!(read(&lists), wanted);
        let (mut offsets, mut indices) = (vec![0; 1001], vec![0; pairs]);
        let csr = |offsets: &mut Vec<u64>, indices: &mut Vec<u32>, len| {
            let (o, i) = (offsets.as_mut_ptr(), indices.as_mut_ptr());
            nf_neighbors_csr(made.engine, 0, 0, o, 1001, i, len)
        };
        assert_eq!(
            csr(&mut offsets, &mut indices, pairs - 1),
            NfStatus::BadArgument
        );
        assert_eq!(csr(&mut offsets, &mut indices, pairs), NfStatus::Ok);
        for (i, list) in wanted.iter().enumerate() {
            let mut row = indices[offsets[i] as usize..offsets[i + 1] as usize].to_vec();
            row.sort_unstable();
            assert_eq!(row, *list);
        }
        let mut counts = vec![0; 1000];
        let status = nf_count_neighbors(made.engine, 0, 0, counts.as_mut_ptr(), 1000);
        assert_eq!(status, NfStatus::Ok);
        assert!(
            counts
                .iter()
                .zip(&wanted)
                .all(|(count, list)| *count as usize == list.len())
        );
    }
}

#[test]
fn strided_doubles_in_a_periodic_box_are_read_where_they_are() {
    #[repr(C)]
    struct Particle {
        mass: f64,
        position: [f64; 3],
        tag: u32,
    }
    let particles: Vec<Particle> = (0..64)
        .map(|i| Particle {
            mass: f64::NAN,
            position: [i % 4, i / 4 % 4, i / 16].map(f64::from),
            tag: u32::MAX,
        })
        .collect();
    let mut options = options(1.0);
    options.precision = NfPrecision::F64 as u32;
    options.periodic = [1; 3];
    for axis in 0..3 {
        options.box_vectors[axis][axis] = 4.0;
    }
    let engine = engine(&options);
    let (mut set, mut lists) = (9, no_lists());
    assert!(
        particles
            .iter()
            .all(|of| of.mass.is_nan() && of.tag == u32::MAX)
    );
    // SAFETY: the particles are there, and so are all places.
    unsafe {
        let first = (&raw const particles[0].position).cast();
        let stride = size_of::<Particle>();
        assert_eq!(
            nf_add_points_f64(engine, first, 64, stride, &mut set),
            NfStatus::Ok
        );
        assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
        assert_eq!(nf_neighbors(engine, set, set, &mut lists), NfStatus::Ok);
    }
    assert!(
        read(&lists).iter().all(|list| list.len() == 6),
        "six faces each"
    );
    nf_engine_free(engine);

    // The same, strictly within: none.
    options.strict = 1;
    let engine = crate::misuse::engine(&options);
    // SAFETY: as above.
    unsafe {
        let first = (&raw const particles[0].position).cast();
        let stride = size_of::<Particle>();
        assert_eq!(
            nf_add_points_f64(engine, first, 64, stride, &mut set),
            NfStatus::Ok
        );
        assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
        assert_eq!(nf_neighbors(engine, set, set, &mut lists), NfStatus::Ok);
    }
    assert_eq!(lists.pairs, 0);
    nf_engine_free(engine);
}

#[test]
fn vectors_of_a_slanted_box_are_taken_as_they_are() {
    let points: Vec<[f64; 3]> = (0..64)
        .map(|i| [i % 4, i / 4 % 4, i / 16].map(f64::from))
        .collect();
    let mut options = options(1.0);
    options.precision = NfPrecision::F64 as u32;
    options.periodic = [1; 3];
    // Across y the lattice goes on half a spacing aside, across z where it would without a slant.
    options.box_vectors = [[4.0, 0.0, 0.0], [0.5, 4.0, 0.0], [1.0, 0.0, 4.0]];
    let engine = engine(&options);
    let (mut set, mut lists) = (9, no_lists());
    // SAFETY: the points are there, and so are all places.
    unsafe {
        let status = nf_add_points_f64(engine, points.as_ptr().cast(), 64, 24, &mut set);
        assert_eq!(status, NfStatus::Ok);
        assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
        assert_eq!(nf_neighbors(engine, set, set, &mut lists), NfStatus::Ok);
    }
    for (point, list) in points.iter().zip(read(&lists)) {
        let faces = if [0.0, 3.0].contains(&point[1]) { 5 } else { 6 };
        assert_eq!(list.len(), faces, "{point:?}");
    }
    nf_engine_free(engine);
}

#[test]
fn a_query_stays_when_the_engine_goes() {
    let made = Made::new();
    let at = [[0.5f32, 0.5, 0.5], [100.0, 0.0, 0.0]];
    let (mut query, mut lists) = (ptr::null_mut(), no_lists());
    // SAFETY: the positions and places are there.
    unsafe {
        let status = nf_query_f32(made.engine, at.as_ptr().cast(), 2, 12, 0, &mut query);
        assert_eq!(status, NfStatus::Ok);
        drop(made);
        assert_eq!(nf_query_lists(query, &mut lists), NfStatus::Ok);
        assert_eq!(
            read(&lists),
            [vec![0, 1, 10, 11, 100, 101, 110, 111], vec![]]
        );
        assert_eq!(nf_query_free(query), NfStatus::Ok);
        assert_eq!(nf_query_lists(query, &mut lists), NfStatus::BadHandle);
    }
}

#[test]
fn some_points_and_chunks_have_the_lists_of_the_engine() {
    let made = Made::new();
    let wanted = expected(&made.points, 1.5);
    let (mut query, mut lists) = (ptr::null_mut(), no_lists());
    let some = [999u32, 0, 999];
    let ask = |some: &[u32], query: &mut _| {
        // SAFETY: the indices and the place are there.
        unsafe { nf_query_points(made.engine, 0, 0, some.as_ptr(), some.len(), query) }
    };
    assert_eq!(ask(&[1000], &mut query), NfStatus::UnknownPoint);
    assert_eq!(ask(&some, &mut query), NfStatus::Ok);
    // SAFETY: a place for the structure.
    unsafe { assert_eq!(nf_query_lists(query, &mut lists), NfStatus::Ok) };
    let of_some = some.map(|point| wanted[point as usize].clone());
    assert!(read(&lists) == of_some && lists.pairs > 10);
    assert_eq!(nf_query_free(query), NfStatus::Ok);

    let (mut pairs, mut chunks) = (0, ptr::null_mut());
    // SAFETY: all zeros are null pointers and no targets.
    let mut chunk: NfChunk = unsafe { std::mem::zeroed() };
    let mut seen = 0;
    // SAFETY: all places are there; chunks are read before the next call.
    unsafe {
        let begun = |limit, pairs, chunks| nf_chunks_new(made.engine, 0, 0, limit, pairs, chunks);
        let null = ptr::null_mut();
        assert_eq!(begun(20, null, &mut chunks), NfStatus::MemoryLimit);
        assert_eq!(begun(9_000, &mut pairs, &mut chunks), NfStatus::Ok);
        let mut next = || {
            let status = nf_chunks_next(made.engine, chunks, &mut chunk);
            assert_eq!(status, NfStatus::Ok);
            chunk
        };
        loop {
            let chunk = next();
            if chunk.target_count == 0 {
                break;
            }
            assert!(8 * (chunk.target_count as u64 + 1) + 4 * chunk.pairs <= 9_000);
            let offsets = std::slice::from_raw_parts(chunk.offsets, chunk.target_count + 1);
            for k in 0..chunk.target_count {
                let len = (offsets[k + 1] - offsets[k]) as usize;
                let first = chunk.indices.add(offsets[k] as usize);
                let mut list = std::slice::from_raw_parts(first, len).to_vec();
                list.sort_unstable();
                assert_eq!(list, wanted[*chunk.targets.add(k) as usize]);
            }
            seen += chunk.pairs;
        }
        assert!(seen == pairs && next().target_count == 0);
        let at = made.points.as_ptr().cast();
        assert_eq!(nf_update_f32(made.engine, 0, at, 1000, 12), NfStatus::Ok);
        let status = nf_chunks_next(made.engine, chunks, &mut chunk);
        assert_eq!(status, NfStatus::OutOfDate);
    }
    assert_eq!(nf_chunks_free(chunks), NfStatus::Ok);
}

#[test]
fn warming_up_changes_no_list() {
    let made = Made::new();
    let (mut lists, wanted) = (no_lists(), expected(&made.points, 1.5));
    assert_eq!(nf_warm_up(made.engine), NfStatus::Ok, "before any job");
    assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
    assert_eq!(nf_warm_up(made.engine), NfStatus::Ok);
    // SAFETY: the place for the lists is there.
    let status = unsafe { nf_neighbors(made.engine, 0, 0, &mut lists) };
    assert_eq!(status, NfStatus::Ok);
    assert_eq!(read(&lists), wanted);
    assert_eq!(nf_warm_up(std::ptr::null_mut()), NfStatus::NullPointer);
}

#[test]
fn a_sorted_set_has_the_same_lists_under_its_new_numbers() {
    let made = Made::new();
    let mut order = vec![0u32; 1000];
    let (mut lists, wanted) = (no_lists(), expected(&made.points, 1.5));
    // SAFETY: all arrays are there.
    unsafe {
        let status = nf_z_sort(made.engine, 0, order.as_mut_ptr(), 1000);
        assert_eq!(status, NfStatus::Ok);
        let sorted: Vec<_> = order.iter().map(|&old| made.points[old as usize]).collect();
        let status = nf_update_f32(made.engine, 0, sorted.as_ptr().cast(), 1000, 12);
        assert_eq!(status, NfStatus::Ok);
        assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
        assert_eq!(nf_neighbors(made.engine, 0, 0, &mut lists), NfStatus::Ok);
    }
    for (new, list) in read(&lists).iter().enumerate() {
        let mut old: Vec<u32> = list.iter().map(|&j| order[j as usize]).collect();
        old.sort_unstable();
        assert_eq!(old, wanted[order[new] as usize]);
    }
}

#[test]
fn points_and_sets_that_are_removed_leave_the_lists_of_the_rest() {
    let made = Made::new();
    let shifted: Vec<_> = made.points.iter().map(|p| p.map(|x| x + 0.25)).collect();
    let keep: Vec<u8> = (0..1000).map(|i| u8::from(i % 3 != 0)).collect();
    let kept = made
        .points
        .iter()
        .zip(&keep)
        .filter(|(_, keep)| **keep != 0);
    let kept: Vec<_> = kept.map(|(point, _)| *point).collect();
    let (engine, mut lists) = (made.engine, no_lists());
    let (mut set, mut points, mut sets) = (9, 0, 0);
    // SAFETY: all arrays and places are there.
    unsafe {
        let status = nf_add_points_f32(engine, shifted.as_ptr().cast(), 1000, 12, &mut set);
        assert_eq!((status, set), (NfStatus::Ok, 1));
        assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
        for (keep, len, refused) in [
            (keep.as_ptr(), 999, NfStatus::BadArgument),
            (ptr::null(), 1000, NfStatus::NullPointer),
        ] {
            assert_eq!(nf_retain_points(engine, 0, keep, len), refused);
        }
        assert_eq!(nf_neighbors(engine, 0, 0, &mut lists), NfStatus::Ok);
        assert_eq!(read(&lists), expected(&made.points, 1.5));

        let status = nf_retain_points(engine, 0, keep.as_ptr(), 1000);
        assert_eq!(status, NfStatus::Ok);
        assert_eq!(nf_neighbors(engine, 0, 0, &mut lists), NfStatus::NoLists);
        assert_eq!(nf_points(engine, 0, &mut points), NfStatus::Ok);
        assert_eq!(points, kept.len());
        assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);

        assert_eq!(nf_remove_set(engine, 1), NfStatus::Ok);
        assert_eq!(nf_remove_set(engine, 1), NfStatus::UnknownPointSet);
        assert!(
            last_error().contains("point set 1 has been removed"),
            "{}",
            last_error()
        );
        let status = nf_neighbors(engine, 0, 1, &mut lists);
        assert_eq!(status, NfStatus::UnknownPointSet);
        assert_eq!(nf_point_sets(engine, &mut sets), NfStatus::Ok);
        assert_eq!(sets, 1);
        // Those of the other set stay.
        assert_eq!(nf_neighbors(engine, 0, 0, &mut lists), NfStatus::Ok);
        assert_eq!(read(&lists), expected(&kept, 1.5));
        let status = nf_add_points_f32(engine, shifted.as_ptr().cast(), 1000, 12, &mut set);
        assert!(
            status == NfStatus::Ok && set > 1,
            "a number that was never given"
        );
    }
}

/// Density of the points of an engine, by a kernel of this support in two or three dimensions.
fn density_of(
    made: &Made,
    support: f32,
    dimensions: u32,
    mass: &[f32],
    density: &mut [f32],
    deliver: u32,
) -> NfStatus {
    // SAFETY: the arrays are as long as is said.
    unsafe {
        nf_sph_density(
            made.engine,
            0,
            0,
            support,
            dimensions,
            mass.as_ptr(),
            mass.len(),
            0,
            density.as_mut_ptr(),
            density.len(),
            deliver,
        )
    }
}

#[test]
fn densities_are_those_of_the_named_kernel_and_can_be_added_up() {
    let made = Made::new();
    let mass: Vec<f32> = (0..1000).map(|i| 1.0 + i as f32).collect();
    let kernel = SphDensity {
        kernel: WendlandC2::with_support(1.5),
    };
    let mut plain = Engine::builder(1.5).build().unwrap();
    let set = plain.add_point_set(&made.points).unwrap();
    let fields = &mass;
    let wanted = plain
        .traverse(&kernel, set, set)
        .sources(fields)
        .run()
        .unwrap();
    let mut density = vec![5.0; 1000];
    let mut run = |support, deliver| density_of(&made, support, 3, &mass, &mut density, deliver);
    assert_eq!(run(-1.0, 0), NfStatus::BadArgument);
    assert_eq!(run(1.5, 7), NfStatus::BadArgument);
    assert_eq!(run(1.5, 0), NfStatus::Ok);
    assert_eq!(run(1.5, 1), NfStatus::Ok);
    let twice = wanted.iter().map(|sum| sum + sum);
    assert!(
        density
            .iter()
            .zip(twice)
            .all(|(found, twice)| (found - twice).abs() <= 1e-5 * twice)
    );
}

#[test]
fn a_support_beyond_the_radius_is_refused_and_a_plane_has_its_own_kernel() {
    let made = Made::new();
    let mass: Vec<f32> = (0..1000).map(|i| 1.0 + i as f32).collect();
    let call = |support, dimensions| {
        let mut density = vec![5.0f32; 1000];
        let status = density_of(&made, support, dimensions, &mass, &mut density, 0);
        (status, density)
    };
    for dimensions in [2, 3] {
        let (status, density) = call(1.75, dimensions);
        assert_eq!((status, density[0]), (NfStatus::BadArgument, 5.0));
        let text = last_error();
        assert!(
            text.contains("1.75") && text.contains("radius 1.5"),
            "{text}"
        );
    }
    assert_eq!(call(1.5, 4).0, NfStatus::BadArgument);
    assert!(last_error().contains("dimensions is 4"), "{}", last_error());
    let (three, two) = (call(1.5, 3), call(1.5, 2));
    assert_eq!((three.0, two.0), (NfStatus::Ok, NfStatus::Ok));
    let h = 0.75f32;
    let ratio = 7.0 / 4.0 / (h * h) / (21.0 / 16.0 / (h * h * h));
    for (two, three) in two.1.iter().zip(&three.1) {
        assert!(
            (two - ratio * three).abs() <= 1e-5 * two.abs(),
            "{two} {three}"
        );
    }
}

#[test]
fn forces_of_equal_neighbours_cancel_inside_a_lattice() {
    let made = Made::new();
    let (velocity, ones) = (vec![0.0f32; 3000], vec![1.0f32; 1000]);
    let fields = NfSphPoints {
        points: 1000,
        velocity: velocity.as_ptr(),
        density: ones.as_ptr(),
        pressure: ones.as_ptr(),
        mass: ones.as_ptr(),
        velocity_stride: 0,
        density_stride: 0,
        pressure_stride: 0,
        mass_stride: 0,
    };
    let parameters = NfSphForce {
        support: 1.5,
        alpha_c: 0.1,
        dimensions: 3,
    };
    let mut acceleration = vec![0.0f32; 3000];
    let results = acceleration.as_mut_ptr();
    // SAFETY: the fields hold as many points as they say.
    let status = unsafe {
        nf_sph_force(
            made.engine,
            0,
            0,
            &parameters,
            &fields,
            &fields,
            results,
            1000,
            0,
        )
    };
    assert_eq!(status, NfStatus::Ok);
    let of = |point: usize| &acceleration[3 * point..3 * point + 3];
    assert!(of(555).iter().all(|a| a.abs() < 1e-4), "{:?}", of(555));
    assert!(
        of(0).iter().all(|&a| a < -0.1),
        "pushed out of the corner: {:?}",
        of(0)
    );
}

#[test]
fn fields_inside_structures_give_what_arrays_give() {
    #[repr(C, packed)]
    #[derive(Clone, Copy)]
    struct Particle {
        kind: u16,
        mass: f32,
        velocity: [f32; 3],
        density: f32,
        pressure: f32,
        id: u16,
    }
    let made = Made::new();
    let number = |i: usize| 1.0 + (i * 37 % 101) as f32 / 64.0;
    let particles: Vec<Particle> = (0..1000)
        .map(|i| Particle {
            kind: u16::MAX,
            mass: number(i),
            velocity: [number(i + 1), number(i + 2), number(i + 3)],
            density: number(i + 4),
            pressure: number(i + 5),
            id: u16::MAX,
        })
        .collect();
    let mass: Vec<f32> = particles.iter().map(|one| one.mass).collect();
    let velocity: Vec<[f32; 3]> = particles.iter().map(|one| one.velocity).collect();
    let density: Vec<f32> = particles.iter().map(|one| one.density).collect();
    let pressure: Vec<f32> = particles.iter().map(|one| one.pressure).collect();
    let (first, stride) = (particles.as_ptr(), size_of::<Particle>());
    // SAFETY: places inside of the first structure.
    let inside = unsafe {
        NfSphPoints {
            points: 1000,
            velocity: (&raw const (*first).velocity).cast(),
            density: &raw const (*first).density,
            pressure: &raw const (*first).pressure,
            mass: &raw const (*first).mass,
            velocity_stride: stride,
            density_stride: stride,
            pressure_stride: stride,
            mass_stride: stride,
        }
    };
    let arrays = NfSphPoints {
        velocity: velocity.as_ptr().cast(),
        density: density.as_ptr(),
        pressure: pressure.as_ptr(),
        mass: mass.as_ptr(),
        velocity_stride: 12,
        density_stride: 0,
        pressure_stride: 4,
        mass_stride: 0,
        ..inside
    };
    let parameters = NfSphForce {
        support: 1.5,
        alpha_c: 0.1,
        dimensions: 3,
    };
    let run = |targets: &NfSphPoints, sources: &NfSphPoints| {
        let (mut forces, mut densities) = (vec![0.0f32; 3000], vec![0.0f32; 1000]);
        let (out, engine) = (forces.as_mut_ptr(), made.engine);
        // SAFETY: the fields hold as many points as they say.
        let status =
            unsafe { nf_sph_force(engine, 0, 0, &parameters, targets, sources, out, 1000, 0) };
        assert_eq!(status, NfStatus::Ok, "{}", last_error());
        let (out, mass, stride) = (densities.as_mut_ptr(), sources.mass, sources.mass_stride);
        // SAFETY: as above.
        let status =
            unsafe { nf_sph_density(engine, 0, 0, 1.5, 3, mass, 1000, stride, out, 1000, 0) };
        assert_eq!(status, NfStatus::Ok, "{}", last_error());
        (forces, densities)
    };
    let expected = run(&arrays, &arrays);
    assert!(expected.0.iter().any(|force| *force != 0.0));
    assert_eq!(run(&inside, &inside), expected);
    assert_eq!(run(&inside, &arrays), expected);
}

/// Counts neighbours and checks the geometry of every pair.
struct Counted {
    points: Vec<[f32; 3]>,
    counts: Vec<AtomicU32>,
    stop_at: u32,
}

unsafe extern "C" fn count(user: *mut c_void, batch: *const NfBatch) -> i32 {
    // SAFETY: the test passes what it counts, the library a batch.
    let (counted, batch) = unsafe { (&*user.cast::<Counted>(), &*batch) };
    for k in 0..batch.target_count {
        // SAFETY: a batch has `target_count` targets, and one offset more.
        let (target, begin, end) = unsafe {
            let offset = |k| *batch.offsets.add(k) as usize;
            (*batch.targets.add(k), offset(k), offset(k + 1))
        };
        if target == counted.stop_at {
            return 1;
        }
        counted.counts[target as usize].fetch_add((end - begin) as u32, Ordering::Relaxed);
        for pair in begin..end {
            // SAFETY: offsets are those of the pairs of the batch.
            let (source, dx, d2) = unsafe {
                (
                    *batch.sources.add(pair),
                    *batch.dx.add(pair),
                    *batch.d2.add(pair),
                )
            };
            let apart = counted.points[source as usize][0] - counted.points[target as usize][0];
            if dx != apart || d2 > 2.25 || end > batch.pairs {
                return 2;
            }
        }
    }
    0
}

#[test]
fn batches_hold_every_target_once_with_all_its_neighbours() {
    let made = Made::new();
    let mut counted = Counted {
        points: made.points.clone(),
        counts: (0..1000).map(|_| AtomicU32::new(0)).collect(),
        stop_at: u32::MAX,
    };
    let run = |counted: &Counted| {
        let user = ptr::from_ref(counted).cast_mut().cast();
        // SAFETY: the function may be called from any thread with this.
        unsafe { nf_for_each_batch(made.engine, 0, 0, Some(count), user) }
    };
    assert_eq!(run(&counted), NfStatus::Ok);
    let wanted = expected(&made.points, 1.5);
    let counts = counted
        .counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed) as usize);
    assert!(counts.eq(wanted.iter().map(Vec::len)));
    counted.stop_at = 500;
    assert_eq!(run(&counted), NfStatus::Stopped);
}

#[test]
fn a_recording_ends_with_a_file_and_starts_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let text = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the text ends with a NUL.
    unsafe {
        assert_eq!(nf_trace_start(ptr::null()), NfStatus::NullPointer);
        assert_eq!(nf_trace_start(text.as_ptr()), NfStatus::Ok);
        let made = Made::new();
        assert_eq!(nf_find_neighbors(made.engine), NfStatus::Ok);
        assert_eq!(nf_trace_finish(), NfStatus::Ok);
        assert_eq!(nf_trace_start(text.as_ptr()), NfStatus::Trace);
    }
    let trace = std::fs::read_to_string(&path).unwrap();
    assert!(trace.contains("engine.find_neighbors"), "{trace}");
}

#[test]
fn points_search_within_radii_of_their_own_by_each_rule() {
    let points = [[0.0f32; 3], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0]];
    let radii = [1.0f32, 0.5, 2.0];
    for (rule, wanted) in [
        (NfRadiusRule::Gather, [vec![1], vec![], vec![1]]),
        (NfRadiusRule::Scatter, [vec![], vec![0, 2], vec![]]),
        (NfRadiusRule::Symmetric, [vec![1], vec![0, 2], vec![1]]),
    ] {
        let mut settings = options(2.0);
        settings.radii = rule as u32;
        let engine = engine(&settings);
        let (mut set, mut lists, mut query) = (0, no_lists(), ptr::null_mut());
        // SAFETY: all places and arrays are there and as long as is said.
        unsafe {
            let data = points.as_ptr().cast();
            assert_eq!(
                nf_add_points_f32(engine, data, 3, 12, &mut set),
                NfStatus::Ok
            );
            assert_eq!(nf_find_neighbors(engine), NfStatus::BadArgument);
            assert!(last_error().contains("has no radii"), "{}", last_error());
            let set_radii = |radii: &[f32]| nf_set_radii(engine, 0, radii.as_ptr(), radii.len());
            assert_eq!(set_radii(&[1.0; 2]), NfStatus::BadArgument);
            assert_eq!(set_radii(&[1.0, 9.0, 1.0]), NfStatus::BadArgument);
            assert!(
                last_error().contains("point 1 has the radius 9"),
                "{}",
                last_error()
            );
            assert_eq!(
                nf_set_radii(engine, 0, ptr::null(), 3),
                NfStatus::NullPointer
            );
            assert_eq!(set_radii(&radii), NfStatus::Ok);
            assert_eq!(nf_find_neighbors(engine), NfStatus::Ok);
            assert_eq!(nf_neighbors(engine, 0, 0, &mut lists), NfStatus::Ok);
            assert_eq!(read(&lists), wanted, "{rule:?}");
            // At (2, 0, 0), a radius of 1 reaches the last two, which reach 0.5 and 2.
            let (at, radius) = ([2.0f32, 0.0, 0.0], 1.0f32);
            let plain = nf_query_f32(engine, at.as_ptr(), 1, 12, 0, &mut query);
            let two = nf_query_radii_f32(engine, at.as_ptr(), 1, 12, &radius, 2, 0, &mut query);
            assert_eq!(two, NfStatus::BadArgument);
            assert!(last_error().contains("radii"), "{}", last_error());
            let own = nf_query_radii_f32(engine, at.as_ptr(), 1, 12, &radius, 1, 0, &mut query);
            let (found, refused, near) = match rule {
                NfRadiusRule::Scatter => (plain, own, vec![2]),
                _ => (own, plain, vec![1, 2]),
            };
            assert_eq!((found, refused), (NfStatus::Ok, NfStatus::BadArgument));
            assert_eq!(nf_query_lists(query, &mut lists), NfStatus::Ok);
            assert_eq!(read(&lists), [near], "{rule:?}");
            assert_eq!(nf_query_free(query), NfStatus::Ok);
            assert_eq!(nf_engine_free(engine), NfStatus::Ok);
        }
    }
    let mut settings = options(2.0);
    settings.radii = 4;
    let mut made = ptr::null_mut();
    // SAFETY: the options are initialised and the place is there.
    let status = unsafe { nf_engine_new(&settings, &mut made) };
    assert_eq!(status, NfStatus::BadArgument);
}

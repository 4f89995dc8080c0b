//! The kernels of systems.cu on the CPU, thread by thread: their pairs are the contract's, bit for
//! bit, in both precisions.
//!
//! A kernel that stages in shared memory and votes in warps does not run one thread after the
//! other, as the walks do. kernels/host/block.hpp makes every thread of a block a coroutine that
//! runs until it waits for others. So what is tested is the text as it is compiled for the device,
//! barriers and votes included, but for what only real concurrency shows.
//!
//! As in `on_host`, the tests need a compiler of the host and are skipped without one.

use super::on_host::compiled;
use crate::constants::{NONE, SYSTEM_BOX};
use crate::launch::{PairOutput, SystemArrays, SystemsStatus, sources::SYSTEMS, units};
use libloading::Library;
use nearfield_testkit::{
    oracle::{ListKind, Real},
    random::Random,
    systems::{Batch, Pair},
};
use std::sync::{Mutex, OnceLock, PoisonError};

type RunSystems = unsafe extern "C" fn(*const SystemArrays, *const PairOutput, i32, i32);

/// The compiled kernels; None where a test is to be skipped. A block runs at a time.
fn kernels() -> Option<&'static Mutex<Library>> {
    static COMPILED: OnceLock<Option<Mutex<Library>>> = OnceLock::new();
    let compile = || compiled("systems.cpp", SYSTEMS.headers, &[]).map(Mutex::new);
    COMPILED.get_or_init(compile).as_ref()
}

/// Searches the first `systems` of a batch, which are to have `all` pairs; `Err` has the two
/// faults.
fn run<T: Real>(
    batch: &Batch<T>,
    [half, strict]: [bool; 2],
    systems: usize,
    all: usize,
) -> Option<Result<Vec<Pair<T>>, [u32; 2]>> {
    let library = kernels()?;
    let points = batch.positions.len();
    let mut boxes = vec![0u64; SYSTEM_BOX as usize / 8 * systems];
    let blocks = units(points, systems);
    let (mut units, mut sums) = (vec![7u32; blocks], vec![7u64; blocks]);
    let mut status = SystemsStatus::default();
    let at = &raw mut status;
    let mut starts = vec![u64::MAX; points + 1];
    let many = |len: usize| u32::from(len != 1);
    let arrays = SystemArrays {
        positions: batch.positions.as_ptr() as u64,
        offsets: batch.offsets.as_ptr() as u64,
        radii: batch.radii.as_ptr() as u64,
        cells: batch.cells.as_ptr() as u64,
        periodic: batch.periodic.as_ptr() as u64,
        boxes: boxes.as_mut_ptr() as u64,
        units: units.as_mut_ptr() as u64,
        sums: sums.as_mut_ptr() as u64,
        status: at as u64,
        count: systems as u32,
        points: points as u32,
        many: many(batch.radii.len())
            | many(batch.cells.len()) << 1
            | many(batch.periodic.len()) << 2,
        half: u32::from(half),
        strict: u32::from(strict),
        pad: 0,
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let call = |output: &PairOutput| {
        // SAFETY: the function is declared so in systems.cpp, all arrays are as long as the kernels
        // need them, and the kernels read and write the status by its address.
        unsafe {
            let run = library.get::<RunSystems>(b"run_systems").unwrap();
            at.write_volatile(SystemsStatus {
                fault: NONE,
                bad: NONE,
                ticket: NONE,
                ..SystemsStatus::default()
            });
            for kernel in 0..2 {
                run(&arrays, output, i32::from(size_of::<T>() == 8), kernel);
            }
            at.read_volatile()
        }
    };
    let (mut targets, mut sources) = (vec![-1i64; all], vec![-1i64; all]);
    let mut images = vec![[i32::MAX; 3]; all];
    let (mut displacements, mut distances) =
        (vec![[T::default(); 3]; all], vec![T::default(); all]);
    let output = PairOutput {
        starts: starts.as_mut_ptr() as u64,
        targets: targets.as_mut_ptr() as u64,
        sources: sources.as_mut_ptr() as u64,
        images: images.as_mut_ptr() as u64,
        displacements: displacements.as_mut_ptr() as u64,
        distances: distances.as_mut_ptr() as u64,
        capacity: all as u64,
        index_bytes: 8,
        pad: 0,
    };
    // Nothing is written behind the room that there is.
    let room = all / 2;
    let capacity = room as u64;
    let found = call(&PairOutput { capacity, ..output });
    if found.fault.min(found.bad) != NONE {
        return Some(Err([found.fault, found.bad]));
    }
    assert_eq!(found.pairs, all as u64);
    assert!(targets[room..].iter().all(|&target| target == -1));
    call(&output);
    assert_eq!((starts[0], starts[points]), (0, all as u64));
    for (point, ends) in starts.windows(2).enumerate() {
        let list = &targets[ends[0] as usize..ends[1] as usize];
        assert!(list.iter().all(|&target| target == point as i64));
    }
    let pair = |k: usize| Pair {
        target: targets[k],
        source: sources[k],
        image: images[k],
        displacement: displacements[k],
        distance: distances[k],
    };
    Some(Ok((0..all).map(pair).collect()))
}

/// Systems of up to forty points, one of more than a block has targets, and one with so many images
/// that its candidates and pairs come in parts.
fn drawn<T: Real>(seed: u64, systems: usize) -> Batch<T> {
    let mut batch = Batch::drawn(seed, systems - 2, 40);
    let random = &mut Random::new(seed);
    let cell = [[4.0, 0.0, 0.0], [1.0, 5.0, 0.0], [0.0, -1.0, 5.0]];
    let points: Vec<[T; 3]> = (0..150)
        .map(|_| [0; 3].map(|_| T::round(random.between(-1.0, 5.0))))
        .collect();
    batch.push(&points, 1.0, cell, [true, false, true]);
    let cell = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.5], [0.0, 0.0, 2.0]];
    batch.push(&points[..20], 3.0, cell, [true; 3]);
    batch
}

fn pairs_are_the_contracts<T: Real>(seed: u64, kinds: &[ListKind]) {
    for &kind in kinds {
        let batch = drawn::<T>(seed, 14);
        let expected = batch.pairs(kind);
        let Some(found) = run(&batch, [kind == ListKind::Half, false], 14, expected.len()) else {
            return;
        };
        let found = found.unwrap();
        assert!(expected.len() > 500);
        assert!(found == expected, "{kind:?} lists of seed {seed}");
    }
}

#[test]
fn kernels_find_the_pairs_of_the_contract() {
    pairs_are_the_contracts::<f32>(70, &[ListKind::Full, ListKind::Half]);
}

#[test]
fn kernels_find_the_pairs_of_the_contract_in_double() {
    pairs_are_the_contracts::<f64>(80, &[ListKind::Full]);
}

/// Points on a lattice of whole numbers, where many pairs are exactly as far apart as the radius.
fn strict_pairs_are_nearer<T: Real>() {
    let whole = |n: usize| T::round(n as f64);
    let points: Vec<[T; 3]> = (0..60)
        .map(|n| [whole(n % 4), whole(n / 4 % 4), whole(n / 16)])
        .collect();
    let cell = [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]];
    let mut batch = Batch::drawn(11, 0, 1);
    // The square of 2 is a power of two, those of 3 and 1.5 are not.
    for radius in [1.0, 2.0, 3.0, 1.5] {
        batch.push(&points, radius, cell, [true, true, false]);
    }
    let closed = batch.pairs(ListKind::Full);
    let mut expected = closed.clone();
    expected.retain(|pair| {
        let system = batch.offsets.partition_point(|&first| first <= pair.target) - 1;
        pair.distance < T::round(batch.radii[system])
    });
    assert!(expected.len() + 500 < closed.len());
    if let Some(found) = run(&batch, [false, true], 4, expected.len()) {
        assert!(found.unwrap() == expected);
    }
}

#[test]
fn strict_searches_leave_out_pairs_exactly_as_far_apart_as_the_radius() {
    strict_pairs_are_nearer::<f32>();
    strict_pairs_are_nearer::<f64>();
}

#[test]
fn the_first_system_that_cannot_be_searched_is_noted_and_nothing_is_read_by_it() {
    let few = || Batch::<f32>::drawn(90, 20, 24);
    let fault = |change: &dyn Fn(&mut Batch<f32>)| {
        let mut batch = few();
        change(&mut batch);
        match run(&batch, [false; 2], 20, 0) {
            None => None,
            Some(Ok(_)) => panic!("it was searched"),
            Some(Err(fault)) => Some(fault),
        }
    };
    let Some(first) = fault(&|batch| batch.offsets[0] = 1) else {
        return;
    };
    assert_eq!(first[0], 0);
    type Change<'a> = &'a dyn Fn(&mut Batch<f32>);
    let prepared: [(Change<'_>, u32); 6] = [
        (&|batch| batch.offsets[7] = i64::MAX, 6),
        (&|batch| batch.offsets[7] = -1, 6),
        (&|batch| batch.offsets[20] += 1, 19),
        (&|batch| batch.radii[3] = f64::NAN, 3),
        (&|batch| batch.radii[4] = 1e300, 4),
        (
            &|batch| {
                batch.cells[11] = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
                batch.periodic[11] = [true; 3];
            },
            11,
        ),
    ];
    for (change, system) in prepared {
        assert_eq!(fault(change).unwrap()[0], system);
    }
    let last = few().positions.len() - 1;
    for bad in [f32::NAN, f32::INFINITY] {
        let found = fault(&|batch| batch.positions[last][2] = bad).unwrap();
        assert_eq!(found, [NONE, 19]);
    }
    // So small a cell that a point has more images than are counted.
    let found = fault(&|batch| {
        batch.cells[5] = [[1e-4, 0.0, 0.0], [0.0, 1e-4, 0.0], [0.0, 0.0, 1.0]];
        batch.periodic[5] = [true, true, false];
        batch.radii[5] = 1.0;
    });
    assert_eq!(found.unwrap(), [NONE, 5]);
    // Images that are few enough for a point, but not for all points of the system.
    let offsets = few().offsets;
    let points = |system: &usize| offsets[system + 1] - offsets[*system];
    let largest = (0..20).max_by_key(points).unwrap();
    assert!(points(&largest) > 15);
    let found = fault(&|batch| {
        batch.cells[largest] = [[8e-4, 0.0, 0.0], [0.0, 8e-4, 0.0], [0.0, 0.0, 1.0]];
        batch.periodic[largest] = [true, true, false];
        batch.radii[largest] = 0.5;
        let [from, to] = [offsets[largest], offsets[largest + 1]].map(|at| at as usize);
        for at in &mut batch.positions[from..to] {
            *at = [0.0; 3];
        }
    });
    assert_eq!(found.unwrap(), [NONE, largest as u32]);
}

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
use crate::launch::{PairOutput, SystemArrays, sources::SYSTEMS};
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

/// Runs the passes over the first `systems` of a batch; `Err` has the two faults.
fn run<T: Real>(
    batch: &Batch<T>,
    half: bool,
    systems: usize,
) -> Option<Result<Vec<Pair<T>>, [u32; 2]>> {
    let library = kernels()?;
    let points = batch.positions.len();
    let mut boxes = vec![0u64; SYSTEM_BOX as usize / 8 * systems];
    let (mut fault, mut counts) = ([NONE; 2], vec![0u32; points]);
    let many = |len: usize| u32::from(len != 1);
    let arrays = SystemArrays {
        positions: batch.positions.as_ptr() as u64,
        offsets: batch.offsets.as_ptr() as u64,
        radii: batch.radii.as_ptr() as u64,
        cells: batch.cells.as_ptr() as u64,
        periodic: batch.periodic.as_ptr() as u64,
        boxes: boxes.as_mut_ptr() as u64,
        fault: fault.as_mut_ptr() as u64,
        count: systems as u32,
        points: points as u32,
        many: many(batch.radii.len())
            | many(batch.cells.len()) << 1
            | many(batch.periodic.len()) << 2,
        half: u32::from(half),
    };
    let mut output = PairOutput {
        counts: counts.as_mut_ptr() as u64,
        ..PairOutput::default()
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let call = |output: &PairOutput, kernel: i32| {
        // SAFETY: the function is declared so in systems.cpp, and all arrays are as long as the
        // kernels need them.
        unsafe {
            let run = library.get::<RunSystems>(b"run_systems").unwrap();
            run(&arrays, output, i32::from(size_of::<T>() == 8), kernel);
        }
    };
    call(&output, 0);
    call(&output, 1);
    let fault = [0, 1].map(|k| {
        // SAFETY: the kernels have ended; they wrote to the array by its address.
        unsafe { std::ptr::read_volatile(&raw const fault[k]) }
    });
    if fault != [NONE; 2] {
        return Some(Err(fault));
    }
    let mut starts = vec![0u64];
    for &count in &counts {
        starts.push(starts[starts.len() - 1] + u64::from(count));
    }
    let all = starts[points] as usize;
    let (mut targets, mut sources) = (vec![-1i64; all], vec![-1i64; all]);
    let mut images = vec![[i32::MAX; 3]; all];
    let (mut displacements, mut distances) =
        (vec![[T::default(); 3]; all], vec![T::default(); all]);
    output = PairOutput {
        starts: starts.as_ptr() as u64,
        targets: targets.as_mut_ptr() as u64,
        sources: sources.as_mut_ptr() as u64,
        images: images.as_mut_ptr() as u64,
        displacements: displacements.as_mut_ptr() as u64,
        distances: distances.as_mut_ptr() as u64,
        capacity: all as u64,
        index_bytes: 8,
        ..output
    };
    // Without room nothing is written.
    if all > 0 {
        let capacity = all as u64 - 1;
        call(&PairOutput { capacity, ..output }, 2);
        assert!(targets.iter().all(|&target| target == -1));
    }
    call(&output, 2);
    let pair = |k: usize| Pair {
        target: targets[k],
        source: sources[k],
        image: images[k],
        displacement: displacements[k],
        distance: distances[k],
    };
    Some(Ok((0..all).map(pair).collect()))
}

/// Systems of up to forty points, and one of more than a block has targets.
fn drawn<T: Real>(seed: u64, systems: usize) -> Batch<T> {
    let mut batch = Batch::drawn(seed, systems - 1, 40);
    let random = &mut Random::new(seed);
    let cell = [[4.0, 0.0, 0.0], [1.0, 5.0, 0.0], [0.0, -1.0, 5.0]];
    let points: Vec<[T; 3]> = (0..150)
        .map(|_| [0; 3].map(|_| T::round(random.between(-1.0, 5.0))))
        .collect();
    batch.push(&points, 1.0, cell, [true, false, true]);
    batch
}

fn pairs_are_the_contracts<T: Real>(seed: u64) {
    for kind in [ListKind::Full, ListKind::Half] {
        let batch = drawn::<T>(seed, 14);
        let Some(found) = run(&batch, kind == ListKind::Half, 14) else {
            return;
        };
        let (found, expected) = (found.unwrap(), batch.pairs(kind));
        assert!(expected.len() > 500);
        assert!(found == expected, "{kind:?} lists of seed {seed}");
    }
}

#[test]
fn kernels_find_the_pairs_of_the_contract() {
    pairs_are_the_contracts::<f32>(70);
}

#[test]
fn kernels_find_the_pairs_of_the_contract_in_double() {
    pairs_are_the_contracts::<f64>(80);
}

#[test]
fn the_first_system_that_cannot_be_searched_is_noted_and_nothing_is_read_by_it() {
    let fault = |change: &dyn Fn(&mut Batch<f32>)| {
        let mut batch = drawn::<f32>(90, 20);
        change(&mut batch);
        match run(&batch, false, 20) {
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
    let last = drawn::<f32>(90, 20).positions.len() - 1;
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
    let offsets = drawn::<f32>(90, 20).offsets;
    let points = |system: &usize| offsets[system + 1] - offsets[*system];
    let largest = (0..20).max_by_key(points).unwrap();
    assert!(points(&largest) > 20);
    let found = fault(&|batch| {
        batch.cells[largest] = [[1e-3, 0.0, 0.0], [0.0, 1e-3, 0.0], [0.0, 0.0, 1.0]];
        batch.periodic[largest] = [true, true, false];
        batch.radii[largest] = 0.5;
        let [from, to] = [offsets[largest], offsets[largest + 1]].map(|at| at as usize);
        for at in &mut batch.positions[from..to] {
            *at = [0.0; 3];
        }
    });
    assert_eq!(found.unwrap(), [NONE, largest as u32]);
}

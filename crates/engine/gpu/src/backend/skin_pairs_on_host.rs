//! The kernels of skin_pairs.cu on the CPU, as in `systems_on_host`: pairs of moved points among
//! candidates of an earlier search are the contract's, bit for bit, in both precisions.

use super::on_host::compiled;
use crate::{
    constants::SYSTEM_BOX,
    launch::{
        PairOutput, SkinCandidates, SkinKernels, SkinStatus, SystemArrays, SystemsStatus,
        sources::SKIN_PAIRS, units,
    },
};
use libloading::Library;
use nearfield_testkit::{
    oracle::{ListKind, Real},
    random::Random,
    systems::{Batch, Pair},
};

type RunSkinPairs = unsafe extern "C" fn(
    *const SystemArrays,
    *const SystemArrays,
    *const SkinCandidates,
    *const PairOutput,
    i32,
);

/// Pairs among `candidates` of the batch `now`, with room for so many, and what the kernels note.
/// Pairs without room have target -1.
fn kept<T: Real>(
    library: &Library,
    now: &Batch<T>,
    then: &Batch<T>,
    candidates: &[Pair<T>],
    (strict, room): (bool, usize),
) -> (Vec<Pair<T>>, SkinStatus) {
    let (systems, points) = (now.radii.len(), now.positions.len());
    let mut boxes = vec![0u64; SYSTEM_BOX as usize / 8 * systems];
    let blocks = units(points, systems);
    let (mut units, mut sums) = (vec![0u32; blocks], vec![0u64; blocks]);
    let mut of_systems = SystemsStatus {
        fault: u32::MAX,
        ..SystemsStatus::default()
    };
    let many = |len: usize| u32::from(len != 1);
    let arrays = SystemArrays {
        positions: now.positions.as_ptr() as u64,
        offsets: now.offsets.as_ptr() as u64,
        radii: now.radii.as_ptr() as u64,
        cells: now.cells.as_ptr() as u64,
        periodic: now.periodic.as_ptr() as u64,
        boxes: boxes.as_mut_ptr() as u64,
        units: units.as_mut_ptr() as u64,
        sums: sums.as_mut_ptr() as u64,
        status: &raw mut of_systems as u64,
        count: systems as u32,
        points: points as u32,
        many: 7 * many(systems),
        half: 0,
        strict: u32::from(strict),
        pad: 0,
    };
    let before = SystemArrays {
        positions: then.positions.as_ptr() as u64,
        offsets: then.offsets.as_ptr() as u64,
        radii: then.radii.as_ptr() as u64,
        cells: then.cells.as_ptr() as u64,
        periodic: then.periodic.as_ptr() as u64,
        ..arrays
    };
    let targets: Vec<u32> = candidates.iter().map(|pair| pair.target as u32).collect();
    let sources: Vec<u32> = candidates.iter().map(|pair| pair.source as u32).collect();
    let images: Vec<[i32; 3]> = candidates.iter().map(|pair| pair.image).collect();
    let mut of_blocks = vec![0u64; SkinKernels::sums(candidates.len())];
    let mut status = SkinStatus::default();
    let tested = SkinCandidates {
        targets: targets.as_ptr() as u64,
        sources: sources.as_ptr() as u64,
        images: images.as_ptr() as u64,
        sums: of_blocks.as_mut_ptr() as u64,
        status: &raw mut status as u64,
        count: candidates.len() as u64,
    };
    let all = candidates.len();
    let (mut i, mut j) = (vec![-1i64; all], vec![-1i64; all]);
    let mut s = vec![[i32::MAX; 3]; all];
    let (mut d, mut lengths) = (vec![[T::default(); 3]; all], vec![T::default(); all]);
    let output = PairOutput {
        targets: i.as_mut_ptr() as u64,
        sources: j.as_mut_ptr() as u64,
        images: s.as_mut_ptr() as u64,
        displacements: d.as_mut_ptr() as u64,
        distances: lengths.as_mut_ptr() as u64,
        capacity: room as u64,
        index_bytes: 8,
        ..PairOutput::default()
    };
    // SAFETY: the function is declared so in skin_pairs.cpp; all arrays are as long as the structs
    // say, and are read and written by their addresses alone.
    let status = unsafe {
        let run = library.get::<RunSkinPairs>(b"run_skin_pairs").unwrap();
        let wide = i32::from(size_of::<T>() == 8);
        run(&arrays, &before, &tested, &output, wide);
        (&raw const status).read_volatile()
    };
    let pair = |k: usize| Pair {
        target: i[k],
        source: j[k],
        image: s[k],
        displacement: d[k],
        distance: lengths[k],
    };
    ((0..all).map(pair).collect(), status)
}

/// The batch with radii that are larger by the skin.
fn widened<T: Real>(batch: &Batch<T>, skin: f64) -> Batch<T> {
    let mut wide = batch.clone();
    wide.radii.iter_mut().for_each(|radius| *radius += skin);
    wide
}

/// The batch with points that have moved by less than `most`.
fn moved<T: Real>(batch: &Batch<T>, most: f64, seed: u64) -> Batch<T> {
    let (mut now, random) = (batch.clone(), &mut Random::new(seed));
    for position in &mut now.positions {
        for x in position {
            *x = T::round(x.to_f64() + random.between(-most, most) / 2.0);
        }
    }
    now
}

fn pairs_are_those_of_a_search<T: Real>(library: &Library, kind: ListKind, seed: u64) {
    let skin = 0.2;
    let mut then = Batch::<T>::drawn(seed, 12, 40);
    // More than two blocks of candidates.
    let few = then.positions[..20].to_vec();
    let cell = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.5], [0.0, 0.0, 2.0]];
    then.push(&few, 2.5, cell, [true; 3]);
    let candidates = widened(&then, skin).pairs(kind);
    // A point moves by less than half the skin.
    let now = moved(&then, skin / 2.0, seed);
    let expected = now.pairs(kind);
    assert!(expected.len() > 500 && candidates.len() > expected.len() + 100);
    assert!(candidates.len() > 2048, "{} candidates", candidates.len());
    let all = candidates.len();
    let (found, status) = kept(library, &now, &then, &candidates, (false, all));
    assert_eq!(status.pairs, expected.len() as u64);
    assert!(
        found[..expected.len()] == expected,
        "{kind:?} of seed {seed}"
    );
    assert!(found[expected.len()..].iter().all(|pair| pair.target == -1));
    assert_eq!(status.changed, 0);
    let (mut farthest, mut extent) = (0.0f64, [(f64::MAX, f64::MIN); 3]);
    for (now, then) in now.positions.iter().zip(&then.positions) {
        let mut square = 0.0;
        for axis in 0..3 {
            let (now, then) = (now[axis].to_f64(), then[axis].to_f64());
            square += (now - then) * (now - then);
            let (low, high) = extent[axis];
            extent[axis] = (low.min(now).min(then), high.max(now).max(then));
        }
        farthest = farthest.max(square);
    }
    assert_eq!(status.farthest(), farthest.sqrt());
    assert_eq!(status.extent(), extent.map(|(low, high)| high - low));
    // Nothing is written behind the room that there is, and all pairs are counted.
    let room = expected.len() / 2;
    let (found, status) = kept(library, &now, &then, &candidates, (false, room));
    assert_eq!(status.pairs, expected.len() as u64);
    assert!(found[..room] == expected[..room]);
    assert!(found[room..].iter().all(|pair| pair.target == -1));
}

#[test]
fn candidates_of_an_earlier_search_give_the_pairs_of_a_new_one() {
    let Some(library) = compiled("skin_pairs.cpp", SKIN_PAIRS.headers, &[]) else {
        return;
    };
    pairs_are_those_of_a_search::<f32>(&library, ListKind::Full, 21);
    pairs_are_those_of_a_search::<f64>(&library, ListKind::Full, 22);
    pairs_are_those_of_a_search::<f32>(&library, ListKind::Half, 23);
    // One system, whose points stand on whole numbers: strict tests leave out those at the radius.
    let points: Vec<[f32; 3]> = (0..60)
        .map(|n| [n % 4, n / 4 % 4, n / 16].map(|x| x as f32))
        .collect();
    let mut batch = Batch::<f32>::default();
    batch.push(
        &points,
        2.0,
        [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]],
        [true; 3],
    );
    let candidates = widened(&batch, 0.5).pairs(ListKind::Full);
    let mut expected = batch.pairs(ListKind::Full);
    let closed = expected.len();
    expected.retain(|pair| pair.distance < 2.0);
    assert!(expected.len() + 100 < closed);
    let (found, status) = kept(&library, &batch, &batch, &candidates, (true, closed));
    assert_eq!((status.pairs, status.moved), (expected.len() as u64, 0));
    assert!(found[..expected.len()] == expected);
}

#[test]
fn what_else_has_changed_is_noted_and_so_are_points_that_are_nowhere() {
    let Some(library) = compiled("skin_pairs.cpp", SKIN_PAIRS.headers, &[]) else {
        return;
    };
    let then = Batch::<f64>::drawn(31, 12, 40);
    let last = then.positions.len() - 1;
    let status = |change: &dyn Fn(&mut Batch<f64>)| {
        let mut now = then.clone();
        change(&mut now);
        kept(&library, &now, &then, &[], (false, 0)).1
    };
    assert_eq!(status(&|_| {}).changed, 0);
    assert_eq!(status(&|batch| batch.offsets[7] += 1).changed, 1);
    assert_eq!(status(&|batch| batch.radii[11] += 1e-9).changed, 1);
    assert_eq!(status(&|batch| batch.cells[11][2][2] += 1e-9).changed, 1);
    assert_eq!(status(&|batch| batch.periodic[11][2] ^= true).changed, 1);
    for nowhere in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let found = status(&|batch| batch.positions[last][1] = nowhere);
        assert_eq!((found.changed, found.farthest()), (0, f64::INFINITY));
    }
    assert_eq!(
        status(&|batch| batch.positions[last][1] += 0.25).farthest(),
        0.25
    );
}

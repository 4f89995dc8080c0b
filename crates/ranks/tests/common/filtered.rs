//! Engines and ranks with filters that were drawn for a case, and the geometry of their pairs.

use super::{Precise, add_sets, at, dealt, filters::Drawn, many, on_ranks, one};
use nearfield::{Device, Engine, PointSetId, lists::PairGeometry};
use nearfield_ranks::{Error, IdPair, RankedBuilder, RankedEngine, RankedSet};
use nearfield_testkit::conformance::Case;

/// Settings of ranks with the filters.
pub(crate) fn with_filters<T: Precise>(
    drawn: &Drawn<T>,
    mut builder: RankedBuilder,
) -> RankedBuilder {
    if !drawn.filters.cutoffs.is_empty() {
        let rows = drawn.filters.cutoffs.iter();
        let rows = rows.map(|row| row.iter().map(|r| r.to_f64()).collect());
        builder = builder.cutoffs(&rows.collect::<Vec<Vec<f64>>>());
    }
    match drawn.filters.nearest {
        Some(k) => builder.nearest(k as u32),
        None => builder,
    }
}

/// Gives the data of points, each rank those of the points that it gives: types of all sets, and
/// the other data of the targets.
pub(crate) fn give<T: Precise>(
    engine: &mut RankedEngine<T>,
    sets: &[RankedSet],
    case: &Case<T>,
    drawn: &Drawn<T>,
) -> Result<(), Error> {
    let target = sets[case.target];
    let places = |engine: &RankedEngine<T>, set| -> Result<Vec<usize>, Error> {
        Ok(engine.ids(set)?.iter().map(|id| *id as usize).collect())
    };
    if !drawn.filters.cutoffs.is_empty() {
        for (set, types) in sets.iter().zip(&drawn.types) {
            let mine = places(engine, *set)?;
            engine.set_types(*set, &at(types, &mine))?;
        }
    }
    let mine = places(engine, target)?;
    if drawn.lists.is_some() {
        // Every rank knows another part of the pairs, whosever the points are.
        let (rank, ranks) = (engine.rank() as u32, engine.ranks() as u32);
        let pairs = drawn.filters.excluded.iter();
        let known = pairs.filter(|[a, b]| (a * 7 + b) % ranks == rank);
        let known: Vec<[u64; 2]> = known.map(|pair| pair.map(u64::from)).collect();
        engine.exclude_pairs(target, &known)?;
    }
    if let Some(molecules) = &drawn.molecules {
        engine.set_molecules(target, &at(molecules, &mine))?;
    }
    if !drawn.filters.chosen.is_empty() {
        let mask = at(&drawn.filters.chosen, &mine);
        if engine.ranks().is_multiple_of(2) {
            engine.set_target_mask(target, &mask)?;
        } else {
            let chosen = (0..).zip(&mask).filter(|(_, chosen)| **chosen);
            let places: Vec<u32> = chosen.map(|(place, _)| place).collect();
            engine.set_targets(target, &places)?;
        }
    }
    Ok(())
}

/// One engine with the sets of a case and the filters.
pub(crate) fn one_filtered<T: Precise>(
    case: &Case<T>,
    drawn: &Drawn<T>,
) -> (Engine, Vec<PointSetId>) {
    let builder = match drawn.filters.nearest {
        Some(_) => one(case).list_order(nearfield::ListOrder::Unspecified),
        None => one(case),
    };
    let mut engine = drawn.settings(builder).build().unwrap();
    let sets: Vec<PointSetId> = (0..case.sets.len())
        .map(|number| {
            let id = engine
                .add_point_set(T::positions(&case.sets[number]))
                .unwrap();
            if !case.radii.is_empty() {
                engine.set_radii(id, &super::radii(case, number)).unwrap();
            }
            id
        })
        .collect();
    drawn.give(&mut engine, case, &sets);
    (engine, sets)
}

/// By point: id, image, and the bits of displacement and square of every pair.
pub(crate) type Pairs = Vec<Vec<(u64, [i32; 3], [u64; 4])>>;

fn pair(id: u64, image: [i32; 3], [x, y, z]: [f64; 3], d2: f64) -> (u64, [i32; 3], [u64; 4]) {
    (id, image, [x, y, z, d2].map(f64::to_bits))
}

/// What one engine finds; none where an image has no number.
pub(crate) fn geometry_of_one<T: Precise>(case: &Case<T>, drawn: &Drawn<T>) -> Option<Pairs> {
    let (engine, sets) = one_filtered(case, drawn);
    let mut geometry = PairGeometry::default();
    let written = engine.pair_geometry(sets[case.target], sets[case.source], &mut geometry);
    if let Err(error) = written {
        let message = error.to_string();
        assert!(message.contains("boxes apart along an axis"), "{message}");
        return None;
    }
    let of = |i| {
        let found = geometry.of(i);
        found.map(|found| pair(found.index.into(), found.image, found.d, found.d2))
    };
    Some((0..case.targets().len()).map(|i| of(i).collect()).collect())
}

/// The same on ranks, in the order of one engine.
pub(crate) fn geometry_of_ranks<T: Precise>(
    case: &Case<T>,
    drawn: &Drawn<T>,
    (ranks, home): (usize, bool),
    device: Device,
) -> Pairs {
    let shares = on_ranks(ranks, |transport| {
        let builder = with_filters(drawn, many(case)).device(device);
        let mut engine = builder.build::<T>(transport)?;
        let sets = add_sets(&mut engine, case)?;
        give(&mut engine, &sets, case, drawn)?;
        if home {
            for (set, points) in sets.iter().zip(&case.sets) {
                let mine = dealt(points.len(), engine.rank(), ranks);
                let _ = engine.migrate(*set, &at(points, &mine))?;
            }
        }
        let (targets, sources) = (sets[case.target], sets[case.source]);
        let geometry = engine.pair_geometry(targets, sources)?;
        let ids = engine.ids(targets)?.iter().enumerate();
        let of = |k| {
            let found = geometry.of(k).iter();
            let found = found.map(|found: &IdPair<T>| {
                let d = found.d.map(|d| d.to_f64());
                pair(found.id, found.image, d, found.d2.to_f64())
            });
            found.collect::<Vec<_>>()
        };
        Ok::<_, Error>(ids.map(|(k, id)| (*id, of(k))).collect::<Vec<_>>())
    });
    let mut all: Vec<_> = shares.into_iter().flatten().collect();
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, pairs)| pairs).collect()
}

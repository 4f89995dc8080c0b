//! Ranks with data on a GPU: data of points that decide pairs, and the geometry of these pairs.

use super::{
    at, dealt,
    filtered::{Pairs, with_filters},
    filters::Drawn,
    many, on_ranks, radii,
};
use nearfield::{
    Device,
    device::{DeviceGeometry, DeviceValue, DeviceView, GeometryQuantities, Progress},
};
use nearfield_ranks::{Error, RankedSet, device::DeviceRankedEngine};
use nearfield_testkit::conformance::Case;

fn download<T: DeviceValue + Default>(
    engine: &DeviceRankedEngine,
    from: &DeviceView<'_, T>,
) -> Vec<T> {
    let mut values = vec![T::default(); from.len()];
    let queue = engine.engine().queue();
    queue.copy_to_host("results", from, &mut values).unwrap();
    values
}

/// The sets of a case, each rank giving its share of the points, and their data.
fn give(
    engine: &mut DeviceRankedEngine,
    case: &Case,
    drawn: &Drawn<f32>,
) -> Result<Vec<RankedSet>, Error> {
    let mut sets = Vec::new();
    for points in &case.sets {
        let mine = dealt(points.len(), engine.rank(), engine.ranks());
        let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
        let given = engine.upload(at(points, &mine).as_flattened())?;
        let (set, _) = engine.add_point_set(&given.as_view(), Some(&ids))?;
        sets.push(set);
    }
    // A later set may have divided space anew.
    move_to(engine, &sets, case)?;
    for (number, set) in sets.iter().enumerate() {
        let mine: Vec<usize> = engine.ids(*set)?.iter().map(|id| *id as usize).collect();
        if !case.radii.is_empty() {
            let radii = at(&radii(case, number), &mine);
            if number == 0 {
                engine.set_radii(*set, &radii)?;
            } else {
                let radii: Vec<f32> = radii.iter().map(|radius| *radius as f32).collect();
                let radii = engine.upload(&radii)?;
                engine.set_radii_from_device(*set, &radii.as_view())?;
            }
        }
        if !drawn.filters.cutoffs.is_empty() {
            engine.set_types(*set, &at(&drawn.types[number], &mine))?;
        }
        if number == case.target && !drawn.filters.chosen.is_empty() {
            engine.set_target_mask(*set, &at(&drawn.filters.chosen, &mine))?;
        }
    }
    Ok(sets)
}

/// Gives the points the positions of a case.
fn move_to(
    engine: &mut DeviceRankedEngine,
    sets: &[RankedSet],
    case: &Case,
) -> Result<bool, Error> {
    let mut moved = false;
    for (set, points) in sets.iter().zip(&case.sets) {
        let ids = engine.ids(*set)?;
        let now: Vec<[f32; 3]> = ids.iter().map(|id| points[*id as usize]).collect();
        let now = engine.upload(now.as_flattened())?;
        moved |= engine.migrate(*set, &now.as_view())?.has_moved();
    }
    Ok(moved)
}

/// By id of a target, its pairs of one part of the lists.
fn read(
    engine: &DeviceRankedEngine,
    found: &DeviceGeometry<'_>,
    [of, ids]: [&[u64]; 2],
    all: &mut Vec<(u64, <Pairs as IntoIterator>::Item)>,
) {
    let (lists, pairs) = (&found.lists, &found.pairs);
    let entries = download(engine, &lists.entries);
    let images = download(engine, pairs.images.as_ref().expect("images"));
    let along = download(engine, pairs.displacements.as_ref().expect("displacements"));
    let squares = download(engine, pairs.squares.as_ref().expect("squares"));
    let starts = download(engine, &lists.start);
    for ((id, start), count) in of.iter().zip(starts).zip(download(engine, &lists.count)) {
        let places = start as usize..start as usize + count as usize;
        let pair = |k: usize| {
            let [x, y, z] = along[k];
            let bits = [x, y, z, squares[k]].map(|number| f64::from(number).to_bits());
            (ids[entries[k] as usize], images[k], bits)
        };
        all.push((*id, places.map(pair).collect()));
    }
}

/// All pairs of the points of this rank, by id.
fn find(
    engine: &mut DeviceRankedEngine,
    [targets, sources]: [RankedSet; 2],
) -> Result<Vec<(u64, <Pairs as IntoIterator>::Item)>, Error> {
    let mut wanted = GeometryQuantities::NONE;
    (wanted.images, wanted.displacements, wanted.squares) = (true, true, true);
    let mut counts = engine.zeros::<u32>(engine.points(targets)?[0])?;
    for _ in 0..5 {
        engine.count_neighbors(targets, sources, &mut counts.as_view_mut())?;
        engine.pair_geometry(targets, sources, wanted)?;
        if engine.finish()? == Progress::Valid {
            break;
        }
    }
    let (ids, of) = (engine.ids(sources)?, engine.ids(targets)?);
    let (halo, by_id) = (
        engine.halo_ids(sources)?,
        engine.lists_by_id(targets, sources)?,
    );
    let found = engine.geometry(targets, sources)?;
    let (mut all, mut there) = (Vec::new(), Vec::new());
    read(engine, &found.owned, [&of, &ids], &mut all);
    let border = download(engine, &found.border);
    let at_border: Vec<u64> = border.iter().map(|place| of[*place as usize]).collect();
    if let Some(far) = &found.halo {
        read(engine, far, [&at_border, &halo], &mut there);
    }
    for (place, (id, pairs)) in border.iter().zip(there) {
        let own = &mut all[*place as usize];
        assert_eq!(own.0, id);
        own.1.extend(pairs);
    }
    let counts = download(engine, &counts.as_view());
    for (k, (id, pairs)) in all.iter_mut().enumerate() {
        pairs.sort_unstable();
        let ids: Vec<u64> = pairs.iter().map(|(id, ..)| *id).collect();
        assert_eq!(by_id.of(k), ids, "point {id}");
        assert_eq!(counts[k] as usize, ids.len(), "point {id}");
    }
    Ok(all)
}

/// The pairs of steps whose points are elsewhere each time, in the order of one engine, each list
/// ascending. Also returns whether points have changed their rank.
pub(crate) fn geometry_on_gpu(
    steps: &[Case],
    drawn: &Drawn<f32>,
    ranks: usize,
) -> (Vec<Pairs>, bool) {
    let shares = on_ranks(ranks, |transport| {
        let builder = with_filters(drawn, many(&steps[0])).device(Device::Gpu(0));
        let mut engine = DeviceRankedEngine::start(builder, transport)?;
        let sets = give(&mut engine, &steps[0], drawn)?;
        let (mut found, mut moved) = (Vec::new(), false);
        for (number, case) in steps.iter().enumerate() {
            if number != 0 {
                moved |= move_to(&mut engine, &sets, case)?;
            }
            found.push(find(&mut engine, [sets[case.target], sets[case.source]])?);
        }
        Ok::<_, Error>((found, moved))
    });
    let moved = shares.iter().any(|(_, moved)| *moved);
    let steps = 0..steps.len();
    let of_step = |step: usize| -> Pairs {
        let mut all: Vec<_> = shares
            .iter()
            .flat_map(|(found, _)| found[step].clone())
            .collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(_, pairs)| pairs).collect()
    };
    (steps.map(of_step).collect(), moved)
}

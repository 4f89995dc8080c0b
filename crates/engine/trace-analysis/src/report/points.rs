//! Points of the rate plot, and the occupancies.

use crate::analysis::{Analysis, median, stage_name};
use nearfield_trace::model::{self, Interval, Phase, Value};
use serde::Serialize;

/// Most points of the rate plot, evenly taken.
const MAX_POINTS: usize = 4000;

/// Pairs per second of a backend, and pairs per point.
#[derive(Debug, Serialize)]
pub(super) struct RatePoint {
    backend: String,
    name: String,
    /// Pairs to test per target: the more, the more work for the data loaded.
    pairs_per_point: f64,
    pairs_per_second: f64,
}

/// `step 3`, or that it is none.
pub(super) fn named_step(step: Option<u64>) -> String {
    step.map_or("outside of steps".to_owned(), |step| format!("step {step}"))
}

/// Rates of all subregions, or of all stages that say how many pairs they test.
pub(super) fn rates(analysis: &Analysis<'_>) -> Vec<RatePoint> {
    let trace = analysis.trace;
    let of_subregions = trace.subregions.iter().filter_map(|one| {
        let step = named_step(one.step);
        let name = format!("{} {step} subregion {}", one.backend, one.subregion);
        rate(
            &one.backend,
            name,
            one.points,
            one.work,
            one.phase(Phase::Compute)?,
        )
    });
    let of_stages = trace.spans.iter().filter_map(|span| {
        let count = |name: &str| span.fields.get(name).and_then(Value::count);
        let (points, work) = (count("targets")?, count("work")?);
        let backend = analysis.run.backend_of(span)?;
        rate(
            &analysis.run.backends[backend],
            stage_name(span),
            points,
            work,
            span.time,
        )
    });
    let all: Vec<RatePoint> = if trace.subregions.is_empty() {
        of_stages.collect()
    } else {
        of_subregions.collect()
    };
    evenly(all, MAX_POINTS)
}

fn rate(backend: &str, name: String, points: u64, work: u64, time: Interval) -> Option<RatePoint> {
    (points > 0 && work > 0 && time.length() > 0).then(|| RatePoint {
        backend: backend.to_owned(),
        name,
        pairs_per_point: work as f64 / points as f64,
        pairs_per_second: work as f64 / (time.length() as f64 / 1e9),
    })
}

/// An occupancy with the threshold that held then.
#[derive(Debug, Serialize)]
pub(super) struct Occupancy<'a> {
    /// Index of the step it was counted in or before.
    step: usize,
    of: &'a str,
    one_in: u64,
    counts: &'a [[u64; 2]],
    /// Cells of the CPU backend's subregions in that step, and of all; none without subregions.
    split: Option<[u64; 2]>,
    /// Whether one threshold held for all subregions, so that it divides the bars.
    one_theta: bool,
}

/// The cells of the CPU backend and of all in a step, and whether their thresholds are the same.
fn split_of(analysis: &Analysis<'_>, step: usize) -> (Option<[u64; 2]>, bool) {
    let Some(step) = analysis.run.steps.get(step) else {
        return (None, true);
    };
    let of_step = || {
        let numbers = step.subregions.iter();
        numbers.map(|at| &analysis.trace.subregions[*at])
    };
    let cells = |cpu: bool| {
        let own = of_step().filter(|one| !cpu || one.backend == "cpu");
        own.fold(0u64, |sum, one| sum.saturating_add(one.cells))
    };
    let all = cells(false);
    let mut thetas = of_step().map(|one| one.theta);
    let first = thetas.next();
    let same = thetas.all(|theta| Some(theta) == first);
    ((all > 0).then(|| [cells(true), all]), same)
}

/// Evenly sampled occupancies of the point set that is sorted most often, by bricks if the trace
/// has any.
pub(super) fn occupancies<'a>(analysis: &'a Analysis<'_>, most: usize) -> Vec<Occupancy<'a>> {
    let occupancies = &analysis.trace.occupancies;
    let bricks = occupancies.iter().any(|one| one.of == "bricks");
    let mut candidates: Vec<(u64, &model::Occupancy)> = occupancies
        .iter()
        .filter(|one| !bricks || one.of == "bricks")
        .map(|one| (points_in(one), one))
        .collect();
    // A trace does not name the set: sets of other sizes, such as walls, are other sets.
    let usual = median(candidates.iter().map(|(points, _)| *points as f64)).unwrap_or(0.0);
    candidates.retain(|(points, _)| (0.7 * usual..=1.4 * usual).contains(&(*points as f64)));
    let of_interest = candidates.into_iter().map(|(_, one)| one);
    let steps = &analysis.run.steps;
    let placed = of_interest.map(|one| {
        let begun = steps.partition_point(|step| step.on_host.begin() <= one.at);
        (begun.saturating_sub(1), one)
    });
    let shown = evenly(placed.collect(), most).into_iter();
    let shown = shown.map(|(step, one)| {
        let (split, one_theta) = split_of(analysis, step);
        Occupancy {
            step,
            of: &one.of,
            one_in: one.one_in,
            counts: &one.counts,
            split,
            one_theta,
        }
    });
    shown.collect()
}

/// About how many points were counted.
fn points_in(occupancy: &model::Occupancy) -> u64 {
    let counted = occupancy.counts.iter();
    let points = counted.map(|[points, cells]| points.saturating_mul(*cells));
    points
        .fold(0, u64::saturating_add)
        .saturating_mul(occupancy.one_in)
}

/// At most `most` of the values, the first and the last among them.
fn evenly<T>(values: Vec<T>, most: usize) -> Vec<T> {
    let count = values.len();
    if count <= most {
        return values;
    }
    let wanted = |at: usize| {
        // Of every interval of count / most values the first, and the last of all.
        at * most / count != (at.max(1) - 1) * most / count || at == 0 || at + 1 == count
    };
    let mut at = 0;
    values
        .into_iter()
        .filter(|_| {
            at += 1;
            wanted(at - 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_evenly_with_both_ends() {
        assert_eq!(evenly(vec![1, 2, 3], 5), [1, 2, 3]);
        let taken = evenly((0..1000).collect(), 10);
        assert!((10..=11).contains(&taken.len()), "{taken:?}");
        assert_eq!((taken[0], *taken.last().unwrap()), (0, 999));
    }
}

//! The bars of the timeline: a track for the caller's thread and one per stream of every backend.

use crate::analysis::{Activity, Analysis, DisjointIntervals, Source, activity_name};
use nearfield_trace::model::{Interval, Phase};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most bars of a page; of longer traces most steps are shown by one bar per interval and track.
const MAX_BARS: usize = 100_000;
/// Number of steps that keep all their bars in that case, of each kind: the first, the last, the
/// slowest, and those after which the policy changed something.
const KEPT: usize = 20;

/// A row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Track {
    /// The backend's name, or `caller`.
    backend: String,
    /// Phase of the backend there.
    phase: &'static str,
    /// True for work timed by the device.
    device: bool,
}

/// Key of a track.
type Key = (Option<usize>, Phase, bool);

/// All bars.
#[derive(Default)]
pub(super) struct Bars {
    pub(super) tracks: Vec<Track>,
    pub(super) names: Vec<String>,
    pub(super) numbers: Vec<f64>,
    pub(super) thinned: bool,
    name_places: HashMap<String, usize>,
}

/// Bars of the first `steps` steps.
pub(super) fn collect(analysis: &Analysis<'_>, steps: usize) -> Bars {
    let run = &analysis.run;
    let shown = &run.steps[..steps];
    let keys: BTreeSet<Key> = shown
        .iter()
        .flat_map(|step| step.activities.iter().map(key))
        .collect();
    let places: BTreeMap<_, usize> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| (*key, at))
        .collect();
    let name = |backend: Option<usize>| {
        backend.map_or("caller".into(), |backend| run.backends[backend].to_string())
    };
    let mut bars = Bars {
        tracks: keys
            .iter()
            .map(|(backend, phase, device)| Track {
                backend: name(*backend),
                phase: phase.name(),
                device: *device,
            })
            .collect(),
        ..Bars::default()
    };
    let all: usize = shown.iter().map(|step| step.activities.len()).sum();
    bars.thinned = all > MAX_BARS;
    let kept = if bars.thinned {
        detailed_steps(analysis, steps)
    } else {
        (0..steps).collect()
    };
    for (at, step) in shown.iter().enumerate() {
        if kept.contains(&at) {
            for activity in &step.activities {
                let name = activity_name(analysis.trace, run, activity);
                let subregion = match activity.source {
                    Source::Subregion { number, .. } => number as f64,
                    Source::Stage { .. } | Source::Device { .. } => -1.0,
                };
                bars.put(places[&key(activity)], &name, at, subregion, activity.time);
            }
        } else {
            bars.put_merged(&step.activities, &places, at)
        }
    }
    bars
}

/// Microseconds of nanoseconds, with one decimal.
pub(super) fn microseconds(nanoseconds: f64) -> f64 {
    (nanoseconds / 100.0).round() / 10.0
}

fn key(activity: &Activity) -> Key {
    let device = matches!(activity.source, Source::Device { .. });
    (activity.backend, activity.phase, device)
}

/// Steps that keep all their bars.
fn detailed_steps(analysis: &Analysis<'_>, steps: usize) -> BTreeSet<usize> {
    let mut slowest: Vec<usize> = (0..steps).collect();
    slowest.sort_by(|a, b| analysis.rows[*b].ms.total_cmp(&analysis.rows[*a].ms));
    let retuned = (0..steps)
        .filter(|at| analysis.rows[*at].retuned)
        .take(KEPT);
    (0..steps.min(KEPT))
        .chain(steps.saturating_sub(KEPT)..steps)
        .chain(slowest.into_iter().take(KEPT))
        .chain(retuned)
        .collect()
}

impl Bars {
    fn put(&mut self, track: usize, name: &str, step: usize, subregion: f64, time: Interval) {
        let next = self.names.len();
        let place = match self.name_places.get(name) {
            Some(place) => *place,
            None => {
                self.names.push(name.to_owned());
                self.name_places.insert(name.to_owned(), next);
                next
            }
        };
        self.numbers.extend([
            track as f64,
            place as f64,
            step as f64,
            subregion,
            microseconds(time.begin() as f64),
            microseconds(time.length() as f64),
        ]);
    }

    /// One bar for all that touch, with the track's name.
    fn put_merged(&mut self, activities: &[Activity], places: &BTreeMap<Key, usize>, step: usize) {
        for (of, track) in places {
            let own = activities.iter().filter(|activity| key(activity) == *of);
            let merged = DisjointIntervals::of(own.map(|activity| activity.time));
            let name = format!(
                "{} {}",
                self.tracks[*track].backend, self.tracks[*track].phase
            );
            for interval in merged.intervals() {
                self.put(*track, &name, step, -1.0, *interval);
            }
        }
    }
}

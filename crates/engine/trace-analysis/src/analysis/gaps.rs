//! Gaps: the time in which a backend did not compute, and what the host did meanwhile.
//!
//! The time of a gap goes to the innermost stages that were open then; stages side by side share
//! it. Where a stage of a backend is among them (sorting on the CPU, say), the others are taken to
//! wait for it. Time without a stage goes to the subregions that a backend worked on, and the
//! rest to the program outside of all stages.

use super::{
    intervals::{DisjointIntervals, increase},
    pieces::{Piece, overlapping, pieces},
    run::{Run, RunStep, Source, parents},
};
use nearfield_trace::{
    Trace,
    model::{Interval, Phase, Span, Value},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
};

/// The reason for which a backend did not compute: what ran instead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// Name of a stage, or of a backend and its phase; none for the program outside of all stages.
    pub stage: Option<String>,
    /// The object copied or waited for, if the stage names one.
    pub what: Option<String>,
    /// `to_host`, `to_device` or `on_device`, of copies.
    pub direction: Option<String>,
    /// True for the time of a stage outside of its own inner stages.
    pub outside_parts: bool,
    /// Whether it was between the steps.
    pub between_steps: bool,
    /// Bytes that were copied, where the stages say.
    pub bytes: u64,
    /// How long, milliseconds.
    pub ms: f64,
    /// The same per step.
    pub ms_per_step: f64,
    /// Share of the time from the first step to the last in which the backend did not compute.
    pub share: f64,
}

/// Key of a reason; without a stage the program is outside of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cause {
    pub(crate) stage: Option<String>,
    pub(crate) what: Option<String>,
    pub(crate) direction: Option<String>,
    pub(crate) outside_parts: bool,
}

impl Cause {
    fn of(span: &Span, parents: &HashSet<u64>) -> Self {
        let is_copy = span.name == "host.copy";
        let says = is_copy || span.name == "host.wait";
        let text = |name: &str| span.text(name).map(str::to_owned);
        Self {
            stage: Some(span.name.to_string()),
            what: text("what").filter(|_| says),
            direction: text("direction").filter(|_| is_copy),
            outside_parts: parents.contains(&span.id) || span.fields.contains_key("step"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stage.as_deref().unwrap_or("outside of all stages"))?;
        if let Some(what) = &self.what {
            let of = if self.direction.is_some() {
                "of"
            } else {
                "for"
            };
            write!(f, " {of} {what}")?;
        }
        match self.direction.as_deref() {
            Some("to_host") => f.write_str(" to the host"),
            Some("to_device") => f.write_str(" to the device"),
            _ if self.outside_parts => f.write_str(", outside of its stages"),
            _ => Ok(()),
        }
    }
}

/// The time of some gaps that one cause explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CauseShare {
    /// Index of the cause.
    pub(crate) cause: usize,
    /// Nanoseconds.
    pub(crate) time: f64,
    pub(crate) bytes: u64,
}

/// An interval in which no backend computed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gap {
    /// The step that contains it, or the one before it.
    pub(crate) step: usize,
    pub(crate) between_steps: bool,
    pub(crate) time: Interval,
    /// Its causes, longest first.
    pub(crate) causes: Vec<usize>,
}

/// Shares of causes in the gaps of every backend, and last in the gaps common to all.
pub(crate) type Parts = Vec<Vec<CauseShare>>;

/// All gaps of a run.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) causes: Vec<Cause>,
    pub(crate) steps: Vec<Parts>,
    /// Between the steps.
    pub(crate) between: Parts,
    /// Gaps that all backends have.
    pub(crate) common: Vec<Gap>,
}

/// Maximum number of causes that a gap is named by.
const MAX_NAMED: usize = 3;

impl Gaps {
    pub(crate) fn of(trace: &Trace, run: &Run) -> Self {
        let mut finder = Finder {
            trace,
            run,
            parents: parents(trace),
            numbers: HashMap::new(),
            gaps: Self::default(),
        };
        let all = run
            .computing
            .iter()
            .flat_map(DisjointIntervals::intervals)
            .copied();
        let all = DisjointIntervals::of(all);
        let computing: Vec<&DisjointIntervals> = run.computing.iter().chain([&all]).collect();
        let none = vec![Sum::default(); computing.len()];
        let outside = pieces(trace, run.outside.iter().copied());
        let mut between = none.clone();
        let mut ended = run.extent().begin();
        for (number, step) in run.steps.iter().enumerate() {
            let time = step.step.time;
            if time.begin() > ended {
                let pause = Around {
                    within: Interval::new(ended, time.begin()),
                    step: number.saturating_sub(1),
                    between_steps: true,
                    pieces: &outside,
                    streams: Vec::new(),
                };
                finder.find(&pause, &computing, &mut between);
            }
            ended = ended.max(time.end());
            let by_host = |at: &usize| !trace.spans[*at].is_device_timed();
            let around = Around {
                within: time,
                step: number,
                between_steps: false,
                pieces: &pieces(trace, step.spans.iter().copied().filter(by_host)),
                streams: Stream::all(step),
            };
            let mut sums = none.clone();
            finder.find(&around, &computing, &mut sums);
            let parts = sums.iter().map(|sum| sum.parts(trace)).collect();
            finder.gaps.steps.push(parts);
        }
        finder.gaps.between = between.iter().map(|sum| sum.parts(trace)).collect();
        finder.gaps
    }

    /// The reasons of a backend by its number, or of all, longest first.
    pub(crate) fn reasons(&self, of: usize) -> Vec<Reason> {
        self.reasons_in(of, 0..self.steps.len(), true)
    }

    /// The same in some of the steps, with those between the steps or without.
    pub(crate) fn reasons_in(
        &self,
        of: usize,
        chosen: impl IntoIterator<Item = usize>,
        with_between: bool,
    ) -> Vec<Reason> {
        let mut sums: BTreeMap<(bool, usize), CauseShare> = BTreeMap::new();
        let mut count = 0;
        let steps = chosen.into_iter().map(|step| {
            count += 1;
            (false, &self.steps[step][of])
        });
        let between = Some((true, &self.between[of])).filter(|_| with_between);
        for (between, parts) in steps.chain(between) {
            for part in parts {
                let empty = CauseShare {
                    time: 0.0,
                    bytes: 0,
                    ..*part
                };
                let sum = sums.entry((between, part.cause)).or_insert(empty);
                sum.time += part.time;
                increase(&mut sum.bytes, part.bytes);
            }
        }
        let all: f64 = sums.values().map(|part| part.time).sum();
        let mut reasons: Vec<Reason> = sums
            .into_iter()
            .filter(|(_, part)| part.time > 0.0)
            .map(|((between_steps, cause), part)| {
                let cause = self.causes[cause].clone();
                Reason {
                    stage: cause.stage,
                    what: cause.what,
                    direction: cause.direction,
                    outside_parts: cause.outside_parts,
                    between_steps,
                    bytes: part.bytes,
                    ms: part.time / 1e6,
                    ms_per_step: part.time / 1e6 / count.max(1) as f64,
                    share: part.time / all,
                }
            })
            .collect();
        reasons.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        reasons
    }
}

/// Time by cause, and the spans that had part in it.
#[derive(Debug, Clone, Default)]
struct Sum(BTreeMap<usize, (f64, BTreeSet<usize>)>);

impl Sum {
    fn add(&mut self, cause: usize, time: f64, span: Option<usize>) {
        let (sum, spans) = self.0.entry(cause).or_default();
        *sum += time;
        spans.extend(span);
    }

    fn merge(&mut self, other: Self) {
        for (cause, (time, spans)) in other.0 {
            let (sum, all) = self.0.entry(cause).or_default();
            *sum += time;
            all.extend(spans);
        }
    }

    /// The causes that took most.
    fn longest(&self) -> Vec<usize> {
        let mut causes: Vec<(f64, usize)> = self
            .0
            .iter()
            .map(|(cause, (time, _))| (*time, *cause))
            .collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        causes
            .into_iter()
            .take(MAX_NAMED)
            .map(|(_, cause)| cause)
            .collect()
    }

    fn parts(&self, trace: &Trace) -> Vec<CauseShare> {
        let bytes = |span: &usize| {
            trace.spans[*span]
                .fields
                .get("bytes")
                .and_then(Value::count)
        };
        let part = |(cause, (time, spans)): (&usize, &(f64, BTreeSet<usize>))| {
            let bytes = spans.iter().filter_map(bytes).fold(0, u64::saturating_add);
            CauseShare {
                cause: *cause,
                time: *time,
                bytes,
            }
        };
        self.0.iter().map(part).collect()
    }
}

struct Finder<'a> {
    trace: &'a Trace,
    run: &'a Run,
    /// Numbers of the spans that have others inside.
    parents: HashSet<u64>,
    /// Numbers of the causes.
    numbers: HashMap<Cause, usize>,
    gaps: Gaps,
}

/// Stages around the gaps of a step, or of a pause between steps.
struct Around<'a> {
    within: Interval,
    /// The step, or the one before the pause.
    step: usize,
    between_steps: bool,
    /// The host's stages.
    pieces: &'a [Piece],
    streams: Vec<Stream>,
}

/// When a backend was in a phase of any subregion.
struct Stream {
    backend: usize,
    phase: Phase,
    times: DisjointIntervals,
}

impl Stream {
    /// All of a step, those that compute first.
    fn all(step: &RunStep) -> Vec<Self> {
        let mut times: BTreeMap<(bool, usize, Phase), Vec<Interval>> = BTreeMap::new();
        for activity in &step.activities {
            if let (Some(backend), Source::Subregion { .. }) = (activity.backend, activity.source) {
                let key = (activity.phase.is_transfer(), backend, activity.phase);
                times.entry(key).or_default().push(activity.time);
            }
        }
        let stream = |((_, backend, phase), times)| Self {
            backend,
            phase,
            times: DisjointIntervals::of(times),
        };
        times.into_iter().map(stream).collect()
    }
}

impl Finder<'_> {
    /// Adds up the causes of all gaps of every backend, and at last of all of them.
    fn find(&mut self, around: &Around<'_>, computing: &[&DisjointIntervals], sums: &mut [Sum]) {
        for (of, (computing, sum)) in computing.iter().zip(sums).enumerate() {
            for time in computing.gaps(around.within) {
                let one = self.divide(time, of, around);
                if of == self.run.backends.len() {
                    self.gaps.common.push(Gap {
                        step: around.step,
                        between_steps: around.between_steps,
                        time,
                        causes: one.longest(),
                    });
                }
                sum.merge(one);
            }
        }
    }

    /// Divides one gap of a backend by its causes.
    fn divide(&mut self, gap: Interval, of: usize, around: &Around<'_>) -> Sum {
        let mut sum = Sum::default();
        let mut begin = gap.begin();
        for (time, open) in overlapping(around.pieces, gap) {
            self.outside(Interval::new(begin, time.begin()), of, around, &mut sum);
            begin = time.end();
            let of_backend = |at: &usize| self.run.backend_of(&self.trace.spans[*at]).is_some();
            let backends: Vec<usize> = open.iter().copied().filter(of_backend).collect();
            // Stages of the host that surround subregions wait for them.
            let (spans, explained) = if backends.is_empty() {
                (open, self.told_by_streams(time, of, around, &mut sum))
            } else {
                (&backends[..], 0)
            };
            let each = (time.length() - explained) as f64 / spans.len() as f64;
            for span in spans.iter().filter(|_| each > 0.0) {
                let cause = self.number(Cause::of(&self.trace.spans[*span], &self.parents));
                sum.add(cause, each, Some(*span));
            }
        }
        self.outside(Interval::new(begin, gap.end()), of, around, &mut sum);
        sum
    }

    /// A part of a gap in which no stage was open.
    fn outside(&mut self, time: Interval, of: usize, around: &Around<'_>, sum: &mut Sum) {
        let rest = time.length() - self.told_by_streams(time, of, around, sum);
        if rest > 0 {
            let cause = self.number(Cause::default());
            sum.add(cause, rest as f64, None);
        }
    }

    /// The time during which backends worked on subregions.
    fn told_by_streams(
        &mut self,
        time: Interval,
        of: usize,
        around: &Around<'_>,
        sum: &mut Sum,
    ) -> u64 {
        let mut explained = 0;
        for stream in &around.streams {
            let own = (stream.backend, stream.phase) == (of, Phase::Compute);
            let took = stream.times.covers(time).min(time.length() - explained);
            if own || took == 0 {
                continue;
            }
            let backend = &self.run.backends[stream.backend];
            let cause = self.number(Cause {
                stage: Some(format!("{backend} {}", stream.phase.name())),
                ..Cause::default()
            });
            sum.add(cause, took as f64, None);
            explained += took;
        }
        explained
    }

    fn number(&mut self, cause: Cause) -> usize {
        let causes = &mut self.gaps.causes;
        *self.numbers.entry(cause).or_insert_with_key(|cause| {
            causes.push(cause.clone());
            causes.len() - 1
        })
    }
}

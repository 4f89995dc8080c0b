//! Merges the traces of many ranks into one.
//!
//! Each rank becomes a [backend](nearfield_trace::ranks) of the merged trace, `rank 0`, `rank 1`
//! and so on. So ranks get all reports on backends: rows of the timeline, shares of time,
//! imbalance, and the stages that kept a rank from computing. Clocks of machines are aligned by the
//! start times in the headers, to the millisecond at best.

use nearfield_trace::{
    Error, ErrorKind, Trace, Writer,
    model::{Interval, Lost, Record, Span, Step, Subregion},
    ranks::{assign_span, assign_subregion, joint_steps, of_spans},
};
use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

/// Writes the traces of the ranks of one run as one trace.
///
/// # Errors
/// [`ErrorKind::SameRank`] if two traces belong to one rank, and [`ErrorKind::Merged`] if the
/// output fails.
pub fn write_merged(traces: &[Trace], to: impl Write) -> Result<(), Error> {
    let mut ranks: BTreeMap<u32, &Trace> = BTreeMap::new();
    for (place, trace) in traces.iter().enumerate() {
        let rank = trace.header.rank.unwrap_or(place as u32);
        if let Some(other) = ranks.insert(rank, trace) {
            let names = [other.name.clone(), trace.name.clone()];
            return Err(ErrorKind::SameRank { rank, names }.into());
        }
    }
    write(&ranks, to).map_err(|source| ErrorKind::Merged(source).into())
}

/// The trace of a rank, with its shift to the clock and the numbers of the merged trace.
struct RankTrace<'a> {
    rank: u32,
    trace: &'a Trace,
    /// Nanoseconds from the start of the first trace to that of this one.
    shift: u64,
    /// Added to the numbers of spans.
    ids: u64,
    /// The ranks of its spans, where it is a trace of several.
    ranks: HashMap<u64, u32>,
}

impl RankTrace<'_> {
    fn at(&self, at: u64) -> u64 {
        at.saturating_add(self.shift)
    }

    fn interval(&self, time: Interval) -> Interval {
        Interval::new(self.at(time.begin()), self.at(time.end()))
    }

    fn span(&self, span: &Span) -> Span {
        let rank = self.ranks.get(&span.id).copied().unwrap_or(self.rank);
        let number = |id: u64| {
            if id == 0 {
                0
            } else {
                id.saturating_add(self.ids)
            }
        };
        let mut span = Span {
            id: number(span.id),
            parent: number(span.parent),
            time: self.interval(span.time),
            thread: format!("rank {rank}").into(),
            ..span.clone()
        };
        assign_span(&mut span, rank);
        span
    }

    fn subregion(&self, one: &Subregion) -> Subregion {
        let shifted = |time: Option<Interval>| time.map(|time| self.interval(time));
        // Times of an emulated device have a clock of their own.
        let [upload, compute, download, exchange] =
            [one.upload, one.compute, one.download, one.exchange].map(|time| {
                if one.is_virtual() {
                    time
                } else {
                    shifted(time)
                }
            });
        let mut one = Subregion {
            upload,
            compute,
            download,
            exchange,
            ..one.clone()
        };
        assign_subregion(&mut one, self.rank);
        one
    }
}

fn write(ranks: &BTreeMap<u32, &Trace>, to: impl Write) -> std::io::Result<()> {
    let start = ranks.values().map(|trace| trace.header.start_unix_ms).min();
    let start = start.unwrap_or(0);
    let mut ids = 0u64;
    let part = |(rank, trace): (&u32, &&'_ Trace)| {
        let later = trace.header.start_unix_ms - start;
        let part = (*rank, later.saturating_mul(1_000_000), ids);
        let largest = trace.spans.iter().map(|span| span.id).max();
        ids = ids.saturating_add(largest.unwrap_or(0));
        part
    };
    let numbers: Vec<(u32, u64, u64)> = ranks.iter().map(part).collect();
    let parts: Vec<RankTrace<'_>> = (numbers.into_iter().zip(ranks.values()))
        .map(|((rank, shift, ids), trace)| RankTrace {
            rank,
            trace,
            shift,
            ids,
            ranks: of_spans(&trace.spans),
        })
        .collect();
    let Some(first) = parts.first() else {
        return Err(std::io::Error::other("no traces were given"));
    };
    let mut header = first.trace.header.clone();
    (header.start_unix_ms, header.rank) = (start, None);
    let mut writer = Writer::new(to, &header)?;
    let mut last = 0;
    let steps = parts.iter().flat_map(|part| {
        part.trace.steps.iter().map(|step| Step {
            time: part.interval(step.time),
            ..step.clone()
        })
    });
    for step in joint_steps(steps) {
        last = last.max(step.time.end());
        writer.write(&Record::Step(step))?;
    }
    for part in &parts {
        let (rank, trace) = (part.rank, part.trace);
        for span in &trace.spans {
            let span = part.span(span);
            last = last.max(span.time.end());
            writer.write(&Record::Span(span))?;
        }
        for one in &trace.subregions {
            writer.write(&Record::of_subregion(part.subregion(one)))?;
        }
        for one in &trace.retunes {
            let mut one = one.clone();
            (one.at, one.reason) = (
                part.at(one.at),
                format!("rank {rank}: {}", one.reason).into(),
            );
            writer.write(&Record::of_retune(one))?;
        }
        for one in &trace.occupancies {
            let mut one = one.clone();
            one.at = part.at(one.at);
            writer.write(&Record::Occupancy(one))?;
        }
        for note in &trace.notes {
            let mut note = note.clone();
            (note.at, note.message) = (
                part.at(note.at),
                format!("rank {rank}: {}", note.message).into(),
            );
            writer.write(&Record::Note(note))?;
        }
        if trace.damage.dropped > 0 {
            let records = trace.damage.dropped;
            writer.write(&Record::Lost(Lost { records }))?;
        }
    }
    writer.finish(last)?;
    Ok(())
}

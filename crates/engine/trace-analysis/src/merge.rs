//! One trace of the traces of many ranks.
//!
//! Each rank becomes a [backend](nearfield_trace::ranks) of the merged trace, `rank 0`, `rank 1`
//! and so on. So everything that is told of backends is told of ranks: rows of the timeline, shares
//! of time, imbalance, and the stages that kept a rank from computing. Clocks of machines are
//! aligned by the starts that headers state, to the millisecond at best.

use nearfield_trace::{
    Error, ErrorKind, Trace, Writer,
    model::{Interval, Lost, Record, Span, Step, Subregion},
    ranks::{give_span, give_subregion, of_spans, together},
};
use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

/// Writes the traces of the ranks of one run as one trace.
///
/// # Errors
/// [`ErrorKind::SameRank`] if two files are those of one rank, and [`ErrorKind::Merged`] for what
/// the output says.
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

/// A rank's trace on the clock and with the numbers of the merged one.
struct Part<'a> {
    rank: u32,
    trace: &'a Trace,
    /// Nanoseconds from the start of the first trace to that of this one.
    shift: u64,
    /// Added to the numbers of spans.
    ids: u64,
    /// The ranks of its spans, where it is a trace of several.
    ranks: HashMap<u64, u32>,
}

impl Part<'_> {
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
        give_span(&mut span, rank);
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
        give_subregion(&mut one, self.rank);
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
    let parts: Vec<Part<'_>> = (numbers.into_iter().zip(ranks.values()))
        .map(|((rank, shift, ids), trace)| Part {
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
    for step in together(steps) {
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

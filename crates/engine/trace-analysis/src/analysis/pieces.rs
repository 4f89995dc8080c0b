//! The innermost open stages at every moment.

use super::intervals::{DisjointIntervals, clip};
use nearfield_trace::{Trace, model::Interval};
use std::collections::{BTreeSet, HashMap};

/// An interval of time in which the same stages were open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) time: Interval,
    /// Indices of the spans that no other span was open in: more than one where threads work side
    /// by side.
    pub(crate) open: Vec<usize>,
}

/// Maximum number of stages that count at one moment, which bounds the memory that pieces of any
/// trace take.
const MAX_OPEN: usize = 64;

/// The pieces of time in which any of `spans` was open, ascending.
pub(crate) fn pieces(trace: &Trace, spans: impl IntoIterator<Item = usize>) -> Vec<Piece> {
    let spans: Vec<usize> = spans
        .into_iter()
        .filter(|span| trace.spans[*span].time.length() > 0)
        .collect();
    let by_id: HashMap<u64, usize> = spans
        .iter()
        .map(|span| (trace.spans[*span].id, *span))
        .collect();
    let outer = |span: usize| by_id.get(&trace.spans[span].parent).copied();
    let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * spans.len());
    for span in spans {
        let time = trace.spans[span].time;
        moments.extend([(time.begin(), true, span), (time.end(), false, span)]);
    }
    // Ends come before beginnings at the same moment.
    moments.sort_unstable();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut inside: HashMap<usize, usize> = HashMap::new();
    let mut innermost: BTreeSet<usize> = BTreeSet::new();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut since = 0;
    for (at, begins, span) in moments {
        if at > since && !innermost.is_empty() {
            pieces.push(Piece {
                time: Interval::new(since, at),
                open: innermost.iter().copied().take(MAX_OPEN).collect(),
            });
        }
        since = at;
        let outer = outer(span).filter(|outer| *outer != span);
        if begins {
            open.insert(span);
        } else {
            open.remove(&span);
        }
        if let Some(outer) = outer {
            let parts = inside.entry(outer).or_default();
            *parts = if begins {
                *parts + 1
            } else {
                parts.saturating_sub(1)
            };
        }
        for span in [Some(span), outer].into_iter().flatten() {
            let is_innermost = inside.get(&span).is_none_or(|parts| *parts == 0);
            if is_innermost && open.contains(&span) {
                innermost.insert(span);
            } else {
                innermost.remove(&span);
            }
        }
    }
    pieces
}

/// The pieces that overlap an interval, each with the common part; pieces ascend.
pub(crate) fn overlapping(
    pieces: &[Piece],
    with: Interval,
) -> impl Iterator<Item = (Interval, &[usize])> {
    let first = pieces.partition_point(|piece| piece.time.end() <= with.begin());
    pieces[first..]
        .iter()
        .take_while(move |piece| piece.time.begin() < with.end())
        .map(move |piece| (clip(piece.time, with), &piece.open[..]))
}

/// The time in which each span was the innermost one and nothing was `paused`, nanoseconds; spans
/// that are innermost at the same time share it, so their sum is at most the time that passed.
/// `counted` selects the spans of a piece that share its time.
pub(crate) fn own_times(
    pieces: &[Piece],
    paused: &DisjointIntervals,
    counted: impl Fn(&[usize]) -> Vec<usize>,
    own: &mut HashMap<usize, f64>,
) {
    for piece in pieces {
        let spans = counted(&piece.open);
        let time = piece.time.length() - paused.covers(piece.time);
        for span in &spans {
            *own.entry(*span).or_default() += time as f64 / spans.len() as f64;
        }
    }
}

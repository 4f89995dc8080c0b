//! The first track on which an interval fits.
//!
//! Intervals come in the order of their beginning. A track is open until the end of the innermost
//! interval on it; the tree holds how far an interval may reach on every track, and the maximum of
//! every pair below, so that the first track that is free for long enough is found in a time that
//! grows with the logarithm of their number. Ranks as threads and streams of many subregions make
//! thousands of tracks, and looking at each for every interval would take the square of that.
//!
//! **Invariant:** `tree[1]` is the root, and track k is leaf `width + k`.

use nearfield_trace::model::Interval;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Tracks and the intervals that are open on them.
#[derive(Debug)]
pub(super) struct Tracks {
    /// Whether an interval may lie within another on the same track.
    nest: bool,
    /// Ends of the open intervals of every track, the innermost last.
    open: Vec<Vec<u64>>,
    /// All of these ends with their tracks, the earliest first.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// The latest end that fits on a track; 0 behind the last track.
    tree: Vec<u64>,
    width: usize,
}

impl Tracks {
    /// No tracks yet.
    pub(super) fn new(nest: bool) -> Self {
        Self {
            nest,
            open: Vec::new(),
            ends: BinaryHeap::new(),
            tree: vec![0; 2],
            width: 1,
        }
    }

    /// The first track on which an interval fits, which may be a new one; it is open there now.
    ///
    /// Intervals are to come by ascending beginnings.
    pub(super) fn place(&mut self, time: Interval) -> usize {
        while let Some(&Reverse((end, track))) = self.ends.peek()
            && end <= time.begin()
        {
            self.ends.pop();
            let open = &mut self.open[track];
            while open.last().is_some_and(|end| *end <= time.begin()) {
                open.pop();
            }
            self.update(track);
        }
        let track = self.first(time.end()).unwrap_or_else(|| self.add());
        self.open[track].push(time.end());
        self.ends.push(Reverse((time.end(), track)));
        self.update(track);
        track
    }

    /// The first track that is free until `end`.
    fn first(&self, end: u64) -> Option<usize> {
        // An interval at time 0 fits on no track that does not exist.
        let end = end.max(1);
        let mut node = 1;
        if self.tree[node] < end {
            return None;
        }
        while node < self.width {
            node *= 2;
            node += usize::from(self.tree[node] < end);
        }
        Some(node - self.width)
    }

    /// One more track.
    fn add(&mut self) -> usize {
        let track = self.open.len();
        self.open.push(Vec::new());
        if track == self.width {
            self.width *= 2;
            self.tree = vec![0; 2 * self.width];
            for track in 0..track {
                self.tree[self.width + track] = self.reach(track);
            }
            for node in (1..self.width).rev() {
                self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
            }
        }
        track
    }

    /// The latest end that fits on a track now.
    fn reach(&self, track: usize) -> u64 {
        match self.open[track].last() {
            None => u64::MAX,
            Some(end) if self.nest => *end,
            Some(_) => 0,
        }
    }

    fn update(&mut self, track: usize) {
        let mut node = self.width + track;
        self.tree[node] = self.reach(track);
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule itself, which looks at every track.
    fn by_the_rule(times: &[Interval], nest: bool) -> Vec<usize> {
        let mut open: Vec<Vec<u64>> = Vec::new();
        let place = |time: &Interval| {
            let fits = |ends: &mut Vec<u64>| {
                ends.retain(|end| *end > time.begin());
                ends.last().is_none_or(|end| nest && time.end() <= *end)
            };
            let free = open.iter_mut().position(fits);
            let track = free.unwrap_or(open.len());
            if track == open.len() {
                open.push(Vec::new());
            }
            open[track].push(time.end());
            track
        };
        times.iter().map(place).collect()
    }

    #[test]
    fn intervals_go_to_the_first_track_on_which_they_fit() {
        let mut number = 7u64;
        let mut draw = |below: u64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (number >> 33) % below
        };
        for (span, length) in [(5, 3), (100, 10), (100, 90), (1000, 2)] {
            let mut times: Vec<Interval> = (0..300)
                .map(|_| {
                    let begin = draw(span);
                    Interval::new(begin, begin + draw(length))
                })
                .collect();
            times.sort_by_key(|time| (time.begin(), Reverse(time.end())));
            for nest in [false, true] {
                let mut tracks = Tracks::new(nest);
                let placed: Vec<usize> = times.iter().map(|time| tracks.place(*time)).collect();
                assert_eq!(placed, by_the_rule(&times, nest), "{span} {length} {nest}");
            }
        }
    }

    #[test]
    fn many_intervals_that_overlap_get_a_track_each() {
        // Looking at every track would be twenty thousand million looks.
        let many = 200_000;
        let mut tracks = Tracks::new(true);
        for k in 0..many {
            assert_eq!(tracks.place(Interval::new(k, many + k)), k as usize);
        }
        assert_eq!(tracks.place(Interval::new(3 * many, 3 * many)), 0);
    }
}

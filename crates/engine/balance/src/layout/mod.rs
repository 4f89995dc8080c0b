//! Subregions, and in each the order in which its bricks go over to the CPU backend.
//!
//! # Subregions
//!
//! Consecutive bricks of about equal work form a subregion, the unit of transfer: a step needs
//! some of them, at least 32, so that upload, computing and download of different ones overlap.
//! They may also have about equal numbers of points ([`Equal::Points`]), and so of bytes to send.
//!
//! # Thresholds as numbers
//!
//! Inside a subregion bricks are ranked by occupancy, ties by brick order. The CPU backend always
//! gets a beginning of that ranking, so a threshold is a number θ. Every brick has a key in
//! (occupancy − 1, occupancy), given by its rank among the ties, and goes to the CPU backend when
//! the key is below θ. A whole θ therefore means "occupancy ≤ θ"; θ = 8.25 means all bricks of up
//! to 8 points and a quarter of those with 9; θ = 0 is GPU only, and the largest occupancy or more
//! is CPU only. Ranks among ties are shifted against each other from subregion to subregion, so a
//! slowly rising θ moves one brick at a time also in a uniform cloud.
//!
//! [Ties] may also be all bricks of a range of occupancies. Their keys then lie evenly in that
//! range.
//!
//! # Sums
//!
//! A policy asks for the load of hundreds of thresholds. Work and targets are summed along the
//! ranking, and so are the bytes that each subregion must send; the load at any θ is then a
//! difference of two sums, found by bisection.
//!
//! **Invariant:** keys ascend within a subregion, and the work below θ never falls as θ rises.
//!
//! # Bytes to the GPU
//!
//! A brick's sources are sent with the first subregion in which a brick near it is the GPU's. For
//! one brick that subregion is a step function of θ: as θ passes the highest key of the bricks
//! near it in one subregion, the brick is no longer needed there and moves to the next. So each
//! subregion keeps a list of (key, bytes) where bytes change, and the bytes at any θ are found by
//! bisection.
//!
//! # Ties across subregions
//!
//! With [`Ties::Compact`] and [`Ties::Octaves`] keys of ties rise in brick order through all
//! subregions, so the CPU backend's part of a uniform cloud is one slab that grows at one face.

pub(crate) mod bricks;
pub(crate) mod cells;
pub(crate) mod class_sums;
mod dense;
pub(crate) mod load;
mod merge;
pub(crate) mod notches;
pub(crate) mod ties;
mod work;

use crate::{Error, ErrorKind, plan::cut::Cut};
use bricks::{Brick, Bricks};
use class_sums::ClassSums;
use load::{Load, Traffic, class_of};
use merge::sort_runs;
use nearfield_grid::memory::{
    Shortage, collected, copied, filled, make_room, make_room_for_one, with_room,
};
use std::{collections::HashMap, fmt, ops::Range, str::FromStr};
use ties::{Rank, Ties, ranks};

/// The name of the memory in messages.
const LAYOUT: &str = "a layout of bricks";

/// Subregions by default, and the least that tunes finely.
pub const SUBREGIONS: usize = 32;

/// What all subregions have about as much of.
///
/// Subregions of equal work end at about the same pace on a backend, so that transfers overlap with
/// computing evenly. Those of equal numbers of points send about as many bytes each; in a cloud
/// with dense places some of them are much more work than others. Written `work` and `points`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Equal {
    /// Pairs to be tested.
    #[default]
    Work,
    /// Points that get results.
    Points,
}

/// As on command lines: `work` and `points`. The text that is printed is read as the same value.
impl FromStr for Equal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "work" => Ok(Self::Work),
            "points" => Ok(Self::Points),
            _ => Err(ErrorKind::UnknownEqual(text.to_owned()).into()),
        }
    }
}

impl fmt::Display for Equal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Work => "work",
            Self::Points => "points",
        })
    }
}

/// How many subregions there are, and what they have about as much of.
///
/// A number stands for as many of equal work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subdivision {
    /// Maximum number of subregions.
    pub count: usize,
    /// What they have about as much of.
    pub equal: Equal,
}

impl From<usize> for Subdivision {
    fn from(count: usize) -> Self {
        let equal = Equal::Work;
        Self { count, equal }
    }
}

/// Bricks cut into subregions of about equal work, ready to be split between the backends.
///
/// All arrays that are indexed by place run over the *ladder*: the bricks with targets, by rank
/// within each subregion, subregion after subregion.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The bricks.
    bricks: Bricks,
    /// Bytes per point and pair.
    traffic: Traffic,
    /// Which bricks are ties.
    ties: Ties,
    /// The ties that every brick is among.
    ranks: Vec<Rank>,
    /// The subregions.
    subregions: Vec<Subregion>,
    /// Bricks that hold targets, by rank within each subregion.
    ladder: Vec<u32>,
    /// Class of occupancy of each of them.
    classes: Vec<u8>,
    /// Work by class before places of the ladder.
    by_class: ClassSums,
    /// Key of each of them, ascending within a subregion. Keys are positive, so that their bits are
    /// in the same order as they are.
    keys: Vec<f64>,
    /// All keys, ascending.
    sorted: Vec<f64>,
    /// Sums over the ladder before each place: work, targets.
    before: Vec<(u64, u64)>,
    /// The largest occupancy, or the end of its ties' range.
    most: u32,
    /// (key, bytes sent while the threshold is not above it and above the key before), ascending
    /// within a subregion.
    uploads: Vec<(f64, f64)>,
}

/// Consecutive bricks that move in one transfer.
///
/// Its bricks are consecutive in row order, so it is a slab of the cloud, some layers of bricks
/// thick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subregion {
    /// Its bricks.
    pub bricks: Range<usize>,
    /// Its places of the ladder.
    ladder: Range<usize>,
    /// Its steps of bytes to the GPU.
    uploads: Range<usize>,
}

/// The loads of both backends in a subregion at some threshold.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// The CPU backend's part.
    pub cpu: Load,
    /// The GPU backend's part.
    pub gpu: Load,
    /// Bytes to the GPU.
    pub upload: f64,
    /// Bytes back.
    pub download: f64,
}

/// Places of a ladder that the backends have, the CPU backend's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LadderCut {
    /// From the beginning of the ladder to the cut.
    pub(crate) cpu: Range<usize>,
    /// From the cut to the end of the ladder.
    pub(crate) gpu: Range<usize>,
}

impl Layout {
    /// Cuts `bricks` into at most so many `subregions` of about equal work, or points: the
    /// difference from the mean is below that of the largest brick. Each holds at least one brick.
    ///
    /// # Errors
    /// [`ErrorKind::NoSubregions`], [`ErrorKind::Memory`].
    pub fn new(
        bricks: Bricks,
        subregions: impl Into<Subdivision>,
        traffic: Traffic,
    ) -> Result<Self, Error> {
        Self::with_ties(bricks, subregions, traffic, Ties::Even)
    }

    /// As [`new`](Self::new), with another way of breaking ties.
    ///
    /// # Errors
    /// As there.
    pub fn with_ties(
        bricks: Bricks,
        subregions: impl Into<Subdivision>,
        traffic: Traffic,
        ties: Ties,
    ) -> Result<Self, Error> {
        let subregions = subregions.into();
        if subregions.count == 0 {
            return Err(ErrorKind::NoSubregions.into());
        }
        let ranges = equal_parts(&bricks, subregions)?;
        let ranks = ranks(&bricks, ties)?;
        let all = bricks.as_slice().len();
        let mut layout = Self {
            ladder: with_room(all, LAYOUT)?,
            classes: with_room(all, LAYOUT)?,
            by_class: ClassSums::new(all),
            keys: with_room(all, LAYOUT)?,
            sorted: Vec::new(),
            before: with_room(all + 1, LAYOUT)?,
            most: ranks.iter().map(|rank| rank.high).max().unwrap_or(0),
            ranks,
            ties,
            uploads: Vec::new(),
            subregions: with_room(ranges.len(), LAYOUT)?,
            bricks,
            traffic,
        };
        layout.before.push((0, 0));
        let mut ranked = Vec::new();
        for range in ranges {
            layout.push_subregion(range, &mut ranked)?;
        }
        if ties != Ties::Even {
            layout.break_ties_in_order()?;
        }
        layout.sorted = copied(&layout.keys, LAYOUT)?;
        // Keys ascend already, subregion by subregion.
        sort_runs(&mut layout.sorted, |key| key.to_bits(), LAYOUT)?;
        layout.rank_uploads()?;
        Ok(layout)
    }

    /// The ties that a brick is among.
    fn rank(&self, brick: u32) -> Rank {
        self.ranks[brick as usize]
    }

    /// The number that bricks are ranked by.
    fn rank_of(&self, brick: u32) -> u32 {
        self.rank(brick).high
    }

    /// Gives ties keys that rise in brick order through all subregions.
    ///
    /// Two passes: the first counts the ties of every range, the second numbers them in brick
    /// order and spreads their keys over the range.
    fn break_ties_in_order(&mut self) -> Result<(), Shortage> {
        let mut counts: HashMap<u32, (u32, u32)> = HashMap::new();
        for &brick in &self.ladder {
            let rank = self.ranks[brick as usize].high;
            let ranks = counts.len() + 1;
            (counts.try_reserve(1))
                .map_err(|_| Shortage::of::<(u32, (u32, u32))>(ranks, LAYOUT))?;
            counts.entry(rank).or_default().0 += 1;
        }
        for (key, &brick) in self.keys.iter_mut().zip(&self.ladder) {
            let rank = self.ranks[brick as usize];
            if let Some((all, before)) = counts.get_mut(&rank.high) {
                *key = rank.key((f64::from(*before) + 0.5) / f64::from(*all));
                *before += 1;
            }
        }
        Ok(())
    }

    /// The next subregion; `ranked` is room for its bricks with their ranks.
    ///
    /// Ranks the bricks of the subregion, gives them keys among their ties, and extends the sums.
    /// The shift of keys against the subregion before is a multiple of the golden ratio, which
    /// spreads them evenly for any number of subregions.
    fn push_subregion(
        &mut self,
        range: Range<usize>,
        ranked: &mut Vec<u64>,
    ) -> Result<(), Shortage> {
        let all = self.bricks.as_slice();
        let first = self.ladder.len();
        ranked.clear();
        make_room(ranked, range.len(), LAYOUT)?;
        ranked.extend(
            (range.clone().filter(|&brick| all[brick].targets > 0))
                .map(|brick| (u64::from(self.ranks[brick].high) << 32) | brick as u64),
        );
        ranked.sort_unstable();
        // Room for the ladder and what goes with it was made for all bricks.
        self.ladder.extend(ranked.iter().map(|&brick| brick as u32));
        // The fractional parts of multiples of the golden ratio lie evenly in 0..1.
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let shift = ((self.subregions.len() as f64 + 0.5) * GOLDEN).fract();
        let ranks = &self.ranks;
        let rank = |brick: u32| ranks[brick as usize];
        for ties in self.ladder[first..].chunk_by(|&a, &b| rank(a) == rank(b)) {
            let (rank, count) = (rank(ties[0]), ties.len() as f64);
            self.keys
                .extend((0..ties.len()).map(|tie| rank.key((tie as f64 + shift) / count)));
        }
        for &brick in &self.ladder[first..] {
            let (work, targets) = self.before[self.before.len() - 1];
            let brick = &all[brick as usize];
            self.classes.push(class_of(brick.targets) as u8);
            self.before.push((
                work.saturating_add(brick.work),
                targets + u64::from(brick.targets),
            ));
        }
        let works = self.ladder[first..].iter().zip(&self.classes[first..]);
        let works = works.map(|(&brick, &class)| {
            let work = all[brick as usize].work;
            (usize::from(class), work as f64)
        });
        self.by_class.push(first, works)?;
        self.subregions.push(Subregion {
            bricks: range,
            ladder: first..self.ladder.len(),
            uploads: 0..0,
        });
        Ok(())
    }

    /// A brick is sent to the GPU with the first subregion in which a brick near it is the GPU's,
    /// that is, has a key of at least θ. As θ passes the highest key of one subregion, the brick is
    /// no longer needed there and moves on to the next one that has a higher key.
    fn rank_uploads(&mut self) -> Result<(), Shortage> {
        if self.traffic.sends_nothing() {
            return Ok(());
        }
        let count = self.bricks.as_slice().len();
        let mut key_of = filled(count, f64::NEG_INFINITY, LAYOUT)?;
        for (&brick, &key) in self.ladder.iter().zip(&self.keys) {
            key_of[brick as usize] = key;
        }
        let ends = self.subregions.iter().map(|s| s.bricks.end as u32);
        let ends = collected(ends, LAYOUT)?;
        let mut needs = filled(self.subregions.len(), Vec::new(), LAYOUT)?;
        // The first subregion that a brick near this one lies in, or an earlier one.
        let mut first = 0;
        for brick in 0..count {
            let bytes = self.traffic.upload(&self.bricks.as_slice()[brick]);
            let near = self.bricks.near(brick);
            let (&[lowest, ..], true) = (near, bytes > 0.0) else {
                continue;
            };
            while first > 0 && lowest < ends[first - 1] {
                first -= 1;
            }
            while ends[first] <= lowest {
                first += 1;
            }
            let (mut passed, mut home, mut rest) = (f64::NEG_INFINITY, first, near);
            // Near bricks ascend, and so do their subregions.
            while let [next, ..] = rest {
                while ends[home] <= *next {
                    home += 1;
                }
                let there = if rest[rest.len() - 1] < ends[home] {
                    rest.len()
                } else {
                    rest.partition_point(|&other| other < ends[home])
                };
                let keys = rest[..there].iter().map(|&other| key_of[other as usize]);
                // No key is NaN, and plain comparisons are quicker than `f64::max`.
                let until = keys.fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
                rest = &rest[there..];
                if until > passed {
                    make_room_for_one(&mut needs[home], LAYOUT)?;
                    needs[home].push((until, bytes));
                    if passed > f64::NEG_INFINITY {
                        make_room_for_one(&mut needs[home], LAYOUT)?;
                        needs[home].push((passed, -bytes));
                    }
                    passed = until;
                }
            }
        }
        for (subregion, mut needs) in self.subregions.iter_mut().zip(needs) {
            sort_runs(&mut needs, |need| need.0.to_bits(), LAYOUT)?;
            let mut bytes = 0.0;
            for need in needs.iter_mut().rev() {
                bytes += need.1;
                need.1 = bytes;
            }
            let first = self.uploads.len();
            (self.uploads.try_reserve(needs.len()))
                .map_err(|_| Shortage::of::<(f64, f64)>(first + needs.len(), LAYOUT))?;
            self.uploads.extend(needs);
            subregion.uploads = first..self.uploads.len();
        }
        Ok(())
    }

    /// The bricks.
    pub fn bricks(&self) -> &Bricks {
        &self.bricks
    }

    /// Bytes per point and pair.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The subregions, in brick order.
    pub fn subregions(&self) -> &[Subregion] {
        &self.subregions
    }

    /// Bricks of a subregion that hold targets, in the order in which they go over to the CPU
    /// backend.
    pub fn ladder(&self, subregion: usize) -> &[u32] {
        &self.ladder[self.subregions[subregion].ladder.clone()]
    }

    /// Work of a subregion.
    pub fn work(&self, subregion: usize) -> u64 {
        let ladder = &self.subregions[subregion].ladder;
        self.before[ladder.end].0 - self.before[ladder.start].0
    }

    /// Work of the first `bricks` bricks of a subregion's ladder.
    pub fn work_below(&self, subregion: usize, bricks: usize) -> u64 {
        let ladder = &self.subregions[subregion].ladder;
        self.before[ladder.start + bricks.min(ladder.len())].0 - self.before[ladder.start].0
    }

    /// The threshold of CPU only: the largest occupancy, or the end of the range of ties that has
    /// it.
    pub fn highest(&self) -> f64 {
        f64::from(self.most)
    }

    /// How many bricks of a subregion's ladder lie below θ.
    fn below(&self, subregion: usize, theta: f64) -> usize {
        self.keys[self.subregions[subregion].ladder.clone()].partition_point(|&key| key < theta)
    }

    /// The cut that gives the first `bricks` bricks of a subregion's ladder to the CPU backend.
    ///
    /// A cut is by occupancy and number of ties, so it can be applied to another layout.
    pub fn cut_at(&self, subregion: usize, bricks: usize) -> Cut {
        let ladder = self.ladder(subregion);
        let occupancy = |place: usize| self.rank_of(ladder[place]);
        if bricks == 0 {
            return Cut::NONE;
        }
        if bricks >= ladder.len() {
            return Cut::ALL;
        }
        let first = ladder.partition_point(|&brick| self.rank_of(brick) < occupancy(bricks));
        Cut::Occupancy {
            occupancy: occupancy(bricks),
            ties: (bricks - first) as u32,
        }
    }

    /// How many bricks of its ladder a cut by occupancy gives to the CPU backend. (For a cut by
    /// brick order: how many bricks it gives.)
    ///
    /// Cuts from another layout are applied by occupancy and ties, and clipped to the bricks there
    /// are.
    pub fn bricks_of(&self, subregion: usize, cut: Cut) -> usize {
        let ladder = self.ladder(subregion);
        match cut {
            Cut::Leading(bricks) => (bricks as usize).min(ladder.len()),
            Cut::Occupancy { occupancy, ties } => {
                let first = ladder.partition_point(|&b| self.rank_of(b) < occupancy);
                let past = ladder.partition_point(|&b| self.rank_of(b) <= occupancy);
                past.min(first + ties as usize)
            }
        }
    }

    /// The cuts of all subregions at threshold `theta`.
    pub fn cuts(&self, theta: f64) -> Vec<Cut> {
        (0..self.subregions.len())
            .map(|subregion| self.cut_at(subregion, self.below(subregion, theta)))
            .collect()
    }

    /// The threshold that a subregion's cut amounts to, between 0 and [`highest`](Self::highest).
    ///
    /// The inverse of [`cut_at`](Self::cut_at): the key of the first brick that stays with the
    /// GPU.
    pub fn theta_of(&self, subregion: usize, cut: Cut) -> f64 {
        let ladder = self.ladder(subregion);
        let bricks = self.bricks_of(subregion, cut);
        if bricks == 0 {
            return 0.0;
        }
        if bricks == ladder.len() {
            return self.highest();
        }
        self.keys[self.subregions[subregion].ladder.start + bricks]
    }

    /// The CPU backend's share of the work at threshold `theta`, 0 to 1.
    ///
    /// A look-up per subregion, so it costs microseconds.
    pub fn share_at(&self, theta: f64) -> f64 {
        let subregions = 0..self.subregions.len();
        let below = |subregion| self.work_below(subregion, self.below(subregion, theta));
        let below: u64 = subregions.map(below).sum();
        below as f64 / (self.before[self.ladder.len()].0 as f64).max(1.0)
    }

    /// The threshold at which the CPU backend's share of the work is nearest to `share`: everything
    /// or nothing only where that is asked for.
    ///
    /// Found by bisection over θ: the share rises with θ, in steps of a brick.
    pub fn theta_at(&self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.highest());
        if share <= 0.0 || share >= 1.0 {
            return if share <= 0.0 { low } else { high };
        }
        // Bricks of a share next to an extreme may be few.
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            if self.share_at(middle) < share {
                low = middle
            } else {
                high = middle
            }
        }
        let off = |theta: f64| (self.share_at(theta) - share).abs();
        let ends = |theta: f64| [0.0, 1.0].contains(&self.share_at(theta));
        match (ends(low), ends(high)) {
            (true, false) => high,
            (false, true) => low,
            _ if off(low) < off(high) => low,
            _ => high,
        }
    }

    /// `count` + 1 thresholds whose shares of the work on the CPU backend rise evenly from 0 to 1.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`].
    ///
    /// For sweeps: the thresholds are those of bricks at which the shares are passed.
    pub fn thetas(&self, count: usize) -> Result<Vec<f64>, Error> {
        let work = |place: usize| self.before[place + 1].0 - self.before[place].0;
        let ranked = (0..self.ladder.len()).map(|place| (self.keys[place], work(place)));
        let mut ranked = collected(ranked, LAYOUT)?;
        sort_runs(&mut ranked, |brick| brick.0.to_bits(), LAYOUT)?;
        let total = self.before[self.ladder.len()].0 as f64;
        let mut thetas = with_room(count.saturating_add(1), LAYOUT)?;
        thetas.push(0.0);
        let (mut place, mut work) = (0, 0.0);
        for step in 1..count {
            let wanted = total * step as f64 / count as f64;
            while place < ranked.len() && work + ranked[place].1 as f64 / 2.0 < wanted {
                work += ranked[place].1 as f64;
                place += 1;
            }
            thetas.push(ranked.get(place).map_or(self.highest(), |next| next.0));
        }
        thetas.push(self.highest());
        Ok(thetas)
    }

    /// The loads of both backends in `subregion` when the whole layout is cut at `theta`, as the
    /// plan would say, without making it.
    pub fn estimate(&self, subregion: usize, theta: f64) -> Estimate {
        let LadderCut { cpu, gpu } = self.places(subregion, theta);
        let gpu = self.load(gpu);
        Estimate {
            cpu: self.load(cpu),
            gpu,
            upload: self.upload(subregion, theta),
            download: self.traffic.download(gpu.targets, gpu.work()),
        }
    }

    /// Places of the ladder that either backend has at `theta`.
    pub(crate) fn places(&self, subregion: usize, theta: f64) -> LadderCut {
        let ladder = &self.subregions[subregion].ladder;
        let cut = ladder.start + self.below(subregion, theta);
        LadderCut {
            cpu: ladder.start..cut,
            gpu: cut..ladder.end,
        }
    }

    /// Bytes that go to the GPU with a subregion at `theta`.
    ///
    /// Found by bisection in the subregion's steps.
    pub(crate) fn upload(&self, subregion: usize, theta: f64) -> f64 {
        let uploads = &self.uploads[self.subregions[subregion].uploads.clone()];
        let needed = uploads.partition_point(|need| need.0 < theta);
        uploads.get(needed).map_or(0.0, |need| need.1.max(0.0))
    }

    /// Bytes that come back for places of the ladder.
    pub(crate) fn download(&self, places: Range<usize>) -> f64 {
        let ((work, targets), (work_end, targets_end)) =
            (self.before[places.start], self.before[places.end]);
        self.traffic
            .download(targets_end - targets, work_end - work)
    }

    /// Work by class before places of the ladder.
    pub(crate) fn by_class(&self) -> &ClassSums {
        &self.by_class
    }

    /// The place behind a subregion's ladder.
    pub(crate) fn ladder_end(&self, subregion: usize) -> usize {
        self.subregions[subregion].ladder.end
    }

    /// Work before a place of the ladder.
    pub(crate) fn work_before(&self, place: usize) -> f64 {
        self.before[place].0 as f64
    }

    /// All keys, ascending: a threshold between two of them splits as either of them does.
    ///
    /// A search for a threshold tries these only.
    pub(crate) fn sorted_keys(&self) -> &[f64] {
        &self.sorted
    }

    /// The load of places of the ladder. Occupancies ascend along a ladder, so a class is one
    /// stretch, found by one look-up; ties of several classes are walked.
    fn load(&self, places: Range<usize>) -> Load {
        let mut load = Load {
            bricks: places.len() as u32,
            targets: self.before[places.end].1 - self.before[places.start].1,
            ..Load::default()
        };
        let mut place = places.start;
        while place < places.end {
            let class = self.class_at(place);
            let rest = &self.classes[place..places.end];
            let same = |&other: &u8| usize::from(other) == class;
            let end = place
                + match self.ties {
                    Ties::Even => rest.partition_point(same),
                    // Ties of several classes stand in brick order.
                    Ties::Compact | Ties::Octaves => {
                        rest.iter().take_while(|other| same(other)).count()
                    }
                };
            load.by_class[class] += self.before[end].0 - self.before[place].0;
            place = end;
        }
        load
    }

    /// Class of the brick at a place of the ladder.
    fn class_at(&self, place: usize) -> usize {
        usize::from(self.classes[place])
    }
}

/// Ranges of bricks whose borders lie as near as can be to equal shares of the work, or of the
/// points. A border is set before the brick whose middle passes the next equal share, so no range
/// misses its share by more than half a brick at either end.
fn equal_parts(bricks: &Bricks, parts: Subdivision) -> Result<Vec<Range<usize>>, Shortage> {
    let all = bricks.as_slice();
    let size = |brick: &Brick| match parts.equal {
        Equal::Work => u128::from(brick.work),
        Equal::Points => u128::from(brick.targets),
    };
    let (total, count): (u128, _) = (all.iter().map(size).sum(), parts.count);
    let mut ranges = with_room(count.min(all.len()), LAYOUT)?;
    let (mut first, mut done) = (0, 0u128);
    for (brick, next) in all.iter().enumerate() {
        let middle = done + size(next) / 2;
        // The border before this brick, when its middle lies past the next equal share.
        let passed = total > 0 && middle * count as u128 >= total * (ranges.len() as u128 + 1);
        if passed && brick > first && ranges.len() + 1 < count {
            ranges.push(first..brick);
            first = brick;
        }
        done += size(next);
    }
    if first < all.len() {
        ranges.push(first..all.len());
    }
    Ok(ranges)
}

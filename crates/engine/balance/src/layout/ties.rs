//! Bricks that a threshold does not tell apart, and which of them go to the CPU backend first.
//!
//! Inside a subregion bricks are ranked by occupancy. In a uniform cloud most bricks have nearly
//! the same occupancy, so the order among equals decides the shape of the CPU backend's part:
//! scattered bricks, each with a halo of its own, or one slab with little around it.
//!
//! # The usual occupancy
//!
//! Half of the work is below it. It is rounded to a power of 1.25, because points that move change
//! it a little from plan to plan, and thresholds should keep their meaning.
//!
//! # The three kinds
//!
//! * [`Ties::Even`]: each subregion gives the same share of its ties. Transfers overlap evenly,
//!   and the CPU backend's bricks are scattered through the cloud.
//! * [`Ties::Compact`]: ties go in brick order through the whole cloud. The CPU backend's bricks
//!   of usual occupancy form one slab; sparser or denser bricks are told apart one by one.
//! * [`Ties::Octaves`]: as compact, within each octave of occupancy.
//!
//! **Invariant:** every brick is among the ties of exactly one range, and ranges do not overlap.

use super::bricks::Bricks;
use nearfield_grid::memory::{Shortage, collected};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// The name of the memory in messages.
const LAYOUT: &str = "a layout of bricks";

/// The order in which bricks that a threshold does not tell apart go over to the CPU backend.
///
/// Engines use `Compact` with kernels that are as fast on sparse bricks as on full ones, and
/// `Octaves` with strategies that go from cell to cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Those of every subregion alike: bricks of the same occupancy are ties.
    #[default]
    Even,
    /// The first ones in brick order, so that the CPU backend's bricks lie together and little has
    /// to be brought in from around it. Bricks that hold about as much as is usual (more than a
    /// third of it and up to half as much again) are ties too.
    Compact,
    /// The first ones in brick order too, but only bricks of about the same occupancy are ties:
    /// those in the same octave. One octave lies about the usual occupancy.
    Octaves,
}

/// Occupancies that thresholds do not tell apart: those above `low` and up to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    /// Occupancies above this.
    pub(super) low: u32,
    /// Occupancies up to this.
    pub(super) high: u32,
}

impl Rank {
    /// Returns true if a brick of this occupancy is among the ties.
    pub(super) fn has(self, occupancy: u32) -> bool {
        self.low < occupancy && occupancy <= self.high
    }

    /// The key of the brick at `place`, 0 to 1, among the ties.
    pub(super) fn key(self, place: f64) -> f64 {
        f64::from(self.low) + place * f64::from(self.high - self.low)
    }
}

/// Factor between the occupancies that are taken to be the usual one.
const STEP: f64 = 1.25;

/// The ties that every brick is among. [`Ties::Even`] gives each occupancy a range of its own.
/// [`Ties::Compact`] joins the occupancies from a third of the usual one to half as much again.
/// [`Ties::Octaves`] joins those of an octave.
pub(super) fn ranks(bricks: &Bricks, ties: Ties) -> Result<Vec<Rank>, Shortage> {
    let occupancies = bricks.as_slice().iter().map(|brick| brick.targets);
    let single = |targets: u32| Rank {
        low: targets.saturating_sub(1),
        high: targets,
    };
    if ties == Ties::Even {
        return collected(occupancies.map(single), LAYOUT);
    }
    // In steps: points that move change it a little from plan to plan, and thresholds should keep
    // their meaning.
    let usual = STEP.powf(usual(bricks)?.log(STEP).round());
    let between = |low: f64, high: f64| {
        let [low, high] = [low, high].map(|at| at.min(f64::from(u32::MAX)) as u32);
        Rank { low, high }
    };
    // All that hold any number, ascending.
    let octaves = (-34..=34)
        .map(|octave| usual * f64::from(octave).exp2())
        .map(|middle| between(middle * FRAC_1_SQRT_2, middle * SQRT_2))
        .filter(|octave| octave.low < octave.high);
    let octaves = collected(octaves, LAYOUT)?;
    let usual = between(usual / 3.0, usual * 1.5);
    let rank = |targets: u32| match ties {
        Ties::Octaves if targets > 0 => {
            let place = octaves.partition_point(|octave| octave.high < targets);
            octaves.get(place).copied().unwrap_or(single(targets))
        }
        Ties::Compact if usual.has(targets) => usual,
        _ => single(targets),
    };
    collected(occupancies.map(rank), LAYOUT)
}

/// The occupancy that half of the work is below: a median weighted by work, so that a spray of
/// nearly empty bricks does not decide what is usual.
fn usual(bricks: &Bricks) -> Result<f64, Shortage> {
    let loads = (bricks.as_slice().iter()).map(|brick| (brick.targets, brick.work));
    let mut loads = collected(loads, LAYOUT)?;
    loads.sort_unstable();
    let all: u64 = loads.iter().map(|load| load.1).fold(0, u64::saturating_add);
    let mut below = 0u64;
    let middle = loads.iter().find(|load| {
        below = below.saturating_add(load.1);
        below >= all / 2
    });
    Ok(middle.map_or(1.0, |load| f64::from(load.0.max(1))))
}

//! What a session consists of, as libFuzzer's bytes spell it. Numbers are small and relative to the
//! radius or the box, so that most sessions are about points that are close to each other.

use arbitrary::{Arbitrary, Unstructured};

/// Actions of a session that are carried out; those after them are not looked at.
pub const MAX_ACTIONS: usize = 12;

/// Choices of points in a set at most.
const MAX_CHOICES: usize = 16;

/// An engine and what is done with it.
#[derive(Debug, Clone, Arbitrary)]
pub struct Session {
    /// The engine's settings.
    pub setup: Setup,
    /// The first set.
    pub first: Points,
    /// The calls, in order.
    pub actions: Vec<Action>,
}

/// Settings of an engine.
#[derive(Debug, Clone, Arbitrary)]
pub struct Setup {
    /// The first search radius.
    pub radius: RadiusChoice,
    /// The axes of the domain.
    pub axes: [AxisChoice; 3],
    /// Threads less one, modulo 3.
    pub threads: u8,
    /// Which of the processor's SIMD levels, modulo their number.
    pub simd: u8,
    /// Which number of cells per radius, 1 to 8.
    pub subdivision: u8,
    /// Full or half lists.
    pub lists: ListChoice,
}

/// A search radius.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum RadiusChoice {
    /// One of [`places::RADII`](super::places), modulo their number.
    Named(u8),
    /// This many 256ths.
    Share(u16),
    /// Any bits: mostly refused.
    Bits(u32),
}

/// One axis of the domain; lengths are relative to the first radius.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum AxisChoice {
    /// Not periodic.
    Open,
    /// Half a radius and this many quarters.
    Quarters(u8),
    /// A fifth of a radius and this many 4096ths.
    Share(u16),
    /// Not periodic either, so that this is as likely as the rest.
    OpenToo,
}

/// Which lists.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum ListChoice {
    /// Both ends of a pair list it.
    Full,
    /// One end does.
    Half,
}

/// A call, or a few that belong together. Sets are counted modulo those there are.
#[derive(Debug, Clone, Arbitrary)]
pub enum Action {
    /// Adds a set.
    Add(Points),
    /// Gives a set new points, as many as there are.
    Update(u8, Points),
    /// Moves a set by 64ths of the radius.
    Shift(u8, [i8; 3]),
    /// Gives a set points, one with a coordinate that is not finite; must be refused.
    Spoil(u8, Points, Spoiled),
    /// Adds a set of such points; must be refused.
    AddSpoiled(Points, Spoiled),
    /// Another radius.
    Radius(RadiusChoice),
    /// Activates the search of the first set among the second.
    Activate(u8, u8),
    /// Deactivates it.
    Deactivate(u8, u8),
    /// Writes the lists; all of them are compared.
    Find,
    /// Neighbours of free positions in a set.
    Query(u8, Points),
    /// Neighbours by callback of one point of the first set in the second.
    Visit(u8, u8, u16),
    /// A traversal of the first set's pairs with the second.
    Traverse(u8, u8),
    /// The order that makes a set local in memory, applied to it.
    Sort(u8),
}

/// A coordinate that is not finite.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Spoiled {
    /// Which point, modulo their number.
    pub point: u8,
    /// Which axis, modulo 3.
    pub axis: u8,
    /// The coordinate.
    pub value: NotFinite,
}

/// A number that is no coordinate.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum NotFinite {
    /// A NaN with these further bits.
    Nan(u16),
    /// ∞.
    Infinity,
    /// −∞.
    NegativeInfinity,
}

/// The points of a set, and how they are handed over.
#[derive(Debug, Clone, Arbitrary)]
pub struct Points {
    /// Where the whole set lies.
    pub origin: Origin,
    /// How its coordinates lie in memory.
    pub layout: Layout,
    /// One after the other.
    #[arbitrary(with = several)]
    pub points: Vec<PointChoice>,
}

/// How coordinates are handed over.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Layout {
    /// Next to each other.
    Packed,
    /// With this many bytes between them (modulo 16), aligned or not.
    Strided(u8),
}

/// Where a set lies.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Origin {
    /// Around zero.
    Zero,
    /// Whole radii away.
    Near([i8; 3]),
    /// These powers of two of the radius away, to either side.
    Far([i8; 3]),
}

/// One point, or several.
#[derive(Debug, Clone, Arbitrary)]
pub enum PointChoice {
    /// At a place.
    At([Place; 3]),
    /// Exactly on an earlier point, counted back from the last one.
    Copy(u8),
    /// About a radius from an earlier point in this direction, and some floats more or less.
    OnSphere(u8, [i8; 3], i8),
    /// Whole boxes from an earlier point.
    Image(u8, [i8; 3]),
    /// This many (modulo 40) around a place, within shares of the radius (in 32nds).
    Cluster([Place; 3], u8, u8),
    /// As many as a large set has, spread over so many radii that each has few neighbours; or, much
    /// more often, a few (modulo 16).
    Swarm(u16),
}

/// One coordinate.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Place {
    /// 4096ths of the radius.
    Share(i16),
    /// Steps of a cell of the given subdivision (modulo 8), and some floats more or less.
    Face(i8, u8, i8),
    /// Quarters of the box (of the radius where open), and some floats more or less.
    Box(i8, i8),
    /// A zero of either sign or a number next to it.
    Tiny(i8),
    /// Any finite number.
    Bits(u32),
}

/// Any number of choices: a plain `Vec` would end after the first one half of the time.
fn several(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<PointChoice>> {
    let count = bytes.int_in_range(0..=MAX_CHOICES)?;
    (0..count).map(|_| bytes.arbitrary()).collect()
}

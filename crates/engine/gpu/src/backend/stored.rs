//! Pair kernels over lists that are on the device.
//!
//! Lists name sources by the caller's index. The first traversal over the lists of a search brings
//! their entries into a second array, as places among the sorted sources ([`SlotsOfLists`]); the
//! traversals that follow read that, and so neighbours that are near each other in memory. Sources
//! of small boxes may stand in a list several times, once per image, while a traversal tests each
//! through all of its images: such lists are sorted, and repeats are passed over.
//!
//! Lists with a skin are traversed at the positions of now ([`FollowedPoints`]), which are kept in
//! the sorted order of the build. The kernel that brings them there also finds the largest
//! displacement, and traversals read it on the device: they do nothing if a pair may be missing.
//! Cut-offs of types are larger by the skin in the search, so its lists hold pairs beyond the
//! cut-off of now; a traversal asks for that again, by a program with filters.
//!
//! # Filters
//!
//! What a search has left out of the lists need not be asked again: in a box where a source can be
//! near through one image only, every entry of a list is one pair, and programs without filters
//! serve. Where a source can be near through several images, filters may keep some of these. Then
//! the program has them too: cut-offs, and the last of the nearest pairs, which tells by distance
//! and image what comes after it. Targets that are not chosen have no lists; those of a share lie
//! in the order of the share, whose arrays are read then.
//!
//! # Double precision
//!
//! Programs in `f64` read the positions as given, 24 bytes a point, beside the first channel of a
//! source. They find nearest images in `f64`, decide in `f64`, and round displacements to `f32` for
//! the kernel. Entries, places and repeats are the same arrays in either precision.
//!
//! # Order
//!
//! A sum over lists has the pairs of a fused traversal in the order of the lists, shared by the
//! threads of a target, so it may differ in the last bits.
//!
//! **Invariant:** lists are traversed only with the sorts that they were made of, which
//! [`DeviceLists`] remembers; places in an array of entries are those of one search of it.

use super::{
    filter::DeviceCutoffs,
    gpu::GpuBackend,
    lattice::DeviceLattice,
    lists::DeviceLists,
    moved::Moved,
    nearest_image::{nearest_is_certain, rounded_inverse},
    points::DevicePoints,
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DeviceView, PositionNumber},
    launch::{
        Entries, FilteredWalk, Following, Lattice, ListsToSort, Outlet, PairArrays, Points, Stored,
    },
    memory::{HostCopy, kept_buffers},
    traversal::{Candidates, Filtering, Strategy, Traversal, Work},
};
use nearfield_grid::Precision;
use nearfield_grid::{self as grid, Bounds, Radius};

/// A relative margin, far above the rounding of a difference and of an image vector in `f32`, 2⁻²²
/// together: images beyond it cannot be within the radius.
const SLACK: f64 = 1.0 / (1u64 << 20) as f64;

kept_buffers! {
    /// Entries of lists as sorted places of sources, made by the first traversal of a search.
    pub struct SlotsOfLists {
        /// The sorted place of every source, by the caller's index.
        of_points: u32 = "sorted places of points",
        /// The sorted place of the source of every entry.
        entries: u32 = "sorted places of neighbours",
    }
    with {
        /// The search whose entries these are.
        search: u64,
    }
}

kept_buffers! {
    /// Positions of a set since its lists with a skin were built.
    pub struct FollowedPoints {
        /// Position of now, and the caller's index as bits, of every point in the sorted order of
        /// the build.
        now: [f32; 4] = "positions of now",
        /// In double precision the position of now of every point in that order.
        now_given: [f64; 3] = "positions of now",
        /// Bits of the largest squared displacement in turn, and a word that is zero.
        moved: u32 = "displacements",
        /// Positions in the caller's order, for a build: in double precision two elements each.
        given: f32 = "positions",
    }
    with {
        /// Which of the two words is the displacement of now.
        turn: usize,
        /// Positions were given since the build.
        following: bool,
        /// Where the host reads the displacement.
        answer: Option<HostCopy<u32>>,
    }
}

/// Lists with a skin, as a traversal reads them.
#[derive(Debug, Clone, Copy)]
pub struct Skin<'a> {
    /// Pairs beyond it are passed over.
    pub radius: Radius,
    /// Positions of the targets.
    pub targets: &'a FollowedPoints,
    /// Positions of the sources.
    pub sources: &'a FollowedPoints,
    /// How far two points may have moved together before a pair may be missing.
    pub allowed: f64,
    /// Cut-offs of types within the radius, for the larger ones that lists were found with.
    pub cutoffs: Option<&'a DeviceCutoffs>,
}

/// Lists that a pair kernel is evaluated over.
#[derive(Debug)]
pub struct ListedPairs<'a> {
    /// The sets that the lists were found of.
    pub of: PairOfPoints<'a>,
    /// Full lists of these.
    pub lists: &'a DeviceLists,
    /// Kept with the lists.
    pub slots: &'a mut SlotsOfLists,
    /// None for the radius and the positions of the search.
    pub since: Option<Since<'a>>,
}

/// What has changed since lists were found.
#[derive(Debug, Clone, Copy)]
pub enum Since<'a> {
    /// Lists with a skin, whose points the device follows.
    Skin(Skin<'a>),
    /// Positions that the host has sent, knowing that no pair is missing.
    Moved(Moved<'a>),
}

/// What a traversal over lists is started with.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitLists {
    /// The arguments of its kernel.
    stored: Stored,
    candidates: Candidates,
    /// Pairs beyond it are passed over.
    radius: Radius,
    /// What the lists left out of the pairs within it, where the kernel has to ask again.
    filtering: Filtering,
    /// Sorted targets and sources, at the positions of now.
    points: [Points; 2],
    /// Squared cut-offs in the place of those of the search; 0 for these.
    cutoffs: u64,
    /// Starts, lengths and entries.
    lists: Outlet,
    /// The box as it was given.
    in_box: Lattice,
}

impl GpuBackend {
    /// Brings the entries of lists to sorted places, unless that was done since the search.
    pub(super) fn find_slots(&self, over: &mut ListedPairs<'_>) -> Result<(), Error> {
        let ListedPairs {
            of, lists, slots, ..
        } = over;
        let search = lists.search_of(of)?;
        if slots.search == search {
            return Ok(());
        }
        slots.search = 0;
        let (stream, room) = (&self.stream, lists.room());
        slots.of_points.reserve(stream, of.sources.len())?;
        slots.entries.reserve(stream, room)?;
        let kernels = self.shared.slots()?;
        let sources = of.sources.layout();
        kernels.of_points(stream, &sources, slots.of_points.address())?;
        let from = Entries {
            entries: lists.entries.address(),
            total: lists.total_address(),
            capacity: room,
        };
        let (of_points, entries) = (slots.of_points.address(), slots.entries.address());
        kernels.of_entries(stream, from, of_points, sources.count, entries)?;
        if of.lattice.lattice().repeats() {
            let lists = ListsToSort {
                starts: lists.sorted().starts,
                count: of.searching() as u32,
                entries,
                capacity: room as u64,
                arrays: PairArrays::default(),
            };
            self.shared
                .ascend(Precision::Single)?
                .ascend(stream, &lists)?;
        }
        slots.search = search;
        Ok(())
    }

    /// Takes positions of a set whose lists are kept, into the sorted order of the build, and
    /// measures how far they are from those of the build, modulo the box; without waiting. Points
    /// outside of `room` count as infinitely far away.
    ///
    /// # Errors
    /// `ErrorKind::FieldLength` for another number of positions, `ErrorKind::Precision`,
    /// `ErrorKind::OtherDevice`, `ErrorKind::Unsorted`, `ErrorKind::OutOfMemory` and
    /// `ErrorKind::Driver`.
    pub fn follow<T: PositionNumber>(
        &self,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        room: &Bounds,
        positions: &DeviceView<'_, T>,
        followed: &mut FollowedPoints,
    ) -> Result<(), Error> {
        self.holds("positions", positions.ordinal())?;
        points.check_sorted()?;
        let (found, expected) = (T::PRECISION, points.precision());
        if found != expected {
            return Err(Error::from(ErrorKind::Precision { found, expected }));
        }
        fits("positions", positions.len(), points.len().saturating_mul(3))?;
        if points.is_empty() {
            return Ok(());
        }
        let stream = &self.stream;
        match expected {
            Precision::Single => followed.now.reserve(stream, points.len())?,
            Precision::Double => followed.now_given.reserve(stream, points.len())?,
        };
        followed.moved.reserve_zeroed(stream, 2)?;
        let (address, _held) = positions.device_ptr(stream);
        followed.turn = 1 - followed.turn;
        let set = Following {
            positions: address,
            low: room.min,
            high: room.max,
            ..followed.layout(points)
        };
        followed.following = true;
        let in_box = Lattice::of_box(lattice.lattice());
        self.shared.slots()?.follow(stream, &set, &in_box)?;
        let answer = match &mut followed.answer {
            Some(answer) => answer,
            none => none.insert(self.host_copy_of(1)?),
        };
        (followed.moved).start_host_copy(stream, followed.turn, answer, 1)
    }

    /// The positions that a set was last [followed](Self::follow) to, in the caller's order and the
    /// set's precision, which is that of `T`; None where there are none since the build. Does not
    /// wait.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` and `ErrorKind::Driver`.
    pub fn followed_to<'a, T: PositionNumber>(
        &self,
        points: &DevicePoints,
        followed: &'a mut FollowedPoints,
    ) -> Result<Option<DeviceView<'a, T>>, Error> {
        if !followed.following || T::PRECISION != points.precision() {
            return Ok(None);
        }
        let (stream, count) = (&self.stream, points.len());
        followed.given.reserve(stream, points.words(count))?;
        let (set, given) = (followed.layout(points), followed.given.address());
        self.shared.slots()?.positions(stream, &set, given)?;
        let values = followed.given.values::<T>();
        Ok(values
            .and_then(|values| values.try_slice(0..3 * count))
            .map(DeviceView))
    }
}

impl FollowedPoints {
    /// Lists were built from where the points are: none has moved.
    pub fn was_built(&mut self) {
        self.following = false;
    }

    /// The largest squared displacement of a point since the build, rounded up; infinite for what
    /// is not a number. Waits for the last [`GpuBackend::follow`], and for no later work.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    pub fn moved_squared(&mut self) -> Result<f32, Error> {
        match &mut self.answer {
            Some(answer) if self.following => Ok(f32::from_bits(answer.read()?[0])),
            _ => Ok(0.0),
        }
    }

    /// Returns true if a pair may be missing from lists after displacements with these squares:
    /// wherever kernels find so, which round otherwise, and hardly anywhere else.
    pub fn may_miss(squares: [f32; 2], allowed: f64) -> bool {
        const ABOVE_ROUNDING: f64 = 1.0 + 1.0 / (1u64 << 20) as f64;
        let [targets, sources] = squares.map(|square| f64::from(square).sqrt());
        let together = (targets + sources) * ABOVE_ROUNDING;
        together > 0.0 && together > f64::from(below(allowed))
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// The word of the displacement of now; 0 where no point has moved.
    fn moved_address(&self) -> u64 {
        if self.following {
            self.word(self.turn)
        } else {
            0
        }
    }

    /// A set that is followed, without positions in the caller's order.
    fn layout(&self, points: &DevicePoints) -> Following {
        let built = points.layout();
        let double = points.precision() == Precision::Double;
        Following {
            built: built.at,
            given: if double { built.given } else { 0 },
            positions: 0,
            now: self.now.address(),
            now_given: self.now_given.address(),
            moved: self.word(self.turn),
            next: self.word(1 - self.turn),
            low: [0.0; 3],
            high: [0.0; 3],
            count: points.len() as u32,
        }
    }

    fn word(&self, turn: usize) -> u64 {
        self.moved.address() + (turn * size_of::<u32>()) as u64
    }

    /// Sorted points at the positions of now, and in double precision these positions.
    fn at(&self, points: &DevicePoints) -> [u64; 2] {
        let built = points.layout();
        match points.precision() {
            Precision::Single if self.following => [self.now.address(), 0],
            Precision::Double if self.following => [built.at, self.now_given.address()],
            _ => [built.at, built.given],
        }
    }
}

impl SlotsOfLists {
    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }
}

impl ListedPairs<'_> {
    /// What the traversal is started with; the entries are at their sorted places.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`](crate::ErrorKind::Unsorted) for moved points that are in the order
    /// of another sort.
    pub(super) fn visit(&self) -> Result<VisitLists, Error> {
        let of = &self.of;
        let lattice = of.lattice.lattice();
        let sorted = self.lists.sorted();
        let mut points = [of.targets_layout(), of.sources.layout()];
        let [targets, sources] = &mut points;
        let (radius, skin) = match &self.since {
            None => (of.lattice.largest(), None),
            Some(Since::Skin(skin)) => {
                [targets.at, targets.given] = skin.targets.at(of.targets);
                [sources.at, sources.given] = skin.sources.at(of.sources);
                (skin.radius, Some(skin))
            }
            Some(Since::Moved(moved)) => {
                moved.place([of.targets, of.sources], [targets, sources])?;
                (moved.radius, None)
            }
        };
        let cutoffs = skin.and_then(|skin| skin.cutoffs);
        let filtering = if lattice.repeats() || cutoffs.is_some() {
            of.filter.filtering()
        } else {
            Filtering::default()
        };
        let moved = |followed: fn(&Skin<'_>) -> u64| skin.map_or(0, followed);
        Ok(VisitLists {
            stored: Stored {
                moved_targets: moved(|skin| skin.targets.moved_address()),
                moved_sources: moved(|skin| skin.sources.moved_address()),
                allowed: skin.map_or(0.0, |skin| below(skin.allowed)),
                ..Stored::of(lattice, radius)
            },
            candidates: candidates(lattice, of.lattice.largest()),
            radius,
            filtering,
            points,
            cutoffs: cutoffs.map_or(0, DeviceCutoffs::address),
            lists: Outlet {
                starts: sorted.starts,
                counts: sorted.counts,
                entries: self.slots.entries.address(),
                capacity: self.lists.room() as u64,
                ..Outlet::default()
            },
            in_box: Lattice::of_box(lattice),
        })
    }
}

impl VisitLists {
    /// The program: a fused traversal's, but for how sources are found. Filters are those of the
    /// lists, which hold no pair that they leave out; only lists that name a source once for
    /// several images need them again.
    ///
    /// # Errors
    /// Those of [`PairOfPoints::traversal`].
    pub(super) fn traversal(&self, of: &PairOfPoints<'_>, work: Work) -> Result<Traversal, Error> {
        Ok(Traversal {
            candidates: self.candidates,
            subdivision: 1,
            filtering: self.filtering,
            ..of.traversal(Strategy::Flat, work, false)?
        })
    }

    /// Targets, sources and box of the traversal.
    pub(super) fn walk(&self, of: &PairOfPoints<'_>) -> FilteredWalk {
        let mut filtered = of.walk();
        let walk = &mut filtered.walk;
        walk.lattice = self.in_box.within(self.radius);
        [walk.targets, walk.sources] = self.points;
        if self.cutoffs != 0 {
            filtered.filters.cutoffs = self.cutoffs;
        }
        filtered
    }

    /// The outlet of a traversal with the lists.
    pub(super) fn outlet(&self, outlet: Outlet) -> Outlet {
        let Outlet {
            starts,
            counts,
            entries,
            capacity,
            ..
        } = self.lists;
        Outlet {
            starts,
            counts,
            entries,
            capacity,
            ..outlet
        }
    }

    /// The arguments of the kernel.
    pub(super) fn stored(&self) -> &Stored {
        &self.stored
    }
}

/// A number as `f32`, rounded down.
fn below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value {
        near.next_down()
    } else {
        near
    }
}

/// How a traversal finds the images of a source that its lists name, none farther than `largest`.
pub(super) fn candidates(lattice: &grid::Lattice, largest: Radius) -> Candidates {
    let domain = lattice.domain();
    if !domain.is_periodic() {
        Candidates::ListedOpen
    } else if lattice.repeats() || !nearest_is_certain(domain, largest) {
        Candidates::ListedImages
    } else if domain.is_tilted() {
        Candidates::ListedTilted
    } else {
        Candidates::ListedNearest
    }
}

impl Stored {
    /// What does not depend on displacements, for lists of this lattice within a radius that is at
    /// most theirs.
    pub(super) fn of(lattice: &grid::Lattice, radius: Radius) -> Self {
        let rows = lattice.domain().inverse().map(Option::unwrap_or_default);
        Self {
            reach: radius.value_f64() * (1.0 + SLACK),
            slack: 2.0 * SLACK,
            row_length: rows.map(|[x, y, z]| x.hypot(y).hypot(z)),
            moved_targets: 0,
            moved_sources: 0,
            inverse: rounded_inverse(lattice.domain()),
            allowed: 0.0,
            repeats: u32::from(lattice.repeats()),
        }
    }
}

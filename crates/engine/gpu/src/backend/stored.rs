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
    followed::{FollowedPoints, Judgement},
    gpu::GpuBackend,
    lists::DeviceLists,
    moved::Moved,
    nearest_image::{nearest_is_certain, rounded_inverse},
    walk::PairOfPoints,
};
use crate::{
    error::Error,
    launch::{Entries, FilteredWalk, Lattice, ListsToSort, Outlet, PairArrays, Points, Stored},
    memory::kept_buffers,
    traversal::{Candidates, Filtering, Strategy, Traversal, Work},
};
use nearfield_grid::{self as grid, Precision, Radius};

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

/// Lists with a skin, as a traversal reads them.
#[derive(Debug, Clone, Copy)]
pub struct Skin<'a> {
    /// Pairs beyond it are passed over.
    pub radius: Radius,
    /// Positions of the targets.
    pub targets: &'a FollowedPoints,
    /// Positions of the sources.
    pub sources: &'a FollowedPoints,
    /// Whether a pair may be missing.
    pub judgement: &'a Judgement,
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
        Ok(VisitLists {
            stored: Stored {
                stale: skin.map_or(0, |skin| skin.judgement.address()),
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
            stale: 0,
            inverse: rounded_inverse(lattice.domain()),
            repeats: u32::from(lattice.repeats()),
        }
    }
}

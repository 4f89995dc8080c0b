//! Filters on the device: which pairs within the radius are left out.
//!
//! Filters read data of single points. [`DevicePointData`] holds those of one set: types,
//! exclusions or molecules, chosen targets, radii. They are copied when their stamp changes and
//! stay while points move. A target is looked up once, so its data are read in the caller's order;
//! sources are looked up for every candidate that is near enough, so theirs are brought into the
//! order of the sort, once after each ([`GpuBackend::arrange`]).
//!
//! A [`DeviceFilter`] of a [`PairOfPoints`] names the data of both sets. Chosen targets are a
//! [share](super::share) of the set: the walk never meets the others. Everything else is decided
//! by kernels (`kernels/cuda/filter.cuh`) in programs of their own, so searches without filters run
//! the code that they ran before.
//!
//! Radii of single points are at most the lattice's. The walk around a target is cut to what this
//! very target reaches, or, where radii of sources count, to the largest of these. A lattice for
//! the bulk of the points has smaller cells; points of larger radius are [apart](super::wide).
//!
//! Whether a point is wide is told by its radius alone: walks leave wide sources out by it, and a
//! wide target has no neighbours in a walk. Wide sources must be known before a job, which is
//! refused without them; wide targets that are not known are compared by the threads that walk.
//!
//! # Double precision
//!
//! Cut-offs and radii of single points are compared in the precision of the positions, so they are
//! copied in it, and those in another one are refused. Types, exclusions and chosen targets are the
//! same numbers in either; a share also has the positions of its targets as given.
//!
//! # Invariant
//!
//! Data have one value per point, which is checked when they are taken; types are compared with
//! the table of cut-offs before every job. Kernels look both up unchecked. Indices of exclusions
//! are only compared, never looked up; the caller guarantees that they ascend.

use super::{
    gpu::GpuBackend,
    lattice::DeviceLattice,
    per_point::{PerPoint, Stamped},
    points::DevicePoints,
    refused::{RadiusCounts, RefusedData},
    share::DeviceShare,
    wide::WidePoints,
};
use crate::{
    error::{Error, ErrorKind, fits, reserved},
    launch::{Filters, Nearest},
    memory::{Buffer, kept_buffers},
    traversal::Filtering,
};
use cudarc::driver::DeviceRepr;
use nearfield_grid::{Precision, Radii};

/// Pairs of points of one set that are no neighbours, in whatever image.
#[derive(Debug, Clone, Copy)]
pub enum HostExclusions<'a> {
    /// The points that point i excludes are `indices[offsets[i]..offsets[i + 1]]`, ascending.
    Lists {
        /// One more than there are points.
        offsets: &'a [u64],
        /// The caller's indices.
        indices: &'a [u32],
    },
    /// The molecule of every point; those of one molecule exclude each other.
    Molecules(&'a [u32]),
}

/// What filters read of a set's points, one value per point in the caller's order; `None` for what
/// the next job does not read, which stays as it was.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostPointData<'a> {
    /// Types, rows of the table of cut-offs.
    pub types: Option<Stamped<&'a [u32]>>,
    /// Pairs that are no neighbours.
    pub exclusions: Option<Stamped<HostExclusions<'a>>>,
    /// Whether each point is searched for as a target.
    pub chosen: Option<Stamped<&'a [bool]>>,
    /// Radii, at most that of the lattice, in the unit and the precision of the coordinates.
    pub radii: Option<Stamped<Radii<'a>>>,
}

kept_buffers! {
    /// Lists of points that points exclude.
    pub(super) struct ExcludedLists {
        /// Where the list of every point begins, and the end of the last.
        starts: u64 = "starts of exclusions",
        /// The caller's indices.
        indices: u32 = "exclusions of points",
        /// Whether each point is chosen as a target.
        pub(super) chosen: u8 = "chosen targets",
    }
}

/// What filters read of a set's points, on the device.
#[derive(Debug)]
pub struct DevicePointData {
    pub(super) types: PerPoint<u32>,
    /// All types are below this.
    pub(super) types_bound: u32,
    pub(super) molecules: PerPoint<u32>,
    pub(super) lists: ExcludedLists,
    /// Of the lists, and points that they are of; 0 for none.
    pub(super) lists_stamp: u64,
    lists_of: usize,
    /// In double precision two words a number.
    pub(super) radii: PerPoint<f32>,
    /// No radius is larger.
    pub(super) largest: f32,
    /// Of the chosen targets, and points that they were chosen of; 0 if none were.
    pub(super) chosen_stamp: u64,
    pub(super) chosen_of: usize,
    /// The chosen targets, and the number of the sort and the stamp that they are of.
    pub(super) share: DeviceShare,
    pub(super) shared: [u64; 2],
    /// Points whose radii are too large for the cells: of all points, and of the chosen targets.
    pub(super) wide: [WidePoints; 2],
    /// What was refused of data that came from the device.
    pub(super) refused: RefusedData,
    /// How large the radii are that came from there.
    pub(super) counts: Option<RadiusCounts>,
}

impl Default for DevicePointData {
    fn default() -> Self {
        Self {
            types: PerPoint::new("types of points"),
            types_bound: 0,
            molecules: PerPoint::new("molecules of points"),
            lists: ExcludedLists::default(),
            lists_stamp: 0,
            lists_of: 0,
            radii: PerPoint::new("radii of points"),
            largest: 0.0,
            chosen_stamp: 0,
            chosen_of: 0,
            share: DeviceShare::default(),
            shared: [0; 2],
            wide: Default::default(),
            refused: RefusedData::default(),
            counts: None,
        }
    }
}

/// Squared cut-offs of pairs of types on the device.
#[derive(Debug)]
pub struct DeviceCutoffs {
    /// In double precision two words a number.
    squares: Buffer<f32>,
    types: u32,
    precision: Precision,
    stamp: u64,
}

impl Default for DeviceCutoffs {
    fn default() -> Self {
        Self {
            squares: Buffer::new("cut-offs of types"),
            types: 0,
            precision: Precision::Single,
            stamp: 0,
        }
    }
}

/// Which pairs of two sets are left out; none by default.
///
/// Cut-offs go by the types of both sets. Exclusions are those of the targets' data, and name
/// sources: the targets are the set of the sources, or copies of some of its points.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceFilter<'a> {
    /// Data of the targets.
    pub targets: Option<&'a DevicePointData>,
    /// Data of the sources: the same where both sets are.
    pub sources: Option<&'a DevicePointData>,
    /// Cut-offs per pair of types.
    pub cutoffs: Option<&'a DeviceCutoffs>,
    /// Whether points exclude each other.
    pub excluded: bool,
    /// Whether the radii of the targets and those of the sources decide; if both do, the larger of
    /// the two. If neither does, all points have that of the lattice.
    pub radii: [bool; 2],
    /// The last of the nearest pairs of every target, where only these are kept.
    pub nearest: Option<&'a LastPairs>,
}

/// The last of the k nearest pairs of every target, by the caller's index, which
/// [`GpuBackend::find_nearest`] finds.
#[derive(Debug)]
pub struct LastPairs {
    pub(super) pairs: Buffer<Nearest>,
    /// What they were found for; `None` before.
    pub(super) of: Option<NearestOrigin>,
}

impl Default for LastPairs {
    fn default() -> Self {
        Self {
            pairs: Buffer::new("the nearest pairs"),
            of: None,
        }
    }
}

/// What the nearest pairs were found for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NearestOrigin {
    /// Numbers of the sorts of targets and sources.
    pub(super) sorts: [u64; 2],
    /// All other filters.
    pub(super) filter: FilterOrigin,
    /// Targets, which may be chosen anew without a sort.
    pub(super) searching: usize,
    pub(super) k: u32,
}

/// Words of four bytes of a number in this precision.
pub(super) fn words_of(precision: Precision) -> usize {
    match precision {
        Precision::Single => 1,
        Precision::Double => 2,
    }
}

/// Identity of a filter: the stamps of what it reads, but for the nearest.
pub(super) type FilterOrigin = [u64; 7];

impl GpuBackend {
    /// Copies the squared cut-offs of every pair of types, a row for each of them; −1 for never.
    /// They are numbers of this precision.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for a table that is not square, [`ErrorKind::OutOfMemory`] and
    /// [`ErrorKind::Driver`].
    pub fn take_cutoffs(
        &self,
        cutoffs: &mut DeviceCutoffs,
        table: Stamped<&[f64]>,
        types: usize,
        precision: Precision,
    ) -> Result<(), Error> {
        const WHAT: &str = "cut-offs of types";
        let values = table.values;
        fits(WHAT, values.len(), types.saturating_mul(types))?;
        if cutoffs.stamp == table.stamp {
            return Ok(());
        }
        cutoffs.stamp = 0;
        match precision {
            Precision::Single => {
                let mut rounded = reserved(values.len(), WHAT)?;
                rounded.extend(values.iter().map(|&square| square as f32));
                cutoffs.squares.upload(&self.stream, &rounded)?;
            }
            Precision::Double => {
                let words: &[f32] = bytemuck::cast_slice(values);
                cutoffs.squares.upload(&self.stream, words)?;
            }
        }
        cutoffs.precision = precision;
        (cutoffs.types, cutoffs.stamp) = (types as u32, table.stamp);
        Ok(())
    }

    /// Copies what filters read of the points of a set: of that which is there with the same stamp,
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for data of another number of points,
    /// [`ErrorKind::ExclusionLists`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn take_point_data(
        &self,
        data: &mut DevicePointData,
        given: HostPointData<'_>,
        points: usize,
    ) -> Result<(), Error> {
        if data.types.take(self, given.types, points)? {
            let types = given.types.map_or(&[][..], |types| types.values);
            data.types_bound = types.iter().max().map_or(0, |most| most.saturating_add(1));
        }
        if let Some(Stamped { values, stamp }) = given.radii {
            let (words, count): (&[f32], usize) = match values {
                Radii::Single(radii) => (radii, 1),
                Radii::Double(radii) => (bytemuck::cast_slice(radii), 2),
            };
            let words = Some(Stamped {
                values: words,
                stamp,
            });
            if data.radii.take_words(self, words, count, points)? {
                data.counts = None;
                data.largest = largest_of(values);
            }
        }
        if let Some(Stamped { values, stamp }) = given.exclusions {
            match values {
                HostExclusions::Molecules(values) => {
                    data.lists_stamp = 0;
                    let molecules = Some(Stamped { values, stamp });
                    data.molecules.take(self, molecules, points)?;
                }
                HostExclusions::Lists { offsets, indices } => {
                    data.molecules.stamp = 0;
                    data.take_lists(self, (offsets, indices), stamp, points)?;
                }
            }
        }
        match given.chosen {
            Some(chosen) => data.take_chosen(self, chosen, points),
            None => Ok(()),
        }
    }

    /// Brings the data of sources into the order of their last sort, and gathers the targets that
    /// are chosen. Does nothing if that has been done; waits for the device where targets are
    /// chosen.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn arrange(&self, data: &mut DevicePointData, points: &DevicePoints) -> Result<(), Error> {
        points.check_sorted()?;
        data.types.arrange(self, points)?;
        data.molecules.arrange(self, points)?;
        data.radii.arrange(self, points)?;
        let of = [points.last_sort(), data.chosen_stamp];
        if data.chosen_stamp != 0 && data.chosen_of == points.len() && data.shared != of {
            data.shared = [0; 2];
            self.share_of_chosen(points, data.lists.chosen.address(), &mut data.share)?;
            data.shared = of;
        }
        data.find_wide(self, points)
    }
}

impl DevicePointData {
    fn take_lists(
        &mut self,
        backend: &GpuBackend,
        (offsets, indices): (&[u64], &[u32]),
        stamp: u64,
        points: usize,
    ) -> Result<(), Error> {
        fits(
            "starts of exclusions",
            offsets.len(),
            points.saturating_add(1),
        )?;
        if self.lists_stamp == stamp && self.lists_of == points {
            return Ok(());
        }
        self.lists_stamp = 0;
        let ends = [offsets.first(), offsets.last()].map(Option::<&u64>::copied);
        let rises = offsets.is_sorted() && ends == [Some(0), Some(indices.len() as u64)];
        let short = |pair: &[u64]| pair[1] - pair[0] <= u64::from(u32::MAX);
        if !rises || !offsets.windows(2).all(short) {
            return Err(Error::from(ErrorKind::ExclusionLists));
        }
        self.lists.starts.upload(&backend.stream, offsets)?;
        self.lists.indices.upload(&backend.stream, indices)?;
        (self.lists_stamp, self.lists_of) = (stamp, points);
        Ok(())
    }

    fn take_chosen(
        &mut self,
        backend: &GpuBackend,
        Stamped { values, stamp }: Stamped<&[bool]>,
        points: usize,
    ) -> Result<(), Error> {
        fits("chosen targets", values.len(), points)?;
        if self.chosen_stamp != stamp || self.chosen_of != points {
            self.chosen_stamp = 0;
            let bytes: &[u8] = bytemuck::cast_slice(values);
            self.lists.chosen.upload(&backend.stream, bytes)?;
            (self.chosen_stamp, self.chosen_of) = (stamp, points);
        }
        Ok(())
    }

    /// The targets that were chosen last, as [arranged](GpuBackend::arrange).
    pub fn chosen(&self) -> &DeviceShare {
        &self.share
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.wide.iter().map(WidePoints::bytes).sum::<usize>()
            + self.types.bytes()
            + self.molecules.bytes()
            + self.radii.bytes()
            + self.lists.held()
            + self.share.bytes()
            + self.refused.bytes()
    }
}

/// The largest of these, rounded up; 0 of none.
fn largest_of(radii: Radii<'_>) -> f32 {
    match radii {
        Radii::Single(radii) => radii.iter().copied().fold(0.0, f32::max),
        Radii::Double(radii) => {
            let largest = radii.iter().copied().fold(0.0, f64::max);
            let near = largest as f32;
            if f64::from(near) < largest {
                near.next_up()
            } else {
                near
            }
        }
    }
}

/// Where a number of both points is, of the targets and of the sources.
fn addresses<T: DeviceRepr>(
    [targets, sources]: [Option<&DevicePointData>; 2],
    of: impl Fn(&DevicePointData) -> &PerPoint<T>,
) -> [u64; 2] {
    let address = |data: Option<&DevicePointData>, side: usize| {
        data.map_or(0, |data| of(data).addresses()[side])
    };
    [address(targets, 0), address(sources, 1)]
}

impl DeviceCutoffs {
    /// Where the squares are.
    pub(super) fn address(&self) -> u64 {
        self.squares.address()
    }
}

impl DeviceFilter<'_> {
    fn data(&self) -> [Option<&DevicePointData>; 2] {
        [self.targets, self.sources]
    }

    /// The filters of a pair of sets as kernels take them.
    pub(super) fn layout(
        &self,
        lattice: &DeviceLattice,
        [targets, sources]: [&DevicePoints; 2],
        share: Option<&DeviceShare>,
    ) -> Filters {
        let mut filters = Filters::default();
        if let Some(cutoffs) = self.cutoffs {
            (filters.cutoffs, filters.types) = (cutoffs.squares.address(), cutoffs.types);
            [filters.target_types, filters.source_types] =
                addresses(self.data(), |data| &data.types);
        }
        if let Some(data) = self.targets.filter(|_| self.excluded) {
            [filters.target_molecules, filters.source_molecules] =
                addresses(self.data(), |data| &data.molecules);
            if data.lists_stamp != 0 {
                filters.excluded_starts = data.lists.starts.address();
                filters.excluded = data.lists.indices.address();
            }
        }
        let radii = addresses(self.data(), |data| &data.radii);
        if let Some(data) = self.targets.filter(|_| self.radii[0]) {
            filters.target_radii = radii[0];
            let listed = share.is_none_or(DeviceShare::is_chosen);
            let wide = listed.then(|| data.wide_points(targets, share.is_some()));
            filters.wide_targets = wide.unwrap_or_default();
        }
        if let Some(data) = self.sources.filter(|_| self.radii[1]) {
            filters.source_radii = radii[1];
            filters.largest_source = data.largest;
            filters.wide_sources = data.wide_points(sources, false);
        }
        let mut filters = lattice.wide_filters(filters);
        filters.nearest = self.nearest.map_or(0, |last| last.pairs.address());
        match &sources.geometry {
            Some(geometry) => filters.reaching(lattice.lattice(), geometry),
            None => filters,
        }
    }

    /// Returns true if no pair within the radius is left out.
    pub fn is_none(&self) -> bool {
        self.filtering() == Filtering::default()
    }

    /// What programs are compiled for.
    pub(super) fn filtering(&self) -> Filtering {
        Filtering {
            named: self.cutoffs.is_some() || self.excluded,
            radii: self.radii != [false; 2],
            nearest: self.nearest.is_some(),
        }
    }

    /// Refuses data that kernels would look up in vain: of other points, or not arranged as the
    /// sources are sorted now.
    ///
    /// # Errors
    /// [`ErrorKind::OtherFilter`].
    pub(super) fn check(
        &self,
        targets: &DevicePoints,
        sources: &DevicePoints,
    ) -> Result<(), Error> {
        if targets.is_empty() || sources.is_empty() {
            return Ok(());
        }
        let (Some(of_targets), Some(of_sources)) = (self.targets, self.sources) else {
            return if self.is_none() && sources.bulk.is_none() {
                Ok(())
            } else {
                Err(Error::from(ErrorKind::OtherFilter))
            };
        };
        let typed = self.cutoffs.is_none_or(|cutoffs| {
            let bounds = [of_targets, of_sources].map(|data| data.types_bound <= cutoffs.types);
            cutoffs.precision == sources.precision()
                && of_targets.types.is_of(targets)
                && of_sources.types.is_arranged(sources)
                && bounds == [true; 2]
        });
        let listed = of_targets.lists_stamp != 0 && of_targets.lists_of == targets.len();
        let excluded = !self.excluded
            || listed
            || of_targets.molecules.is_of(targets) && of_sources.molecules.is_arranged(sources);
        let words = words_of(sources.precision());
        let of_precision = |data: &DevicePointData| data.radii.words == words;
        let radii = (!self.radii[0] || of_targets.radii.is_of(targets) && of_precision(of_targets))
            && (!self.radii[1]
                || of_sources.radii.is_arranged(sources) && of_precision(of_sources));
        // Sources that are found one by one must be known; targets are told by their radii.
        let wide = sources.bulk.is_none()
            || self.radii != [false; 2]
                && (!self.radii[1] || of_sources.wide_points(sources, false) != 0);
        let nearest = self.nearest.is_none_or(|last| {
            last.of.is_some_and(|of| {
                let sorts = [targets.last_sort(), sources.last_sort()];
                (of.sorts, of.filter) == (sorts, self.origin())
            })
        });
        if typed && excluded && radii && wide && nearest {
            return Ok(());
        }
        Err(Error::from(ErrorKind::OtherFilter))
    }

    /// The stamps of what it reads.
    pub(super) fn origin(&self) -> FilterOrigin {
        let types = |data: Option<&DevicePointData>| data.map_or(0, |data| data.types.stamp);
        let radii = |data: Option<&DevicePointData>, count: bool| match data {
            Some(data) if count => data.radii.stamp,
            _ => 0,
        };
        let excluded = |data: &DevicePointData| data.lists_stamp.max(data.molecules.stamp);
        [
            types(self.targets.filter(|_| self.cutoffs.is_some())),
            types(self.sources.filter(|_| self.cutoffs.is_some())),
            self.cutoffs.map_or(0, |cutoffs| cutoffs.stamp),
            (self.targets.filter(|_| self.excluded)).map_or(0, excluded),
            radii(self.targets, self.radii[0]),
            radii(self.sources, self.radii[1]),
            self.targets.map_or(0, |data| data.chosen_stamp),
        ]
    }

    /// How many of the nearest are kept; 0 for all.
    pub(super) fn k(&self) -> u32 {
        self.nearest.and_then(|last| last.of).map_or(0, |of| of.k)
    }
}

//! The settings of an engine on the device.
//!
//! They are fewer than those of an [`Engine`](crate::Engine). A setting of the same name promises
//! the same here.

use super::filters::FilterSettings;
use crate::{ListKind, ListOrder, RadiusRule, balance::Strategy};
use nearfield_grid::{Bounds, Domain, Precision, Radius};

/// Settings of an engine on the device, made by
/// [`DeviceEngine::builder`](super::DeviceEngine::builder) and started by [`on`](Self::on),
/// [`on_gpu`](Self::on_gpu) or [`on_borrowed`](Self::on_borrowed), where they are checked.
///
/// ```no_run
/// use nearfield::{balance::Strategy, device::DeviceEngine};
/// let engine = DeviceEngine::builder(0.1)
///     .periodic([Some(4.0), None, None])
///     .strategy(Strategy::ChildAggregated)
///     .on_gpu(0)?;
/// println!("{}", engine.report().name);
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "settings do nothing until on() is called"]
pub struct DeviceEngineBuilder {
    /// The search radius, in the unit of the coordinates.
    pub(super) radius: f64,
    /// In which positions are given and distances decided.
    pub(super) precision: Precision,
    /// Pairs exactly as far apart as the radius are no neighbours.
    pub(super) strict: bool,
    /// An error is kept until the start, so that settings can be chained.
    pub(super) domain: Result<Domain, nearfield_grid::Error>,
    /// 0 where the engine chooses by the points.
    pub(super) subdivision: u32,
    /// How the device goes through its cells.
    pub(super) strategy: Strategy,
    /// Box that the cells cover in addition to that of the points.
    pub(super) within: Bounds,
    /// Full, or half: every pair once.
    pub(super) lists: ListKind,
    /// Of the entries of a list.
    pub(super) order: ListOrder,
    /// Which pairs within the radius are left out.
    pub(super) filters: FilterSettings,
    /// Bytes of the device that the lists of a pair of sets may take.
    pub(super) memory_limit: Option<u64>,
}

impl DeviceEngineBuilder {
    /// The defaults, for this radius.
    pub(super) fn new(radius: f64) -> Self {
        Self {
            radius,
            precision: Precision::Single,
            strict: false,
            domain: Ok(Domain::OPEN),
            subdivision: 0,
            strategy: Strategy::Flat,
            within: Bounds::EMPTY,
            lists: ListKind::Full,
            order: ListOrder::Unspecified,
            filters: FilterSettings::default(),
            memory_limit: None,
        }
    }

    /// The radius as it is searched.
    ///
    /// # Errors
    /// As [`Radius::rounded`] and [`Radius::new_f64`].
    pub(super) fn checked_radius(&self) -> Result<Radius, nearfield_grid::Error> {
        let radius = match self.precision {
            Precision::Single => Radius::rounded(self.radius),
            Precision::Double => Radius::new_f64(self.radius),
        }?;
        Ok(if self.strict { radius.strict() } else { radius })
    }

    /// The precision of positions and of the decision about pairs, single by default.
    ///
    /// In [`Precision::Double`] positions are arrays of `f64`, the radius is used as given, and the
    /// geometry of pairs is in `f64` ([`PairViews::double`](super::PairViews::double)); fields and
    /// results of pair kernels stay `f32`. Positions of the other precision are refused.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Leaves out pairs exactly as far apart as the radius, or as the cut-off of their types, as
    /// [`Builder::strictly_within`](crate::Builder::strictly_within). Not with radii of single
    /// points.
    pub fn strictly_within(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Box length per axis where the domain is periodic, `None` where it is open (the default).
    ///
    /// Lengths are in the unit of the coordinates. Points need not lie inside of the box:
    /// coordinates are used as they are, and neighbours are found across its faces. A length that
    /// cannot be used is refused when the engine is started.
    pub fn periodic(mut self, lengths: [Option<f64>; 3]) -> Self {
        self.domain = Domain::new(lengths);
        self
    }

    /// A box that repeats along any three vectors, `None` where the axis is open, as
    /// [`Builder::box_vectors`](crate::Builder::box_vectors) takes them.
    pub fn box_vectors(mut self, vectors: [Option<[f64; 3]>; 3]) -> Self {
        self.domain = Domain::from_vectors(vectors);
        self
    }

    /// Cells per radius along each axis, at most 8; 0, the default, chooses by the points of the
    /// first set and keeps the choice. Results are the same for every number.
    pub fn subdivision(mut self, cells_per_radius: u32) -> Self {
        self.subdivision = cells_per_radius.min(8);
        self
    }

    /// How cells and targets are mapped to threads. [`Strategy::Auto`] is [`Strategy::Flat`] here:
    /// timing would have to wait for the device.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Which pairs lists and counts hold: all of them, the default, or each pair of a set once.
    /// Traversals always give every target all of its neighbours.
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.lists = kind;
        self
    }

    /// Order of the neighbours inside a list, [`ListOrder::Unspecified`] by default.
    ///
    /// Ascending lists are sorted on the device after they were found, pairs of one source by their
    /// images, so that with [`pair_geometry`](super::DeviceEngine::pair_geometry) all arrays are
    /// the same, byte for byte, however they were found. Geometry then holds images on the device
    /// also if they are not asked for, 12 bytes a pair.
    pub fn list_order(mut self, order: ListOrder) -> Self {
        self.order = order;
        self
    }

    /// Bytes of the device that the lists of one pair of sets may take: 12 for every target, 4 for
    /// every pair, and what is written beside it
    /// ([`GeometryQuantities::bytes_per_pair`](super::GeometryQuantities::bytes_per_pair); lists of
    /// the k nearest have images and squares there). No limit by default.
    ///
    /// A search for more is refused by [`ErrorKind::MemoryLimit`](crate::ErrorKind::MemoryLimit)
    /// with the bytes that it needs; [`list_chunks`](super::DeviceEngine::list_chunks) has the
    /// lists of some targets at a time. Points, cells and what a search needs meanwhile do not
    /// count.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// A cut-off for every pair of types, as [`Builder::cutoffs`](crate::Builder::cutoffs) takes
    /// them; [`DeviceEngine::set_types`](super::DeviceEngine::set_types) takes the types. Checked
    /// when the engine is started.
    pub fn cutoffs<R: AsRef<[f64]>>(mut self, rows: &[R]) -> Self {
        let rows = rows.iter().map(|row| row.as_ref().to_vec());
        self.filters.cutoffs = Some(rows.collect());
        self
    }

    /// Whose radius decides, as [`Builder::radii`](crate::Builder::radii) says;
    /// [`DeviceEngine::set_radii`](super::DeviceEngine::set_radii) takes the radii.
    pub fn radii(mut self, rule: RadiusRule) -> Self {
        self.filters.rule = rule;
        self
    }

    /// Keeps the `k` nearest of the neighbours of every point, nearest first, as
    /// [`Builder::nearest`](crate::Builder::nearest). The first job after an update waits for the
    /// device.
    pub fn nearest(mut self, k: u32) -> Self {
        self.filters.nearest = Some(k);
        self
    }

    /// A box that points are expected to stay in, such as the walls of a tank: cells cover it from
    /// the start, so that no step has to be repeated because points have moved on in it.
    ///
    /// In the unit of the coordinates. Points may still leave it: it is joined with the room around
    /// them. A box much larger than the cloud makes the table of cells larger, which is filled at
    /// every update.
    pub fn within(mut self, low: [f32; 3], high: [f32; 3]) -> Self {
        self.within = Bounds {
            min: low.map(f64::from),
            max: high.map(f64::from),
        };
        self
    }
}

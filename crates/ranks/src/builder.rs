//! The settings of an engine on ranks.
//!
//! They are the settings of [`nearfield::Builder`] that keep their meaning on many ranks. All ranks
//! give the same ones, except for the device and the number of threads.

use nearfield::{
    Builder, Device, Engine, ListKind, ListOrder, RadiusRule,
    balance::{Policy, Strategy},
};
use nearfield_grid::Domain;

/// Settings of a [`RankedEngine`](crate::RankedEngine), made by its `builder`. All ranks
/// give the same.
#[derive(Debug, Clone)]
#[must_use = "settings do nothing until build() is called"]
pub struct RankedBuilder {
    pub(crate) engine: Builder,
    pub(crate) device: Device,
    pub(crate) radius: f64,
    pub(crate) domain: Result<Domain, nearfield_grid::Error>,
    pub(crate) rule: RadiusRule,
    pub(crate) lists: ListKind,
    pub(crate) strategy: Strategy,
    pub(crate) deterministic: bool,
    /// Number of types that cut-offs are for.
    pub(crate) types: Option<usize>,
    /// Whether only the nearest are kept.
    pub(crate) nearest: bool,
    pub(crate) strict: bool,
    pub(crate) gpu_messages: bool,
}

impl RankedBuilder {
    /// The defaults. Every list ascends by id, which is what makes it the same on all ranks.
    /// [`nearest`](Self::nearest) has another order with that property.
    pub(crate) fn new(radius: f64) -> Self {
        Self {
            engine: Engine::builder(radius).list_order(ListOrder::Ascending),
            device: Device::Auto,
            radius,
            domain: Ok(Domain::OPEN),
            rule: RadiusRule::Uniform,
            lists: ListKind::Full,
            strategy: Strategy::Flat,
            deterministic: false,
            types: None,
            nearest: false,
            strict: false,
            gpu_messages: false,
        }
    }

    /// Box length per axis where the domain is periodic, `None` where it is open (the default), in
    /// the unit of the coordinates; see [`nearfield::Builder::periodic`].
    pub fn periodic(mut self, lengths: [Option<f64>; 3]) -> Self {
        self.engine = self.engine.periodic(lengths);
        self.domain = Domain::new(lengths);
        self
    }

    /// A box that repeats along any three vectors, `None` where the axis is open; see
    /// [`nearfield::Builder::box_vectors`].
    pub fn box_vectors(mut self, vectors: [Option<[f64; 3]>; 3]) -> Self {
        self.engine = self.engine.box_vectors(vectors);
        self.domain = Domain::from_vectors(vectors);
        self
    }

    /// Which radius counts if points have radii of their own; see [`nearfield::Builder::radii`].
    pub fn radii(mut self, rule: RadiusRule) -> Self {
        self.engine = self.engine.radii(rule);
        self.rule = rule;
        self
    }

    /// Full lists (the default) or half lists, in which a pair of one set is in the list of the
    /// point with the smaller id.
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.engine = self.engine.lists(kind);
        self.lists = kind;
        self
    }

    /// A cut-off for every pair of types of points; see [`nearfield::Builder::cutoffs`].
    /// [`set_types`](crate::RankedEngine::set_types) takes the types.
    pub fn cutoffs<R: AsRef<[f64]>>(mut self, rows: &[R]) -> Self {
        self.engine = self.engine.cutoffs(rows);
        self.types = Some(rows.len());
        self
    }

    /// Keeps the `k` nearest of the neighbours of every point, and of every position of a query; of
    /// two as near those with the smaller id. Lists are then in that order, nearest first, instead
    /// of ascending. See [`nearfield::Builder::nearest`].
    pub fn nearest(mut self, k: u32) -> Self {
        self.engine = self.engine.nearest(k).list_order(ListOrder::Unspecified);
        self.nearest = true;
        self
    }

    /// Leaves out pairs that are exactly as far apart as the radius; see
    /// [`nearfield::Builder::strictly_within`].
    pub fn strictly_within(mut self) -> Self {
        self.engine = self.engine.strictly_within();
        self.strict = true;
        self
    }

    /// The hardware of this rank, which may differ from that of other ranks. With [`Device::Auto`],
    /// the default, the ranks of a machine take its GPUs in turn, once steps are large enough for
    /// one.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self.engine = self.engine.device(device);
        self
    }

    /// Threads of this rank; 0, the default, for one per core. With several ranks on one machine,
    /// give a number, so that they share its cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.engine = self.engine.threads(threads);
        self
    }

    /// How a GPU maps cells to threads; see [`nearfield::Builder::strategy`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.engine = self.engine.strategy(strategy);
        self.strategy = strategy;
        self
    }

    /// The policy that splits the work of a rank with two backends; see
    /// [`nearfield::Builder::policy`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.engine = self.engine.policy(policy);
        self
    }

    /// Sums with the same bits on any number of ranks; off by default. Lists always have them.
    ///
    /// Kernels are then evaluated over lists, in the ascending order of the sources' ids: the sums
    /// are those of [`nearfield::Traversal::over_lists`] of one engine that holds all points by
    /// ascending ids with [`ListOrder::Ascending`]. It takes the memory of the lists and more time.
    /// Half lists are refused, because two ranks would sum their pairs in different orders.
    pub fn deterministic(mut self, deterministic: bool) -> Self {
        self.engine = self.engine.deterministic(deterministic);
        self.deterministic = deterministic;
        self
    }

    /// Lets a CUDA-aware MPI send from GPU memory and receive into it; off by default, when
    /// messages pass through page-locked memory of the host. For
    /// [`DeviceRankedEngine`](crate::device::DeviceRankedEngine) on processes. It is refused on all
    /// ranks if the MPI is not CUDA-aware or cannot be asked. It works with Open MPI 5.0.7 and UCX;
    /// docs/ranks.md says how to start it.
    ///
    /// The context of the GPU is then held until the process ends, with the memory that the driver
    /// needs for it, because the MPI keeps streams and mappings in it.
    pub fn gpu_messages(mut self, gpu_messages: bool) -> Self {
        self.gpu_messages = gpu_messages;
        self
    }
}

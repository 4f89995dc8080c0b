//! The settings of an engine.
//!
//! Settings are values until [`Builder::build`] is called, which [checks](super::build) them all
//! at once.
//!
//! Numbers that are out of range are refused with the range. Two settings are cut to it instead,
//! because they change no pair: cells per radius ([`Builder::subdivision`]) and the level of
//! instructions ([`Builder::simd`]).

use crate::{Device, Precision, backend::split::BRICK_EDGE, balance::Strategy};
use nearfield_balance::{Equal, Policy, SUBREGIONS};
use nearfield_cpu::{ListOrder, RadiusRule, SimdLevel};
use nearfield_grid::Domain;
use nearfield_pairs::ListKind;

/// Settings of an engine, made by [`Engine::builder`](crate::Engine::builder).
///
/// Every setting has a default, which suits most programs; methods may be called in any order, and
/// the last call of one counts. A builder can be cloned to build several engines.
///
/// ```
/// use nearfield::{balance::Policy, prelude::*};
/// let settings = Engine::builder(0.1)
///     .periodic([Some(1.0), Some(1.0), None])
///     .list_order(ListOrder::Ascending)
///     .threads(2);
/// let on_cpu = settings.clone().device(Device::Cpu).build()?;
/// let device = "emulated:speed=8".parse()?;
/// let shared = settings.device(device).policy(Policy::Model).build()?;
/// assert_eq!(on_cpu.radius(), shared.radius());
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "settings do nothing until build() is called"]
pub struct Builder {
    /// As given, before it is rounded to the precision.
    pub(crate) radius: f64,
    pub(crate) precision: Precision,
    /// Checked when it is given; the error is kept for `build`, so that methods can be chained.
    pub(crate) domain: Result<Domain, nearfield_grid::Error>,
    pub(crate) device: Device,
    /// Which GPU `Auto` takes in.
    pub(crate) turn: u32,
    /// 0 for one per core.
    pub(crate) threads: usize,
    /// None for the best that the processor has.
    pub(crate) simd: Option<SimdLevel>,
    /// Cells per radius, 1 to 8.
    pub(crate) subdivision: u32,
    /// How a GPU goes through its cells.
    pub(crate) strategy: Strategy,
    /// Full, or half: every pair once.
    pub(crate) lists: ListKind,
    /// Of the entries of a list.
    pub(crate) order: ListOrder,
    /// Which of two points' radii counts; one radius for all by default.
    pub(crate) rule: RadiusRule,
    /// Pairs exactly as far apart as the radius are no neighbours.
    pub(crate) strict: bool,
    /// Row by row; checked by `build`, like the next.
    pub(crate) cutoffs: Option<Vec<Vec<f64>>>,
    /// At most so many neighbours of a target.
    pub(crate) nearest: Option<u32>,
    /// Bytes.
    pub(crate) memory_limit: Option<u64>,
    /// How both backends divide a step.
    pub(crate) policy: Policy,
    /// Checked by `build`, like the next.
    pub(crate) brick_edge: u32,
    pub(crate) subregions: usize,
    /// What subregions have as much of as others.
    pub(crate) equal: Equal,
    /// Rates of earlier runs are used and kept.
    pub(crate) known_rates: bool,
    /// Nothing is decided by measured times.
    pub(crate) deterministic: bool,
}

impl Builder {
    /// Box length per axis where the domain is periodic, `None` where it is open (the default).
    /// All images within the radius are found, also when the box is smaller than the radius.
    ///
    /// This, [`triclinic`](Self::triclinic) and [`box_vectors`](Self::box_vectors) replace each
    /// other. [`build`](Self::build) refuses an invalid box with the reason.
    ///
    /// Lengths are in the unit of the coordinates and kept in `f64`. Points may lie outside of the
    /// box: they are wrapped for binning, and their coordinates stay as given.
    #[doc(alias("pbc", "minimum_image", "boundary"))]
    pub fn periodic(mut self, lengths: [Option<f64>; 3]) -> Self {
        self.domain = Domain::new(lengths);
        self
    }

    /// A tilted box in the form of LAMMPS and GROMACS: box length per axis, `None` where it is
    /// open, and the tilts `[xy, xz, yz]`. xy must be 0 if y is open, xz and yz if z is open. The
    /// box repeats along (lx, 0, 0), (xy, ly, 0) and (xz, yz, lz).
    ///
    /// Everything is found whatever the tilts are. On the CPU a box tilted by several of its
    /// lengths is searched as fast as one with short vectors of the same lattice. A GPU searches it
    /// in slanted cells, which takes longer: prefer tilts of up to half a length there.
    ///
    /// Tilts are lengths, in the unit of the coordinates, not angles.
    #[doc(alias("tilt", "lattice"))]
    pub fn triclinic(mut self, lengths: [Option<f64>; 3], tilts: [f64; 3]) -> Self {
        self.domain = Domain::triclinic(lengths, tilts);
        self
    }

    /// A box that repeats along any three vectors, `None` where the axis is open; they need not be
    /// lower triangular. Where axes are open, the one or two vectors may point anywhere and the
    /// domain has no images in the directions across them; should one lean along an open axis, two
    /// backends share no jobs: the engine stays on the CPU unless a GPU alone is asked for. Cells
    /// then grow with what rounding adds over the extent of all points, so a single point millions
    /// of radii away slows the search.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// // A face-centred cubic crystal by the cell of a single atom: twelve nearest neighbours.
    /// let cell = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]];
    /// let mut engine = Engine::builder(0.8).box_vectors(cell.map(Some)).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3]])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(atoms, atoms)?.of(0), &[0; 12]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    #[doc(alias("lattice", "cell", "unit_cell"))]
    pub fn box_vectors(mut self, vectors: [Option<[f64; 3]>; 3]) -> Self {
        self.domain = Domain::from_vectors(vectors);
        self
    }

    /// The precision in which positions are taken and pairs are decided; [`Precision::Single`] by
    /// default. [`Precision::Double`] is for coordinates that `f32` is too coarse for, such as
    /// those of a small cloud far from the origin.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let far = [[1e8, 0.0, 0.0], [1e8 + 0.25, 0.0, 0.0], [1e8 + 0.75, 0.0, 0.0f64]];
    /// let mut engine = Engine::builder(0.3).precision(Precision::Double).build()?;
    /// let points = engine.add_point_set(&far)?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(points, points)?.of(0), &[1]);
    /// assert!(engine.neighbors(points, points)?.of(2).is_empty());
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Which pairs are neighbours is decided by the same operations as in `f32`, all of them in
    /// `f64` (see the [crate's documentation](crate)). The displacement and squared distance of a
    /// pair are rounded to `f32` when they are handed out, and fields of kernels are `f32`: sums
    /// are as precise as `f32` sums are, of exactly the right pairs.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Hardware to use; [`Device::Auto`] by default. [Engines in `f64`](Self::precision) use a GPU
    /// if it is asked for as [`Device::Gpu`]; two backends share jobs in `f32` only.
    ///
    /// With [`Device::Auto`] the CPU backend begins. Where there is a GPU's driver the first GPU,
    /// or [another](Self::auto_gpu), is started meanwhile at the second step (a set's first
    /// [`update`](crate::Engine::update)) of ten thousand points or more, and once it is ready both
    /// backends divide the steps as with [`Device::Hybrid`]. No step waits for the start, and the
    /// engine's jobs so far are tried on the GPU before it is taken in;
    /// [`Engine::warm_up`](crate::Engine::warm_up) does both at a time of the program's choosing. A
    /// GPU that does not help gets no work, and one that cannot be used is not an error:
    /// [`Report::reason`](crate::report::Report::reason) tells.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The number of the GPU that [`Device::Auto`] takes in; 0, the default, is the first. Numbers
    /// are counted around: of two GPUs 2 is the first again. So engines that share a machine, such
    /// as those of ranks, take different GPUs before they know how many there are.
    pub fn auto_gpu(mut self, turn: u32) -> Self {
        self.turn = turn;
        self
    }

    /// Worker threads of the CPU backend; 0, the default, for one per core. One of them rests
    /// while the GPU shares a step. Results do not depend on their number.
    ///
    /// An engine has a pool of its own, so engines do not disturb each other, nor the global pool
    /// of rayon.
    ///
    /// Threads are started by the first work that is worth it, about a thousand points a thread in
    /// one search or several, and end with the engine: a single search of few points runs on the
    /// calling thread. Where the system refuses to start as many as were asked for, searches and
    /// traversals fail with [`ErrorKind::Cpu`](crate::ErrorKind::Cpu). With 0 they go on with the
    /// calling thread, and a warning in the trace and the report say so.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Holds the CPU backend to an instruction set, for tests and measurements; by default the best
    /// one the processor has. A level that the processor lacks is ignored. Lists and sums are the
    /// same at every level; [`Report::simd`](crate::report::Report::simd) has the one in use.
    pub fn simd(mut self, level: SimdLevel) -> Self {
        self.simd = Some(level);
        self
    }

    /// Cells per radius along each axis (K), 1 by default, at most 8. Results are the same for
    /// every K, only the order inside lists and the time differ.
    ///
    /// Finer cells test fewer candidates and have more borders: with K = 2 a target looks through
    /// 25 runs of cells instead of nine. That pays for dense clouds only.
    pub fn subdivision(mut self, cells: u32) -> Self {
        self.subdivision = cells.clamp(1, 8);
        self
    }

    /// How the GPU backend maps cells and targets to threads; all strategies find the same
    /// neighbours. [`Strategy::Flat`] by default. The CPU backend ignores it.
    ///
    /// [`Strategy::Auto`] measures strategies by classes of occupancy while steps repeat, and the
    /// report has what it measured.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Full lists (the default) or half lists, in which each pair of a set stands once, and which
    /// need a rule of radii by which two points find each other. Lists of two different sets are
    /// full either way.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).lists(ListKind::Half).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(points, points)?.pairs(), 1);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Half lists have half the entries. Counts and traversals over cells are not affected.
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.lists = kind;
        self
    }

    /// Order of the neighbours inside a list; [`ListOrder::Unspecified`], the fastest, by default.
    /// It is the same from run to run, and depends on cells and positions.
    /// [`ListOrder::Ascending`] depends on nothing; lists of a GPU are sorted after they have
    /// arrived.
    ///
    /// Where two backends share the lists, the unspecified order also depends on which of them
    /// found a list.
    pub fn list_order(mut self, order: ListOrder) -> Self {
        self.order = order;
        self
    }

    /// Chooses the radius that decides whether two points are neighbours: [`RadiusRule::Uniform`],
    /// the engine's for all points, by default. By any other rule points have radii of their own,
    /// which [`Engine::set_radii`](crate::Engine::set_radii) takes, and the engine's radius is the
    /// largest they may have.
    ///
    /// Searches and traversals refuse a set whose radii count and have not been given
    /// ([`ErrorKind::NoRadii`](crate::ErrorKind::NoRadii)). Pair kernels are not told the radii:
    /// hand them in as a field where they need them. [Engines in `f64`](Self::precision) have one
    /// radius for all points: [`build`](Self::build) refuses another rule for them.
    pub fn radii(mut self, rule: RadiusRule) -> Self {
        self.rule = rule;
        self
    }

    /// Leaves out pairs that are exactly as far apart as the radius: neighbours are those with
    /// d² < fl(r·r) instead of d² ≤ fl(r·r). Other libraries draw the line so, which tells on
    /// regular lattices. Not together with [radii of single points](Self::radii).
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).strictly_within().build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(points, points)?.of(0), &[2]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn strictly_within(mut self) -> Self {
        self.strict = true;
        self
    }

    /// A cut-off for every pair of types of points: two points are neighbours when d² ≤ fl(r·r) of
    /// the cut-off r of their types, in the engine's precision. The matrix is square and symmetric,
    /// row by row; each cut-off is at most the engine's radius, and 0 means never, at any distance.
    /// [`Engine::set_types`](crate::Engine::set_types) takes the types, which every set needs.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(2.0).cutoffs(&[[2.0, 1.0], [1.0, 0.0]]).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [1.5, 0.0, 0.0], [0.5, 0.0, 0.0]])?;
    /// engine.set_types(points, &[0u8, 0, 1])?;
    /// assert_eq!(engine.count_neighbors(points, points)?, [2, 2, 2]);
    /// let refused = Engine::builder(1.0).cutoffs(&[[2.0]]).build().unwrap_err();
    /// assert!(refused.to_string().contains("the cut-off of types 0 and 0 is 2"));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// With [`strictly_within`](Self::strictly_within) d² must be less. Positions of a
    /// [query](crate::Engine::query) have no type and the engine's radius. Not together with [radii
    /// of single points](Self::radii) or lists with a skin. A GPU does it if it was named, alone.
    #[doc(alias = "rcut")]
    pub fn cutoffs<R: AsRef<[f64]>>(mut self, rows: &[R]) -> Self {
        self.cutoffs = Some(rows.iter().map(|row| row.as_ref().to_vec()).collect());
        self
    }

    /// Keeps the `k` nearest of the neighbours of every point, and of every position of a query:
    /// those with the smallest d², of equal ones those with the smaller index, then the image that
    /// comes first in lexicographic order. Points within the radius are fewer where there are
    /// fewer. Types, exclusions and chosen targets decide first.
    ///
    /// Lists are then in the order of that comparison, nearest first, and [`ListOrder::Ascending`]
    /// is refused. They are full: i may be among the k nearest of j without the reverse, so half
    /// lists are refused, and symmetric kernels are evaluated from either side.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let row = [[0.0f32; 3], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [7.0, 0.0, 0.0]];
    /// let mut engine = Engine::builder(4.0).nearest(2).build()?;
    /// let points = engine.add_point_set(&row)?;
    /// engine.find_neighbors()?;
    /// let lists = engine.neighbors(points, points)?;
    /// assert_eq!((lists.of(0), lists.of(2), lists.of(3)), (&[1, 2][..], &[1, 0][..], &[2][..]));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A search for k neighbours takes a radius that holds k of them; a radius that holds many more
    /// costs their search. A GPU does it if it was named, alone; its first job after an update
    /// takes another pass over the lists, which finds the last pair that is kept of every point.
    #[doc(alias = "knn")]
    pub fn nearest(mut self, k: u32) -> Self {
        self.nearest = Some(k);
        self
    }

    /// Bytes that neighbour lists may take: all lists of the engine together, the lists of a query,
    /// and every chunk of [`Engine::list_chunks`](crate::Engine::list_chunks). No limit by default.
    ///
    /// Lists are written in one pass while the limit leaves about a tenth of room for gaps between
    /// them. Closer to the limit neighbours are counted before lists are allocated, so a search
    /// takes about twice as long. Lists that do not fit are refused with the number of bytes that
    /// they need ([`ErrorKind::MemoryLimit`](crate::ErrorKind::MemoryLimit)).
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).memory_limit(8).build()?;
    /// engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let refused = engine.find_neighbors().unwrap_err();
    /// assert!(matches!(refused.kind(), ErrorKind::MemoryLimit { limit: 8, .. }), "{refused}");
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// How the backends of [`Device::Hybrid`] and [`Device::Emulated`] divide a step between them,
    /// judging by what earlier steps took; [`Policy::Model`] by default. Other devices ignore it.
    ///
    /// Every job has a controller of its own that learns by this policy. It can be replaced while
    /// the engine runs: [`Engine::set_policy`](crate::Engine::set_policy).
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Results that depend on the input, the device asked for and these settings alone, and never
    /// on what steps took; off by default. Which points are neighbours never depends on it, but
    /// sums do in their last bits, and lists in the order inside them.
    ///
    /// [`Device::Auto`] then is the CPU backend, [`Strategy::Auto`] is [`Strategy::Flat`], and both
    /// backends together divide steps by a threshold that suits a typical machine instead of this
    /// one, unless the policy is [`Policy::Fixed`].
    pub fn deterministic(mut self, deterministic: bool) -> Self {
        self.deterministic = deterministic;
        self
    }

    /// Cells along each edge of the bricks: 1 to 8, 2 by default. A brick is a block of cells that
    /// goes to one backend as a whole. Larger ones cost less to plan, smaller ones tell dense
    /// places from sparse ones more finely. Counts where [`policy`](Self::policy) does.
    pub fn brick_edge(mut self, cells: u32) -> Self {
        self.brick_edge = cells;
        self
    }

    /// Subregions of about equal work that a step is cut into: 1 to 64, 32 by default. Each moves
    /// to and from the GPU in one transfer. More hide transfers better and cost more launches.
    /// Counts where [`policy`](Self::policy) does.
    pub fn subregions(mut self, count: usize) -> Self {
        self.subregions = count;
        self
    }

    /// What [`subregions`](Self::subregions) have about as much of: [`Equal::Work`], the default,
    /// or [`Equal::Points`], where transfers of equal size matter more than equal times.
    pub fn equal_subregions(mut self, equal: Equal) -> Self {
        self.equal = equal;
        self
    }

    /// Whether the first steps of both backends are divided by the rates of earlier runs, and the
    /// rates of this one are kept for later ones; on by default.
    ///
    /// They lie beside the compiled kernels, in the folder that `NEARFIELD_CACHE_DIR` names or the
    /// user's cache, for this driver, card, processor and number of threads. Without them a policy
    /// begins with an eighth of the work for the CPU, and has settled some steps later. Emulated
    /// devices and [`deterministic`](Self::deterministic) engines neither read nor write them.
    pub fn known_rates(mut self, known: bool) -> Self {
        self.known_rates = known;
        self
    }
}

impl Builder {
    /// The defaults.
    pub(super) fn new(radius: f64) -> Self {
        Self {
            radius,
            precision: Precision::Single,
            domain: Ok(Domain::OPEN),
            device: Device::Auto,
            turn: 0,
            threads: 0,
            simd: None,
            subdivision: 1,
            strategy: Strategy::Flat,
            lists: ListKind::Full,
            order: ListOrder::Unspecified,
            rule: RadiusRule::Uniform,
            strict: false,
            cutoffs: None,
            nearest: None,
            memory_limit: None,
            policy: Policy::Model,
            brick_edge: BRICK_EDGE,
            subregions: SUBREGIONS,
            equal: Equal::Work,
            known_rates: true,
            deterministic: false,
        }
    }
}

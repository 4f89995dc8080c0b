//! Nearfield finds, for every point, all points within a radius, and computes pair interactions
//! over them.
//!
//! ```
//! use nearfield::prelude::*;
//!
//! let positions = vec![[0.0f32, 0.0, 0.0], [0.4, 0.0, 0.0], [0.0, 0.9, 0.0]];
//! let mut engine = Engine::builder(0.5).build()?;
//! let points = engine.add_point_set(&positions)?;
//! engine.find_neighbors()?;
//! let lists = engine.neighbors(points, points)?;
//! assert_eq!(lists.of(0), &[1]);
//! assert_eq!(lists.of(2), &[] as &[u32]);
//! # Ok::<(), nearfield::Error>(())
//! ```
//!
//! A single search of points in an open domain is one call: [`neighbors`].
//!
//! # Which call for what
//!
//! | you want | call |
//! | --- | --- |
//! | neighbour lists, once | [`neighbors`] |
//! | neighbour lists, step after step | [`Engine::find_neighbors`], [`Engine::neighbors`] |
//! | a sum, minimum or maximum over neighbours, once per step | [`Engine::traverse`] with a [`PairKernel`]: no list is stored, which is faster |
//! | several kernels over the same pairs | the same with [`Traversal::over_lists`] |
//! | code of your own per point, on all cores | [`Engine::map_targets`] |
//! | code of your own per pair, from another language | [`Engine::for_each_batch`] |
//! | the neighbours of one point | [`Engine::for_each_neighbor`] |
//! | how many neighbours there are | [`Engine::count_neighbors`] |
//! | neighbours of arbitrary positions | [`Engine::query`], [`Engine::query_into`] |
//! | displacements, distances and images of the pairs in lists | [`Engine::pair_geometry`] |
//! | lists larger than memory allows | [`Engine::list_chunks`] |
//! | lists that last for many steps of slow points | [`VerletLists`](lists::VerletLists) |
//! | periodic axes, straight or tilted boxes | [`Builder::periodic`], [`Builder::triclinic`], [`Builder::box_vectors`] |
//! | several sets, as fluid and walls | [`Engine::add_point_set`] for each, [`Engine::set_active`] for the pairs of sets that are searched |
//! | every pair once (half lists, `i < j`) | [`Builder::lists`] with [`ListKind::Half`] |
//! | points in the plane | z = 0 in all positions |
//! | work on a GPU, or on both | [`Builder::device`] |
//! | a search radius per point | [`Builder::radii`], [`Engine::set_radii`] |
//! | a cut-off per pair of types | [`Builder::cutoffs`], [`Engine::set_types`] |
//! | pairs that are left out | [`Engine::set_exclusions`], [`Engine::set_molecules`] |
//! | neighbours of some points only | [`Engine::set_targets`] |
//! | the k nearest | [`Builder::nearest`] |
//! | coordinates that `f32` is too coarse for | [`Builder::precision`] |
//! | pairs of thousands of molecules or crystals at once | [`systems::neighbors`], [`SystemSearch`](systems::SystemSearch) |
//! | gravity or potentials of all pairs, without a radius | [`Engine::all_pairs`] |
//! | points that live on a GPU | [`DeviceEngine`](device::DeviceEngine) |
//! | arrays that are local in memory | [`Engine::z_sort`] |
//! | where a step ran, and why | [`Engine::report`] |
//!
//! # Where the types are
//!
//! * **Engines**: [`Engine`] holds one search radius, one domain (open or periodic per axis, the
//!   box straight or tilted) and any number of point sets, named by [`PointSetId`]s. Its settings
//!   are a [`Builder`], with [`Device`], [`Precision`], [`ListKind`], [`ListOrder`] and
//!   [`RadiusRule`].
//! * **In and out**: [`Positions`] are `&[[f32; 3]]`, `&[glam::Vec3]`, 2D arrays or strided inside
//!   your own structs; they are copied once, sorted by cell. [`NeighborLists`], [`Permutation`] and
//!   the results of a [`Traversal`] are always in your order and numbering. [`lists`] has the other
//!   forms of lists: with a skin, in chunks, with the geometry of pairs, without gaps.
//! * **Kernels**: [`PairKernel`], [`Pair`] and [`Reduce`]; [`kernels`] has ready kernels and parts
//!   for others, and [`Field`](kernels::Field), which reads values inside your own structs.
//! * **Errors**: [`Error`] and [`ErrorKind`]; [`error`] has those of the crates underneath, and
//!   what a device [cannot do](error::Unsupported).
//! * **Settings of balance**: [`balance`] has the policies by which backends share work, and the
//!   strategies of the GPU; [`report`] says what an engine did. Neither is needed to get results.
//! * [`all_pairs`] has sums without a radius, [`systems`] searches many small sets at once, and
//!   `device` is the engine for data on a GPU.
//!
//! # Cargo features
//!
//! `gpu`, on by default, is the GPU backend: [`Device::Gpu`], [`Device::Hybrid`] and the module
//! `device` with `DeviceEngine`. It needs no CUDA toolkit to build and no driver to run. Without it
//! (`default-features = false`) the crate has half as many dependencies, [`Device::Auto`] is the
//! CPU backend, and a GPU that is asked for by name is [`ErrorKind::Unsupported`].
//!
//! `trace` is the module `report::trace`, which records where the time of a program goes.
//!
//! # Units, shapes and limits
//!
//! The engine knows no units: coordinates, radii, skins and boxes are in one unit, which the
//! program chooses. Positions are three numbers per point; fields, radii and results have one
//! element per point, in the caller's order. Indices are `u32` and count the points of a set from
//! 0. Coordinates must be finite. A set may be empty, and points may coincide.
//!
//! # Cost
//!
//! Time and memory grow with the points and with the pairs found, not with the volume: empty cells
//! are left out of the cell table where they would outnumber the points by more than eight to one.
//! An update sorts the set that it names, and others only if the cells must change. A list costs 12
//! bytes per target and 4 per neighbour; a traversal stores nothing per pair. Memory is kept from
//! step to step, so later steps allocate little or nothing; the [report](Engine::report) has the
//! bytes by structure.
//!
//! # Threads
//!
//! An engine has a pool of worker threads of its own, which every job for whole sets uses. Jobs
//! that take `&self` may run at the same time; they share the pool. Neither lists nor sums depend
//! on the number of threads.
//!
//! # What is exact
//!
//! A source j in periodic image n is a neighbour of target i when d² ≤ fl(r·r), where per axis d =
//! fl(fl(xj − xi) + S), S = n·length rounded once from `f64` (in a tilted box the sum of its
//! vectors (n_a·a + n_b·b) + n_c·c, rounded once from `f64`), and d² = fma(dz, dz, fma(dy, dy,
//! dx·dx)), all in `f32`. Only a point itself, in the zero image, is left out; coincident points
//! are neighbours. With radii of single points, fl(r·r) is that of the point, or the larger of two,
//! that the [`RadiusRule`] names. No list is ever truncated. The same input gives the same lists in
//! the same order and the same sums, whatever the number of threads or the processor's vector
//! width; [`ListOrder::Ascending`] makes the order independent of the cell size too.
//!
//! Coordinates are `f32`: far from the origin they are coarse, and distances are those of the
//! coordinates as given. [`Precision::Double`] makes an engine that takes `&[[f64; 3]]`,
//! `&[glam::DVec3]` and their like (and `f32`, which it converts), and for which all of the above
//! holds with `f64` in the place of `f32`: radius, coordinates, image vectors and every operation.
//! Kernels, callbacks and geometry get that displacement and its square, each rounded to `f32`
//! once, and what kernels add up is `f32`. An engine in `f32` refuses `f64` coordinates rather than
//! round them.

#[cfg_attr(
    not(feature = "gpu"),
    allow(
        dead_code,
        unused_imports,
        reason = "the engine for data on a GPU uses them"
    )
)]
mod backend;
#[cfg(feature = "gpu")]
pub mod device;
mod device_names;
mod engine;
pub mod error;
mod hardware;
mod own_radii;
mod point_set_id;
mod skin;
mod slots;
mod unsupported;

pub use engine::{Engine, builder::Builder, one_call::neighbors, traverse::Traversal};
pub use error::{Error, ErrorKind};
pub use hardware::Device;
/// ```
/// use nearfield::prelude::*;
/// let row = [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [9.0, 0.0, 0.0]];
/// let mut engine = Engine::builder(1.0).list_order(ListOrder::Ascending).build()?;
/// let points = engine.add_point_set(&row)?;
/// engine.find_neighbors()?;
/// let lists: &NeighborLists = engine.neighbors(points, points)?;
///
/// // List by list: the neighbours of point 1, and those of every point.
/// assert_eq!((lists.of(1), lists.count(1)), (&[0, 2][..], 2));
/// assert!(lists.iter().zip(0..).all(|(list, i)| !list.contains(&i)));
/// assert_eq!((lists.len(), lists.pairs(), lists.is_empty()), (4, 4, false));
///
/// // As other languages take them: where each list begins in the storage, and how long it is.
/// let (start, count) = (lists.starts()[1] as usize, lists.counts()[1] as usize);
/// assert_eq!(&lists.storage()[start..start + count], lists.of(1));
///
/// // As sparse matrices take them: a copy without gaps, in the order of the points.
/// let csr = lists.to_csr()?;
/// assert_eq!(csr.offsets, [0, 1, 3, 4, 4]);
/// assert_eq!(csr.indices, [1, 0, 2, 1]);
///
/// // Bytes held, room for the next search included.
/// assert_eq!(lists.bytes(), lists.bookkeeping_bytes() + lists.entry_bytes());
///
/// // Lists of one's own: taken from the engine, sorted, and their memory given back.
/// let mut lists = engine.take_neighbors(points, points, NeighborLists::default())?;
/// lists.sort();
/// lists.shrink();
/// lists.release();
/// assert_eq!((lists.len(), lists.bytes()), (0, 0));
/// # Ok::<(), nearfield::Error>(())
/// ```
pub use nearfield_cpu::NeighborLists;
pub use nearfield_cpu::{ListOrder, RadiusRule};
pub use nearfield_grid::{Permutation, Positions, Precision, Radii};
pub use nearfield_pairs::{ListKind, Pair, PairKernel, Reduce, pair_fn, pair_kernel};
pub use point_set_id::PointSetId;

pub mod all_pairs {
    //! Sums over all pairs of points, without a radius: gravity, and potentials on grids.
    //! [`Engine::all_pairs`](crate::Engine::all_pairs) starts one.
    //!
    //! * [`AllPairs`] has the sums, [`AllPairsBuilder`] its settings, [`AllPairsReport`] where it
    //!   ran.
    //! * [`PairSum`] names what is summed, [`Arithmetic`] how roots are computed, and [`Real`] is
    //!   `f32` or `f64`.
    //! * [`Sources`] are points with a mass or charge each; [`SampleGrid`] has the points of a
    //!   regular grid, x fastest.

    pub use crate::engine::all_pairs::{AllPairs, AllPairsBuilder, AllPairsReport};
    #[doc(hidden)]
    pub use nearfield_pairs::PairSumSettings;
    pub use nearfield_pairs::{Arithmetic, PairSum, Real, SampleGrid, Sources};
}

pub mod balance {
    //! How work is divided: steps between the CPU and the GPU, and the GPU's part among its
    //! threads. Most programs keep the defaults.
    //!
    //! * A [`Policy`] moves the border between the backends of
    //!   [`Device::Hybrid`](crate::Device::Hybrid); [`Builder::policy`](crate::Builder::policy)
    //!   takes it.
    //! * [`Equal`] says what the parts of a step have about as much of
    //!   ([`Builder::equal_subregions`](crate::Builder::equal_subregions)).
    //! * A [`Strategy`] maps cells to threads of the GPU;
    //!   [`Builder::strategy`](crate::Builder::strategy) takes it.
    //! * [`emulated`] describes machines on which policies are tried out.

    pub use nearfield_balance::{Equal, Policy, Strategy};
    #[doc(hidden)]
    pub use nearfield_cpu::WorkerHandle;

    pub mod emulated {
        //! The machine of [`Device::Emulated`](crate::Device::Emulated): a CPU with a GPU that does
        //! not exist, for tests of policies and of programs where there is no GPU.

        pub use nearfield_balance::{EmulatedSpec, FaultAt};
    }
}

pub mod kernels {
    //! Pair kernels that come with the engine, and the parts that kernels are made of.
    //!
    //! * Smoothed particle hydrodynamics: [`SphDensity`] and [`SphForce`] over [`WendlandC2`].
    //! * Molecular dynamics: [`LennardJones`], [`CutoffCoulomb`], [`PowerLaw`]. They are
    //!   [`PairPotential`]s: [`Forces`] and [`Interactions`] make kernels of one, [`Sum`] adds two.
    //! * Charges: [`ChargePotential`] and [`ChargeField`].
    //! * For kernels of your own: [`Channels`] are the values that a
    //!   [`PairKernel`](crate::PairKernel) reads and gives, derived for structs.
    //!   [`pair_kernel`](crate::pair_kernel) translates a kernel for the GPU,
    //!   [`pair_fn`](crate::pair_fn) a function that it calls; [`cuda_source`] returns the text.
    //!   [`fast_sqrt`], [`fast_rsqrt`], [`fast_recip`], [`fast_div`], [`fast_mul_add`] and
    //!   [`fast_saturate`] are cheaper on a GPU than exact functions.
    //! * For kernels that ask for more than values of points: [`Indices`] has the indices of both,
    //!   [`Images`] finds the periodic image of a pair, and [`Random`] has random numbers of points
    //!   and pairs, by [`philox4x32`]. [`unit_interval`], [`unit_variance`] and [`normal`] make
    //!   numbers of their bits, and [`mul_high`] is for generators of your own.
    //!   [`Cuda`] and [`CudaParts`] are texts written by hand.

    #[doc(hidden)]
    pub use nearfield_pairs::__device;
    pub use nearfield_pairs::{
        Channels, ChargeField, ChargePotential, Coefficients, Cuda, CudaParts, CutoffCoulomb,
        Dimensions, EnergyForce, EnergyVirial, Field, FieldsOf, Forces, Images, Indices,
        Interactions, LennardJones, LongRange, MAX_TYPES, Mixing, PairPotential, PlainLennardJones,
        PowerLaw, Random, Screening, SphDensity, SphForce, Sum, Truncation, WendlandC2,
        cuda_source, fast_div, fast_mul_add, fast_recip, fast_rsqrt, fast_saturate, fast_sqrt,
        mul_high, normal, philox4x32, unit_interval, unit_variance,
    };
}

pub mod lists {
    //! Other forms of neighbours than [`NeighborLists`](crate::NeighborLists).
    //!
    //! * [`VerletLists`] serve for many steps of slow points; [`Refresh`] says what a step did.
    //! * [`PairGeometry`] has displacements, distances and images in addition to the indices of
    //!   lists, in the precision of the engine ([`PairArrays`]).
    //! * [`ListChunks`] hands lists out that are larger than memory allows, one [`ListChunk`] at a
    //!   time, and [`PairBatch`] pairs without lists.
    //! * [`QueryScratch`] is memory of queries, and has the lists of the last one.
    //! * [`Csr`] is a copy of lists without gaps, as other libraries take them.

    pub use crate::engine::{
        batches::PairBatch,
        chunks::{ListChunk, ListChunks, PausedChunks},
        query::QueryScratch,
        verlet::VerletLists,
    };
    pub use crate::skin::Refresh;
    pub use nearfield_cpu::{NeighborPair, PairArrays, PairGeometry};
    pub use nearfield_grid::Csr;
}

pub mod report {
    //! Reports of an engine's steps: [`Engine::report`](crate::Engine::report).
    //!
    //! * [`Report`] is the whole; [`SetReport`], [`StageTimes`] and [`MemoryReport`] are its parts.
    //! * [`JobReport`] says of a job where it ran and why, and [`SplitReport`] how two backends
    //!   shared it, one [`BackendReport`] each.
    //! * [`GpuReport`] is what a GPU holds, and [`trials`] what it has measured by itself.
    //! * [`SimdLevel`] is the instruction set of the CPU backend, and [`TableKind`] the form of a
    //!   set's cell table.

    pub use crate::backend::gpu_report::GpuReport;
    pub use crate::backend::split::{BackendReport, JobReport, SplitReport};
    pub use crate::engine::report::{MemoryReport, Report, SetReport, StageTimes};
    pub use nearfield_cpu::SimdLevel;
    pub use nearfield_grid::TableKind;
    #[cfg(feature = "trace")]
    #[doc(no_inline)]
    /// Records where the time of a program goes, for `nearfield trace`: one line starts it, and it
    /// ends when its guard is dropped.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// # let folder = std::env::temp_dir().join(format!("trace-{}.jsonl", std::process::id()));
    /// # let path = &folder;
    /// let _trace = nearfield::report::trace::start(path)?;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let set = engine.add_point_set(&[[0.0f32, 0.0, 0.0], [0.3, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// # drop(_trace);
    /// # assert!(std::fs::read_to_string(path)?.contains("engine.find_neighbors"));
    /// # std::fs::remove_file(path)?;
    /// # let _ = set;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub use nearfield_trace as trace;

    pub mod trials {
        //! Measurements of [`Strategy::Auto`](crate::balance::Strategy::Auto): a [`Trial`] has the
        //! times of a [`Configuration`], a strategy with its cells, for a [`Class`] of occupancy.

        pub use nearfield_balance::{Class, Configuration, Trial};
    }
}

pub mod systems {
    //! Many systems of points in one search: thousands of molecules or crystals, as programs that
    //! train potentials have them.
    //!
    //! The points of all systems stand behind each other in one array, and offsets say where each
    //! begins. Every system has a cell and a periodicity, or is open, and a radius of its own or
    //! that of all. There is no pair between systems. The pairs of a system are those of an
    //! [`Engine`](crate::Engine) of this system alone, bit for bit.
    //!
    //! * [`neighbors`] is one call; [`SystemSearch`], with its settings in a
    //!   [`SystemSearchBuilder`], searches again and again. [`SystemsReport`] says where.
    //!   [`SkinSearch`] keeps lists with a skin over the calls.
    //! * [`Systems`] borrows the arrays of all systems, and [`SystemReal`] is `f32` or `f64`.
    //! * [`SystemPairs`] has the results, of which [`Quantities`] says which are wanted, and
    //!   [`PairIndex`] is `i32`, `i64` or `u32`; [`PairColumns`] are its arrays, to keep.
    //!
    //! Cells may have any shape and handedness and be much smaller than the radius: every image
    //! within it is a pair of its own. Points need not lie in their cell, and vectors of open axes
    //! are not read, so they may be zero.

    pub use crate::engine::skin_search::SkinSearch;
    pub use crate::engine::systems::{SystemSearch, SystemSearchBuilder, SystemsReport, neighbors};
    pub use nearfield_cpu::{PairColumns, PairIndex, Quantities, SystemPairs, SystemReal, Systems};
}

/// The names that most programs need, for `use nearfield::prelude::*`.
///
/// Types of settings, results and errors, and no trait but [`PairKernel`], so that a glob import
/// brings no method into a program unseen.
pub mod prelude {
    pub use crate::{
        Device, Engine, Error, ErrorKind, ListKind, ListOrder, NeighborLists, Pair, PairKernel,
        Permutation, PointSetId, Positions, Precision, RadiusRule, Reduce, all_pairs::AllPairs,
        kernels::Channels,
    };
}

/// The README's programs, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
struct Readme;

//! An engine for programs whose data live on a GPU: arrays of the device in and out, on the
//! caller's stream, without waiting for the device from step to step.
//!
//! The module exists with the cargo feature `gpu` only, which is on by default.
//!
//! ```no_run
//! use nearfield::device::{DeviceEngine, DeviceField, Progress, Context};
//! use nearfield::kernels::{SphDensity, WendlandC2};
//!
//! # fn simulate() -> Result<(), Box<dyn std::error::Error>> {
//! let stream = Context::open(0)?.new_stream()?;
//! // Three numbers a point; your own kernels fill and move them on the same stream.
//! let positions = stream.clone_htod(&vec![0.5f32; 3 * 1000])?;
//! let mass = stream.clone_htod(&vec![1.0f32; 1000])?;
//! let mut density = stream.alloc_zeros::<f32>(1000)?;
//!
//! let mut engine = DeviceEngine::builder(0.1).on(&stream)?;
//! let fluid = engine.add_point_set(&positions.as_view())?;
//! let kernel = SphDensity { kernel: WendlandC2::with_support(0.1) };
//! engine.update(fluid, &positions.as_view())?;
//! loop {
//!     engine
//!         .traverse(&kernel, fluid, fluid)
//!         .sources(DeviceField::new(mass.as_view(), 1))
//!         .run_into(&mut density.as_view_mut())?;
//!     // As often as you like, at the latest when results leave the device:
//!     match engine.finish()? {
//!         Progress::Valid => break,
//!         Progress::Repeat => {} // there is room now: once more
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where the types are
//!
//! * [`DeviceEngine`] has the jobs, [`DeviceEngineBuilder`] its settings; [`Progress`] is the
//!   answer of `finish`.
//! * A [`DeviceTraversal`] takes [`DeviceField`]s ([`DeviceFieldsOf`]) and a [`DeviceKernel`];
//!   [`DeviceListsView`] has the lists of a search. [`DeviceVerletLists`] have a skin.
//! * [`Context`], [`Stream`], [`Event`] and the arrays [`DeviceBuffer`], [`DeviceView`] and
//!   [`DeviceViewMut`] are handles of the GPU; failed calls of them return a [`DriverError`].
//!   [`Lent`] is an array of another library, [`LentColumns`] are several for pairs.
//! * [`programs`] is for CUDA kernels of your own, [`copies`] for counted copies and page-locked
//!   memory, [`interop`] for bindings. Errors of the GPU are in
//!   [`error::gpu`](crate::error::gpu).
//!
//! # How a step goes
//!
//! 1. [`update`](DeviceEngine::update) copies positions on the device and sorts them into the cells
//!    there are.
//! 2. [`traverse`](DeviceEngine::traverse), [`count_neighbors`](DeviceEngine::count_neighbors),
//!    [`find_neighbors`](DeviceEngine::find_neighbors) and
//!    [`pair_geometry`](DeviceEngine::pair_geometry) put their work on the stream, and
//!    [`write_pairs`](DeviceEngine::write_pairs) writes to arrays of your own. Kernels of your
//!    own, on the same stream, may read the results at once.
//! 3. [`finish`](DeviceEngine::finish) waits, and says whether the results count.
//!
//! The host is needed for launches only: a step sends no particle's data across the bus. A
//! [`CpuHelper`] may take a part of traversals; then the data around its part do cross.
//!
//! # Arrays
//!
//! | array | length | order |
//! | --- | --- | --- |
//! | positions | 3 per point: x, y, z | the caller's |
//! | a [`DeviceField`] | its channels per point, side by side | the caller's |
//! | results of a traversal | the kernel's outputs per target, side by side | the caller's |
//! | radii, types, molecules, a mask of targets | 1 per point | the caller's |
//! | counts | 1 per target | the caller's |
//! | lists: starts, lengths | 1 per target | the caller's |
//! | lists: entries | 1 per neighbour, and room behind them | by target, as its start says |
//! | geometry of pairs | 1 or 3 per entry | that of the entries |
//!
//! A kernel that reads [indices](crate::kernels::Indices) of points gets them without an array, and
//! one side may have several fields; both are put together on the device for the traversal.
//!
//! All are `f32`, but for counts, lengths and entries (`u32`) and starts (`u64`). Positions are
//! copied by [`update`](DeviceEngine::update), so the array may be overwritten by work that is put
//! on the stream afterwards. Fields and results are read and written in place by the work that
//! names them.
//!
//! Radii of single points are `f32`, types and molecules whole numbers of 32 or 64 bits, and a mask
//! bytes. They are copied like positions, and those that cannot be used are found by `finish`
//! ([`set_radii_from_device`](DeviceEngine::set_radii_from_device)).
//!
//! A program that keeps its arrays in the [order](DeviceEngine::order) of the cells, into which
//! [`reorder`](DeviceEngine::reorder) brings them, makes everything that follows faster: points
//! that are near each other are then near in memory. It need not do so at every step, because the
//! order stays good while points move little.
//!
//! # Arrays and streams of other libraries
//!
//! The handles here ([`Stream`], [`DeviceBuffer`], [`DeviceView`]) are types of this crate. Memory
//! of another library, cudarc's included, is known by its address and length: [`Lent`] borrows it
//! for a call and frees nothing. An engine works on another library's stream if it is started by
//! [`on_borrowed`](DeviceEngineBuilder::on_borrowed), and [`Context::borrow_stream`] makes a
//! [`Stream`] of a `CUstream`. The other way, [`DeviceView::device_ptr`] and [`Stream::as_raw`]
//! give address and handle.
//!
//! ```no_run
//! use nearfield::device::{DeviceEngine, Lent};
//! # use nearfield::Error;
//! # fn add(engine: &mut DeviceEngine, address: u64, points: usize) -> Result<(), Error> {
//! // SAFETY: the other library keeps 3 · points numbers there until the stream was waited for.
//! let positions = unsafe { Lent::<f32>::new(engine.stream(), address, 3 * points) };
//! let set = engine.add_point_set(&positions.as_view())?;
//! # Ok(())
//! # }
//! ```
//!
//! # Free positions
//!
//! [`query`](DeviceEngine::query) finds the neighbours of positions that are points of no set. They
//! become a set that only searches.
//!
//! # Some points, and lists that do not fit
//!
//! [`find_neighbors_of`](DeviceEngine::find_neighbors_of) finds the neighbours of points that are
//! named by their indices. [`list_chunks`](DeviceEngine::list_chunks) writes the lists of some
//! targets at a time into one storage, within a
//! [limit](DeviceEngineBuilder::memory_limit) of bytes that also bounds other lists.
//!
//! # Many systems
//!
//! [`DeviceSystemSearch`] finds the pairs of thousands of small systems whose arrays are on the
//! device, as [`crate::systems`] does on the host. A [`DeviceSkinSearch`] keeps lists with a skin
//! over the searches.
//!
//! # Provisional results
//!
//! A step sorts into the cells that the step before had, with room around them, and writes lists
//! into the storage there is. Whether that sufficed is only known to the device;
//! [`finish`](DeviceEngine::finish) asks it. Until then results are provisional: when a point has
//! left the cells, what was computed since is not to be used, but nothing is written out of place.
//! `finish` then makes room and says [`Progress::Repeat`].
//!
//! Room is twice the radius around the points or a sixteenth of their extent, whichever is more,
//! and along a periodic axis one box length. So a step is repeated after points at the border of
//! the cloud have moved on by that much, and a program that knows its walls avoids even these
//! repeats with [`within`](DeviceEngineBuilder::within). Lists are repeated when there are more
//! neighbours in all than the storage has room for.
//!
//! A program that moves points by results that are still provisional keeps a copy of the state that
//! a repeated step begins from.
//!
//! # Several kernels over one search, and lists over several steps
//!
//! [`find_neighbors`](DeviceEngine::find_neighbors) keeps the lists, and
//! [`over_lists`](DeviceTraversal::over_lists) runs any number of kernels over them.
//! [`DeviceVerletLists`] keeps lists with a skin over many steps of slow points: it follows the
//! points on the device, and kernels over its lists do nothing when a pair could be missing.
//!
//! # Errors
//!
//! Positions that cannot be used, because some are not finite or memory runs out, are refused: the
//! set has its last good positions again. Where `finish` finds this, what was computed since its
//! last call does not stand, and its next call says [`Progress::Repeat`].
//!
//! A fault of the GPU is an error here: what was on it is lost. In a forked child of the process
//! that started an engine its calls answer
//! [`gpu::ErrorKind::Forked`](crate::error::gpu::ErrorKind), and dropping it there does nothing.

mod builder;
mod bulk;
mod chunks;
mod engine;
mod fields;
mod filters;
mod geometry;
mod given_data;
mod halo;
mod helper;
mod lent;
mod lists;
mod named;
mod over_lists;
mod point_data;
mod query;
mod set;
mod sets;
mod skin_search;
mod start;
mod systems;
mod traverse;
mod verlet;
mod verlet_data;

pub use builder::DeviceEngineBuilder;
pub use chunks::{DeviceListChunk, DeviceListChunks};
pub use engine::{DeviceEngine, Progress};
pub use fields::DeviceFieldsOf;
pub use geometry::DeviceGeometry;
pub use helper::CpuHelper;
pub use lent::{Lent, LentColumns};
pub use lists::DeviceListsView;
pub use nearfield_gpu::{
    Context, DeviceArray, DeviceArrayMut, DeviceBuffer, DeviceField, DeviceValue, DeviceView,
    DeviceViewMut, DoublePairViews, DriverError, Event, GeometryQuantities, PairViews, PointNumber,
    PositionNumber, Stream,
};
pub use nearfield_gpu::{DeviceColumns, DeviceSystems};
pub use skin_search::DeviceSkinSearch;
pub use systems::{DevicePairsView, DeviceSystemSearch};
pub use traverse::{DeviceKernel, DeviceTraversal, WithCpu};
pub use verlet::DeviceVerletLists;

pub mod copies {
    //! Counted copies between host and device, and page-locked memory.
    //!
    //! * A [`Queue`] is a stream that counts the bytes of its copies ([`Transfers`]) and times its
    //!   work while a trace is recorded; [`DeviceEngine::queue`](super::DeviceEngine::queue) has
    //!   that of an engine. Two [`Moment`]s mark an exchange with others.
    //! * [`HostBuffer`] is page-locked memory. An [`Arriving`] one has a copy under way; a
    //!   [`HostCopy`] receives a few numbers again and again.

    pub use nearfield_gpu::{Arriving, HostBuffer, HostCopy, Moment, Queue, Transfers};
}

pub mod interop {
    //! Arrays and contexts of other libraries in the same process, for bindings of languages.
    //!
    //! * [`memory_at`] returns the [`MemoryKind`] and the GPU of an address.
    //! * [`CurrentContext`] restores the context of the calling thread when it is dropped.
    //! * [`InUse`] comes with the address of an array, and orders other streams behind its use.

    pub use nearfield_gpu::{CurrentContext, InUse, MemoryKind, memory_at};
}

pub mod programs {
    //! CUDA kernels of your own on the stream of an engine.
    //!
    //! * [`DeviceEngine::load`](super::DeviceEngine::load) compiles a [`Program`] and returns its
    //!   [`Module`]. A [`UserKernel`] of it starts with a [`LaunchShape`] and a tuple of
    //!   [`KernelArguments`]; structs among them are [`KernelArgument`]s.
    //! * Kernels that compute cells of points as the engine does get a [`KernelLattice`].
    //! * [`SideOfFields`] checks the fields of one side of a traversal, whose addresses a
    //!   [`CheckedField`] has.

    pub use nearfield_gpu::{
        CheckedField, KernelArgument, KernelArguments, KernelLattice, LaunchShape, Module, Program,
        SideOfFields, UserKernel,
    };
}

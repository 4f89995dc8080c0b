//! An engine on ranks for programs whose data live on a GPU: arrays of the device in and out, each
//! rank with a GPU of its own or a share of one.
//!
//! It has the domains, transports and exchanges of [`RankedEngine`](crate::RankedEngine).
//! Positions, fields and results stay on the device. Points at the border of a rank and their
//! fields travel: from GPU to GPU between threads of one process, and otherwise through page-locked
//! memory of the host, unless a CUDA-aware MPI [accesses GPU
//! memory](crate::RankedBuilder::gpu_messages).
//!
//! ```no_run
//! use nearfield::device::{DeviceField, Progress};
//! use nearfield::kernels::SphDensity;
//! use nearfield_ranks::{RankedEngine, device::DeviceRankedEngine, transport::threads};
//!
//! let steps = threads::run(2, |transport| {
//!     let settings = RankedEngine::builder(1.0);
//!     let mut engine = DeviceRankedEngine::start(settings, transport)?;
//!     // Each rank gives some points; they go to the ranks that own them.
//!     let first = 50 * engine.rank();
//!     let row: Vec<f32> = (first..first + 50).flat_map(|i| [0.5 * i as f32, 0.0, 0.0]).collect();
//!     let given = engine.upload(&row)?;
//!     let (row, moved) = engine.add_point_set(&given.as_view(), None)?;
//!     // Arrays of the caller follow them.
//!     let mut positions = moved.bring(&mut engine, &given.as_view(), 3)?;
//!
//!     for _ in 0..10 {
//!         // Kernels of your own, on the engine's stream, move the points here.
//!         let _ = engine.migrate_with(row, &mut [(&mut positions, 3)])?;
//!         let points = engine.points(row)?[0];
//!         let masses = engine.upload(&vec![1.0f32; points])?;
//!         let mut densities = engine.zeros::<f32>(points)?;
//!         loop {
//!             engine
//!                 .traverse(&SphDensity::with_support(1.0), row, row)
//!                 .sources(DeviceField::new(masses.as_view(), 1))
//!                 .run_into(&mut densities.as_view_mut())?;
//!             if engine.finish()? == Progress::Valid {
//!                 break;
//!             }
//!         }
//!     }
//!     Ok::<_, nearfield_ranks::Error>(engine.points(row)?)
//! });
//! # drop(steps);
//! # Ok::<(), nearfield_ranks::Error>(())
//! ```
//!
//! # A step
//!
//! 1. [`migrate`](DeviceRankedEngine::migrate) takes new positions. A kernel looks up the class of
//!    every point's cell: which rank owns it, and which ranks need it. The few points that other
//!    ranks need are split into send lists on the device, and the host reads how long these are.
//!    Points that have left go to their owners, with the caller's arrays if [these are
//!    given](DeviceRankedEngine::migrate_with), and positions at the border go to halos.
//! 2. Traversals, counts and lists begin with the owned points. Meanwhile halos and their fields
//!    arrive, and points at the border are searched in them on other streams; the results are then
//!    added.
//! 3. [`finish`](DeviceRankedEngine::finish) waits, and says whether results count; the same on all
//!    ranks.
//!
//! # Order
//!
//! Every point is on the rank that owns it. Points that stay keep their places, and points that
//! arrive take the places of those that left. If more arrive, the rest is appended; if fewer
//! arrive, points from the end fill the gaps. Owned points and points of the halo are numbered
//! separately, each from 0; [`ids`](DeviceRankedEngine::ids) and
//! [`lists_by_id`](DeviceRankedEngine::lists_by_id) give global ids.
//!
//! # Limits
//!
//! Coordinates are `f32`, all points have one radius and no filters, lists are full, and sums
//! depend on the number of ranks: settings that ask for anything else are refused.
//! Messages pass through host memory between threads if a GPU cannot read the memory of another
//! one, and between processes unless messages from GPU memory were asked for.
//!
//! An engine lets the driver's pool of its GPU keep freed memory for the process, if the pool keeps
//! less: an eighth of what is in use and 1 GiB more, or a sixteenth of the GPU's memory if that is
//! less than 1 GiB. A step makes arrays for halos and for points that have moved.
//!
//! # Errors
//!
//! As with [`RankedEngine`](crate::RankedEngine), errors are the same on all ranks. If memory is
//! short while points travel, the set is refused until [`migrate`](DeviceRankedEngine::migrate) has
//! succeeded. A fault of a GPU is an error on all ranks; what was on that GPU is lost.

mod arrays;
mod border;
mod classes;
mod clock;
#[doc(hidden)]
pub mod constants;
mod cores;
mod destinations;
mod direct;
mod engine;
mod halos;
mod kernels;
mod lists;
mod migration;
mod places;
mod pool;
mod rows;
mod sample;
mod set;
mod source;
mod staging;
mod survey;
mod traverse;

pub use engine::DeviceRankedEngine;
pub use lists::DeviceRankedLists;
pub use migration::DeviceMigration;
pub use source::{PLACES, programs};
pub use traverse::DeviceRankedTraversal;

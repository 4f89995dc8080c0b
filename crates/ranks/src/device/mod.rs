//! An engine on ranks for programs whose data live on a GPU: arrays of the device in and out, each
//! rank with a GPU of its own or a share of one.
//!
//! Exists beside [`RankedEngine`](crate::RankedEngine), with the same domains, the same transports
//! and the same exchanges. Positions, fields and results stay on the device. Points at the border
//! of a rank and their fields travel: from GPU to GPU between threads of one process, and through
//! page-locked memory of the host otherwise, unless an MPI that knows GPUs [is to read and write
//! their memory itself](crate::RankedBuilder::gpu_messages).
//!
//! ```no_run
//! use nearfield::{device::Progress, kernels::SphDensity};
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
//!                 .sources(masses.as_view(), 1)
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
//!    every point's cell: who owns it, and who sees it, as the code that serves
//!    [`RankedEngine`](crate::RankedEngine) says. The few points that concern other ranks are split
//!    into lists on the device, and the host learns how long these are. Points that have left go to
//!    their owners, with arrays of the caller if these are [given
//!    along](DeviceRankedEngine::migrate_with), and positions at the border to halos.
//! 2. Traversals, counts and lists begin with the points of the rank. Meanwhile halos and their
//!    fields come, and points at the border are searched in them, on streams beside the engine's;
//!    what is found there is added in the end.
//! 3. [`finish`](DeviceRankedEngine::finish) waits, and says whether results count; the same on all
//!    ranks.
//!
//! # Order
//!
//! Points are always with the rank that owns them. Those that stay keep their places, and those
//! that come take the places of points that have left. More of them stand at the end; if fewer have
//! come, points from the end take the places that are left. Owned points and those of the halo are
//! numbered each from 0; [`ids`](DeviceRankedEngine::ids) and
//! [`lists_by_id`](DeviceRankedEngine::lists_by_id) give global ids.
//!
//! # Limits
//!
//! Coordinates are `f32`, all points have one radius, lists are full, and sums depend on the number
//! of ranks: settings that ask for anything else are refused. Messages pass through the memory of
//! the host between threads where a GPU cannot read the memory of another one, and between
//! processes unless messages of GPUs were asked for.
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
mod departures;
mod direct;
mod engine;
mod halos;
mod kernels;
mod lists;
mod migration;
mod places;
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

//! Which backend works on which points, decided from the times of earlier steps.
//!
//! Decisions are pure functions: no clock, no device, no thread. Cells go in as counts and times go
//! in as numbers; an assignment of bricks to backends comes out, with a reason in words. The
//! threads and clocks that run a step are in [`run`], which decides nothing. So every policy can be
//! tested on thousands of emulated steps, and gives the same decisions for the same times.
//!
//! - [`Bricks`]: blocks of cells with their work, the pairs they have to test.
//! - [`Layout`]: bricks cut into subregions of about equal work, each with the order in which its
//!   bricks go over to the CPU backend as the threshold θ rises.
//! - [`Plan`]: for one [`Cut`] per subregion, the bricks of either backend in the order of the
//!   sort rule, the bytes that cross to the GPU and back, and the halo between the backends.
//! - [`Controller`]: a [`Policy`] that turns the [`StepTimes`] of one plan into the cuts of the
//!   next.
//! - [`Machine`]: the times of an emulated machine for a plan, and [`tune`](fn@tune): a sweep of θ
//!   and the policies on it.
//! - [`Strategy`]: how a GPU maps cells and targets to threads, and the [`Chooser`] that finds the
//!   fastest of them from times.
//! - [`run`]: the hand-offs between the thread that drives a device and the workers of the CPU
//!   pool.
//!
//! ```
//! use nearfield_balance::*;
//!
//! // Eight points in each of 16³ cells.
//! let cells = (0..16i64.pow(3)).map(|n| CellLoad {
//!     cell: [n % 16, n / 16 % 16, n / 256],
//!     targets: 8,
//!     sources: 8,
//! });
//! let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 2)?;
//! let layout = Layout::new(bricks, SUBREGIONS, Traffic::LISTS)?;
//!
//! let mut machine = Machine::new("speed=8,bandwidth=25".parse()?);
//! let mut controller = Controller::new(Policy::Model)?;
//! let mut decision = controller.start(&layout);
//! for _ in 0..16 {
//!     let plan = Plan::new(&layout, &decision.cuts)?;
//!     let times = machine.step(&layout, &plan);
//!     decision = controller.next(&layout, &plan, &times)?;
//! }
//! println!("{}", decision.reason);
//! # let share = Plan::new(&layout, &decision.cuts)?.share();
//! # assert!(share > 0.2 && share < 0.8, "{share}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why bricks, and why by occupancy
//!
//! A GPU is fast on full cells and wastes its threads on nearly empty ones; a CPU core does not
//! care. So the bricks that pay most on the CPU backend are the sparse ones, and one threshold on
//! occupancy divides a cloud well whatever its shape. In a uniform cloud all bricks are alike, and
//! the threshold divides equals: then their order decides, see [`Ties`].
//!
//! # Running a plan on real backends
//!
//! Step by step:
//!
//! 1. Count the points of every occupied cell ([`CellLoad`]) and make [`Bricks`] and a [`Layout`]
//!    of them. Both cost a millisecond or two for some thousands of bricks, and points move little
//!    between steps: a layout may serve for several, as long as the backends read the points of a
//!    brick from the grid of the step. Cells that were empty and hold points now are not in the
//!    layout: make it anew when one appears.
//! 2. Make the [`Plan`] when cuts or layout have changed; sort targets by its
//!    [`order`](Plan::order).
//! 3. CPU backend: the [`StagePart`]s of all subregions in turn, one [`Span`] each, sorting
//!    included. GPU backend: per subregion send the bricks of [`Stage::uploads`], compute, fetch;
//!    three spans by the device's events, placed on the host's clock. Waiting for a stream that is
//!    busy with another subregion belongs to no span. A stage without work is a span of zero
//!    length. All spans count from the moment at which the first backend begins.
//! 4. Between passes that need neighbours' results, exchange the bricks of [`Plan::halo`].
//! 5. Give plan and times to [`Controller::next`], also after a fault: with the fault in
//!    [`StepTimes::fault`], and in [`StepTimes::recovery`] the time that the CPU backend then
//!    spent on the GPU's part. The times of such a step teach nothing.
//!
//! Sums may depend on the cuts in their last bits. Deterministic runs use [`Policy::Fixed`].
//!
//! # Words
//!
//! θ is a threshold on the occupancy of bricks; the ladder of a subregion is its bricks in the
//! order in which they go over to the CPU backend; a cut is one subregion's θ as a number of
//! bricks; a regime tells which backends worked in a step; an exploration step samples another
//! split for once.

#![forbid(unsafe_code)]

pub mod controller;
pub mod emulate;
mod error;
mod layout;
mod plan;
pub mod run;
pub mod strategy;
pub mod tune;

pub use controller::{
    Controller, LOST_REASON,
    decision::{Action, Decision},
    policy::Policy,
};
pub use emulate::{EmulatedSpec, FaultAt, Machine};
pub use error::{Error, ErrorKind};
pub use layout::{
    Equal, Estimate, Layout, SUBREGIONS, Subdivision, Subregion,
    bricks::{Brick, Bricks, CellLoad},
    cells::{Neighbourhood, RowOffset},
    load::{CLASSES, Load, Traffic, class_of},
    ties::Ties,
};
pub use plan::{
    Plan, Stage, StagePart,
    cut::{Backend, Cut},
    pipeline::{Durations, in_turn, overlapped},
    times::{DeviceFault, GpuSpans, Span, StepTimes},
};
pub use strategy::{
    ParseStrategyError, Strategy,
    chooser::{Chooser, Class, Configuration, Trial, candidates},
};
pub use tune::tune;

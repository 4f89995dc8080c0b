//! One runner for every engine: it takes the engine as a closure and compares each case with the
//! oracle.
//!
//! A backend, a strategy, a SIMD level or a thread count is tested by handing the
//! same [`Runner`] a closure that uses it. The runner keeps the oracle's
//! answers, so further engines cost only their own time. The order inside a
//! list is the engine's own affair; anything else that differs, a pair lost,
//! doubled, or invented, is a [`Failure`] that shows the pairs.
//!
//! ```no_run
//! use nearfield_testkit::conformance::{Case, Level, Lists, Runner};
//! # fn my_search(_: &Case) -> Result<Lists, String> { Ok(Lists::new()) }
//!
//! # fn main() -> Result<(), nearfield_testkit::conformance::Failure> {
//! let summary = Runner::new(Level::Quick).run(|case: &Case| my_search(case))?;
//! println!("{} cases, {} pairs", summary.cases, summary.pairs);
//! # Ok(())
//! # }
//! ```

mod case;
mod cases;
mod level;
mod report;
mod runner;

pub use case::{Case, Known, Lists};
pub use level::Level;
pub use report::{Mismatch, PairDifference};
pub use runner::{CaseFailure, Failure, Runner, Summary};

pub use crate::oracle::{ListKind, RadiusRule};

//! Ends long calls early, for programs that are asked to stop.
//!
//! The flag and the check live in [`nearfield_grid::interruptible`]; the CPU backend looks at the
//! flag between groups of targets. A job that ends early is treated like one that is refused
//! memory, so sets keep their points, and lists that were being written are missing rather than
//! half written.

use crate::Engine;

impl Engine {
    /// Does `work`, which may call any engines, and ends it early once `check` has returned true:
    /// the call under way then returns an error, which
    /// [`is_interrupted`](crate::Error::is_interrupted), and engines have their last good points.
    ///
    /// `check` is called about every 50 ms on this thread, while it waits for workers or between
    /// parts of a job that it does itself, and not again after it has returned true. Short calls
    /// are not checked, and cost nothing more.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let window_was_closed = || false;
    /// let found = Engine::interruptible(window_was_closed, || {
    ///     let mut engine = Engine::builder(1.0).build()?;
    ///     let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    ///     engine.count_neighbors(points, points)
    /// });
    /// match found {
    ///     Err(error) if error.is_interrupted() => println!("stopped"),
    ///     found => assert_eq!(found?, [1, 1]),
    /// }
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Searches, counts and traversals on the CPU end early. Sorting points, copying lists, sums
    /// over all pairs, work of a GPU and functions of the caller's are waited for.
    pub fn interruptible<R>(check: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
        nearfield_grid::interruptible(check, work)
    }
}

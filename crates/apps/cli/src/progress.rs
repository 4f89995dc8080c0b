//! Progress bars of long runs.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar up to `length`; silent unless standard error is a terminal.
pub(crate) fn progress_bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

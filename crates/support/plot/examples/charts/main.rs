//! Draws the charts of the documentation from tables in docs/measurements.
//!
//! ```sh
//! cargo run --release -p nearfield-plot --example charts    # in docs/images
//! ```

mod backends;
mod gpus;
mod lists;
mod table;

use nearfield_plot::save_png;
use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let page = |name| fs::read_to_string(docs.join("measurements").join(name));

    let times = table::read(&page("README.md")?, "## The chart of the README")?;
    save_png(&docs.join("images/lists.png"), lists::SIZE, |area| {
        lists::draw(area, &times)
    })?;

    let points = table::read(&page("ranks.md")?, "## The chart of several GPUs")?;
    save_png(&docs.join("images/gpus.png"), gpus::SIZE, |area| {
        gpus::draw(area, &points)
    })?;

    let rows = table::read(&page("both.md")?, "## Sums, and every way to share them")?;
    save_png(&docs.join("images/backends.png"), backends::SIZE, |area| {
        backends::draw(area, &rows)
    })?;
    Ok(())
}

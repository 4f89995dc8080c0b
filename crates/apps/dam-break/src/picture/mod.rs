//! Pictures of the dam break: frames, the animation and the plot of the front.
//!
//! A [`Frame`] is drawn on the CPU without any graphics library: every
//! particle becomes an exactly intersected sphere in a depth buffer, which is
//! then lit, darkened in its crevices and labelled. [`Animation`] strings
//! frames together into a looping file, [`front_plot`] compares the front with
//! experiments. Fonts are embedded, so a picture looks the same everywhere.
//!
//! Nothing here knows the solver, and the same input gives the same picture
//! whatever the number of threads: each pixel depends only on the frame.

mod animation;
mod camera;
mod colors;
mod error;
mod frame;
mod interpolation;
mod occlusion;
mod overlay;
mod palette;
mod plot;
mod raster;
mod shading;
mod stage;
mod tank;
mod text;

pub use animation::Animation;
pub use error::PictureError;
pub use frame::{Frame, Up, View};
pub use plot::{Series, front_plot};

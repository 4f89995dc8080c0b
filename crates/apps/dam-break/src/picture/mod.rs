//! Pictures of the dam break: frames, the animation and the plot of the front.
//!
//! A [`Frame`] is drawn on the CPU: every particle becomes an exactly
//! intersected sphere in a depth buffer, which is then lit, darkened in its
//! crevices and labelled. Small spheres are lit as parts of a smoothed surface.
//! The rasteriser is our own, because no CPU library draws spheres with a depth
//! buffer: `tiny-skia` and `plotters` have none, and `euc` draws triangles.
//! [`Animation`] strings frames together into a looping GIF; its palette and
//! ordered dithering are our own too, because the quantiser of the `gif` crate
//! (NeuQuant) loses colours that few pixels have.
//! [`front_plot`] compares the front with experiments. Fonts are embedded, so a
//! picture looks the same everywhere.
//!
//! Nothing here knows the solver, and the same input gives the same picture
//! whatever the number of threads: each pixel depends only on the frame.

mod animation;
mod camera;
mod colors;
mod frame;
mod occlusion;
mod overlay;
mod palette;
mod plot;
mod raster;
mod render;
mod shading;
mod smooth;
mod stage;
mod surroundings;
mod tank;
mod text;

pub use animation::Animation;
#[cfg(test)]
pub(crate) use animation::tests::shown;
pub use frame::{Frame, Up, View};
pub use plot::front_plot;
pub use render::Brush;

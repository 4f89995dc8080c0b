//! Input, boxes and helpers through the public interface.

mod bounds;
mod domain;
mod parallel;
mod parts;
mod positions;
mod radius;

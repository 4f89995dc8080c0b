//! Input, boxes, orders and helpers through the public interface.

mod bounds;
mod domain;
mod fitted;
mod order;
mod parallel;
mod parts;
mod positions;
mod radius;
mod sound;
mod tilted;

//! Policies, plans and thresholds over machines that are computed.

mod common;

mod emulate;
mod hosts;
mod model;
mod plan;
mod policies;
mod tune;
mod work;

//! The Nearfield neighbour engine on many ranks.
//!
//! [`transport`] is how ranks reach each other.

pub mod transport;

//! Strategies, which are settings of an engine and choices of its policies, are named in
//! `nearfield-balance`.

pub use nearfield_balance::Strategy;

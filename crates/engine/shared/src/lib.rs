//! What Rust code and CUDA sources share, each fact stated once.
//!
//! * [`constants!`] turns one table into Rust constants and the text of a CUDA header.
//! * [`shared_structs!`] declares structs that are copied to a kernel, and records their
//!   [`Layout`]. Every program that includes the CUDA declaration also gets static assertions made
//!   from the record, so a field that was moved, renamed or retyped on one side does not compile.
//! * A [`Source`] names the text of a program, the headers it may include and all its kernels.
//!
//! The crate holds no CUDA text and has no dependencies: crates embed the texts they use, so
//! editing a text rebuilds only these.

mod constants;
mod layout;
mod source;

pub use layout::{Kind, Layout, Member, Shared, assertions};
pub use source::{Header, Source};

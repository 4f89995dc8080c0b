//! The interface as callers see it: the header is current and compiles alone, and whatever is
//! passed has the status that the header promises.

mod filters;
mod header;
mod misuse;
mod pairs;
mod results;

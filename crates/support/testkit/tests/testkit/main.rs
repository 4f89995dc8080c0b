//! The oracle, and the clouds and cases that it is asked about.

mod clouds;
mod conformance;
mod double;
mod oracle;

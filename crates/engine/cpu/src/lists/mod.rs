//! Finds, stores and returns neighbour lists.
//!
//! # Storage
//!
//! A list is a start and a count per target over one storage of indices ([`neighbor_lists`]).
//! Workers claim chunks of the storage with an atomic counter and write every list once, where it
//! stays ([`writer`]); nothing is counted first and nothing is copied afterwards. The price is
//! gaps: the end of every chunk stays empty, a sixteenth of the storage at most. A storage that
//! proves too small is found out during the search. Lists then go to overflow blocks, which are
//! moved behind the storage after it has grown. In the steady state of a simulation that does not
//! happen.
//!
//! The first search of a set estimates the number of pairs from 512 targets, so that the storage is
//! about right at once.
//!
//! Under a memory limit the storage of the search stays within the limit, and a search that finds
//! it too small stops. Lists are then found in two passes ([`measured`]): the first counts, so
//! that the bytes are known before any are allocated, and the second writes without gaps. The
//! geometry of pairs is written by the same two passes ([`geometry`]). So are the lists of a few
//! points, and the pairs of lists with a skin, which are visited one by one ([`visited`]).
//!
//! # Sinks
//!
//! The search itself does not know where lists go: it asks a [`sink`](sink::ListSink) for room for
//! all candidates of a group, lets the vectors write there, and tells the sink the length. One
//! search thus serves lists, counts, measured lists and lists of a share ([`joint`]).
//!
//! **Invariant:** a search leaves either all lists of a set or none; half-written lists are never
//! visible.
//!
//! # Filters
//!
//! Lists of neighbours that [filters](crate::filter) keep go to the same sinks. Where filters need
//! distances, these are kept beside the list while it is narrowed ([`squared`]), or lists are
//! collected from visited pairs ([`filtered`]); where they name points, sources are dropped from
//! lists that were found without them ([`named`]).
//!
//! # Ascending lists
//!
//! Lists that are to ascend are not sorted one by one: the candidates of a group are, before its
//! lists are selected from them ([`ascending`]). Lists of another backend are sorted where they
//! lie.
//!
//! A reader of lists never sees gaps: it takes a list by its start and count.

mod ascending;
mod filtered;
pub(crate) mod geometry;
pub(crate) mod joint;
mod list_spec;
mod long_list;
pub(crate) mod measured;
mod named;
mod near_few;
pub(crate) mod neighbor_lists;
pub(crate) mod received;
pub(crate) mod received_geometry;
pub(crate) mod rows;
mod scans;
mod search;
mod select;
mod sink;
mod squared;
pub(crate) mod storage;
mod visited;
mod writer;

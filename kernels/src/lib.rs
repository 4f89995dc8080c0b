//! The CUDA C++ sources of the project, as text, and the manifest of every kernel in them.
//!
//! Programs are compiled at run time for the device found (crate `nearfield-gpu`), so neither
//! building nor running needs the CUDA toolkit. A source includes nothing but the headers listed
//! with it and what the compiler has built in.
//!
//! The manifest is complete: a test compares it with the `__global__` functions of every `.cu` and
//! `.cuh` file of the workspace, and the compile test of `nearfield-gpu` finds every kernel in
//! machine code for every architecture. Numbers that kernels share with Rust come from
//! [`constants`].

#![warn(missing_docs)]

pub mod constants;

/// One program's source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Name in messages, in traces and in the cache's file names.
    pub name: &'static str,
    /// The CUDA C++ text.
    pub text: &'static str,
    /// Headers that the text may include: the name in `#include "…"`, and the header's text.
    pub headers: &'static [(&'static str, &'static str)],
    /// True if its kernels launch kernels: it is then linked with the CUDA device runtime.
    pub launches_children: bool,
    /// Names of all its `__global__` functions, in the text and in its headers. Some are compiled
    /// only with certain macros. Those that the host starts are `extern "C"`.
    pub kernels: &'static [&'static str],
}

/// A header: its name, and its text.
type Header = (&'static str, &'static str);

const CONSTANTS: Header = ("constants.cuh", constants::HEADER);
const CONTRACT: Header = ("contract.cuh", include_str!("../cuda/contract.cuh"));
const WALK: Header = ("walk.cuh", include_str!("../cuda/walk.cuh"));
const AROUND: Header = ("around.cuh", include_str!("../cuda/around.cuh"));
const MASKS: Header = ("masks.cuh", include_str!("../cuda/masks.cuh"));
const WARPS: Header = ("warps.cuh", include_str!("../cuda/warps.cuh"));
const FAST: Header = ("fast.cuh", pairs::FAST);
const WORK: Header = ("work.cuh", include_str!("../cuda/work.cuh"));
const TASK_LIST: Header = ("tasks.cuh", include_str!("../cuda/tasks.cuh"));
const TILE: Header = ("tile.cuh", include_str!("../cuda/tile.cuh"));
const TILES: Header = ("all_pairs.cuh", include_str!("../cuda/all_pairs.cuh"));

/// Arithmetic and a checksum, to see whether a device computes what the CPU computes.
pub const PROBE: Source = Source {
    name: "probe",
    text: include_str!("../cuda/probe.cu"),
    headers: &[],
    launches_children: false,
    kernels: &["checksum", "squared_distances"],
};

/// A kernel that launches kernels, to see whether a device can.
pub const CHILDREN_PROBE: Source = Source {
    name: "children_probe",
    text: include_str!("../cuda/children_probe.cu"),
    headers: &[],
    launches_children: true,
    kernels: &["launch_children", "child"],
};

/// Points into cells: check, count, scan, place, settle.
pub const GRID: Source = Source {
    name: "grid",
    text: include_str!("../cuda/grid.cu"),
    headers: &[CONSTANTS, CONTRACT],
    launches_children: false,
    kernels: &[
        "grid_reset",
        "grid_bounds",
        "grid_keys_open",
        "grid_keys_periodic",
        "grid_claim_bricks",
        "grid_keys_sparse",
        "grid_scan",
        "list_scan",
        "grid_occupancy",
        "grid_place",
        "grid_settle_large",
        "grid_settle_open",
        "grid_settle_periodic",
        "grid_changes",
        "lists_in_order",
        "list_bounds",
        "order_of_points",
        "fill_values",
        "interleave",
        "values_in_order",
    ],
};

/// The targets of a backend that works beside another one.
pub const SHARE: Source = Source {
    name: "share",
    text: include_str!("../cuda/share.cu"),
    headers: &[CONSTANTS, CONTRACT],
    launches_children: false,
    kernels: &[
        "share_count",
        "share_bounds",
        "share_place",
        "share_table",
        "share_fields",
        "share_results",
    ],
};

/// Traversal by one thread per target.
pub const FLAT: Source = Source {
    name: "flat",
    text: include_str!("../cuda/flat.cu"),
    headers: &[CONSTANTS, CONTRACT, WALK, AROUND, MASKS, WARPS, FAST, WORK],
    launches_children: false,
    kernels: &[
        "flat",
        "flat_wrapped",
        "flat_lists",
        "flat_masks",
        "flat_masks_wrapped",
        "flat_expand",
        "gather_fields",
    ],
};

/// Traversal of tiles from a list of cells.
pub const TASKS: Source = Source {
    name: "tasks",
    text: include_str!("../cuda/tasks.cu"),
    headers: &[CONSTANTS, CONTRACT, WALK, TASK_LIST, TILE, FAST, WORK],
    launches_children: false,
    kernels: &["list_tasks", "cell_tasks", "gather_fields"],
};

/// Traversal of one set that computes pairs once for both points; it evaluates pair kernels only.
pub const HALF: Source = Source {
    name: "half",
    text: include_str!("../cuda/half.cu"),
    headers: &[CONSTANTS, CONTRACT, WALK, TASK_LIST, TILE, FAST, WORK],
    launches_children: false,
    kernels: &["list_halves", "half_tiles", "add_halves", "gather_fields"],
};

/// Traversal of tiles by kernels that kernels launch.
pub const CHILDREN: Source = Source {
    name: "children",
    text: include_str!("../cuda/children.cu"),
    headers: &[CONSTANTS, CONTRACT, WALK, TILE, FAST, WORK],
    launches_children: true,
    kernels: &[
        "child_per_cell",
        "child_aggregated",
        "child_of_cell",
        "child_of_block",
        "gather_fields",
    ],
};

/// Sums over all pairs, without a radius; `NF_REAL`, `NF_EXACT`, `NF_GUESSED` and
/// `NF_SEVERAL` make a program of it.
pub const ALL_PAIRS: Source = Source {
    name: "all_pairs",
    text: include_str!("../cuda/all_pairs.cu"),
    headers: &[CONSTANTS, TILES],
    launches_children: false,
    kernels: &[
        "all_pairs_sources",
        "all_pairs_pull_1",
        "all_pairs_pull_n",
        "all_pairs_potential_1",
        "all_pairs_potential_n",
        "all_pairs_rows_1",
        "all_pairs_rows_4",
        "all_pairs_rows_8",
        "all_pairs_rows_8_mixed",
    ],
};

/// A fluid between the traversals of a step (crate `nearfield-sph`): kicks, compression, walls.
pub const FLUID: Source = Source {
    name: "integrate",
    text: include_str!("../cuda/sph/integrate.cu"),
    headers: &[("constants.cuh", constants::sph::HEADER)],
    launches_children: false,
    kernels: &[
        "kick",
        "compress",
        "press_walls",
        "measure",
        "tally",
        "probe",
        "total",
    ],
};

/// Atoms on the device (crate `nearfield-md`): forces over lists, kicks and drifts. `NF_POTENTIAL`,
/// `NF_CHANNELS`, `NF_TILTED` and a potential's text make a program of it.
pub const ATOMS: Source = Source {
    name: "dynamics",
    text: include_str!("../cuda/md/dynamics.cu"),
    headers: &[("constants.cuh", constants::md::HEADER), FAST],
    launches_children: false,
    kernels: &[
        "forces",
        "interactions",
        "motion",
        "total",
        "advance",
        "enter",
    ],
};

/// The points of a rank (crate `nearfield-ranks`): which of them others need, and arrays of some.
pub const PLACES: Source = Source {
    name: "places",
    text: include_str!("../cuda/ranks/places.cu"),
    headers: &[CONSTANTS, CONTRACT],
    launches_children: false,
    kernels: &[
        "survey",
        "survey_changed",
        "survey_count",
        "survey_scan",
        "survey_write",
        "split_count",
        "split_write",
        "gather",
        "gather_rows",
        "refill",
        "combine",
        "add_counts",
    ],
};

/// The sources that are programs as they stand.
pub const ALL: &[Source] = &[PROBE, CHILDREN_PROBE, GRID, SHARE, FLUID, PLACES];

/// The sources that become programs with the macros of a traversal.
pub const TRAVERSALS: &[Source] = &[FLAT, TASKS, CHILDREN, HALF];

/// Every source: the manifest of all kernels.
pub fn manifest() -> impl Iterator<Item = &'static Source> {
    let others: &[Source] = &[ALL_PAIRS, ATOMS];
    ALL.iter().chain(TRAVERSALS).chain(others)
}

/// Texts that pair kernels are compiled with.
pub mod pairs {
    /// Functions of `f32` that are fast and inexact.
    pub const FAST: &str = include_str!("../cuda/fast.cuh");
    /// Numbers, arrays, tuples and functions of kernels that are translated from Rust.
    pub const SUBSET: &str = concat!(
        include_str!("../cuda/pairs/subset.cuh"),
        include_str!("../cuda/pairs/values.cuh")
    );
}

//! The engine's CUDA C++ sources: the texts, their headers and the names of their kernels.
//!
//! The texts are in the folder `kernels/cuda` of the workspace. Applications embed their own; they
//! reach the headers that they share with the engine by
//! [`KernelLattice::HEADERS`](crate::KernelLattice::HEADERS) and
//! [`CudaParts::HEADERS`](nearfield_pairs::CudaParts::HEADERS).

use super::layout::{
    Arguments, Filters, Following, Geometry, Judged, Lattice, Launches, ListedPoints, Nearest,
    Outlet, PairArrays, PairOutput, Parts, Points, Row, Status, Stored, StoredLists, SystemArrays,
    SystemsStatus, Walk,
};
use super::skin_pairs::{SkinCandidates, SkinStatus};
use crate::constants;
use nearfield_pairs::texts::{FAST, SUM_TILE};
use nearfield_shared::{Header, Source};

pub(crate) const CONSTANTS: Header = Header::new("constants.cuh", constants::HEADER);
pub(crate) const CELLS: Header = Header::new("cells.cuh", nearfield_grid::constants::HEADER);
pub(crate) const CONTRACT: Header = Header::new(
    "contract.cuh",
    include_str!("../../../../../kernels/cuda/contract.cuh"),
)
.with(&[Lattice::LAYOUT, Points::LAYOUT, Row::LAYOUT]);
const WALK: Header = Header::new(
    "walk.cuh",
    include_str!("../../../../../kernels/cuda/walk.cuh"),
)
.with(&[
    Geometry::LAYOUT,
    Walk::LAYOUT,
    Nearest::LAYOUT,
    Filters::LAYOUT,
]);
const FILTER: Header = Header::new(
    "filter.cuh",
    include_str!("../../../../../kernels/cuda/filter.cuh"),
);
const WIDE: Header = Header::new(
    "wide.cuh",
    include_str!("../../../../../kernels/cuda/wide.cuh"),
);
const FLAT_LISTS: Header = Header::new(
    "flat_lists.cuh",
    include_str!("../../../../../kernels/cuda/flat_lists.cuh"),
);
const FLAT_WIDE: Header = Header::new(
    "flat_wide.cuh",
    include_str!("../../../../../kernels/cuda/flat_wide.cuh"),
);
const PAIR_GEOMETRY: Header = Header::new(
    "pair_geometry.cuh",
    include_str!("../../../../../kernels/cuda/pair_geometry.cuh"),
)
.with(&[PairArrays::LAYOUT]);
const AROUND: Header = Header::new(
    "around.cuh",
    include_str!("../../../../../kernels/cuda/around.cuh"),
);
const VISIT: Header = Header::new(
    "visit.cuh",
    include_str!("../../../../../kernels/cuda/visit.cuh"),
);
const NEAREST_IMAGE: Header = Header::new(
    "nearest_image.cuh",
    include_str!("../../../../../kernels/cuda/nearest_image.cuh"),
);
const PAIR_SEEN: Header = Header::new(
    "pair_seen.cuh",
    include_str!("../../../../../kernels/cuda/pair_seen.cuh"),
);
const EXACT: Header = Header::new(
    "exact.cuh",
    include_str!("../../../../../kernels/cuda/exact.cuh"),
);
const IMAGED: Header = Header::new(
    "imaged.cuh",
    include_str!("../../../../../kernels/cuda/imaged.cuh"),
);
const MASKS: Header = Header::new(
    "masks.cuh",
    include_str!("../../../../../kernels/cuda/masks.cuh"),
);
const FLAT_PAIRS: Header = Header::new(
    "flat_pairs.cuh",
    include_str!("../../../../../kernels/cuda/flat_pairs.cuh"),
);
const RINGS: Header = Header::new(
    "rings.cuh",
    include_str!("../../../../../kernels/cuda/rings.cuh"),
);
const WARPS: Header = Header::new(
    "warps.cuh",
    include_str!("../../../../../kernels/cuda/warps.cuh"),
);
const WORK: Header = Header::new(
    "work.cuh",
    include_str!("../../../../../kernels/cuda/work.cuh"),
)
.with(&[Outlet::LAYOUT]);
const STORED_PAIRS: Header = Header::new(
    "stored.cuh",
    include_str!("../../../../../kernels/cuda/stored.cuh"),
)
.with(&[Stored::LAYOUT]);
const ASCENDING: Header = Header::new(
    "ascend.cuh",
    include_str!("../../../../../kernels/cuda/ascend.cuh"),
);
const TILE: Header = Header::new(
    "tile.cuh",
    include_str!("../../../../../kernels/cuda/tile.cuh"),
);
const TILES: Header = Header::new(
    "all_pairs.cuh",
    include_str!("../../../../../kernels/cuda/all_pairs.cuh"),
);
const PAIR_OUTPUT: Header = Header::new(
    "pair_output.cuh",
    include_str!("../../../../../kernels/cuda/pair_output.cuh"),
)
.with(&[PairOutput::LAYOUT]);
const LIST_COLUMNS: Header = Header::new(
    "columns.cuh",
    include_str!("../../../../../kernels/cuda/columns.cuh"),
)
.with(&[StoredLists::LAYOUT]);

const LIST_PAIRS: Header = Header::new(
    "column_pairs.cuh",
    include_str!("../../../../../kernels/cuda/column_pairs.cuh"),
)
.with(&[ListedPoints::LAYOUT]);

const LOOK_BACK: Header = Header::new(
    "look_back.cuh",
    include_str!("../../../../../kernels/cuda/look_back.cuh"),
);
const SYSTEM_BOXES: Header = Header::new(
    "system_boxes.cuh",
    include_str!("../../../../../kernels/cuda/system_boxes.cuh"),
)
.with(&[SystemsStatus::LAYOUT, SystemArrays::LAYOUT]);
const SYSTEM_PAIRS: Header = Header::new(
    "systems.cuh",
    include_str!("../../../../../kernels/cuda/systems.cuh"),
);

const SKIN_TESTS: Header = Header::new(
    "skin_pairs.cuh",
    include_str!("../../../../../kernels/cuda/skin_pairs.cuh"),
)
.with(&[SkinStatus::LAYOUT, SkinCandidates::LAYOUT]);

/// Arithmetic and a checksum, to see whether a device computes what the CPU computes.
pub const PROBE: Source = Source {
    name: "probe",
    text: include_str!("../../../../../kernels/cuda/probe.cu"),
    headers: &[],
    layouts: &[],
    launches_children: false,
    kernels: &["checksum", "squared_distances"],
};

/// A kernel that launches kernels, to see whether a device can.
pub const CHILDREN_PROBE: Source = Source {
    name: "children_probe",
    text: include_str!("../../../../../kernels/cuda/children_probe.cu"),
    headers: &[],
    layouts: &[],
    launches_children: true,
    kernels: &["launch_children", "child"],
};

/// Points into cells: check, count, scan, place, settle.
pub const GRID: Source = Source {
    name: "grid",
    text: include_str!("../../../../../kernels/cuda/grid.cu"),
    headers: &[CONSTANTS, CELLS, CONTRACT, LOOK_BACK],
    layouts: &[Status::LAYOUT],
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
    text: include_str!("../../../../../kernels/cuda/share.cu"),
    headers: &[CONSTANTS, CELLS, CONTRACT],
    layouts: &[Parts::LAYOUT],
    launches_children: false,
    kernels: &[
        "share_count",
        "share_choose",
        "share_bounds",
        "share_place",
        "share_table",
        "share_fields",
        "share_results",
    ],
};

/// Lists into ascending order, or nearest first.
pub const ASCEND: Source = Source {
    name: "ascend",
    text: include_str!("../../../../../kernels/cuda/ascend.cu"),
    headers: &[
        CONSTANTS,
        CELLS,
        CONTRACT,
        WALK,
        PAIR_SEEN,
        PAIR_GEOMETRY,
        ASCENDING,
    ],
    layouts: &[],
    launches_children: false,
    kernels: &["lists_ascend", "lists_by_distance"],
};

/// Entries of lists as sorted places, and displacements since lists with a skin were built.
pub const SLOTS: Source = Source {
    name: "slots",
    text: include_str!("../../../../../kernels/cuda/slots.cu"),
    headers: &[CONSTANTS, CELLS, CONTRACT],
    layouts: &[Following::LAYOUT, Judged::LAYOUT],
    launches_children: false,
    kernels: &[
        "slots_of_points",
        "slots_of_entries",
        "follow_points",
        "follow_given",
        "judge_lists",
        "positions_of_points",
        "positions_of_given",
        "gather_points",
        "part_of_lists",
    ],
};

/// What filters read of points, from arrays of the device.
pub const POINT_DATA: Source = Source {
    name: "point_data",
    text: include_str!("../../../../../kernels/cuda/point_data.cu"),
    headers: &[CONSTANTS, CELLS, CONTRACT],
    layouts: &[],
    launches_children: false,
    kernels: &[
        "retire_refused",
        "take_radii",
        "take_numbers",
        "count_radii",
        "find_wide",
        "order_wide",
    ],
};

/// Pair kernels over stored lists.
pub const STORED: Source = Source {
    name: "stored",
    text: include_str!("../../../../../kernels/cuda/stored.cu"),
    headers: &[
        CONSTANTS,
        CELLS,
        CONTRACT,
        WALK,
        PAIR_SEEN,
        PAIR_GEOMETRY,
        FILTER,
        FAST,
        NEAREST_IMAGE,
        STORED_PAIRS,
        WORK,
    ],
    layouts: &[],
    launches_children: false,
    kernels: &["stored", "gather_fields"],
};

/// Traversal by one thread per target.
pub const FLAT: Source = Source {
    name: "flat",
    text: include_str!("../../../../../kernels/cuda/flat.cu"),
    headers: &[
        CONSTANTS,
        CELLS,
        CONTRACT,
        WALK,
        AROUND,
        FILTER,
        VISIT,
        EXACT,
        IMAGED,
        PAIR_SEEN,
        PAIR_GEOMETRY,
        MASKS,
        WARPS,
        RINGS,
        FAST,
        WORK,
        FLAT_LISTS,
        FLAT_PAIRS,
        NEAREST_IMAGE,
        WIDE,
        FLAT_WIDE,
    ],
    layouts: &[],
    launches_children: false,
    kernels: &[
        "flat",
        "flat_wrapped",
        "flat_lists",
        "flat_masks",
        "flat_masks_wrapped",
        "flat_expand",
        "flat_wide",
        "flat_wide_counts",
        "flat_wide_lists",
        "gather_fields",
    ],
};

/// Traversal of tiles by kernels that kernels launch.
pub const CHILDREN: Source = Source {
    name: "children",
    text: include_str!("../../../../../kernels/cuda/children.cu"),
    headers: &[
        CONSTANTS,
        CELLS,
        CONTRACT,
        WALK,
        AROUND,
        VISIT,
        EXACT,
        PAIR_SEEN,
        PAIR_GEOMETRY,
        TILE,
        FAST,
        WORK,
    ],
    layouts: &[Arguments::LAYOUT, Launches::LAYOUT],
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
    text: include_str!("../../../../../kernels/cuda/all_pairs.cu"),
    headers: &[CONSTANTS, SUM_TILE, TILES],
    layouts: &[],
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

/// Pairs of many small systems; `NF_REAL` makes a program of it.
pub const SYSTEMS: Source = Source {
    name: "systems",
    text: include_str!("../../../../../kernels/cuda/systems.cu"),
    headers: &[
        CONSTANTS,
        LOOK_BACK,
        PAIR_OUTPUT,
        SYSTEM_BOXES,
        SYSTEM_PAIRS,
    ],
    layouts: &[],
    launches_children: false,
    kernels: &["systems_prepare", "systems_search"],
};

/// Pairs of systems among candidates of an earlier search; `NF_REAL` makes a program of it.
pub const SKIN_PAIRS: Source = Source {
    name: "skin_pairs",
    text: include_str!("../../../../../kernels/cuda/skin_pairs.cu"),
    headers: &[CONSTANTS, LOOK_BACK, PAIR_OUTPUT, SYSTEM_BOXES, SKIN_TESTS],
    layouts: &[],
    launches_children: false,
    kernels: &["skin_moved", "skin_pairs"],
};

/// Lists as arrays of pairs.
pub const COLUMNS: Source = Source {
    name: "columns",
    text: include_str!("../../../../../kernels/cuda/columns.cu"),
    headers: &[CONSTANTS, LOOK_BACK, PAIR_OUTPUT, LIST_COLUMNS],
    layouts: &[],
    launches_children: false,
    kernels: &["columns_of_lists"],
};

/// Lists as arrays of pairs with their geometry.
pub const COLUMN_PAIRS: Source = Source {
    name: "column_pairs",
    text: include_str!("../../../../../kernels/cuda/column_pairs.cu"),
    headers: &[
        CONSTANTS,
        LOOK_BACK,
        PAIR_OUTPUT,
        LIST_COLUMNS,
        CELLS,
        CONTRACT,
        WALK,
        NEAREST_IMAGE,
        PAIR_SEEN,
        LIST_PAIRS,
    ],
    layouts: &[],
    launches_children: false,
    kernels: &["column_pairs"],
};

/// The sources that are programs as they stand.
pub const ALL: &[Source] = &[
    PROBE,
    CHILDREN_PROBE,
    GRID,
    SHARE,
    ASCEND,
    SLOTS,
    POINT_DATA,
    COLUMNS,
    COLUMN_PAIRS,
];

/// The sources that become programs with the macros of a traversal.
pub const TRAVERSALS: &[Source] = &[FLAT, CHILDREN, STORED];

/// Every source of the engine.
pub fn manifest() -> impl Iterator<Item = &'static Source> {
    let with_macros = [&ALL_PAIRS, &SYSTEMS, &SKIN_PAIRS];
    ALL.iter().chain(TRAVERSALS).chain(with_macros)
}

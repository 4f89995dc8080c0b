//! The CUDA C++ sources of the GPU backend, as text.
//!
//! They are compiled at run time for the device found (crate `nearfield-gpu`), so neither building
//! nor running needs the CUDA toolkit. A source includes nothing but the headers listed with it
//! and what the compiler has built in.

/// One program's source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Name in messages, in traces and in the cache's file names.
    pub name: &'static str,
    /// The CUDA C++ text.
    pub text: &'static str,
    /// What the text may include: name in `#include "…"`, then the header's text.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether its kernels launch kernels: it is then linked with the CUDA device runtime.
    pub launches_children: bool,
    /// Names of its kernels, all `extern "C"`.
    pub kernels: &'static [&'static str],
}

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
    kernels: &["launch_children"],
};

const CONTRACT: (&str, &str) = ("contract.cuh", include_str!("../cuda/contract.cuh"));
const WALK: (&str, &str) = ("walk.cuh", include_str!("../cuda/walk.cuh"));
const WORK: (&str, &str) = ("work.cuh", include_str!("../cuda/work.cuh"));
const TASK_LIST: (&str, &str) = ("tasks.cuh", include_str!("../cuda/tasks.cuh"));
const TILE: (&str, &str) = ("tile.cuh", include_str!("../cuda/tile.cuh"));

/// Points into cells: check, count, scan, place, settle.
pub const GRID: Source = Source {
    name: "grid",
    text: include_str!("../cuda/grid.cu"),
    headers: &[CONTRACT],
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
        "grid_place",
        "grid_settle_crowded",
        "grid_settle_open",
        "grid_settle_periodic",
        "counts_in_order",
    ],
};

/// The targets of a backend that works beside another one.
pub const SHARE: Source = Source {
    name: "share",
    text: include_str!("../cuda/share.cu"),
    headers: &[CONTRACT],
    launches_children: false,
    kernels: &["share_count", "share_bounds", "share_place", "share_table"],
};

/// Traversal by one thread per target.
pub const FLAT: Source = Source {
    name: "flat",
    text: include_str!("../cuda/flat.cu"),
    headers: &[CONTRACT, WALK, WORK],
    launches_children: false,
    kernels: &["flat", "flat_lists"],
};

/// Traversal of tiles from a list of cells.
pub const TASKS: Source = Source {
    name: "tasks",
    text: include_str!("../cuda/tasks.cu"),
    headers: &[CONTRACT, WALK, TASK_LIST, TILE, WORK],
    launches_children: false,
    kernels: &["list_tasks", "cell_tasks"],
};

/// Traversal of one set that computes pairs once for both points; it evaluates pair kernels only.
pub const HALF: Source = Source {
    name: "half",
    text: include_str!("../cuda/half.cu"),
    headers: &[CONTRACT, WALK, TASK_LIST, TILE, WORK],
    launches_children: false,
    kernels: &["list_halves", "half_tiles", "add_halves"],
};

/// Traversal of tiles by kernels that kernels launch.
pub const CHILDREN: Source = Source {
    name: "children",
    text: include_str!("../cuda/children.cu"),
    headers: &[CONTRACT, WALK, TILE, WORK],
    launches_children: true,
    kernels: &["child_per_cell", "child_aggregated"],
};

/// Sums over all pairs, without a radius; `NF_REAL`, `NF_EXACT`, `NF_GUESSED` and
/// `NF_SEVERAL` make a program of it.
pub const ALL_PAIRS: Source = Source {
    name: "all_pairs",
    text: include_str!("../cuda/all_pairs.cu"),
    headers: &[("all_pairs.cuh", include_str!("../cuda/all_pairs.cuh"))],
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

/// The sources that are programs as they stand.
pub const ALL: &[Source] = &[PROBE, CHILDREN_PROBE, GRID, SHARE];

/// The sources that become programs with the macros of a traversal.
pub const TRAVERSALS: &[Source] = &[FLAT, TASKS, CHILDREN, HALF];

/// CUDA twins of the named pair kernels of `nearfield-pairs`.
pub mod pairs {
    /// Twins of `PlainLennardJones` and `LennardJones`.
    pub const LENNARD_JONES: &str = include_str!("../cuda/pairs/lennard_jones.cuh");
    /// Twin of `CutoffCoulomb`.
    pub const CUTOFF_COULOMB: &str = include_str!("../cuda/pairs/cutoff_coulomb.cuh");
    /// Twin of `PowerLaw`.
    pub const POWER_LAW: &str = include_str!("../cuda/pairs/power_law.cuh");
    /// Twin of `ChargeField`.
    pub const CHARGE_FIELD: &str = include_str!("../cuda/pairs/charge_field.cuh");
    /// Twin of `ChargePotential`.
    pub const CHARGE_POTENTIAL: &str = include_str!("../cuda/pairs/charge_potential.cuh");
    /// Twin of `SphDensity`.
    pub const SPH_DENSITY: &str = include_str!("../cuda/pairs/sph_density.cuh");
    /// Twin of `SphForce`.
    pub const SPH_FORCE: &str = include_str!("../cuda/pairs/sph_force.cuh");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_named_is_defined_in_its_source() {
        for source in ALL.iter().chain(TRAVERSALS).chain([&ALL_PAIRS]) {
            assert!(
                !source.kernels.is_empty(),
                "{} names no kernel",
                source.name
            );
            for kernel in source.kernels {
                // A macro defines kernels of one kind, by name.
                let definition = [format!("{kernel}("), format!("({kernel},")];
                assert!(
                    definition.iter().any(|one| source.text.contains(one)),
                    "{} has no `{kernel}`",
                    source.name
                );
            }
        }
    }

    #[test]
    fn names_are_told_apart() {
        for (index, source) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != source.name));
        }
    }
}

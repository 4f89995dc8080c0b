//! The structs that kernels take, laid out as CUDA sources declare them.
//!
//! Each names the source that declares it too. `shared_structs!` records names, offsets, sizes and
//! kinds of the fields, and every program that includes the declaration asserts that it has the
//! same. The CUDA source documents what kernels read from a field; here the fields say who fills
//! them and when they are 0. Addresses are 64-bit numbers of the device; 0
//! stands for an array that the kernel does not read.
//!
//! [`Geometry`] is more than a copy of numbers: it decides whether a table can be walked in `f32`,
//! and by which margin. [`Table`] chooses the box of cells that a dense table covers.

use crate::constants::{self, JUDGED_PAIRS};
use cudarc::driver::{DeviceRepr, ValidAsZeroBits, sys::CUdeviceptr};
use nearfield_grid as grid;

/// Parameters of a pair kernel that a launch can carry.
pub(crate) const MAX_UNIFORMS: usize = constants::MAX_UNIFORMS as usize;

nearfield_shared::shared_structs! {
    /// `Lattice` of contract.cuh: the cells of one radius and domain. 656 bytes, which kernels read
    /// in place from the memory of arguments (`__grid_constant__`).
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub(crate) struct Lattice {
        /// Cells per unit length; in a tilted box per unit of width.
        inverse_edge: [f64; 3],
        /// Box length of a periodic axis, 0 of an open one.
        length: [f64; 3],
        /// Box vectors of a tilted box.
        vectors: [[f64; 3]; 3],
        /// Rows of the inverse of their matrix; for cells those of open axes too, in a tilted box.
        inverse: [[f64; 3]; 3],
        /// Cells in the box on a periodic axis, 0 on an open one.
        period: [i64; 3],
        /// Where cell 0 begins, in cells before coordinate 0.
        phase: [f64; 3],
        /// fl(r·r), which squared distances are compared with.
        r2: f32,
        /// 1 in a tilted box.
        tilted: u32,
        /// 1 if any axis is periodic.
        periodic: u32,
        /// Vectors of the images (−1, −1, −1) to (1, 1, 1), the first axis fastest: nearly all that
        /// are needed, so kernels seldom multiply.
        shifts: [[f32; 3]; 27],
        /// 1 if proxies can prove a pair.
        has_inner: u32,
        /// The radius.
        radius: f64,
        /// fl(r·r) in double precision, which its squared distances are compared with.
        squared_radius: f64,
        /// Subtracted from coordinates of double precision, for cells and proxies.
        centre: [f64; 3],
        /// Filter radius of proxies; infinite where all of them are 0.
        reach: f64,
        /// What is added to it, as shares of the target's proxy along each axis.
        rounding: [f64; 3],
    }

    /// `Points` of contract.cuh: one set sorted by cell, and the table of its cells.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Points {
        /// x, y, z, and the caller's index as bits, per sorted point; `READ_AHEAD` more behind
        /// them. In double precision x, y and z are those of the proxy.
        pub(crate) at: u64,
        /// Four `i32` per sorted point: whole boxes between it and its image in the box. Written,
        /// and read, only if the flag `ANY_WRAPPED` is set.
        pub(crate) wraps: u64,
        /// Single precision: x, y, z of the proxy, and the index, per sorted point. Written, and
        /// read, only if the flag `ANY_WRAPPED` is set.
        pub(crate) proxies: u64,
        /// Single precision: `wraps` in a byte each per sorted point, and `READ_AHEAD` more behind
        /// them. Written, and read, only if the flag `ANY_WRAPPED` is set.
        pub(crate) boxes: u64,
        /// Double precision: x, y and z per sorted point.
        pub(crate) given: u64,
        /// Sorted points before every cell, and all of them behind the last.
        pub(crate) starts: u64,
        /// `FLAGS` numbers of the last sort.
        pub(crate) flags: u64,
        /// Sparse tables: number of the brick in every slot of the hash table.
        pub(crate) ids: u64,
        /// Sparse tables: where every brick lies.
        pub(crate) bricks: u64,
        /// Dense tables: first cell along each axis.
        pub(crate) origin: [i64; 3],
        /// Dense tables: cells along each axis.
        pub(crate) dims: [u32; 3],
        /// Sparse tables: slots of the hash table, a power of two, less 1.
        pub(crate) mask: u32,
        /// 1 where the table is sparse.
        pub(crate) sparse: u32,
        /// Cells of the table.
        pub(crate) cells: u32,
        /// Points.
        pub(crate) count: u32,
        /// Dense tables: empty cells on either side along each axis.
        pub(crate) pad: [u32; 3],
        /// Targets that are a share of a set: their places in the whole set; else 0.
        pub(crate) slots: u64,
    }

    /// `Parts` of share.cu: which part of the work every brick belongs to.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Parts {
        /// A byte per brick of a box of bricks, x fastest.
        pub(crate) parts: u64,
        /// First brick of the box along each axis.
        pub(crate) first: [i64; 3],
        /// Bricks along each axis.
        pub(crate) dims: [u32; 3],
        /// Cells of a brick along each axis.
        pub(crate) edge: u32,
        /// Part of everything outside of the box.
        pub(crate) elsewhere: u32,
        /// Parts below this are this backend's.
        pub(crate) count: u32,
    }

    /// `Row` of contract.cuh: a neighbour row, as offsets from the cell it is seen from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Row {
        /// Cells along y.
        y: i32,
        /// Cells along z.
        z: i32,
        /// The row has the cells from −reach to reach along x.
        reach: i32,
    }

    /// `Geometry` of walk.cuh: how around.cuh goes through a dense table; all zero where tables are
    /// not walked by it. Lengths are in units of the enlarged radius, places in cells from the
    /// table's first.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub(crate) struct Geometry {
        /// Coordinate at which the table begins along each axis, rounded.
        corner: [f32; 3],
        /// Cells per unit of the coordinates.
        scale: [f32; 3],
        /// Where the rounded corner lies in the table.
        offset: [f32; 3],
        /// Cells along each axis that the enlarged radius reaches, margin included.
        reach: [f32; 3],
        /// Square of the enlarged radius and its margin.
        squared_reach: f32,
        /// Cells along x in the length of an enlarged radius.
        per_reach: f32,
        /// Thickness of a cell: along x, across that in the plane of x and y, across this plane.
        edge: [f32; 3],
        /// How far a cell along y and one along z lie along x, and one along z along y.
        lean: [f32; 3],
        /// First cell of the box on a periodic axis; far below any cell on an open one.
        low: [i32; 3],
        /// Cell behind the last of the box on a periodic axis; far above any cell on an open one.
        high: [i32; 3],
    }

    /// `Walk` of walk.cuh: targets, sources and lattice of a search.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Walk {
        /// Cells that both sets are sorted into.
        pub(crate) lattice: Lattice,
        /// Of the sources' table.
        pub(crate) geometry: Geometry,
        /// Points that search: a set, or a share of it.
        pub(crate) targets: Points,
        /// Points that are found.
        pub(crate) sources: Points,
        /// The lattice's neighbour rows.
        pub(crate) rows: u64,
        /// Vectors of near images, in single precision and in periodic boxes; else 0.
        pub(crate) steps: u64,
        /// Number of neighbour rows.
        pub(crate) row_count: u32,
        /// 1 if both sets are one, so that a point is not its own neighbour.
        pub(crate) same_set: u32,
    }

    /// `Nearest` of walk.cuh: the last pair of a target that is kept.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub(crate) struct Nearest {
        /// Its squared distance; infinite where all are kept.
        pub(crate) squared: f64,
        /// The caller's index of the source.
        pub(crate) index: u32,
        /// Boxes by which the source is moved.
        pub(crate) image: [i32; 3],
    }

    /// `Filters` of walk.cuh: what leaves pairs within the radius out. Of targets in the caller's
    /// order, of sources in the sorted one; 0 for what does not count.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub(crate) struct Filters {
        /// Squared cut-offs in the precision of the positions, a row of `types` for each type; −1
        /// for never.
        pub(crate) cutoffs: u64,
        /// Type of every target.
        pub(crate) target_types: u64,
        /// Type of every source.
        pub(crate) source_types: u64,
        /// Molecule of every target.
        pub(crate) target_molecules: u64,
        /// Molecule of every source.
        pub(crate) source_molecules: u64,
        /// Where the exclusions of every point begin, and all of them behind the last.
        pub(crate) excluded_starts: u64,
        /// The points that every point excludes, ascending.
        pub(crate) excluded: u64,
        /// Radius of every target, in the precision of the positions.
        pub(crate) target_radii: u64,
        /// The same of every source, with room for `READ_AHEAD` more.
        pub(crate) source_radii: u64,
        /// How many targets have radii above `bulk`, and their sorted places; 0 where none may.
        pub(crate) wide_targets: u64,
        /// The same of sources.
        pub(crate) wide_sources: u64,
        /// The last pair that is kept of every target, where only the nearest are.
        pub(crate) nearest: u64,
        /// `Lattice::inverse`, rounded, where pairs with wide points are compared one by one.
        pub(crate) inverse: [[f32; 3]; 3],
        /// The radius that cells are made for; 0 where that is the largest.
        pub(crate) bulk: f32,
        /// The largest radius of a source that is found by cells, where these count.
        pub(crate) largest_source: f32,
        /// What the walk around a target reaches is this times the radius of the target…
        pub(crate) per_radius: f32,
        /// …and this more.
        pub(crate) slack: f32,
        /// Number of types.
        pub(crate) types: u32,
    }

    /// `Outlet` of work.cuh: buffers that a traversal reads and writes. The host fills in those
    /// that the job needs; the others are 0.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Outlet {
        /// Counting: neighbours of every sorted target.
        pub(crate) counts: u64,
        /// Counting for lists: a word per target and row of candidates, a bit per candidate; lists
        /// are made from these.
        pub(crate) masks: u64,
        /// The caller's indices of the sorted sources, which lists from masks are made of.
        pub(crate) indices: u64,
        /// Lists: entries before every sorted target.
        pub(crate) starts: u64,
        /// Lists: storage of the entries from `base` on.
        pub(crate) entries: u64,
        /// Lists: start of every list in the caller's order.
        pub(crate) list_starts: u64,
        /// Lists: length of every list in the caller's order.
        pub(crate) list_counts: u64,
        /// Lists: number of the entry at which the storage ends. Entries from there on are not
        /// written.
        pub(crate) capacity: u64,
        /// Lists: number of the first entry in the storage.
        pub(crate) base: u64,
        /// Lists by `flat`: the first of the sorted targets whose lists are written.
        pub(crate) first: u32,
        /// Lists by `flat`: behind the last of them.
        pub(crate) behind: u32,
        /// Pair kernels: x, y, z and the first channel of every sorted source.
        pub(crate) sources: u64,
        /// Pair kernels: further channels of the sorted sources, four at a time.
        pub(crate) more: u64,
        /// Pair kernels: channels of the targets in the caller's order.
        pub(crate) target_fields: u64,
        /// Pair kernels: results in the caller's order.
        pub(crate) results: u64,
        /// Counts: 1 for the caller's order, 0 for the sorted one.
        pub(crate) in_order: u32,
        /// Pair kernels: 1 to combine results with what is there, 0 to overwrite it.
        pub(crate) combine: u32,
        /// Pair kernels: numbers from one target's channels to the next target's.
        pub(crate) target_stride: u32,
        /// Pair kernels: their parameters; the kernel knows how many it reads.
        pub(crate) uniforms: [f32; MAX_UNIFORMS],
    }

    /// `PairArrays` of pair_geometry.cuh: arrays parallel to the entries of lists, from the
    /// outlet's `base` on. 0 where nobody asked for one.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct PairArrays {
        /// The caller's index of the target.
        pub(crate) targets: u64,
        /// Boxes by which the source is moved, three `i32` a pair.
        pub(crate) images: u64,
        /// The vector of that image, three a pair in the precision of the positions.
        pub(crate) shifts: u64,
        /// From the target to that image of the source, three a pair.
        pub(crate) displacements: u64,
        /// Their squared lengths.
        pub(crate) squares: u64,
        /// Their lengths.
        pub(crate) distances: u64,
        /// A number to which pairs are added whose image has no 32-bit numbers. Never 0 where
        /// images are asked for.
        pub(crate) far: u64,
    }

    /// `Stored` of stored.cuh: what a traversal over stored lists is given beside the lists.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Stored {
        /// The radius with a margin for the rounding of differences.
        pub(crate) reach: f64,
        /// Share of the largest component of a difference that the margin grows by.
        pub(crate) slack: f64,
        /// Lengths of the rows of the inverse of the box.
        pub(crate) row_length: [f64; 3],
        /// A word that is not 0 if lists with a skin may miss a pair; 0 where no point has moved.
        pub(crate) stale: u64,
        /// Rows of the inverse of the box, rounded.
        pub(crate) inverse: [[f32; 3]; 3],
        /// 1 if lists may name a source several times; they ascend then.
        pub(crate) repeats: u32,
    }

    /// `Following` of slots.cu: a set whose lists with a skin are kept.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Following {
        /// Sorted points at the build.
        pub(crate) built: u64,
        /// In double precision their positions.
        pub(crate) given: u64,
        /// Positions in the caller's order, now.
        pub(crate) positions: u64,
        /// These in the sorted order of the build, in single precision,
        pub(crate) now: u64,
        /// and in double precision.
        pub(crate) now_given: u64,
        /// A word for the largest squared displacement, zero before.
        pub(crate) moved: u64,
        /// Another word, which becomes zero.
        pub(crate) next: u64,
        /// Displacements count as infinite below these coordinates,
        pub(crate) low: [f64; 3],
        /// and above these.
        pub(crate) high: [f64; 3],
        /// Points.
        pub(crate) count: u32,
    }

    /// `Judged` of slots.cu: lists with a skin of some pairs of sets.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Judged {
        /// Words with the bits of the largest squared displacements of targets and of sources; 0
        /// for points that have not moved.
        pub(crate) moved: [[u64; 2]; JUDGED_PAIRS as usize],
        /// A word that becomes 1 if one of the lists may miss a pair, else 0.
        pub(crate) stale: u64,
        /// Sums of both displacements up to which lists hold every pair.
        pub(crate) allowed: [f32; JUDGED_PAIRS as usize],
        /// How many pairs.
        pub(crate) pairs: u32,
        /// 1 if the word stays 1 where it is.
        pub(crate) more: u32,
    }

    /// `Arguments` of children.cu. In device memory, because the launch of a child passes pointers
    /// only.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Arguments {
        /// Sets and lattice.
        pub(crate) walk: Walk,
        /// Buffers of the job.
        pub(crate) outlet: Outlet,
        /// Where the geometry of pairs goes, if the job has it.
        pub(crate) arrays: PairArrays,
    }

    /// `Launches` of children.cu: launches from kernels that failed.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Launches {
        /// How many failed.
        pub(crate) failed: u32,
        /// The largest code of the device runtime among them.
        pub(crate) error: u32,
    }

    /// `Status` of grid.cu: what the host has to know of a sort or a scan. It is reset on the
    /// device before every sort, and read whenever the host next looks; `grid_reset` keeps what an
    /// earlier sort left if the host did not look in between.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) struct Status {
        /// Points with a coordinate that is not finite.
        pub(crate) bad: u32,
        /// Index of the first of them.
        pub(crate) first_bad: u32,
        /// Points outside the box of the table, or in the empty cells around it.
        pub(crate) outside: u32,
        /// 1 if points lie outside the periodic box.
        pub(crate) wrapped: u32,
        /// Tiles of the table with a cell of more than 1,024 points.
        pub(crate) large_cells: u32,
        /// Tiles of the scan begun.
        pub(crate) ticket: u32,
        /// Bricks of a sparse table.
        pub(crate) bricks: u32,
        /// Whether an earlier sort since the host looked had points that could not be placed.
        pub(crate) failed: u32,
        /// Smallest and largest coordinates per axis, as integers that sort like floats.
        pub(crate) bounds: [u32; 6],
        /// Most neighbours of all targets together since the host looked.
        pub(crate) pairs: u64,
        /// Smallest and largest coordinates in double precision.
        pub(crate) double_bounds: [u64; 6],
    }

    /// `SystemsStatus` of system_boxes.cuh: what the host reads after a search of systems. All bits
    /// are set before it.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct SystemsStatus {
        /// The first system whose numbers cannot be used.
        pub(crate) fault: u32,
        /// The first with points that cannot be.
        pub(crate) bad: u32,
        /// Blocks begun, less one.
        pub(crate) ticket: u32,
        /// Fills the struct up.
        pub(crate) pad: u32,
        /// Pairs of all systems.
        pub(crate) pairs: u64,
    }

    /// `Systems` of system_boxes.cuh: arrays that describe many systems of points.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct SystemArrays as Systems {
        /// Three numbers per point, in the precision of the program.
        pub(crate) positions: u64,
        /// The first point of every system, and their number behind the last.
        pub(crate) offsets: u64,
        /// One radius, or one per system.
        pub(crate) radii: u64,
        /// Nine numbers, or nine per system; 0 where all systems are open.
        pub(crate) cells: u64,
        /// Three bytes, or three per system; 0 where all systems are open.
        pub(crate) periodic: u64,
        /// `SYSTEM_BOX` bytes per system, written by systems_prepare.
        pub(crate) boxes: u64,
        /// The system of every block, written there as well.
        pub(crate) units: u64,
        /// A number per block for sums of pairs, cleared there as well.
        pub(crate) sums: u64,
        /// A `SystemsStatus`.
        pub(crate) status: u64,
        /// Systems.
        pub(crate) count: u32,
        /// Points of all systems.
        pub(crate) points: u32,
        /// Bits 0 to 2: radii, cells and periodicities are one per system.
        pub(crate) many: u32,
        /// 1 for pairs that stand once.
        pub(crate) half: u32,
        /// 1 where pairs exactly as far apart as the radius are left out.
        pub(crate) strict: u32,
        /// Fills the struct up.
        pub(crate) pad: u32,
    }

    /// `StoredLists` of columns.cuh: lists in a storage, and the geometry of their pairs. Arrays
    /// that are not wanted are 0.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct StoredLists {
        /// Where the list of every target begins, in the caller's order.
        pub(crate) starts: u64,
        /// Its length.
        pub(crate) counts: u64,
        /// The caller's indices of the neighbours.
        pub(crate) entries: u64,
        /// Three `i32` per entry.
        pub(crate) images: u64,
        /// Three numbers per entry, in the precision of the positions.
        pub(crate) displacements: u64,
        /// A number per entry.
        pub(crate) distances: u64,
        /// Entries in the storage.
        pub(crate) capacity: u64,
        /// A number per block and one before them, all zero.
        pub(crate) sums: u64,
        /// Targets.
        pub(crate) count: u32,
        /// Words of four bytes of a number.
        pub(crate) wide: u32,
    }

    /// `ListedPoints` of column_pairs.cuh: the points of lists, whose pairs are each the nearest of
    /// their images.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ListedPoints {
        /// Of the [box](Lattice::of_box) alone.
        pub(crate) lattice: Lattice,
        /// Rows of the inverse of the box, rounded.
        pub(crate) inverse: [[f32; 3]; 3],
        /// Nothing.
        pub(crate) pad: u32,
        /// Three numbers of every target, in the caller's order and in the precision of the
        /// positions.
        pub(crate) targets: u64,
        /// Of every source.
        pub(crate) sources: u64,
        /// A `u32`.
        pub(crate) far: u64,
    }

    /// `PairOutput` of pair_output.cuh: where pairs go. Arrays that are not wanted are 0.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct PairOutput {
        /// Entries before every point, and of all behind the last; of lists 0.
        pub(crate) starts: u64,
        /// Target of every pair, `index_bytes` each.
        pub(crate) targets: u64,
        /// Source of every pair.
        pub(crate) sources: u64,
        /// Three `i32` per pair.
        pub(crate) images: u64,
        /// Three numbers per pair, in the precision of the program.
        pub(crate) displacements: u64,
        /// A number per pair.
        pub(crate) distances: u64,
        /// Entries that all these arrays have room for.
        pub(crate) capacity: u64,
        /// 4 or 8.
        pub(crate) index_bytes: u32,
        /// Fills the struct up.
        pub(crate) pad: u32,
    }
}

/// `FilteredWalk` of walk.cuh, which kernels of programs without filters take the first part of.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct FilteredWalk {
    /// Targets, sources and lattice.
    pub(crate) walk: Walk,
    /// All 0 in programs that read none.
    pub(crate) filters: Filters,
}

/// Channels of points on the device, in the caller's order: not a struct of the CUDA sources, whose
/// kernels take the numbers one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StridedChannels {
    /// First channel of the first point; 0 for the index of the point.
    pub(crate) address: CUdeviceptr,
    /// Numbers of four bytes from one point's channels to the next point's.
    pub(crate) stride: u32,
    /// Number of channels.
    pub(crate) channels: u32,
}

/// Says of structs that bytes of them may be copied to a device and read by a kernel.
macro_rules! laid_out_for_kernels {
    ($($kind:ty),+) => { $(
        // SAFETY: `#[repr(C)]` numbers and device addresses without references to the host;
        // programs assert that the CUDA source declares the same fields.
        unsafe impl DeviceRepr for $kind {}
    )+ };
}

laid_out_for_kernels!(
    Lattice,
    Points,
    Parts,
    Row,
    Geometry,
    Walk,
    Nearest,
    Filters,
    FilteredWalk,
    Outlet,
    PairArrays,
    Stored,
    StoredLists,
    ListedPoints,
    Following,
    Judged,
    Arguments,
    Launches,
    Status,
    SystemsStatus,
    SystemArrays,
    PairOutput
);

// SAFETY: integers, for which all zero is a value.
unsafe impl ValidAsZeroBits for Status {}
// SAFETY: integers, for which all zero is a value.
unsafe impl ValidAsZeroBits for Launches {}
// SAFETY: integers, for which all zero is a value.
unsafe impl ValidAsZeroBits for SystemsStatus {}

impl Default for Outlet {
    /// Nothing anywhere.
    fn default() -> Self {
        Self {
            counts: 0,
            masks: 0,
            indices: 0,
            starts: 0,
            entries: 0,
            list_starts: 0,
            list_counts: 0,
            capacity: 0,
            base: 0,
            first: 0,
            behind: 0,
            sources: 0,
            more: 0,
            target_fields: 0,
            results: 0,
            in_order: 0,
            combine: 0,
            target_stride: 0,
            uniforms: [0.0; MAX_UNIFORMS],
        }
    }
}

impl Lattice {
    /// The numbers of a lattice that kernels compute with.
    pub(crate) fn new(lattice: &grid::Lattice) -> Self {
        let cells = Self::in_domain(lattice, lattice.effective_domain());
        match cells.tilted {
            0 => cells,
            _ => Self {
                inverse: [0, 1, 2].map(|axis| lattice.scale(axis).row),
                ..cells
            },
        }
    }

    /// Only the numbers of the box as it was given, along all of its periodic axes, for kernels
    /// that find no cells. Points that were wrapped into a vast box are found by these.
    pub(crate) fn of_box(lattice: &grid::Lattice) -> Self {
        let domain = lattice.domain();
        Self {
            length: domain.lengths().map(Option::unwrap_or_default),
            ..Self::in_domain(lattice, domain)
        }
    }

    /// The numbers of cells, and those of a box.
    fn in_domain(lattice: &grid::Lattice, domain: &grid::Domain) -> Self {
        let scales = [0, 1, 2].map(|axis| lattice.scale(axis));
        let rows = |vectors: [Option<[f64; 3]>; 3]| vectors.map(Option::unwrap_or_default);
        let proxies = lattice.wrapped_proxies();
        Self {
            inverse_edge: scales.map(|scale| scale.inverse_edge),
            length: scales.map(|scale| scale.length),
            vectors: rows(domain.vectors()),
            inverse: rows(domain.inverse()),
            period: scales.map(|scale| scale.cells),
            phase: scales.map(|scale| scale.phase),
            r2: lattice.radius().squared(),
            tilted: u32::from(domain.is_tilted()),
            periodic: u32::from(lattice.domain().is_periodic()),
            shifts: std::array::from_fn(|number| {
                let image = [number % 3, number / 3 % 3, number / 9];
                domain.image_vector(image.map(|n| n as i64 - 1))
            }),
            has_inner: u32::from(proxies.has_inner),
            radius: lattice.radius().value_f64(),
            squared_radius: lattice.radius().squared_f64(),
            centre: proxies.centre,
            reach: proxies.reach,
            rounding: proxies.rounding,
        }
    }

    /// The same with another radius for decisions.
    pub(crate) fn within(self, radius: grid::Radius) -> Self {
        Self {
            r2: radius.squared(),
            squared_radius: radius.squared_f64(),
            ..self
        }
    }

    /// Returns true if any axis repeats.
    pub(crate) fn is_periodic(&self) -> bool {
        self.periodic != 0
    }
}

/// A table that holds every cell of a box of cells, x fastest: cell (x, y, z) of the box is number
/// (z·dims\[1\] + y)·dims\[0\] + x. So the cells of a row are side by side, and their points are
/// one contiguous run of the sorted array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// First cell.
    pub(crate) origin: [i64; 3],
    /// Cells along each axis.
    pub(crate) dims: [u32; 3],
    /// Of these, empty cells on either side.
    pub(crate) pad: [u32; 3],
}

impl Table {
    /// Around points within `bounds`. Open axes are padded, so that the rows around a point need no
    /// bounds check: by one cell more than the radius reaches along x, whose ends are rounded.
    pub(crate) fn around(lattice: &grid::Lattice, bounds: &grid::Bounds) -> Self {
        let grid::CellsWithin { low, high, .. } = lattice.cells_within(bounds);
        let lengths = lattice.effective_domain().lengths();
        let farthest = lattice.max_offsets();
        let pad = [0, 1, 2].map(|axis| match lengths[axis] {
            None => u32::try_from(farthest[axis])
                .unwrap_or(u32::MAX)
                .saturating_add(u32::from(axis == 0)),
            Some(_) => 0,
        });
        Self {
            origin: [0, 1, 2].map(|axis| low[axis] - i64::from(pad[axis])),
            dims: [0, 1, 2].map(|axis| {
                let dim = (high[axis] - low[axis]) as u64 + 1 + 2 * u64::from(pad[axis]);
                u32::try_from(dim).unwrap_or(u32::MAX)
            }),
            pad,
        }
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> u64 {
        let dims = self.dims.into_iter().map(u64::from);
        dims.fold(1, u64::saturating_mul)
    }
}

/// Error of a coordinate in cells that is no trouble: a reach that is larger by it adds few
/// candidates.
const SMALL_ERROR: f64 = 1.0 / (1u64 << 12) as f64;
/// Error, in cells, from which on the walk by `Geometry` would look at many cells in vain. Tables
/// of about half a million cells along an axis reach it; they are walked by neighbour rows.
const LARGE_ERROR: f64 = 0.25;

impl Geometry {
    /// The geometry of a dense table on a lattice with `subdivision` cells to a radius along y and
    /// z. None where its places in `f32` would be off by too much, or where an axis of the box is
    /// so short that the radius reaches across it.
    ///
    /// A place is fma(fl(x - corner), scale, offset) with a factor and an offset that are rounded,
    /// at most 3·2⁻²⁴ of the cells of the table and those of the offset away from the exact one;
    /// adding what the radius reaches rounds once more. In kernels that compute it in `f64` and
    /// round it, it is off by less. Twice this is allowed for, and [`SMALL_ERROR`] for everything
    /// else: places of far coordinates in `f64`, squares and roots.
    pub(crate) fn of(lattice: &grid::Lattice, table: Table, subdivision: u32) -> Option<Self> {
        let scales = [0, 1, 2].map(|axis| lattice.scale(axis));
        let vectors = lattice.cell_vectors();
        let radius = lattice.reach();
        let mut geometry = Self::default();
        let mut margin = 0f64;
        for axis in 0..3 {
            let grid::AxisScale {
                inverse_edge,
                phase,
                ..
            } = scales[axis];
            let phase = if scales[axis].length == 0.0 {
                phase
            } else {
                0.0
            };
            let first = table.origin[axis] as f64;
            let corner = ((first - phase) / inverse_edge) as f32;
            let offset = f64::from(corner) * inverse_edge + phase - first;
            let error = SMALL_ERROR + (f64::from(table.dims[axis]) + offset.abs()) * 2f64.powi(-21);
            // False for what is not a number.
            let usable = error <= LARGE_ERROR && first.abs() < 2f64.powi(32);
            if !usable || inverse_edge as f32 == 0.0 {
                return None;
            }
            geometry.corner[axis] = corner;
            geometry.scale[axis] = inverse_edge as f32;
            geometry.offset[axis] = offset as f32;
            let longest = vectors.iter().map(|vector| vector[axis].abs()).sum::<f64>() / radius;
            margin = margin.max(2.0 * error * longest);
        }
        let reach = 1.0 + margin;
        // Kernels go through 2K + 2 rows along y and z, whatever rows the lattice has.
        let subdivision = f64::from(subdivision);
        let farthest = [lattice.max_offsets()[0] as f64, subdivision, subdivision];
        for axis in 0..3 {
            let grid::AxisScale {
                inverse_edge,
                cells,
                ..
            } = scales[axis];
            let reached = reach * radius * inverse_edge + SMALL_ERROR;
            geometry.reach[axis] = reached as f32;
            if reached > farthest[axis] + 0.5 {
                return None;
            }
            geometry.edge[axis] = (vectors[axis][axis] / radius) as f32;
            (geometry.low[axis], geometry.high[axis]) = (i32::MIN / 2, i32::MAX / 2);
            if cells == 0 {
                continue;
            }
            let low = -table.origin[axis];
            let bounds = (i32::try_from(low), i32::try_from(low + cells));
            let (Ok(low), Ok(high)) = bounds else {
                return None;
            };
            if (cells as f64) < (reached + 2.0 * SMALL_ERROR).ceil() {
                return None;
            }
            (geometry.low[axis], geometry.high[axis]) = (low, high);
        }
        geometry.lean = [vectors[1][0], vectors[2][0], vectors[2][1]].map(|x| (x / radius) as f32);
        geometry.squared_reach = (reach * reach) as f32;
        geometry.per_reach = (radius / vectors[0][0]) as f32;
        Some(geometry)
    }
}

/// Share of a radius by which roundings of a reach in `f32` are covered.
const ROUNDED: f64 = 1.0 / (1u64 << 20) as f64;

impl Filters {
    /// Says how far a walk by `geometry` looks for a radius that is smaller than that of the
    /// lattice: the margins of the lattice's radius, which grow with a radius, are added to it.
    pub(crate) fn reaching(self, lattice: &grid::Lattice, geometry: &Geometry) -> Self {
        let (radius, enlarged) = (lattice.radius().value_f64(), lattice.reach());
        let whole = f64::from(geometry.squared_reach).sqrt();
        Self {
            per_radius: (1.0 / enlarged) as f32,
            slack: (whole - radius / enlarged + ROUNDED) as f32,
            ..self
        }
    }
}

impl Row {
    /// The row as kernels take it. Reaches are a few cells, or a few thousand in absurdly small
    /// boxes.
    pub(crate) fn new(row: &grid::Row) -> Self {
        let narrow = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        Self {
            y: narrow(row.y),
            z: narrow(row.z),
            reach: narrow(row.reach),
        }
    }
}

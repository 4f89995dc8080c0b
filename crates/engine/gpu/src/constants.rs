//! Numbers that the engine's kernels share with the code that launches them.
//!
//! Each stands once, in the table below, which also makes [`HEADER`]; `nearfield kernels constants`
//! prints it.

nearfield_shared::constants! {
    /// Numbers of the engine's kernels. This text is generated: see
    /// crates/engine/gpu/src/constants.rs.
    header HEADER in nf;
    numbers {
        /// No index: an empty slot of a hash table, a point without a cell.
        NONE = 0xffffffff;
        /// Points behind the last that loops over candidates may read: arrays have room for them.
        READ_AHEAD = 2;

        /// Threads of a block of every kernel that has one thread per point, cell or number.
        GRID_THREADS = 256;
        /// Vectors of four items that a thread of a scan takes.
        SCAN_VECTORS = 4;
        /// Items that a block of a scan takes; arrays are padded to whole tiles.
        SCAN_TILE = GRID_THREADS * SCAN_VECTORS * 4;
        /// Threads of a block that sorts the points of a cell of high occupancy.
        SETTLE_THREADS = 1024;
        /// Cells of a brick of a sparse table, side by side along x.
        BRICK = 8;

        /// Element of `Points::flags`: 0, or how far points lie outside a periodic box, which is
        ANY_WRAPPED = 0;
        /// at most this many boxes along each axis of a straight box,
        NEAR_BOXES = 15;
        /// and this many along each vector of a tilted one,
        NEAR_TILTED_BOXES = 2;
        /// where it is this,
        NEAR_WRAPPED = 1;
        /// and farther where it is this.
        FAR_WRAPPED = 2;
        /// Element of `Points::flags`: 1 if the last sort had points that it could not place.
        FAILED = 1;
        /// Elements of `Points::flags`.
        FLAGS = 2;
        /// Boxes along each axis up to which image vectors are looked up: those of a cell's image
        /// and of two points; in a straight box,
        IMAGE_STEPS = 2 * NEAR_BOXES + 1;
        /// and in a tilted one.
        TILTED_STEPS = 2 * NEAR_TILTED_BOXES + 1;

        /// Threads of a block of `flat`, `flat_masks` and `stored`.
        FLAT_THREADS = 256;
        /// Threads that share the stored list of a target, unless each has a warp.
        STORED_LANES = 8;
        /// Pairs of sets whose lists with a skin one call of `judge_lists` judges.
        JUDGED_PAIRS = 32;
        /// Threads of a block of `flat_lists` and `flat_expand`, which share the blocks.
        LIST_THREADS = 128;
        /// Threads of a block of `flat_wide`, which compares a target with all sources.
        WIDE_THREADS = 1024;
        /// Maximum number of points of a set whose radii are too large for its cells.
        MAX_WIDE = 512;
        /// Halvings of the largest radius by which radii of points are counted; smaller radii are
        /// those of the last.
        RADIUS_CLASSES = 12;
        /// Lists that a block of `lists_ascend` sorts.
        ASCEND_LISTS = 16;
        /// Threads of a block that copies lists to arrays of pairs.
        COLUMN_THREADS = 256;
        /// Lists that such a block copies.
        COLUMN_TARGETS = 128;
        /// Cells of a parent block; every occupied one has a child.
        PARENT_THREADS = 256;
        /// Uniforms of a pair kernel that a launch can carry.
        MAX_UNIFORMS = 160;

        /// Points that a thread looks at when it gathers the targets of a share.
        SHARE_ROUNDS = 4;
        /// Points that a block looks at then.
        SHARE_TILE = GRID_THREADS * SHARE_ROUNDS;
        /// Parts of the work that a share tells apart.
        MAX_PARTS = 64;
        /// Use of a halo's results: they overwrite those on the device,
        OVERWRITE = 0;
        /// are added to them,
        ADD = 1;
        /// replace larger ones,
        KEEP_SMALLER = 2;
        /// or replace smaller ones.
        KEEP_LARGER = 3;

        /// Threads of a block that sums over all pairs.
        ALL_PAIRS_THREADS = 128;

        /// Threads of a block that prepares systems: few, so that all multiprocessors have some.
        SYSTEMS_A_BLOCK = 32;
        /// Threads of a block that searches a system.
        SYSTEM_THREADS = 128;
        /// Targets of such a block.
        SYSTEM_TARGETS = 64;
        /// Candidates that it lays out at a time, whole warps of them.
        SYSTEM_TILE = 512;
        /// Maximum number of points of a system.
        SYSTEM_MAX = 32768;
        /// Bytes of the cell of a system as kernels read it.
        SYSTEM_BOX = 240;
    }
    choices {
        /// NF_WORK: neighbours are counted,
        COUNT = 0;
        /// lists are written,
        LISTS = 1;
        /// or a pair kernel is evaluated.
        PAIRS = 2;
        /// NF_OPEN: candidates are found by the table of neighbour rows,
        GENERAL = 0;
        /// in the padded table of one set in an open domain,
        ONE_SET = 1;
        /// around each target in a dense table of an open domain,
        AROUND_OPEN = 2;
        /// of a straight periodic box,
        AROUND_PERIODIC = 3;
        /// or of a tilted box;
        AROUND_TILTED = 4;
        /// or sources are named by stored lists, in an open domain,
        LISTED_OPEN = 5;
        /// in a straight box where the nearest image of each is all there can be,
        LISTED_NEAREST = 6;
        /// in such a tilted box,
        LISTED_TILTED = 7;
        /// or in any box.
        LISTED_IMAGES = 8;
        /// NF_FILTERS, the sum of what it does: data of both points leave pairs out,
        NAMED = 1;
        /// points have radii of their own,
        RADII = 2;
        /// only the nearest are kept.
        NEAREST = 4;
        /// NF_REDUCE: results of pairs are added up,
        SUM = 0;
        /// or the smallest is kept,
        MIN = 1;
        /// or the largest.
        MAX = 2;
    }
}

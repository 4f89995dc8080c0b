//! Numbers that kernels and the code that launches them must agree on, each stated once.
//!
//! A table below makes two things of every line: a Rust constant, and a line of CUDA C++ in the
//! header that sources include. Sizes of blocks, lengths of tables and marks become `constexpr`
//! numbers of the namespace `nf`, those of the block `reals` in double precision; choices among
//! variants, which the preprocessor compares, become macros with the prefix `NF_`. The header is a
//! constant text, so it is a part of every program's key, and `nearfield kernels constants` prints
//! it.
//!
//! A number that only one side reads is not in a table: it stands beside the code that reads it.
//! Lengths that follow from others are written as expressions, which both languages evaluate.

/// Makes the constants and the text of a header.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        header $text:ident;
        numbers { $( $(#[doc = $doc:literal])+ $name:ident = $value:expr; )* }
        $( reals { $( $(#[doc = $of_real:literal])+ $real:ident = $size:literal; )* } )?
        choices { $( $(#[doc = $meaning:literal])+ $choice:ident = $number:literal; )* }
    ) => {
        $( $(#[doc = $doc])+ pub const $name: u32 = $value; )*
        $( $( $(#[doc = $of_real])+ pub const $real: f64 = $size; )* )?
        $( $(#[doc = $meaning])+ pub const $choice: u32 = $number; )*

        $(#[doc = $about])+
        pub const $text: &str = concat!(
            $("//", $about, "\n",)+
            "#pragma once\n\nnamespace nf {\n\n",
            $(
                $("//", $doc, "\n",)+
                "constexpr unsigned ", stringify!($name), " = ", stringify!($value), ";\n",
            )*
            $( $(
                $("//", $of_real, "\n",)+
                "constexpr double ", stringify!($real), " = ", stringify!($size), ";\n",
            )* )?
            "\n}\n",
            $(
                "\n", $("//", $meaning, "\n",)+
                "#define NF_", stringify!($choice), " ", stringify!($number), "\n",
            )*
        );
    };
}

table! {
    /// Numbers of the engine's kernels. This text is generated: see kernels/src/constants.rs.
    header HEADER;
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

        /// Element of `Points::flags`: 1 if a point lies outside a periodic box.
        ANY_WRAPPED = 0;
        /// Element of `Points::flags`: 1 if the last sort had points that it could not place.
        FAILED = 1;
        /// Element of `Points::flags`: 1 if `Points::changes` is of the last sort.
        CHANGES_KNOWN = 2;
        /// Elements of `Points::flags`.
        FLAGS = 3;

        /// Threads of a block of `flat`.
        FLAT_THREADS = 256;
        /// Threads of a block of `flat_lists` and `flat_expand`, which share the blocks.
        LIST_THREADS = 128;
        /// Threads of a block of `cell_tasks` and `half_tiles`.
        TILE_THREADS = 128;
        /// Cells that a block looks at when it lists the occupied ones.
        LISTING_THREADS = 256;
        /// Cells of a parent block; every occupied one has a child.
        PARENT_THREADS = 256;
        /// Uniforms of a pair kernel that a launch can carry.
        MAX_UNIFORMS = 160;

        /// Points that a thread looks at when it gathers the targets of a share.
        SHARE_ROUNDS = 4;
        /// Points that a block looks at then.
        SHARE_TILE = GRID_THREADS * SHARE_ROUNDS;
        /// Arrays that a launch brings along when points change their rank.
        MAX_COLUMNS = 8;
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
        /// Sources that are added up one by one before their sum is added to the result, on every
        /// backend.
        ALL_PAIRS_TILE = 128;

        /// Bits of the mantissa that do not tell cells beyond `EVEN_CELLS` apart.
        FAR_SHIFT = 52 - 29;
    }
    reals {
        /// Maximum number of cells in the box of a periodic axis, and the limit that counts of
        /// boxes are clamped to: 2^41.
        FARTHEST_CELL = 2199023255552.0;
        /// Beyond this many cells from 0, which is 2^40, cells of an open axis grow with the
        /// distance: every doubling of it holds 2^29 of them. So three coordinates fit a 128-bit
        /// key however far out points are, and points in a cube that is vast beside the radius do
        /// not meet in one cell; every `f32` has a cell of its own there. Cells that are larger
        /// bring no pair farther apart, so none is lost.
        EVEN_CELLS = 1099511627776.0;
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
        /// or of a tilted box.
        AROUND_TILTED = 4;
        /// NF_REDUCE: results of pairs are added up,
        SUM = 0;
        /// or the smallest is kept,
        MIN = 1;
        /// or the largest.
        MAX = 2;
        /// NF_SYMMETRIC: the source of a pair gets what the kernel gives for the reversed pair,
        BY_REVERSAL = 1;
        /// or what the target gets, the channels in NF_ANTISYMMETRIC with the other sign,
        BY_SIGN = 2;
        /// or the kernel has a function for both.
        BY_FUNCTION = 3;
    }
}

/// Numbers of `sph/integrate.cu`, the motion of a fluid.
pub mod sph {
    table! {
        /// Numbers of the fluid's kernels. This text is generated: see kernels/src/constants.rs.
        header HEADER;
        numbers {
            /// Threads of a block.
            THREADS = 256;
            /// Maximum number of blocks that give sums.
            MAX_BLOCKS = 512;
            /// Threads of a block that adds up one sum.
            TOTAL_THREADS = 32;

            /// Sums of a kick: power of the viscous forces,
            VISCOUS = 0;
            /// power of the friction at walls,
            RUBBED = 1;
            /// work of the walls,
            WORK = 2;
            /// force of the walls, three components from here on,
            WALL = 3;
            /// largest squared speed,
            SPEED = 6;
            /// largest squared acceleration,
            ACCELERATION = 7;
            /// and number of lost particles.
            LOST = 8;
            /// Sums of a kick.
            KICK_SLOTS = 9;

            /// Sums of a compression: energy that diffusion takes,
            DIFFUSED = 0;
            /// and work of the pressure of walls.
            PRESSED = 1;
            /// Sums of a compression.
            COMPRESSION_SLOTS = 2;

            /// Sums of a measurement: of squared speeds,
            SQUARES = 0;
            /// of heights times gravity,
            HEIGHTS = 1;
            /// of internal energies,
            INTERNAL = 2;
            /// and momentum, three components from here on.
            MOMENTUM = 3;
            /// Sums of a measurement.
            MEASURE_SLOTS = 6;

            /// Bins in which the particles are counted to find the front.
            FRONT_BINS = 4096;

            /// Sums of a probe.
            PROBE_SLOTS = 2;
            /// Blocks that add up the sums of a probe.
            PROBE_BLOCKS = 64;
        }
        choices {}
    }
}

/// Numbers of `md/dynamics.cu`, the motion of atoms.
pub mod md {
    table! {
        /// Numbers of the atoms' kernels. This text is generated: see kernels/src/constants.rs.
        header HEADER;
        numbers {
            /// Threads of a block.
            THREADS = 256;
            /// Threads that share an atom's list.
            LANES = 8;
            /// Types of atoms there may be.
            MAX_TYPES = 8;
            /// Parameters of a potential that a launch can carry.
            MAX_UNIFORMS = 160;
            /// Sums over lists: energy and virial.
            PAIR_SLOTS = 2;
            /// Sums over atoms: kinetic energy and the components of the momentum.
            MOTION_SLOTS = 4;
        }
        choices {}
    }
}

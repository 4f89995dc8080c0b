//! Numbers by which CPU and GPU put points into the same cells.

nearfield_shared::constants! {
    /// Numbers of cells. This text is generated: see crates/engine/grid/src/constants.rs.
    header HEADER in nf;
    numbers {
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
}

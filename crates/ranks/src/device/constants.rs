//! Numbers that the kernels of places.cu share with the code that launches them.

nearfield_shared::constants! {
    /// Numbers of a rank's kernels. This text is generated: see
    /// crates/ranks/src/device/constants.rs.
    header HEADER in ranks;
    numbers {
        /// Threads of a block.
        THREADS = 256;
        /// Points that a thread of a survey looks at.
        ROUNDS = 4;
        /// Points that a block of a survey looks at.
        TILE = THREADS * ROUNDS;
        /// Threads of the block that adds up the counts of tiles.
        SCAN_THREADS = 1024;
        /// Arrays that a launch brings along when points change their rank.
        MAX_COLUMNS = 8;

        /// Elements of what a survey finds, after the extent of the points: whether a point is not
        /// finite,
        NOT_FINITE = 6;
        /// whether the class of a point is not known,
        UNKNOWN = 7;
        /// and the number of points that are not of the interior.
        SPECIAL = 8;

        /// Use of a border's results: they are added to those of all points,
        ADD = 1;
        /// replace larger ones,
        KEEP_SMALLER = 2;
        /// or replace smaller ones.
        KEEP_LARGER = 3;
    }
}

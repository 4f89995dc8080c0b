//! Numbers that the kernels of integrate.cu share with the code that launches them.

nearfield_shared::constants! {
    /// Numbers of the fluid's kernels. This text is generated: see
    /// crates/apps/sph/src/constants.rs.
    header HEADER in nf;
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
}

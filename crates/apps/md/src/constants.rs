//! Numbers that the kernels of dynamics.cu share with the code that launches them.

nearfield_shared::constants! {
    /// Numbers of the atoms' kernels. This text is generated: see crates/apps/md/src/constants.rs.
    header HEADER in nf;
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
}

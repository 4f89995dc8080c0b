//! Numbers that the kernels of dynamics.cu share with the code that launches them.

nearfield_shared::constants! {
    /// Numbers of the atoms' kernels. This text is generated: see crates/apps/md/src/constants.rs.
    header HEADER in nf;
    numbers {
        /// Threads of a block.
        THREADS = 256;
        /// Types of atoms there may be.
        MAX_TYPES = 8;
        /// Numbers that the pair kernel gives an atom: half the energy and half the virial of its
        /// pairs, and the force.
        PAIR_CHANNELS = 5;
        /// Sums over these: energy and virial.
        PAIR_SLOTS = 2;
        /// Sums over atoms: kinetic energy and the components of the momentum.
        MOTION_SLOTS = 4;
    }
}

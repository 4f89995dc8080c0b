//! Kernels through the public interface.

mod all_pairs;
mod cutoff_coulomb;
mod lennard_jones;
mod power_law;
mod sph;

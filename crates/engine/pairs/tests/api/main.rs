//! Kernels through the public interface.

mod all_pairs;
mod cutoff_coulomb;
mod field;
mod lennard_jones;
mod power_law;
mod sph;

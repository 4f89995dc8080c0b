//! An entry of a list.

/// A source within the radius of a target, seen through one periodic image.
/// Ordered by index, then by image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neighbor {
    /// Which source, in the caller's numbering.
    pub index: u32,
    /// By how many box lengths the source is moved along each axis, or by how
    /// many of each box vector; zero on open axes.
    pub image: [i64; 3],
}

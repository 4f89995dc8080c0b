//! Which image of the periodic box a pair is seen through.

/// By how many boxes a source is moved along each axis; zero on open axes. Of 64 bits: two points
/// that are 2³⁰ boxes away from the origin on either side are 2³¹ boxes apart, and a few more where
/// the box is smaller than the radius.
pub(crate) type Image = [i64; 3];

/// The image of a pair whose cells met through `of_cells`, as counted from the coordinates as they
/// are: those of the target lie `target` boxes outside the box, those of the source `source`.
#[inline(always)]
pub(crate) fn image_of(of_cells: [i32; 3], target: [i32; 3], source: [i32; 3]) -> Image {
    std::array::from_fn(|axis| {
        i64::from(of_cells[axis]) + i64::from(target[axis]) - i64::from(source[axis])
    })
}

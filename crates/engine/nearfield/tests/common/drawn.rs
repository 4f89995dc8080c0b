//! Kernels that read indices, images and random numbers, and their sums from lists.
//!
//! All contributions are small whole numbers, so sums are exact in any order and must be the same
//! on every path.

use nearfield::{
    Engine, Pair, PairKernel, PointSetId,
    kernels::{Images, Random},
    lists::PairGeometry,
};

/// Values of a point: its index and its position.
pub(crate) type Point = (u32, [f32; 3]);

/// Random numbers of the pair and of the source, indices, and the image as one number.
pub(crate) struct Drawn<const SYMMETRIC: bool> {
    pub(crate) random: Random,
    pub(crate) images: Images,
}

#[nearfield::pair_kernel]
impl<const SYMMETRIC: bool> PairKernel for Drawn<SYMMETRIC> {
    type Target = Point;
    type Source = Point;
    type Output = [f32; 5];
    const SYMMETRIC: bool = SYMMETRIC;

    #[inline(always)]
    fn pair(&self, pair: Pair, (i, xi): Point, (j, xj): Point) -> [f32; 5] {
        let [of_pair, _, _, _] = self.random.of_pair(i, j, 3);
        let [_, of_source, _, _] = self.random.of_point(j, 0);
        let [a, b, c] = self.images.of(pair, xi, xj);
        [
            (of_pair >> 22) as f32,
            (of_source >> 22) as f32,
            (j & 511) as f32,
            (i & 63) as f32,
            (a + 8 * b + 64 * c) as f32,
        ]
    }
}

/// A number that both points of a pair draw, and their image, whose sign they see differently.
pub(crate) struct Mirrored {
    pub(crate) random: Random,
    pub(crate) images: Images,
}

#[nearfield::pair_kernel]
impl PairKernel for Mirrored {
    type Target = Point;
    type Source = Point;
    type Output = [f32; 2];
    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn pair(&self, pair: Pair, (i, xi): Point, (j, xj): Point) -> [f32; 2] {
        let [_, of_pair, _, _] = self.random.of_pair(i, j, 0);
        let [a, b, c] = self.images.of(pair, xi, xj);
        [(of_pair >> 22) as f32, (a + 8 * b + 64 * c) as f32]
    }
}

/// The sums of [`Drawn`] and of [`Mirrored`], from indices and images of pairs that the engine
/// lists.
pub(crate) fn expected(
    engine: &Engine,
    random: Random,
    [targets, sources]: [PointSetId; 2],
) -> Vec<([f32; 5], [f32; 2])> {
    let mut geometry = PairGeometry::default();
    engine
        .pair_geometry(targets, sources, &mut geometry)
        .unwrap();
    let sums = (0..engine.points(targets).unwrap()).map(|target| {
        let mut sums = ([0.0; 5], [0.0; 2]);
        for neighbor in geometry.of(target) {
            let (i, j) = (target as u32, neighbor.index);
            let [a, b, c] = neighbor.image;
            let image = (a + 8 * b + 64 * c) as f32;
            let small = |bits: u32| (bits >> 22) as f32;
            let drawn = [
                small(random.of_pair(i, j, 3)[0]),
                small(random.of_point(j, 0)[1]),
                (j & 511) as f32,
                (i & 63) as f32,
                image,
            ];
            let mirrored = [small(random.of_pair(j, i, 0)[1]), image];
            (sums.0.iter_mut().zip(drawn)).for_each(|(sum, part)| *sum += part);
            (sums.1.iter_mut().zip(mirrored)).for_each(|(sum, part)| *sum += part);
        }
        sums
    });
    sums.collect()
}

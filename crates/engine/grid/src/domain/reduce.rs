//! Short vectors for boxes that lean far or are nearly flat.
//!
//! Box vectors are not unique: adding whole multiples of one to another gives the same lattice of
//! images. Cells are shares of the vectors, so a box whose vectors are long beside the distances
//! between its faces is cut into few slanted cells, and every cell reaches a great many others.
//! With short vectors it is an ordinary box.
//!
//! # What may change, and what may not
//!
//! Only the enumeration of images follows from the short vectors r_k = Σ M_kl·v_l, where M is a
//! matrix of whole numbers that has an inverse of whole numbers. The image that lies m_k short
//! vectors away is the one that lies n_l = Σ m_k·M_kl given vectors away. These sums are exact, and
//! the contract's S is computed from n and the vectors as given. So every image is met once, and
//! every pair is decided by the same numbers.
//!
//! # Method
//!
//! Two vectors are reduced as Lagrange did (1773): the longer one loses the multiple of the shorter
//! that leaves least of it. Three are reduced until none gets shorter by whole multiples of the
//! other two, which makes them Minkowski-reduced (Semaev 2001, doi:10.1007/3-540-44670-2_13). Every
//! change shortens a vector, so it ends. Vectors stay in their place: a short vector is the given
//! one and multiples of the others, and an open axis stays open.
//!
//! # Cost
//!
//! A few dozen operations per change, and a change leaves at most half of a vector, so a box of any
//! shape takes microseconds, once per engine. No vector of the result is more than twice as long as
//! the distance between the faces that it connects, which random boxes in the tests confirm.
//!
//! **Invariant:** a short vector is exact but for one rounding to `f64` per component.

use super::tilt::{dot, norm};

/// Whole numbers of the given vectors that make up each short one. Zero for open axes.
pub(crate) type Transform = [[i64; 3]; 3];

/// Most given vectors in a short one. Counts of boxes are below 2³², so numbers of given boxes stay
/// below 2⁵² and are exact in `f64`.
const MOST: i64 = 1 << 18;

/// Changes after which it is given up. Each leaves at most about half of a vector.
const MOST_CHANGES: usize = 400;

/// A vector has to become shorter than this part of its squared length for a change to count.
/// Otherwise rounding could let two changes follow each other for ever.
const SHORTER: f64 = 1.0 - 1e-9;

/// Short vectors of the same lattice, with how they are made up of the given ones; None where that
/// takes more than [`MOST`] of one.
pub(crate) fn short_vectors(
    given: [Option<[f64; 3]>; 3],
) -> Option<([Option<[f64; 3]>; 3], Transform)> {
    let mut vectors = given;
    let mut transform: Transform =
        std::array::from_fn(|k| std::array::from_fn(|l| i64::from(k == l && given[k].is_some())));
    for _ in 0..MOST_CHANGES {
        let Some((k, row)) = (0..3).find_map(|k| Some((k, shorter(k, &vectors, &transform)?)))
        else {
            return Some((vectors, transform));
        };
        if row.iter().any(|count| count.abs() > MOST) {
            return None;
        }
        transform[k] = row;
        vectors[k] = Some(combined(row, given));
    }
    None
}

/// The transform of vector `k` less whole multiples of the others, if that is shorter.
///
/// Lengths are compared as rounded. A vector that rounding makes look shorter than it is costs a
/// little time in a search, and no pair.
fn shorter(k: usize, vectors: &[Option<[f64; 3]>; 3], transform: &Transform) -> Option<[i64; 3]> {
    let vector = vectors[k]?;
    let others = [(k + 1) % 3, (k + 2) % 3];
    let mut best = (SHORTER * dot(vector, vector), None);
    for multiples in nearest(vector, others.map(|other| vectors[other])) {
        let mut left = vector;
        for (other, multiple) in others.into_iter().zip(multiples) {
            let other = vectors[other].unwrap_or_default();
            left = std::array::from_fn(|axis| left[axis] - multiple * other[axis]);
        }
        let squared = dot(left, left);
        if squared < best.0 {
            best = (squared, Some(multiples));
        }
    }
    let multiples = best.1?;
    let mut row = transform[k];
    for (other, multiple) in others.into_iter().zip(multiples) {
        for l in 0..3 {
            // Larger numbers are refused by the caller; they saturate here.
            let more = (multiple as i64).saturating_mul(transform[other][l]);
            row[l] = row[l].saturating_sub(more);
        }
    }
    Some(row)
}

/// Whole multiples of two vectors that may be nearest to a third one: those of each alone, and
/// those around the point of their plane below it.
///
/// Where both vectors are nearly parallel that point is rounded badly. They are then shortened by
/// each other first, because the multiples of one alone are tried too.
fn nearest(vector: [f64; 3], others: [Option<[f64; 3]>; 2]) -> Vec<[f64; 2]> {
    let along =
        |other: Option<[f64; 3]>| other.map_or(0.0, |other| dot(vector, other) / dot(other, other));
    let [p, q] = others.map(along);
    let mut multiples = vec![[p.round(), 0.0], [0.0, q.round()]];
    if let [Some(a), Some(b)] = others {
        let [aa, ab, bb] = [dot(a, a), dot(a, b), dot(b, b)];
        let [va, vb] = [dot(vector, a), dot(vector, b)];
        let determinant = aa * bb - ab * ab;
        let [p, q] = [
            (va * bb - vb * ab) / determinant,
            (vb * aa - va * ab) / determinant,
        ];
        for i in -1..=2 {
            for j in -1..=2 {
                multiples.push([p.floor() + f64::from(i), q.floor() + f64::from(j)]);
            }
        }
    }
    multiples.retain(|pair| pair.iter().all(|count| count.abs() <= MOST as f64));
    multiples
}

/// Whole multiples of vectors together, each component rounded about once however much cancels.
///
/// A component that all vectors leave at zero stays zero, so no vector begins to lean along an open
/// axis.
fn combined(counts: [i64; 3], vectors: [Option<[f64; 3]>; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| {
        let mut terms = Vec::with_capacity(6);
        for (count, vector) in counts.into_iter().zip(vectors) {
            let (count, value) = (count as f64, vector.map_or(0.0, |vector| vector[axis]));
            let product = count * value;
            // The rounding of the product, exactly.
            terms.extend([product, count.mul_add(value, -product)]);
        }
        sum_of(&terms)
    })
}

/// The sum of a few numbers, computed without rounding and then rounded (Shewchuk 1997,
/// doi:10.1007/PL00009321).
fn sum_of(terms: &[f64]) -> f64 {
    let mut parts: Vec<f64> = Vec::with_capacity(terms.len());
    for &term in terms {
        let mut rest = term;
        for part in &mut parts {
            let sum = rest + *part;
            let of_part = sum - rest;
            let lost = (rest - (sum - of_part)) + (*part - of_part);
            (*part, rest) = (lost, sum);
        }
        parts.push(rest);
    }
    parts.iter().sum()
}

/// The largest ratio of a vector's length to the distance between the faces that it connects.
///
/// 1 in a straight box. Open axes do not count.
pub(crate) fn stretch(vectors: [Option<[f64; 3]>; 3], inverse: [[f64; 3]; 3]) -> f64 {
    let of = |k: usize| vectors[k].map_or(1.0, |vector| norm(vector) * norm(inverse[k]));
    (0..3).map(of).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tilt::Tilt;

    fn determinant(m: Transform) -> i64 {
        (0..3)
            .map(|k| {
                let [a, b] = [(k + 1) % 3, (k + 2) % 3];
                m[0][k] * (m[1][a] * m[2][b] - m[1][b] * m[2][a])
            })
            .sum()
    }

    #[test]
    fn the_vectors_of_sheared_and_flat_boxes_become_short() {
        let mut number = 7u64;
        let mut draw = || {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(11);
            (number >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut tried = 0;
        while tried < 3000 {
            let mut vectors = [0; 3].map(|_| [0; 3].map(|_| 10.0 * draw()));
            // Shears of all kinds, by whole numbers and others.
            for _ in 0..3 {
                let (k, l) = (
                    (3.0 * (draw() + 0.5)) as usize,
                    (3.0 * (draw() + 0.5)) as usize,
                );
                let by = if draw() > 0.0 {
                    60.0 * draw()
                } else {
                    (60.0 * draw()).round()
                };
                if k != l {
                    vectors[k] = [0, 1, 2].map(|axis| vectors[k][axis] + by * vectors[l][axis]);
                }
            }
            let Ok(tilt) = Tilt::new(vectors) else {
                continue;
            };
            tried += 1;
            let (short, transform) = short_vectors(vectors.map(Some)).expect("few changes");
            assert_eq!(determinant(transform).abs(), 1, "{vectors:?}");
            let short_tilt = Tilt::new(short.map(Option::unwrap_or_default)).unwrap();
            let [before, after] = [
                stretch(vectors.map(Some), tilt.inverse),
                stretch(short, short_tilt.inverse),
            ];
            assert!(after <= 2.0, "{before} to {after}: {vectors:?}");
        }
    }

    #[test]
    fn two_vectors_are_reduced_among_themselves() {
        let given = [Some([3.0, 0.25, 0.0]), None, Some([1000.0, 90.0, 2.0])];
        let (short, transform) = short_vectors(given).unwrap();
        assert_eq!((short[1], transform[1]), (None, [0; 3]));
        assert_eq!((transform[0][1], transform[2][1]), (0, 0));
        let lengths = [0, 2].map(|k| norm(short[k].unwrap()));
        assert!(lengths[0] < 3.1 && lengths[1] < 10.0, "{short:?}");
    }

    #[test]
    fn sums_are_rounded_once() {
        assert_eq!(sum_of(&[1e100, 1.0, -1e100, 1e-30]), 1.0);
        let third = 1.0 / 3.0;
        let vectors = [Some([third; 3]), Some([1e9 / 3.0; 3]), None];
        let left = combined([-100_000, 1, 0], [vectors[0], Some([1e5 * third; 3]), None]);
        // 1e5 / 3 is rounded, and that rounding is all that is left.
        assert_eq!(left[0], (-1e5f64).mul_add(third, 1e5 * third));
    }
}

//! Cut-offs per pair of types.
//!
//! Every point has a type, and every pair of types a cut-off: d² is compared with fl(r·r) of that,
//! rounded once per pair of types in the precision of the search. The grid's radius is the largest
//! cut-off allowed, so all pairs are candidates anyway.
//!
//! # Never
//!
//! A cut-off of 0 means never. Its square is kept as −1, below any d², because coincident points
//! have d² = 0.
//!
//! **Invariant:** the matrix is square and symmetric, so j is a neighbour of i whenever i is one
//! of j; and every type of a [`PointTypes`] has a row in the table that it was checked with.

use crate::error::{Error, ErrorKind};
use nearfield_grid::{
    Precision, Radius,
    memory::{make_room, with_room},
    prefetch,
};

/// Largest number of types, so that a table stays within the caches.
const MAX_TYPES: usize = 1024;

/// The squared cut-off of every pair of types.
///
/// ```
/// use nearfield_cpu::CutoffTable;
/// use nearfield_grid::Radius;
/// // Points of type 0 see each other within 2, those of type 1 never, and either within 1.
/// let table = CutoffTable::new(&[[2.0, 1.0], [1.0, 0.0]], Radius::new(2.0)?, false)?;
/// assert_eq!((table.types(), table.largest()), (2, 2.0));
/// let refused = CutoffTable::new(&[[2.0, 1.0], [0.5, 0.0]], Radius::new(2.0)?, false);
/// assert!(refused.unwrap_err().to_string().contains("must be symmetric"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A table serves every radius of its precision that is not below its largest cut-off. The engine
/// makes it again when the radius changes, and refuses cut-offs that are then too large.
#[derive(Debug, Clone, PartialEq)]
pub struct CutoffTable {
    /// Number of types.
    types: usize,
    /// fl(r·r) in the precision of the search, row by row; −1 for never.
    squared: Vec<f64>,
    /// The same in `f32`, exact in single precision.
    squared_f32: Vec<f32>,
    /// The largest cut-off, 0 if there is none.
    largest: f64,
    /// That of the search.
    precision: Precision,
}

impl CutoffTable {
    /// The table of a square matrix, given row by row. Cut-offs are rounded to the precision of
    /// `radius` and are at most that; 0 means never. With `strict`, pairs exactly as far apart as
    /// their cut-off are left out.
    ///
    /// # Errors
    /// [`ErrorKind::CutoffRows`], [`ErrorKind::CutoffTypes`], [`ErrorKind::Cutoff`] and
    /// [`ErrorKind::CutoffsDiffer`], naming the types; [`ErrorKind::OutOfMemory`].
    pub fn new<R: AsRef<[f64]>>(rows: &[R], radius: Radius, strict: bool) -> Result<Self, Error> {
        let types = rows.len();
        if !(1..=MAX_TYPES).contains(&types) {
            let (found, most) = (types, MAX_TYPES);
            return Err(ErrorKind::CutoffTypes { found, most }.into());
        }
        const WHAT: &str = "the cut-offs of pairs of types";
        let mut squared = with_room(types * types, WHAT)?;
        let mut squared_f32 = with_room(types * types, WHAT)?;
        let mut largest = 0.0f64;
        for (a, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            if row.len() != types {
                let (row, found) = (a, row.len());
                return Err(ErrorKind::CutoffRows { row, found, types }.into());
            }
            for (b, &value) in row.iter().enumerate() {
                let other = rows[b].as_ref().get(a).copied();
                if let Some(other) = other.filter(|other| *other != value && !value.is_nan()) {
                    let types = [a, b];
                    let values = [value, other];
                    return Err(ErrorKind::CutoffsDiffer { types, values }.into());
                }
                let found = of_pair([a, b], value, radius, strict)?;
                largest = largest.max(found.map_or(0.0, Radius::value_f64));
                squared.push(found.map_or(-1.0, Radius::squared_f64));
                squared_f32.push(found.map_or(-1.0, Radius::squared));
            }
        }
        Ok(Self {
            types,
            squared,
            squared_f32,
            largest,
            precision: radius.precision(),
        })
    }

    /// Returns true if a search of this radius may use it.
    pub(super) fn is_for(&self, radius: Radius) -> bool {
        self.largest <= radius.value_f64() && self.precision == radius.precision()
    }

    /// Number of types.
    pub fn types(&self) -> usize {
        self.types
    }

    /// The largest cut-off in the precision of the search, 0 if all of them mean never.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// What squared distances are compared with, exact in either precision, a row for each type; −1
    /// for never.
    pub fn squares(&self) -> &[f64] {
        &self.squared
    }

    /// That of the search.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Squared cut-offs of a type with every type, in single precision.
    #[inline(always)]
    pub(super) fn row(&self, of: u32) -> &[f32] {
        let begin = of as usize * self.types;
        self.squared_f32
            .get(begin..begin + self.types)
            .unwrap_or(&[])
    }

    /// The same in double precision.
    #[inline(always)]
    pub(super) fn row_f64(&self, of: u32) -> &[f64] {
        let begin = of as usize * self.types;
        self.squared.get(begin..begin + self.types).unwrap_or(&[])
    }
}

/// The cut-off of a pair of types; none for never.
fn of_pair(
    types: [usize; 2],
    value: f64,
    radius: Radius,
    strict: bool,
) -> Result<Option<Radius>, Error> {
    if value == 0.0 {
        return Ok(None);
    }
    let made = match radius.precision() {
        Precision::Single => Radius::rounded(value),
        Precision::Double => Radius::new_f64(value),
    };
    let largest = radius.value_f64();
    match made {
        Ok(made) if made.value_f64() <= largest => {
            Ok(Some(if strict { made.strict() } else { made }))
        }
        _ => Err(ErrorKind::Cutoff {
            types,
            value,
            largest,
        }
        .into()),
    }
}

/// The types of a set's points, in the caller's order. Four bytes a point, because vectors look up
/// numbers of 32 bits.
///
/// Types are taken as `u8`, `u16` or `u32` and checked against the number of types, so that loops
/// may look cut-offs up unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PointTypes {
    /// The type of every point.
    of_points: Vec<u32>,
    /// All of them are below this.
    bound: usize,
}

impl PointTypes {
    /// Takes the type of every point, of at most `types` types; unchanged after an error.
    ///
    /// # Errors
    /// [`ErrorKind::FilterLength`], [`ErrorKind::PointType`] naming the first type out of
    /// range, and [`ErrorKind::OutOfMemory`].
    pub fn take<T: Copy + Into<u32>>(
        &mut self,
        given: &[T],
        points: usize,
        types: usize,
    ) -> Result<(), Error> {
        if given.len() != points {
            return Err(ErrorKind::FilterLength {
                what: "types",
                found: given.len(),
                expected: points,
            }
            .into());
        }
        let is_bad = |value: &T| (*value).into() as usize >= types;
        if let Some(index) = given.iter().position(is_bad) {
            return Err(ErrorKind::PointType {
                index,
                value: given[index].into(),
                types,
                count: given.iter().filter(|value| is_bad(value)).count(),
                points,
            }
            .into());
        }
        make_room(&mut self.of_points, points, "types of points")?;
        self.of_points.clear();
        self.of_points
            .extend(given.iter().map(|&value| value.into()));
        self.bound = types;
        Ok(())
    }

    /// The types of the points `kept`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn of_kept(&self, kept: &[u32]) -> Result<Self, Error> {
        let mut types = with_room(kept.len(), "types of points that are kept")?;
        types
            .extend((kept.iter()).filter_map(|&point| self.of_points.get(point as usize).copied()));
        Ok(Self {
            of_points: types,
            bound: self.bound,
        })
    }

    /// Forgets all types.
    pub fn clear(&mut self) {
        self.of_points.clear();
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.of_points.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.of_points.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * self.of_points.capacity()
    }

    /// All types are below this number.
    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// Prefetches the type of a point.
    #[inline(always)]
    pub(super) fn expect(&self, point: usize) {
        prefetch(self.of_points.as_ptr().wrapping_add(point));
    }

    /// The types, in the caller's order.
    #[inline(always)]
    pub fn of_points(&self) -> &[u32] {
        &self.of_points
    }
}

/// A table, and the types of targets and sources.
#[derive(Debug, Clone, Copy)]
pub struct TypeCutoffs<'a> {
    /// The cut-offs.
    pub table: &'a CutoffTable,
    /// Types of the targets and of the sources.
    pub types: [&'a PointTypes; 2],
}

impl TypeCutoffs<'_> {
    /// The square that the squared distance of a pair is compared with, exact in either precision;
    /// none where a point has no type.
    #[inline(always)]
    pub(crate) fn squared(&self, target: usize, source: usize) -> Option<f64> {
        let [targets, sources] = self.types;
        let (targets, sources) = (targets.of_points(), sources.of_points());
        let row = self.table.row_f64(*targets.get(target)?);
        row.get(*sources.get(source)? as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rows: &[Vec<f64>]) -> String {
        let radius = Radius::new(2.0).unwrap();
        CutoffTable::new(rows, radius, false)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_matrix_that_cannot_be_is_refused_with_its_types() {
        for (rows, words) in [
            (vec![], "0 types"),
            (vec![vec![1.0, 1.0], vec![1.0]], "row 1"),
            (vec![vec![1.0], vec![1.0]], "row 0"),
            (vec![vec![2.5]], "types 0 and 0 is 2.5"),
            (vec![vec![f64::NAN]], "types 0 and 0 is NaN"),
            (vec![vec![-0.5]], "types 0 and 0 is -0.5"),
            (vec![vec![1e-30]], "types 0 and 0 is"),
            (vec![vec![f64::INFINITY]], "types 0 and 0 is inf"),
            (vec![vec![1.0, 0.5], vec![0.25, 1.0]], "types 0 and 1"),
            (vec![vec![1.0; 2000]; 2000], "2000 types"),
        ] {
            let text = refused(&rows);
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn squares_are_those_of_radii_and_never_is_below_any_distance() {
        for (radius, strict) in [
            (Radius::new(2.0).unwrap(), false),
            (Radius::new(2.0).unwrap(), true),
            (Radius::new_f64(2.0).unwrap(), false),
        ] {
            let rows = [[0.1, 0.0], [0.0, 2.0]];
            let table = CutoffTable::new(&rows, radius, strict).unwrap();
            let of = |value: f64| {
                let radius = match radius.precision() {
                    Precision::Single => Radius::rounded(value).unwrap(),
                    Precision::Double => Radius::new_f64(value).unwrap(),
                };
                if strict { radius.strict() } else { radius }
            };
            assert_eq!(table.row(0), [of(0.1).squared(), -1.0]);
            assert_eq!(table.row_f64(1), [-1.0, of(2.0).squared_f64()]);
            assert_eq!((table.types(), table.largest()), (2, 2.0));
        }
    }

    #[test]
    fn types_that_there_are_not_are_refused_and_change_nothing() {
        let mut types = PointTypes::default();
        types.take(&[0u8, 1, 1], 3, 2).unwrap();
        let before = types.clone();
        let error = types.take(&[0u32, 7, 70_000], 3, 2).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("point 1 has the type 7") && text.contains("2 of 3"),
            "{text}"
        );
        let error = types.take(&[0u16; 2], 3, 2).unwrap_err().to_string();
        assert!(
            error.contains("types for 2") && error.contains("has 3"),
            "{error}"
        );
        assert_eq!(types, before);
        assert_eq!(types.of_kept(&[2, 0]).unwrap().of_points(), [1, 0]);
    }
}

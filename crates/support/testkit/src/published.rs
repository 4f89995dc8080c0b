//! Published neighbour counts, parsed from the tables in `data/`.
//!
//! The tables are part of this crate and its tests parse every row, so a
//! malformed row is a defect of the crate and panics with its content.

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::oracle::Vectors;

const LATTICE_COUNTS: &str = include_str!("../data/lattice_ball_counts.csv");
const PUBLISHED_COUNTS: &str = include_str!("../data/published_counts.csv");

/// A family of lattice balls whose points were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ball {
    /// Points of Z³ within distance n of the origin (OEIS A000605).
    CubicByRadius,
    /// Points of Z³ within squared distance n of the origin (OEIS A117609).
    CubicBySquare,
    /// Points of Z² within distance n of the origin (OEIS A000328).
    SquareByRadius,
    /// Points of the face-centred cubic lattice within squared distance 2n
    /// of the origin, nearest neighbours being √2 apart (partial sums of
    /// OEIS A004015).
    FaceCenteredBySquare,
}

/// How many points a lattice has within some distance of one of its points,
/// that point included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BallCount {
    /// The number n that [`Ball`] speaks of.
    pub index: u32,
    /// The number of lattice points, the center included.
    pub points: u64,
}

/// A statement about a [`PublishedSystem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedCount {
    /// Every point has this many neighbours in its full list.
    FullPerPoint(u64),
    /// The half lists hold this many pairs in all.
    HalfTotal(u64),
}

/// A small system whose neighbours were counted by the tests of another
/// project.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedSystem {
    /// The name of the row.
    pub id: String,
    /// The points.
    pub points: Vec<[f32; 3]>,
    /// The box length of each periodic axis.
    pub periodic: [Option<f64>; 3],
    /// The vectors of a tilted box, which take the place of `periodic`.
    pub vectors: Option<Vectors>,
    /// The search radius.
    pub radius: f32,
    /// The count asserted.
    pub count: PublishedCount,
}

/// The counts of one family of balls, ascending.
pub fn ball_counts(ball: Ball) -> Vec<BallCount> {
    let name = match ball {
        Ball::CubicByRadius => "A000605",
        Ball::CubicBySquare => "A117609",
        Ball::SquareByRadius => "A000328",
        Ball::FaceCenteredBySquare => "A004015_fcc_shell",
    };
    let rows = rows(LATTICE_COUNTS).filter(|row| &row[0] == name);
    let counts = rows.map(|row| BallCount {
        index: number(&row[1]),
        points: number(&row[2]),
    });
    match ball {
        Ball::FaceCenteredBySquare => partial_sums(counts).collect(),
        _ => counts.collect(),
    }
}

/// Every published system.
pub fn systems() -> Vec<PublishedSystem> {
    rows(PUBLISHED_COUNTS).map(|row| system(&row)).collect()
}

/// The columns are id, structure, cell, pbc, cutoff, count, what, source.
fn system(row: &StringRecord) -> PublishedSystem {
    if &row[2] == "triclinic" {
        return tilted_system(row);
    }
    let lengths = cell(&row[2]);
    let wraps: Vec<bool> = row[3].chars().map(|axis| axis == 'T').collect();
    let count = number(&row[5]);
    PublishedSystem {
        id: row[0].to_owned(),
        points: structure(&row[1]),
        periodic: [0, 1, 2].map(|axis| lengths[axis].filter(|_| wraps[axis])),
        vectors: None,
        radius: number(&row[4]),
        count: if row[6].starts_with("half") {
            PublishedCount::HalfTotal(count)
        } else {
            PublishedCount::FullPerPoint(count)
        },
    }
}

/// A system whose structure column is `1 point; box rows (x;y;z)(x;y;z)(x;y;z)`: a point at the
/// origin. vesin searches below its cutoff, not up to it, and the next shell of this crystal lies
/// at exactly the cutoff; so the radius is the number before.
fn tilted_system(row: &StringRecord) -> PublishedSystem {
    let vectors: Vec<[f64; 3]> = structure(&row[1]);
    let Ok(vectors) = <[[f64; 3]; 3]>::try_from(vectors) else {
        panic!("{:?} does not name three vectors", &row[1]);
    };
    PublishedSystem {
        id: row[0].to_owned(),
        points: vec![[0.0; 3]],
        periodic: [None; 3],
        vectors: Some(vectors.map(Some)),
        radius: number::<f32>(&row[4]).next_down(),
        count: PublishedCount::HalfTotal(number(&row[5])),
    }
}

/// Box lengths out of `none`, `0.5^3` or `1x2x3`.
fn cell(text: &str) -> [Option<f64>; 3] {
    if text == "none" {
        return [None; 3];
    }
    if let Some(length) = text.strip_suffix("^3") {
        return [Some(number(length)); 3];
    }
    triple(text.split('x')).map(Some)
}

/// Points out of a text that holds `(x;y;z)` once per point, or `origin`.
fn structure<T: std::str::FromStr + Default + Copy>(text: &str) -> Vec<[T; 3]> {
    if text.ends_with("origin") {
        return vec![[T::default(); 3]];
    }
    let inside = text.split('(').skip(1).map(|rest| rest.split(')').next());
    inside
        .map(|point| triple(point.unwrap_or_default().split(';')))
        .collect()
}

fn triple<'a, T: std::str::FromStr>(fields: impl Iterator<Item = &'a str>) -> [T; 3] {
    let numbers: Vec<T> = fields.map(number).collect();
    let Ok(triple) = numbers.try_into() else {
        panic!("an embedded table holds a triple without three numbers");
    };
    triple
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    let Ok(number) = text.parse() else {
        panic!("an embedded table holds {text:?} instead of a number");
    };
    number
}

fn partial_sums(counts: impl Iterator<Item = BallCount>) -> impl Iterator<Item = BallCount> {
    counts.scan(0, |sum, BallCount { index, points }| {
        *sum += points;
        Some(BallCount {
            index,
            points: *sum,
        })
    })
}

fn rows(table: &str) -> impl Iterator<Item = StringRecord> {
    let mut reader = ReaderBuilder::new();
    let reader = reader.comment(Some(b'#')).trim(Trim::All);
    let rows = reader.from_reader(table.as_bytes()).into_records();
    rows.map(|row| match row {
        Ok(row) => row,
        Err(error) => panic!("an embedded table is malformed: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read_in_full() {
        assert_eq!(ball_counts(Ball::CubicByRadius).len(), 38);
        assert_eq!(ball_counts(Ball::CubicBySquare).len(), 51);
        assert_eq!(ball_counts(Ball::SquareByRadius).len(), 41);
        assert_eq!(ball_counts(Ball::FaceCenteredBySquare).len(), 16);
        assert_eq!(systems().len(), 9);
    }

    #[test]
    fn shells_become_balls() {
        let balls = ball_counts(Ball::FaceCenteredBySquare);
        let points: Vec<u64> = balls.iter().take(4).map(|ball| ball.points).collect();
        assert_eq!(points, [1, 13, 19, 43]);
    }

    #[test]
    fn a_row_becomes_points_box_and_count() {
        let find = |id: &str| {
            systems()
                .into_iter()
                .find(|system| system.id == id)
                .unwrap()
        };
        let pair = find("ase_two_atoms");
        assert_eq!(pair.points, [[0.5; 3], [1.0; 3]]);
        assert_eq!(pair.periodic, [Some(10.0); 3]);
        assert_eq!(pair.count, PublishedCount::FullPerPoint(1));
        assert_eq!(
            find("ase_unit_cube_xz").periodic,
            [Some(1.0), None, Some(1.0)]
        );
        let vesin = find("vesin_5pt");
        assert_eq!(
            (vesin.points.len(), vesin.points[1]),
            (5, [-0.273, 1.026, -1.471])
        );
        assert_eq!(vesin.count, PublishedCount::HalfTotal(9));
        assert_eq!(find("vesin_bigcutoff").points, [[0.0; 3]]);
        let crystal = find("vesin_fcc");
        let [_, b, _] = crystal.vectors.unwrap();
        assert_eq!((crystal.points.len(), b), (1, Some([1.5, 0.0, 1.5])));
        assert_eq!(crystal.count, PublishedCount::HalfTotal(6));
        assert!(crystal.radius < 3.0 && crystal.radius > 2.999);
    }
}

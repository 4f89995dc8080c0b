//! The readers: whatever the bytes, they return, and what they return is consistent.
//!
//! Memory and time are watched by libFuzzer itself (`-malloc_limit_mb`, `-rss_limit_mb`,
//! `-timeout`; `scripts/fuzz` sets them).

use std::collections::HashSet;

use crate::message::check_line;
use nearfield_io::{Format, PointCloud, Species, parse_points};

/// Reads `bytes` as a file of `format` and checks what comes out.
///
/// # Panics
/// When the reader breaks a promise.
pub fn read(bytes: &[u8], format: Format) {
    match parse_points(bytes, format) {
        Ok(cloud) => check_cloud(&cloud),
        Err(error) => check_line(&error.to_string()),
    }
}

/// Everything that is said per point is said for every point.
fn check_cloud(cloud: &PointCloud) {
    let points = cloud.len();
    assert_eq!(cloud.positions.len(), points);
    if let Some(exact) = &cloud.positions_f64 {
        assert_eq!(exact.len(), points, "positions in double precision");
        for (single, double) in cloud.positions.iter().zip(exact) {
            (0..3).for_each(|axis| check_rounding(single[axis], double[axis]));
        }
    }
    for data in &cloud.data {
        assert_eq!(data.points(), points, "{}", data.name());
        assert_eq!(data.values().len(), points * data.components());
    }
    if let Some(species) = &cloud.species {
        check_species(species, points);
    }
}

/// The single is the double rounded, or one float beside it: text is rounded once to either, which
/// is not the same as rounding twice.
fn check_rounding(single: f32, double: f64) {
    let rounded = double as f32;
    let close = [rounded, rounded.next_up(), rounded.next_down()].contains(&single);
    assert!(
        close || double.is_nan() && single.is_nan(),
        "{single} for {double}"
    );
}

fn check_species(species: &Species, points: usize) {
    assert_eq!(species.of_point.len(), points, "species");
    let names = species.names.len() as u32;
    assert!(
        species.of_point.iter().all(|&name| name < names),
        "species without a name"
    );
    let mut seen = HashSet::new();
    assert!(
        species.names.iter().all(|name| seen.insert(name)),
        "a name given twice"
    );
}

//! Chooses f64 if rounding to f32 would move points too far, or warns.

use crate::{options::Precision, output::notice};
use nearfield_grid::Value;

/// Part of a length of interest (a radius, a spacing) by which rounding may move a point.
const ALLOWED: f64 = 1e-3;

/// A length that rounding is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Length {
    /// As messages call it.
    pub(crate) name: &'static str,
    pub(crate) value: f64,
}

/// The point that rounding to f32 moves farthest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoundedPoint {
    point: usize,
    by: f64,
}

impl RoundedPoint {
    /// `None` if rounding moves no point by more than [`ALLOWED`] of this length.
    fn too_far(positions: &[[f64; 3]], length: Length) -> Option<Self> {
        let by = |position: &[f64; 3]| {
            let off = position.map(|x| x - f64::from(x as f32));
            // Coordinates that are not finite are refused elsewhere. Those that overflow move
            // infinitely far.
            let square: f64 = off.iter().map(|off| off * off).sum();
            square.sqrt()
        };
        let limit = ALLOWED * length.value;
        let moved = positions.iter().enumerate().map(|(point, position)| Self {
            point,
            by: by(position),
        });
        moved
            .filter(|moved| moved.by > limit)
            .max_by(|a, b| a.by.total_cmp(&b.by))
    }

    fn text(self, length: Length) -> String {
        format!(
            "f32 moves point {} by {:.3e}, more than {ALLOWED} of the {} {}",
            self.point,
            self.by,
            length.name,
            Value::from(length.value)
        )
    }
}

/// The precision to work in: the one asked for, else f32 unless rounding would move points too far,
/// which is reported on standard error. `positions` is `None` if the file has f32.
pub(crate) fn choose(
    asked: Option<Precision>,
    positions: Option<&[[f64; 3]]>,
    length: Length,
) -> Precision {
    let moved = match asked {
        Some(Precision::F64) => None,
        _ => positions.and_then(|positions| RoundedPoint::too_far(positions, length)),
    };
    match (asked, moved) {
        (Some(asked), None) => asked,
        (None, None) => Precision::F32,
        (Some(asked), Some(moved)) => {
            let text = moved.text(length);
            notice(format_args!("warning: {text}: use --precision f64"));
            asked
        }
        (None, Some(moved)) => {
            let text = moved.text(length);
            notice(format_args!(
                "{text}: using f64; --precision f32 rounds anyway"
            ));
            Precision::F64
        }
    }
}

/// Warns if rounding to f32 moves points too far.
pub(crate) fn warn(positions: Option<&[[f64; 3]]>, length: Length) {
    let moved = positions.and_then(|positions| RoundedPoint::too_far(positions, length));
    if let Some(moved) = moved {
        let text = moved.text(length);
        notice(format_args!(
            "warning: {text}: results are for the rounded points"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_that_is_moved_farthest_is_found() {
        let radius = |value| Length {
            name: "radius",
            value,
        };
        let far = [
            [0.1, 0.0, 0.0],
            [1e7 + 0.5, 0.0, 0.25],
            [1e7 + 0.25, 0.0, 0.0],
        ];
        let moved = RoundedPoint::too_far(&far, radius(0.1)).unwrap();
        assert_eq!((moved.point, moved.by), (1, 0.5));
        assert_eq!(RoundedPoint::too_far(&far, radius(501.0)), None);
        assert_eq!(choose(None, Some(&far), radius(0.1)), Precision::F64);
        assert_eq!(choose(None, Some(&far), radius(501.0)), Precision::F32);
        assert_eq!(choose(None, None, radius(0.1)), Precision::F32);
        let asked = Some(Precision::F32);
        assert_eq!(choose(asked, Some(&far), radius(0.1)), Precision::F32);
        // Beyond what f32 holds.
        assert_eq!(
            choose(None, Some(&[[1e300; 3]]), radius(1.0)),
            Precision::F64
        );
    }
}

//! Whether points survive being rounded to f32, and what is done where they do not.

use crate::{options::Precision, output::tell};
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
struct Moved {
    point: usize,
    by: f64,
}

impl Moved {
    /// `None` where rounding changes nothing that matters beside this length.
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

/// The precision to work in: what is asked for, or else f32 where points survive it and f64 where
/// they do not. Standard error says so; `None` for positions that are f32 in the file.
pub(crate) fn choose(
    asked: Option<Precision>,
    positions: Option<&[[f64; 3]]>,
    length: Length,
) -> Precision {
    let moved = match asked {
        Some(Precision::F64) => None,
        _ => positions.and_then(|positions| Moved::too_far(positions, length)),
    };
    match (asked, moved) {
        (Some(asked), None) => asked,
        (None, None) => Precision::F32,
        (Some(asked), Some(moved)) => {
            let text = moved.text(length);
            tell(format_args!("warning: {text}: take --precision f64"));
            asked
        }
        (None, Some(moved)) => {
            let text = moved.text(length);
            tell(format_args!(
                "{text}: f64 is taken; --precision f32 rounds all the same"
            ));
            Precision::F64
        }
    }
}

/// Warns where points are rounded to f32 that do not survive it.
pub(crate) fn warn(positions: Option<&[[f64; 3]]>, length: Length) {
    let moved = positions.and_then(|positions| Moved::too_far(positions, length));
    if let Some(moved) = moved {
        let text = moved.text(length);
        tell(format_args!(
            "warning: {text}: results are those of the rounded points"
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
        let moved = Moved::too_far(&far, radius(0.1)).unwrap();
        assert_eq!((moved.point, moved.by), (1, 0.5));
        assert_eq!(Moved::too_far(&far, radius(501.0)), None);
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

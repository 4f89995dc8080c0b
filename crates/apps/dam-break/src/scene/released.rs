//! The pressure in a column of water at the moment when its dam vanishes.

use std::f64::consts::PI;

/// Terms of the series for the released pressure.
const TERMS: usize = 64;

/// Factor e^(−λz) below which terms no longer change a sum in double precision.
const NEGLIGIBLE: f64 = 1e-18;

/// The pressure head in the column at the moment the dam is gone.
///
/// Incompressible water solves ∇²p = 0 with no pressure at its top and at the
/// face x = a, no flow through the wall x = 0, and ∂p/∂z = −ρg on the floor. By
/// separation of variables
/// `p/(ρg) = Σ 2(−1)ᵏ/(a λₖ²) · sinh λₖ(H − z)/cosh λₖH · cos λₖx`,
/// `λₖ = (k + ½)π/a`. Hydrostatic pressure behind the vanished dam would send
/// a shock through the column instead.
///
/// The exponentials are powers and the cosines follow a recurrence, so a point
/// takes five calls of such functions instead of five per term.
pub(super) struct ReleasedHead {
    /// a, metres.
    width: f64,
    /// H, metres.
    height: f64,
    /// 2(−1)ᵏ/(a λₖ²)/(1 + e^(−2λₖH)).
    factors: [f64; TERMS],
}

impl ReleasedHead {
    /// The pressure of a column `width` wide and `height` high, metres.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let factor = |k: usize| {
            let rate = (k as f64 + 0.5) * PI / width;
            let sign = if k.is_multiple_of(2) { 2.0 } else { -2.0 };
            sign / (width * rate * rate) / (1.0 + (-2.0 * rate * height).exp())
        };
        Self {
            width,
            height,
            factors: std::array::from_fn(factor),
        }
    }

    /// p/(ρg), metres, at distance `x` from the wall and `height` above the floor.
    pub(super) fn at(&self, x: f64, height: f64) -> f64 {
        // sinh λ(H − z)/cosh λH without overflow: these two, over 1 + e^(−2λH).
        let (rising, falling) = (
            -height * PI / self.width,
            (height - 2.0 * self.height) * PI / self.width,
        );
        let (mut from_floor, from_floor_ratio) = ((0.5 * rising).exp(), rising.exp());
        let (mut from_top, from_top_ratio) = ((0.5 * falling).exp(), falling.exp());
        let turn = x * PI / self.width;
        let (mut wave, double_cosine) = ((0.5 * turn).cos(), 2.0 * turn.cos());
        let mut last_wave = wave;
        let mut sum = 0.0;
        for factor in self.factors {
            sum += factor * (from_floor - from_top) * wave;
            from_floor *= from_floor_ratio;
            from_top *= from_top_ratio;
            (wave, last_wave) = (double_cosine * wave - last_wave, wave);
            if from_floor < NEGLIGIBLE {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: f64 = 1.0;
    const HEIGHT: f64 = 2.0;

    fn head(x: f64, height: f64) -> f64 {
        ReleasedHead::new(WIDTH, HEIGHT).at(x, height)
    }

    #[test]
    fn the_released_pressure_vanishes_at_the_free_faces() {
        for k in 0..10 {
            let part = f64::from(k) / 10.0;
            assert!(head(WIDTH, 0.1 + part).abs() < 1e-6);
            assert!(head(part * WIDTH, HEIGHT).abs() < 1e-6);
        }
    }

    #[test]
    fn the_released_pressure_is_the_series_term_by_term() {
        for (x, height) in [
            (0.0, 0.003),
            (0.3, 0.01),
            (0.77, 0.4),
            (0.999, 1.9),
            (0.5, 0.0),
        ] {
            let terms = (0..TERMS).map(|k| {
                let rate = (k as f64 + 0.5) * PI / WIDTH;
                let sign = if k % 2 == 0 { 2.0 } else { -2.0 };
                let decay = ((-rate * height).exp() - (-rate * (2.0 * HEIGHT - height)).exp())
                    / (1.0 + (-2.0 * rate * HEIGHT).exp());
                sign / (WIDTH * rate * rate) * decay * (rate * x).cos()
            });
            let (series, head) = (terms.sum::<f64>(), head(x, height));
            assert!(
                (series - head).abs() < 1e-12,
                "{series} and {head} at {x}, {height}"
            );
        }
    }

    #[test]
    fn the_released_pressure_carries_the_water_above_the_floor() {
        let step = 1e-3;
        for x in [0.1, 0.4, 0.7] {
            let slope = (head(x, 0.05 + step) - head(x, 0.05 - step)) / (2.0 * step);
            let laplacian = (head(x + step, 0.5)
                + head(x - step, 0.5)
                + head(x, 0.5 + step)
                + head(x, 0.5 - step)
                - 4.0 * head(x, 0.5))
                / (step * step);
            assert!((-1.0..-0.8).contains(&slope), "slope at {x}: {slope}");
            assert!(laplacian.abs() < 1e-4, "Laplacian at {x}: {laplacian}");
            assert!(head(x, 0.0) < HEIGHT);
        }
    }
}

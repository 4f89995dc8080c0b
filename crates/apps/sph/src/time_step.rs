//! The length of the next step.

use crate::Config;

/// Share of √(h/|a|) a step may last.
const FORCE_NUMBER: f64 = 0.25;

/// Share of h²/ν a step may last.
const VISCOUS_NUMBER: f64 = 0.125;

/// The longest stable step, seconds: the least of the acoustic limit
/// `Courant·h/(c₀ + v)`, the force limit `0.25·√(h/a)` and the viscous limit
/// `0.125·h²/ν` with the larger viscosity ν of fluid and rough walls, for the
/// fastest speed v (m/s) and the largest acceleration a (m/s²) of the fluid.
///
/// J. P. Morris, P. J. Fox & Y. Zhu 1997, DOI 10.1006/jcph.1997.5776.
pub(crate) fn stable_step(config: &Config, speed: f64, acceleration: f64) -> f64 {
    let h = f64::from(config.smoothing_length());
    let sound = f64::from(config.sound_speed);
    let acoustic = config.courant * h / (sound + speed);
    let force = FORCE_NUMBER * (h / acceleration).sqrt();
    let viscosity = config.kinematic_viscosity(config.viscosity.max(config.wall_friction));
    let viscous = VISCOUS_NUMBER * h * h / viscosity;
    acoustic.min(force).min(viscous)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dimensions;

    fn config() -> Config {
        Config::water(Dimensions::Three, 0.1, 1.0)
    }

    #[test]
    fn water_at_rest_is_limited_by_sound() {
        let config = config();
        let h = f64::from(config.smoothing_length());
        let expected = config.courant * h / f64::from(config.sound_speed);
        assert_eq!(stable_step(&config, 0.0, 0.0), expected);
    }

    #[test]
    fn speed_acceleration_and_viscosity_shorten_the_step() {
        let rest = stable_step(&config(), 0.0, 9.81);
        assert!(stable_step(&config(), 10.0, 9.81) < rest);
        assert!(stable_step(&config(), 0.0, 1e6) < rest);
        let honey = Config {
            viscosity: 100.0,
            ..config()
        };
        assert!(stable_step(&honey, 0.0, 9.81) < rest);
    }
}

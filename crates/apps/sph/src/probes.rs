//! Probes: the pressure at points, and the volume of the fluid in columns.
//!
//! A pressure is interpolated from the fluid within the support of the smoothing kernel,
//! `p = Σ Vⱼ W (pⱼ + ρⱼ g·(x − xⱼ)) / max(Σ Vⱼ W, ¼)`: Shepard's normalisation (D. Shepard 1968,
//! DOI 10.1145/800186.810616), with the weight of the fluid between particle and probe (S. Adami,
//! X. Y. Hu & N. A. Adams 2012, eq. 27, DOI 10.1016/j.jcp.2012.05.005), so that a probe on a wall
//! reads the pressure at the wall although all fluid is on one side of it. Σ Vⱼ W is one half at a
//! wet wall; below a quarter the rest counts as air, whose pressure is zero.
//!
//! The volume in a column is that of all particles, weighted by a hat function along x and, in
//! space, another along y: fluid at any height counts, whether or not there is air between.
//!
//! A reading goes through all particles once, where they are: on a GPU two numbers a probe come to
//! the host, and no particle does.

use glam::{DVec2, DVec3};
use nearfield_grid::memory::collected;

use crate::{
    Config, Dimensions, Error, ErrorKind, neighborhood::Accumulator, particles::Particles,
};

/// Share of the kernel that must be filled for a pressure to count in full.
const WET: f64 = 0.25;

/// Places at which a fluid is measured; see [`Simulation::probe`](crate::Simulation::probe).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Where the pressure is interpolated, metres.
    pub points: Vec<DVec3>,
    /// Columns in which the volume of the fluid is measured.
    pub columns: Vec<ProbeColumn>,
}

/// An upright column in which the volume of a fluid is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeColumn {
    /// Its middle along x and y, metres; in the plane y is without meaning.
    pub middle: DVec2,
    /// Distance along x, and in space along y, from the middle to where the hat function that
    /// weights the fluid is zero, metres. A whole number of spacings: hats of that width add up to
    /// the same on every site of a lattice.
    pub reach: f64,
}

/// Readings of [`Probes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// Pressure at every point, Pa; never negative.
    pub pressures: Vec<f64>,
    /// Weighted volume of the fluid in every column, m³ (in the plane: m²).
    pub volumes: Vec<f64>,
}

/// Sums of a probe over the fluid: of a point Σ W/(1 + sⱼ), and the same times the specific
/// pressure that each particle stands for there; of a column Σ of the weights, and 0.
pub(crate) type ProbeSums = [f64; 2];

impl Probes {
    /// Number of probes.
    pub(crate) fn len(&self) -> usize {
        self.points.len() + self.columns.len()
    }

    /// Refuses places that are not finite, and columns without width.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |name, value, wanted| {
            Err(ErrorKind::Setting {
                name,
                value,
                wanted,
            }
            .into())
        };
        let places = self.points.iter().flat_map(|point| point.to_array());
        let middles = self.columns.iter().flat_map(|one| one.middle.to_array());
        if let Some(value) = places.chain(middles).find(|value| !value.is_finite()) {
            return refused("a coordinate of a probe", value, "finite");
        }
        let mut reaches = self.columns.iter().map(|column| column.reach);
        match reaches.find(|reach| !(reach.is_finite() && *reach > 0.0)) {
            Some(reach) => refused("the reach of a column", reach, "finite and positive"),
            None => Ok(()),
        }
    }

    /// The sums over particles in the host's memory, those of points first. On ranks they are
    /// added up afterwards, probe by probe.
    pub(crate) fn sums<S: Accumulator>(
        &self,
        config: &Config,
        fluid: &Particles,
    ) -> Result<Vec<[S; 2]>, Error> {
        let blank = (0..self.len()).map(|_| [S::default(), S::default()]);
        let mut sums = collected(blank, "sums of probes")?;
        let (points, columns) = sums.split_at_mut(self.points.len());
        self.add_pressures(config, fluid, points);
        let space = config.dimensions == Dimensions::Three;
        for (column, sum) in self.columns.iter().zip(columns) {
            for position in &fluid.position {
                let off = position.truncate().as_dvec2() - column.middle;
                let along = hat(off.x, column.reach);
                if along > 0.0 {
                    let across = if space { hat(off.y, column.reach) } else { 1.0 };
                    sum[0].add(along * across);
                }
            }
        }
        Ok(sums)
    }

    fn add_pressures<S: Accumulator>(
        &self,
        config: &Config,
        fluid: &Particles,
        sums: &mut [[S; 2]],
    ) {
        let (kernel, water) = (config.kernel(), config.water_state());
        let (gravity, reach) = (config.gravity.as_dvec3(), f64::from(kernel.support()));
        // Most particles are near no probe: one box around all of them leaves these out.
        let boxes = self.points.iter().map(|&at| (at - reach, at + reach));
        let around = boxes.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let Some((low, high)) = around else {
            return;
        };
        for (position, &compression) in fluid.position.iter().zip(&fluid.compression) {
            let place = position.as_dvec3();
            if !(place.cmpge(low).all() && place.cmple(high).all()) {
                continue;
            }
            for (&at, sum) in self.points.iter().zip(&mut *sums) {
                let off = at - place;
                let d2 = off.length_squared();
                if d2 > reach * reach {
                    continue;
                }
                let stretch = 1.0 + f64::from(compression);
                let weight = f64::from(kernel.value(d2 as f32)) / stretch;
                let pressure = f64::from(water.specific_pressure(compression));
                sum[0].add(weight);
                sum[1].add(weight * (pressure + stretch * gravity.dot(off)));
            }
        }
    }

    /// The readings that follow from sums over the fluid.
    pub(crate) fn readings(&self, config: &Config, sums: &[ProbeSums]) -> Readings {
        let (volume, density) = (
            f64::from(config.particle_volume()),
            f64::from(config.density),
        );
        let (points, columns) = sums.split_at(self.points.len());
        let pressure = |[weight, sum]: &ProbeSums| {
            let filled = (volume * weight).max(WET);
            (density * volume * sum / filled).max(0.0)
        };
        Readings {
            pressures: points.iter().map(pressure).collect(),
            volumes: columns.iter().map(|[sum, _]| volume * sum).collect(),
        }
    }
}

/// 1 at zero, 0 from `reach` on.
fn hat(off: f64, reach: f64) -> f64 {
    (1.0 - off.abs() / reach).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene;
    use glam::Vec3;

    fn probe(config: &Config, probes: &Probes, fluid: &Particles) -> Readings {
        probes.readings(config, &probes.sums::<f64>(config, fluid).unwrap())
    }

    /// Water in a box of cells, with the compression that `pressure` asks for at every place, Pa.
    fn water(config: &Config, high: [i32; 3], pressure: impl Fn(&Vec3) -> f32) -> Particles {
        let position = scene::block(config.dimensions, [0; 3], high, config.spacing).unwrap();
        let state = config.water_state();
        let compressed = position.iter().map(&pressure);
        Particles {
            compression: compressed
                .map(|p| state.compression(p / config.density))
                .collect(),
            velocity: vec![Vec3::ZERO; position.len()],
            id: (0..position.len() as u64).collect(),
            position,
        }
    }

    #[test]
    fn a_lattice_under_its_own_weight_is_read_exactly() {
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            let config = Config::water(dimensions, 0.1, 1.0);
            let up = dimensions.up();
            let fluid = water(&config, [30, 10, 10], |x| 9810.0 * (1.0 - x.dot(up)));
            let mut floor = DVec3::new(1.52, 0.43, 0.0);
            floor[dimensions.count() as usize - 1] = 0.0;
            let probes = Probes {
                points: vec![floor, floor + 4.0 * up.as_dvec3()],
                columns: vec![ProbeColumn {
                    middle: DVec2::new(1.52, 0.43),
                    reach: 0.2,
                }],
            };
            let found = probe(&config, &probes, &fluid);
            let pressures = &found.pressures;
            assert!((pressures[0] / 9810.0 - 1.0).abs() < 5e-3, "{found:?}");
            assert_eq!(pressures[1], 0.0);
            // One metre of water over the area of the hat.
            let area = 0.2_f64.powi(dimensions.count() as i32 - 1);
            assert!((found.volumes[0] / area - 1.0).abs() < 1e-4, "{found:?}");
        }
    }

    #[test]
    fn probes_without_place_or_width_are_refused_by_name() {
        let point = |x| Probes {
            points: vec![DVec3::splat(x)],
            columns: Vec::new(),
        };
        let column = |middle, reach| Probes {
            points: Vec::new(),
            columns: vec![ProbeColumn {
                middle: DVec2::splat(middle),
                reach,
            }],
        };
        assert!(Probes::default().check().is_ok() && column(1.0, 0.1).check().is_ok());
        for (probes, said) in [
            (point(f64::NAN), "a coordinate of a probe is NaN"),
            (column(f64::INFINITY, 0.1), "a coordinate of a probe is inf"),
            (column(0.0, 0.0), "the reach of a column is 0"),
            (column(0.0, -1.0), "the reach of a column is -1"),
            (column(0.0, f64::NAN), "the reach of a column is NaN"),
        ] {
            let refused = probes.check().unwrap_err().to_string();
            assert!(refused.starts_with(said), "{refused}");
        }
    }

    #[test]
    fn no_probe_and_probes_far_from_any_fluid_read_nothing() {
        let config = Config::water(Dimensions::Three, 0.1, 1.0);
        let fluid = water(&config, [3, 3, 3], |_| 100.0);
        assert_eq!(
            probe(&config, &Probes::default(), &fluid),
            Readings::default()
        );
        let far = Probes {
            points: vec![DVec3::splat(1e30)],
            columns: vec![ProbeColumn {
                middle: DVec2::splat(-1e30),
                reach: 1e-30,
            }],
        };
        let found = probe(&config, &far, &fluid);
        assert_eq!((found.pressures, found.volumes), (vec![0.0], vec![0.0]));
    }
}

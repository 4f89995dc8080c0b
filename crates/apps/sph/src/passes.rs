//! What two particles do to each other: the pair kernels the engine evaluates.
//!
//! A pair hands over `d = xⱼ − xᵢ`; the target i has a velocity and a
//! compression s, the source j as well (a wall particle rests, and its pressure
//! comes from [`Extrapolation`]). Forces take the relative volume
//! ρ₀/ρ = 1/(1 + s) and the pressure in place of s, which change once a step: a
//! pair would spend a sixth of its operations on them. A GPU loads five numbers
//! of a source and its position with two reads. All kernels are free of
//! branches, so the engine can vectorise them. On a GPU they take the fast
//! roots, quotients and fused products of [`nearfield::kernels`], off by a unit
//! or two in the last place.
//!
//! Density and momentum use the conjugate pair
//! `dρᵢ/dt = ρᵢ Σ Vⱼ (vᵢ − vⱼ)·∇W` and `aᵢ = −Σ m (pᵢ + pⱼ)/(ρᵢρⱼ) ∇W`: the
//! work of the one is exactly the internal energy gained by the other, and
//! forces between two fluid particles cancel.

use glam::Vec3;
use nearfield::{
    kernels::{fast_div, fast_mul_add},
    pair_fn, pair_kernel,
    prelude::{Pair, PairKernel},
};

use crate::{Config, Dimensions, Tait, Wendland};

/// a·b; on a GPU the products of y and z are rounded with their sums.
#[pair_fn]
#[inline(always)]
fn dot(a: Vec3, b: Vec3) -> f32 {
    fast_mul_add(a.z, b.z, fast_mul_add(a.y, b.y, a.x * b.x))
}

/// scale·b + a; on a GPU products are rounded with their sums.
#[pair_fn]
#[inline(always)]
fn add_scaled(a: Vec3, scale: f32, b: Vec3) -> Vec3 {
    Vec3::new(
        fast_mul_add(scale, b.x, a.x),
        fast_mul_add(scale, b.y, a.y),
        fast_mul_add(scale, b.z, a.z),
    )
}

/// Distance from a wall particle, in spacings, below which the contact
/// pressure begins. Fluid at rest stays a whole spacing away. The widest way
/// between wall particles passes them at 0.5 in the plane and at 0.71 in space.
fn contact_distance(dimensions: Dimensions) -> f32 {
    match dimensions {
        Dimensions::Two => 0.75,
        Dimensions::Three => 0.85,
    }
}

/// Contact pressure over ρ₀c₀²; enough to turn a particle of a tenth of the
/// sound speed.
const CONTACT_PRESSURE: f32 = 0.3;

/// The pair kernels of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Passes<'a> {
    config: &'a Config,
    kernel: Wendland,
    /// Volume of a particle at rest over the moment of its lattice: sums over a lattice then give
    /// gradients and divergences of linear fields exactly.
    volume: f32,
}

/// The kernels that give rates of compression.
pub(crate) struct Rates {
    pub(crate) fluid: Continuity,
    pub(crate) walls: WallContinuity,
}

impl<'a> Passes<'a> {
    pub(crate) fn of(config: &'a Config) -> Self {
        Self {
            config,
            kernel: config.kernel(),
            volume: config.particle_volume() / config.lattice_moment(),
        }
    }

    /// Those for a drift over `dt` seconds just made.
    pub(crate) fn rates(self, dt: f64) -> Rates {
        let Self {
            config,
            kernel,
            volume,
        } = self;
        let (half_dt, sound) = (0.5 * dt as f32, config.sound_speed);
        Rates {
            fluid: Continuity {
                kernel,
                volume,
                half_dt,
                diffusion: 2.0 * config.diffusion * config.smoothing_length() * sound,
                hydrostatic: config.gravity / (sound * sound),
            },
            walls: WallContinuity {
                kernel,
                volume,
                half_dt,
            },
        }
    }

    pub(crate) fn extrapolation(self) -> Extrapolation {
        Extrapolation {
            kernel: self.kernel,
            water: self.config.water_state(),
            gravity: self.config.gravity,
        }
    }

    pub(crate) fn forces(self) -> Forces {
        let h = self.config.smoothing_length();
        Forces {
            kernel: self.kernel,
            volume: self.volume,
            half_viscosity: 0.5 * (self.config.viscosity * self.config.sound_speed * h),
            softening: 0.01 * h * h,
        }
    }

    pub(crate) fn wall_forces(self) -> WallForces {
        let (config, sound) = (self.config, self.config.sound_speed);
        WallForces {
            kernel: self.kernel,
            volume: self.volume,
            friction: 2.0 * config.kinematic_viscosity(config.wall_friction) as f32,
            contact: (contact_distance(config.dimensions) * config.spacing).powi(-2),
            contact_pressure: CONTACT_PRESSURE * sound * sound,
        }
    }
}

/// Velocity and compression: what a fluid particle is to its neighbours.
pub(crate) type Moving = (Vec3, f32);

/// Rate of compression between fluid particles.
///
/// Output: (divergence sum, diffusion sum); ds/dt is
/// `(1 + sᵢ)·first + second`.
///
/// The gradient is taken at the middle of the drift, `d − ½Δt (vⱼ − vᵢ)`:
/// kick, drift and compression then form a reversible second-order step, and
/// a rigidly rotating fluid keeps its density.
///
/// The diffusion is that of D. Molteni & A. Colagrossi 2009
/// (DOI 10.1016/j.cpc.2008.12.004), acting on the difference from the
/// hydrostatic gradient as G. Fourtakas et al. 2019
/// (DOI 10.1016/j.compfluid.2019.06.009), so water at rest is left alone.
pub(crate) struct Continuity {
    pub(crate) kernel: Wendland,
    /// Volume of a particle at rest density.
    pub(crate) volume: f32,
    /// Half the time step of the drift just made.
    pub(crate) half_dt: f32,
    /// 2 δ h c₀.
    pub(crate) diffusion: f32,
    /// Gradient of s in hydrostatic balance, g/c₀².
    pub(crate) hydrostatic: Vec3,
}

#[pair_kernel]
impl PairKernel for Continuity {
    type Target = Moving;
    type Source = Moving;
    type Output = (f32, f32);

    #[inline(always)]
    fn pair(&self, pair: Pair, target: Moving, source: Moving) -> (f32, f32) {
        let relative = source.0 - target.0;
        let middle = add_scaled(Vec3::from_array(pair.d), -self.half_dt, relative);
        let volume = fast_div(self.volume, 1.0 + source.1);
        let weight = volume * self.kernel.gradient_factor(dot(middle, middle));
        let excess = source.1 - target.1 - dot(self.hydrostatic, middle);
        (
            weight * dot(relative, middle),
            -self.diffusion * weight * excess,
        )
    }

    /// That of the smoothing kernel, although it is taken at the middle of the drift: which pairs
    /// count is decided by where the particles are after it.
    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        (one, _): (Moving, Moving),
        (other, _): (Moving, Moving),
    ) -> ((f32, f32), (f32, f32)) {
        let relative = other.0 - one.0;
        let middle = add_scaled(Vec3::from_array(pair.d), -self.half_dt, relative);
        let weight = self.volume * self.kernel.gradient_factor(dot(middle, middle));
        let divergence = weight * dot(relative, middle);
        let excess = other.1 - one.1 - dot(self.hydrostatic, middle);
        let diffusion = self.diffusion * weight * excess;
        // Each is weighted by the volume of the other.
        let (by_other, by_one) = (1.0 / (1.0 + other.1), 1.0 / (1.0 + one.1));
        (
            (by_other * divergence, -by_other * diffusion),
            (by_one * divergence, by_one * diffusion),
        )
    }
}

/// Rate of compression of a fluid particle by resting walls: the divergence
/// sum of [`Continuity`]. Of a wall it takes the relative volume.
pub(crate) struct WallContinuity {
    pub(crate) kernel: Wendland,
    pub(crate) volume: f32,
    pub(crate) half_dt: f32,
}

#[pair_kernel]
impl PairKernel for WallContinuity {
    type Target = Vec3;
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, velocity: Vec3, relative_volume: f32) -> f32 {
        let middle = add_scaled(Vec3::from_array(pair.d), self.half_dt, velocity);
        let volume = self.volume * relative_volume;
        let weight = volume * self.kernel.gradient_factor(dot(middle, middle));
        -weight * dot(velocity, middle)
    }

    /// That of the smoothing kernel, although it is taken at the middle of the drift: which pairs
    /// count is decided by where the particles are after it.
    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }
}

/// Pressure of the fluid carried over to a resting wall particle.
///
/// Output: (Σ W, Σ (p + ρ g·(x_wall − x_fluid))/ρ₀ W); their quotient is the
/// wall's specific pressure. S. Adami, X. Y. Hu & N. A. Adams 2012, eq. 27,
/// DOI 10.1016/j.jcp.2012.05.005.
pub(crate) struct Extrapolation {
    pub(crate) kernel: Wendland,
    pub(crate) water: Tait,
    pub(crate) gravity: Vec3,
}

#[pair_kernel]
impl PairKernel for Extrapolation {
    type Target = ();
    type Source = f32;
    type Output = (f32, f32);

    #[inline(always)]
    fn pair(&self, pair: Pair, (): (), fluid: f32) -> (f32, f32) {
        let weight = self.kernel.value(pair.d2);
        let head = dot(self.gravity, Vec3::from_array(pair.d));
        let pressure = fast_mul_add(-(1.0 + fluid), head, self.water.specific_pressure(fluid));
        (weight, weight * pressure)
    }

    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }
}

/// Velocity, relative volume ρ₀/ρ and specific pressure p/ρ₀ of a fluid particle, for forces.
pub(crate) type Pressed = (Vec3, f32, f32);

/// Pressure and artificial viscosity between fluid particles.
///
/// Output: (acceleration, viscous heating in W/kg). The viscosity acts on
/// approaching pairs (J. J. Monaghan 1992,
/// DOI 10.1146/annurev.aa.30.090192.002551), with the mean of their volumes in place of one over
/// their mean density; the heating is what the motion loses to it, half a pair to each side.
pub(crate) struct Forces {
    pub(crate) kernel: Wendland,
    pub(crate) volume: f32,
    /// ½ α c₀ h.
    pub(crate) half_viscosity: f32,
    /// 0.01 h², keeps the viscosity of close pairs finite.
    pub(crate) softening: f32,
}

#[pair_kernel]
impl PairKernel for Forces {
    type Target = Pressed;
    type Source = Pressed;
    type Output = (Vec3, f32);

    #[inline(always)]
    fn pair(&self, pair: Pair, target: Pressed, source: Pressed) -> (Vec3, f32) {
        let d = Vec3::from_array(pair.d);
        let weight = self.volume * self.kernel.gradient_factor(pair.d2);
        let approach = dot(source.0 - target.0, d).min(0.0);
        let viscosity = self.half_viscosity * (target.1 + source.1);
        let friction = fast_div(weight * viscosity * approach, pair.d2 + self.softening);
        let push = weight * (target.2 + source.2) * (target.1 * source.1);
        ((push - friction) * d, -0.5 * friction * approach)
    }

    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        (one, _): (Pressed, Pressed),
        (other, _): (Pressed, Pressed),
    ) -> ((Vec3, f32), (Vec3, f32)) {
        let (force, heat) = self.pair(pair, one, other);
        ((force, heat), (-force, heat))
    }
}

/// Relative volume, specific pressure and roughness: what a wall particle is to the fluid.
pub(crate) type Still = (f32, f32, f32);

/// Pressure and friction of walls on a fluid particle.
///
/// Output: (acceleration, heating by friction in W/kg). A wall particle of
/// roughness 0 lets the fluid slip freely; one of roughness 1 holds it as
/// resting viscous fluid would (J. P. Morris, P. J. Fox & Y. Zhu 1997,
/// DOI 10.1006/jcph.1997.5776). That friction opposes the velocity itself,
/// so it never pulls a particle into the wall.
///
/// Where the fluid is stretched and has no pressure, nothing would keep a
/// particle from sinking between the wall particles. Closer to one than
/// `contact`, which undisturbed fluid never comes, it meets an extra pressure
/// (repelling walls: J. J. Monaghan & J. B. Kajtar 2009,
/// DOI 10.1016/j.cpc.2009.05.008).
pub(crate) struct WallForces {
    pub(crate) kernel: Wendland,
    pub(crate) volume: f32,
    /// Twice the kinematic viscosity that rough walls stand for.
    pub(crate) friction: f32,
    /// Inverse square of the distance where the extra pressure begins.
    pub(crate) contact: f32,
    /// The extra specific pressure at distance zero.
    pub(crate) contact_pressure: f32,
}

#[pair_kernel]
impl PairKernel for WallForces {
    type Target = Pressed;
    type Source = Still;
    type Output = (Vec3, f32);

    #[inline(always)]
    fn pair(
        &self,
        pair: Pair,
        fluid: Pressed,
        (volume, pressure, roughness): Still,
    ) -> (Vec3, f32) {
        let d = Vec3::from_array(pair.d);
        let weight = self.volume * self.kernel.gradient_factor(pair.d2);
        let nearness = fast_mul_add(pair.d2, -self.contact, 1.0).max(0.0);
        let contact = self.contact_pressure * nearness;
        let push = weight * (fluid.2 + pressure + contact) * (fluid.1 * volume);
        let friction = roughness * weight * self.friction;
        (
            add_scaled(push * d, friction, fluid.0),
            -friction * dot(fluid.0, fluid.0),
        )
    }

    fn support(&self) -> Option<f32> {
        Some(self.kernel.support())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_gpu::{Arch, Compiler, PairProgram, Search};
    use nearfield_testkit::kernels::Conformance;

    const VOLUME: f32 = 1e-3;

    fn kernel() -> Wendland {
        Wendland::new(Dimensions::Three, 0.125)
    }

    fn water() -> Tait {
        Tait::new(1000.0, 40.0)
    }

    fn pair(d: Vec3) -> Pair {
        Pair {
            d: d.to_array(),
            d2: d.length_squared(),
        }
    }

    fn pressed(velocity: Vec3, s: f32) -> Pressed {
        (velocity, 1.0 / (1.0 + s), water().specific_pressure(s))
    }

    fn continuity(half_dt: f32) -> Continuity {
        let hydrostatic = Vec3::new(0.0, 0.0, -9.81 / 1600.0);
        Continuity {
            kernel: kernel(),
            volume: VOLUME,
            half_dt,
            diffusion: 1.0,
            hydrostatic,
        }
    }

    fn forces() -> Forces {
        Forces {
            kernel: kernel(),
            volume: VOLUME,
            half_viscosity: 0.125,
            softening: 1e-4,
        }
    }

    #[test]
    fn all_kernels_state_the_support_of_the_smoothing_kernel() {
        let config = Config::water(Dimensions::Three, 0.05, 1.0);
        let passes = Passes::of(&config);
        let rates = passes.rates(1e-3);
        let stated = [
            rates.fluid.support(),
            rates.walls.support(),
            passes.extrapolation().support(),
            passes.forces().support(),
            passes.wall_forces().support(),
        ];
        assert_eq!(stated, [Some(config.kernel().support()); 5]);
    }

    /// Stretched water has no pressure of its own: only the contact keeps it out.
    #[test]
    fn a_tenth_of_the_sound_speed_does_not_carry_water_between_wall_particles() {
        for (dimensions, gap) in [
            (Dimensions::Two, &[Vec3::X, Vec3::NEG_X][..]),
            (
                Dimensions::Three,
                &[
                    Vec3::new(1.0, 1.0, 0.0),
                    Vec3::new(1.0, -1.0, 0.0),
                    Vec3::new(-1.0, 1.0, 0.0),
                    Vec3::new(-1.0, -1.0, 0.0),
                ],
            ),
        ] {
            let config = Config::water(dimensions, 0.05, 1.0);
            let (wall, up) = (Passes::of(&config).wall_forces(), dimensions.up());
            let force = |height: f32| -> f32 {
                let to = |corner: &Vec3| 0.5 * config.spacing * *corner - height * up;
                let of = |corner| {
                    let fluid = pressed(Vec3::ZERO, -0.05);
                    wall.pair(pair(to(corner)), fluid, (1.0, 0.0, 0.0)).0
                };
                gap.iter().map(of).sum::<Vec3>().dot(up)
            };
            let step = config.spacing / 1000.0;
            let barrier: f32 = (0..1000)
                .map(|i| step * force((i as f32 + 0.5) * step))
                .sum();
            let speed = (2.0 * barrier).sqrt() / config.sound_speed;
            assert!(speed > 0.098, "{dimensions:?}: {speed} of the sound speed");
        }
    }

    #[test]
    fn approaching_water_is_compressed() {
        let d = Vec3::new(0.1, 0.0, 0.0);
        let (rate, _) = continuity(0.0).pair(pair(d), (Vec3::X, 0.0), (Vec3::ZERO, 0.0));
        assert!(rate > 0.0);
        let (rate, _) = continuity(0.0).pair(pair(d), (-Vec3::X, 0.0), (Vec3::ZERO, 0.0));
        assert!(rate < 0.0);
    }

    #[test]
    fn turning_about_each_other_compresses_nothing() {
        // At the end of the drift; in its middle the motion is square to the pair.
        let (half_dt, relative) = (2e-3, Vec3::new(0.0, 3.0, 0.0));
        let d = Vec3::new(0.1, 0.0, 0.0) + half_dt * relative;
        let source = (relative, 0.0);
        let (rate, _) = continuity(half_dt).pair(pair(d), (Vec3::ZERO, 0.0), source);
        assert!(rate.abs() < 1e-7, "{rate}");
        let (unmatched, _) = continuity(0.0).pair(pair(d), (Vec3::ZERO, 0.0), source);
        assert!(unmatched < -1e-3, "{unmatched}");
    }

    #[test]
    fn hydrostatic_water_does_not_diffuse() {
        let d = Vec3::new(0.03, 0.0, -0.1);
        let (low, high) = ((Vec3::ZERO, 9.81 / 1600.0 * 0.1), (Vec3::ZERO, 0.0));
        let (_, diffusion) = continuity(0.0).pair(pair(d), high, low);
        assert!(diffusion.abs() < 1e-7, "{diffusion}");
    }

    #[test]
    fn both_sides_of_a_pair_are_what_each_is_alone() {
        let d = pair(Vec3::new(0.05, -0.08, 0.02));
        let one = (Vec3::new(1.0, 0.5, 0.0), 0.01);
        let two = (Vec3::new(-1.0, 2.0, 0.3), 0.002);
        let close = |a: f32, b: f32| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());

        let kernel = continuity(2e-3);
        let (here, there) = kernel.symmetric(d, (one, one), (two, two));
        let expected = (
            kernel.pair(d, one, two),
            kernel.pair(d.reversed(), two, one),
        );
        assert!(close(here.0, expected.0.0) && close(here.1, expected.0.1));
        assert!(close(there.0, expected.1.0) && close(there.1, expected.1.1));

        let kernel = forces();
        let (one, two) = (pressed(one.0, one.1), pressed(two.0, two.1));
        let (here, there) = kernel.symmetric(d, (one, one), (two, two));
        let expected = (
            kernel.pair(d, one, two),
            kernel.pair(d.reversed(), two, one),
        );
        assert!(close(here.0.x, expected.0.0.x) && close(here.1, expected.0.1));
        assert!(close(there.0.x, expected.1.0.x) && close(there.1, expected.1.1));
    }

    #[test]
    fn forces_between_two_particles_cancel_in_momentum() {
        let d = Vec3::new(0.05, -0.08, 0.02);
        let one = pressed(Vec3::new(1.0, 0.5, 0.0), 0.01);
        let two = pressed(Vec3::new(-1.0, 2.0, 0.3), 0.002);
        let (there, heat) = forces().pair(pair(d), one, two);
        let (back, heat_back) = forces().pair(pair(-d), two, one);
        assert!((there + back).length() < 1e-5 * there.length());
        assert!(heat > 0.0 && (heat - heat_back).abs() < 1e-5 * heat);
    }

    #[test]
    fn viscous_heat_is_what_the_motion_loses() {
        let d = Vec3::new(0.05, -0.08, 0.02);
        let (one, two) = (
            pressed(Vec3::new(1.0, 0.5, 0.0), 0.0),
            pressed(Vec3::new(-1.0, 2.0, 0.3), 0.0),
        );
        let (there, heat) = forces().pair(pair(d), one, two);
        let (back, heat_back) = forces().pair(pair(-d), two, one);
        let power = one.0.dot(there) + two.0.dot(back);
        assert!(
            (power + heat + heat_back).abs() < 1e-5 * heat,
            "{power} {heat}"
        );
    }

    #[test]
    fn smooth_walls_push_square_and_rough_walls_brake() {
        let walls = WallForces {
            kernel: kernel(),
            volume: VOLUME,
            friction: 0.05,
            contact: 0.0,
            contact_pressure: 0.0,
        };
        let below = pair(Vec3::new(0.0, 0.0, -0.1));
        let moving = pressed(Vec3::X, 0.01);
        let (smooth, heat) = walls.pair(below, moving, (moving.1, moving.2, 0.0));
        assert!(smooth.x == 0.0 && smooth.z > 0.0 && heat == 0.0);
        let (rough, heat) = walls.pair(below, moving, (moving.1, moving.2, 1.0));
        assert!(rough.x < 0.0 && rough.z == smooth.z);
        assert!((heat + rough.x).abs() < 1e-6, "{heat} {rough}");
    }

    #[test]
    fn a_wall_below_water_has_the_pressure_of_its_depth() {
        let gravity = Vec3::new(0.0, 0.0, -9.81);
        let kernel = Extrapolation {
            kernel: kernel(),
            water: water(),
            gravity,
        };
        let fluid = water().compression(9.81);
        let (weight, sum) = kernel.pair(pair(Vec3::new(0.02, 0.0, 0.1)), (), fluid);
        let deeper = 9.81 * (1.0 + 0.1 * (1.0 + fluid));
        assert!((sum / weight - deeper).abs() < 1e-3, "{}", sum / weight);
    }

    /// Compares a kernel with its text compiled as C++, and compiles the text for a GPU where the
    /// compiler is there (`NEARFIELD_REQUIRE_NVRTC=1`: it must be).
    fn compile<K: PairKernel>(kernel: &K) {
        Conformance::new(kernel).as_cpp().unwrap();
        let (program, uniforms) = PairProgram::of(kernel).unwrap();
        assert!(uniforms.iter().all(|value| value.is_finite()));
        let required = std::env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
        match Compiler::find(&Search::from_env(), None) {
            Ok(compiler) => drop(compiler.compile(&program.program(), Arch::new(90)).unwrap()),
            Err(error) => assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}"),
        }
    }

    #[test]
    fn the_texts_for_the_gpu_give_the_same_bits_and_compile() {
        compile(&continuity(1e-3));
        compile(&forces());
        compile(&WallContinuity {
            kernel: kernel(),
            volume: VOLUME,
            half_dt: 1e-3,
        });
        compile(&Extrapolation {
            kernel: kernel(),
            water: water(),
            gravity: Vec3::new(0.0, 0.0, -9.81),
        });
        compile(&WallForces {
            kernel: kernel(),
            volume: VOLUME,
            friction: 0.05,
            contact: 1.0,
            contact_pressure: 1.0,
        });
    }
}

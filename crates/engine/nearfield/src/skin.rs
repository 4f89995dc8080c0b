//! How far points may move before lists with a skin miss a pair, on the host and on a GPU.
//!
//! Let δ be the displacements of two points since the build, u = 2⁻²⁴ (2⁻⁵³ in double precision),
//! and E the extent of all coordinates, then and now, along the periodic axes. A pair that the
//! contract finds within r now has a true distance of at most r + u·(4E + 7R): the difference, the
//! image vector and their sum are each rounded once per axis, the square three times and r² once.
//! So its true distance at the build was at most that plus δ_i + δ_j, and the contract, which errs
//! as much once more, found it within R if r + δ_i + δ_j + u·(8E + 14R) ≤ R. The margin taken is
//! 32u·(E + R).
//!
//! In double precision the displacements are rounded by as much as the contract is, and the image
//! vectors of a tilted box are sums of terms. Each may be 2¹⁰ times as long as the box is wide, so
//! that 2⁻³⁷·(E + R) would be needed; the margin is 2⁻³⁴·(E + R), which is still negligible
//! compared with a skin.

use crate::{Error, ErrorKind, Precision, error::cpu, systems::SystemReal};
use nearfield_grid::{self as grid, memory::with_room};

/// Outcome of [`VerletLists::refresh`](crate::lists::VerletLists::refresh).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// The lists still hold every pair within the radius and were kept.
    Kept,
    /// The lists were built anew.
    Rebuilt,
}

/// Share of E + R kept free for rounding (see the module's comment).
pub(crate) fn margin(precision: Precision) -> f64 {
    match precision {
        Precision::Single => 1.0 / (1u64 << 19) as f64,
        Precision::Double => 1.0 / (1u64 << 34) as f64,
    }
}

/// How far two points may have moved together since lists of `list_radius` were built before a pair
/// within `radius` can be missing; negative if the skin is smaller than the rounding. `extent` is
/// the largest extent of all coordinates along a periodic axis, then and now.
pub(crate) fn allowed_displacement(
    radius: f64,
    list_radius: f64,
    extent: f64,
    precision: Precision,
) -> f64 {
    list_radius - radius - margin(precision) * (extent + list_radius)
}

/// The skin of lists of many systems, whose radii may differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemSkin(f64);

impl SystemSkin {
    /// # Errors
    /// [`ErrorKind::Skin`] when it is negative or not finite.
    pub(crate) fn new(skin: f64) -> Result<Self, Error> {
        if !(skin.is_finite() && skin >= 0.0) {
            return Err(ErrorKind::Skin(skin as f32).into());
        }
        Ok(Self(skin))
    }

    /// The radii of the lists of systems with these radii.
    ///
    /// # Errors
    /// That a radius cannot be used, with the skin or without.
    pub(crate) fn list_radii<T: SystemReal>(self, radii: &[f64]) -> Result<Vec<f64>, Error> {
        let mut of_lists = with_room(radii.len(), "radii of lists with a skin")?;
        for (system, &radius) in radii.iter().enumerate() {
            let [_, list] = self.radii::<T>(system, radius)?;
            of_lists.push(list);
        }
        Ok(of_lists)
    }

    /// Whether lists of systems with these radii still hold every pair, when the point that has
    /// moved farthest has moved by so much; `extent` is that of
    /// [`allowed_displacement`].
    pub(crate) fn allows<T: SystemReal>(self, radii: &[f64], farthest: f64, extent: f64) -> bool {
        radii.iter().enumerate().all(|(system, &radius)| {
            let Ok([radius, list]) = self.radii::<T>(system, radius) else {
                return false;
            };
            2.0 * farthest <= allowed_displacement(radius, list, extent, T::PRECISION)
        })
    }

    /// An error of a search for lists, which says that it was one with the skin where a smaller
    /// radius would do.
    pub(crate) fn named(self, error: Error) -> Error {
        if let ErrorKind::Cpu(refused) = error.kind()
            && let cpu::ErrorKind::System { system, source } = refused.kind()
            && matches!(source.kind(), grid::ErrorKind::TooManyImages { .. })
        {
            return self.refusal(*system, source.clone());
        }
        error
    }

    /// The radius of a system and that of its list.
    fn radii<T: SystemReal>(self, system: usize, radius: f64) -> Result<[f64; 2], Error> {
        let refuse = |source| cpu::Error::from(cpu::ErrorKind::System { system, source });
        let radius = T::radius(radius).map_err(refuse)?.value_f64();
        let list = T::radius(radius + self.0);
        let list = list.map_err(|source| self.refusal(system, source))?;
        Ok([radius, list.value_f64()])
    }

    /// That a system cannot be searched with its radius and the skin.
    fn refusal(self, system: usize, source: grid::Error) -> Error {
        let kind = cpu::ErrorKind::SystemWithSkin {
            system,
            skin: self.0,
            source,
        };
        cpu::Error::from(kind).into()
    }
}

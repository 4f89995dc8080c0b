//! Systems whose points move little from call to call.
//!
//! A list of a larger radius holds all pairs within the radius as long as no two points have moved
//! by more than the skin together (`skin.rs` has the margin that covers rounding). So most calls
//! test the pairs of this list instead of searching. Displacements are those of the coordinates as
//! given: a point that was wrapped to the other side of its cell has moved by the cell, because the
//! list names images.
//!
//! **Invariant:** every call returns the pairs of a fresh search, bit for bit.

use super::systems::{SystemSearch, SystemSearchBuilder};
use crate::{
    Device, Error, ErrorKind,
    error::cpu,
    skin::allowed_displacement,
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, Systems},
};
use nearfield_cpu::Candidates;
use nearfield_grid::{
    self as grid,
    memory::{copied, with_room},
};

/// The name of the memory of the points of the last build in messages.
const WHAT: &str = "the points of the last search";

impl SystemSearchBuilder {
    /// Starts a search that keeps lists with a skin, in the unit of the coordinates, on the CPU. A
    /// wide skin means fewer searches and longer lists; a tenth of the radius is a good start.
    ///
    /// # Errors
    /// [`ErrorKind::Skin`] when the skin is negative or not finite, [`ErrorKind::Combined`] for a
    /// GPU, and as [`build`](Self::build).
    pub fn with_skin<T: SystemReal>(self, skin: f64) -> Result<SkinSearch<T>, Error> {
        if !(skin.is_finite() && skin >= 0.0) {
            return Err(ErrorKind::Skin(skin as f32).into());
        }
        if matches!(self.device, Device::Gpu(_)) {
            let (first, second) = ("lists with a skin", "systems on a GPU");
            return Err(ErrorKind::Combined { first, second }.into());
        }
        Ok(SkinSearch {
            search: self.build()?,
            skin,
            built: None,
            found: SystemPairs::default(),
            candidates: Candidates::default(),
            builds: 0,
        })
    }
}

/// Searches systems whose points move little from call to call, by lists with a skin; made by
/// [`SystemSearchBuilder::with_skin`].
///
/// ```
/// use nearfield::systems::{Quantities, SystemPairs, SystemSearch, Systems};
/// let mut search = SystemSearch::builder().with_skin(0.2)?;
/// let mut pairs = SystemPairs::<f64>::default();
/// for step in 0..10 {
///     let positions = [[0.0; 3], [1.0 - 0.005 * step as f64, 0.0, 0.0]];
///     search.neighbors(&Systems::new(&positions, &[0, 2], &[1.0]), Quantities::ALL, &mut pairs)?;
///     assert_eq!(pairs.distances()[0], 1.0 - 0.005 * step as f64);
/// }
/// assert_eq!(search.builds(), 1);
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug)]
pub struct SkinSearch<T> {
    search: SystemSearch,
    skin: f64,
    /// What the candidates were found for; none before the first search and after one that failed.
    built: Option<Built<T>>,
    /// Working memory of searches.
    found: SystemPairs<T, u32>,
    candidates: Candidates<T>,
    builds: u64,
}

/// The systems of the last search.
#[derive(Debug)]
struct Built<T> {
    positions: Vec<[T; 3]>,
    offsets: Vec<i64>,
    radii: Vec<f64>,
    cells: Vec<[[f64; 3]; 3]>,
    periodic: Vec<[bool; 3]>,
    strict: bool,
}

impl<T: SystemReal> SkinSearch<T> {
    /// Finds the pairs of all systems, as [`SystemSearch::neighbors`] does, whose order of pairs
    /// the settings choose. Searches anew if points have moved too far, or if anything but the
    /// points has changed.
    ///
    /// # Errors
    /// As [`SystemSearch::neighbors`]; `pairs` is empty then.
    pub fn neighbors<I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let found = self.find(systems, quantities, pairs);
        if found.is_err() {
            pairs.clear();
        }
        found
    }

    fn find<I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        systems.check_for::<I>()?;
        if !self.is_near(systems) {
            self.built = None;
            self.built = Some(self.rebuild(systems)?);
            self.builds += 1;
        }
        let cpu = self.search.cpu();
        Ok(cpu.search_candidates(systems, &mut self.candidates, quantities, pairs)?)
    }

    /// How often the lists were built, the first time included.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// An error of the search, which says that it was one with the skin where a smaller radius
    /// would do.
    fn named(&self, error: Error) -> Error {
        if let ErrorKind::Cpu(refused) = error.kind()
            && let cpu::ErrorKind::System { system, source } = refused.kind()
            && matches!(source.kind(), grid::ErrorKind::TooManyImages { .. })
        {
            return self.refusal(*system, source.clone());
        }
        error
    }

    /// That a system cannot be searched with its radius and the skin.
    fn refusal(&self, system: usize, source: grid::Error) -> Error {
        let skin = self.skin;
        let kind = cpu::ErrorKind::SystemWithSkin {
            system,
            skin,
            source,
        };
        cpu::Error::from(kind).into()
    }

    /// The radius of a system and that of its list.
    ///
    /// # Errors
    /// That one of them cannot be used.
    fn radii(&self, system: usize, radius: f64) -> Result<[f64; 2], Error> {
        let refuse = |source| cpu::Error::from(cpu::ErrorKind::System { system, source });
        let radius = T::radius(radius).map_err(refuse)?.value_f64();
        let list = T::radius(radius + self.skin);
        let list = list.map_err(|source| self.refusal(system, source))?;
        Ok([radius, list.value_f64()])
    }

    /// Whether the list still holds every pair.
    fn is_near(&self, systems: &Systems<'_, T>) -> bool {
        let Some(built) = &self.built else {
            return false;
        };
        let same = built.offsets == systems.offsets
            && built.radii == systems.radii
            && built.cells == systems.cells
            && built.periodic == systems.periodic
            && built.strict == systems.strict;
        if !same || built.positions.len() != systems.positions.len() {
            return false;
        }
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        let mut farthest = 0.0f64;
        let mut is_finite = true;
        for (now, then) in systems.positions.iter().zip(&built.positions) {
            let mut moved = 0.0;
            for axis in 0..3 {
                let (now, then) = (now[axis].double(), then[axis].double());
                low[axis] = low[axis].min(now).min(then);
                high[axis] = high[axis].max(now).max(then);
                moved += (now - then) * (now - then);
            }
            is_finite &= moved.is_finite();
            farthest = farthest.max(moved);
        }
        let repeats = systems.periodic.iter().flatten().any(|&repeats| repeats);
        let extent = (0..3)
            .filter(|_| repeats)
            .map(|axis| high[axis] - low[axis]);
        let extent = extent.fold(0.0, f64::max);
        let moved = 2.0 * farthest.sqrt();
        let allows = |(system, &radius): (usize, &f64)| {
            let Ok([radius, list]) = self.radii(system, radius) else {
                return false;
            };
            moved <= allowed_displacement(radius, list, extent, T::PRECISION)
        };
        is_finite && systems.radii.iter().enumerate().all(allows)
    }

    /// Finds the candidates, and returns a copy of the systems.
    fn rebuild(&mut self, systems: &Systems<'_, T>) -> Result<Built<T>, Error> {
        let mut radii = with_room(systems.radii.len(), WHAT)?;
        for (system, &radius) in systems.radii.iter().enumerate() {
            let [_, list] = self.radii(system, radius)?;
            radii.push(list);
        }
        let wide = Systems {
            radii: &radii,
            strict: false,
            ..*systems
        };
        let wanted = Quantities {
            images: true,
            ..Quantities::LISTS
        };
        let found = self.search.neighbors(&wide, wanted, &mut self.found);
        found.map_err(|error| self.named(error))?;
        self.candidates.take(systems, &mut self.found)?;
        Ok(Built {
            positions: copied(systems.positions, WHAT)?,
            offsets: copied(systems.offsets, WHAT)?,
            radii: copied(systems.radii, WHAT)?,
            cells: copied(systems.cells, WHAT)?,
            periodic: copied(systems.periodic, WHAT)?,
            strict: systems.strict,
        })
    }
}

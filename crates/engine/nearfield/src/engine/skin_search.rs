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
    skin::SystemSkin,
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, Systems},
};
use nearfield_cpu::Candidates;
use nearfield_grid::memory::copied;

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
        let skin = SystemSkin::new(skin)?;
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
    skin: SystemSkin,
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
        is_finite && (self.skin).allows::<T>(systems.radii, farthest.sqrt(), extent)
    }

    /// Finds the candidates, and returns a copy of the systems.
    fn rebuild(&mut self, systems: &Systems<'_, T>) -> Result<Built<T>, Error> {
        let radii = self.skin.list_radii::<T>(systems.radii)?;
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
        found.map_err(|error| self.skin.named(error))?;
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

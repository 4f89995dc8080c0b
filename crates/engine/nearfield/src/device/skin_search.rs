//! Many systems whose points move little from search to search, with arrays on a GPU.
//!
//! A search within radii that are larger by a skin keeps its pairs on the device. While points have
//! moved little, a call tests these instead of searching: a kernel measures how far points have
//! moved since, another writes the pairs within the true radii, and the host judges afterwards
//! whether they counted, by the rule of [`SkinSearch`](crate::systems::SkinSearch). If not, it
//! searches anew.
//!
//! **Invariant:** pairs, their order and their bits are those of a [`DeviceSystemSearch`].

use super::systems::DeviceSystemSearch;
use crate::{
    Error,
    skin::SystemSkin,
    systems::{PairIndex, SystemReal},
};
use nearfield_gpu::{
    DeviceCandidates, DeviceColumns, DeviceSystems, DeviceValue, PointNumber, PositionNumber,
    Stream, SystemsOutcome,
};
use nearfield_grid::OfProcess;

/// Searches systems whose arrays are on a GPU and whose points move little, by lists with a skin;
/// made by [`DeviceSystemSearch::with_skin`]. What [`SkinSearch`](crate::systems::SkinSearch) is on
/// the host.
///
/// ```no_run
/// use nearfield::device::{DeviceBuffer, DeviceColumns, DeviceSystemSearch, DeviceSystems};
/// # use nearfield::Error;
/// # fn run(
/// #     systems: &DeviceSystems<'_, f32>, mut i: DeviceBuffer<i32>, mut j: DeviceBuffer<i32>,
/// #     mut step: impl FnMut(u64, &DeviceBuffer<i32>, &DeviceBuffer<i32>),
/// # ) -> Result<(), Error> {
/// let mut search = DeviceSystemSearch::<f32, i32>::on_gpu(0)?.with_skin(0.3)?;
/// for _ in 0..1000 {
///     let pairs = search.neighbors_into(systems, &mut DeviceColumns {
///         targets: Some(i.as_view_mut()),
///         sources: Some(j.as_view_mut()),
///         ..DeviceColumns::default()
///     })?;
///     assert!(pairs <= i.len() as u64, "longer arrays are needed");
///     // A step of your own moves the points.
///     step(pairs, &i, &j);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeviceSkinSearch<T, I = i64> {
    /// Finds the candidates, with radii that are larger by the skin.
    search: DeviceSystemSearch<T, I>,
    /// How much larger.
    skin: SystemSkin,
    /// The pairs that it found, on the device.
    candidates: OfProcess<DeviceCandidates<T>>,
    /// True radii of the systems at the last build.
    radii: Vec<f64>,
    /// Whether a system repeated then.
    repeats: bool,
    builds: u64,
}

impl<T: SystemReal + DeviceValue, I: PairIndex + DeviceValue> DeviceSystemSearch<T, I> {
    /// Keeps lists with a skin, in the unit of the coordinates, from now on. A wide skin means
    /// fewer searches and longer lists. For one system of some thousand points a fresh search may
    /// take less (docs/measurements/bindings.md): time both.
    ///
    /// # Errors
    /// [`ErrorKind::Skin`](crate::ErrorKind::Skin) when the skin is negative or not finite.
    pub fn with_skin(self, skin: f64) -> Result<DeviceSkinSearch<T, I>, Error> {
        Ok(DeviceSkinSearch {
            skin: SystemSkin::new(skin)?,
            search: self,
            candidates: OfProcess::new(DeviceCandidates::default()),
            radii: Vec::new(),
            repeats: false,
            builds: 0,
        })
    }
}

impl<T, I> DeviceSkinSearch<T, I>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    /// Writes the pairs of all systems to arrays of the caller, in the order of
    /// [`DeviceSystemSearch`], waits for it, and returns their number. All of them are written if
    /// they have room; otherwise nothing counts, and a call with longer arrays finds them by the
    /// same lists. Searches anew if points have moved too far, or if anything but the points has
    /// changed.
    ///
    /// # Errors
    /// As [`DeviceSystemSearch::neighbors_into`] and [`DeviceSystemSearch::finish`]. The next call
    /// searches anew then.
    pub fn neighbors_into(
        &mut self,
        systems: &DeviceSystems<'_, T>,
        to: &mut DeviceColumns<'_, T, I>,
    ) -> Result<u64, Error> {
        self.search.usable()?;
        let backend = &self.search.backend;
        if let Some(kept) = backend.keep_pairs(systems, to, &mut self.candidates)?
            && kept.is_same
            && self.allows(kept.moved, kept.extent)
        {
            return Ok(kept.count);
        }
        self.rebuild(systems)?;
        let backend = &self.search.backend;
        let kept = backend.keep_pairs(systems, to, &mut self.candidates)?;
        Ok(kept.map_or(0, |kept| kept.count))
    }

    /// How often the lists were built, the first time included.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// The stream that everything runs on.
    pub fn stream(&self) -> &Stream {
        self.search.stream()
    }

    /// Whether the lists still hold every pair.
    fn allows(&self, moved: f64, extent: [f64; 3]) -> bool {
        let extents = extent.into_iter().filter(|_| self.repeats);
        let extent = extents.fold(0.0, f64::max);
        moved.is_finite() && self.skin.allows::<T>(&self.radii, moved, extent)
    }

    /// Finds the candidates.
    fn rebuild(&mut self, systems: &DeviceSystems<'_, T>) -> Result<(), Error> {
        self.candidates.clear();
        self.radii = self.search.copied(&systems.radii)?;
        self.repeats = match &systems.periodic {
            Some(flags) => self.search.copied(flags)?.iter().any(|&flag| flag != 0),
            None => false,
        };
        let wide = self.skin.list_radii::<T>(&self.radii)?;
        let backend = &self.search.backend;
        let kind = self.search.lists;
        match backend.build_candidates(systems, &wide, kind, &mut self.candidates)? {
            SystemsOutcome::Fault(system) => {
                let refused = self.search.refused(systems, Some(&wide), system)?;
                Err(self.skin.named(refused))
            }
            _ => {
                self.builds += 1;
                Ok(())
            }
        }
    }
}

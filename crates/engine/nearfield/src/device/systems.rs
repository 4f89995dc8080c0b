//! Many systems of points whose arrays are on a GPU: pairs stay there too.
//!
//! **Invariant:** pairs, their order and their bits are those of
//! [`SystemSearch`](crate::systems::SystemSearch) in ascending order.

use super::engine::Progress;
use crate::{
    Device, Error, ErrorKind, ListKind,
    backend::gpu::{of_quantities, refusal},
    systems::{PairIndex, Quantities, SystemReal, Systems},
};
use bytemuck::Zeroable;
use nearfield_gpu::{
    self as gpu, DeviceColumns, DevicePairs, DeviceSystems, DeviceValue, DeviceView, GpuBackend,
    PairArray, PointNumber, PositionNumber, Stream, SystemsOutcome,
};
use nearfield_grid::{OfProcess, memory::zeroed};
use std::{ffi::c_void, marker::PhantomData};

/// Searches many systems on a GPU, on the caller's stream. `T` is `f32` or `f64`, and indices are
/// `I`: `i64`, `i32` or `u32`.
///
/// ```no_run
/// use nearfield::device::{Context, DeviceSystemSearch, DeviceSystems, Progress};
/// use nearfield::systems::Quantities;
///
/// # fn search() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Context::open(0)?.new_stream()?;
/// // Two molecules, of two atoms and of one.
/// let positions = stream.clone_htod(&[0.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])?;
/// let offsets = stream.clone_htod(&[0i64, 2, 3])?;
/// let radii = stream.clone_htod(&[1.5f64])?;
/// let mut search = DeviceSystemSearch::<f32>::on(&stream)?;
/// let systems = DeviceSystems {
///     positions: positions.as_view(),
///     offsets: offsets.as_view(),
///     radii: radii.as_view(),
///     cells: None,
///     periodic: None,
///     strict: false,
/// };
/// search.neighbors(&systems, Quantities::EDGES)?;
/// // Work of your own on the stream may read the pairs at once; they are valid if this says so.
/// while let Progress::Repeat = search.finish(&systems)? {
///     search.neighbors(&systems, Quantities::EDGES)?;
/// }
/// let pairs = search.pairs().ok_or("nothing was searched")?;
/// assert_eq!(pairs.count, 2);
/// # Ok(())
/// # }
/// ```
///
/// Cells are nine `f64` of every system, or of one for all, and periodicities three bytes. The rows
/// of a cell are its vectors; those of open axes are not read. Pairs of a point are sorted by
/// (neighbour, image).
#[derive(Debug)]
pub struct DeviceSystemSearch<T, I = i64> {
    pub(super) backend: OfProcess<GpuBackend>,
    pairs: OfProcess<DevicePairs>,
    pub(super) lists: ListKind,
    /// Pairs of the last search, once it was finished.
    found: Option<u64>,
    types: PhantomData<(T, I)>,
}

/// The pairs of a search on the device. Arrays that were not asked for are `None`; the others may
/// have room behind the last pair.
#[derive(Debug)]
pub struct DevicePairsView<'a, T, I> {
    /// Number of pairs.
    pub count: u64,
    /// First entry of every point and, behind the last, the number of pairs.
    pub offsets: DeviceView<'a, u64>,
    /// The point of every pair, by its place in the array of all systems.
    pub targets: Option<DeviceView<'a, I>>,
    /// Its neighbour.
    pub sources: Option<DeviceView<'a, I>>,
    /// By how many vectors the neighbour is moved, three counts of every pair.
    pub images: Option<DeviceView<'a, i32>>,
    /// From the point to the image of its neighbour, three numbers of every pair.
    pub displacements: Option<DeviceView<'a, T>>,
    /// The length of that.
    pub distances: Option<DeviceView<'a, T>>,
}

impl<T: SystemReal + DeviceValue, I: PairIndex + DeviceValue> DeviceSystemSearch<T, I> {
    /// A search that does everything on `stream`.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] when programs cannot be compiled or loaded.
    pub fn on(stream: &Stream) -> Result<Self, Error> {
        Ok(Self::of(GpuBackend::on(stream)?))
    }

    /// A search on a stream of its own of this GPU, counted from 0; see [`stream`](Self::stream).
    ///
    /// # Errors
    /// As [`on`](Self::on), and [`ErrorKind::DeviceUnavailable`].
    pub fn on_gpu(number: u32) -> Result<Self, Error> {
        Self::started(number, GpuBackend::new(number))
    }

    /// A search on a stream that another library owns; null is the default stream.
    ///
    /// # Errors
    /// As [`on_gpu`](Self::on_gpu).
    ///
    /// # Safety
    /// `stream` is null or a stream of that GPU's primary context, and stays there for as long as
    /// the search.
    pub unsafe fn on_borrowed(number: u32, stream: *mut c_void) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        Self::started(number, unsafe { GpuBackend::on_borrowed(number, stream) })
    }

    fn started(number: u32, backend: Result<GpuBackend, gpu::Error>) -> Result<Self, Error> {
        let unavailable = |error: gpu::Error| ErrorKind::DeviceUnavailable {
            device: Device::Gpu(number),
            missing: error.to_string(),
        };
        Ok(Self::of(backend.map_err(unavailable)?))
    }

    fn of(backend: GpuBackend) -> Self {
        Self {
            backend: OfProcess::new(backend),
            pairs: OfProcess::new(DevicePairs::default()),
            lists: ListKind::Full,
            found: None,
            types: PhantomData,
        }
    }

    /// Full lists (the default) or half lists from now on, in which each pair stands once.
    #[must_use]
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.lists = kind;
        self
    }

    /// The stream that everything runs on.
    pub fn stream(&self) -> &Stream {
        self.backend.stream()
    }

    /// Starts a search, and returns without waiting for it. Arrays of the systems may be
    /// overwritten by work that is put on the stream once [`finish`](Self::finish) has said
    /// [`Progress::Valid`].
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] for arrays that do not fit each other or are another GPU's, memory that
    /// is short, and faults. What is in the arrays is for the device to check, and for
    /// [`finish`](Self::finish) to report.
    pub fn neighbors(
        &mut self,
        systems: &DeviceSystems<'_, T>,
        quantities: Quantities,
    ) -> Result<(), Error> {
        self.usable()?;
        self.found = None;
        let wanted = of_quantities(self.lists, quantities, size_of::<I>());
        Ok(self
            .backend
            .start_systems(systems, wanted, &mut self.pairs)?)
    }

    /// Starts a search that writes its pairs to arrays of the caller, and only those that there
    /// are. Nothing is written behind the shortest; if [`finish`](Self::finish) says
    /// [`Progress::Repeat`], they have to be long enough for [`counted`](Self::counted) pairs.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors).
    pub fn neighbors_into(
        &mut self,
        systems: &DeviceSystems<'_, T>,
        to: &mut DeviceColumns<'_, T, I>,
    ) -> Result<(), Error>
    where
        T: PositionNumber,
        I: PointNumber,
    {
        self.usable()?;
        self.found = None;
        Ok(self
            .backend
            .start_systems_into(systems, self.lists, to, &mut self.pairs)?)
    }

    /// Number of pairs of the last search that was [finished](Self::finish), also of those that had
    /// no room.
    pub fn counted(&self) -> u64 {
        self.pairs.counted()
    }

    /// Waits for the last search and says whether its pairs count. If there was too little room for
    /// them in the arrays of the search, there is enough now, and the search is to be repeated.
    ///
    /// # Errors
    /// [`ErrorKind::Cpu`] for systems that cannot be searched, as
    /// [`SystemSearch::neighbors`](crate::systems::SystemSearch::neighbors) returns it: `systems`
    /// are copied to the host to say why. [`ErrorKind::Gpu`] for systems that are too large, memory
    /// that is short, and faults.
    pub fn finish(&mut self, systems: &DeviceSystems<'_, T>) -> Result<Progress, Error> {
        self.usable()?;
        match self.backend.finish_systems(&mut self.pairs)? {
            SystemsOutcome::Valid(count) => {
                self.found = Some(count);
                Ok(Progress::Valid)
            }
            SystemsOutcome::Repeat => Ok(Progress::Repeat),
            SystemsOutcome::Fault(system) => Err(self.refused(systems, None, system)?),
        }
    }

    /// The pairs of the last search that was [finished](Self::finish). Arrays of the caller are not
    /// among them.
    pub fn pairs(&self) -> Option<DevicePairsView<'_, T, I>> {
        let pairs = &self.pairs;
        Some(DevicePairsView {
            count: self.found?,
            offsets: pairs.offsets()?,
            targets: pairs.array(PairArray::Targets),
            sources: pairs.array(PairArray::Sources),
            images: pairs.array(PairArray::Images),
            displacements: pairs.array(PairArray::Displacements),
            distances: pairs.array(PairArray::Distances),
        })
    }

    /// Why a system cannot be searched, with these radii if they are not its own.
    pub(super) fn refused(
        &self,
        systems: &DeviceSystems<'_, T>,
        list_radii: Option<&[f64]>,
        system: usize,
    ) -> Result<Error, Error> {
        let points = systems.positions.len() / 3;
        let mut positions: Vec<[T; 3]> = zeroed(points, WHAT)?;
        self.read(&systems.positions, positions.as_flattened_mut())?;
        let offsets = self.copied(&systems.offsets)?;
        let radii = self.copied(&systems.radii)?;
        let radii = list_radii.unwrap_or(&radii);
        let (mut cells, mut periodic) = (Vec::new(), Vec::new());
        if let Some(on_device) = &systems.cells {
            cells = zeroed(on_device.len() / 9, WHAT)?;
            self.read(on_device, cells.as_flattened_mut().as_flattened_mut())?;
        }
        if let Some(flags) = &systems.periodic {
            let mut bytes: Vec<[u8; 3]> = zeroed(flags.len() / 3, WHAT)?;
            self.read(flags, bytes.as_flattened_mut())?;
            periodic = zeroed(bytes.len(), WHAT)?;
            for (to, flags) in periodic.iter_mut().zip(&bytes) {
                *to = flags.map(|flag| flag != 0);
            }
        }
        let on_host = Systems::new(&positions, &offsets, radii).in_cells(&cells, &periodic);
        let on_host = Systems {
            strict: systems.strict,
            ..on_host
        };
        Ok(refusal(&on_host, system))
    }

    /// A copy of an array on the host.
    pub(super) fn copied<V: DeviceValue + Zeroable>(
        &self,
        from: &DeviceView<'_, V>,
    ) -> Result<Vec<V>, Error> {
        let mut values = zeroed(from.len(), WHAT)?;
        self.read(from, &mut values)?;
        Ok(values)
    }

    /// Copies an array to the host.
    fn read<V: DeviceValue>(&self, from: &DeviceView<'_, V>, to: &mut [V]) -> Result<(), Error> {
        Ok(self.backend.queue().copy_to_host(WHAT, from, to)?)
    }

    /// Refuses to be used in a forked child of the process that has started it.
    pub(super) fn usable(&self) -> Result<(), Error> {
        if self.backend.is_inherited() {
            return Err(ErrorKind::Gpu(gpu::ErrorKind::Forked.into()).into());
        }
        Ok(())
    }
}

/// The name of copies in messages.
const WHAT: &str = "systems that cannot be searched";

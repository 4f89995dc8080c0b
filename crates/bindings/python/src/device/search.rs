//! Searches of systems on a GPU, of any precision, behind one trait.
//!
//! A search waits for its pairs, because Python's arrays have a length. So nothing that was given
//! has to be kept afterwards, and results are never provisional.

use super::{
    columns::OutColumns,
    fate::Fate,
    given::GivenArray,
    stream::{Current, StreamNumber, failed},
};
use crate::{call::refusal, errors::raise};
use nearfield::{
    Error, ListKind,
    device::{
        DeviceBuffer, DeviceSkinSearch, DeviceSystemSearch, DeviceSystems, DeviceValue, DeviceView,
        Lent, PointNumber, PositionNumber, Progress, Stream,
    },
    systems::{PairIndex, Quantities, SystemReal},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex, MutexGuard},
};

/// A search that its Python object and the arrays that view its memory share.
pub(crate) struct SharedSystems(Mutex<State>);

/// What calls change.
pub(crate) struct State {
    pub(super) search: ManuallyDrop<Box<dyn Search>>,
    /// Of the arrays of the last search.
    pub(super) fate: Arc<Fate>,
}

impl SharedSystems {
    pub(super) fn new(search: Box<dyn Search>) -> Self {
        Self(Mutex::new(State {
            search: ManuallyDrop::new(search),
            fate: Arc::default(),
        }))
    }

    /// The search for a call.
    pub(super) fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        let refusal = |refused| refusal(&refused, "the search is in use by another thread");
        self.0.try_lock().map_err(refusal)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _current = Current::enter(&self.search.stream().context());
        let _ = self.search.stream().synchronize();
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut self.search) }
    }
}

/// Numbers of systems.
pub(crate) enum Numbers<V> {
    Host(Vec<V>),
    Device(GivenArray),
}

impl<V> Numbers<V> {
    fn given(&self) -> Option<&GivenArray> {
        match self {
            Self::Device(array) => Some(array),
            Self::Host(_) => None,
        }
    }
}

/// What a call was given.
pub(crate) struct Input {
    pub(super) points: GivenArray,
    pub(super) offsets: Numbers<i64>,
    pub(super) radii: Numbers<f64>,
    pub(super) cells: Option<Numbers<f64>>,
    /// Three flags of every system, or of one for all.
    pub(super) periodic: Vec<u8>,
}

impl Input {
    /// All arrays on the GPU.
    pub(super) fn given(&self) -> impl Iterator<Item = &GivenArray> + Clone {
        let cells = self.cells.as_ref().and_then(Numbers::given);
        let numbers = [self.offsets.given(), self.radii.given(), cells];
        [&self.points]
            .into_iter()
            .chain(numbers.into_iter().flatten())
    }
}

/// Where the pairs of a search are; 0 for arrays that were not wanted.
pub(crate) struct Found {
    pub(super) count: usize,
    pub(super) stream: Stream,
    pub(super) targets: u64,
    pub(super) sources: u64,
    pub(super) images: u64,
    pub(super) displacements: u64,
    pub(super) distances: u64,
}

/// A search of either precision and type of indices.
pub(crate) trait Search: Send {
    fn stream(&self) -> &Stream;

    /// How often lists with a skin were built.
    fn builds(&self) -> u64;

    /// Searches until the pairs have room. The context must be current.
    fn search(&mut self, input: &Input, wanted: Quantities) -> PyResult<Found>;

    /// Searches once and writes to arrays of the caller; returns the number of pairs, which are all
    /// written if they have room. The context must be current.
    fn search_into(
        &mut self,
        input: &Input,
        to: &OutColumns,
        arrays: &[GivenArray],
    ) -> PyResult<u64>;
}

/// A search that finds pairs anew, or one by lists with a skin.
enum Searching<T, I> {
    Anew(Box<DeviceSystemSearch<T, I>>),
    BySkin(Box<DeviceSkinSearch<T, I>>),
}

/// A search, and what it was last given of the host.
struct Systems<T, I> {
    search: Searching<T, I>,
    strict: bool,
    offsets: Uploaded<i64>,
    radii: Uploaded<f64>,
    cells: Uploaded<f64>,
    periodic: Uploaded<u8>,
}

pub(super) fn started<T, I>(
    gpu: u32,
    stream: StreamNumber,
    (kind, strict, skin): (ListKind, bool, Option<f64>),
) -> PyResult<Box<dyn Search>>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    // SAFETY: the caller has promised, as far as Python can, that the number is a stream which
    // stays for as long as the search; there is no way to ask the driver.
    let search = unsafe { DeviceSystemSearch::<T, I>::on_borrowed(gpu, stream.handle()) };
    let search = search.map_err(raise)?.lists(kind);
    Ok(Box::new(Systems {
        search: match skin {
            Some(skin) => Searching::BySkin(Box::new(search.with_skin(skin).map_err(raise)?)),
            None => Searching::Anew(Box::new(search)),
        },
        strict,
        offsets: Uploaded::default(),
        radii: Uploaded::default(),
        cells: Uploaded::default(),
        periodic: Uploaded::default(),
    }))
}

/// Numbers of the host on the device: programs give the same ones again and again.
struct Uploaded<V> {
    values: Vec<V>,
    buffer: Option<DeviceBuffer<V>>,
}

impl<V> Default for Uploaded<V> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            buffer: None,
        }
    }
}

impl<V: DeviceValue> Uploaded<V> {
    /// The numbers on the device, copied there unless they have the bits of the last ones.
    #[expect(clippy::disallowed_methods, reason = "a few numbers of each system")]
    fn of<B: PartialEq>(
        &mut self,
        values: &[V],
        stream: &Stream,
        bits: impl Fn(&V) -> B,
    ) -> PyResult<DeviceView<'_, V>> {
        let kept = self.buffer.take();
        let kept = kept.filter(|_| self.values.iter().map(&bits).eq(values.iter().map(&bits)));
        let buffer = match kept {
            Some(buffer) => buffer,
            None => {
                let made = stream.clone_htod(values);
                self.values = values.to_vec();
                made.map_err(|error| failed("numbers of systems to the GPU", error))?
            }
        };
        Ok(self.buffer.insert(buffer).as_view())
    }

    /// The numbers, or the array of the device that holds them, which `lent` keeps.
    fn or_lent<'a, B: PartialEq>(
        &'a mut self,
        numbers: &Numbers<V>,
        lent: &'a mut Option<Lent<V>>,
        stream: &Stream,
        bits: impl Fn(&V) -> B,
    ) -> PyResult<DeviceView<'a, V>> {
        match numbers {
            Numbers::Host(values) => self.of(values, stream, bits),
            Numbers::Device(array) => Ok(lent.insert(array.lend(stream)).as_view()),
        }
    }
}

impl<T, I> Systems<T, I>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    /// Does what a search of the systems of a call takes.
    fn run<R>(
        &mut self,
        input: &Input,
        work: impl FnOnce(&mut Searching<T, I>, &DeviceSystems<'_, T>) -> Result<R, Error>,
    ) -> PyResult<R> {
        let stream = self.stream().clone();
        let points = input.points.lend::<T>(&stream);
        let (mut offsets, mut radii, mut cells) = (None, None, None);
        let bits = |number: &f64| number.to_bits();
        let systems = DeviceSystems {
            positions: points.as_view(),
            offsets: (self.offsets).or_lent(&input.offsets, &mut offsets, &stream, |at| *at)?,
            radii: (self.radii).or_lent(&input.radii, &mut radii, &stream, bits)?,
            cells: match &input.cells {
                Some(given) => Some(self.cells.or_lent(given, &mut cells, &stream, bits)?),
                None => None,
            },
            periodic: match input.periodic.as_slice() {
                [] => None,
                flags => Some(self.periodic.of(flags, &stream, |flag| *flag)?),
            },
            strict: self.strict,
        };
        work(&mut self.search, &systems).map_err(|error| {
            // The arrays that were given may be read until the stream has ended.
            let _ = stream.synchronize();
            raise(error)
        })
    }
}

impl<T, I> Search for Systems<T, I>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    fn stream(&self) -> &Stream {
        match &self.search {
            Searching::Anew(search) => search.stream(),
            Searching::BySkin(search) => search.stream(),
        }
    }

    fn builds(&self) -> u64 {
        match &self.search {
            Searching::Anew(_) => 0,
            Searching::BySkin(search) => search.builds(),
        }
    }

    fn search(&mut self, input: &Input, wanted: Quantities) -> PyResult<Found> {
        self.run(input, |search, systems| {
            if let Searching::Anew(search) = search {
                search.neighbors(systems, wanted)?;
                while search.finish(systems)? == Progress::Repeat {
                    search.neighbors(systems, wanted)?;
                }
            }
            Ok(())
        })?;
        let Searching::Anew(search) = &self.search else {
            return Err(PyValueError::new_err(
                "a search with skin= has no arrays of its own: use neighbors_into()",
            ));
        };
        let stream = search.stream().clone();
        let pairs = search.pairs();
        let pairs = pairs.as_ref();
        fn at<V>(array: Option<&DeviceView<'_, V>>, stream: &Stream) -> u64 {
            array.map_or(0, |array| array.device_ptr(stream).0)
        }
        let count = pairs.map_or(0, |pairs| pairs.count);
        Ok(Found {
            count: usize::try_from(count).unwrap_or(usize::MAX),
            targets: at(pairs.and_then(|pairs| pairs.targets.as_ref()), &stream),
            sources: at(pairs.and_then(|pairs| pairs.sources.as_ref()), &stream),
            images: at(pairs.and_then(|pairs| pairs.images.as_ref()), &stream),
            displacements: at(
                pairs.and_then(|pairs| pairs.displacements.as_ref()),
                &stream,
            ),
            distances: at(pairs.and_then(|pairs| pairs.distances.as_ref()), &stream),
            stream,
        })
    }

    fn search_into(
        &mut self,
        input: &Input,
        to: &OutColumns,
        arrays: &[GivenArray],
    ) -> PyResult<u64> {
        let stream = self.stream().clone();
        let mut lent = to.lend::<T, I>(&stream, arrays);
        let mut columns = lent.views();
        self.run(input, |search, systems| match search {
            Searching::Anew(search) => {
                search.neighbors_into(systems, &mut columns)?;
                // Whether they had room is for the caller, who knows the room, to see.
                let _ = search.finish(systems)?;
                Ok(search.counted())
            }
            Searching::BySkin(search) => search.neighbors_into(systems, &mut columns),
        })
    }
}

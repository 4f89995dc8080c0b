//! Searches of systems on a GPU, of any precision, behind one trait.
//!
//! A search waits for its pairs, because Python's arrays have a length. So nothing that was given
//! has to be kept afterwards, and results are never provisional.

use super::{
    fate::Fate,
    given::GivenArray,
    stream::{Current, StreamNumber, failed},
};
use crate::{call::refusal, errors::raise};
use nearfield::{
    ListKind,
    device::{
        DeviceBuffer, DeviceSystemSearch, DeviceSystems, DeviceValue, DeviceView, Lent, Progress,
        Stream,
    },
    systems::{PairIndex, Quantities, SystemReal},
};
use pyo3::prelude::*;
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
pub(crate) enum Numbers {
    Host(Vec<f64>),
    Device(GivenArray),
}

/// What a call was given.
pub(crate) struct Input {
    pub(super) points: GivenArray,
    pub(super) offsets: GivenArray,
    pub(super) radii: Numbers,
    pub(super) cells: Option<Numbers>,
    /// Three flags of every system, or of one for all.
    pub(super) periodic: Vec<u8>,
}

impl Input {
    /// All arrays on the GPU.
    pub(super) fn given(&self) -> impl Iterator<Item = &GivenArray> {
        let numbers = [Some(&self.radii), self.cells.as_ref()];
        let there = numbers
            .into_iter()
            .flatten()
            .filter_map(|numbers| match numbers {
                Numbers::Device(array) => Some(array),
                Numbers::Host(_) => None,
            });
        [&self.points, &self.offsets].into_iter().chain(there)
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

    /// Searches until the pairs have room. The context must be current.
    fn search(&mut self, input: &Input, wanted: Quantities) -> PyResult<Found>;
}

pub(super) fn started<T, I>(
    gpu: u32,
    stream: StreamNumber,
    kind: ListKind,
) -> PyResult<Box<dyn Search>>
where
    T: SystemReal + DeviceValue,
    I: PairIndex + DeviceValue,
{
    // SAFETY: the caller has promised, as far as Python can, that the number is a stream which
    // stays for as long as the search; there is no way to ask the driver.
    let search = unsafe { DeviceSystemSearch::<T, I>::on_borrowed(gpu, stream.handle()) };
    Ok(Box::new(search.map_err(raise)?.lists(kind)))
}

/// Numbers of the host or the device, for one search.
enum There {
    Uploaded(DeviceBuffer<f64>),
    Lent(Lent<f64>),
}

impl There {
    fn of(numbers: &Numbers, stream: &Stream) -> PyResult<Self> {
        Ok(match numbers {
            Numbers::Host(values) => Self::Uploaded(uploaded(stream, values)?),
            Numbers::Device(array) => Self::Lent(array.lend(stream)),
        })
    }

    fn view(&self) -> DeviceView<'_, f64> {
        match self {
            Self::Uploaded(buffer) => buffer.as_view(),
            Self::Lent(lent) => lent.as_view(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a few numbers of each system")]
fn uploaded<V: DeviceValue>(stream: &Stream, values: &[V]) -> PyResult<DeviceBuffer<V>> {
    let made = stream.clone_htod(values);
    made.map_err(|error| failed("numbers of systems to the GPU", error))
}

impl<T, I> Search for DeviceSystemSearch<T, I>
where
    T: SystemReal + DeviceValue,
    I: PairIndex + DeviceValue,
{
    fn stream(&self) -> &Stream {
        DeviceSystemSearch::stream(self)
    }

    fn search(&mut self, input: &Input, wanted: Quantities) -> PyResult<Found> {
        let stream = DeviceSystemSearch::stream(self).clone();
        let (points, offsets) = (
            input.points.lend::<T>(&stream),
            input.offsets.lend::<i64>(&stream),
        );
        let radii = There::of(&input.radii, &stream)?;
        let cells = input
            .cells
            .as_ref()
            .map(|cells| There::of(cells, &stream))
            .transpose()?;
        let periodic = match input.periodic.is_empty() {
            true => None,
            false => Some(uploaded(&stream, &input.periodic)?),
        };
        let systems = DeviceSystems {
            positions: points.as_view(),
            offsets: offsets.as_view(),
            radii: radii.view(),
            cells: cells.as_ref().map(There::view),
            periodic: periodic.as_ref().map(DeviceBuffer::as_view),
        };
        let searched = loop {
            let progress = self
                .neighbors(&systems, wanted)
                .and_then(|()| self.finish(&systems));
            match progress {
                Ok(Progress::Repeat) => {}
                other => break other,
            }
        };
        if let Err(error) = searched {
            // The arrays that were given may be read until the stream has ended.
            let _ = stream.synchronize();
            return Err(raise(error));
        }
        let pairs = self.pairs();
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
}

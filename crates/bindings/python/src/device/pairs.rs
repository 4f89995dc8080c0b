//! Lists with the geometry of their pairs on a GPU, which stay memory of the engine.

use super::{
    array::{Memory, PyDeviceArray},
    columns::OutColumns,
    fate::Fate,
    given::GivenArray,
    layout::Dtype,
    shared::{SharedEngine, State},
    stream::KeptStream,
};
use crate::{errors::raise, pairs::words};
use nearfield::{
    ErrorKind, PointSetId, Precision,
    device::{
        DeviceListsView, DeviceView, GeometryQuantities, PairViews, PointNumber, PositionNumber,
        Stream,
    },
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::sync::Arc;

/// Neighbour lists on a GPU as DeviceNeighbors has them, and numbers of every pair: entry k of
/// every array belongs to entry k of ``indices``. Arrays that were not asked for are None; in an
/// engine of precision "f64" what follows from displacements is float64.
///
/// Valid until one of the two sets is next updated or other quantities are asked for; see
/// DeviceArray.
#[pyclass(name = "DevicePairs", module = "nearfield", frozen)]
pub(crate) struct PyDevicePairs {
    /// First entry of the list of every point; shape (n,), uint64.
    #[pyo3(get)]
    start: Py<PyDeviceArray>,
    /// Number of neighbours of every point; shape (n,), uint32.
    #[pyo3(get)]
    count: Py<PyDeviceArray>,
    /// The neighbour of every pair, and room that belongs to none; shape (m,), uint32.
    #[pyo3(get)]
    indices: Py<PyDeviceArray>,
    /// The point that has the neighbour; shape (m,), uint32.
    #[pyo3(get)]
    targets: Option<Py<PyDeviceArray>>,
    /// By how many box lengths the neighbour is moved along each axis, or by how many of each box
    /// vector; shape (m, 3), int32.
    #[pyo3(get)]
    images: Option<Py<PyDeviceArray>>,
    /// The vector by which it is moved; shape (m, 3), float32 or float64.
    #[pyo3(get)]
    shifts: Option<Py<PyDeviceArray>>,
    /// From the point to its neighbour, moved so; shape (m, 3), float32 or float64.
    #[pyo3(get)]
    displacements: Option<Py<PyDeviceArray>>,
    /// Squared distances; shape (m,), float32 or float64.
    #[pyo3(get)]
    squares: Option<Py<PyDeviceArray>>,
    /// Distances; shape (m,), float32 or float64.
    #[pyo3(get)]
    distances: Option<Py<PyDeviceArray>>,
}

#[pymethods]
impl PyDevicePairs {
    fn __len__(&self) -> usize {
        self.count.get().__len__()
    }

    fn __repr__(&self) -> String {
        format!("<nearfield.DevicePairs of {} points>", self.__len__())
    }
}

/// The quantities of these letters or names. Lists are always there, so "j" asks for nothing more.
pub(super) fn quantities(given: &Bound<'_, PyAny>) -> PyResult<GeometryQuantities> {
    let (mut wanted, mut lists) = (GeometryQuantities::NONE, false);
    for word in words(given)? {
        let quantity = match word.as_str() {
            "i" | "targets" => &mut wanted.targets,
            "j" | "sources" => &mut lists,
            "S" | "images" => &mut wanted.images,
            "shifts" => &mut wanted.shifts,
            "D" | "displacements" => &mut wanted.displacements,
            "squares" => &mut wanted.squares,
            "d" | "distances" => &mut wanted.distances,
            other => {
                return Err(PyValueError::new_err(format!(
                    "quantities are i (targets), j (sources), S (images), D (displacements), d \
                     (distances), \"shifts\" and \"squares\", not {other:?}"
                )));
            }
        };
        *quantity = true;
    }
    if wanted.is_none() {
        return Err(PyValueError::new_err(
            "name a quantity of pairs, or call neighbors() for lists alone",
        ));
    }
    Ok(wanted)
}

/// Arrays before Python has them.
pub(super) struct Arrays {
    lists: [PyDeviceArray; 3],
    /// Targets, images, shifts, displacements, squares, distances.
    pairs: [Option<PyDeviceArray>; 6],
}

impl Arrays {
    /// Views of lists and of what there is of their pairs, which are in this memory.
    pub(super) fn of(
        memory: Memory,
        stream: &Stream,
        lists: DeviceListsView<'_>,
        pairs: PairViews<'_>,
        fate: Arc<Fate>,
    ) -> Self {
        let views = Views {
            memory: Arc::new(memory),
            fate,
            stream,
        };
        let double = pairs.double;
        let number = |single: Option<DeviceView<'_, f32>>, double: Option<DeviceView<'_, f64>>| {
            let double = double.map(|array| views.of(&array, 1, Dtype::F64));
            double.or(single.map(|array| views.of(&array, 1, Dtype::F32)))
        };
        let vector = |single: Option<DeviceView<'_, [f32; 3]>>,
                      double: Option<DeviceView<'_, [f64; 3]>>| {
            let double = double.map(|array| views.of(&array, 3, Dtype::F64));
            double.or(single.map(|array| views.of(&array, 3, Dtype::F32)))
        };
        Self {
            lists: [
                views.of(&lists.start, 1, Dtype::U64),
                views.of(&lists.count, 1, Dtype::U32),
                views.of(&lists.entries, 1, Dtype::U32),
            ],
            pairs: [
                (pairs.targets).map(|array| views.of(&array, 1, Dtype::U32)),
                (pairs.images).map(|array| views.of(&array, 3, Dtype::I32)),
                vector(pairs.shifts, double.shifts),
                vector(pairs.displacements, double.displacements),
                number(pairs.squares, double.squares),
                number(pairs.distances, double.distances),
            ],
        }
    }

    /// The object that has them.
    pub(super) fn hand_over(self, py: Python<'_>) -> PyResult<PyDevicePairs> {
        let own = |array: Option<PyDeviceArray>| array.map(|array| Py::new(py, array)).transpose();
        let [start, count, indices] = self.lists;
        let [targets, images, shifts, displacements, squares, distances] = self.pairs;
        Ok(PyDevicePairs {
            start: Py::new(py, start)?,
            count: Py::new(py, count)?,
            indices: Py::new(py, indices)?,
            targets: own(targets)?,
            images: own(images)?,
            shifts: own(shifts)?,
            displacements: own(displacements)?,
            squares: own(squares)?,
            distances: own(distances)?,
        })
    }
}

/// Makes views of arrays of the engine.
struct Views<'a> {
    memory: Arc<Memory>,
    fate: Arc<Fate>,
    stream: &'a Stream,
}

impl Views<'_> {
    /// The array; `width` numbers an element.
    fn of<T>(&self, array: &DeviceView<'_, T>, width: usize, dtype: Dtype) -> PyDeviceArray {
        let shape = match width {
            1 => vec![array.len()],
            _ => vec![array.len(), width],
        };
        PyDeviceArray {
            memory: self.memory.clone(),
            pointer: array.device_ptr(self.stream).0,
            shape,
            dtype,
            fate: self.fate.clone(),
            stream: KeptStream::new(self.stream),
        }
    }
}

impl State {
    /// Lists of a pair of sets and these quantities of their pairs, written now if there are none
    /// to be used.
    pub(super) fn pairs(
        &mut self,
        shared: &Arc<SharedEngine>,
        of: [usize; 2],
        wanted: GeometryQuantities,
    ) -> PyResult<Arrays> {
        let (t, s) = (self.set(of[0])?, self.set(of[1])?);
        let current = |(pair, fate): &&([usize; 2], Arc<Fate>)| *pair == of && fate.is_usable();
        let kept = (self.lists.iter().find(current)).map(|(_, fate)| fate.clone());
        let same = |state: &Self| {
            let found = state.engine.geometry(t, s);
            found.is_ok_and(|found| found.pairs.quantities() == wanted)
        };
        let fate = match kept.filter(|_| same(self)) {
            Some(fate) => fate,
            None => {
                self.retire(|pair| pair == of);
                self.engine.pair_geometry(t, s, wanted).map_err(raise)?;
                let fate = self.new_fate();
                self.lists.push((of, fate.clone()));
                fate
            }
        };
        self.views_of(shared, [t, s], fate, wanted)
    }

    /// Writes the pairs of two sets to arrays of the caller.
    pub(super) fn write_pairs<T: PositionNumber, I: PointNumber>(
        &mut self,
        of: [usize; 2],
        to: &OutColumns,
        arrays: &[GivenArray],
    ) -> PyResult<()> {
        let (t, s) = (self.set(of[0])?, self.set(of[1])?);
        let stream = self.engine.stream().clone();
        let mut lent = to.lend::<T, I>(&stream, arrays);
        // Lists may be searched for anew, where those that there are lack what is wanted.
        self.retire(|pair| pair == of);
        self.engine
            .write_pairs(t, s, &mut lent.views())
            .map_err(raise)
    }

    /// The arrays that were written.
    fn views_of(
        &self,
        shared: &Arc<SharedEngine>,
        [t, s]: [PointSetId; 2],
        fate: Arc<Fate>,
        wanted: GeometryQuantities,
    ) -> PyResult<Arrays> {
        let stream = self.engine.stream();
        let found = match self.engine.geometry(t, s) {
            Ok(found) => found,
            // Where nothing was found there is no storage to look at.
            Err(error) if matches!(error.kind(), ErrorKind::NoLists { .. }) => {
                let points = self.engine.points(t).map_err(raise)?;
                let double = self.engine.precision() == Precision::Double;
                return none(stream, points, &fate, wanted, double);
            }
            Err(error) => return Err(raise(error)),
        };
        let memory = Memory::Engine(shared.clone());
        Ok(Arrays::of(memory, stream, found.lists, found.pairs, fate))
    }
}

/// Empty lists of so many points.
fn none(
    stream: &Stream,
    points: usize,
    fate: &Arc<Fate>,
    wanted: GeometryQuantities,
    double: bool,
) -> PyResult<Arrays> {
    let real = if double { Dtype::F64 } else { Dtype::F32 };
    let zeros = |shape, dtype| PyDeviceArray::zeros(stream, shape, dtype, fate.clone());
    let if_wanted = |wanted: bool, width: usize, dtype| {
        let shape = if width == 1 { vec![0] } else { vec![0, width] };
        wanted.then(|| zeros(shape, dtype)).transpose()
    };
    Ok(Arrays {
        lists: [
            zeros(vec![points], Dtype::U64)?,
            zeros(vec![points], Dtype::U32)?,
            zeros(vec![0], Dtype::U32)?,
        ],
        pairs: [
            if_wanted(wanted.targets, 1, Dtype::U32)?,
            if_wanted(wanted.images, 3, Dtype::I32)?,
            if_wanted(wanted.shifts, 3, real)?,
            if_wanted(wanted.displacements, 3, real)?,
            if_wanted(wanted.squares, 1, real)?,
            if_wanted(wanted.distances, 1, real)?,
        ],
    })
}

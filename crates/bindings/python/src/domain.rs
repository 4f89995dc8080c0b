//! The box of an engine, as Python programs describe it: `box=`, or `cell=` with `pbc=`.
//!
//! A cell as ASE keeps it does not say where it repeats, and vectors that are all 0 may be a
//! mistake. So nothing is guessed: `cell` needs `pbc`, a periodic axis needs a length, and points
//! with two coordinates have no images along z.

use crate::{points, recycled};
use nearfield::Builder;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBool, PyString},
};

const AXES: [char; 3] = ['x', 'y', 'z'];

/// The keywords of Python.
pub(crate) struct DomainArgs<'a, 'py> {
    pub(crate) r#box: Option<&'a Bound<'py, PyAny>>,
    pub(crate) cell: Option<&'a Bound<'py, PyAny>>,
    pub(crate) pbc: Option<&'a Bound<'py, PyAny>>,
}

/// Where a domain repeats.
#[derive(Clone, Copy, Default)]
pub(crate) struct Domain {
    axes: Axes,
    /// Given by two lengths or two vectors, which says nothing about z.
    is_planar: bool,
}

/// By axis, nothing where it is open.
#[derive(Clone, Copy)]
pub(crate) enum Axes {
    Lengths([Option<f64>; 3]),
    Vectors([Option<[f64; 3]>; 3]),
}

impl Default for Axes {
    fn default() -> Self {
        Self::Lengths([None; 3])
    }
}

/// Numbers as they were given, without a z where that is missing.
enum Numbers {
    Lengths(Vec<f64>),
    Vectors(Vec<Vec<f64>>),
}

impl DomainArgs<'_, '_> {
    /// The box that the keywords describe together.
    pub(crate) fn read(&self) -> PyResult<Domain> {
        let pbc = self.pbc.map(Pbc::of).transpose()?;
        let (given, name) = match (self.r#box, self.cell) {
            (Some(_), Some(_)) => return refused("give box= or cell= with pbc=, not both"),
            (Some(given), None) => (given, "box"),
            (None, Some(given)) => (given, "cell"),
            (None, None) if pbc.is_some_and(|pbc| pbc.0.contains(&Some(true))) => {
                return refused("pbc says that the domain repeats: give its cell= too");
            }
            (None, None) => return Ok(Domain::default()),
        };
        let of_ase = || {
            given.getattr("ase_objtype").is_ok_and(|of| {
                let of = of.extract::<String>();
                of.is_ok_and(|of| of == "cell")
            })
        };
        if pbc.is_none() && (name == "cell" || of_ase()) {
            return refused(
                "a cell does not say where it repeats: give cell=atoms.cell together with \
                 pbc=atoms.pbc, or pbc=True for every axis",
            );
        }
        let numbers = numbers(given, name)?;
        let is_planar = numbers.len() == 2;
        let periodic = match pbc {
            Some(pbc) => pbc.axes(is_planar)?,
            None => numbers.nonzero(name)?,
        };
        for (axis, letter) in AXES.iter().enumerate() {
            if periodic[axis] && numbers.is_zero(axis) {
                return refused(&format!(
                    "pbc says that the domain repeats along {letter}, but the {name} is 0 there: \
                     give a length, or pbc=False for that axis"
                ));
            }
        }
        let axes = match numbers {
            Numbers::Lengths(lengths) => Axes::Lengths(std::array::from_fn(|axis| {
                periodic[axis].then(|| lengths[axis])
            })),
            Numbers::Vectors(vectors) => Axes::Vectors(std::array::from_fn(|axis| {
                periodic[axis].then(|| {
                    let vector = &vectors[axis];
                    std::array::from_fn(|k| vector.get(k).copied().unwrap_or_default())
                })
            })),
        };
        Ok(Domain { axes, is_planar })
    }
}

impl Domain {
    pub(crate) fn apply(self, builder: Builder) -> Builder {
        match self.axes {
            Axes::Lengths(lengths) => builder.periodic(lengths),
            Axes::Vectors(vectors) => builder.box_vectors(vectors),
        }
    }

    /// Three vectors, and where the domain repeats; vectors of open axes are 0.
    pub(crate) fn cell(self) -> ([[f64; 3]; 3], [bool; 3]) {
        let vectors: [Option<[f64; 3]>; 3] = match self.axes {
            Axes::Vectors(vectors) => vectors,
            Axes::Lengths(lengths) => std::array::from_fn(|axis| {
                let mut vector = [0.0; 3];
                lengths[axis].map(|length| {
                    vector[axis] = length;
                    vector
                })
            }),
        };
        (
            vectors.map(Option::unwrap_or_default),
            vectors.map(|vector| vector.is_some()),
        )
    }

    pub(crate) fn axes(self) -> Axes {
        self.axes
    }

    /// Refuses points of two coordinates in a box that repeats along z, and points of three in one
    /// that does not mention z.
    pub(crate) fn suits(self, flat: bool) -> PyResult<()> {
        let along_z = match self.axes {
            Axes::Lengths(lengths) => lengths[2].is_some(),
            Axes::Vectors(vectors) => vectors[2].is_some(),
        };
        match flat {
            true if along_z => refused(
                "the points have two coordinates, but the box repeats along z, where they would \
                 find images of each other: give two lengths, or 0 or pbc=False for z",
            ),
            false if self.is_planar => refused(
                "the points have three coordinates, but the box has two lengths: give three \
                 lengths, or three vectors, 0 for an open axis",
            ),
            _ => Ok(()),
        }
    }
}

/// A box as its three vectors, of shape (3, 3), and whether it repeats along each, for the module
/// `_edges`; nothing where no axis repeats.
#[pyfunction(name = "_box")]
pub(crate) fn box_of<'py>(
    py: Python<'py>,
    r#box: Option<&Bound<'py, PyAny>>,
    cell: Option<&Bound<'py, PyAny>>,
    pbc: Option<&Bound<'py, PyAny>>,
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let domain = DomainArgs { r#box, cell, pbc }.read()?;
    domain.suits(false)?;
    let (cell, periodic) = domain.cell();
    if periodic == [false; 3] {
        return Ok([py.None().into_bound(py), py.None().into_bound(py)]);
    }
    let cell = recycled::table(py, cell.as_flattened().to_vec(), 3)?;
    Ok([cell, periodic.to_vec().into_pyarray(py).into_any()])
}

/// For every axis whether the domain repeats; nothing for one that was not mentioned.
#[derive(Clone, Copy)]
struct Pbc([Option<bool>; 3]);

impl Pbc {
    /// True, False, or one of them for each of two or three axes; 1 and 0 serve too.
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = || {
            PyValueError::new_err(format!(
                "pbc must be True, False, or one of them for every axis, not {given}"
            ))
        };
        if given.cast::<PyArray1<bool>>().is_ok() {
            let flags = points::values::<bool>(given, 1, "pbc")?;
            match *flags {
                [x, y, z] => return Ok(Self([Some(x), Some(y), Some(z)])),
                [x, y] => return Ok(Self([Some(x), Some(y), None])),
                _ => return Err(wrong()),
            }
        }
        if let Some(all) = truth(given) {
            return Ok(Self([Some(all); 3]));
        }
        if given.is_instance_of::<PyString>() {
            return Err(wrong());
        }
        let items = given.try_iter().map_err(|_| wrong())?;
        let mut found = [None; 3];
        let mut count = 0;
        for item in items {
            let place = found.get_mut(count).ok_or_else(wrong)?;
            *place = Some(truth(&item?).ok_or_else(wrong)?);
            count += 1;
        }
        if count < 2 {
            Err(wrong())
        } else {
            Ok(Self(found))
        }
    }

    /// By axis, for a box that mentions z or does not.
    fn axes(self, is_planar: bool) -> PyResult<[bool; 3]> {
        let [Some(x), Some(y), z] = self.0 else {
            return refused("pbc must be True, False, or one of them for every axis");
        };
        match z {
            None if !is_planar => refused("pbc has two values, but the box has three axes"),
            // One value for all axes applies to the existing ones.
            Some(true) if is_planar && !(x && y) => {
                refused("pbc says that the domain repeats along z, but the box has two lengths")
            }
            z => Ok([x, y, !is_planar && z.unwrap_or_default()]),
        }
    }
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::Lengths(lengths) => lengths.len(),
            Self::Vectors(vectors) => vectors.len(),
        }
    }

    /// Whether an axis has the length 0, or none.
    fn is_zero(&self, axis: usize) -> bool {
        match self {
            Self::Lengths(lengths) => lengths.get(axis).is_none_or(|length| *length == 0.0),
            Self::Vectors(vectors) => {
                (vectors.get(axis)).is_none_or(|vector| vector.iter().all(|x| *x == 0.0))
            }
        }
    }

    /// The axes that are not 0, which repeat where nothing else is said.
    fn nonzero(&self, name: &str) -> PyResult<[bool; 3]> {
        let periodic = [0, 1, 2].map(|axis| !self.is_zero(axis));
        if matches!(self, Self::Vectors(_)) && periodic == [false; 3] {
            return refused(&format!(
                "all vectors of the {name} are 0: leave it out, or give pbc=False, where the \
                 domain is open"
            ));
        }
        Ok(periodic)
    }
}

/// Lengths or vectors; arrays and cells of other libraries become lists first.
fn numbers(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Numbers> {
    let wrong = || {
        PyValueError::new_err(format!(
            "{name} must be three lengths, or three vectors of three numbers, 0 for an open axis; \
             for points with two coordinates two lengths, or two vectors of two numbers"
        ))
    };
    if let Some(vectors) = vectors_of(given, name)? {
        return Ok(vectors);
    }
    let list = if given.hasattr("__array__")? {
        let array = given
            .py()
            .import("numpy")?
            .call_method1("asarray", (given,))?;
        if let Some(vectors) = vectors_of(&array, name)? {
            return Ok(vectors);
        }
        let array = array.cast::<PyUntypedArray>().map_err(|_| wrong())?;
        match array.dtype().kind() {
            b'b' => return Err(booleans(name)),
            b'i' | b'u' | b'f' => array.call_method0("tolist")?,
            _ => return Err(wrong()),
        }
    } else {
        given.clone()
    };
    let mut lengths = Vec::new();
    let mut vectors = Vec::new();
    for item in list.try_iter().map_err(|_| wrong())? {
        let item = item.map_err(|_| wrong())?;
        match number(&item, name)? {
            Some(length) => lengths.push(length),
            None => {
                let mut vector = Vec::new();
                for x in item.try_iter().map_err(|_| wrong())? {
                    let x = number(&x.map_err(|_| wrong())?, name)?;
                    vector.push(x.ok_or_else(wrong)?);
                }
                vectors.push(vector);
            }
        }
        if lengths.len() > 3 || vectors.len() > 3 {
            return Err(wrong());
        }
    }
    match (lengths.len(), vectors.len()) {
        (2 | 3, 0) => Ok(Numbers::Lengths(lengths)),
        (0, axes @ (2 | 3)) if vectors.iter().all(|vector| vector.len() == axes) => {
            Ok(Numbers::Vectors(vectors))
        }
        _ => Err(wrong()),
    }
}

/// The vectors of an array of `f64`, as most programs give them: read at once, which is faster.
fn vectors_of(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Numbers>> {
    match given.cast::<PyArray2<f64>>() {
        Ok(array) if matches!(*array.shape(), [2, 2] | [3, 3]) => {
            let numbers = points::copied::<f64>(array.as_untyped(), 1, name)?;
            let rows = numbers.chunks(array.shape()[1]).map(<[f64]>::to_vec);
            Ok(Some(Numbers::Vectors(rows.collect())))
        }
        _ => Ok(None),
    }
}

/// The number, or `None` for another object. Booleans are refused.
fn number(item: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<f64>> {
    if is_boolean(item) {
        return Err(booleans(name));
    }
    // Texts are sequences of texts without end.
    if item.is_instance_of::<PyString>() {
        return Ok(None);
    }
    Ok(item.extract::<f64>().ok())
}

/// Whether it is a bool of Python or NumPy.
fn is_boolean(item: &Bound<'_, PyAny>) -> bool {
    let of_numpy = || -> PyResult<bool> {
        let kind: String = item.getattr("dtype")?.getattr("kind")?.extract()?;
        Ok(kind == "b" && item.getattr("ndim")?.extract::<usize>()? == 0)
    };
    item.is_instance_of::<PyBool>() || of_numpy().unwrap_or_default()
}

/// A bool, or 1 or 0.
fn truth(item: &Bound<'_, PyAny>) -> Option<bool> {
    if is_boolean(item) {
        return item.is_truthy().ok();
    }
    match item.extract::<i64>() {
        Ok(0) => Some(false),
        Ok(1) => Some(true),
        _ => None,
    }
}

fn booleans(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} has lengths, not booleans: give them by {name}=, and where they repeat by pbc="
    ))
}

fn refused<T>(text: &str) -> PyResult<T> {
    Err(PyValueError::new_err(text.to_owned()))
}

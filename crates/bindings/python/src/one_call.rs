//! The one call that makes an engine, asks it and drops it.

use crate::{
    call::{detached_or, guarded},
    domain::DomainArgs,
    errors::raise,
    filters::{self, FilterData},
    neighbors::PyNeighbors,
    points::{Points, Room, field},
    settings::{Settings, rule_named},
};
use nearfield::{NeighborLists, RadiusRule};
use pyo3::prelude::*;

/// The neighbours of every point within a radius.
///
/// points: an array of shape (n, 3) or (n, 2) of float32 (searched in single precision) or float64
/// (in double). Whole numbers, nested lists and tensors on the host serve too; whole numbers and
/// lists are searched in double precision. radius: in the unit of the coordinates. box: three
/// lengths, 0 where an axis is open, or three vectors (rows) along which the domain repeats, all 0
/// for an open axis; the others may point anywhere; two of either for points with two coordinates.
/// cell, pbc: a box in the place of that, as ASE keeps it; see Engine. device: "auto", "cpu", "gpu"
/// or "hybrid". half: every pair once, i < j, in the list of i; see Engine. sorted: lists in
/// ascending order. strict: pairs exactly as far apart as the radius are not neighbours. radii: one
/// per point, an array of shape (n,) of float32, none above the radius, for points in float32;
/// rule: whose radius decides, "symmetric" (the larger one) where radii are given, or "gather" (the
/// target's) or "scatter" (the source's); see Engine. types, cutoffs: the type of every point,
/// shape (n,), and a cut-off for each pair of types, a square matrix. exclusions: pairs that are
/// left out, shape (m, 2). molecules: the molecule of every point, shape (n,), within which pairs
/// are left out. targets: the points that have lists, by number or as a mask. k: only the k
/// nearest, nearest first. threads: 0 for one per core. Errors and Ctrl-C are those of Engine.
#[pyfunction]
#[pyo3(signature = (points, radius, r#box=None, device="auto", *, cell=None, pbc=None, half=false,
                    sorted=false, strict=false, radii=None, rule=None, types=None, cutoffs=None,
                    exclusions=None, molecules=None, targets=None, k=None, threads=0))]
#[allow(clippy::too_many_arguments)] // they are Python's keywords
pub(crate) fn neighbors(
    py: Python<'_>,
    points: &Bound<'_, PyAny>,
    radius: f64,
    r#box: Option<&Bound<'_, PyAny>>,
    device: &str,
    cell: Option<&Bound<'_, PyAny>>,
    pbc: Option<&Bound<'_, PyAny>>,
    half: bool,
    sorted: bool,
    strict: bool,
    radii: Option<&Bound<'_, PyAny>>,
    rule: Option<&str>,
    types: Option<&Bound<'_, PyAny>>,
    cutoffs: Option<&Bound<'_, PyAny>>,
    exclusions: Option<&Bound<'_, PyAny>>,
    molecules: Option<&Bound<'_, PyAny>>,
    targets: Option<&Bound<'_, PyAny>>,
    k: Option<i64>,
    threads: usize,
) -> PyResult<PyNeighbors> {
    let points = Points::of(points, None)?;
    let rule = match (rule, &radii) {
        (Some(rule), _) => rule_named(rule)?,
        (None, Some(_)) => RadiusRule::Symmetric,
        (None, None) => RadiusRule::Uniform,
    };
    let radii = radii
        .map(|radii| field(radii, 1, "radii", points.precision()))
        .transpose()?;
    let filters = FilterData::of(types, exclusions, molecules, targets)?;
    let domain = DomainArgs { r#box, cell, pbc }.read()?;
    domain.suits(points.are_flat())?;
    let settings = Settings {
        radius,
        domain,
        device,
        precision: points.precision(),
        half,
        sorted,
        strict,
        rule,
        cutoffs: cutoffs.map(filters::cutoffs).transpose()?,
        k: k.map(filters::nearest).transpose()?,
        threads,
        memory_limit: None,
    };
    guarded(|| {
        let (mut engine, mut room) = (settings.build()?, Room::default());
        let threads = if points.are_many() {
            engine.report().threads
        } else {
            1
        };
        let positions = points.copied(&mut room, threads)?;
        let lists = detached_or(py, || {
            let set = engine.add_point_set(positions).map_err(raise)?;
            if let Some(radii) = &radii {
                engine.set_radii(set, radii).map_err(raise)?;
            }
            filters.give(&mut engine, set).map_err(raise)?;
            engine.find_neighbors().map_err(raise)?;
            let lists = engine.take_neighbors(set, set, NeighborLists::default());
            lists.map_err(raise)
        })?;
        Ok(PyNeighbors { lists })
    })
}

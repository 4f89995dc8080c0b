//! The one call that makes an engine, asks it and drops it: lists of [`neighbors`], and pairs of
//! [`edges`](crate::edges) with filters, another set or two coordinates.

use crate::{
    call::{detached_or, guarded},
    domain::DomainArgs,
    errors::raise,
    filters::{self, FilterData},
    neighbors::PyNeighbors,
    points::{OwnRadii, Points, Room},
    settings::{Settings, rule_named},
};
use nearfield::{Engine, NeighborLists, PointSetId, Precision, RadiusRule};
use pyo3::{exceptions::PyValueError, prelude::*};

/// An argument that may be missing.
type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Keywords of a call, as Python gives them.
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) radius: f64,
    pub(crate) domain: DomainArgs<'a, 'py>,
    pub(crate) device: &'a str,
    pub(crate) half: bool,
    pub(crate) sorted: bool,
    pub(crate) strict: bool,
    pub(crate) filters: FilterKeywords<'a, 'py>,
    pub(crate) threads: usize,
}

/// Those that leave out pairs within the radius.
pub(crate) struct FilterKeywords<'a, 'py> {
    pub(crate) radii: Given<'a, 'py>,
    pub(crate) rule: Option<&'a str>,
    pub(crate) types: Given<'a, 'py>,
    pub(crate) cutoffs: Given<'a, 'py>,
    pub(crate) exclusions: Given<'a, 'py>,
    pub(crate) molecules: Given<'a, 'py>,
    pub(crate) targets: Given<'a, 'py>,
    pub(crate) k: Option<i64>,
}

impl FilterKeywords<'_, '_> {
    /// The name of the first that was given.
    pub(crate) fn any(&self) -> Option<&'static str> {
        let given = [
            ("radii", self.radii.is_some()),
            ("rule", self.rule.is_some()),
            ("types", self.types.is_some()),
            ("cutoffs", self.cutoffs.is_some()),
            ("exclusions", self.exclusions.is_some()),
            ("molecules", self.molecules.is_some()),
            ("targets", self.targets.is_some()),
            ("k", self.k.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(name, given)| given.then_some(name))
    }
}

/// A search, all of whose arguments were read, but for the coordinates.
pub(crate) struct OneCall<'a, 'py> {
    points: Points<'py>,
    /// What they are searched in, if not themselves.
    other: Option<Points<'py>>,
    radii: Option<OwnRadii>,
    filters: FilterData,
    settings: Settings<'a>,
}

impl<'a, 'py> OneCall<'a, 'py> {
    pub(crate) fn of(
        points: Points<'py>,
        other: Option<Points<'py>>,
        given: Keywords<'a, 'py>,
    ) -> PyResult<Self> {
        let of = given.filters;
        if let Some(other) = &other {
            check_sets(&points, other, given.half, &of)?;
        }
        let rule = match (of.rule, &of.radii) {
            (Some(rule), _) => rule_named(rule)?,
            // The points of another set have no radii.
            (None, Some(_)) if other.is_some() => RadiusRule::Gather,
            (None, Some(_)) => RadiusRule::Symmetric,
            (None, None) => RadiusRule::Uniform,
        };
        let radii = of
            .radii
            .map(|radii| OwnRadii::of(radii, 1, points.precision()))
            .transpose()?;
        let filters = FilterData::of(of.types, of.exclusions, of.molecules, of.targets)?;
        let domain = given.domain.read()?;
        domain.suits(points.are_flat())?;
        let settings = Settings {
            radius: given.radius,
            domain,
            device: given.device,
            precision: points.precision(),
            half: given.half,
            sorted: given.sorted,
            strict: given.strict,
            rule,
            cutoffs: of.cutoffs.map(filters::cutoffs).transpose()?,
            k: of.k.map(filters::nearest).transpose()?,
            threads: given.threads,
            memory_limit: None,
        };
        Ok(Self {
            points,
            other,
            radii,
            filters,
            settings,
        })
    }

    /// The precision of the search.
    pub(crate) fn precision(&self) -> Precision {
        self.settings.precision
    }

    /// An engine that has the points; which set searches in which.
    pub(crate) fn engine(&self, py: Python<'_>) -> PyResult<(Engine, [PointSetId; 2])> {
        let mut engine = self.settings.build()?;
        let threads = if self.points.are_many() {
            engine.report().threads
        } else {
            1
        };
        let (mut room, mut second) = (Room::default(), Room::default());
        let positions = self.points.copied(&mut room, threads)?;
        let other = (self.other.as_ref())
            .map(|other| other.copied(&mut second, threads))
            .transpose()?;
        let (radii, filters) = (&self.radii, &self.filters);
        let sets = detached_or(py, || {
            let set = engine.add_point_set(positions).map_err(raise)?;
            if let Some(radii) = radii {
                engine.set_radii(set, radii.get()).map_err(raise)?;
            }
            filters.give(&mut engine, set).map_err(raise)?;
            let sources = match other {
                Some(other) => engine.add_point_set(other).map_err(raise)?,
                None => set,
            };
            Ok([set, sources])
        })?;
        Ok((engine, sets))
    }
}

/// Refuses what two sets cannot have.
fn check_sets(
    points: &Points<'_>,
    other: &Points<'_>,
    half: bool,
    filters: &FilterKeywords<'_, '_>,
) -> PyResult<()> {
    if points.precision() != other.precision() || points.are_flat() != other.are_flat() {
        return Err(PyValueError::new_err(
            "points and other must have the same type and the same number of coordinates",
        ));
    }
    let one_set = [
        ("half", half),
        ("types", filters.types.is_some()),
        ("cutoffs", filters.cutoffs.is_some()),
        ("exclusions", filters.exclusions.is_some()),
        ("molecules", filters.molecules.is_some()),
        (
            "rule",
            !matches!(filters.rule, None | Some("uniform" | "gather")),
        ),
    ];
    match one_set.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(PyValueError::new_err(format!(
            "{name}= concerns points of one set: with other= there are radii by the rule \
             \"gather\", targets and k; an Engine has the others for every set"
        ))),
    }
}

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
    let filters = FilterKeywords {
        radii,
        rule,
        types,
        cutoffs,
        exclusions,
        molecules,
        targets,
        k,
    };
    let given = Keywords {
        radius,
        domain: DomainArgs { r#box, cell, pbc },
        device,
        half,
        sorted,
        strict,
        filters,
        threads,
    };
    let call = OneCall::of(Points::of(points, "points", None)?, None, given)?;
    guarded(|| {
        let (mut engine, [set, _]) = call.engine(py)?;
        let lists = detached_or(py, || {
            engine.find_neighbors().map_err(raise)?;
            let lists = engine.take_neighbors(set, set, NeighborLists::default());
            lists.map_err(raise)
        })?;
        Ok(PyNeighbors { lists })
    })
}

//! What the tests of the backend share: the GPU, if there is one, and cases brought onto it.

use nearfield_gpu::{DeviceLattice, DevicePoints, Error, GpuBackend, PairOfPoints, PositionBounds};
use nearfield_grid::{Bounds, Domain, Lattice, Radius};
use nearfield_testkit::conformance::Case;
use std::env;

/// The first GPU's backend; None where a test is to be skipped.
pub(crate) fn backend() -> Option<GpuBackend> {
    let required = env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match GpuBackend::new(0) {
        Ok(backend) => Some(backend),
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Sets on the device, on one lattice.
pub(crate) struct Scene {
    pub(crate) lattice: DeviceLattice,
    pub(crate) sets: Vec<DevicePoints>,
}

impl Scene {
    pub(crate) fn new(
        backend: &GpuBackend,
        (radius, domain, subdivision): (f32, Domain, u32),
        sets: &[Vec<[f32; 3]>],
    ) -> Result<Self, Error> {
        let mut placed = Vec::new();
        let mut all = Bounds::EMPTY;
        for points in sets {
            let mut set = backend.points();
            match backend.upload(&mut set, points)? {
                PositionBounds::Bounds(bounds) => {
                    let exact = Bounds::of(points.as_slice().into(), &domain).unwrap();
                    assert_eq!(bounds, exact, "bounds as measured on the device");
                    all = all.union(&bounds);
                    placed.push((set, bounds));
                }
                PositionBounds::NotFinite { first, .. } => panic!("point {first} is not finite"),
            }
        }
        let radius = Radius::new(radius).unwrap();
        let lattice = Lattice::new(radius, domain, subdivision, &all).unwrap();
        let lattice = backend.lattice(&lattice, subdivision)?;
        let mut sets = Vec::new();
        for (mut set, bounds) in placed {
            backend.sort(&mut set, &lattice, &bounds)?;
            sets.push(set);
        }
        Ok(Self { lattice, sets })
    }

    pub(crate) fn of_case(
        backend: &GpuBackend,
        case: &Case,
        subdivision: u32,
    ) -> Result<Self, Error> {
        let domain = match case.vectors {
            Some(vectors) => Domain::from_vectors(vectors).unwrap(),
            None => Domain::new(case.periodic).unwrap(),
        };
        Self::new(backend, (case.radius, domain, subdivision), &case.sets)
    }

    pub(crate) fn pair(&self, targets: usize, sources: usize) -> PairOfPoints<'_> {
        PairOfPoints {
            lattice: &self.lattice,
            targets: &self.sets[targets],
            sources: &self.sets[sources],
            same_set: targets == sources,
            share: None,
            filter: Default::default(),
        }
    }
}

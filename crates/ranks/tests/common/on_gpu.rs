//! Clouds on the GPUs of ranks, and what one engine on the CPU finds in them.

use super::dealt;
use nearfield::{
    Engine, ListOrder,
    device::{DeviceBuffer, DeviceEngine, DeviceField, DeviceValue, Progress},
    kernels::SphDensity,
};
use nearfield_ranks::{
    Error, RankedSet,
    device::{DeviceMigration, DeviceRankedEngine},
};
use nearfield_testkit::cloud::Cloud;

/// Whether there is a GPU.
pub(crate) fn has_gpu() -> bool {
    let required = std::env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match DeviceEngine::builder(1.0).on_gpu(0) {
        Ok(_) => true,
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// A cloud, and how it is searched.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) radius: f32,
    pub(crate) periodic: [Option<f64>; 3],
    pub(crate) points: Vec<[f32; 3]>,
}

pub(crate) fn cases() -> Vec<Case> {
    let cloud = |name, points| Cloud::by_name(name, points, 7).unwrap().to_vec();
    let far = |k: u32| {
        [
            40.0 * k as f32,
            (k % 7) as f32 * 9000.0,
            (k % 3) as f32 * 500.0,
        ]
    };
    let line = |k: u32| [0.4 * k as f32, 0.0, 0.0];
    let case = |name, radius, periodic, points| Case {
        name,
        radius,
        periodic,
        points,
    };
    let (open, boxed) = ([None; 3], [Some(20.0), Some(20.0), Some(20.0)]);
    vec![
        case("lattice", 2.0, open, cloud("lattice", 8000)),
        case("periodic lattice", 2.0, boxed, cloud("lattice", 8000)),
        case(
            "mixed box",
            2.0,
            [None, Some(20.0), None],
            cloud("lattice", 8000),
        ),
        case("clusters", 1.0, open, cloud("clusters", 6000)),
        case("far apart", 41.0, open, (0..600).map(far).collect()),
        case("a line", 1.0, open, (0..300).map(line).collect()),
        case("two points", 1.0, open, vec![[0.0; 3], [0.5, 0.0, 0.0]]),
        case("coincident", 1.0, open, vec![[3.0; 3]; 40]),
    ]
}

pub(crate) fn mass(id: u64) -> f32 {
    1.0 + (id % 5) as f32
}

/// Lists and densities of one engine on the CPU.
pub(crate) fn expected(case: &Case) -> (Vec<Vec<u64>>, Vec<f32>) {
    let builder = Engine::builder(case.radius)
        .periodic(case.periodic)
        .threads(1);
    let mut engine = builder.list_order(ListOrder::Ascending).build().unwrap();
    let set = engine.add_point_set(&case.points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    let lists = lists
        .iter()
        .map(|list| list.iter().map(|j| u64::from(*j)).collect());
    let lists = lists.collect();
    let masses: Vec<f32> = (0..case.points.len()).map(|id| mass(id as u64)).collect();
    let kernel = SphDensity::with_support(case.radius);
    let sums = engine.traverse(&kernel, set, set).sources(&masses).run();
    (lists, sums.unwrap())
}

pub(crate) fn download<T: Copy + Default + DeviceValue>(
    engine: &DeviceRankedEngine,
    array: &DeviceBuffer<T>,
) -> Vec<T> {
    let mut values = vec![T::default(); array.len()];
    let queue = engine.engine().queue();
    queue
        .copy_to_host("results", &array.as_view(), &mut values)
        .unwrap();
    values
}

/// The points of a rank, with their positions and masses on the device.
pub(crate) struct Own {
    pub(crate) set: RankedSet,
    pub(crate) positions: DeviceBuffer<f32>,
    pub(crate) masses: DeviceBuffer<f32>,
}

impl Own {
    pub(crate) fn give(
        engine: &mut DeviceRankedEngine,
        points: &[[f32; 3]],
    ) -> Result<Self, Error> {
        let ids: Vec<u64> = (dealt(points.len(), engine.rank(), engine.ranks()).into_iter())
            .map(|id| id as u64)
            .collect();
        let given: Vec<[f32; 3]> = ids.iter().map(|id| points[*id as usize]).collect();
        let masses: Vec<f32> = ids.iter().map(|id| mass(*id)).collect();
        let given = engine.upload(given.as_flattened())?;
        let masses = engine.upload(&masses)?;
        let (set, moved) = engine.add_point_set(&given.as_view(), Some(&ids))?;
        let mut own = Self {
            set,
            positions: given,
            masses,
        };
        own.follow(engine, &moved)?;
        Ok(own)
    }

    pub(crate) fn follow(
        &mut self,
        engine: &mut DeviceRankedEngine,
        moved: &DeviceMigration,
    ) -> Result<(), Error> {
        self.positions = moved.bring(engine, &self.positions.as_view(), 3)?;
        self.masses = moved.bring(engine, &self.masses.as_view(), 1)?;
        Ok(())
    }

    /// Gives the points the positions that the cloud has now.
    pub(crate) fn move_to(
        &mut self,
        engine: &mut DeviceRankedEngine,
        points: &[[f32; 3]],
    ) -> Result<bool, Error> {
        let ids = engine.ids(self.set)?;
        let now: Vec<[f32; 3]> = ids.iter().map(|id| points[*id as usize]).collect();
        self.positions = engine.upload(now.as_flattened())?;
        let arrays = &mut [(&mut self.positions, 3), (&mut self.masses, 1)];
        let moved = engine.migrate_with(self.set, arrays)?;
        Ok(moved.has_moved())
    }
}

/// By id: list, count and density.
pub(crate) type PointResults = Vec<(u64, Vec<u64>, u32, f32)>;

/// Searches until the step counts.
pub(crate) fn search(
    engine: &mut DeviceRankedEngine,
    own: &Own,
    radius: f32,
) -> Result<PointResults, Error> {
    let set = own.set;
    let points = engine.points(set)?[0];
    let mut counts = engine.zeros::<u32>(points)?;
    let mut sums = engine.zeros::<f32>(points)?;
    let kernel = SphDensity::with_support(radius);
    for _ in 0..5 {
        engine.find_neighbors(set, set)?;
        engine.count_neighbors(set, set, &mut counts.as_view_mut())?;
        let traversal = engine.traverse(&kernel, set, set);
        // Arrays have room behind the points.
        let traversal = traversal.sources(DeviceField::new(own.masses.slice(0..points), 1));
        traversal.run_into(&mut sums.as_view_mut())?;
        if engine.finish()? == Progress::Valid {
            break;
        }
    }
    let lists = engine.lists_by_id(set, set)?;
    let (counts, sums) = (download(engine, &counts), download(engine, &sums));
    let masses = download(engine, &own.masses);
    let ids = engine.ids(set)?;
    for (id, found) in ids.iter().zip(masses) {
        assert_eq!(found, mass(*id), "the mass of {id} has followed it");
    }
    let found = ids.iter().enumerate();
    let found = found.map(|(k, id)| (*id, lists.of(k).to_vec(), counts[k], sums[k]));
    Ok(found.collect())
}

/// Compares what all ranks have found with one engine.
pub(crate) fn compare(case: &Case, ranks: usize, found: Vec<PointResults>) {
    let mut all: Vec<_> = found.into_iter().flatten().collect();
    all.sort_by_key(|(id, ..)| *id);
    let ids = all.iter().map(|(id, ..)| *id);
    assert!(ids.eq(0..case.points.len() as u64), "{}", case.name);
    compare_some(case, ranks, &all);
}

/// Compares what is found of some points with one engine.
pub(crate) fn compare_some(case: &Case, ranks: usize, found: &PointResults) {
    let (lists, sums) = expected(case);
    let name = format!("{} on {ranks} ranks", case.name);
    for (id, list, count, sum) in found {
        let id = *id as usize;
        assert_eq!(list, &lists[id], "{name}: point {id}");
        assert_eq!(*count as usize, lists[id].len(), "{name}: point {id}");
        // A kernel is inexact near the end of its support.
        let error = (sum - sums[id]).abs();
        assert!(
            error <= 1e-5 * sums[id] + 1e-6,
            "{name}: {sum} is not {}",
            sums[id]
        );
    }
}

//! The SPH solver on ranks as threads: sums, moments and errors of the whole.

use crate::common::Counting;
use glam::Vec3;
use nearfield_ranks::{
    RankedEngine,
    dam_break::neighborhood,
    transport::{Transport, threads},
};
use nearfield_sph::{
    Config, Dimensions, Domain, Error, ErrorKind, Loss, Simulation,
    scene::{self, Top},
};

/// A column in a tank, on a rank; space is divided anew every `sort_every` steps.
fn column(transport: impl Transport + 'static, sort_every: u64) -> Result<Simulation, Error> {
    let (plane, spacing) = (Dimensions::Two, 0.1);
    let config = Config {
        domain: Domain {
            low: Vec3::splat(-1.0),
            high: Vec3::splat(5.0),
        },
        sort_every,
        ..Config::water(plane, spacing, 2.0)
    };
    let fluid = scene::block(plane, [0; 3], [10, 20, 0], spacing)?;
    let walls = scene::tank(plane, [30, 30, 0], Top::Closed, 3, spacing)?;
    let builder = Simulation::builder_on(config, transport.rank(), transport.ranks())?;
    let engine = RankedEngine::builder(config.kernel().support())
        .threads(1)
        .deterministic(true)
        .build(transport)
        .map_err(Error::elsewhere)?;
    let builder = builder.fluid(&fluid).walls(&walls);
    builder.build_on(neighborhood(engine))
}

/// The outcomes of all ranks, which all succeed.
fn on_ranks<R: Send>(ranks: usize, body: impl Fn(Simulation) -> Result<R, Error> + Sync) -> Vec<R> {
    let outcomes = threads::run(ranks, |transport| body(column(transport, 2)?));
    let outcome = |outcome: Result<Result<R, Error>, _>| outcome.unwrap().unwrap();
    outcomes.into_iter().map(outcome).collect()
}

#[test]
fn sums_fronts_and_moments_are_those_of_all_ranks() {
    let found = [1, 4].map(|ranks| {
        let mut found = on_ranks(ranks, |mut simulation| {
            for _ in 0..5 {
                simulation.step()?;
            }
            assert_eq!(simulation.len(), 200);
            assert!((simulation.mass() - 2000.0).abs() < 1e-3);
            let counts = simulation.neighbor_counts()?;
            assert_eq!(counts.len(), simulation.positions().len());
            let rule = nearfield_sph::FrontRule {
                share: 0.01,
                low: 0.0,
                high: 3.0,
            };
            let moment = simulation.moment()?.wait()?;
            assert_eq!(
                moment.ids().len(),
                if simulation.rank() == 0 { 200 } else { 0 }
            );
            assert!(
                moment
                    .ids()
                    .iter()
                    .copied()
                    .eq(0..moment.ids().len() as u64)
            );
            let sums = (simulation.energy()?, simulation.momentum()?);
            Ok((sums, simulation.front(&rule)?, moment.positions().to_vec()))
        });
        let first = found.remove(0);
        for (sums, front, moment) in &found {
            assert_eq!((sums, front), (&first.0, &first.1));
            assert!(moment.is_empty());
        }
        first
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_step_has_few_reductions() {
    let found = threads::run(3, |transport| {
        let (counting, counts) = Counting::new(transport);
        let mut simulation = column(counting, 1000)?;
        let mut calls = Vec::new();
        for _ in 0..10 {
            counts.lock().unwrap().collective = 0;
            simulation.step()?;
            calls.push(counts.lock().unwrap().collective);
        }
        Ok::<_, Error>(calls)
    });
    for calls in found {
        // Five sums over neighbours, two over particles, the arrays, and the migration: one if no
        // particle leaves its rank, two if one does.
        let calls = calls.unwrap().unwrap();
        assert!(
            calls.iter().all(|calls| [9, 10].contains(calls)),
            "{calls:?}"
        );
    }
}

#[test]
fn a_lost_particle_is_the_same_error_on_all_ranks() {
    let found = on_ranks(3, |mut simulation| {
        let none = simulation.set_velocity(200, Vec3::X).unwrap_err();
        assert!(matches!(
            none.kind(),
            ErrorKind::NoSuchParticle { id: 200, last: 199 }
        ));
        simulation.set_velocity(77, Vec3::splat(f32::NAN))?;
        simulation.set_velocity(12, Vec3::new(0.0, f32::NAN, 0.0))?;
        let lost = simulation.step().unwrap_err();
        let ErrorKind::Lost(lost) = lost.kind() else {
            panic!("{lost}");
        };
        assert!(lost.velocity.y.is_nan() && lost.step == 1);
        Ok((lost.id, lost.reason, lost.count))
    });
    assert_eq!(found, vec![(12, Loss::NotANumber, 2); 3]);
}

#[test]
fn a_rank_that_gives_up_is_an_error_with_its_reason_on_the_others() {
    let found = threads::run(3, |transport| {
        let rank = transport.rank();
        let mut simulation = column(transport, 2)?;
        if rank == 1 {
            simulation.give_up("the disk is full");
        }
        simulation.step().map(drop)
    });
    for found in found {
        let text = found.unwrap().unwrap_err().to_string();
        assert!(text.contains("the disk is full"), "{text}");
    }
}

#[test]
fn a_neighbourhood_of_other_ranks_is_refused() {
    let refused = threads::run(2, |transport| {
        let engine = RankedEngine::builder(1.0)
            .threads(1)
            .build(transport)
            .unwrap();
        let config = Config::water(Dimensions::Two, 0.1, 1.0);
        let builder = Simulation::builder(config).fluid(&[Vec3::ZERO]);
        builder.build_on(neighborhood(engine)).map(drop)
    });
    for refused in refused {
        let text = refused.unwrap().unwrap_err().to_string();
        assert!(text.contains("rank of the neighbourhood"), "{text}");
    }
    assert!(Simulation::builder_on(Config::water(Dimensions::Two, 0.1, 1.0), 2, 2).is_err());
}

//! Bad input and lost ranks: the same error on every rank, no hang, and an engine that is usable
//! after what it refused.

use crate::common::{on_ranks, within};
use nearfield::{Device, ListKind, Pair, PairKernel, RadiusRule, kernels::SphDensity};
use nearfield_ranks::{
    Error, ErrorKind, PointOfRank, RankedEngine,
    transport::{Fault, FaultCause, Transport, threads},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Twenty points of a row, beginning where those of the rank before end.
fn row(rank: usize) -> Vec<[f32; 3]> {
    let first = 20 * rank;
    (first..first + 20)
        .map(|i| [0.5 * i as f32, 0.0, 0.0])
        .collect()
}

/// The refusal of all ranks, which must be the same.
fn same_refusal(errors: Vec<Error>) -> (usize, Option<PointOfRank>, String) {
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    match errors[0].kind() {
        ErrorKind::Refused {
            rank,
            point,
            message,
        } => (*rank, *point, message.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bad_coordinate_is_the_same_error_on_all_ranks() {
    within(20, || {
        for precise in [false, true] {
            let errors = on_ranks(4, |transport| {
                let mut engine = RankedEngine::builder(1.0)
                    .threads(1)
                    .build::<f32>(transport)?;
                let (rank, mut points) = (engine.rank(), row(engine.rank()));
                let set = engine.add_point_set(&points, None)?;
                engine.find_neighbors()?;
                let before = engine.lists_by_id(set, set)?;
                if rank == 2 {
                    points[5][1] = f32::NAN;
                } else if rank == 3 {
                    points[0][0] = f32::INFINITY;
                }
                let error = if precise {
                    engine.migrate(set, &points).map(drop).unwrap_err()
                } else {
                    engine.update(set, &points).unwrap_err()
                };
                // The set has kept its positions and its lists.
                assert_eq!(engine.lists_by_id(set, set)?, before);
                engine.update(set, &row(rank))?;
                engine.find_neighbors()?;
                assert_eq!(engine.lists_by_id(set, set)?, before);
                Ok(error)
            });
            let (rank, point, message) = same_refusal(errors);
            assert_eq!((rank, point), (2, Some(PointOfRank { index: 5, id: 45 })));
            assert!(
                message.contains("point set 0: point 5 has y = NaN"),
                "{message}"
            );
        }
    });
}

#[test]
fn a_set_that_is_refused_is_not_added() {
    within(20, || {
        let errors = on_ranks(3, |transport| {
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(transport)?;
            let rank = engine.rank();
            let bad = [[f32::NAN, 0.0, 0.0]];
            let given: &[[f32; 3]] = if rank == 1 { &bad } else { &[] };
            let error = engine.add_point_set(given, None).unwrap_err();
            let set = engine.add_point_set(&row(rank), None)?;
            assert_eq!(engine.ids(set)?[0], 20 * rank as u64);
            engine.find_neighbors()?;
            Ok(error)
        });
        let (rank, point, _) = same_refusal(errors);
        assert_eq!((rank, point), (1, Some(PointOfRank { index: 0, id: 0 })));
    });
}

#[test]
fn ids_that_are_given_twice_are_refused() {
    within(20, || {
        for (first, second, ranks) in [(2, 0, "0 and 2"), (1, 1, "1 and 1")] {
            let errors = on_ranks(3, |transport| {
                let mut engine = RankedEngine::builder(1.0)
                    .threads(1)
                    .build::<f32>(transport)?;
                let rank = engine.rank();
                let mut ids: Vec<u64> = (0..20).map(|k| 1000 * rank as u64 + k).collect();
                for (who, at) in [(first, 3), (second, 4)] {
                    if rank == who {
                        ids[at] = 777;
                    }
                }
                Ok(engine.add_point_set(&row(rank), Some(&ids)).unwrap_err())
            });
            let (_, _, message) = same_refusal(errors);
            let expected = format!("two points have the id 777, given by the ranks {ranks}");
            assert_eq!(message, expected);
        }
        let errors = on_ranks(3, |transport| {
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(transport)?;
            let rank = engine.rank();
            let ids: Vec<u64> = (0..20).collect();
            let ids = (rank == 1).then_some(ids.as_slice());
            Ok(engine.add_point_set(&row(rank), ids).unwrap_err())
        });
        assert!(same_refusal(errors).2.contains("some ranks give ids"));
    });
}

#[test]
fn arrays_of_the_wrong_length_are_refused_on_all_ranks() {
    within(20, || {
        let found = on_ranks(3, |transport| {
            let builder = RankedEngine::builder(1.0)
                .threads(1)
                .radii(RadiusRule::Gather);
            let mut engine = builder.build::<f32>(transport)?;
            let rank = engine.rank();
            let points = row(rank);
            let set = engine.add_point_set(&points, None)?;
            let no_radii = engine.find_neighbors().unwrap_err();
            let mut radii = vec![0.75; 20];
            radii[7] = if rank == 2 { -1.0 } else { 0.75 };
            let negative = engine.set_radii(set, &radii).unwrap_err();
            engine.set_radii(set, &[0.75; 20])?;
            engine.find_neighbors()?;
            let fewer = if rank == 1 { 19 } else { 20 };
            let positions = engine.update(set, &points[..fewer]).unwrap_err();
            let kernel = SphDensity::with_support(1.0);
            let masses = vec![1.0; fewer];
            let traversal = engine.traverse(&kernel, set, set).sources(&masses);
            let fields = traversal.run().unwrap_err();
            let too_far = SphDensity::with_support(2.0);
            let traversal = engine.traverse(&too_far, set, set).sources(&[1.0; 20]);
            let support = traversal.run().unwrap_err();
            let migration = engine.migrate(set, &points)?;
            let array = migration.bring(&mut engine, &masses).unwrap_err();
            // All of it has left the engine usable.
            let now = vec![1.0; migration.bring(&mut engine, &[0u8; 20])?.len()];
            let density = engine.traverse(&kernel, set, set).sources(&now).run()?;
            assert!(density.iter().all(|density| *density > 0.0));
            Ok([no_radii, negative, positions, fields, support, array])
        });
        let refused = |k: usize| same_refusal(found.iter().map(|all| all[k].clone()).collect());
        assert!(refused(0).2.contains("has no radii"), "{:?}", refused(0));
        let (rank, point, message) = refused(1);
        assert_eq!((rank, point), (2, Some(PointOfRank { index: 7, id: 47 })));
        assert!(message.contains("point 7 has the radius -1"), "{message}");
        for (k, text) in [
            (2, "19 positions for 20 points"),
            (3, "19 elements for 20"),
            (5, "19 values"),
        ] {
            let (rank, _, message) = refused(k);
            assert!(rank == 1 && message.contains(text), "{message}");
        }
        assert_eq!(refused(4).0, 0);
    });
}

#[test]
fn settings_that_one_rank_cannot_use_are_refused_on_all() {
    within(20, || {
        let errors = on_ranks(3, |transport| {
            let builder = RankedEngine::builder(1.0).threads(1);
            let builder = match transport.rank() {
                2 => builder.device(Device::Gpu(4096)),
                _ => builder.device(Device::Cpu),
            };
            Ok(builder.build::<f32>(transport).unwrap_err())
        });
        assert_eq!(same_refusal(errors).0, 2);
        let errors = on_ranks(2, |transport| {
            let builder = RankedEngine::builder(1.0).lists(ListKind::Half);
            Ok(builder
                .deterministic(true)
                .build::<f64>(transport)
                .unwrap_err())
        });
        assert!(same_refusal(errors).2.contains("half lists"));
    });
}

/// A kernel that panics on one rank, in the middle of a traversal.
struct Panics(AtomicBool);

impl PairKernel for Panics {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        assert!(!self.0.load(Ordering::Relaxed), "on purpose");
        1.0
    }
}

#[test]
fn a_panic_in_the_middle_of_a_step_is_a_fault_on_every_rank() {
    within(20, || {
        let found = threads::run(4, |transport| {
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(transport)?;
            let rank = engine.rank();
            let set = engine.add_point_set(&row(rank), None)?;
            let kernel = Panics(AtomicBool::new(false));
            assert_eq!(engine.traverse(&kernel, set, set).run()?.len(), 20);
            kernel.0.store(rank == 1, Ordering::Relaxed);
            let lost = engine.traverse(&kernel, set, set).run().unwrap_err();
            // Every later call has the same fault.
            let later = engine.find_neighbors().unwrap_err();
            assert_eq!(lost, later);
            Ok::<_, Error>(lost)
        });
        let fault = Fault {
            rank: 1,
            cause: FaultCause::Panicked,
        };
        for (rank, found) in found.into_iter().enumerate() {
            match rank {
                1 => assert_eq!(found.unwrap_err(), fault),
                // A rank that is still in the call before finds the fault there.
                _ => {
                    let lost = found.unwrap().unwrap_or_else(|error| error);
                    assert_eq!(lost, Error::from(fault.clone()));
                }
            }
        }
    });
}

#[test]
fn a_rank_that_leaves_is_a_fault_on_every_rank() {
    within(20, || {
        for leaver in [0, 2] {
            let found = threads::run(3, |transport| {
                let mut engine = RankedEngine::builder(1.0)
                    .threads(1)
                    .build::<f32>(transport)?;
                let rank = engine.rank();
                let set = engine.add_point_set(&row(rank), None)?;
                if rank != leaver {
                    engine.update(set, &row(rank))?;
                }
                Ok::<_, Error>(())
            });
            let fault = Error::from(Fault {
                rank: leaver,
                cause: FaultCause::Left,
            });
            for (rank, found) in found.into_iter().enumerate() {
                let expected = if rank == leaver {
                    Ok(())
                } else {
                    Err(fault.clone())
                };
                assert_eq!(found.unwrap(), expected);
            }
        }
    });
}

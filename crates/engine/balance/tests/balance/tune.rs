//! Sweeps and where policies settle, as plain data.

use nearfield_balance::{EmulatedSpec, Policy, Traffic, tune};

#[test]
fn a_sweep_has_both_extremes_its_best_and_every_policy() {
    let layout = crate::common::layout(crate::common::pool_and_spray(), 4, Traffic::LISTS);
    let spec: EmulatedSpec = "speed=3,bandwidth=10".parse().unwrap();
    let policies = [Policy::Model, Policy::BAND, Policy::Fraction];
    let tuning = tune(&layout, spec, &policies, 100, 120).unwrap();
    assert_eq!(tuning.sweep.len(), 101);
    let (first, last) = (tuning.sweep[0], tuning.sweep[100]);
    assert_eq!((first.theta, first.share, first.cpu_ms), (0.0, 0.0, 0.0));
    assert_eq!(
        (last.theta, last.share, last.gpu_ms),
        (layout.highest(), 1.0, 0.0)
    );
    for pair in tuning.sweep.windows(2) {
        assert!(pair[0].theta <= pair[1].theta && pair[0].share <= pair[1].share);
        assert!(pair[0].cpu_ms <= pair[1].cpu_ms);
    }
    for row in &tuning.sweep {
        assert!(row.total_ms >= row.cpu_ms.max(row.gpu_ms));
        assert!(row.total_ms >= tuning.best.total_ms);
    }
    assert!(tuning.best.total_ms < 0.9 * first.total_ms.min(last.total_ms));
    let model = &tuning.policies["model"];
    assert!(model.steps.is_some_and(|steps| steps <= 8), "{model:?}");
    assert!(model.total_ms <= tuning.best.total_ms * 1.03);
    assert!((model.share - tuning.best.share).abs() < 0.05);
    // A policy that ignores occupancy does worse here, because the GPU is slow on spray.
    assert!(tuning.policies["fraction"].total_ms > model.total_ms);
    assert!(tuning.policies["band:0.8:0.95"].total_ms < 1.15 * tuning.best.total_ms);
}

#[cfg(feature = "serde")]
#[test]
fn it_becomes_json_with_the_documented_keys() {
    let layout = crate::common::layout(crate::common::uniform(), 7, Traffic::SUMS);
    let tuning = tune(&layout, EmulatedSpec::default(), &[Policy::Model], 4, 20).unwrap();
    let json = serde_json::to_value(&tuning).unwrap();
    for key in ["theta", "share", "cpu_ms", "gpu_ms", "total_ms"] {
        assert!(
            json["sweep"][0][key].is_number() && json["best"][key].is_number(),
            "{key}"
        );
    }
    for key in ["theta", "total_ms", "steps"] {
        assert!(json["policies"]["model"][key].is_number(), "{key}");
    }
    assert_eq!(json["subregions"], 32);
    assert_eq!(json["bricks"], 64);
}

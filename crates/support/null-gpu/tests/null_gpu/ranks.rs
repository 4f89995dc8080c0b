//! Ranks of one machine take its GPUs in turn, and report the ones that they have.
//!
//! The null GPU computes nothing, so this says nothing of results.

#[path = "../../../../ranks/tests/common/by_address.rs"]
mod by_address;

use crate::common::{counts, on_null_gpus};
use by_address::ByAddress;
use nearfield::Device;
use nearfield_ranks::{
    RankedEngine, dam_break, device::DeviceRankedEngine, gpus, transport::threads,
};
use nearfield_sph::Neighborhood;

/// The devices of five ranks: the third asks for the GPU with number 1, the fourth for none.
fn devices(hybrid: bool) -> Vec<Device> {
    let ran = threads::run(5, |mut transport| {
        let rank = nearfield_ranks::transport::Transport::rank(&transport);
        let wanted = ![2, 3].contains(&rank);
        let turn = gpus::in_turn(&mut transport, wanted).unwrap();
        assert_eq!(turn.is_some(), wanted);
        let device = match (rank, turn) {
            (3, _) => Device::Cpu,
            (_, number) if hybrid => Device::Hybrid(number.unwrap_or(1)),
            (_, number) => Device::Gpu(number.unwrap_or(1)),
        };
        let engine = RankedEngine::builder(1.0).device(device).threads(1);
        let engine: RankedEngine = engine.build(transport).unwrap();
        dam_break::neighborhood(engine).running().device
    });
    ran.into_iter().map(Result::unwrap).collect()
}

#[test]
fn ranks_take_the_gpus_of_their_machine_in_turn() {
    on_null_gpus(2, "ranks::in_turn");
}

#[test]
#[ignore = "runs in a child"]
fn in_turn() {
    assert_eq!(Device::visible_gpus().unwrap().len(), 2);
    for (hybrid, gpu) in [
        (false, Device::Gpu as fn(u32) -> Device),
        (true, Device::Hybrid),
    ] {
        let expected = [gpu(0), gpu(1), gpu(1), Device::Cpu, gpu(0)];
        assert_eq!(devices(hybrid), expected);
    }
}

#[test]
fn ranks_with_auto_take_the_gpus_of_their_machine_in_turn() {
    on_null_gpus(2, "ranks::auto_in_turn");
}

#[test]
#[ignore = "runs in a child"]
fn auto_in_turn() {
    // A cube of more points than a GPU is worth, for each rank; the second has a device of its own.
    let side = 24;
    let taken = threads::run(4, |transport| {
        let rank = nearfield_ranks::transport::Transport::rank(&transport);
        let builder = RankedEngine::builder(1.0).threads(1);
        let builder = match rank {
            1 => builder.device(Device::Cpu),
            _ => builder,
        };
        let mut engine: RankedEngine = builder.build(transport).unwrap();
        let axis = |k: usize| 0.9 * (k % side) as f32;
        let far = 100.0 * rank as f32;
        let points =
            (0..side * side * side).map(|k| [far + axis(k), axis(k / side), axis(k / side / side)]);
        let points: Vec<[f32; 3]> = points.collect();
        let set = engine.add_point_set(&points, None).unwrap();
        let points = engine
            .migrate(set, &points)
            .unwrap()
            .bring(&mut engine, &points)
            .unwrap();
        // A GPU is started on a thread of its own, and taken in by the first update after that.
        loop {
            engine.update(set, &points).unwrap();
            let ready = format!("{engine:?}").contains("device: hybrid") || rank == 1;
            let mut all = [f64::from(u8::from(ready))];
            engine.min(&mut all).unwrap();
            if all == [1.0] {
                return dam_break::neighborhood(engine).running().device;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    let taken: Vec<Device> = taken.into_iter().map(Result::unwrap).collect();
    let expected = [
        Device::Hybrid(0),
        Device::Cpu,
        Device::Hybrid(1),
        Device::Hybrid(0),
    ];
    assert_eq!(taken, expected);
}

#[test]
fn without_a_gpu_ranks_are_refused_by_name() {
    on_null_gpus(0, "ranks::no_gpu");
}

#[test]
#[ignore = "runs in a child"]
fn no_gpu() {
    assert!(Device::visible_gpus().unwrap().is_empty());
    let home = tempfile::tempdir().unwrap();
    let args = dam_break::Args {
        run: nearfield_dam_break::Args {
            device: "gpu".parse().unwrap(),
            output: home.path().to_owned(),
            ..nearfield_dam_break::Args::default()
        },
        ..dam_break::Args::default()
    };
    let error = dam_break::run_on_threads(&args, 2).unwrap_err().to_string();
    assert!(error.contains("device gpu:0 is not available"), "{error}");
}

#[test]
fn a_dam_break_on_gpus_of_ranks_keeps_its_particles() {
    on_null_gpus(2, "ranks::dam_break_on_gpus");
}

#[test]
#[ignore = "runs in a child"]
fn dam_break_on_gpus() {
    let home = tempfile::tempdir().unwrap();
    let run = |name: &str, deterministic| {
        let output = home.path().join(name);
        let args = dam_break::Args {
            run: nearfield_dam_break::Args {
                device: "gpu".parse().unwrap(),
                particles: Some(3000),
                seconds: Some(0.02),
                frames: Some(2),
                checkpoint: Some(1),
                output: output.clone(),
                ..nearfield_dam_break::Args::default()
            },
            deterministic,
            ..dam_break::Args::default()
        };
        (dam_break::run_on_threads(&args, 3), output)
    };
    let (summary, output) = run("live", false);
    let summary = summary.unwrap();
    assert!(summary.steps > 0);
    for file in ["dam_break.checkpoint", "frame_0001.vtp"] {
        assert!(output.join(file).is_file(), "no {file}");
    }
    let spread = summary.spread.unwrap();
    let particles: u64 = spread.particles_per_rank.iter().sum();
    assert_eq!(particles, summary.particles as u64);
    assert_eq!(spread.device_per_rank, ["gpu:0", "gpu:1", "gpu:0"]);

    // Sums by ascending ids are over lists of host data, which the GPUs find too.
    let (summary, output) = run("deterministic", true);
    let summary = summary.unwrap();
    assert!(summary.steps > 0 && output.join("frame_0001.vtp").is_file());
}

#[test]
fn contexts_are_made_once_for_each_gpu() {
    on_null_gpus(2, "ranks::held_contexts");
}

#[test]
#[ignore = "runs in a child"]
fn held_contexts() {
    // Two ranks share the second GPU, each with a context that it opens itself.
    let engines = |gpu_messages| {
        let ran = threads::run(3, |transport| {
            let rank = nearfield_ranks::transport::Transport::rank(&transport);
            let builder = RankedEngine::builder(1.0).device(Device::Gpu(rank.min(1) as u32));
            let builder = builder.gpu_messages(gpu_messages);
            let engine = DeviceRankedEngine::start(builder, ByAddress(transport)).unwrap();
            assert!(counts().contexts > 0);
            drop(engine);
        });
        ran.into_iter().for_each(|ran| ran.unwrap());
    };
    for gpu_messages in [false, true, true] {
        engines(gpu_messages);
        assert_eq!(counts().contexts, 2, "one is held for each GPU");
    }
}

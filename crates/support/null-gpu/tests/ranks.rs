//! Ranks of one machine take its GPUs in turn, and report the ones that they have.
//!
//! The null GPU computes nothing, so this says nothing of results.
#![cfg(target_os = "linux")]

mod common;

use common::on_null_gpus;
use nearfield::Device;
use nearfield_ranks::{RankedEngine, dam_break, gpus, transport::threads};
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
    on_null_gpus(2, "in_turn");
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
fn without_a_gpu_ranks_are_refused_by_name() {
    on_null_gpus(0, "no_gpu");
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
        deterministic: false,
    };
    let error = dam_break::run_on_threads(&args, 2).unwrap_err().to_string();
    assert!(error.contains("device gpu:0 is not available"), "{error}");
}

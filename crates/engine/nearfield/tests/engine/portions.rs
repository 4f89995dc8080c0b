//! The emulated device hands out in portions what a GPU does, by the same code around it.

use crate::portions_of::{
    check_batches, check_chunks, check_moving_cloud, check_queries, check_visits,
};
use nearfield::Device;
use nearfield_testkit::{conformance::Case, oracle::RadiusRule};

fn emulated() -> Device {
    Device::Emulated(Default::default())
}

fn uniform(case: &Case) -> bool {
    case.rule == RadiusRule::Uniform
}

#[test]
fn chunks_of_a_device_are_those_of_the_cpu() {
    check_chunks(emulated(), uniform);
}

#[test]
fn batches_of_a_device_are_those_of_the_cpu() {
    check_batches(emulated(), uniform);
}

#[test]
fn queries_of_a_device_are_those_of_the_cpu() {
    check_queries(emulated(), uniform);
}

#[test]
fn visits_of_a_device_are_those_of_the_cpu() {
    check_visits(emulated(), uniform);
}

#[test]
fn portions_of_a_moving_cloud_come_as_on_the_cpu() {
    check_moving_cloud(emulated(), 12_000);
}

//! Texts of command lines and settings: names of devices, policies, strategies, architectures and
//! integrators, descriptions of emulated GPUs, and boxes.
//!
//! A value that a parser takes must print as a text that it takes as the same value. A device that
//! is taken and needs no hardware must run.

use nearfield::{
    Device, Engine,
    balance::{Policy, Strategy, emulated::EmulatedSpec},
};
use nearfield_gpu::Arch;
use nearfield_grid::Domain;
use nearfield_md::Cell;
use nearfield_nbody::Integrator;
use std::{
    fmt::{Debug, Display},
    str::FromStr,
};

/// Reads `bytes` as each kind of text and checks what comes out.
///
/// # Panics
/// When a parser breaks a promise.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let policy = reads_what_it_prints::<Policy>(text);
    reads_what_it_prints::<EmulatedSpec>(text);
    reads_what_it_prints::<Strategy>(text);
    reads_what_it_prints::<Arch>(text);
    if let Err(error) = text.parse::<Integrator>() {
        assert!(!error.to_string().is_empty());
    }
    let device = reads_what_it_prints::<Device>(text);
    match (device, policy) {
        (Some(device @ Device::Emulated(_)), _) => run(device, Policy::default()),
        (_, Some(policy)) => run(Device::Emulated(EmulatedSpec::default()), policy),
        _ => {}
    }
    boxes(text);
}

fn reads_what_it_prints<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T>
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(read) => {
            let printed = read.to_string();
            match printed.parse::<T>() {
                Ok(again) => assert_eq!(again, read, "{text:?}, printed as {printed:?}"),
                Err(error) => panic!("{text:?} prints as {printed:?}: {error}"),
            }
            Some(read)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// Three steps of lists, against the CPU alone.
fn run(device: Device, policy: Policy) {
    let points: Vec<[f32; 3]> = (0..64u8)
        .map(|n| [n % 4, n / 4 % 4, n / 16].map(|x| f32::from(x) * 0.6))
        .collect();
    let lists = |device: Device| {
        let builder = Engine::builder(1.0)
            .device(device)
            .policy(policy)
            .threads(1);
        let mut engine = match builder.build() {
            Ok(engine) => engine,
            Err(error) => panic!("{device} with the policy {policy}: {error}"),
        };
        let set = engine.add_point_set(&points).unwrap();
        for _ in 0..3 {
            engine.update(set, &points).unwrap();
            engine.find_neighbors().unwrap();
        }
        let found = engine.neighbors(set, set).unwrap();
        let lists = found.iter().map(|list| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        });
        lists.collect::<Vec<_>>()
    };
    assert_eq!(lists(device), lists(Device::Cpu), "{device}, {policy}");
}

/// Up to nine numbers, as lengths, tilts and vectors of a box. An empty place is an open axis.
fn boxes(text: &str) {
    let numbers = text.split(',').map(|part| part.trim().parse::<f64>().ok());
    let numbers: Vec<_> = numbers.take(9).collect();
    let at = |n: usize| numbers.get(n).copied().flatten();
    let lengths = [at(0), at(1), at(2)];
    let tilts = [at(3), at(4), at(5)].map(Option::unwrap_or_default);
    let vectors = [0, 1, 2].map(|k| match [at(3 * k), at(3 * k + 1), at(3 * k + 2)] {
        [Some(x), Some(y), Some(z)] => Some([x, y, z]),
        _ => None,
    });
    for domain in [
        Domain::new(lengths),
        Domain::triclinic(lengths, tilts),
        Domain::from_vectors(vectors),
    ] {
        match domain {
            Ok(domain) => {
                let mut found = domain.lengths().into_iter().flatten();
                assert!(
                    found.all(|length| length > 0.0 && length.is_finite()),
                    "{domain:?}"
                );
            }
            Err(error) => crate::message::check_line(&error.to_string()),
        }
    }
    match Cell::new(vectors) {
        Ok(cell) => assert!(cell.volume().is_none_or(|volume| volume > 0.0), "{cell:?}"),
        Err(error) => crate::message::check_line(&error.to_string()),
    }
}

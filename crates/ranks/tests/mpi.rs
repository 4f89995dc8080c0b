//! Ranks as processes keep to the protocol of transports, and have the bits of one engine.
//!
//! Without MPI around it this program starts itself with `mpirun`, on 1, 2 and 3 ranks, and ends
//! them if they take too long: the watchdog that the library does without.

mod protocol;

use nearfield_ranks::{
    RankedEngine,
    transport::{Transport, mpi::Mpi},
};
use std::{
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

/// Set by this program for its ranks.
const RANKED: &str = "NEARFIELD_TEST_RANK";
/// Time for all cases on one number of ranks.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if std::env::var_os(RANKED).is_some() {
        ranked();
        return ExitCode::SUCCESS;
    }
    // The answer of a test harness to `--list`.
    if std::env::args().any(|argument| argument == "--list") {
        println!("protocol_over_mpi: test");
        return ExitCode::SUCCESS;
    }
    for ranks in [1, 2, 3] {
        if let Err(text) = launch(ranks) {
            eprintln!("on {ranks} ranks: {text}");
            return ExitCode::FAILURE;
        }
        println!("on {ranks} ranks: ok");
    }
    ExitCode::SUCCESS
}

/// Runs this program on ranks.
fn launch(ranks: usize) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]).arg(own);
    let started = command.env(RANKED, "1").spawn();
    let mut child = started.map_err(|error| format!("mpirun: {error}"))?;
    let begin = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if begin.elapsed() > LIMIT => {
                child.kill().map_err(|error| error.to_string())?;
                return Err(format!("no end after {LIMIT:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The part of every rank.
fn ranked() {
    let mpi = Mpi::start().unwrap();
    assert!(Mpi::start().is_err() && !Mpi::library().is_empty() && !Mpi::host().is_empty());
    // A panic is a failed process, which ends all ranks.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let on_purpose = info.payload().downcast_ref::<&str>() == Some(&"on purpose");
        if !on_purpose {
            hook(info);
            std::process::exit(101);
        }
    }));
    for case in &protocol::CASES {
        for part in [usize::MAX, 1000] {
            let mut transport = mpi.transport().unwrap();
            transport.set_part(part);
            if transport.ranks() >= case.min_ranks {
                if transport.rank() == 0 {
                    eprintln!("{}", case.name);
                }
                (case.run)(Box::new(transport));
            }
        }
    }
    bits(&mpi);
    let kept = mpi.transport().unwrap();
    let mut kept: Box<dyn Transport> = Box::new(kept);
    drop(mpi);
    let text = kept
        .receive(0, nearfield_ranks::transport::Tag(9))
        .unwrap_err();
    assert!(text.to_string().contains("MPI has ended"), "{text}");
}

/// Lists of ids are those of one engine, also after points have changed their rank.
fn bits(mpi: &Mpi) {
    let cloud = nearfield_testkit::Cloud::Lattice;
    let points = cloud.points(4000, 7);
    let mut one = nearfield::Engine::builder(1.5)
        .threads(1)
        .list_order(nearfield::ListOrder::Ascending)
        .build()
        .unwrap();
    let set = one.add_point_set(&points).unwrap();
    one.find_neighbors().unwrap();
    let lists = one.neighbors(set, set).unwrap();
    let builder = RankedEngine::builder(1.5).threads(1);
    let mut ranked = builder.build::<f32>(mpi.transport().unwrap()).unwrap();
    let mine = (ranked.rank()..points.len()).step_by(ranked.ranks());
    let ids: Vec<u64> = mine.clone().map(|index| index as u64).collect();
    let mine: Vec<[f32; 3]> = mine.map(|index| points[index]).collect();
    let set = ranked.add_point_set(&mine, Some(&ids)).unwrap();
    let moved = ranked.migrate(set, &mine).unwrap();
    let mine = moved.bring(&mut ranked, &mine).unwrap();
    ranked.find_neighbors().unwrap();
    let found = ranked.lists_by_id(set, set).unwrap();
    for (index, id) in ranked.ids(set).unwrap().iter().enumerate() {
        assert_eq!(mine[index], points[*id as usize]);
        let list = lists.of(*id as usize).iter().map(|j| u64::from(*j));
        assert!(found.of(index).iter().copied().eq(list), "point {id}");
    }
}

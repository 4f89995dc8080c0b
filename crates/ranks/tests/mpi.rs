//! Ranks as processes keep to the protocol of transports, and have the bits of one engine.
//!
//! Without MPI around it this program starts itself with `mpirun`, on 1, 2 and 3 ranks, and ends
//! them if they take too long: the watchdog that the library does without.

mod common;
mod protocol;

use common::on_gpu;
use nearfield_ranks::{
    ErrorKind, RankedEngine,
    device::DeviceRankedEngine,
    transport::{
        Announced, DeviceMemory, Fault, FaultCause, Reduction, Tag, Transport,
        mpi::{Mpi, MpiTransport},
    },
};
use std::{
    fmt::Display,
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
    for part in [usize::MAX, 1000] {
        by_address(&mpi, part);
    }
    unknown_to_mpi(&mpi);
    bits(&mpi);
    if on_gpu::has_gpu() {
        on_gpus(&mpi);
    }
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

const TAG: Tag = Tag(Tag::FIRST_FREE);

/// Bytes that stay where they are.
fn memory_of(mut bytes: Vec<u8>) -> DeviceMemory {
    let (address, len) = (bytes.as_mut_ptr().expose_provenance() as u64, bytes.len());
    // SAFETY: a vector that is moved keeps its bytes where they are, and nothing looks at them.
    unsafe { DeviceMemory::new(address, len, Box::new(bytes)) }
}

/// Memory is sent from and received into by its address. The memory is the host's, which every MPI
/// takes.
fn by_address(mpi: &Mpi, part: usize) {
    let mut rank = mpi.transport().unwrap();
    rank.set_part(part);
    // SAFETY: all memory is the host's.
    unsafe { rank.assume_device_memory() };
    assert_eq!(rank.takes_device_memory(), Ok(()));
    let (me, ranks) = (rank.rank(), rank.ranks());
    if ranks == 1 {
        let with = Box::new(memory_of(vec![1]));
        assert!(rank.hand_over(0, TAG, vec![1], with).is_err(), "to itself");
        return;
    }
    let byte = |from: usize, number: usize, k: usize| (k * 7 + k / 251 + from + number) as u8;
    // From eager messages to those that wait for their receiver.
    let lengths = [4, 1000, 1001, 100_000, 3_000_017];
    let (next, before) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    for turn in 0..2 {
        for (number, len) in lengths.iter().enumerate() {
            let bytes = (0..*len).map(|k| byte(me, number, k)).collect();
            let with = Box::new(memory_of(bytes));
            rank.hand_over(next, TAG, vec![number as u8], with).unwrap();
            rank.post(next, TAG, vec![99]).unwrap();
        }
        let mut coming: Vec<(Announced, usize)> = Vec::new();
        for (number, len) in lengths.iter().enumerate() {
            // Bytes whose announcement is dropped are forgotten, and their sender does not wait.
            if (turn, number) == (1, 1) {
                assert_eq!(rank.receive(before, TAG).unwrap(), [1]);
            } else {
                let (message, with) = rank.receive_handed(before, TAG).unwrap();
                let announced = with.unwrap().downcast::<Announced>().unwrap();
                assert_eq!((message, announced.bytes()), (vec![number as u8], *len));
                coming.push((*announced, number));
            }
            let (message, with) = rank.receive_handed(before, TAG).unwrap();
            assert!(message == [99] && with.is_none());
        }
        // In another order than they were sent.
        coming.reverse();
        let mut buffers: Vec<(Vec<u8>, usize)> = (coming.iter())
            .map(|(announced, number)| (vec![0; announced.bytes()], *number))
            .collect();
        let parts = coming.into_iter().zip(&mut buffers);
        let parts = parts.map(|((announced, _), (buffer, _))| {
            let address = buffer.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: the buffer stays until all has come, and nothing looks at it before.
            let into = unsafe { DeviceMemory::new(address, buffer.len(), Box::new(())) };
            (announced, into)
        });
        rank.receive_into(parts.collect()).unwrap();
        for (buffer, number) in buffers {
            let right = |(k, found): (usize, &u8)| *found == byte(before, number, k);
            assert!(buffer.iter().enumerate().all(right), "{number}");
        }
    }
    // Announcements that are held to the end, by a rank that leaves, keep no other rank.
    let with = Box::new(memory_of(vec![5; 3_000_000]));
    rank.hand_over(next, TAG, vec![1], with).unwrap();
    let _held = rank.receive_handed(before, TAG).unwrap();
    drop(rank);
}

/// An MPI that does not know GPUs, or cannot be asked, is an error on all ranks.
fn unknown_to_mpi(mpi: &Mpi) {
    let transport = mpi.transport().unwrap();
    let Err(why) = transport.takes_device_memory() else {
        return;
    };
    assert!(why.contains(&Mpi::library()), "{why}");
    let settings = RankedEngine::builder(1.0).gpu_messages(true);
    let error = DeviceRankedEngine::start(settings.clone(), transport).map(drop);
    let error = error.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
    assert!(error.to_string().contains(&why), "{error}");
    // For data on the host it says nothing of MPI.
    let built = settings.build::<f32>(mpi.transport().unwrap());
    let error = built.map(drop).unwrap_err();
    assert!(
        error.to_string().contains("take DeviceRankedEngine"),
        "{error}"
    );
    let mut transport = mpi.transport().unwrap();
    let rank = transport.rank();
    let with = Box::new(memory_of(vec![1]));
    let fault = transport.hand_over(0, TAG, vec![1], with).unwrap_err();
    let Fault { cause, .. } = fault;
    assert!(matches!(cause, FaultCause::Failed(_)), "{cause} on {rank}");
}

/// Names the steps of a rank on its GPU in messages of failures. A library that ends the process
/// gives no message, so rank 0 also prints them.
struct Doing {
    rank: usize,
    case: String,
}

impl Doing {
    fn begin(rank: usize, case: String) -> Self {
        if rank == 0 {
            eprint!("  {case}:");
        }
        Self { rank, case }
    }

    /// Does something, which must succeed.
    fn step<R, E: Display>(&self, name: &str, act: impl FnOnce() -> Result<R, E>) -> R {
        if self.rank == 0 {
            eprint!(" {name}");
        }
        let (rank, case) = (self.rank, &self.case);
        act().unwrap_or_else(|error| panic!("rank {rank}: {case}: {name}: {error}"))
    }

    fn end(self) {
        if self.rank == 0 {
            eprintln!(". ok");
        }
    }
}

/// Ranks whose data live on GPUs find what one engine on the CPU finds, with messages through the
/// host and, if this MPI knows GPUs, from GPU to GPU. Every case has an engine of its own: contexts
/// come and go while MPI runs.
fn on_gpus(mpi: &Mpi) {
    let transport = mpi.transport().unwrap();
    let (rank, knows) = (transport.rank(), transport.takes_device_memory());
    drop(transport);
    if rank == 0 {
        eprintln!("on GPUs; messages from their memory: {knows:?}");
    }
    let ways: &[bool] = if knows.is_ok() {
        &[false, true]
    } else {
        &[false]
    };
    for (case, direct) in on_gpu::cases()
        .iter()
        .flat_map(|case| ways.iter().map(move |way| (case, *way)))
    {
        let way = if direct { "GPUs" } else { "the host" };
        let doing = Doing::begin(rank, format!("{}, messages by {way}", case.name));
        let settings = RankedEngine::builder(case.radius).periodic(case.periodic);
        let settings = settings.gpu_messages(direct);
        let transport: MpiTransport = mpi.transport().unwrap();
        let ranks = transport.ranks();
        let start = || DeviceRankedEngine::start(settings, transport);
        let mut engine = doing.step("start", start);
        let give = || on_gpu::Own::give(&mut engine, &case.points);
        let mut own = doing.step("give", give);
        let mut case = case.clone();
        for step in 0..4 {
            let search = || on_gpu::search(&mut engine, &own, case.radius);
            let found = doing.step("search", search);
            let mut all = [found.len() as f64];
            let mut sums = mpi.transport().unwrap();
            doing.step("sum", || sums.reduce(&mut all, Reduction::Sum));
            assert_eq!(all, [case.points.len() as f64]);
            doing.step("compare", || {
                on_gpu::compare_some(&case, ranks, &found);
                Ok::<(), Fault>(())
            });
            if step == 0 {
                doing.step("rebalance", || engine.rebalance());
            } else {
                nearfield_testkit::cloud::drift(&mut case.points, 0.4, step);
            }
            doing.step("move", || own.move_to(&mut engine, &case.points));
        }
        drop(engine);
        doing.end();
    }
}

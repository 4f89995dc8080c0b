//! Ranks as threads of one process.
//!
//! A message is a vector that changes its owner: nothing is copied. All mailboxes are behind one
//! lock, which is held for a look into a map and never while a message is made or read, and every
//! rank sleeps on a condition of its own.
//!
//! # Lost ranks
//!
//! Dropping a transport while its thread panics is a fault of its rank, at once. Dropping it
//! otherwise only notes that the rank is gone: ranks that need nothing of it may finish. The first
//! that waits for a rank that is gone turns this into a fault. A fault wakes all ranks and stays,
//! so no wait outlives a lost rank.
//!
//! **Invariant:** a rank sleeps only while there is no fault and the rank that it waits for is
//! there. A change of either wakes it, under the same lock.

use super::{Fault, FaultCause, Tag, Transport};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// One rank among the threads of a process. [`set`] makes those of all ranks, and [`run`] starts
/// the threads too.
pub struct ThreadTransport {
    rank: usize,
    world: Arc<World>,
}

/// The rank and the number of ranks.
impl fmt::Debug for ThreadTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, ranks) = (self.rank(), self.ranks());
        write!(f, "ThreadTransport(rank {rank} of {ranks})")
    }
}

/// The state that all ranks share.
struct World {
    state: Mutex<State>,
    /// By rank: something has come for it, or a rank was lost.
    news: Vec<Condvar>,
}

/// Messages for one rank, by sender and tag.
type Inbox = HashMap<(usize, Tag), VecDeque<Vec<u8>>>;

/// Messages under way, and ranks that are lost.
struct State {
    /// By receiver, the oldest message first.
    inboxes: Vec<Inbox>,
    /// Ranks that have dropped their transport.
    gone: Vec<bool>,
    /// The first fault.
    fault: Option<Fault>,
}

/// The transports of a set of ranks, by rank, each to be moved to a thread of its own.
///
/// ```
/// use nearfield_ranks::transport::{Tag, Transport, threads};
/// let mut ranks = threads::set(2);
/// ranks[0].post(1, Tag(7), vec![1, 2, 3])?;
/// assert_eq!(ranks[1].receive(0, Tag(7))?, [1, 2, 3]);
/// # Ok::<(), nearfield_ranks::transport::Fault>(())
/// ```
pub fn set(ranks: usize) -> Vec<ThreadTransport> {
    let world = Arc::new(World {
        state: Mutex::new(State {
            inboxes: (0..ranks).map(|_| HashMap::new()).collect(),
            gone: vec![false; ranks],
            fault: None,
        }),
        news: (0..ranks).map(|_| Condvar::new()).collect(),
    });
    let transport = |rank| ThreadTransport {
        rank,
        world: world.clone(),
    };
    (0..ranks).map(transport).collect()
}

/// Runs `body` on `ranks` threads, each with the transport of its rank, and returns what each
/// returned, by rank. A rank that panicked, or whose thread could not be started, has a fault
/// instead.
///
/// ```
/// use nearfield_ranks::transport::{Reduction, Transport, threads};
/// let sums = threads::run(3, |mut rank| {
///     let mut sum = [rank.rank() as f64];
///     rank.reduce(&mut sum, Reduction::Sum).map(|()| sum[0])
/// });
/// assert_eq!(sums, [Ok(Ok(3.0)), Ok(Ok(3.0)), Ok(Ok(3.0))]);
/// ```
pub fn run<R: Send>(
    ranks: usize,
    body: impl Fn(ThreadTransport) -> R + Sync,
) -> Vec<Result<R, Fault>> {
    let body = &body;
    thread::scope(|scope| {
        let start = |transport: ThreadTransport| {
            let name = format!("rank {}", transport.rank);
            thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || body(transport))
        };
        // All are started before any is waited for.
        let threads: Vec<_> = set(ranks).into_iter().map(start).collect();
        let end = |(rank, started): (usize, std::io::Result<thread::ScopedJoinHandle<'_, R>>)| {
            let failed = |cause| Fault { rank, cause };
            let thread = started.map_err(|error| failed(FaultCause::Failed(error.to_string())))?;
            thread.join().map_err(|_| failed(FaultCause::Panicked))
        };
        threads.into_iter().enumerate().map(end).collect()
    })
}

impl World {
    /// The state; after a panic as it is, because every change leaves it whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a fault, unless there is one, and wakes all ranks; returns the one that holds.
    fn fail(&self, state: &mut State, fault: Fault) -> Fault {
        let fault = state.fault.get_or_insert(fault).clone();
        self.news.iter().for_each(Condvar::notify_all);
        fault
    }
}

impl State {
    /// The next message for `rank`; none if it has not come.
    fn take(&mut self, rank: usize, from: usize, tag: Tag) -> Option<Vec<u8>> {
        self.inboxes[rank].get_mut(&(from, tag))?.pop_front()
    }
}

impl ThreadTransport {
    /// The next message if it has come, a fault if it cannot come any more.
    fn look(&self, state: &mut State, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        let message = state.take(self.rank, from, tag);
        if message.is_none() && state.gone[from] {
            return Err(self.world.fail(state, left(from)));
        }
        Ok(message)
    }
}

/// The fault of a rank that others waited for.
fn left(rank: usize) -> Fault {
    Fault {
        rank,
        cause: FaultCause::Left,
    }
}

impl Transport for ThreadTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.world.news.len()
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        let mut state = self.world.state();
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        if state.gone[to] {
            return Err(self.world.fail(&mut state, left(to)));
        }
        let inbox = state.inboxes[to].entry((self.rank, tag)).or_default();
        inbox.push_back(message);
        self.world.news[to].notify_all();
        Ok(())
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        let mut state = self.world.state();
        loop {
            if let Some(message) = self.look(&mut state, from, tag)? {
                return Ok(message);
            }
            let news = &self.world.news[self.rank];
            state = news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.look(&mut self.world.state(), from, tag)
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.world.fail(&mut self.world.state(), fault)
    }
}

impl Drop for ThreadTransport {
    fn drop(&mut self) {
        let (rank, mut state) = (self.rank, self.world.state());
        state.gone[rank] = true;
        if thread::panicking() {
            let cause = FaultCause::Panicked;
            self.world.fail(&mut state, Fault { rank, cause });
        }
        // Those that wait for this rank look again.
        self.world.news.iter().for_each(Condvar::notify_all);
    }
}

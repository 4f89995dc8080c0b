//! Ranks as threads of one process.
//!
//! A message is a vector that changes its owner; nothing is copied. Every rank has a mailbox behind
//! a lock of its own, which is held for a look into a map and never while a message is made or
//! read. A rank that waits notes what it waits for, and only that message wakes it: with more ranks
//! than cores, waking a rank costs more than the message. With a core for every rank it polls a few
//! times before it sleeps, because waking takes longer than the rest of an agreement.
//!
//! # Lost ranks
//!
//! Dropping a transport while its thread panics is a fault of its rank, at once. Otherwise dropping
//! it only notes that the rank is gone: ranks that need nothing from it may finish. The first rank
//! that waits for it turns this into a fault. A fault wakes all ranks once and stays, so no wait
//! outlives a lost rank. A rank that leaves wakes those that have ever slept for it, which are
//! listed in its mailbox. So the time to end all ranks grows with the number of partners and not
//! with the number of ranks.
//!
//! **Invariant:** a rank sleeps only if it is in that list and, under the lock of its own mailbox,
//! there was no fault, the rank that it waits for was there, and the message was not. Each of these
//! changes before the lock is taken to wake the rank, so no change is missed: a rank that enters
//! the list after it was read finds that the other one is gone.

use super::{Fault, FaultCause, Handed, Tag, Transport};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    num::NonZero,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// One rank among the threads of a process. [`set`] makes those of all ranks, and [`run`] starts
/// the threads too.
pub struct ThreadTransport {
    rank: usize,
    hands_over: bool,
    world: Arc<World>,
    /// The ranks whose mailboxes list this one as a sleeper.
    listed: HashSet<usize>,
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
    /// By rank: its mailbox.
    mailboxes: Vec<Mailbox>,
    /// By rank: true once it has dropped its transport.
    gone: Vec<AtomicBool>,
    /// The first fault.
    fault: OnceLock<Fault>,
    /// How long a rank polls for a message before it sleeps.
    looks: Duration,
}

/// How long a rank polls if there is a core for every rank: about the time to fall asleep and be
/// woken.
const LOOKS: Duration = Duration::from_micros(50);
/// Pause instructions between two polls.
const PAUSES: usize = 64;

/// The messages for a rank, and the condition that it sleeps on until they arrive.
struct Mailbox {
    inbox: Mutex<Inbox>,
    news: Condvar,
}

/// Bytes, and the object that was handed over with them.
type Message = (Vec<u8>, Option<Handed>);

/// The messages for a rank.
#[derive(Default)]
struct Inbox {
    /// By sender and tag, the oldest first.
    messages: HashMap<(usize, Tag), VecDeque<Message>>,
    /// Sender and tag of the message that the rank sleeps for.
    awaited: Option<(usize, Tag)>,
    /// Ranks that have slept for a message of this one, each once.
    sleepers: Vec<usize>,
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
    let mailbox = || Mailbox {
        inbox: Mutex::default(),
        news: Condvar::new(),
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let world = Arc::new(World {
        looks: if ranks <= cores {
            LOOKS
        } else {
            Duration::ZERO
        },
        mailboxes: (0..ranks).map(|_| mailbox()).collect(),
        gone: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
        fault: OnceLock::new(),
    });
    let transport = |rank| ThreadTransport {
        rank,
        hands_over: true,
        world: world.clone(),
        listed: HashSet::new(),
    };
    (0..ranks).map(transport).collect()
}

/// Runs `body` on `ranks` threads, each with the transport of its rank, and returns what each
/// returned, by rank. A rank that panicked, or whose thread could not be started, returns a fault
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

impl Mailbox {
    /// The messages. They are valid after a panic too, because every change is complete or not
    /// made.
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the rank if it sleeps for a message of a rank that is `concerned`.
    fn wake_if(&self, concerned: impl Fn(usize) -> bool) {
        let awaited = self.inbox().awaited;
        if awaited.is_some_and(|(from, _)| concerned(from)) {
            self.news.notify_all();
        }
    }
}

impl World {
    /// Notes a fault, unless there is one already, and wakes all ranks; returns the fault that
    /// counts. The caller must not hold the lock of a mailbox.
    fn fail(&self, fault: Fault) -> Fault {
        let mut is_first = false;
        let holds = self.fault.get_or_init(|| {
            is_first = true;
            fault
        });
        if is_first {
            (self.mailboxes.iter()).for_each(|mailbox| mailbox.wake_if(|_| true));
        }
        holds.clone()
    }

    /// Returns the fault, if there is one.
    fn sound(&self) -> Result<(), Fault> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Returns true if a rank has dropped its transport. Then all of its messages have arrived; so
    /// ask before looking into the mailbox.
    fn is_gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Acquire)
    }
}

impl Inbox {
    /// The next message; `None` if it has not arrived.
    fn take(&mut self, from: usize, tag: Tag) -> Option<Message> {
        self.messages.get_mut(&(from, tag))?.pop_front()
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
        self.world.mailboxes.len()
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        self.send(to, tag, (message, None))
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        Ok(self.receive_handed(from, tag)?.0)
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.world.sound()?;
        let gone = self.world.is_gone(from);
        let message = self.world.mailboxes[self.rank].inbox().take(from, tag);
        if message.is_none() && gone {
            return Err(self.world.fail(left(from)));
        }
        Ok(message.map(|(bytes, _)| bytes))
    }

    fn hands_over(&self) -> bool {
        self.hands_over
    }

    fn hand_over(
        &mut self,
        to: usize,
        tag: Tag,
        message: Vec<u8>,
        with: Handed,
    ) -> Result<(), Fault> {
        self.send(to, tag, (message, Some(with)))
    }

    fn receive_handed(&mut self, from: usize, tag: Tag) -> Result<Message, Fault> {
        let mailbox = &self.world.mailboxes[self.rank];
        let (mut inbox, mut begin) = (mailbox.inbox(), None);
        loop {
            self.world.sound()?;
            let gone = self.world.is_gone(from);
            if let Some(message) = inbox.take(from, tag) {
                return Ok(message);
            }
            if gone {
                break;
            }
            if begin.get_or_insert_with(Instant::now).elapsed() < self.world.looks {
                drop(inbox);
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
                inbox = mailbox.inbox();
                continue;
            }
            if self.listed.insert(from) {
                // Two mailboxes are never locked at a time: two ranks may wait for each other.
                drop(inbox);
                let sender = &self.world.mailboxes[from];
                sender.inbox().sleepers.push(self.rank);
                inbox = mailbox.inbox();
                continue;
            }
            inbox.awaited = Some((from, tag));
            inbox = mailbox
                .news
                .wait(inbox)
                .unwrap_or_else(PoisonError::into_inner);
            inbox.awaited = None;
        }
        drop(inbox);
        Err(self.world.fail(left(from)))
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.world.fail(fault)
    }
}

impl ThreadTransport {
    /// The same transport with messages that are only bytes, as between processes: for comparisons
    /// and tests. All ranks must call it.
    pub fn in_bytes(mut self) -> Self {
        self.hands_over = false;
        self
    }

    /// Puts a message into the mailbox of a rank.
    fn send(&self, to: usize, tag: Tag, message: Message) -> Result<(), Fault> {
        self.world.sound()?;
        if self.world.is_gone(to) {
            return Ok(());
        }
        let mailbox = &self.world.mailboxes[to];
        let mut inbox = mailbox.inbox();
        let messages = inbox.messages.entry((self.rank, tag)).or_default();
        messages.push_back(message);
        let awaited = inbox.awaited == Some((self.rank, tag));
        drop(inbox);
        if awaited {
            mailbox.news.notify_all();
        }
        Ok(())
    }
}

impl Drop for ThreadTransport {
    fn drop(&mut self) {
        let rank = self.rank;
        if thread::panicking() {
            // Before it is gone, so that no rank finds another cause.
            let cause = FaultCause::Panicked;
            self.world.fail(Fault { rank, cause });
        }
        self.world.gone[rank].store(true, Ordering::Release);
        let own = &self.world.mailboxes[rank];
        let sleepers = std::mem::take(&mut own.inbox().sleepers);
        for sleeper in sleepers {
            self.world.mailboxes[sleeper].wake_if(|from| from == rank);
        }
    }
}

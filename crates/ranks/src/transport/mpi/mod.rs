//! Ranks as processes that MPI has started, on one machine or on many.
//!
//! Only messages between two ranks are used and no collective operation of MPI: in those a lost
//! rank leaves the others waiting.
//!
//! # Messages
//!
//! [`Transport::post`] starts a send and keeps the bytes until MPI has taken them. Every call takes
//! in all messages that have arrived and puts them into boxes by sender and tag, so no rank waits
//! until another looks for its message. Messages of more than a gigabyte are sent in parts, because
//! MPI counts in 32 bits.
//!
//! # Memory of GPUs
//!
//! A CUDA-aware MPI sends from GPU memory and receives into it. Such bytes are sent separately,
//! with a number for a tag, in a group that no rank probes: a probe would have to receive them
//! before there is memory for them. A message of bytes announces them. If the announcement is
//! dropped they are received into host memory and discarded, because their sender waits until they
//! are taken.
//!
//! Such an MPI keeps streams, events and mappings of a GPU's context until it ends, so the engine
//! holds the context until the process ends, and all calls are made in it.
//!
//! # Lost ranks
//!
//! A rank that notices a fault reports it to rank 0, which picks the first and tells all, so all
//! ranks return the same one. A transport that is dropped tells all others that its rank has left
//! (as a fault if its thread panics), and then takes in messages until the others have left too.
//! Rank 0 leaves last, because another rank may still have a fault to report. A process that is
//! killed is not noticed here: the program that started the ranks ends them all.
//!
//! **Invariant:** the farewell of a rank is its last message, and no rank ends before it has those
//! of all others. So no message is left under way, and MPI can end.

mod calls;
mod direct;

use super::{Announced, DeviceMemory, Fault, FaultCause, Handed, Tag, Transport};
use calls::{Envelope, Group, Transfer};
use direct::Direct;
use mpi::{Threading, environment::Universe, traits::Communicator};
use std::{
    collections::{HashMap, VecDeque},
    env, fmt,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

/// MPI tags of messages between transports; tags of callers follow.
const REPORT: i32 = 0;
/// The fault that counts, from rank 0.
const FAULT: i32 = 1;
/// The sender has dropped its transport.
const LEFT: i32 = 2;
/// Rank 0 sends no more messages.
const FAREWELL: i32 = 3;
/// A part of a message that the next message of this rank continues.
const MORE: i32 = 4;
/// The next message of this rank announces bytes from GPU memory.
const ANNOUNCES: i32 = 5;
/// The first tag of callers.
const FIRST: i32 = 6;
/// The largest tag that every MPI has.
const LAST: i32 = 32_767;

/// Maximum number of bytes in one part.
const PART: usize = 1 << 30;

/// Number of polls before a rank that waits yields to other threads.
const SPINS: u32 = 200;
/// Time after which it sleeps between polls, for a fraction of the wait so far.
const YIELDS: Duration = Duration::from_millis(1);
/// That fraction is 1/32, so sleeping prolongs no wait by more than that.
const SHARE: u32 = 32;
/// Longest sleep.
const SLEEP: Duration = Duration::from_millis(1);

/// MPI, from start to end. Must outlive the transports, whose calls return faults afterwards.
///
/// ```no_run
/// use nearfield_ranks::transport::{Reduction, Transport, mpi::Mpi};
/// let mpi = Mpi::start()?;
/// let mut transport = mpi.transport()?;
/// let mut sum = [transport.rank() as f64];
/// transport.reduce(&mut sum, Reduction::Sum)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mpi {
    universe: Universe,
    ended: Arc<AtomicBool>,
}

/// The library.
impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi({})", Self::library())
    }
}

/// The reasons why MPI cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// MPI was started before in this process.
    #[error("MPI was started before in this process: it can be started once")]
    Started,
    /// The process was started together with others, but MPI does not know them.
    #[error(
        "this process was started as one of {started} ({variable}), but {library} knows of no other \
         one: start it by the mpirun of that MPI, or build it for the MPI of this mpirun"
    )]
    Alone {
        /// The number of processes.
        started: u64,
        /// The environment variable that has it.
        variable: &'static str,
        /// The name of the library.
        library: String,
    },
    /// The MPI library cannot be called from several threads.
    #[error(
        "this MPI offers the thread level {0}, but calls come from any one thread at a time: it \
         must be Serialized at least"
    )]
    Threads(String),
    /// A call of MPI failed.
    #[error("{0}")]
    Call(String),
}

impl Mpi {
    /// Starts MPI in this process.
    ///
    /// # Errors
    /// If it was started before, cannot be called from several threads, or knows no other process
    /// although several were started. In the last case program and launcher belong to different
    /// MPIs, and every process would do the work of all.
    pub fn start() -> Result<Self, MpiError> {
        let started = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, level) = started.ok_or(MpiError::Started)?;
        if level < Threading::Serialized {
            return Err(MpiError::Threads(format!("{level:?}")));
        }
        let said = |variable: &str| env::var(variable).ok();
        if universe.world().size() == 1
            && let Some((variable, started)) = started_with(said)
        {
            let library = Self::library();
            return Err(MpiError::Alone {
                started,
                variable,
                library,
            });
        }
        Ok(Self {
            universe,
            ended: Arc::new(AtomicBool::new(false)),
        })
    }

    /// A transport between all ranks. Collective: all ranks make the same number of transports.
    ///
    /// # Errors
    /// That of MPI.
    pub fn transport(&self) -> Result<MpiTransport, MpiError> {
        let made = || {
            let group = Group::world(self.ended.clone())?;
            let [rank, ranks] = group.place()?;
            Ok(MpiTransport {
                group,
                rank,
                ranks,
                part: PART,
                sendings: Vec::new(),
                boxes: HashMap::new(),
                parts: HashMap::new(),
                direct: Direct::new(ranks),
                left: vec![false; ranks],
                farewell: false,
                fault: None,
            })
        };
        made().map_err(MpiError::Call)
    }

    /// Ends all processes of the program at once, with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.universe.world().abort(code)
    }

    /// The name and version of the library.
    pub fn library() -> String {
        let version = mpi::environment::library_version().unwrap_or_default();
        let first = version.trim_matches('\0').lines().next();
        first.unwrap_or_default().trim().to_owned()
    }

    /// The name of the machine.
    pub fn host() -> String {
        let name = mpi::environment::processor_name().unwrap_or_default();
        name.trim_matches('\0').to_owned()
    }
}

/// The number of processes that the launcher has started, if more than one, and the environment
/// variable that says so: of Open MPI, MPICH, or a Slurm step.
fn started_with(said: impl Fn(&str) -> Option<String>) -> Option<(&'static str, u64)> {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"]
        .into_iter()
        .filter_map(|variable| Some((variable, said(variable)?.parse().ok()?)))
        .find(|(_, started)| *started > 1)
}

impl Drop for Mpi {
    fn drop(&mut self) {
        calls::end(&self.ended);
    }
}

/// One rank among the processes that MPI has started; made by [`Mpi::transport`].
///
/// Dropping it waits until all other ranks have dropped theirs.
pub struct MpiTransport {
    group: Group,
    rank: usize,
    ranks: usize,
    part: usize,
    /// Messages that MPI has not taken yet.
    sendings: Vec<Transfer>,
    /// Messages that have arrived, by sender and tag.
    boxes: HashMap<(usize, Tag), VecDeque<Message>>,
    /// Messages whose last part has not arrived, by sender.
    parts: HashMap<usize, Vec<u8>>,
    /// Bytes from and to the memory of GPUs.
    direct: Direct,
    /// Ranks that have dropped their transport.
    left: Vec<bool>,
    /// True once rank 0 sends no more messages.
    farewell: bool,
    /// The fault that counts.
    fault: Option<Fault>,
}

/// Bytes of a message, and the bytes that it announces.
type Message = (Vec<u8>, Option<Announced>);

/// The rank and the number of ranks.
impl fmt::Debug for MpiTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MpiTransport(rank {} of {})", self.rank, self.ranks)
    }
}

/// Waits between polls, longer and longer.
struct Patience {
    looks: u32,
    since: Instant,
}

impl Patience {
    fn new() -> Self {
        Self {
            looks: 0,
            since: Instant::now(),
        }
    }

    fn wait(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < SPINS {
            return std::hint::spin_loop();
        }
        let waited = self.since.elapsed();
        if waited < YIELDS {
            thread::yield_now();
        } else {
            thread::sleep((waited / SHARE).min(SLEEP));
        }
    }
}

impl MpiTransport {
    /// Sends messages of more than `bytes` bytes in parts from now on; initially a gigabyte. MPI
    /// counts bytes in 32 bits.
    pub fn set_part(&mut self, bytes: usize) {
        self.part = bytes.clamp(1, PART);
    }

    /// Assumes that this MPI is CUDA-aware, whatever it reports.
    ///
    /// # Safety
    /// It is CUDA-aware, or all memory that is handed over is host memory. Another MPI would use
    /// GPU addresses as host addresses, which crashes the process.
    pub unsafe fn assume_device_memory(&mut self) {
        self.direct.assume();
    }

    /// Starts to send bytes with an MPI tag.
    fn send(&mut self, to: usize, tag: i32, bytes: Vec<u8>) -> Result<(), String> {
        let sending = self.group.send(to, [tag, MORE], bytes, self.part)?;
        self.sendings.push(sending);
        Ok(())
    }

    /// Sends the same to all other ranks.
    fn tell_all(&mut self, tag: i32, bytes: &[u8]) -> Result<(), String> {
        let me = self.rank;
        let others = (0..self.ranks).filter(|rank| *rank != me);
        others
            .into_iter()
            .try_for_each(|rank| self.send(rank, tag, bytes.to_vec()))
    }

    /// Takes in all messages that have arrived, and drops sends that have ended.
    fn progress(&mut self) -> Result<(), String> {
        while let Some(envelope) = self.group.next()? {
            self.take(envelope)?;
        }
        self.direct.progress(&self.group)?;
        self.group.settle(&mut self.sendings)
    }

    /// Takes in a message.
    fn take(&mut self, Envelope { from, tag, bytes }: Envelope) -> Result<(), String> {
        let begun = match self.parts.remove(&from) {
            None => bytes,
            Some(mut begun) => {
                let room = begun.try_reserve(bytes.len());
                let whole = begun.len() + bytes.len();
                room.map_err(|_| format!("no memory for a message of {whole} bytes"))?;
                begun.extend_from_slice(&bytes);
                begun
            }
        };
        match tag {
            MORE => {
                self.parts.insert(from, begun);
            }
            REPORT => self.decide(Fault::read(&begun))?,
            FAULT => {
                self.fault.get_or_insert(Fault::read(&begun));
            }
            LEFT => self.left[from] = true,
            FAREWELL => self.farewell = true,
            ANNOUNCES => self.direct.announce(from, &begun)?,
            _ => {
                let tag = Tag((tag - FIRST) as u16);
                let announced = self.direct.announced_by(from);
                let messages = self.boxes.entry((from, tag)).or_default();
                messages.push_back((begun, announced));
            }
        }
        Ok(())
    }

    /// On rank 0: makes this the fault that counts, unless there is one, and tells all.
    fn decide(&mut self, fault: Fault) -> Result<(), String> {
        if self.fault.is_some() {
            return Ok(());
        }
        let bytes = fault.to_bytes();
        self.fault = Some(fault);
        self.tell_all(FAULT, &bytes)
    }

    /// Takes in messages until `look` returns a value.
    fn wait<R>(
        &mut self,
        mut look: impl FnMut(&mut Self) -> Result<Option<R>, Fault>,
    ) -> Result<R, Fault> {
        let mut patience = Patience::new();
        loop {
            self.advance()?;
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            patience.wait();
        }
    }

    /// Takes in messages, and returns the fault, if there is one.
    fn advance(&mut self) -> Result<(), Fault> {
        if let Err(text) = self.progress() {
            return Err(self.broken(text));
        }
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// The fault of an MPI that fails here; the others cannot be told.
    fn broken(&mut self, text: String) -> Fault {
        let (rank, cause) = (self.rank, FaultCause::Failed(text));
        let fault = self.fault.get_or_insert(Fault { rank, cause });
        fault.clone()
    }

    /// The next message; `None` if it has not arrived, or a fault if it cannot arrive.
    fn look(&mut self, from: usize, tag: Tag) -> Result<Option<Message>, Fault> {
        let waiting = self.boxes.get_mut(&(from, tag));
        let message = waiting.and_then(VecDeque::pop_front);
        if message.is_none() && self.left[from] {
            return Err(self.fail(left(from)));
        }
        Ok(message)
    }

    /// Ends the work of all ranks because of a failure on this one.
    fn failed(&mut self, text: String) -> Fault {
        let (rank, cause) = (self.rank, FaultCause::Failed(text));
        self.fail(Fault { rank, cause })
    }

    /// Sends a message and the bytes that it announces.
    fn send_with(
        &mut self,
        to: usize,
        tag: Tag,
        message: Vec<u8>,
        with: Option<DeviceMemory>,
    ) -> Result<(), Fault> {
        self.advance()?;
        if to == self.rank {
            let own = self.boxes.entry((to, tag)).or_default();
            own.push_back((message, None));
            return Ok(());
        }
        let number = FIRST + i32::from(tag.0);
        let send = || {
            if number > LAST {
                return Err(format!("the tag {} is beyond what every MPI has", tag.0));
            }
            if let Some(memory) = with {
                let (said, sending) = self.direct.send(&self.group, to, memory, self.part)?;
                self.sendings.push(sending);
                self.send(to, ANNOUNCES, said)?;
            }
            self.send(to, number, message)
        };
        let sent = send();
        sent.map_err(|text| self.failed(text))
    }

    /// Leaves, and takes in messages until all others have left.
    fn leave(&mut self) -> Result<(), String> {
        self.direct.leave();
        self.tell_all(LEFT, &[])?;
        let mut patience = Patience::new();
        let me = self.rank;
        while !(0..self.ranks).all(|rank| rank == me || self.left[rank]) {
            self.progress()?;
            self.boxes.clear();
            patience.wait();
        }
        if me == 0 {
            self.tell_all(FAREWELL, &[])?;
        }
        while !(self.sendings.is_empty() && self.direct.is_idle() && (me == 0 || self.farewell)) {
            self.progress()?;
            patience.wait();
        }
        Ok(())
    }
}

/// The fault of a rank that others waited for.
fn left(rank: usize) -> Fault {
    let cause = FaultCause::Left;
    Fault { rank, cause }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        self.send_with(to, tag, message, None)
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        Ok(self.wait(|rank| rank.look(from, tag))?.0)
    }

    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault> {
        self.advance()?;
        Ok(self.look(from, tag)?.map(|(message, _)| message))
    }

    fn takes_device_memory(&self) -> Result<(), String> {
        self.direct.is_known().map_err(|why| {
            let library = Mpi::library();
            format!("{library} {why}: leave it out, or build for an MPI with support of CUDA")
        })
    }

    fn hand_over(
        &mut self,
        to: usize,
        tag: Tag,
        message: Vec<u8>,
        with: Handed,
    ) -> Result<(), Fault> {
        match with.downcast::<DeviceMemory>() {
            Ok(memory) if self.direct.is_known().is_ok() && to != self.rank => {
                self.send_with(to, tag, message, Some(*memory))
            }
            _ => {
                let why = "something is to be handed over to a rank in another process";
                Err(self.failed(why.to_owned()))
            }
        }
    }

    fn receive_handed(
        &mut self,
        from: usize,
        tag: Tag,
    ) -> Result<(Vec<u8>, Option<Handed>), Fault> {
        let (message, announced) = self.wait(|rank| rank.look(from, tag))?;
        Ok((
            message,
            announced.map(|announced| Box::new(announced) as Handed),
        ))
    }

    fn receive_into(&mut self, parts: Vec<(Announced, DeviceMemory)>) -> Result<(), Fault> {
        for (announced, memory) in parts {
            let begun = self.direct.receive(&self.group, announced, memory);
            begun.map_err(|text| self.failed(text))?;
        }
        self.wait(|rank| Ok(rank.direct.has_received().then_some(())))
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        if let Some(fault) = &self.fault {
            return fault.clone();
        }
        let told = if self.rank == 0 {
            self.decide(fault)
        } else {
            self.send(0, REPORT, fault.to_bytes())
        };
        if let Err(text) = told {
            return self.broken(text);
        }
        let decided: Result<(), Fault> = self.wait(|_| Ok(None));
        decided.map_or_else(|fault| fault, |()| left(0))
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        if thread::panicking() {
            let (rank, cause) = (self.rank, FaultCause::Panicked);
            self.fail(Fault { rank, cause });
        }
        // An MPI that does not work any more ends the program by itself.
        self.leave().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::started_with;

    #[test]
    fn launchers_say_how_many_processes_they_have_started() {
        let of = |set: &'static [(&str, &str)]| {
            started_with(|name| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(
            of(&[("PMI_SIZE", "1"), ("OMPI_COMM_WORLD_SIZE", "many")]),
            None
        );
        assert_eq!(of(&[("PMI_SIZE", "4")]), Some(("PMI_SIZE", 4)));
        let slurm = of(&[("PMI_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "2")]);
        assert_eq!(slurm, Some(("SLURM_STEP_NUM_TASKS", 2)));
    }
}

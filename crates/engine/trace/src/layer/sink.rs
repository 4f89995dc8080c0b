//! The queue of records, and the thread that writes them.
//!
//! States: open (records are accepted) → failed (an error was reported once; senders discard their
//! records) or closed (the guard was dropped). The thread ends on a message to close, after writing
//! everything queued before it.

use crate::{
    Error, ErrorKind,
    compressed::Compressor,
    model::{Header, Lost, Record},
    write::Writer,
};
use nearfield_files::NewFile;
use std::{
    io::{self, BufWriter, Write},
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Maximum time that a record stays in memory.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// Called once with the error that ends the recording.
pub(crate) type OnError = Box<dyn FnOnce(&io::Error) + Send>;

/// Where a trace goes.
pub(crate) enum Destination {
    /// A file, which replaces an existing one when the first record of the run is written.
    File(BufWriter<NewFile>),
    /// The same, compressed.
    Compressed(Compressor<BufWriter<NewFile>>),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

impl Destination {
    /// Has a file take its place.
    fn settle(&mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Self::File(file) => file.get_mut().settle(),
            Self::Compressed(frames) => frames.output().get_mut().settle(),
            Self::Other(_) => Ok(()),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Compressed(frames) => frames.write(bytes),
            Self::Other(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Compressed(frames) => frames.flush(),
            Self::Other(to) => to.flush(),
        }
    }
}

enum Message {
    Record(Box<Record>),
    /// Write everything put so far, and say so.
    Flush(SyncSender<()>),
    Close,
    /// The same, and leave the old file where it is if nothing was recorded.
    Abandon,
}

/// The end of the queue that records are put into.
#[derive(Debug)]
pub(crate) struct Sink {
    queue: SyncSender<Message>,
    begin: Instant,
    /// The process whose thread writes. A forked child has no such thread and must not wait for it.
    process: u32,
    open: AtomicBool,
    dropped: AtomicU64,
    error: Mutex<Option<io::Error>>,
}

/// Starts a thread that writes to `to`, behind a queue of `length` records.
pub(crate) fn open(
    to: Destination,
    header: &Header,
    length: usize,
    on_error: OnError,
) -> Result<(Arc<Sink>, JoinHandle<()>), Error> {
    let (queue, records) = sync_channel(length.max(1));
    let sink = Arc::new(Sink {
        queue,
        begin: Instant::now(),
        process: process::id(),
        open: AtomicBool::new(true),
        dropped: AtomicU64::new(0),
        error: Mutex::default(),
    });
    let (header, shared) = (header.clone(), Arc::clone(&sink));
    let thread = thread::Builder::new()
        .name("nearfield-trace".into())
        .spawn(move || {
            if let Err(error) = write_all(to, &header, &records, &shared) {
                shared.open.store(false, Ordering::Release);
                on_error(&error);
                *shared.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                drain(&records);
            }
        })
        .map_err(ErrorKind::Thread)?;
    Ok((sink, thread))
}

impl Sink {
    /// Nanoseconds since the start of the trace.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether records are written.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) && !self.is_inherited()
    }

    /// Whether this is a child forked from the process that records.
    pub(crate) fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Takes a record, or counts it as dropped when the queue is full.
    pub(crate) fn put(&self, record: Record) {
        if !self.is_open() {
            return;
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Record(Box::new(record))) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything put before is written, at most for `patience`.
    pub(crate) fn flush(&self, patience: Duration) {
        let begin = Instant::now();
        let (done, written) = sync_channel(1);
        let mut message = Message::Flush(done);
        while self.is_open() {
            match self.queue.try_send(message) {
                Ok(()) => {
                    // A late answer has no receiver.
                    let _ = written.recv_timeout(patience.saturating_sub(begin.elapsed()));
                    return;
                }
                Err(TrySendError::Full(same)) if begin.elapsed() < patience => {
                    message = same;
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return,
            }
        }
    }

    /// Accepts no more records; the thread writes the queued ones and ends.
    pub(crate) fn close(&self) {
        self.end(Message::Close);
    }

    /// As [`close`](Self::close); a file that nothing was recorded in does not replace an old one.
    pub(crate) fn abandon(&self) {
        self.end(Message::Abandon);
    }

    fn end(&self, message: Message) {
        self.open.store(false, Ordering::Release);
        // The thread is gone only when it was told to end before.
        let _ = self.queue.send(message);
    }

    /// The error that ended the recording, once.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take()
    }
}

/// The body of the thread: writes records until a message closes it.
fn write_all(
    to: Destination,
    header: &Header,
    records: &Receiver<Message>,
    sink: &Sink,
) -> io::Result<()> {
    let mut writer = Writer::new(to, header)?;
    writer.flush()?;
    let mut flushed = Instant::now();
    let mut abandoned = false;
    loop {
        match records.recv_timeout(FLUSH_EVERY) {
            Ok(Message::Record(record)) => writer.write(&record)?,
            Ok(Message::Flush(done)) => {
                settle(&mut writer)?;
                // The thread that asked may have stopped waiting.
                let _ = done.try_send(());
            }
            Ok(Message::Close) => break,
            Ok(Message::Abandon) => {
                abandoned = true;
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        match sink.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            records => writer.write(&Record::Lost(Lost { records }))?,
        }
        if flushed.elapsed() >= FLUSH_EVERY {
            settle(&mut writer)?;
            flushed = Instant::now();
        }
    }
    // Threads that took the sink for open may have put records behind the order to close.
    while let Ok(message) = records.try_recv() {
        if let Message::Record(record) = message {
            writer.write(&record)?;
        }
    }
    let has_content = writer.has_content();
    let mut to = writer.finish(sink.now())?;
    if abandoned && !has_content {
        return Ok(());
    }
    to.settle()
}

/// Flushes the buffer. A file replaces an existing one as soon as it has content.
fn settle(writer: &mut Writer<Destination>) -> io::Result<()> {
    writer.flush()?;
    if writer.has_content() {
        writer.output().settle()?;
    }
    Ok(())
}

/// Discards records until a message closes it, so that no sender waits for a full queue.
fn drain(records: &Receiver<Message>) {
    while let Ok(Message::Record(_) | Message::Flush(_)) = records.recv() {}
}

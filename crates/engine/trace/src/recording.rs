//! Starting and ending a recording.

use crate::{
    Error, ErrorKind,
    compressed::{Compressor, is_compressed},
    layer::{Destination, Sink, TraceLayer, open},
    model::{Header, Program},
};
use nearfield_files::NewFile;
use std::{
    fmt,
    io::{self, BufWriter, Write},
    panic,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    thread::{self, JoinHandle},
    time::Duration,
};
use tracing::{Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, Registry, filter::FilterFn, layer::SubscriberExt, registry::LookupSpan,
};

/// Records that may wait to be written; a record takes some 300 bytes.
const QUEUE: usize = 1 << 16;
/// Maximum delay of a panic while the records before it are written.
const PATIENCE: Duration = Duration::from_secs(1);

/// A layer that can be added to any subscriber with a registry.
pub type BoxedLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Called once with the error that ended a recording.
type Tell = Box<dyn FnOnce(&Error) + Send>;

/// Settings of a recording.
#[must_use = "nothing is recorded until it is started"]
pub struct Options {
    program: Program,
    rank: Option<u32>,
    targets: Vec<String>,
    queue: usize,
    on_error: Option<Tell>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("program", &self.program)
            .field("targets", &self.targets)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: Program::here(),
            rank: None,
            targets: vec!["nearfield".into()],
            queue: QUEUE,
            on_error: None,
        }
    }
}

impl Options {
    /// Name and version that the header gives the program; by default the name of its file.
    pub fn program(mut self, name: &str, version: &str) -> Self {
        self.program.name = name.into();
        self.program.version = version.into();
        self
    }

    /// Also records the spans and events of a target and those below it, such as your own crate.
    /// Like those of `nearfield` they are recorded up to the level `DEBUG`.
    pub fn target(mut self, prefix: &str) -> Self {
        self.targets.push(prefix.into());
        self
    }

    /// Maximum number of records that wait to be written, 65536 by default. More are dropped, and
    /// the trace holds their number.
    pub fn queue(mut self, records: usize) -> Self {
        self.queue = records;
        self
    }

    /// Called once, on a thread of the recording, when the trace cannot be written any further. By
    /// default one line goes to standard error. The program goes on either way.
    pub fn on_error(mut self, tell: impl FnOnce(&Error) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(tell));
        self
    }

    /// Records into a file, with a layer to add to a subscriber of your own. The file replaces one
    /// that is there as soon as something is recorded, or when the recording ends. A path that ends
    /// with `.zst` is written compressed.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] when the file cannot be made, and [`ErrorKind::Thread`].
    pub fn record<S>(self, path: impl AsRef<Path>) -> Result<(BoxedLayer<S>, Recording), Error>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let path = path.as_ref().to_owned();
        let file = NewFile::create(&path).map_err(|source| Error::write(&path, source))?;
        let file = BufWriter::new(file);
        let to = match is_compressed(&path) {
            true => Destination::Compressed(Compressor::new(file)),
            false => Destination::File(file),
        };
        self.record_into(to, path)
    }

    /// Records into anything that takes bytes, which messages call `name`; buffer it.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn record_to<S>(
        self,
        to: impl Write + Send + 'static,
        name: impl Into<PathBuf>,
    ) -> Result<(BoxedLayer<S>, Recording), Error>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        self.record_into(Destination::Other(Box::new(to)), name.into())
    }

    fn record_into<S>(
        self,
        to: Destination,
        path: PathBuf,
    ) -> Result<(BoxedLayer<S>, Recording), Error>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let tell = self.on_error.unwrap_or_else(|| {
            Box::new(|error: &Error| {
                // A standard error that is full or closed is not a reason to panic.
                writeln!(io::stderr(), "{error}; the run goes on without a trace").ok();
            })
        });
        let named = path.clone();
        let on_error = Box::new(move |error: &io::Error| tell(&write_error(&named, error)));
        let mut header = Header::now(self.program);
        header.rank = self.rank;
        let (sink, thread) = open(to, &header, self.queue, on_error)?;
        flush_on_panic(Arc::downgrade(&sink));
        let layer = TraceLayer::new(Arc::clone(&sink))
            .with_filter(filter(self.targets))
            .boxed();
        let recording = Recording {
            sink,
            thread: Some(thread),
            path,
        };
        Ok((layer, recording))
    }

    /// Names the rank whose trace this is, in a run of many; see
    /// `write_merged` of the crate `nearfield-trace-analysis`.
    pub fn rank(mut self, rank: u32) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Records into a file, with a subscriber that does nothing else, installed for the process.
    ///
    /// # Errors
    /// As [`record`](Self::record), and [`ErrorKind::Installed`] when there is a subscriber
    /// already.
    pub fn start(self, path: impl AsRef<Path>) -> Result<Recording, Error> {
        let (layer, recording) = self.record(path)?;
        let subscriber = Registry::default().with(layer);
        match tracing::subscriber::set_global_default(subscriber) {
            Ok(()) => Ok(recording),
            Err(_) => {
                recording.abandon();
                Err(ErrorKind::Installed.into())
            }
        }
    }
}

/// Records this process into a file: [`Options::start`] with the default options.
///
/// # Errors
/// As [`Options::start`].
pub fn start(path: impl AsRef<Path>) -> Result<Recording, Error> {
    Options::default().start(path)
}

/// Records into a file with a layer for your own subscriber: [`Options::record`] with the default
/// options.
///
/// ```no_run
/// use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
///
/// let (layer, trace) = nearfield_trace::record("trace.jsonl")?;
/// tracing_subscriber::registry().with(layer).init();
/// // ...
/// trace.finish()?;
/// # Ok::<(), nearfield_trace::Error>(())
/// ```
///
/// # Errors
/// As [`Options::record`].
pub fn record<S>(path: impl AsRef<Path>) -> Result<(BoxedLayer<S>, Recording), Error>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Options::default().record(path)
}

/// A recording under way; it ends when this is dropped, and everything is in the file then.
/// Records from before a panic are written too.
#[derive(Debug)]
#[must_use = "the recording ends when this is dropped"]
pub struct Recording {
    sink: Arc<Sink>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Recording {
    /// Ends the recording, and says whether everything is in the file.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] when it could not be written to the end, and in a forked child, which
    /// records nothing.
    pub fn finish(mut self) -> Result<(), Error> {
        let inherited = self.sink.is_inherited();
        self.end();
        if inherited {
            let source = io::Error::other(
                "the recording belongs to the process that this one was forked from, which writes it",
            );
            return Err(Error::write(&self.path, source));
        }
        match self.sink.take_error() {
            Some(error) => Err(write_error(&self.path, &error)),
            None => Ok(()),
        }
    }

    /// Ends the recording of a run that failed. Its records are kept; if there are none, an
    /// old file of the same name stays as it was.
    pub fn abandon(mut self) {
        self.end_by(Sink::abandon);
    }

    fn end(&mut self) {
        self.end_by(Sink::close);
    }

    fn end_by(&mut self, tell: impl FnOnce(&Sink)) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.sink.is_inherited() {
            // Neither joined nor detached: a forked child has no such thread.
            std::mem::forget(thread);
            return;
        }
        tell(&self.sink);
        // It does not panic; if it did, its message has been printed.
        let _ = thread.join();
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_error(path: &Path, error: &io::Error) -> Error {
    let source = match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    };
    Error::write(path, source)
}

/// A filter for `targets`, so that spans of other layers cost nothing here.
fn filter(targets: Vec<String>) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    FilterFn::new(move |metadata: &Metadata<'_>| {
        let target = metadata.target();
        *metadata.level() <= Level::DEBUG
            && targets
                .iter()
                .any(|prefix| target.starts_with(prefix.as_str()))
    })
    .with_max_level_hint(LevelFilter::DEBUG)
}

/// Installs a panic hook that first writes the records so far.
fn flush_on_panic(sink: Weak<Sink>) {
    // A hook cannot be set while this thread panics.
    if thread::panicking() {
        return;
    }
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if let Some(sink) = sink.upgrade() {
            sink.flush(PATIENCE);
        }
        previous(info);
    }));
}

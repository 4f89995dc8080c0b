//! The layer that turns the engine's spans and events into records.
//!
//! A span becomes a record when it closes, an event when it happens. Nothing is written here: a
//! record goes into a queue of fixed length, and is dropped and counted when that is full, so the
//! program never waits for a disk.

mod convert;
mod fields;
mod sink;

pub(crate) use sink::{Destination, Sink, open};

use crate::model::{Fields, Interval, Phase, Record, Span, Step, Text, Theta};
use fields::Collect;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// The layer itself; it takes every span and event that it is handed.
#[derive(Debug)]
pub(crate) struct TraceLayer {
    sink: Arc<Sink>,
    spans: AtomicU64,
    origins: convert::Origins,
}

/// Data of a span while it is open.
struct OpenSpan {
    id: u64,
    parent: u64,
    begin: u64,
    thread: Text,
    /// The number of the step it is part of.
    step: Option<u64>,
    /// Whether it is the step.
    is_step: bool,
    /// Moment that times in events count from: the start of the step, or of the outermost span.
    origin: u64,
    fields: Fields,
}

impl TraceLayer {
    pub(crate) fn new(sink: Arc<Sink>) -> Self {
        Self {
            sink,
            spans: AtomicU64::new(1),
            origins: convert::Origins::default(),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceLayer {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id).filter(|_| self.sink.is_open()) else {
            return;
        };
        let mut fields = Fields::new();
        attributes.record(&mut Collect(&mut fields));
        let outer = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let parent = extensions.get::<OpenSpan>()?;
            Some((parent.id, parent.step, parent.origin))
        });
        let begin = self.sink.now();
        let (parent, outer_step, outer_origin) = outer.unwrap_or((0, None, begin));
        let own_step = fields.get("step").and_then(|step| step.count());
        // A solver's step within a step of the calling program is a stage of the latter.
        let is_step = outer_step.is_none() && own_step.is_some();
        let open = OpenSpan {
            id: self.spans.fetch_add(1, Ordering::Relaxed),
            parent,
            begin,
            thread: thread_name(),
            step: outer_step.or(own_step),
            is_step,
            origin: if is_step { begin } else { outer_origin },
            fields,
        };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut Collect(&mut open.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if !self.sink.is_open() {
            return;
        }
        let at = self.sink.now();
        let (mut step, mut origin) = (None, at);
        if let Some(span) = ctx.event_span(event)
            && let Some(open) = span.extensions().get::<OpenSpan>()
        {
            step = open.step;
            origin = open.origin;
        }
        let mut fields = Fields::new();
        event.record(&mut Collect(&mut fields));
        let thread = thread_name();
        let place = convert::Place {
            step,
            origin,
            at,
            spans: &self.spans,
            origins: &self.origins,
            thread: &thread,
        };
        self.sink
            .put(convert::event(event.metadata(), fields, place));
    }

    fn on_close(&self, id: span::Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        let time = Interval::new(open.begin, self.sink.now());
        if open.is_step {
            self.sink.put(Record::Step(step_of(&open, time)));
        }
        let name = span.name();
        let (backend, phase) = backend_of(name);
        self.sink.put(Record::Span(Span {
            name: name.into(),
            backend: backend.map(Text::from),
            phase,
            id: open.id,
            parent: open.parent,
            thread: open.thread,
            time,
            fields: open.fields,
        }));
    }
}

fn step_of(open: &OpenSpan, time: Interval) -> Step {
    let count = |name: &str| open.fields.get(name).and_then(|value| value.count());
    let number = |name: &str| open.fields.get(name).and_then(|value| value.number());
    Step {
        step: open.step.unwrap_or(0),
        time,
        points: count("points"),
        pairs: count("pairs"),
        theta: number("theta").map(Theta),
        share: number("share"),
    }
}

/// The backend that a stage keeps busy, and with what, by the stage's name: `cpu.search`,
/// `gpu.upload`.
fn backend_of(name: &str) -> (Option<&'static str>, Phase) {
    let (of, what) = name.split_once('.').unwrap_or((name, ""));
    let phase = match what {
        "upload" => Phase::Upload,
        "download" => Phase::Download,
        "exchange" => Phase::Exchange,
        _ => Phase::Compute,
    };
    match of {
        "cpu" | "grid" => (Some("cpu"), phase),
        "gpu" => (Some("gpu"), phase),
        _ => (None, Phase::Compute),
    }
}

fn thread_name() -> Text {
    let thread = thread::current();
    match thread.name() {
        Some("main") => "main".into(),
        Some(name) => name.to_owned().into(),
        None => format!("{:?}", thread.id()).into(),
    }
}

//! Makes traces of runs whose cause is known.

use nearfield_trace_analysis::{
    CauseKind,
    model::{Interval, Note, Record, Retune, Span, Step, Subregion, Theta, Value},
};

/// Names and values of fields.
pub(super) type Fields<'a> = &'a [(&'static str, &'static str)];

/// Makes a run step by step. Times are microseconds.
#[derive(Default)]
pub(super) struct Maker {
    records: Vec<Record>,
    pub(super) now: u64,
    ids: u64,
    steps: u64,
    whole: u64,
    begin: u64,
    pub(super) policy: &'static str,
}

/// Time and work of a backend in a step.
pub(super) type Part = (u64, u64);

impl Maker {
    pub(super) fn span(&mut self, name: &'static str, begin: u64, end: u64) -> &mut Span {
        let time = Interval::new(1000 * begin, 1000 * end);
        let ids = (self.ids, self.whole);
        self.ids += 1;
        self.records
            .push(Record::Span(crate::made::span(name, ids, time)));
        let Some(Record::Span(span)) = self.records.last_mut() else {
            unreachable!()
        };
        span
    }

    pub(super) fn begin(&mut self) -> &mut Self {
        (self.begin, self.whole) = (self.now, self.ids);
        self.ids += 1;
        self
    }

    /// A stage of the calling thread.
    pub(super) fn stage(&mut self, name: &'static str, took: u64) -> &mut Self {
        self.stage_with(name, took, &[])
    }

    pub(super) fn stage_with(
        &mut self,
        name: &'static str,
        took: u64,
        fields: Fields<'_>,
    ) -> &mut Self {
        let end = self.now + took;
        let span = self.span(name, self.now, end);
        for (name, text) in fields {
            let value = match text.parse() {
                Ok(count) => Value::Count(count),
                Err(_) => text
                    .parse()
                    .map_or(Value::Text((*text).into()), Value::Number),
            };
            span.fields.insert((*name).into(), value);
        }
        self.now = end;
        self
    }

    /// Time without a stage.
    pub(super) fn pause(&mut self, took: u64) -> &mut Self {
        self.now += took;
        self
    }

    /// A kernel from now on, for which the host does not wait.
    pub(super) fn kernel(&mut self, took: u64) -> &mut Self {
        let end = self.now + took;
        let span = self.span("gpu.kernel", self.now, end);
        (span.thread, span.parent) = ("gpu".into(), 0);
        span.fields
            .insert("kernel".into(), Value::Text("forces".into()));
        self
    }

    /// A kernel that the host waits for.
    pub(super) fn kernel_waited(&mut self, took: u64) -> &mut Self {
        self.kernel(took)
            .stage_with("host.wait", took, &[("what", "kernels")])
    }

    /// A copy that the host waits for.
    pub(super) fn copy(&mut self, took: u64, direction: &'static str) -> &mut Self {
        let what = if direction == "to_host" {
            "particles"
        } else {
            "walls"
        };
        let fields = [
            ("what", what),
            ("direction", direction),
            ("bytes", "41000000"),
        ];
        self.stage_with("host.copy", took, &fields)
    }

    /// Work of both backends from now on; the step waits for the later one.
    pub(super) fn split(&mut self, cpu: Part, gpu: Part) -> &mut Self {
        for (backend, (took, work)) in [("cpu", cpu), ("gpu", gpu)] {
            if work == 0 {
                continue;
            }
            let compute = Interval::new(1000 * self.now, 1000 * (self.now + took));
            self.records.push(Record::Subregion(Subregion {
                compute: Some(compute),
                ..crate::made::subregion(self.steps, 0, backend, work)
            }));
        }
        self.now += cpu.0.max(gpu.0);
        self
    }

    /// The same, in which the GPU's points are sent before it computes; not hidden.
    pub(super) fn split_after_upload(&mut self, cpu: Part, upload: u64, gpu: Part) -> &mut Self {
        let sent = self.now + upload;
        let end = self.now + cpu.0.max(upload + gpu.0);
        let moments = [self.now, sent, sent + gpu.0].map(|at| 1000 * at);
        self.split(cpu, (0, 0));
        self.records.push(Record::Subregion(Subregion {
            upload: Some(Interval::new(moments[0], moments[1])),
            compute: Some(Interval::new(moments[1], moments[2])),
            ..crate::made::subregion(self.steps, 0, "gpu", gpu.1)
        }));
        self.now = end;
        self
    }

    /// A decision after the step that ends next; `moved` if it changes the split.
    pub(super) fn retune(&mut self, moved: bool, reason: &'static str) -> &mut Self {
        let theta = |theta: f64| Some(Theta(theta));
        self.records.push(Record::Retune(Retune {
            step: Some(self.steps),
            at: 1000 * self.now,
            policy: self.policy.into(),
            theta_before: theta(12.0),
            theta: theta(if moved { 20.0 } else { 12.0 }),
            exploration: reason == "explore",
            reason: reason.into(),
            ..Retune::default()
        }));
        self
    }

    pub(super) fn end(&mut self) -> &mut Self {
        let time = Interval::new(1000 * self.begin, 1000 * self.now);
        let mut whole = crate::made::span("sph.step", (self.whole, 0), time);
        whole.fields.insert("step".into(), Value::Count(self.steps));
        self.records.push(Record::Span(whole));
        self.records.push(Record::Step(Step {
            step: self.steps,
            time,
            ..Step::default()
        }));
        (self.steps, self.whole) = (self.steps + 1, 0);
        self
    }

    /// What a thread that draws does, from a moment before now.
    pub(super) fn beside(&mut self, ago: u64) -> &mut Self {
        let begin = self.now - ago;
        self.span("beside.draw", begin, self.now).thread = "frames-0".into();
        self
    }

    pub(super) fn note(
        &mut self,
        message: &'static str,
        fields: &[(&'static str, Value)],
    ) -> &mut Self {
        let fields = fields
            .iter()
            .cloned()
            .map(|(name, value)| (name.into(), value));
        self.records.push(Record::Note(Note {
            at: 1000 * self.now,
            level: "warn".into(),
            message: message.into(),
            fields: fields.collect(),
        }));
        self
    }

    /// The engine's threads, on a machine with four.
    pub(super) fn threads(&mut self, threads: u64) -> &mut Self {
        self.note("engine.device", &[("threads", Value::Count(threads))])
    }
}

/// Forty steps.
pub(super) fn run(make: impl Fn(&mut Maker, u64)) -> Vec<Record> {
    let mut maker = Maker {
        now: 1000,
        ids: 1,
        policy: "model",
        ..Maker::default()
    };
    for step in 0..40 {
        make(&mut maker, step);
    }
    maker.records
}

/// A run with the cause that costs most, or none.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) cause: Option<CauseKind>,
    pub(super) records: Vec<Record>,
}

pub(super) fn case(
    name: &'static str,
    cause: impl Into<Option<CauseKind>>,
    make: impl Fn(&mut Maker, u64),
) -> Case {
    Case {
        name,
        cause: cause.into(),
        records: run(make),
    }
}

/// Steps of ranks as threads, each with its time of searching and of waiting.
pub(super) fn ranks(each: [(u64, &'static str, u64); 2]) -> impl Fn(&mut Maker, u64) {
    move |m, _| {
        let now = m.begin().now;
        let mut last = now;
        for (rank, (search, waits, waited)) in each.into_iter().enumerate() {
            let thread = format!("rank {rank}");
            m.span("cpu.search", now, now + search).thread = thread.clone().into();
            let span = m.span(waits, now + search, now + search + waited);
            span.thread = thread.into();
            last = last.max(now + search + waited);
        }
        m.now = last;
        m.end();
    }
}

//! Runs whose cause is known: the verdict has to name it, and nothing on healthy runs.

use crate::made::trace;
use nearfield_trace_analysis::{
    Analysis, CauseKind, Markdown, Summary, Trace,
    model::{
        GPU_FAILED, GPU_LOST, Interval, Note, Record, Retune, Span, Step, Subregion, Theta, Value,
    },
};

type Fields = &'static [(&'static str, &'static str)];

/// Makes a run step by step. Times are microseconds.
struct Maker {
    records: Vec<Record>,
    now: u64,
    ids: u64,
    steps: u64,
    whole: u64,
    begin: u64,
    policy: &'static str,
}

/// Time and work of a backend in a step.
type Part = (u64, u64);

impl Maker {
    fn new() -> Self {
        Self {
            records: Vec::new(),
            now: 1000,
            ids: 1,
            steps: 0,
            whole: 0,
            begin: 0,
            policy: "model",
        }
    }

    fn span(&mut self, name: &'static str, begin: u64, end: u64) -> &mut Span {
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

    fn begin(&mut self) -> &mut Self {
        (self.begin, self.whole) = (self.now, self.ids);
        self.ids += 1;
        self
    }

    /// A stage of the calling thread.
    fn stage(&mut self, name: &'static str, took: u64) -> &mut Self {
        self.stage_with(name, took, &[])
    }

    fn stage_with(&mut self, name: &'static str, took: u64, fields: Fields) -> &mut Self {
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
    fn pause(&mut self, took: u64) -> &mut Self {
        self.now += took;
        self
    }

    /// A kernel from now on, for which the host does not wait.
    fn kernel(&mut self, took: u64) -> &mut Self {
        let end = self.now + took;
        let span = self.span("gpu.kernel", self.now, end);
        (span.thread, span.parent) = ("gpu".into(), 0);
        span.fields
            .insert("kernel".into(), Value::Text("forces".into()));
        self
    }

    /// A kernel that the host waits for.
    fn kernel_waited(&mut self, took: u64) -> &mut Self {
        self.kernel(took)
            .stage_with("host.wait", took, &[("what", "kernels")])
    }

    /// A copy that the host waits for.
    fn copy(&mut self, took: u64, direction: &'static str) -> &mut Self {
        let fields: Fields = match direction {
            "to_host" => &[
                ("what", "particles"),
                ("direction", "to_host"),
                ("bytes", "41000000"),
            ],
            _ => &[
                ("what", "walls"),
                ("direction", "to_device"),
                ("bytes", "41000000"),
            ],
        };
        self.stage_with("host.copy", took, fields)
    }

    /// Work of both backends from now on; the step waits for the later one.
    fn split(&mut self, cpu: Part, gpu: Part) -> &mut Self {
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
    fn split_after_upload(&mut self, cpu: Part, upload: u64, gpu: Part) -> &mut Self {
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
    fn retune(&mut self, moved: bool, reason: &'static str) -> &mut Self {
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

    fn end(&mut self) -> &mut Self {
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
    fn beside(&mut self, ago: u64) -> &mut Self {
        let begin = self.now - ago;
        self.span("beside.draw", begin, self.now).thread = "frames-0".into();
        self
    }

    fn note(&mut self, message: &'static str, fields: &[(&'static str, Value)]) -> &mut Self {
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
    fn threads(&mut self, threads: u64) -> &mut Self {
        self.note("engine.device", &[("threads", Value::Count(threads))])
    }
}

fn run(make: impl Fn(&mut Maker, u64)) -> Vec<Record> {
    let mut maker = Maker::new();
    for step in 0..40 {
        make(&mut maker, step);
    }
    maker.records
}

/// Ranks as threads, each with its time of searching and of waiting.
fn ranks(each: &[(u64, &'static str, u64)]) -> Vec<Record> {
    run(|m, _| {
        let now = m.begin().now;
        let mut last = now;
        for (rank, (search, waits, waited)) in each.iter().enumerate() {
            let thread = format!("rank {rank}");
            m.span("cpu.search", now, now + search).thread = thread.clone().into();
            let span = m.span(waits, now + search, now + search + waited);
            span.thread = thread.into();
            last = last.max(now + search + waited);
        }
        m.now = last;
        m.end();
    })
}

/// Runs with the cause that costs most.
fn sick() -> Vec<(&'static str, CauseKind, Vec<Record>)> {
    use CauseKind::*;
    let fixed = |policy: &'static str, cpu: Part, gpu: Part| {
        run(move |m, _| {
            m.policy = policy;
            m.begin()
                .split(cpu, gpu)
                .retune(false, "theta is fixed")
                .end();
        })
    };
    let mut all = vec![
        (
            "everything on the CPU",
            IdleBackend,
            fixed("fixed:100000", (9000, 100), (0, 0)),
        ),
        (
            "everything on the GPU",
            IdleBackend,
            fixed("fixed:0", (0, 0), (9000, 100)),
        ),
        (
            "too much for the CPU",
            Split,
            fixed("fixed:20", (9000, 50), (1000, 50)),
        ),
        (
            "too much for the GPU",
            Split,
            fixed("fixed:2", (1000, 20), (9000, 80)),
        ),
    ];
    all.extend(on_the_host());
    all.extend(on_a_gpu());
    all.extend(of_policies());
    all.extend(now_and_then());
    all
}

fn on_the_host() -> Vec<(&'static str, CauseKind, Vec<Record>)> {
    use CauseKind::*;
    vec![
        (
            "one thread of four",
            UnusedCores,
            run(|m, _| {
                m.threads(1).begin().stage("cpu.search", 8000);
                m.stage("engine.traverse", 1500).end();
            }),
        ),
        (
            "a wide skin",
            Skin,
            run(|m, _| {
                let reach: Fields = &[("cutoff", "2.5"), ("list_radius", "6.5")];
                m.threads(4)
                    .begin()
                    .stage_with("engine.traverse", 9000, reach);
                let now = m.now;
                m.span("cpu.traverse_lists", now - 8900, now - 100);
                m.end();
            }),
        ),
        (
            "a slow callback of the program",
            HostStage,
            run(|m, _| {
                m.begin()
                    .stage("cpu.traverse", 4000)
                    .stage("sph.kick", 6000)
                    .end();
            }),
        ),
        (
            "a program that marks nothing",
            Unmarked,
            run(|m, _| {
                m.begin().stage("cpu.traverse", 4000).pause(6000).end();
            }),
        ),
        (
            "points in no order",
            Sorting,
            run(|m, _| {
                m.begin()
                    .stage("grid.sort", 6000)
                    .stage("cpu.search", 4000)
                    .end();
            }),
        ),
        (
            "files written between the steps",
            BetweenSteps,
            run(|m, _| {
                m.begin()
                    .stage("cpu.traverse", 4000)
                    .end()
                    .stage("frame.write", 3000);
            }),
        ),
        (
            "drawing on the cores of the engine",
            Beside,
            run(|m, step| {
                let draws = step % 2 == 1;
                let took = if draws { 9000 } else { 4000 };
                m.begin().stage("cpu.traverse", took).end();
                if draws {
                    m.beside(took);
                }
            }),
        ),
        (
            "one rank has most of the work",
            UnevenRanks,
            ranks(&[(9000, "ranks.wait", 100), (2000, "ranks.wait", 7100)]),
        ),
        (
            "ranks that agree all the time",
            RankWaits,
            ranks(&[(3000, "ranks.agree", 6000), (3000, "ranks.agree", 6000)]),
        ),
        (
            "ranks that wait for messages",
            RankWaits,
            ranks(&[(3000, "ranks.wait", 6000), (3000, "ranks.wait", 6000)]),
        ),
    ]
}

fn on_a_gpu() -> Vec<(&'static str, CauseKind, Vec<Record>)> {
    use CauseKind::*;
    vec![
        (
            "a copy to the host in every step",
            Copy,
            run(|m, _| {
                m.begin().kernel_waited(2000).copy(9000, "to_host").end();
            }),
        ),
        (
            "a copy to the device in every step",
            Copy,
            run(|m, _| {
                m.begin().copy(5000, "to_device").kernel_waited(2000).end();
            }),
        ),
        (
            "a slow callback between kernels",
            HostStage,
            run(|m, _| {
                m.begin()
                    .kernel_waited(2000)
                    .stage("md.thermostat", 5000)
                    .end();
            }),
        ),
        (
            "the CPU sorts while the GPU waits",
            CpuStage,
            run(|m, _| {
                m.begin()
                    .stage("cpu.sort_lists", 5000)
                    .kernel_waited(2000)
                    .end();
            }),
        ),
        (
            "kernels with time between them",
            Wait,
            run(|m, _| {
                m.begin();
                for _ in 0..10 {
                    m.kernel(50)
                        .stage_with("host.wait", 200, &[("what", "kernels")]);
                }
                m.end();
            }),
        ),
        (
            "small kernels, which the host queues slowly",
            Queueing,
            run(|m, _| {
                m.begin();
                for _ in 0..10 {
                    m.kernel(50).stage("sph.device_step", 200);
                }
                m.end();
            }),
        ),
        (
            "a GPU that fails",
            GpuLost,
            run(|m, step| {
                if step == 20 {
                    let lost = [
                        ("lost", Value::Bool(true)),
                        ("error", Value::Text("Xid 79".into())),
                    ];
                    m.note(GPU_FAILED, &lost);
                }
                m.begin();
                if step < 20 {
                    m.kernel_waited(2000);
                } else {
                    m.stage("cpu.traverse", 9000);
                }
                m.end();
            }),
        ),
    ]
}

fn of_policies() -> Vec<(&'static str, CauseKind, Vec<Record>)> {
    use CauseKind::*;
    vec![
        (
            "a split that goes to and fro",
            Unsettled,
            run(|m, step| {
                m.policy = "band:0.8:0.95";
                let cpu = if step % 2 == 0 {
                    (8000, 80)
                } else {
                    (2000, 20)
                };
                let gpu = if step % 2 == 0 {
                    (1000, 20)
                } else {
                    (4000, 80)
                };
                m.begin().split(cpu, gpu).retune(true, "above").end();
            }),
        ),
        (
            "a policy that never settles",
            Unsettled,
            run(|m, step| {
                m.policy = "band:0.8:0.95";
                let cpu = (9000 - 200 * step, 90 - 2 * step);
                m.begin()
                    .split(cpu, (1000, 10 + 2 * step))
                    .retune(true, "above")
                    .end();
            }),
        ),
        (
            "exploration in a short run",
            Exploration,
            run(|m, step| {
                m.begin();
                if step % 8 == 5 {
                    m.split((40_000, 100), (0, 0));
                } else {
                    m.split((5000, 20), (5000, 80));
                }
                let reason = if step % 8 == 4 {
                    "explore"
                } else {
                    "not worth a move"
                };
                m.retune(step % 8 == 4, reason).end();
            }),
        ),
        (
            "a long way to the best threshold",
            Settling,
            run(|m, step| {
                m.begin();
                if step < 10 {
                    m.split((14_000, 90 - 4 * step), (1000, 10 + 4 * step));
                } else {
                    m.split((5000, 20), (5000, 80));
                }
                m.retune(step < 10, "predicted").end();
            }),
        ),
    ]
}

fn now_and_then() -> Vec<(&'static str, CauseKind, Vec<Record>)> {
    use CauseKind::*;
    vec![
        (
            "a cold start",
            ColdStart,
            run(|m, step| {
                m.begin();
                if step == 0 {
                    m.note("gpu.compile", &[("milliseconds", Value::Number(700.0))]);
                    m.stage("gpu.compile", 800_000);
                }
                m.kernel_waited(5000).end();
            }),
        ),
        (
            "a step in which the GPU is taken in",
            Stalls,
            run(|m, step| {
                m.begin().stage("cpu.traverse", 4000);
                if step == 9 {
                    m.stage("cpu.traverse", 230_000);
                }
                m.end();
            }),
        ),
    ]
}

/// Runs in which nothing stands out.
fn healthy() -> Vec<(&'static str, Vec<Record>)> {
    let mut all = vec![
        (
            "a search on the CPU",
            run(|m, _| {
                m.threads(4)
                    .begin()
                    .stage("grid.sort", 500)
                    .stage("cpu.search", 9000)
                    .end();
            }),
        ),
        (
            "an engine that leaves a core to the system",
            run(|m, _| {
                m.threads(4)
                    .begin()
                    .stage("cpu.traverse", 9000)
                    .stage("sph.kick", 500)
                    .end();
            }),
        ),
        (
            "a busy GPU",
            run(|m, _| {
                m.begin().kernel_waited(9000).copy(300, "to_host").end();
            }),
        ),
        (
            "lists with a narrow skin",
            run(|m, _| {
                let reach: Fields = &[("cutoff", "2.5"), ("list_radius", "3.0")];
                m.begin().stage_with("engine.traverse", 9000, reach);
                let now = m.now;
                m.span("cpu.traverse_lists", now - 8900, now);
                m.end();
            }),
        ),
        (
            "drawing on cores of its own",
            run(|m, step| {
                m.begin().stage("cpu.traverse", 4000).end();
                if step % 2 == 1 {
                    m.beside(4000);
                }
            }),
        ),
        (
            "ranks with equal work",
            ranks(&[(9000, "ranks.wait", 300), (8700, "ranks.wait", 600)]),
        ),
    ];
    all.extend(healthy_splits());
    all
}

fn healthy_splits() -> Vec<(&'static str, Vec<Record>)> {
    vec![
        (
            "a model that found no move worth it",
            run(|m, _| {
                // The GPU is ready later, and has fixed costs that no other share would lower.
                m.begin().split((3000, 20), (6000, 80));
                m.retune(false, "not worth a move").end();
            }),
        ),
        (
            "a model that leaves all to the GPU",
            run(|m, step| {
                m.begin();
                if step == 2 {
                    m.split((5200, 30), (2000, 70));
                } else {
                    m.split((0, 0), (5000, 100));
                }
                let reason = if step == 1 {
                    "explore"
                } else {
                    "not worth a move"
                };
                m.retune(false, reason).end();
            }),
        ),
        (
            "a fixed threshold that divides well",
            run(|m, _| {
                m.policy = "fixed:12";
                m.begin().split((5000, 20), (4700, 80));
                m.retune(false, "theta is fixed").end();
            }),
        ),
        (
            "a band within its bounds",
            run(|m, _| {
                m.policy = "band:0.8:0.95";
                m.begin()
                    .split((4100, 20), (5000, 80))
                    .retune(false, "within")
                    .end();
            }),
        ),
        (
            "a policy that settled at once, with one slower first step",
            run(|m, step| {
                let took = if step == 0 { 9000 } else { 5000 };
                m.begin()
                    .split((took, 20), (5000, 80))
                    .retune(false, "keep")
                    .end();
            }),
        ),
    ]
}

fn summary_of(made: Vec<Record>) -> Summary {
    let read: Trace = trace(made);
    Analysis::of(&read).unwrap().summary
}

#[test]
fn every_known_cause_is_named_first_with_its_cost() {
    let runs = sick();
    assert!(runs.len() >= 20, "{}", runs.len());
    let mut wrong = Vec::new();
    for (name, cause, records) in runs {
        let summary = summary_of(records);
        let first = summary.findings.first();
        println!("{name}: {}", summary.verdict);
        let named = first.is_some_and(|first| {
            let (what, remedy) = (&first.what, &first.remedy);
            let complete = summary.verdict.contains(&**what) && summary.verdict.contains(&**remedy);
            first.cause == cause && complete && summary.verdict.contains(" ms a step); try ")
        });
        if !named {
            wrong.push(format!(
                "{name} should be {cause:?}: {:?}",
                summary.findings
            ));
        }
        for advice in &summary.advice {
            assert!(!summary.verdict.contains(&**advice), "{name}: said twice");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn healthy_runs_have_no_finding() {
    let runs = healthy();
    assert!(runs.len() >= 10, "{}", runs.len());
    for (name, records) in runs {
        let summary = summary_of(records);
        println!("{name}: {}", summary.verdict);
        assert!(
            summary.findings.is_empty(),
            "{name}: {:?}",
            summary.findings
        );
        assert!(
            !summary.verdict.contains("try "),
            "{name}: {}",
            summary.verdict
        );
    }
}

#[test]
fn costs_are_those_that_were_made() {
    let cost = |wanted: &str| {
        let found = sick().into_iter().find(|(name, ..)| *name == wanted);
        summary_of(found.unwrap().2).findings[0].ms_per_step
    };
    for (name, ms) in [
        ("a copy to the host in every step", 9.0),
        ("a slow callback of the program", 6.0),
        ("files written between the steps", 3.0 * 39.0 / 40.0),
        ("drawing on the cores of the engine", 2.5),
        ("a cold start", 800.0 / 40.0),
        ("exploration in a short run", 5.0 * 35.0 / 40.0),
        ("a GPU that fails", 7.0),
        ("one thread of four", 6.0),
        // The CPU does 50 of 100 at 50/9 per ms, the GPU at 50/1: together in 1.8 ms.
        ("too much for the CPU", 9.0 - 1.8),
    ] {
        assert!(
            (cost(name) - ms).abs() < 0.02 * ms,
            "{name}: {} for {ms}",
            cost(name)
        );
    }
}

#[test]
fn idle_time_of_a_gpu_is_split_by_what_it_waits_for() {
    let made = run(|m, _| {
        m.begin()
            .kernel_waited(2000)
            .stage_with("host.wait", 1000, &[("what", "kernels")]);
        m.copy(3000, "to_host").stage("sph.kick", 4000);
        m.end();
    });
    let summary = summary_of(made);
    let idle = summary.backends["gpu"].idle_for.unwrap();
    assert_eq!(
        [idle.host, idle.copies, idle.kernels, idle.unknown],
        [160.0, 120.0, 40.0, 0.0]
    );
    let text = summary.to_string();
    assert!(
        text.contains("for the host 160.0 ms, for copies 120.0 ms"),
        "{text}"
    );
}

#[test]
fn a_summary_in_markdown_has_verdict_findings_and_stages() {
    let made = run(|m, _| {
        m.begin().kernel_waited(2000).copy(9000, "to_host").end();
    });
    let text = Markdown(&summary_of(made)).to_string();
    assert!(
        text.starts_with("**The GPU idles 82 % of the wall time because"),
        "{text}"
    );
    for line in [
        "`made 1.0` on a processor (4 threads), a GPU: 40 steps, median 11 ms, half within 11 ms and",
        "| backend | computes | busy (all steps) | waiting (all steps) | idle (all steps) \
         | longest reason |",
        "| the host copies 41 MB to the host in `particles` | 9.0 ms | to reduce",
        "| `host.copy (particles)` | 40 | 360 ms | 360 ms | 9.0 ms |",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "{line}\n{text}"
        );
    }
}

/// The finding of a kind, if there is one.
fn cost_of(summary: &Summary, cause: CauseKind) -> Option<f64> {
    let found = (summary.findings.iter()).find(|one| one.cause == cause);
    found.map(|one| one.ms_per_step)
}

#[test]
fn copies_cost_what_settled_steps_spend_on_them() {
    // The first step sends everything.
    let with = |usual: u64| {
        summary_of(run(|m, step| {
            let upload = if step == 0 { 800_000 } else { usual };
            m.begin()
                .split_after_upload((5000, 20), upload, (8000, 80))
                .retune(false, "not worth a move")
                .end();
        }))
    };
    let cost = cost_of(&with(2000), CauseKind::Copy).unwrap();
    assert!((cost - 2.0).abs() < 0.01, "{cost}");
    let few = with(200);
    assert_eq!(cost_of(&few, CauseKind::Copy), None, "{:?}", few.findings);
}

#[test]
fn each_list_has_its_own_skin() {
    let wide: (Fields, u64) = (&[("cutoff", "1"), ("list_radius", "3")], 6000);
    let narrow: (Fields, u64) = (&[("cutoff", "2"), ("list_radius", "2.4")], 4000);
    for order in [[wide, narrow], [narrow, wide]] {
        let summary = summary_of(run(|m, _| {
            m.threads(4).begin();
            for (reach, took) in order {
                m.stage_with("engine.traverse", took, reach);
                let now = m.now;
                m.span("cpu.traverse_lists", now - took, now);
            }
            m.end();
        }));
        let found = summary.findings.first();
        let found = found.unwrap_or_else(|| panic!("{order:?}: {}", summary.verdict));
        assert_eq!(found.cause, CauseKind::Skin, "{order:?}");
        let beyond = 6.0 * (1.0 - 1.0 / 27.0);
        assert!((found.ms_per_step - beyond).abs() < 0.01, "{found:?}");
        assert!(
            found.what.contains("reach 3 where the cut-off is 1"),
            "{found:?}"
        );
    }
}

#[test]
fn a_gpu_that_failed_is_named_whatever_it_costs() {
    let lost = [
        ("lost", Value::Bool(true)),
        ("error", Value::Text("Xid 79".into())),
    ];
    // As slow as before, faster, and in the last step, after which nothing is known.
    for (failed, after, ms) in [(20, 2100, 0.1), (20, 1000, 0.0), (39, 2000, 0.0)] {
        let summary = summary_of(run(|m, step| {
            if step == failed {
                m.note(GPU_FAILED, &lost);
            }
            m.begin();
            if step < failed {
                m.kernel_waited(2000);
            } else {
                m.stage("cpu.traverse", after);
            }
            m.end();
        }));
        let cost = cost_of(&summary, CauseKind::GpuLost);
        let cost = cost.unwrap_or_else(|| panic!("{after}: {:?}", summary.findings));
        assert!((cost - ms).abs() < 0.01, "{cost} for {ms}");
        let told = [&[summary.verdict][..], &summary.advice]
            .concat()
            .join("\n");
        assert!(told.contains("the GPU failed (Xid 79)"), "{told}");
    }
}

#[test]
fn a_gpu_that_a_policy_lost_is_named_and_one_that_is_tried_again_is_not() {
    let with = |reason: &'static str, note_lost: bool| {
        summary_of(run(|m, step| {
            m.begin();
            if step < 20 {
                m.split((5000, 20), (5000, 80));
            } else {
                m.split((5500, 100), (0, 0));
            }
            if step == 19 {
                m.note(GPU_FAILED, &[("lost", Value::Bool(note_lost))]);
                m.retune(true, reason);
            }
            m.end();
        }))
    };
    let decided: &'static str = format!("{GPU_LOST}: everything goes to the CPU backend").leak();
    assert!(cost_of(&with(decided, false), CauseKind::GpuLost).is_some());
    let again = with("the GPU ran out of memory", false);
    assert_eq!(cost_of(&again, CauseKind::GpuLost), None);
}

#[test]
fn a_policy_is_known_by_its_whole_name() {
    let with = |policy: &'static str| {
        summary_of(run(move |m, _| {
            m.policy = policy;
            m.begin().split((9000, 100), (0, 0));
            m.retune(false, "as it is").end();
        }))
    };
    assert!(cost_of(&with("fixed:inf"), CauseKind::IdleBackend).is_some());
    assert_eq!(cost_of(&with("fixedpoint"), CauseKind::IdleBackend), None);
}

#[test]
fn names_in_markdown_stand_for_themselves() {
    let made = run(|m, _| {
        m.begin().kernel_waited(2000).copy(9000, "to_host").end();
    });
    let mut summary = summary_of(made);
    summary.verdict = "the kernel pair_sum<A|B>*2 in `a_b|c` and one ` too".into();
    summary.machine.processor = "a_processor <x> *".into();
    let gpu = summary.backends.remove("gpu").unwrap();
    summary.backends.insert("my_gpu|1".into(), gpu);
    let copies = &mut summary.findings[0];
    copies.what = "`a_b|c` waits for pair_sum<A|B>".into();
    let stage = summary.stages["sph.step"].clone();
    summary.stages.insert("pair_sum<A|B>`".into(), stage);
    let text = Markdown(&summary).to_string();
    for line in [
        r"**The kernel pair\_sum\<A|B>\*2 in `a_b|c` and one \` too.**",
        r"`made 1.0` on a\_processor \<x> \* (4 threads)",
        r"| my\_gpu\|1 | ",
        r"| `a_b\|c` waits for pair\_sum\<A\|B> | ",
        r"| `pair_sum<A\|B>'` | 40 |",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "{line}\n{text}"
        );
    }
}

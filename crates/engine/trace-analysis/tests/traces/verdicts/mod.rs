//! Runs whose cause is known: the verdict has to name it, and nothing on healthy runs.

mod healthy;
mod maker;
mod sick;

use crate::made::trace;
use healthy::healthy;
use maker::{Case, Fields, Maker, run};
use nearfield_trace_analysis::{
    Analysis, CauseKind, Markdown, Summary,
    model::{GPU_FAILED, GPU_LOST, Record, Value},
};
use sick::sick;

fn summary_of(made: Vec<Record>) -> Summary {
    Analysis::of(&trace(made)).unwrap().summary
}

#[test]
fn every_known_cause_is_named_first_with_its_cost() {
    let runs = sick();
    assert!(runs.len() >= 20, "{}", runs.len());
    let mut wrong = Vec::new();
    for Case {
        name,
        cause,
        records,
    } in runs
    {
        let summary = summary_of(records);
        let first = summary.findings.first();
        println!("{name}: {}", summary.verdict);
        let named = first.is_some_and(|first| {
            let (what, remedy) = (&first.what, &first.remedy);
            let complete = summary.verdict.contains(&**what) && summary.verdict.contains(&**remedy);
            Some(first.cause) == cause && complete && summary.verdict.contains(" ms a step); try ")
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
    for Case { name, records, .. } in runs {
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
        let found = sick().into_iter().find(|case| case.name == wanted);
        summary_of(found.unwrap().records).findings[0].ms_per_step
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

fn copies_to_host(m: &mut Maker, _: u64) {
    m.begin().kernel_waited(2000).copy(9000, "to_host").end();
}

#[test]
fn a_summary_in_markdown_has_verdict_findings_and_stages() {
    let text = Markdown(&summary_of(run(copies_to_host))).to_string();
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
    let wide: (Fields<'_>, u64) = (&[("cutoff", "1"), ("list_radius", "3")], 6000);
    let narrow: (Fields<'_>, u64) = (&[("cutoff", "2"), ("list_radius", "2.4")], 4000);
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
    let mut summary = summary_of(run(copies_to_host));
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

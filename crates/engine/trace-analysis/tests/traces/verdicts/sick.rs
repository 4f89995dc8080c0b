//! Runs with one cause that costs most.

use super::maker::{Case, Fields, Maker, Part, case, ranks};
use nearfield_trace_analysis::{
    CauseKind,
    model::{GPU_FAILED, Value},
};

/// All of them.
pub(super) fn sick() -> Vec<Case> {
    use CauseKind::*;
    let mut all = vec![
        case(
            "everything on the CPU",
            IdleBackend,
            fixed("fixed:100000", (9000, 100), (0, 0)),
        ),
        case(
            "everything on the GPU",
            IdleBackend,
            fixed("fixed:0", (0, 0), (9000, 100)),
        ),
        case(
            "too much for the CPU",
            Split,
            fixed("fixed:20", (9000, 50), (1000, 50)),
        ),
        case(
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

fn on_the_host() -> Vec<Case> {
    use CauseKind::*;
    vec![
        case("one thread of four", UnusedCores, |m, _| {
            m.threads(1).begin().stage("cpu.search", 8000);
            m.stage("engine.traverse", 1500).end();
        }),
        case("a wide skin", Skin, |m, _| {
            let reach: Fields<'_> = &[("cutoff", "2.5"), ("list_radius", "6.5")];
            m.threads(4)
                .begin()
                .stage_with("engine.traverse", 9000, reach);
            let now = m.now;
            m.span("cpu.traverse_lists", now - 8900, now - 100);
            m.end();
        }),
        case("a slow callback of the program", HostStage, |m, _| {
            m.begin()
                .stage("cpu.traverse", 4000)
                .stage("sph.kick", 6000)
                .end();
        }),
        case("a program that marks nothing", Unmarked, |m, _| {
            m.begin().stage("cpu.traverse", 4000).pause(6000).end();
        }),
        case("points in no order", Sorting, |m, _| {
            m.begin()
                .stage("grid.sort", 6000)
                .stage("cpu.search", 4000)
                .end();
        }),
        case("files written between the steps", BetweenSteps, |m, _| {
            m.begin()
                .stage("cpu.traverse", 4000)
                .end()
                .stage("frame.write", 3000);
        }),
        case("drawing on the cores of the engine", Beside, |m, step| {
            let draws = step % 2 == 1;
            let took = if draws { 9000 } else { 4000 };
            m.begin().stage("cpu.traverse", took).end();
            if draws {
                m.beside(took);
            }
        }),
        case(
            "one rank has most of the work",
            UnevenRanks,
            ranks([(9000, "ranks.wait", 100), (2000, "ranks.wait", 7100)]),
        ),
        case(
            "ranks that agree all the time",
            RankWaits,
            ranks([(3000, "ranks.agree", 6000), (3000, "ranks.agree", 6000)]),
        ),
        case(
            "ranks that wait for messages",
            RankWaits,
            ranks([(3000, "ranks.wait", 6000), (3000, "ranks.wait", 6000)]),
        ),
    ]
}

fn on_a_gpu() -> Vec<Case> {
    use CauseKind::*;
    vec![
        case("a copy to the host in every step", Copy, |m, _| {
            m.begin().kernel_waited(2000).copy(9000, "to_host").end();
        }),
        case("a copy to the device in every step", Copy, |m, _| {
            m.begin().copy(5000, "to_device").kernel_waited(2000).end();
        }),
        case("a slow callback between kernels", HostStage, |m, _| {
            m.begin()
                .kernel_waited(2000)
                .stage("md.thermostat", 5000)
                .end();
        }),
        case("the CPU sorts while the GPU waits", CpuStage, |m, _| {
            m.begin()
                .stage("cpu.sort_lists", 5000)
                .kernel_waited(2000)
                .end();
        }),
        case("kernels with time between them", Wait, |m, _| {
            m.begin();
            for _ in 0..10 {
                m.kernel(50)
                    .stage_with("host.wait", 200, &[("what", "kernels")]);
            }
            m.end();
        }),
        case(
            "small kernels, which the host queues slowly",
            Queueing,
            |m, _| {
                m.begin();
                for _ in 0..10 {
                    m.kernel(50).stage("sph.device_step", 200);
                }
                m.end();
            },
        ),
        case("a GPU that fails", GpuLost, |m, step| {
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
    ]
}

fn of_policies() -> Vec<Case> {
    use CauseKind::*;
    vec![
        case("a split that goes to and fro", Unsettled, |m, step| {
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
        case("a policy that never settles", Unsettled, |m, step| {
            m.policy = "band:0.8:0.95";
            let cpu = (9000 - 200 * step, 90 - 2 * step);
            m.begin()
                .split(cpu, (1000, 10 + 2 * step))
                .retune(true, "above")
                .end();
        }),
        case("exploration in a short run", Exploration, |m, step| {
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
        case("a long way to the best threshold", Settling, |m, step| {
            m.begin();
            if step < 10 {
                m.split((14_000, 90 - 4 * step), (1000, 10 + 4 * step));
            } else {
                m.split((5000, 20), (5000, 80));
            }
            m.retune(step < 10, "predicted").end();
        }),
    ]
}

fn now_and_then() -> Vec<Case> {
    use CauseKind::*;
    vec![
        case("a cold start", ColdStart, |m, step| {
            m.begin();
            if step == 0 {
                m.note("gpu.compile", &[("milliseconds", Value::Number(700.0))]);
                m.stage("gpu.compile", 800_000);
            }
            m.kernel_waited(5000).end();
        }),
        case("a step in which the GPU is taken in", Stalls, |m, step| {
            m.begin().stage("cpu.traverse", 4000);
            if step == 9 {
                m.stage("cpu.traverse", 230_000);
            }
            m.end();
        }),
    ]
}

/// Steps that a fixed threshold divides.
fn fixed(policy: &'static str, cpu: Part, gpu: Part) -> impl Fn(&mut Maker, u64) {
    move |m, _| {
        m.policy = policy;
        m.begin()
            .split(cpu, gpu)
            .retune(false, "theta is fixed")
            .end();
    }
}

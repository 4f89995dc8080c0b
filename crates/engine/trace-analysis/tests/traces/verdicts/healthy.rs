//! Runs in which nothing stands out.

use super::maker::{Case, Fields, case, ranks};

/// All of them.
pub(super) fn healthy() -> Vec<Case> {
    let mut all = vec![
        case("a search on the CPU", None, |m, _| {
            m.threads(4)
                .begin()
                .stage("grid.sort", 500)
                .stage("cpu.search", 9000)
                .end();
        }),
        case(
            "an engine that leaves a core to the system",
            None,
            |m, _| {
                m.threads(4)
                    .begin()
                    .stage("cpu.traverse", 9000)
                    .stage("sph.kick", 500)
                    .end();
            },
        ),
        case("a busy GPU", None, |m, _| {
            m.begin().kernel_waited(9000).copy(300, "to_host").end();
        }),
        case("lists with a narrow skin", None, |m, _| {
            let reach: Fields<'_> = &[("cutoff", "2.5"), ("list_radius", "3.0")];
            m.begin().stage_with("engine.traverse", 9000, reach);
            let now = m.now;
            m.span("cpu.traverse_lists", now - 8900, now);
            m.end();
        }),
        case("drawing on cores of its own", None, |m, step| {
            m.begin().stage("cpu.traverse", 4000).end();
            if step % 2 == 1 {
                m.beside(4000);
            }
        }),
        case(
            "ranks with equal work",
            None,
            ranks([(9000, "ranks.wait", 300), (8700, "ranks.wait", 600)]),
        ),
    ];
    all.extend(healthy_splits());
    all
}

fn healthy_splits() -> Vec<Case> {
    vec![
        case("a model that found no move worth it", None, |m, _| {
            // The GPU is ready later, and has fixed costs that no other share would lower.
            m.begin().split((3000, 20), (6000, 80));
            m.retune(false, "not worth a move").end();
        }),
        case("a model that leaves all to the GPU", None, |m, step| {
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
        case("a fixed threshold that divides well", None, |m, _| {
            m.policy = "fixed:12";
            m.begin().split((5000, 20), (4700, 80));
            m.retune(false, "theta is fixed").end();
        }),
        case("a band within its bounds", None, |m, _| {
            m.policy = "band:0.8:0.95";
            m.begin()
                .split((4100, 20), (5000, 80))
                .retune(false, "within")
                .end();
        }),
        case(
            "a policy that settled at once, with one slower first step",
            None,
            |m, step| {
                let took = if step == 0 { 9000 } else { 5000 };
                m.begin()
                    .split((took, 20), (5000, 80))
                    .retune(false, "keep")
                    .end();
            },
        ),
    ]
}

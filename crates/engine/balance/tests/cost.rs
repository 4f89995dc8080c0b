//! Deciding must cost little beside a step.

mod common;

use common::{Run, layouts, random_spec};
use nearfield_balance::{Layout, Plan, Policy};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..51)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[25]
}

/// Ten times what it takes on an idle machine of 2024, as others may share this one.
const MOST: Duration = Duration::from_millis(1);

#[test]
fn a_decision_takes_well_under_a_millisecond() {
    for (name, layout) in layouts() {
        let mut run = Run::new(Policy::Model, random_spec(1), &layout);
        run.steps(20);
        let cuts = layout.cuts(layout.thetas(2).unwrap()[1]);
        let plan = Plan::new(&layout, &cuts).unwrap();
        let times = run.machine.quiet(&layout, &plan);
        let decision = median(|| {
            black_box(run.controller.next(&layout, &plan, &times).unwrap());
        });
        let planning = median(|| {
            black_box(Plan::new(&layout, &cuts).unwrap());
        });
        let traffic = *layout.traffic();
        let laying_out = median(|| {
            black_box(Layout::new(layout.bricks().clone(), 32, traffic).unwrap());
        });
        println!(
            "{name}, {} bricks: decision {decision:?}, plan {planning:?}, layout {laying_out:?}",
            layout.bricks().as_slice().len()
        );
        assert!(decision < MOST, "{name}: {decision:?}");
    }
}

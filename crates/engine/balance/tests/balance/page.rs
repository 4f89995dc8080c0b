//! The run of policy `band` in the documentation.

use crate::common::pool_and_spray;
use nearfield_balance::{
    Backend, Bricks, Controller, Layout, Machine, Neighbourhood, Plan, Policy, Traffic,
};
use std::{env, fmt::Write, fs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/load-balance.md");
const BEGIN: &str = "<!-- band -->\n";
const END: &str = "<!-- /band -->";
/// Steps that are shown.
const STEPS: usize = 16;
/// The step at which the CPU backend becomes slower.
const SLOWER: usize = 9;
/// Columns of the page.
const COLUMNS: usize = 100;

/// Words in lines of at most `columns`, each behind `indent`.
fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > columns {
            writeln!(lines, "{line}").unwrap();
            line = indent.to_owned();
        } else if line.len() > indent.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &line + "\n"
}

/// The run, step by step.
fn run() -> String {
    let bricks = Bricks::new(pool_and_spray(), &Neighbourhood::cube(1), 2).unwrap();
    let layout = Layout::new(bricks, 8, Traffic::SUMS).unwrap();
    let mut machine = Machine::new("speed=4".parse().unwrap());
    let mut controller = Controller::new(Policy::BAND).unwrap();
    let mut decision = controller.start(&layout);
    let mut text = "```text\n".to_owned();
    for step in 0..STEPS {
        if step == SLOWER {
            machine.change_speed(Backend::Cpu, 0.5);
        }
        let plan = Plan::new(&layout, &decision.cuts).unwrap();
        let thetas = || (0..decision.cuts.len()).map(|s| layout.theta_of(s, decision.cuts[s]));
        let (low, high) = (
            thetas().fold(f64::MAX, f64::min),
            thetas().fold(0.0, f64::max),
        );
        let share = 100.0 * plan.share();
        writeln!(
            text,
            "step {step}: CPU {share:.2} %, theta {low:.2} to {high:.2}"
        )
        .unwrap();
        let times = machine.step(&layout, &plan);
        decision = controller.next(&layout, &plan, &times).unwrap();
        text += &wrapped(&decision.reason, "    ", COLUMNS);
    }
    text + "```\n"
}

#[test]
fn the_page_shows_a_run_of_the_band() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let made = run();
    if env::var_os("NEARFIELD_WRITE_DOCS").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, made,
        "run this test with NEARFIELD_WRITE_DOCS=1 to write the page anew"
    );
}

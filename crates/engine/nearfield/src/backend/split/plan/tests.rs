//! When controllers are asked, and what their first steps take on hosts as they are met.

use super::{super::planned::OF_CPU, *};
use nearfield_balance::{
    Bricks, CellLoad, Cut, EmulatedSpec, Layout, Machine, Neighbourhood, SUBREGIONS,
};
use nearfield_grid::{Bounds, BrickParts, Domain, Lattice, Radius};

const JOB: Job = Job {
    kind: crate::backend::JobKind::Counts,
    targets: 0,
    sources: 0,
};

/// A plan of bricks of two cells along each axis.
fn planned(layout: Layout, cuts: &[Cut]) -> BrickPlan {
    let bounds = Bounds::of((&[[0.5f32; 3]]).into(), &Domain::OPEN).unwrap();
    let radius = Radius::new(1.0).unwrap();
    BrickPlan {
        plan: Plan::new(&layout, cuts).unwrap(),
        layout,
        parts: BrickParts::everywhere(OF_CPU),
        needed: None,
        edge: 2,
        lattice: Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap(),
        version: 1,
    }
}

#[test]
fn a_controller_is_asked_about_what_is_new_and_now_and_then() {
    let mut calm = Calm::default();
    for _ in 0..Calm::PATIENCE {
        assert!(!calm.is_as_before(2.0));
        calm.decided(Action::Keep, false, 2.0);
    }
    let passed = (0..).take_while(|_| calm.is_as_before(2.1)).count();
    assert_eq!(passed, Calm::EVERY as usize - 1);
    calm.decided(Action::Keep, false, 2.1);
    assert!(calm.is_as_before(2.2) && !calm.is_as_before(3.0));
    calm.decided(Action::Move, true, 3.0);
    assert!(!calm.is_as_before(3.0));
}

#[test]
fn a_step_aside_is_made_before_the_plan_is_made_anew() {
    let cells = (0..8).map(|x| CellLoad {
        cell: [x, 0, 0],
        targets: 5,
        sources: 5,
    });
    let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 2).unwrap();
    let layout = Layout::new(bricks, 1, Traffic::NONE).unwrap();
    let mut state = JobState::new(JOB, Policy::Model, None).unwrap();
    state.planned = Some(planned(layout, &[Cut::ALL]));
    (state.points, state.age, state.last.total_ms) = ([40; 2], 1000, 1.0);
    for (action, stale) in [(Action::Keep, true), (Action::Explore, false)] {
        state.decision = Some(Decision {
            cuts: vec![Cut::ALL],
            action,
            reason: String::new(),
        });
        assert_eq!(state.is_stale([40; 2], false), stale, "{action:?}");
        assert!(state.is_stale([50; 2], false), "too many points have come");
    }
}

#[test]
fn the_first_decisions_after_a_move_are_not_put_off() {
    let mut calm = Calm::default();
    for _ in 0..2 {
        calm.decided(Action::Move, true, 2.0);
        for _ in 0..Calm::EAGER {
            assert!(!calm.may_wait());
            calm.decided(Action::Keep, false, 2.0);
        }
        assert!(calm.may_wait());
    }
    calm.decided(Action::Wait, false, 2.0);
    assert!(!calm.may_wait());
    for _ in 0..Calm::PATIENCE {
        calm.decided(Action::Keep, false, 2.0);
    }
    assert!(calm.may_wait());
    calm.decided(Action::Explore, true, 2.0);
    assert!(!calm.may_wait(), "a step aside is one step");
    assert!(!calm.is_as_before(2.0));
    calm.decided(Action::Move, false, 2.0);
    assert!(calm.may_wait(), "the last step was divided so");
    calm.decided(Action::Explore, true, 2.0);
    calm.decided(Action::Keep, false, 2.0);
    assert!(calm.may_wait());
}

/// A host whose steps of both backends have fixed costs, and in which memory is taken when a
/// backend gets more than ever before: such a step is long, and is not told to the controller.
struct Host {
    machine: Machine,
    /// Milliseconds that either backend needs before its part of a shared step.
    sharing_ms: f64,
    traffic: Traffic,
}

impl Host {
    fn new(speed: f64, sharing_ms: f64, traffic: Traffic) -> Self {
        let spec: EmulatedSpec = format!("speed={speed},bandwidth=50,jitter=0.01")
            .parse()
            .unwrap();
        Self {
            machine: Machine::new(spec),
            sharing_ms,
            traffic,
        }
    }

    /// 125,000 points in bricks of 64.
    fn layout(&self) -> Layout {
        let cells = (0..25i64.pow(3)).map(|n| CellLoad {
            cell: [n % 25, n / 25 % 25, n / 625],
            targets: 8,
            sources: 8,
        });
        let bricks = Bricks::new(cells, &Neighbourhood::cube(1), 2).unwrap();
        Layout::new(bricks, SUBREGIONS, self.traffic).unwrap()
    }

    /// Adds what sharing costs.
    fn shared(&self, plan: &Plan, mut times: StepTimes) -> StepTimes {
        if plan.share() > 0.0 && plan.share() < 1.0 {
            let gpu = times.gpu.iter_mut();
            let gpu = gpu.flat_map(|gpu| [&mut gpu.upload, &mut gpu.compute, &mut gpu.download]);
            for span in times
                .cpu
                .iter_mut()
                .chain(gpu)
                .filter(|span| span.ms() > 0.0)
            {
                span.start_ms += self.sharing_ms;
                span.end_ms += self.sharing_ms;
            }
            times
                .setup
                .iter_mut()
                .for_each(|setup| setup.end_ms = self.sharing_ms);
        }
        times
    }

    fn quiet_ms(&self, layout: &Layout, cuts: &[Cut]) -> f64 {
        let plan = Plan::new(layout, cuts).unwrap();
        self.shared(&plan, self.machine.quiet(layout, &plan))
            .total_ms()
    }

    /// The steps of a job from its first one on: the time of each by that of the better backend
    /// alone, with the reasons, and the state of the job in the end.
    fn run(&mut self, policy: Policy, steps: usize) -> (Vec<f64>, String, JobState) {
        let layout = self.layout();
        let single = [Cut::NONE, Cut::ALL].map(|cut| vec![cut; layout.subregions().len()]);
        let single = single.map(|cuts| self.quiet_ms(&layout, &cuts));
        let better = single[0].min(single[1]);
        let mut state = JobState::new(JOB, policy, None).unwrap();
        let decision = state.controller.start(&layout);
        state.planned = Some(planned(layout, &decision.cuts));
        state.decision = Some(decision);
        let (mut ratios, mut most, mut told) = (Vec::new(), [0.0; 2], String::new());
        for _ in 0..steps {
            let BrickPlan { layout, plan, .. } = state.planned.as_ref().unwrap();
            let shares = [plan.share(), 1.0 - plan.share()];
            let grew = (0..2).any(|backend| shares[backend] > 1.125 * most[backend]);
            most = [0, 1].map(|backend| shares[backend].max(most[backend]));
            let times = self.machine.step(layout, plan);
            let times = self.shared(plan, times);
            let quiet_ms = self.quiet_ms(layout, plan.cuts());
            ratios.push(quiet_ms / better + f64::from(u8::from(grew)));
            let reason = &state.decision.as_ref().unwrap().reason;
            let last = ratios[ratios.len() - 1];
            told.push_str(&format!("{last:.3} with {:.3}: {reason}\n", shares[0]));
            let both = state.backends() == Backends::Both;
            let total_ms = times.total_ms();
            state.note(StepMeasurement {
                total_ms,
                ..StepMeasurement::default()
            });
            if !(grew && both) && state.asks(total_ms, false, false) {
                state.learn(&times).unwrap();
            }
        }
        (ratios, told, state)
    }
}

/// Median of the sixth of ten, as one that is not better than it was.
fn median(ten: &[f64]) -> f64 {
    let mut ten = ten.to_vec();
    ten.sort_by(f64::total_cmp);
    ten[ten.len() / 2]
}

#[test]
fn from_the_third_step_on_ten_steps_are_as_fast_as_those_of_the_better_backend() {
    for policy in [Policy::Model, Policy::BAND] {
        for speed in [0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0] {
            for (sharing_ms, traffic) in [
                (0.01, Traffic::LISTS),
                (0.3, Traffic::LISTS),
                (2.0, Traffic::LISTS),
                (0.3, Traffic::SUMS),
            ] {
                let (ratios, told, state) = Host::new(speed, sharing_ms, traffic).run(policy, 32);
                let tens: Vec<_> = ratios[2..].chunks(10).map(median).collect();
                assert!(
                    tens.iter().all(|&ratio| ratio <= 1.02),
                    "{policy}, speed {speed}, sharing {sharing_ms} ms: {tens:.3?} of\n{told}"
                );
                let (rates, _) = state.rates().expect("a run of 32 steps leaves its rates");
                assert!(rates.share() > 0.0 && rates.share() < 1.0);
            }
        }
    }
}

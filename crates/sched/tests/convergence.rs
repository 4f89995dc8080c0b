mod common;
use common::*;
use nearfield_sched::*;
use std::time::Instant;

#[test]
fn explore() {
    let layouts = layouts();
    let mut worst = 0;
    for (name, layout) in &layouts {
        for seed in 0..8 {
            // change
            for (lane, factor) in [(Lane::Cpu, 4.0), (Lane::Cpu, 0.25), (Lane::Gpu, 4.0), (Lane::Gpu, 0.25)] {
                let spec = random_spec(seed);
                let mut run = Run::new(Policy::Model, spec, layout);
                run.steps(20);
                run.machine.change_speed(lane, factor);
                let (best, single) = best(&run.machine, layout);
                let steps = run.steps(40);
                let at = settled(&steps, best * 1.05);
                let moves = steps[at.min(39)..].iter().filter(|s| s.action == Action::Move).count();
                worst = worst.max(at);
                let last = steps[39].quiet;
                if at > 6 || moves > 2 || last * 0.98 > single {
                    println!("{name} {seed} {lane:?} {factor} settled {at} moves {moves} last {:.3} single {:.3}", last / best, single / best);
                    if at > 8 || moves > 1 {
                        for (k, s) in steps.iter().enumerate() {
                            println!("   {k} {:?} {:.3} {:.4} {}", s.action, s.share, s.quiet / best, s.reason);
                        }
                    }
                }
            }
        }
    }
    println!("change worst {worst}");
    let mut ats = vec![];
    let mut worst_late = 0.0f64;
    for (name, layout) in &layouts {
        for seed in 0..8 {
            let spec = EmulatedSpec { jitter: 0.05, ..random_spec(seed) };
            let mut run = Run::new(Policy::Model, spec, layout);
            let (best, single) = best(&run.machine, layout);
            let steps = run.steps(80);
            let at = settled(&steps, best * 1.03);
            ats.push(at);
            let moves = steps[8..].iter().filter(|s| s.action == Action::Move).count();
            let late = steps[8..].iter().filter(|s| s.action != Action::Explore).map(|s| s.quiet / best).fold(0.0, f64::max);
            let mut v: Vec<f64> = steps[8..].iter().map(|s| s.quiet / best).collect();
            v.sort_by(f64::total_cmp);
            worst_late = worst_late.max(late);
            println!("jitter {name} {seed} at {at} moves {moves} late max {late:.3} median {:.4} p90 {:.4} single {:.3}", v[36], v[64], single / best);
        }
    }
    ats.sort();
    println!("jitter: at median {} p90 {} max {}; worst late {worst_late}", ats[ats.len()/2], ats[ats.len()*9/10], ats[ats.len()-1]);
    for (name, layout) in &layouts {
        let t = Instant::now();
        let n = 20;
        for _ in 0..n { std::hint::black_box(Layout::new(layout.bricks().clone(), 32, *layout.traffic()).unwrap()); }
        let a = t.elapsed() / n;
        let cuts = layout.cuts(layout.thetas(2)[1]);
        let t = Instant::now();
        for _ in 0..n { std::hint::black_box(Plan::new(layout, &cuts).unwrap()); }
        let b = t.elapsed() / n;
        let mut run = Run::new(Policy::Model, random_spec(1), layout);
        run.steps(20);
        let plan = Plan::new(layout, &cuts).unwrap();
        let times = run.machine.step(layout, &plan);
        let t = Instant::now();
        for _ in 0..n { std::hint::black_box(run.controller.next(layout, &plan, &times).unwrap()); }
        let c = t.elapsed() / n;
        println!("{name} bricks {} layout {a:?} plan {b:?} decision {c:?}", layout.bricks().as_slice().len());
    }
    let t = Instant::now();
    let cells = uniform();
    let n = cells.len();
    std::hint::black_box(Bricks::new(cells, &Neighbourhood::cube(1), 4).unwrap());
    println!("bricks of {n} cells {:?}", t.elapsed());
}

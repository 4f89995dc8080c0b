mod common;
use common::*;
use nearfield_sched::*;
use std::time::Instant;
#[test]
fn timing() {
    for (name, layout) in &layouts() {
        let t = Instant::now();
        let n = 20;
        for _ in 0..n {
            std::hint::black_box(
                Layout::new(layout.bricks().clone(), 32, *layout.traffic()).unwrap(),
            );
        }
        let a = t.elapsed() / n;
        let theta = layout.thetas(2)[1];
        let cuts = layout.cuts(theta);
        let t = Instant::now();
        for _ in 0..n {
            std::hint::black_box(Plan::new(layout, &cuts).unwrap());
        }
        let b = t.elapsed() / n;
        let mut run = Run::new(Policy::Model, random_spec(1), layout);
        run.steps(20);
        let plan = Plan::new(layout, &cuts).unwrap();
        for s in 0..32 {
            let e = layout.estimate(s, theta);
            let p = &plan.stages()[s];
            assert_eq!(e.cpu, p.cpu.load);
            assert_eq!(e.gpu, p.gpu.load);
            assert!(
                (e.upload - p.upload).abs() < 1e-6,
                "{s} {} {}",
                e.upload,
                p.upload
            );
        }
        let times = run.machine.step(layout, &plan);
        let t = Instant::now();
        for _ in 0..n {
            std::hint::black_box(run.controller.next(layout, &plan, &times).unwrap());
        }
        let c = t.elapsed() / n;
        println!(
            "{name} bricks {} layout {a:?} plan {b:?} decision {c:?}",
            layout.bricks().as_slice().len()
        );
    }
    let t = Instant::now();
    let cells = uniform();
    let n = cells.len();
    std::hint::black_box(Bricks::new(cells, &Neighbourhood::cube(1), 4).unwrap());
    println!("bricks of {n} cells {:?}", t.elapsed());
}

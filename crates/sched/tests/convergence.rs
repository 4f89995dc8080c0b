mod common;
use common::*;
use nearfield_sched::{Lane, Policy};

#[test]
fn model_settles() {
    let mut worst = 0;
    for (name, layout) in layouts() {
        for seed in 0..20 {
            let spec = random_spec(seed);
            let mut run = Run::new(Policy::Model, spec, &layout);
            let (best, single) = best(&run.machine, &layout);
            let steps = run.steps(40);
            let at = settled(&steps, best * 1.03);
            let last = steps[39].quiet;
            worst = worst.max(at);
            let flag = if at > 8 || last * 0.98 > single { "!!!" } else { "" };
            println!("{name} {seed} speed {:.2} bw {:.1}: best {best:.3} single {single:.3} settled {at} last {last:.3} share {:.3} {flag}", spec.speed, spec.bandwidth, steps[39].share);
            if at > 8 {
                for (k, s) in steps.iter().enumerate() {
                    println!("   {k} {:?} {:.3} {:.4} {}", s.action, s.share, s.quiet / best, s.reason);
                }
            }
        }
    }
    println!("worst {worst}");
    let _ = Lane::Cpu;
}

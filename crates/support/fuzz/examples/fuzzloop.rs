//! Random inputs for `kernels`, seed after seed.
fn main() {
    let first: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let seconds: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let begin = std::time::Instant::now();
    let mut seed = first;
    while begin.elapsed().as_secs() < seconds {
        let mut r = nearfield_testkit::random::Random::new(seed);
        let n = 200 + r.below(5000);
        let bytes: Vec<u8> = (0..n).map(|_| r.below(256) as u8).collect();
        let ok = std::panic::catch_unwind(|| nearfield_fuzz::target("kernels")(&bytes));
        if ok.is_err() {
            std::fs::write(format!("/tmp/fail-{seed}"), &bytes).unwrap();
            println!("seed {seed} fails");
            std::process::exit(1);
        }
        seed += 1;
    }
    println!("{} inputs", seed - first);
}

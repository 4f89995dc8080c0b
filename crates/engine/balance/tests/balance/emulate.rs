//! Emulated machines: their description, their clock, their faults.

use nearfield_balance::{
    Backend, DeviceFault, EmulatedSpec, FaultAt, Layout, Machine, Plan, Span, Traffic,
};

fn plan(layout: &Layout, share: usize) -> Plan {
    Plan::new(layout, &layout.cuts(layout.thetas(100).unwrap()[share])).unwrap()
}

fn machine(text: &str) -> Machine {
    Machine::new(text.parse().unwrap())
}

fn lists() -> Layout {
    crate::common::layout(crate::common::uniform(), 3, Traffic::LISTS)
}

#[test]
fn descriptions_are_read_and_printed() {
    let text = "speed=8.5,launch_us=0,bandwidth=25,memory_mib=4096,jitter=0.05,fail=oom@3,seed=7";
    let spec: EmulatedSpec = text.parse().unwrap();
    assert_eq!(spec.fail, Some(FaultAt::OutOfMemory(3)));
    assert_eq!(spec.to_string(), text);
    assert_eq!("".parse(), Ok(EmulatedSpec::default()));
    for spec in [
        EmulatedSpec::default(),
        "fail=lost@0, speed = 0.1".parse().unwrap(),
        crate::common::random_spec(5),
    ] {
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }
}

#[test]
fn bad_descriptions_are_named() {
    for (text, expected) in [
        ("fast=1", "\"fast\""),
        ("speed=1,speed=2", "speed is given twice"),
        ("speed=0", "speed=0"),
        ("speed=inf", "speed=inf"),
        ("bandwidth=-3", "bandwidth=-3"),
        ("launch_us=x", "launch_us=x"),
        ("jitter=1.5", "between 0 and 1"),
        ("memory_mib=0", "at least 1"),
        ("fail=oom", "oom@STEP"),
        ("fail=fire@3", "fail=fire@3"),
        ("seed=-1", "seed=-1"),
        ("seed", "seed="),
    ] {
        let error = text.parse::<EmulatedSpec>().unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let layout = lists();
    let plan = plan(&layout, 30);
    let run = |text: &str| {
        let mut machine = machine(text);
        (0..5)
            .map(|_| machine.step(&layout, &plan))
            .collect::<Vec<_>>()
    };
    assert_eq!(run("jitter=0.1,seed=3"), run("jitter=0.1,seed=3"));
    assert_ne!(run("jitter=0.1,seed=3"), run("jitter=0.1,seed=4"));
    let steps = run("jitter=0.1,seed=3");
    assert_ne!(steps[0], steps[1]);
    let quiet = machine("seed=3").quiet(&layout, &plan);
    assert_eq!(run("seed=3"), vec![quiet; 5]);
}

#[test]
fn jitter_has_the_spread_that_was_asked_for() {
    let layout = lists();
    let plan = plan(&layout, 100);
    let mut machine = machine("jitter=0.05,seed=11");
    let quiet = machine.quiet(&layout, &plan).total_ms();
    let logs: Vec<f64> = (0..400)
        .map(|_| (machine.step(&layout, &plan).total_ms() / quiet).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / 400.0;
    let spread = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 400.0).sqrt();
    // 5 % from step to step, and 5 % / √32 that 32 subregions leave.
    let expected = 0.05 * (1.0 + 1.0 / 32.0f64).sqrt();
    assert!(mean.abs() < 0.01, "{mean}");
    assert!(
        (spread / expected - 1.0).abs() < 0.12,
        "{spread} instead of {expected}"
    );
}

#[test]
fn copies_and_kernels_overlap_and_keep_their_order() {
    let layout = lists();
    let plan = plan(&layout, 20);
    let times = machine("speed=3,bandwidth=8").quiet(&layout, &plan);
    for (before, after) in times.gpu.iter().zip(&times.gpu[1..]) {
        assert!(after.upload.start_ms >= before.upload.end_ms);
        assert!(after.compute.start_ms >= before.compute.end_ms);
        assert!(after.download.start_ms >= before.download.end_ms);
    }
    for spans in &times.gpu {
        assert!(spans.compute.start_ms >= spans.upload.end_ms);
        assert!(spans.download.start_ms >= spans.compute.end_ms);
    }
    let sum = |stage: fn(&nearfield_balance::GpuSpans) -> Span| -> f64 {
        times.gpu.iter().map(|spans| stage(spans).ms()).sum()
    };
    let all = sum(|s| s.upload) + sum(|s| s.compute) + sum(|s| s.download);
    let longest = sum(|s| s.upload)
        .max(sum(|s| s.compute))
        .max(sum(|s| s.download));
    assert!(times.gpu_ms() < 0.75 * all, "{} of {all}", times.gpu_ms());
    assert!(times.gpu_ms() > longest);
    // Transfers are hidden where computing takes longer.
    let times = machine("speed=0.5,bandwidth=25").quiet(&layout, &plan);
    let compute: f64 = times.gpu.iter().map(|spans| spans.compute.ms()).sum();
    assert!(
        times.gpu_ms() < compute * 1.03,
        "{} against {compute}",
        times.gpu_ms()
    );
}

#[test]
fn backends_take_time_by_their_speed() {
    let layout = lists();
    let (cpu_only, gpu_only) = (plan(&layout, 100), plan(&layout, 0));
    let slow = machine("speed=0.1,bandwidth=60").quiet(&layout, &gpu_only);
    let fast = machine("speed=0.2,bandwidth=60").quiet(&layout, &gpu_only);
    assert!((slow.gpu_ms() / fast.gpu_ms() - 2.0).abs() < 0.1);
    assert_eq!(slow.cpu_ms(), 0.0);
    let mut changed = machine("speed=1");
    let before = changed.quiet(&layout, &cpu_only).cpu_ms();
    changed.change_speed(Backend::Cpu, 4.0);
    assert!((before / changed.quiet(&layout, &cpu_only).cpu_ms() - 4.0).abs() < 1e-9);
    changed.stall_once(Backend::Cpu, 3.0);
    let stalled = changed.step(&layout, &cpu_only).cpu_ms();
    assert!((stalled / changed.step(&layout, &cpu_only).cpu_ms() - 3.0).abs() < 1e-9);
}

#[test]
fn a_fault_leaves_the_rest_to_the_cpu_backend() {
    let layout = lists();
    let plan = plan(&layout, 20);
    let mut machine = machine("fail=oom@1,speed=2");
    let good = machine.step(&layout, &plan);
    let bad = machine.step(&layout, &plan);
    let again = machine.step(&layout, &plan);
    assert_eq!((good.fault, again.fault), (None, None));
    assert_eq!(bad.fault, Some(DeviceFault::OutOfMemory));
    assert_eq!(good.recovery, Span::default());
    assert!(bad.recovery.ms() > 0.0 && bad.total_ms() > good.total_ms());
    let done = bad
        .gpu
        .iter()
        .filter(|spans| spans.compute.ms() > 0.0)
        .count();
    assert_eq!(done, 16);
    assert_eq!(again, good);
}

#[test]
fn a_lost_gpu_does_not_come_back_and_little_memory_is_run_out_of() {
    let layout = lists();
    let mut lost = machine("fail=lost@2");
    for step in 0..5 {
        let fault = lost.step(&layout, &plan(&layout, 50)).fault;
        assert_eq!(fault, (step >= 2).then_some(DeviceFault::Lost));
    }
    assert_eq!(
        lost.step(&layout, &plan(&layout, 100)).fault,
        None,
        "no GPU, no fault"
    );
    let mut small = machine("memory_mib=2");
    let gpu_only = plan(&layout, 0);
    assert!(gpu_only.device_bytes() > 2.0 * 1_048_576.0);
    assert_eq!(
        small.step(&layout, &gpu_only).fault,
        Some(DeviceFault::OutOfMemory)
    );
    assert_eq!(small.step(&layout, &plan(&layout, 90)).fault, None);
}

//! A summary as text.

use super::{
    Clock, Course, Summary,
    phrases::{describe, milliseconds, percent},
};
use std::fmt;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "verdict     {}", self.verdict)?;
        head(self, f)?;
        backends(self, f)?;
        numbers(self, f)?;
        stages(self, f)?;
        if !(self.slowest.is_empty() && self.advice.is_empty()) {
            writeln!(f)?;
        }
        for slow in &self.slowest {
            writeln!(
                f,
                "slow        step {}, {:.2} ms: {}",
                slow.step, slow.ms, slow.cause
            )?;
        }
        for advice in &self.advice {
            writeln!(f, "advice      {advice}")?;
        }
        Ok(())
    }
}

/// Maximum number of reasons that a backend's idle time is given.
const MAX_REASONS: usize = 3;

fn head(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (program, machine) = (&summary.program, &summary.machine);
    writeln!(
        f,
        "program     {}, on {} ({} threads)",
        [&*program.name, &*program.version].join(" ").trim(),
        machine.processor,
        machine.cores
    )?;
    if let Some(device) = &summary.device {
        writeln!(f, "device      {device}")?;
    }
    for gpu in &machine.gpus {
        writeln!(f, "gpu         {gpu}")?;
    }
    if !summary.damage.is_empty() {
        writeln!(f, "incomplete  {}", summary.damage)?;
    }
    if summary.clock == Clock::Virtual {
        writeln!(
            f,
            "clock       virtual: all times are the emulated device's; the host's stages have none"
        )?;
    }
    let step = &summary.step_ms;
    writeln!(
        f,
        "steps       {} in {:.1} ms; median {:.2} ms, half within {:.2} and {:.2}, slowest {:.2}",
        summary.steps,
        summary.total_ms,
        step.median,
        step.lower_quartile,
        step.upper_quartile,
        step.greatest
    )
}

fn backends(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, backend) in &summary.backends {
        write!(
            f,
            "{name:<11} busy {:.1} ms ({:.1} %), waiting {:.1} ms, idle {:.1} ms",
            backend.busy,
            100.0 * backend.utilisation,
            backend.waiting,
            backend.idle
        )?;
        match backend.overlap {
            Some(overlap) => writeln!(
                f,
                "; transfers {:.1} ms, {:.1} % hidden",
                backend.transfers,
                100.0 * overlap
            )?,
            None => writeln!(f)?,
        }
        if let Some(idle) = &backend.idle_for {
            writeln!(f, "{:<11} {idle}", format!("{name} waits"))?;
        }
        let notable = backend.reasons.iter().filter(|reason| reason.share >= 0.01);
        let reasons: Vec<String> = (notable.take(MAX_REASONS))
            .map(|reason| {
                let ms = milliseconds(reason.ms_per_step);
                let between = if reason.between_steps {
                    " between steps"
                } else {
                    ""
                };
                format!("{} {ms} a step{between}", describe(reason, summary.steps))
            })
            .collect();
        if reasons.is_empty() {
            continue;
        }
        writeln!(
            f,
            "{:<11} {} in steps, {} in the run: {}",
            format!("{name} idle"),
            percent(backend.idle_share),
            percent(backend.idle_share_of_run),
            reasons.join("; ")
        )?;
    }
    Ok(())
}

fn numbers(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(imbalance) = summary.imbalance {
        write!(f, "imbalance   {:.1} % per step", 100.0 * imbalance)?;
        match summary.subregion_imbalance {
            Some(imbalance) => writeln!(f, ", {:.1} % per subregion", 100.0 * imbalance)?,
            None => writeln!(f)?,
        }
    }
    let parts: Vec<String> = summary
        .critical_path
        .iter()
        .take(5)
        .map(|part| format!("{} {:.0} %", part.what, 100.0 * part.share))
        .collect();
    writeln!(
        f,
        "critical    path of {:.1} ms: {}",
        summary.critical_path_ms,
        parts.join(", ")
    )?;
    if !summary.beside.is_empty() {
        let stages = summary.beside.iter();
        let stages = stages.map(|(name, ms)| format!("{} {ms:.1} ms", name.replace("beside.", "")));
        let stages: Vec<String> = stages.collect();
        writeln!(f, "beside      {}, on other threads", stages.join(", "))?;
    }
    if let Some(outside) = &summary.outside {
        writeln!(f, "outside     {outside}, in no step")?;
    }
    if let Some(theta) = &summary.theta {
        write_course("theta", theta, 1.0, "", f)?;
    }
    if let Some(share) = &summary.share {
        write_course("cpu share", share, 100.0, " %", f)?;
    }
    Ok(())
}

fn write_course(
    name: &str,
    course: &Course,
    scale: f64,
    unit: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let number = |value: f64| {
        if value.is_finite() {
            format!("{:.1}{unit}", scale * value)
        } else {
            "∞".to_owned()
        }
    };
    write!(
        f,
        "{name:<11} {} at first, {} at last",
        number(course.first),
        number(course.settled_at)
    )?;
    match course.settle_steps {
        Some(steps) => write!(f, ", settled after {steps} steps")?,
        None => write!(f, ", not settled")?,
    }
    if course.oscillates {
        writeln!(f, ", oscillates by {}", number(course.amplitude))
    } else {
        writeln!(f)
    }
}

fn stages(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\n{:<34} {:>8} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "stage", "count", "total ms", "own ms", "median ms", "ms/M pairs", "ms/M tests"
    )?;
    let mut stages: Vec<_> = summary.stages.iter().collect();
    stages.sort_by(|a, b| b.1.total_ms.total_cmp(&a.1.total_ms));
    for (name, stage) in stages {
        let optional = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.3}"));
        let pairs = optional(stage.ms_per_million_pairs);
        let tests = optional(stage.ms_per_million_tests);
        writeln!(
            f,
            "{name:<34} {:>8} {:>11.2} {:>11.2} {:>11.3} {pairs:>11} {tests:>11}",
            stage.count, stage.total_ms, stage.self_ms, stage.per_step_ms.median
        )?;
    }
    Ok(())
}

//! A summary in Markdown, short enough for a pull request.

use super::{
    phrases::{describe, digits, milliseconds, percent},
    summary::{Clock, Summary},
};
use std::fmt;

/// Most stages of the table.
const MAX_STAGES: usize = 10;

/// Shows a summary as Markdown.
#[derive(Debug, Clone, Copy)]
pub struct Markdown<'a>(pub &'a Summary);

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.0;
        writeln!(f, "**{}.**\n", text(&capital(&summary.verdict)))?;
        head(summary, f)?;
        backends(summary, f)?;
        findings(summary, f)?;
        stages(summary, f)?;
        for slow in &summary.slowest {
            let ms = milliseconds(slow.ms);
            writeln!(f, "- slow step {}, {ms}: {}", slow.step, text(&slow.cause))?;
        }
        Ok(())
    }
}

/// A sentence with its first letter in upper case.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A text in one line whose characters stand for themselves. Parts between backticks are code, in
/// which nothing is escaped; a backtick without another one is no code.
fn text(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut shown = String::with_capacity(text.len());
    for (at, part) in parts.iter().enumerate() {
        let is_code = at % 2 == 1 && at + 1 < parts.len();
        if at > 0 {
            let opens_nothing = at % 2 == 1 && !is_code;
            shown.push_str(if opens_nothing { "\\`" } else { "`" });
        }
        for letter in part.chars() {
            match letter {
                '\\' | '<' | '*' | '_' if !is_code => shown.extend(['\\', letter]),
                '\n' | '\r' => shown.push(' '),
                _ => shown.push(letter),
            }
        }
    }
    shown
}

/// A text in a cell of a table, where bars are escaped in code, too.
fn cell(of: &str) -> String {
    text(of).replace('|', "\\|")
}

/// A name as code.
fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

fn head(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (program, machine) = (&summary.program, &summary.machine);
    let name = [&*program.name, &*program.version].join(" ");
    let gpus = machine.gpus.iter().map(|gpu| format!(", {gpu}"));
    let clock = match summary.clock {
        Clock::Virtual => ", virtual clock",
        Clock::Host => "",
    };
    write!(
        f,
        "{} on {} ({} threads){}{clock}: {} steps, median {}, half within {} and {}",
        text(&code(name.trim())),
        text(&machine.processor),
        machine.cores,
        text(&gpus.collect::<String>()),
        summary.steps,
        milliseconds(summary.step_ms.median),
        milliseconds(summary.step_ms.lower_quartile),
        milliseconds(summary.step_ms.upper_quartile)
    )?;
    let settled = &summary.settled;
    if settled.steps < summary.steps {
        write!(
            f,
            "; {} settled steps of {} on average",
            settled.steps,
            milliseconds(settled.step_ms)
        )?;
    }
    writeln!(f)?;
    if !summary.damage.is_empty() {
        writeln!(f, "\nIncomplete: {}", text(&summary.damage))?;
    }
    writeln!(f)
}

fn backends(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.backends.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "| backend | computes | busy (all steps) | waiting (all steps) | idle (all steps) \
         | longest reason |"
    )?;
    writeln!(f, "| --- | ---: | ---: | ---: | ---: | --- |")?;
    for (name, backend) in &summary.backends {
        let reason = backend.reasons.first().map_or(String::new(), |reason| {
            let what = describe(reason, summary.steps);
            format!("{what}, {} a step", milliseconds(reason.ms_per_step))
        });
        writeln!(
            f,
            "| {} | {} | {} | {} | {} | {} |",
            cell(name),
            percent(backend.utilisation),
            milliseconds(backend.busy),
            milliseconds(backend.waiting),
            milliseconds(backend.idle),
            cell(&reason)
        )?;
    }
    let share = summary.share.map(|share| ("CPU's share", share));
    let theta = summary.theta.map(|theta| ("θ", theta));
    for (name, course) in share.into_iter().chain(theta) {
        let settled = match course.settle_steps {
            Some(steps) => format!("settled after {steps} steps"),
            None => "not settled".into(),
        };
        let (first, last) = (digits(course.first), digits(course.settled_at));
        writeln!(f, "\n{name}: {first} at first, {last} at last, {settled}")?;
    }
    writeln!(f)
}

fn findings(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.findings.is_empty() {
        return Ok(());
    }
    writeln!(f, "| cause | cost per step | try |")?;
    writeln!(f, "| --- | ---: | --- |")?;
    for one in &summary.findings {
        let (what, remedy) = (cell(&one.what), cell(&one.remedy));
        writeln!(
            f,
            "| {what} | {} | {remedy} |",
            milliseconds(one.ms_per_step)
        )?;
    }
    writeln!(f)
}

fn stages(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.stages.is_empty() {
        return Ok(());
    }
    writeln!(f, "| stage | count | total | own | median per step |")?;
    writeln!(f, "| --- | ---: | ---: | ---: | ---: |")?;
    let mut stages: Vec<_> = summary.stages.iter().collect();
    stages.sort_by(|a, b| b.1.self_ms.total_cmp(&a.1.self_ms));
    for (name, stage) in stages.into_iter().take(MAX_STAGES) {
        writeln!(
            f,
            "| {} | {} | {} | {} | {} |",
            cell(&code(name)),
            stage.count,
            milliseconds(stage.total_ms),
            milliseconds(stage.self_ms),
            milliseconds(stage.per_step_ms.median)
        )?;
    }
    writeln!(f)
}

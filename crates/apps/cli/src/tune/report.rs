//! The text output of `nearfield tune`.

use super::task::{Outcome, Summary};
use crate::options;
use indicatif::HumanCount;
use nearfield_balance::tune::Row;
use nearfield_plot::rounded;
use std::path::Path;

/// Rows of the sweep that are printed, in addition to the best one.
const PRINTED: usize = 11;

/// The lines above the picture and the table.
pub(super) fn headings(summary: &Summary<'_>) -> [String; 3] {
    let shown = summary.shown;
    [
        format!(
            "Dividing a step: {}, radius {}, {}",
            summary.cloud,
            rounded(summary.radius.into(), 4),
            options::name(summary.work)
        ),
        format!(
            "{} points in {} bricks of {}³ cells, {} subregions",
            HumanCount(summary.points as u64),
            HumanCount(shown.occupied_bricks as u64),
            shown.bricks,
            shown.subregions
        ),
        summary.device.clone(),
    ]
}

pub(super) fn lines(summary: &Summary<'_>, folder: &Path) -> Vec<String> {
    let shown = summary.shown;
    let mut lines = Vec::from(headings(summary));
    lines.push(format!(
        "{:>12}{:>12}{:>12}{:>12}{:>12}",
        "theta", "CPU share", "CPU ms", "GPU ms", "step ms"
    ));
    lines.extend(printed(&shown.sweep, &shown.best).map(|row| line(row, &shown.best)));
    lines.push(format!(
        "best of {} thresholds: {}",
        shown.sweep.len(),
        place(&shown.best)
    ));
    if let [gpu, .., cpu] = shown.sweep.as_slice() {
        lines.push(format!(
            "GPU alone {}, CPU alone {}",
            milliseconds(gpu.total_ms),
            milliseconds(cpu.total_ms)
        ));
    }
    let policies = shown.policies.iter();
    lines.extend(policies.map(|(name, outcome)| sentence(name, outcome, summary.steps)));
    if summary.combinations.len() > 1 {
        lines.push("bricks and subregions, best first:".into());
        let mut all: Vec<_> = summary.combinations.iter().collect();
        all.sort_by(|a, b| a.best.total_ms.total_cmp(&b.best.total_ms));
        lines.extend(all.into_iter().map(|one| {
            format!(
                "{:>4}³ cells{:>5} subregions: {}",
                one.bricks,
                one.subregions,
                place(&one.best)
            )
        }));
    }
    lines.push(format!(
        "written: {}",
        ["tune.json", "tune.png", "tune.svg"]
            .map(|name| folder.join(name).display().to_string())
            .join(", ")
    ));
    lines
}

/// Evenly chosen rows, both ends and the best one among them.
fn printed<'a>(sweep: &'a [Row], best: &'a Row) -> impl Iterator<Item = &'a Row> {
    let last = sweep.len().saturating_sub(1);
    let chosen = (0..PRINTED.min(sweep.len()))
        .map(move |place| place * last / (PRINTED.min(last + 1) - 1).max(1))
        .collect::<Vec<_>>();
    let keep = move |(number, row): &(usize, &Row)| chosen.contains(number) || *row == best;
    sweep.iter().enumerate().filter(keep).map(|(_, row)| row)
}

fn line(row: &Row, best: &Row) -> String {
    format!(
        "{:>12.2}{:>10.1} %{:>12.3}{:>12.3}{:>12.3}{}",
        row.theta,
        100.0 * row.share,
        row.cpu_ms,
        row.gpu_ms,
        row.total_ms,
        if row == best { "  best" } else { "" }
    )
}

fn place(row: &Row) -> String {
    format!(
        "{} at θ = {}, {} % of the work on the CPU",
        milliseconds(row.total_ms),
        rounded(row.theta, 4),
        rounded(100.0 * row.share, 3)
    )
}

/// Where a policy settled and in how many steps.
fn sentence(name: &str, outcome: &Outcome, steps: usize) -> String {
    let settled = &outcome.settled;
    let when = match settled.steps {
        Some(1) => "settles in 1 step".to_owned(),
        Some(count) => format!("settles in {count} steps"),
        None => format!("has not settled after {} of {steps} steps", steps / 2),
    };
    format!(
        "{name} {when} at {}{} % of the work on the CPU: {}, {} the best",
        theta(name, settled.theta),
        rounded(100.0 * settled.share, 3),
        milliseconds(settled.total_ms),
        compared(outcome.to_best)
    )
}

/// A threshold in front of a share; nothing for the policy that has none.
pub(super) fn theta(policy: &str, theta: f64) -> String {
    match policy {
        "fraction" => String::new(),
        _ => format!("θ = {}, ", rounded(theta, 4)),
    }
}

pub(super) fn milliseconds(value: f64) -> String {
    format!("{} ms", rounded(value, 4))
}

/// Compares two times, given as their ratio, in words.
pub(super) fn compared(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match percent {
        _ if percent.abs() < 0.05 => "level with".into(),
        _ if percent < 0.0 => format!("{:.1} % below", -percent),
        _ => format!("{percent:.1} % above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(theta: f64) -> Row {
        Row {
            theta,
            share: theta / 100.0,
            cpu_ms: theta,
            gpu_ms: 0.0,
            total_ms: theta,
        }
    }

    #[test]
    fn both_ends_and_the_best_row_are_printed() {
        let sweep: Vec<Row> = (0..=200).map(|theta| row(f64::from(theta))).collect();
        let thetas = |rows: &[Row], best: &Row| -> Vec<f64> {
            printed(rows, best).map(|row| row.theta).collect()
        };
        let found = thetas(&sweep, &sweep[33]);
        assert_eq!(found.len(), PRINTED + 1);
        assert_eq!((found[0], found[2], found[11]), (0.0, 33.0, 200.0));
        assert_eq!(thetas(&sweep[..2], &sweep[0]), [0.0, 1.0]);
        assert_eq!(thetas(&sweep[..1], &sweep[0]), [0.0]);
    }

    #[test]
    fn ratios_are_told_in_percent() {
        let texts = [1.0, 1.0004, 0.98, 1.126].map(compared);
        assert_eq!(
            texts,
            ["level with", "level with", "2.0 % below", "12.6 % above"]
        );
    }
}

//! Results on standard output: one JSON object, or lines for people.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// Prints `result` as one JSON object.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(result).map_err(io::Error::from)?;
    print_lines([text])
}

/// Prints lines.
pub(crate) fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// `12345678` as `12 345 678`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut groups: Vec<&str> = Vec::new();
    if first > 0 {
        groups.push(&digits[..first]);
    }
    groups.extend(
        (first..digits.len())
            .step_by(3)
            .map(|at| &digits[at..at + 3]),
    );
    groups.join(" ")
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (number, text) in [
            (0, "0"),
            (123, "123"),
            (1234, "1 234"),
            (12_345_678, "12 345 678"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}

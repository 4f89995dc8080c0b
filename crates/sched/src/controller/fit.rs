//! Cost = base + Σ rate of class · amount of class, fitted to measured durations.
//!
//! Least squares with a gentle pull towards what was believed before: classes that have not been
//! seen lately keep their rate, and amounts that always occur together share it.

use crate::CLASSES;

/// Amounts that a duration is explained by: work by class of occupancy, or bytes in the first.
pub(super) type Amounts = [f64; CLASSES];

const TERMS: usize = CLASSES + 1;

/// Strength of the pull, in measurements of the usual size.
const PULL: f64 = 0.02;

/// What something costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cost {
    /// Milliseconds for anything at all.
    base: f64,
    /// Milliseconds per amount.
    rates: Amounts,
}

/// A measured duration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) amounts: Amounts,
    pub(super) ms: f64,
    pub(super) weight: f64,
}

impl Cost {
    /// The same rate for every class; `None` without measurements.
    pub(super) fn flat(samples: &[Sample]) -> Option<Self> {
        let amount: f64 = samples.iter().map(|s| s.amounts.iter().sum::<f64>()).sum();
        let ms: f64 = samples.iter().map(|sample| sample.ms).sum();
        (amount > 0.0 && ms > 0.0).then(|| Self {
            base: 0.0,
            rates: [ms / amount; CLASSES],
        })
    }

    /// Milliseconds for `amounts`; nothing takes no time.
    pub(super) fn of(&self, amounts: &Amounts) -> f64 {
        let mut any = false;
        let mut ms = self.base;
        for (&rate, &amount) in self.rates.iter().zip(amounts) {
            any |= amount > 0.0;
            ms += rate * amount;
        }
        if any { ms } else { 0.0 }
    }

    /// Everything takes `factor` times as long.
    pub(super) fn scale(&mut self, factor: f64) {
        self.base *= factor;
        self.rates.iter_mut().for_each(|rate| *rate *= factor);
    }

    /// Moves towards what explains the samples best.
    pub(super) fn refit(&mut self, samples: &[Sample]) {
        let Some(flat) = Self::flat(samples) else {
            return;
        };
        // Amounts in units of a usual sample, so that all terms are milliseconds.
        let total: f64 = samples.iter().map(|s| s.amounts.iter().sum::<f64>()).sum();
        let unit = total / samples.len() as f64;
        let mut matrix = [[0.0; TERMS]; TERMS];
        let mut right = [0.0; TERMS];
        for sample in samples {
            let terms = terms(&sample.amounts, unit);
            let rest = sample.ms - self.of(&sample.amounts);
            for row in 0..TERMS {
                if terms[row] == 0.0 {
                    continue;
                }
                let weighted = sample.weight * terms[row];
                right[row] += weighted * rest;
                for column in 0..=row {
                    matrix[row][column] += weighted * terms[column];
                }
            }
        }
        for term in 0..TERMS {
            matrix[term][term] += PULL;
        }
        let change = solve(matrix, right);
        self.base = (self.base + change[0]).max(0.0);
        for class in 0..CLASSES {
            // A rate far below the mean is noise, and would draw all work to its class.
            let least = flat.rates[class] * 0.02;
            self.rates[class] = (self.rates[class] + change[class + 1] / unit).max(least);
        }
    }
}

fn terms(amounts: &Amounts, unit: f64) -> [f64; TERMS] {
    let mut terms = [1.0; TERMS];
    for (term, amount) in terms[1..].iter_mut().zip(amounts) {
        *term = amount / unit;
    }
    terms
}

/// Solves a symmetric positive definite system, of which the lower triangle is given, by Cholesky's
/// factorisation.
fn solve(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
    for row in 0..TERMS {
        for column in 0..=row {
            let known: f64 = (0..column)
                .map(|k| matrix[row][k] * matrix[column][k])
                .sum();
            let rest = matrix[row][column] - known;
            matrix[row][column] = if row == column {
                rest.max(f64::MIN_POSITIVE).sqrt()
            } else {
                rest / matrix[column][column]
            };
        }
    }
    for row in 0..TERMS {
        let known: f64 = (0..row).map(|k| matrix[row][k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    for row in (0..TERMS).rev() {
        let known: f64 = (row + 1..TERMS).map(|k| matrix[k][row] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

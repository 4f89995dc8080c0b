//! Cost = base + Σ rate of class · amount of class, fitted to measured durations.
//!
//! # The fit
//!
//! Least squares over all samples that are remembered, each step counting 0.9 times as much as the
//! one after it. A gentle pull towards the rates that were believed before is added to the
//! diagonal. It keeps the rate of classes that have not been seen lately, and makes amounts that
//! always occur together share a change instead of cancelling each other with rates of opposite
//! sign. The normal equations have 17 unknowns and are solved by Cholesky's method.
//!
//! # Uncertainty
//!
//! The same matrix tells how far a prediction can be off: the variance of a sum of terms t is
//! tᵀ·M⁻¹·t. Where amounts come in proportions that were seen before that is little; where they
//! come in others it is much, because the samples do not say how classes compare.
//!
//! # Bounds
//!
//! Rates are kept above a fiftieth of their mean, and the base above zero: noise could make them
//! negative, and a class that costs nothing would draw all work to it.

use crate::CLASSES;

/// Amounts that a duration is explained by: work by class of occupancy, or bytes in the first.
pub(super) type Amounts = [f64; CLASSES];

/// Unknowns of a fit: the base and a rate per class.
const TERMS: usize = CLASSES + 1;

/// Strength of the pull, in measurements of the usual size.
const PULL: f64 = 0.02;

/// The standard deviation of measurements, as a share of a usual duration.
const NOISE: f64 = 0.1;

/// The cost of a stage.
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
    /// The amounts.
    pub(super) amounts: Amounts,
    /// The duration in milliseconds.
    pub(super) ms: f64,
}

impl Sample {
    /// The terms of the equations: 1 for the base, and the amounts in units of a usual sample.
    fn terms(&self, unit: f64) -> [f64; TERMS] {
        let mut terms = [0.0; TERMS];
        terms[0] = 1.0;
        for (term, amount) in terms[1..].iter_mut().zip(self.amounts) {
            *term = amount / unit;
        }
        terms
    }
}

impl Cost {
    /// The same rate for every class; `None` without measurements.
    ///
    /// The first belief, before samples tell classes apart.
    fn flat(samples: &[Sample]) -> Option<Self> {
        let amount = amount_of(samples);
        let ms: f64 = samples.iter().map(|sample| sample.ms).sum();
        (amount > 0.0 && ms > 0.0).then(|| Self {
            base: 0.0,
            rates: [ms / amount; CLASSES],
        })
    }

    /// Milliseconds for `amounts`; nothing takes no time.
    pub(super) fn of(&self, amounts: &Amounts) -> f64 {
        let any = amounts.iter().any(|&amount| amount > 0.0);
        self.of_several(amounts, usize::from(any))
    }

    /// Milliseconds for `amounts` in as many parts.
    pub(super) fn of_several(&self, amounts: &Amounts, parts: usize) -> f64 {
        let products = self
            .rates
            .iter()
            .zip(amounts)
            .map(|(rate, amount)| rate * amount);
        self.base * parts as f64 + products.sum::<f64>()
    }

    /// Milliseconds for a copy.
    pub(super) fn of_bytes(&self, bytes: f64) -> f64 {
        if bytes > 0.0 {
            self.base + self.rates[0] * bytes
        } else {
            0.0
        }
    }

    /// Milliseconds for anything at all.
    pub(super) fn base(&self) -> f64 {
        self.base
    }

    /// Milliseconds per amount of a class.
    pub(super) fn rate(&self, class: usize) -> f64 {
        self.rates[class]
    }
}

/// A cost and the measurements it follows from, which fade.
#[derive(Debug, Clone, Default)]
pub(super) struct Fit {
    /// The current solution.
    cost: Option<Cost>,
    /// Amount of a usual sample: in its units all terms are milliseconds.
    unit: f64,
    /// Milliseconds of a usual sample.
    usual_ms: f64,
    /// Left side of the normal equations, without the pull.
    matrix: [[f64; TERMS]; TERMS],
    /// Right side of the normal equations.
    right: [f64; TERMS],
}

impl Fit {
    /// `None` before anything was measured.
    pub(super) fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// Takes the measurements of a step in; all earlier ones count `fading` times as much.
    ///
    /// Solving takes a few microseconds, so it is done after every step.
    pub(super) fn add(&mut self, samples: &[Sample], fading: f64) {
        if samples.is_empty() {
            return;
        }
        if self.cost.is_none() {
            self.cost = Cost::flat(samples);
            let count = samples.len() as f64;
            self.unit = amount_of(samples) / count;
            self.usual_ms = samples.iter().map(|sample| sample.ms).sum::<f64>() / count;
        }
        for value in self.matrix.iter_mut().flatten().chain(&mut self.right) {
            *value *= fading;
        }
        for sample in samples {
            self.accumulate(sample);
        }
        self.solve();
    }

    /// How far what is predicted for all of these together may be off, relative: one standard
    /// deviation.
    pub(super) fn uncertainty(&self, samples: &[Sample]) -> f64 {
        let mut terms = [0.0; TERMS];
        for sample in samples {
            for (sum, term) in terms.iter_mut().zip(sample.terms(self.unit)) {
                *sum += term;
            }
        }
        let predicted: f64 = (self.cost.iter())
            .flat_map(|cost| samples.iter().map(|sample| cost.of(&sample.amounts)))
            .sum();
        let solved = cholesky(self.pulled(), terms);
        let variance: f64 = terms.iter().zip(solved).map(|(a, b)| a * b).sum();
        NOISE * self.usual_ms * variance.max(0.0).sqrt() / predicted.max(f64::MIN_POSITIVE)
    }

    /// Everything takes `factor` times as long from now on: what was measured no longer counts, but
    /// how classes compare does.
    ///
    /// The matrix is cleared and the cost is kept, so the pull holds the rates together until new
    /// samples come.
    pub(super) fn restart(&mut self, factor: f64) {
        if let Some(cost) = &mut self.cost {
            cost.base *= factor;
            cost.rates.iter_mut().for_each(|rate| *rate *= factor);
        }
        self.usual_ms *= factor;
        self.matrix = [[0.0; TERMS]; TERMS];
        self.right = [0.0; TERMS];
    }

    /// Adds a sample to the normal equations; only the lower triangle is kept.
    fn accumulate(&mut self, sample: &Sample) {
        let terms = sample.terms(self.unit);
        for row in 0..TERMS {
            if terms[row] == 0.0 {
                continue;
            }
            self.right[row] += terms[row] * sample.ms;
            for column in 0..=row {
                self.matrix[row][column] += terms[row] * terms[column];
            }
        }
    }

    /// The left side of the equations, with the pull.
    fn pulled(&self) -> [[f64; TERMS]; TERMS] {
        let mut matrix = self.matrix;
        for term in 0..TERMS {
            matrix[term][term] += PULL;
        }
        matrix
    }

    /// Solves the equations for the cost.
    fn solve(&mut self) {
        let matrix = self.pulled();
        let Some(cost) = &mut self.cost else { return };
        let mut right = self.right;
        right[0] += PULL * cost.base;
        for class in 0..CLASSES {
            right[class + 1] += PULL * cost.rates[class] * self.unit;
        }
        let solved = cholesky(matrix, right);
        let mean = cost.rates.iter().sum::<f64>() / CLASSES as f64;
        cost.base = solved[0].max(0.0);
        for class in 0..CLASSES {
            // A rate far below the mean is noise, and would draw all work to its class.
            cost.rates[class] = (solved[class + 1] / self.unit).max(0.02 * mean);
        }
    }
}

/// All amounts of the samples together.
fn amount_of(samples: &[Sample]) -> f64 {
    samples.iter().flat_map(|sample| sample.amounts).sum()
}

/// Solves a symmetric positive definite system, given by its lower triangle, by Cholesky's
/// factorisation. The pull on the diagonal keeps the matrix definite whatever was measured.
fn cholesky(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
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

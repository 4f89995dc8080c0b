//! What a pair took either backend in earlier runs on this machine.
//!
//! A policy that knows nothing begins with a share that suits few machines. So engines leave a note
//! about the rates of both backends, by job, and the next engine begins with the share at which
//! both ended together. Nothing else depends on the note: the policy measures from the second step
//! on, and the share is kept off the extremes ([`Controller::with_share`]).
//!
//! [`Controller::with_share`]: nearfield_balance::Controller::with_share
//!
//! # The note
//!
//! ```text
//! nearfield rates 1
//! 0.31<tab>0.052<tab>lists
//! ```
//!
//! One line per kind of job: nanoseconds per pair tested on the CPU backend and on the GPU. A note
//! that has anything else, or a rate outside of its bounds, is ignored as a whole.

use std::{collections::BTreeMap, env, thread};

/// The first line. The number grows when the form changes.
const HEADER: &str = "nearfield rates 1";
/// Kinds of jobs that a note holds.
const MAX_JOBS: usize = 64;
/// Bytes of the name of a job.
const MAX_NAME: usize = 256;
/// Nanoseconds per pair that a backend may take. A pair takes a thread a nanosecond or so; fixed
/// costs are counted too.
const BOUNDS: [f64; 2] = [1e-6, 1e6];

/// Nanoseconds per pair tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JobRates {
    /// Of the CPU backend with all of its threads.
    pub(crate) cpu: f64,
    /// Of the GPU, with transfers.
    pub(crate) gpu: f64,
}

impl JobRates {
    /// Rates from milliseconds and pairs of both backends; `None` where a backend had no work, or
    /// times are out of bounds.
    pub(crate) fn of(ms: [f64; 2], pairs: [u64; 2]) -> Option<Self> {
        let rate = |backend: usize| 1e6 * ms[backend] / pairs[backend] as f64;
        let rates = Self {
            cpu: rate(0),
            gpu: rate(1),
        };
        rates.is_sane().then_some(rates)
    }

    fn is_sane(self) -> bool {
        let [least, most] = BOUNDS;
        [self.cpu, self.gpu]
            .iter()
            .all(|rate| (least..=most).contains(rate))
    }

    /// The CPU backend's share of the work at which both end together.
    pub(crate) fn share(self) -> f64 {
        self.gpu / (self.cpu + self.gpu)
    }

    /// Whether the share differs from another's by more than a part in ten of the smaller backend.
    fn differs(self, other: Self) -> bool {
        let [a, b] = [self.share(), other.share()];
        let small = b.min(1.0 - b);
        (a - b).abs() > 0.1 * small
    }
}

/// The rates of a machine, by kind of job.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rates(BTreeMap<String, JobRates>);

impl Rates {
    /// Reads a note; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let mut jobs = BTreeMap::new();
        for line in lines {
            let (cpu, rest) = line.split_once('\t')?;
            let (gpu, name) = rest.split_once('\t')?;
            let rates = JobRates {
                cpu: cpu.parse().ok()?,
                gpu: gpu.parse().ok()?,
            };
            let sane = rates.is_sane() && may_be_noted(name) && jobs.len() < MAX_JOBS;
            if !sane || jobs.insert(name.to_owned(), rates).is_some() {
                return None;
            }
        }
        Some(Self(jobs))
    }

    /// The rates of a kind of job.
    pub(crate) fn of(&self, job: &str) -> Option<JobRates> {
        self.0.get(job).copied()
    }

    /// Takes in what a job took, and returns true if that is worth writing down. A note that is
    /// full keeps the jobs it has.
    pub(crate) fn learn(&mut self, job: &str, rates: JobRates) -> bool {
        let known = self.of(job);
        let new = known.is_none() && self.0.len() < MAX_JOBS && may_be_noted(job);
        let worth = known.is_some_and(|known| rates.differs(known)) || new;
        if worth {
            self.0.insert(job.to_owned(), rates);
        }
        worth
    }
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{HEADER}")?;
        let mut jobs = self.0.iter();
        jobs.try_for_each(|(name, rates)| writeln!(f, "{}\t{}\t{name}", rates.cpu, rates.gpu))
    }
}

/// The kind of processor, how many cores a process has of it, and the threads of a CPU backend.
pub(crate) fn machine(threads: usize) -> String {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    // Family, model and stepping (AMD64 Architecture Programmer's Manual, volume 3, E.3.2).
    #[cfg(target_arch = "x86_64")]
    let kind = std::arch::x86_64::__cpuid(1).eax;
    #[cfg(not(target_arch = "x86_64"))]
    let kind = 0;
    let arch = env::consts::ARCH;
    format!("{arch} {kind:x}, {cores} cores, {threads} threads")
}

/// Whether a name of a job fits on a line.
fn may_be_noted(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: JobRates = JobRates { cpu: 0.3, gpu: 0.1 };

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let mut rates = Rates::default();
        assert!(rates.learn("lists", LISTS));
        assert!(rates.learn(
            "a::Kernel<f32, 3>",
            JobRates {
                cpu: 1e-6,
                gpu: 1e6
            }
        ));
        assert_eq!(Rates::parse(&rates.to_string()), Some(rates.clone()));
        assert_eq!(rates.of("lists").map(JobRates::share), Some(0.25));
        assert_eq!(rates.of("counts"), None);
        let none = Rates::default();
        assert_eq!(Rates::parse(&none.to_string()), Some(none));
    }

    #[test]
    fn a_text_that_is_no_note_is_ignored_as_a_whole() {
        let whole = format!("{HEADER}\n0.3\t0.1\tlists\n");
        assert!(Rates::parse(&whole).is_some());
        for cut in 0..whole.len() {
            assert_eq!(
                Rates::parse(&whole[..cut]).filter(|_| cut != HEADER.len() + 1),
                None
            );
        }
        let long = "x".repeat(MAX_NAME + 1);
        let many: String = (0..=MAX_JOBS)
            .map(|job| format!("1\t1\tjob {job}\n"))
            .collect();
        for text in [
            "",
            "\n",
            "nearfield rates 2\n0.3\t0.1\tlists\n",
            &format!("{whole}\n"),
            &format!("{whole}0.3\t0.1\tlists\n"),
            &format!("{HEADER}\n0.3 0.1 lists\n"),
            &format!("{HEADER}\n0.3\t0.1\t\n"),
            &format!("{HEADER}\n0.3\t0.1\t{long}\n"),
            &format!("{HEADER}\n0.3\t0.1\tli\rsts\n"),
            &format!("{HEADER}\nNaN\t0.1\tlists\n"),
            &format!("{HEADER}\ninf\t0.1\tlists\n"),
            &format!("{HEADER}\n-0.3\t0.1\tlists\n"),
            &format!("{HEADER}\n0\t0.1\tlists\n"),
            &format!("{HEADER}\n0.3\t1e7\tlists\n"),
            &format!("{HEADER}\n{many}"),
        ] {
            assert_eq!(Rates::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn rates_are_written_down_when_they_are_new_or_ask_for_another_share() {
        let mut rates = Rates::default();
        assert!(rates.learn("lists", LISTS));
        assert!(!rates.learn("lists", LISTS));
        // Both twice as fast: the share is the same.
        assert!(!rates.learn(
            "lists",
            JobRates {
                cpu: 0.15,
                gpu: 0.05
            }
        ));
        assert!(rates.learn("lists", JobRates { cpu: 0.3, gpu: 0.2 }));
        assert!(!rates.learn("two\nlines", LISTS));
        for job in 1..MAX_JOBS {
            assert!(rates.learn(&format!("job {job}"), LISTS));
        }
        assert!(!rates.learn("one too many", LISTS));
        assert!(Rates::parse(&rates.to_string()).is_some());
    }

    #[test]
    fn only_times_of_two_backends_with_work_are_rates() {
        let rates = JobRates::of([3.0, 1.0], [1_000_000, 2_000_000]).unwrap();
        assert!((rates.cpu - 3.0).abs() < 1e-9 && (rates.gpu - 0.5).abs() < 1e-9);
        for (ms, pairs) in [
            ([0.0, 1.0], [1, 1]),
            ([1.0, 1.0], [0, 1]),
            ([1.0, f64::NAN], [1, 1]),
            ([f64::INFINITY, 1.0], [1, 1]),
            ([1.0, -1.0], [1, 1]),
            ([1e9, 1.0], [1, 1]),
        ] {
            assert_eq!(JobRates::of(ms, pairs), None, "{ms:?} {pairs:?}");
        }
    }
}

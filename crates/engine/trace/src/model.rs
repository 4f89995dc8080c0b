//! The records of a trace in format version 1, one JSON object per line.
//!
//! `docs/trace-format.md` describes them for other programs, `docs/trace.schema.json` in a form
//! that machines check. All times are nanoseconds since the start that the header states, on the
//! host's monotonic clock; times of a device are mapped onto it, and `clock_error` bounds how far
//! off they may be.

use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The name that the header of every trace carries.
pub const FORMAT: &str = "nearfield-trace";
/// The version that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// The clock of an emulated device.
pub const VIRTUAL: &str = "virtual";
/// Spans that the device timed itself: kernels and copies. All others are timed by the host.
pub const DEVICE_TIMED: [&str; 3] = ["gpu.kernel", "gpu.copy", "gpu.exchange"];

/// Message of the note about a GPU that failed. Its field `lost` is true if no later call can
/// succeed, `error` is the driver's error.
pub const GPU_FAILED: &str = "the CPU backend takes over from the GPU";
/// The reason of a decision begins so if it was made because the GPU is lost.
pub const GPU_LOST: &str = "the GPU is lost";
/// Name of the policy with one threshold, which learns nothing. `policy` of a [`Retune`] is the
/// name of a policy, and its numbers after colons: `fixed:12.5`.
pub const POLICY_FIXED: &str = "fixed";
/// Name of the policy that goes to the optimum it predicts.
pub const POLICY_MODEL: &str = "model";

/// Text that is known at compile time when it is written, and owned when it is read.
pub type Text = Cow<'static, str>;

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The first line.
    Header(Header),
    /// A stage that has ended.
    Span(Span),
    /// A step that has ended.
    Step(Step),
    /// Figures of one backend for one subregion in one pass of a step.
    Subregion(Subregion),
    /// The same of a job outside of all steps, without the number of a step.
    Job(Subregion),
    /// A decision of the policy.
    Retune(Retune),
    /// A decision after a job outside of all steps, without the number of a step.
    JobRetune(Retune),
    /// How many cells or bricks hold how many points.
    Occupancy(Occupancy),
    /// A warning or an error, or an event that is none of the others.
    Note(Note),
    /// Records that were dropped because the writer could not keep up.
    Lost(Lost),
    /// The last line of a trace that was closed.
    End(End),
    /// A record that this version does not know; readers pass over it.
    #[serde(other)]
    Unknown,
}

/// The first line: the program that made the trace, the machine and the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: Text,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The program that was traced.
    pub program: Program,
    /// Where it ran.
    pub machine: Machine,
    /// The moment that all times count from, milliseconds since 1970-01-01 UTC.
    pub start_unix_ms: u64,
    /// The rank that recorded it, in a run of many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version; empty when it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Its arguments; empty when it does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Threads that run at once.
    pub cores: u32,
    /// Operating system and architecture.
    pub system: String,
    /// Names of the GPUs in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
}

/// An interval of time, `[begin, end]` in nanoseconds; written so as to be unable to end before it
/// begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "[u64; 2]", into = "[u64; 2]")]
pub struct Interval {
    begin: u64,
    end: u64,
}

impl Interval {
    /// From `begin` to `end`, or empty at `begin` when `end` is before it.
    pub fn new(begin: u64, end: u64) -> Self {
        let end = end.max(begin);
        Self { begin, end }
    }

    /// Where it begins.
    pub fn begin(self) -> u64 {
        self.begin
    }

    /// Where it ends.
    pub fn end(self) -> u64 {
        self.end
    }

    /// How long it is.
    pub fn length(self) -> u64 {
        self.end - self.begin
    }
}

impl TryFrom<[u64; 2]> for Interval {
    type Error = String;

    fn try_from([begin, end]: [u64; 2]) -> Result<Self, String> {
        if begin <= end {
            return Ok(Self { begin, end });
        }
        Err(format!(
            "an interval ends at {end}, before it begins at {begin}"
        ))
    }
}

impl From<Interval> for [u64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.begin, interval.end]
    }
}

/// A value that a span or an event carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A count.
    Count(u64),
    /// A number below zero.
    Signed(i64),
    /// Any other finite number.
    Number(f64),
    /// Text, also for numbers that are not finite.
    Text(Text),
}

impl Value {
    /// The value if it is a count.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// The value if it is a number, infinity included.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Signed(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            Self::Text(text) if text == "inf" => Some(f64::INFINITY),
            Self::Text(_) | Self::Bool(_) => None,
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(value)
        } else {
            Self::Text(value.to_string().into())
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Count(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// Values by name.
pub type Fields = BTreeMap<Text, Value>;

/// A stage that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Its name, such as `grid.sort`.
    pub name: Text,
    /// The backend that it kept busy; none for work of the caller's thread itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Text>,
    /// Phase of the backend.
    pub phase: Phase,
    /// Its number, from 1, unique in the trace.
    pub id: u64,
    /// The span that it is part of, 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parent: u64,
    /// The thread that began it.
    pub thread: Text,
    /// When it was.
    pub time: Interval,
    /// Its fields.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub fields: Fields,
}

impl Span {
    /// Returns true if the device timed it, so that it tells when the device worked.
    pub fn is_device_timed(&self) -> bool {
        DEVICE_TIMED.contains(&&*self.name)
    }

    /// Returns true if it ran on another thread than that of the steps, such as one that writes
    /// files. No step and no backend waits for it.
    pub fn is_beside(&self) -> bool {
        self.name.starts_with("beside.")
    }

    /// The text that it carries under a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.fields.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Activity of a backend during an interval of time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Brings data to the backend.
    Upload,
    /// Works.
    #[default]
    Compute,
    /// Brings results back.
    Download,
    /// Hands results to the other backend.
    Exchange,
}

impl Phase {
    /// All of them, in the order that a subregion passes through.
    pub const ALL: [Self; 4] = [Self::Upload, Self::Compute, Self::Download, Self::Exchange];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Compute => "compute",
            Self::Download => "download",
            Self::Exchange => "exchange",
        }
    }

    /// Whether it moves data.
    pub fn is_transfer(self) -> bool {
        self != Self::Compute
    }
}

/// An occupancy threshold: bricks with more points go to the GPU backend. Infinity is written
/// `"inf"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Theta(pub f64);

impl From<Theta> for Value {
    fn from(theta: Theta) -> Self {
        Self::from(theta.0)
    }
}

impl TryFrom<Value> for Theta {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value.number() {
            Some(theta) if theta >= 0.0 => Ok(Self(theta)),
            _ => Err(format!(
                "{value} is not a threshold: use a number from 0, or \"inf\""
            )),
        }
    }
}

impl fmt::Display for Theta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() {
            self.0.fmt(f)
        } else {
            f.write_str("∞")
        }
    }
}

/// A step that has ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// Its number, as the program counts.
    pub step: u64,
    /// When it was.
    pub time: Interval,
    /// Points in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
    /// Pairs found or evaluated in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u64>,
    /// The threshold, when one holds for all subregions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<Theta>,
    /// The CPU backend's share of the work, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Figures of one backend for one subregion in one pass of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Subregion {
    /// The step's number; none for a job outside of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The subregion's number.
    pub subregion: u64,
    /// The backend.
    pub backend: Text,
    /// The rank whose thread told it, in a program with ranks as threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Number of the pass over the pairs within the step, such as 0 for densities and 1 for forces.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pass: u64,
    /// Targets the backend works on there.
    pub points: u64,
    /// Their cells.
    pub cells: u64,
    /// The work expected of them, in pairs to test.
    pub work: u64,
    /// Pairs found, when they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u64>,
    /// Bytes brought to the backend.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_up: u64,
    /// Bytes brought back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_down: u64,
    /// When data were brought to the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Interval>,
    /// When the backend worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Interval>,
    /// When results were brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Interval>,
    /// When results were handed to the other backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Interval>,
    /// Most by which the times may be off, nanoseconds; 0 for times of the host's clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_error: u64,
    /// [`VIRTUAL`] for times of an emulated device's clock, absent for real times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Text>,
    /// Number of the job; 0 where the program did not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub job: u64,
    /// When that job began, the same for all of its lines; absent where it has no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<u64>,
    /// The threshold that held there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<Theta>,
    /// Number of bricks with exactly as many points as the threshold that went to the CPU backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta_ties: Option<u64>,
}

impl Record {
    /// The record of a subregion, by whether it belongs to a step.
    ///
    /// Two kinds, because readers that know steps only pass over a kind that they do not know.
    pub fn of_subregion(subregion: Subregion) -> Self {
        match subregion.step {
            Some(_) => Self::Subregion(subregion),
            None => Self::Job(subregion),
        }
    }

    /// The record of a decision, by whether it was made after a step.
    pub fn of_retune(retune: Retune) -> Self {
        match retune.step {
            Some(_) => Self::Retune(retune),
            None => Self::JobRetune(retune),
        }
    }
}

impl Subregion {
    /// Returns true if the times come from an emulated device.
    pub fn is_virtual(&self) -> bool {
        self.clock.as_deref() == Some(VIRTUAL)
    }

    /// When it was in this phase.
    pub fn phase(&self, phase: Phase) -> Option<Interval> {
        match phase {
            Phase::Upload => self.upload,
            Phase::Compute => self.compute,
            Phase::Download => self.download,
            Phase::Exchange => self.exchange,
        }
    }
}

/// A decision of the policy, to change something or to leave it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Retune {
    /// The step after which it was made; none after a job outside of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// When.
    pub at: u64,
    /// What the job computes that is divided: the type of a pair kernel, `lists` or `counts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Text>,
    /// Number of the job's set of targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<u64>,
    /// Number of its set of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<u64>,
    /// The only subregion that it changes; none for several, all or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subregion: Option<u64>,
    /// The policy that decided.
    pub policy: Text,
    /// The threshold before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta_before: Option<Theta>,
    /// The threshold from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<Theta>,
    /// The CPU backend's share of the work before, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_before: Option<f64>,
    /// Its share from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// True before an exploration step: θ differs from the settled value for one step, to sample
    /// another split.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exploration: bool,
    /// Why, in words.
    pub reason: Text,
}

/// How many cells or bricks hold how many points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Occupancy {
    /// When it was counted.
    pub at: u64,
    /// The unit that was counted: `cells` or `bricks`.
    pub of: Text,
    /// Sampling interval: one cell or brick in `one_in` was counted.
    pub one_in: u64,
    /// Pairs of least number of points and number of cells, ascending; each holds from that many
    /// points to fewer than the next.
    pub counts: Vec<[u64; 2]>,
}

/// Something worth a line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: u64,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: Text,
    /// Its text or name.
    pub message: Text,
    /// Its fields.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub fields: Fields,
}

/// Records that were dropped because the writer could not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lost {
    /// Number of lost records since the last such line.
    pub records: u64,
}

/// The last line of a trace that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct End {
    /// When it was closed.
    pub at: u64,
    /// Lines before this one, the header included.
    pub records: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(record: &Record) -> String {
        let text = serde_json::to_string(record).unwrap();
        assert_eq!(
            &serde_json::from_str::<Record>(&text).unwrap(),
            record,
            "{text}"
        );
        text
    }

    #[test]
    fn an_infinite_threshold_survives() {
        let text = round_trip(&Record::Subregion(Subregion {
            backend: "cpu".into(),
            theta: Some(Theta(f64::INFINITY)),
            compute: Some(Interval::new(3, 9)),
            ..Subregion::default()
        }));
        assert!(
            text.contains(r#""theta":"inf""#) && text.contains(r#""compute":[3,9]"#),
            "{text}"
        );
        assert!(serde_json::from_str::<Theta>("-1").is_err());
        assert!(serde_json::from_str::<Theta>("\"many\"").is_err());
    }

    #[test]
    fn values_keep_their_kind() {
        let fields: Fields = [
            ("a".into(), Value::Bool(true)),
            ("b".into(), Value::Count(u64::MAX)),
            ("c".into(), Value::Signed(-3)),
            ("d".into(), Value::Number(0.5)),
            ("e".into(), Value::from(f64::NAN)),
        ]
        .into();
        round_trip(&Record::Note(Note {
            message: "gpu.compiler".into(),
            fields,
            ..Note::default()
        }));
    }

    #[test]
    fn a_interval_that_ends_before_it_begins_is_refused() {
        let refused = serde_json::from_str::<Interval>("[5,4]").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("ends at 4, before it begins at 5")
        );
        assert_eq!(Interval::new(5, 4).length(), 0);
    }

    #[test]
    fn records_of_later_minor_versions_are_passed_over() {
        let later = r#"{"record":"temperature","at":3,"degrees":71.5}"#;
        assert_eq!(
            serde_json::from_str::<Record>(later).unwrap(),
            Record::Unknown
        );
    }
}

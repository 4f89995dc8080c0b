//! The report as JSON, for programs in other languages.
//!
//! The text is written member by member. It is one object of known shape, for which not every
//! program that depends on the engine should have to build a JSON library.
//!
//! **Invariant:** every string goes through [`quoted`], and every number is finite.

use crate::report::{GpuReport, JobReport, Report, SetReport};
use std::{fmt::Write, time::Duration};

impl Report {
    /// The report as one JSON object: `device`, `requested`, `reason`, `threads`, `simd`,
    /// `precision`, `sets` [{`points`, `cells`, `bytes`}], `milliseconds` {`build`, `search`,
    /// `traverse`}, `pairs`, `bytes` by structure, `jobs` [{`job`, `targets`, `sources`, `device`,
    /// `reason`}], and `gpu` {`name`, `strategy`, `bytes`, `busy`, `failed`, `faults`,
    /// `last_fault`, `cache_refused`} or null.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let engine = Engine::builder(0.5).device(Device::Cpu).build()?;
    /// assert!(engine.report().to_json().starts_with(r#"{"device":"cpu","requested":"cpu","#));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let bytes = self.memory.parts();
        let bytes = bytes.map(|(name, bytes)| (name, bytes.to_string()));
        object([
            ("device", quoted(&self.device.to_string())),
            ("requested", quoted(&self.requested.to_string())),
            ("reason", quoted(&self.reason)),
            ("threads", self.threads.to_string()),
            ("simd", quoted(self.simd.name())),
            ("precision", quoted(&self.precision.to_string())),
            ("sets", array(self.sets.iter().map(set))),
            (
                "milliseconds",
                object([
                    ("build", milliseconds(self.times.build)),
                    ("search", milliseconds(self.times.search)),
                    ("traverse", milliseconds(self.times.traverse)),
                ]),
            ),
            ("pairs", self.pairs.to_string()),
            ("bytes", object(bytes)),
            ("jobs", array(self.jobs.iter().map(job))),
            ("gpu", self.gpu.as_ref().map_or("null".to_owned(), gpu)),
        ])
    }
}

/// Sets stand in the order of the report; their numbers are not in the text.
fn set(set: &SetReport) -> String {
    object([
        ("points", set.points.to_string()),
        ("cells", set.cells.to_string()),
        ("bytes", set.bytes.to_string()),
    ])
}

/// How two backends shared the job is left out.
fn job(job: &JobReport) -> String {
    object([
        ("job", quoted(&job.job)),
        ("targets", job.targets.to_string()),
        ("sources", job.sources.to_string()),
        ("device", quoted(&job.device.to_string())),
        ("reason", quoted(&job.reason)),
    ])
}

/// The subdivision and the trials of strategies are left out.
fn gpu(gpu: &GpuReport) -> String {
    let or_null = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quoted);
    object([
        ("name", quoted(&gpu.name)),
        ("strategy", quoted(gpu.strategy.name())),
        ("bytes", gpu.bytes.to_string()),
        ("busy", gpu.busy.to_string()),
        ("failed", or_null(&gpu.failed)),
        ("faults", gpu.faults.to_string()),
        ("last_fault", or_null(&gpu.last_fault)),
        ("cache_refused", or_null(&gpu.cache_refused)),
    ])
}

/// With as many digits as it takes to read the same `f64` again.
fn milliseconds(time: Duration) -> String {
    (time.as_secs_f64() * 1e3).to_string()
}

/// An object of members whose values are JSON.
fn object<const N: usize>(members: [(&str, String); N]) -> String {
    let members = members.map(|(name, value)| format!("{}:{value}", quoted(name)));
    format!("{{{}}}", members.join(","))
}

/// An array of values that are JSON.
fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

/// A string with what JSON (RFC 8259) does not allow in one escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Engine, balance::emulated::EmulatedSpec};
    use serde_json::{Value, json};

    #[test]
    fn any_text_comes_back_from_a_json_reader() {
        let text = "a \"kernel\" of C:\\x\n\tline 2\u{0}\u{1f}\u{7f} µ 😀";
        let read: Value = serde_json::from_str(&quoted(text)).unwrap();
        assert_eq!(read, Value::from(text));
    }

    #[test]
    fn a_report_has_the_members_that_are_documented() {
        let device = Device::Emulated(EmulatedSpec::default());
        let mut engine = Engine::builder(0.5).device(device).build().unwrap();
        engine
            .add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0]])
            .unwrap();
        engine.find_neighbors().unwrap();
        let mut report = engine.report();
        report.reason = "\"quoted\"".to_owned();
        let read: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(read["device"], device.to_string());
        assert_eq!(read["reason"], "\"quoted\"");
        assert_eq!(read["pairs"], 2);
        assert_eq!(read["sets"][0]["points"], 2);
        assert_eq!(read["jobs"][0]["job"], "lists");
        assert_eq!(read["gpu"], Value::Null);
        let build = read["milliseconds"]["build"].as_f64().unwrap();
        assert!((build - report.times.build.as_secs_f64() * 1e3).abs() < 1e-9);
        for (name, bytes) in report.memory.parts() {
            assert_eq!(read["bytes"][name], bytes, "{name}");
        }
        report.gpu = Some(GpuReport {
            name: "H100".to_owned(),
            strategy: crate::balance::Strategy::ChildPerCell,
            subdivision: 1,
            bytes: 12,
            trials: Vec::new(),
            busy: 3,
            failed: Some("out of memory".to_owned()),
            faults: 1,
            last_fault: Some("out of memory".to_owned()),
            cache_refused: None,
        });
        let read: Value = serde_json::from_str(&report.to_json()).unwrap();
        let expected = json!({
            "name": "H100", "strategy": "child-per-cell", "bytes": 12, "busy": 3,
            "failed": "out of memory", "faults": 1, "last_fault": "out of memory",
            "cache_refused": null,
        });
        assert_eq!(read["gpu"], expected);
    }
}

//! The report as JSON, for programs in other languages.

use crate::report::Report;
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Report {
    /// The report as one JSON object: `device`, `requested`, `reason`, `threads`, `simd`,
    /// `precision`, `sets` [{`points`, `cells`, `bytes`}], `milliseconds` {`build`, `search`,
    /// `traverse`}, `pairs`, `bytes` by structure, `jobs` [{`job`, `targets`, `sources`, `device`,
    /// `reason`}], and `gpu` {`name`, `strategy`, `bytes`, `busy`, `failed`, `faults`,
    /// `last_fault`, `cache_refused`} or null.
    pub fn to_json(&self) -> String {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let sets = self
            .sets
            .iter()
            .map(|set| json!({ "points": set.points, "cells": set.cells, "bytes": set.bytes }));
        let bytes = self.memory.parts().into_iter();
        let bytes: Map<_, _> = bytes
            .map(|(name, size)| (name.to_owned(), size.into()))
            .collect();
        let gpu = self.gpu.as_ref().map(|gpu| {
            json!({
                "name": gpu.name,
                "strategy": gpu.strategy.to_string(),
                "bytes": gpu.bytes,
                "busy": gpu.busy,
                "failed": gpu.failed,
                "faults": gpu.faults,
                "last_fault": gpu.last_fault,
                "cache_refused": gpu.cache_refused,
            })
        });
        let jobs = self.jobs.iter().map(|job| {
            json!({
                "job": job.job,
                "targets": job.targets,
                "sources": job.sources,
                "device": job.device.to_string(),
                "reason": job.reason,
            })
        });
        json!({
            "device": self.device.to_string(),
            "requested": self.requested.to_string(),
            "reason": self.reason,
            "threads": self.threads,
            "simd": self.simd.name(),
            "precision": self.precision.to_string(),
            "sets": sets.collect::<Vec<Value>>(),
            "milliseconds": {
                "build": milliseconds(self.times.build),
                "search": milliseconds(self.times.search),
                "traverse": milliseconds(self.times.traverse),
            },
            "pairs": self.pairs,
            "bytes": bytes,
            "jobs": jobs.collect::<Vec<Value>>(),
            "gpu": gpu,
        })
        .to_string()
    }
}

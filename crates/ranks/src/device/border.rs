//! The border of a rank: points at the border and points of the halo, in an engine of their own.
//!
//! They are few, so their kernels leave most of the device idle and wait for messages. So they run
//! on a stream of their own, concurrently with the interior. The stream has the highest priority,
//! so border kernels need not wait for the blocks of a pass over the interior.
//!
//! **Invariant:** the border's stream reads arrays of owned points behind an event of their stream,
//! and that stream waits for the border's before it changes or frees any of them.

use super::{
    kernels::Kernels,
    staging::{driver, zeros},
};
use crate::error::Refusal;
use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceEngineBuilder, Event};

/// The engine of the border, and its kernels and memory.
pub(super) struct Border {
    pub(super) engine: DeviceEngine,
    pub(super) kernels: Kernels,
    /// Values of points at the border.
    pub(super) rows: DeviceBuffer<u32>,
}

impl Border {
    /// An empty border next to an engine with these settings.
    pub(super) fn start(
        beside: &DeviceEngine,
        settings: DeviceEngineBuilder,
    ) -> Result<Self, Refusal> {
        let context = beside.stream().context();
        let failed = |error| driver("making a stream", error);
        let stream = context.new_urgent_stream();
        let engine = settings.on(&stream.map_err(failed)?)?;
        Ok(Self {
            kernels: Kernels::load(&engine)?,
            rows: zeros(&engine, 1)?,
            engine,
        })
    }

    /// Makes later work on the border's stream wait for an event of another stream.
    pub(super) fn follow(&self, event: &Event) -> Result<(), Refusal> {
        let waits = self.engine.stream().wait(event);
        waits.map_err(|error| driver("joining streams", error))
    }

    /// Makes room for that many words of points at the border.
    pub(super) fn fit(&mut self, words: usize) -> Result<(), Refusal> {
        if self.rows.len() < words {
            self.rows = zeros(&self.engine, words + words / 4)?;
        }
        Ok(())
    }
}

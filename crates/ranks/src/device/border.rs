//! The border of a rank, beside its interior.
//!
//! Points at the border and those of the halo are in an engine of their own, on a stream beside
//! that of owned points: they are few, so their kernels leave most of the device idle, and wait for
//! messages. The stream has the highest priority, so that they need not queue for the blocks of a
//! pass over the interior.
//!
//! **Invariant:** what the border's stream reads of arrays of owned points it reads behind an event
//! there, and that stream waits for the border's before it changes or frees any of these.

use super::{
    kernels::Kernels,
    staging::{driver, zeros},
};
use crate::error::Refusal;
use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceEngineBuilder, Event};

/// The engine of the border, and what works there.
pub(super) struct Border {
    pub(super) engine: DeviceEngine,
    pub(super) kernels: Kernels,
    /// Values of points at the border.
    pub(super) rows: DeviceBuffer<u32>,
}

impl Border {
    /// A border without points, beside an engine with these settings.
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

    /// Lets what follows on the border's stream wait for an event of another one.
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

//! [`Device::Auto`](crate::Device::Auto): begins on the CPU backend and takes a GPU in when it is
//! ready.
//!
//! Starting a GPU takes longer than searching a million points. So a program that searches once
//! does not wait for it: the start begins at the second step, on a thread of its own, while the CPU
//! backend goes on. Once it has succeeded both backends share the steps, and a GPU that does not
//! pay gets nothing to do.
//!
//! The engine looks at the thread before it places new positions, and never waits for it: a step
//! that begins before the GPU is ready is a step of the CPU backend. A GPU that cannot be started
//! is not an error, and is not tried again.

use super::later::{LaterGpu, StartingGpu};
use crate::{Engine, backend::split::Split};

/// Points from which a GPU may pay.
const WORTH_A_GPU: usize = 10_000;

impl Engine {
    /// Begins to start a GPU, or takes it in, when the time has come: before new positions of a set
    /// are placed.
    ///
    /// Called by updates, not when sets are added: a program that searches once never starts a GPU.
    /// The points counted are those of all sets before the update. Sets come to the new device as
    /// their positions are placed.
    pub(crate) fn take_gpu_in(&mut self) {
        let points = self.extents.all().points;
        match self.later.take() {
            Some(LaterGpu::Possible) if points >= WORTH_A_GPU => {
                match StartingGpu::begin(self.settings.turn, self.settings.strategy) {
                    Ok(starting) => self.later = Some(LaterGpu::Starting(starting)),
                    Err(error) => self.do_without_gpu(&error),
                }
            }
            Some(LaterGpu::Starting(starting)) if starting.is_ready() => match starting.wait() {
                Ok(gpu) => {
                    self.accelerator = Some(gpu);
                    self.split = Some(Split::new(self.settings.division()));
                    self.undelivered = true;
                    self.reason = "a GPU is there; the backends' times decide who does what".into();
                    self.announce();
                }
                Err(error) => self.do_without_gpu(&error),
            },
            later => self.later = later,
        }
    }

    /// Stays on the CPU backend for good, and says why in the report and the trace.
    fn do_without_gpu(&mut self, why: &str) {
        self.reason = format!("the CPU backend: the GPU cannot be used: {why}").into();
        self.announce();
    }
}

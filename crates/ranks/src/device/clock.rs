//! Times of halos, by the clock of the device: from the gathering of values that are sent to the
//! arrival of those received, and how much of that the work among owned points hides. Events are
//! recorded if a trace is recorded or the program asks for times; nothing waits for them.

use crate::{HaloTimes, communicator::Exchange, error::Refusal};
use nearfield::device::{
    DeviceEngine,
    copies::{Moment, Queue},
};
use std::{collections::BTreeMap, mem, sync::Arc, time::Duration};

/// Maximum number of halos whose times are not read yet; the oldest are dropped.
const MAX_OPEN: usize = 1024;

/// A halo that has arrived.
struct Halo {
    what: &'static str,
    left: Moment,
    /// End of the work among owned points that was started before the halo arrived.
    worked: Option<Arc<Moment>>,
    came: Moment,
}

/// The times of halos.
#[derive(Default)]
pub(super) struct Clock {
    asked: bool,
    times: HaloTimes,
    /// When the last values were gathered.
    left: Option<Moment>,
    /// The same, of exchanges that were posted.
    posted: BTreeMap<Exchange, Moment>,
    worked: Option<Arc<Moment>>,
    /// When the values of the next exchange to arrive were gathered.
    coming: Option<Moment>,
    open: Vec<Halo>,
}

impl Clock {
    /// Starts or stops timing at the program's request.
    pub(super) fn ask(&mut self, asked: bool) {
        *self = Self {
            asked,
            ..Self::default()
        };
    }

    /// The times so far.
    pub(super) fn times(&self) -> HaloTimes {
        self.times
    }

    fn moment(&self, queue: &Queue) -> Result<Option<Moment>, Refusal> {
        if self.asked || queue.is_timed() {
            Ok(Some(queue.moment()?))
        } else {
            Ok(None)
        }
    }

    /// Values of a halo were gathered.
    pub(super) fn left(&mut self, engine: &DeviceEngine) -> Result<(), Refusal> {
        self.left = self.moment(engine.queue())?;
        Ok(())
    }

    /// They were sent in this exchange.
    pub(super) fn posted(&mut self, exchange: Exchange) {
        if let Some(left) = self.left.take() {
            self.posted.insert(exchange, left);
        }
    }

    /// Work among owned points was started.
    pub(super) fn worked(&mut self, engine: &DeviceEngine) -> Result<(), Refusal> {
        self.worked = self.moment(engine.queue())?.map(Arc::new);
        Ok(())
    }

    /// The halo of this exchange arrives next.
    pub(super) fn comes(&mut self, exchange: Exchange) {
        self.coming = self.posted.remove(&exchange);
        // Others before it have come to nothing.
        self.posted = self.posted.split_off(&exchange);
    }

    /// It arrives with the work so far on `beside`.
    pub(super) fn came(&mut self, what: &'static str, beside: &Queue) -> Result<(), Refusal> {
        let Some(left) = self.coming.take() else {
            return Ok(());
        };
        if let Some(came) = self.moment(beside)? {
            if self.open.len() == MAX_OPEN {
                self.open.clear();
            }
            self.open.push(Halo {
                what,
                left,
                worked: self.worked.clone(),
                came,
            });
        }
        Ok(())
    }

    /// The device has been waited for.
    pub(super) fn read(&mut self, queue: &Queue) {
        for halo in mem::take(&mut self.open) {
            let Some(whole) = halo.left.until(&halo.came) else {
                continue;
            };
            let alone = halo.worked.and_then(|worked| worked.until(&halo.came));
            let whole = whole.max(0.0);
            let alone = alone.map_or(whole, |alone| alone.clamp(0.0, whole));
            let time = |ms: f32| Duration::from_secs_f64(1e-3 * f64::from(ms));
            self.times.halo += time(whole);
            self.times.waiting += time(alone);
            queue.exchanged(halo.what, halo.left, halo.came);
        }
    }
}

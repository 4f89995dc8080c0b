//! What tests of data on a GPU begin with.

use nearfield::{
    PointSetId,
    device::{DeviceBuffer, DeviceEngine, DeviceEngineBuilder, DeviceValue, Progress, Stream},
};

/// An engine on the first GPU.
pub(crate) fn start(builder: DeviceEngineBuilder) -> DeviceEngine {
    builder.on_gpu(0).unwrap()
}

/// Steps of an engine whose points come from the host.
pub(crate) trait FromHost {
    /// Adds a set of these points.
    fn add(&mut self, points: &[[f32; 3]]) -> PointSetId;
    /// Gives a set these points.
    fn put(&mut self, set: PointSetId, points: &[[f32; 3]]);
    /// Finds neighbours until the step is valid; returns how often it had to be repeated.
    fn find(&mut self, targets: PointSetId, sources: PointSetId) -> usize;
}

impl FromHost for DeviceEngine {
    fn add(&mut self, points: &[[f32; 3]]) -> PointSetId {
        let points = upload(self.stream(), points);
        self.add_point_set(&points.as_view()).unwrap()
    }

    fn put(&mut self, set: PointSetId, points: &[[f32; 3]]) {
        let points = upload(self.stream(), points);
        self.update(set, &points.as_view()).unwrap();
    }

    fn find(&mut self, targets: PointSetId, sources: PointSetId) -> usize {
        let mut repeats = 0;
        loop {
            self.find_neighbors(targets, sources).unwrap();
            match self.finish().unwrap() {
                Progress::Valid => return repeats,
                Progress::Repeat => repeats += 1,
            }
        }
    }
}

/// Coordinates on the device, three numbers a point.
#[allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]
pub(crate) fn upload<T: DeviceValue>(stream: &Stream, points: &[[T; 3]]) -> DeviceBuffer<T> {
    stream.clone_htod(points.as_flattened()).unwrap()
}

/// Takes the memory of the stream's GPU, all but about 64 MiB; it is free again when this is
/// dropped.
pub(crate) fn take_memory(stream: &Stream) -> Vec<DeviceBuffer<u8>> {
    const LEFT: usize = 64 << 20;
    let mut taken = Vec::new();
    for _ in 0..64 {
        stream.synchronize().unwrap();
        let [free, _] = stream.context().memory().unwrap();
        let Some(more) = free.checked_sub(LEFT).filter(|&more| more > 1 << 20) else {
            break;
        };
        // SAFETY: it is never read.
        taken.extend(unsafe { stream.alloc::<u8>(more - more / 16) });
    }
    taken
}

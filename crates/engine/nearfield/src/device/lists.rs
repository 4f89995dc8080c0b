//! Neighbour lists that stay on the device.

use nearfield_gpu::{DeviceLists, cudarc::driver::CudaView};

/// Lists of one pair of sets: the neighbours of target i are `count[i]` entries from `start[i]` on,
/// as indices in the caller's order.
#[derive(Debug)]
pub struct DeviceListsView<'a> {
    /// Where the list of every target begins.
    pub start: CudaView<'a, u64>,
    /// Its length.
    pub count: CudaView<'a, u32>,
    /// Entries of all lists, and room behind them.
    pub entries: CudaView<'a, u32>,
}

impl<'a> DeviceListsView<'a> {
    pub(super) fn of(lists: &'a DeviceLists) -> Option<Self> {
        let (start, count, entries) = lists.views()?;
        Some(Self {
            start,
            count,
            entries,
        })
    }
}

//! Which GPU a rank takes if it is asked for one without a number.
//!
//! Ranks that see the same GPUs of the same machine take them in turn, by the order of the ranks:
//! with two GPUs, ranks 0 and 2 share the first, and ranks 1 and 3 the second. If a batch system
//! shows every rank a GPU of its own, each takes the first that it sees.
//!
//! Ranks with [`Device::Auto`] do so too. They start no driver until steps are large enough, so
//! they do not know yet which GPUs they see: they only count the ranks of their machine, and the
//! engine takes that number modulo the number of GPUs it finds.

use crate::transport::{Fault, Transport};
use nearfield::Device;
use std::fs;

/// The number of the GPU for this rank; `None` unless it is `wanted` here. Collective, also for
/// ranks that want none.
///
/// It is 0 if the rank sees no GPU; building an engine then fails and gives the reason.
///
/// # Errors
/// A fault of any rank.
pub fn in_turn<T: Transport + ?Sized>(
    transport: &mut T,
    wanted: bool,
) -> Result<Option<u32>, Fault> {
    let own = if wanted { view() } else { View::default() };
    let all = transport.gather(own.0.as_bytes())?;
    let views = all.iter().map(|bytes| View::read(bytes));
    Ok(turn(&views.collect::<Vec<_>>(), transport.rank()))
}

/// The machine of a rank and the GPUs that it sees there, one per line; empty if it wants none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct View(String);

impl View {
    fn of(machine: &str, gpus: &[String]) -> Self {
        let lines = gpus.iter().map(|gpu| format!("{gpu}\n"));
        Self(format!("{machine}\n{}", lines.collect::<String>()))
    }

    fn read(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    fn gpus(&self) -> usize {
        self.0.lines().count().saturating_sub(1)
    }
}

/// The view of this process.
fn view() -> View {
    View::of(&machine(), &Device::visible_gpus().unwrap_or_default())
}

/// The name of the machine. It is the kernel's boot id, which all containers of a machine share.
fn machine() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The turn of this rank among those of its machine with [`Device::Auto`]; `auto` says whether this
/// rank has it. Collective.
///
/// # Errors
/// A fault of any rank.
pub(crate) fn turn_of_auto<T: Transport + ?Sized>(
    transport: &mut T,
    auto: bool,
) -> Result<u32, Fault> {
    let own = if auto {
        View::of(&machine(), &[]).0
    } else {
        String::new()
    };
    let all = transport.gather(own.as_bytes())?;
    let before = all[..transport.rank()].iter();
    Ok(before.filter(|other| **other == own.as_bytes()).count() as u32)
}

/// The GPU of a rank among these.
fn turn(views: &[View], rank: usize) -> Option<u32> {
    let own = &views[rank];
    if own.0.is_empty() {
        return None;
    }
    let before = views[..rank].iter().filter(|other| *other == own).count();
    Some((before % own.gpus().max(1)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn turns(views: &[View]) -> Vec<Option<u32>> {
        (0..views.len()).map(|rank| turn(views, rank)).collect()
    }

    #[test]
    fn ranks_of_a_machine_take_its_gpus_in_turn() {
        let two = || View::of("a", &gpus(&["1b", "3d"]));
        let there = || View::of("b", &gpus(&["1b", "3d"]));
        let views = [two(), two(), two(), there(), there(), two()];
        let expected = [0, 1, 0, 0, 1, 1].map(Some);
        assert_eq!(turns(&views), expected);
    }

    #[test]
    fn a_rank_that_sees_one_gpu_takes_it() {
        let views = ["1b", "3d", "5f"].map(|gpu| View::of("a", &gpus(&[gpu])));
        assert_eq!(turns(&views), [Some(0); 3]);
    }

    #[test]
    fn ranks_that_want_none_take_no_turn() {
        let two = || View::of("a", &gpus(&["1b", "3d"]));
        let views = [two(), View::default(), two(), View::default()];
        assert_eq!(turns(&views), [Some(0), None, Some(1), None]);
    }

    #[test]
    fn where_no_gpu_is_seen_the_engine_is_asked_for_the_first() {
        assert_eq!(
            turns(&[View::of("", &[]), View::of("a", &[])]),
            [Some(0); 2]
        );
    }

    #[test]
    fn a_view_arrives_as_it_was_sent() {
        let sent = View::of("a", &gpus(&["0000:1b:00.0", "0000:3d:00.0"]));
        assert_eq!((View::read(sent.0.as_bytes()), sent.gpus()), (sent, 2));
    }
}

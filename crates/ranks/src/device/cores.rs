//! Work that all cores share.
//!
//! It starts threads instead of using a pool: a pool thread that waits takes up other work, perhaps
//! that of another rank, which waits for this one.

use std::{
    num::NonZero,
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

/// More threads would take longer to start than they save.
const MOST: usize = 16;

/// Results of `work` on every item, in the order of the items. Threads that cannot be started leave
/// their share to the others.
pub(super) fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MOST).min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let share = || {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            done.push((at, work(item)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, share).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let mut done = share();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for items in [0, 1, 2, 1000] {
            let found = map((0..items).collect(), |item: u64| {
                // Later items are done first.
                (0..1000 - item).for_each(|_| std::hint::spin_loop());
                3 * item
            });
            assert!(found.into_iter().eq((0..items).map(|item| 3 * item)));
        }
    }
}

//! Bricks, layouts and plans that memory is too short for are errors, wherever it runs out. A
//! process of its own, whose allocator refuses what the test tells it to.

use nearfield_balance::{
    Bricks, CellLoad, Cut, Error, ErrorKind, Layout, Neighbourhood, Plan, Ties, Traffic,
};
use nearfield_testkit::memory::Refusing;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// Requests from here on grow with the input; those of the test's own threads are smaller.
const GROWS: usize = 256;

/// Grants one request more every time until `work` succeeds; before that it must say what it
/// lacked.
fn squeeze<T>(name: &str, work: impl Fn() -> Result<T, Error>) -> T {
    for granted in 0.. {
        match MEMORY.while_short(GROWS, granted, &work) {
            Ok(done) => {
                assert!(granted > 0, "{name} was never short of memory");
                return done;
            }
            Err(error) => match error.kind() {
                ErrorKind::Memory(shortage) => assert!(shortage.bytes > 0, "{name}: {shortage}"),
                _ => panic!("{name} with {granted} requests granted: {error}"),
            },
        }
    }
    unreachable!("ranges without an end have none")
}

/// Cells of two sets, `apart` cells from each other.
fn cells(apart: i64) -> Vec<CellLoad> {
    let set = |targets, sources, shift| {
        (0..1000).map(move |n: i64| CellLoad {
            cell: [n % 10 + shift, n / 10 % 10, n / 100].map(|at| at * apart),
            targets,
            sources,
        })
    };
    set(3, 0, 0)
        .chain(set(0, 5, 4))
        .chain(set(40, 0, 2).take(8))
        .collect()
}

#[test]
fn what_memory_is_too_short_for_is_an_error_with_the_bytes() {
    for apart in [1, 3, 1000] {
        let cells = cells(apart);
        for periods in [None, Some(14 * apart)] {
            let near = Neighbourhood {
                periods: [periods, None, None],
                ..Neighbourhood::cube(2)
            };
            let bricks = squeeze("bricks", || Bricks::new(cells.iter().copied(), &near, 2));
            for ties in [Ties::Even, Ties::Compact, Ties::Octaves] {
                let traffic = Traffic::LISTS;
                // A copy of bricks is the caller's, and made while there is memory.
                let copies = std::cell::RefCell::new(vec![bricks.clone(); 200]);
                let layout = squeeze("a layout", || {
                    let bricks = copies.borrow_mut().pop().expect("one copy per attempt");
                    Layout::with_ties(bricks, 7, traffic, ties)
                });
                let thetas = squeeze("thresholds", || layout.thetas(4));
                for cuts in [
                    layout.cuts(thetas[2]),
                    vec![Cut::Leading(3); layout.subregions().len()],
                ] {
                    let plan = squeeze("a plan", || Plan::new(&layout, &cuts));
                    assert_eq!(plan, Plan::new(&layout, &cuts).unwrap());
                }
            }
        }
    }
}

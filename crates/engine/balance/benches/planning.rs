//! What deciding costs: bricks, layout, plan and the next decision of policy `model`, of uniform
//! clouds as SPH has them (bricks of 2³ cells, 32 subregions). The number in brackets is cells.
//!
//! Run: `cargo bench -p nearfield-balance --bench planning`

use divan::{Bencher, counter::ItemsCount};
use nearfield_balance::{
    Bricks, CellLoad, Controller, Layout, Machine, Neighbourhood, Plan, Policy, SUBREGIONS, Traffic,
};

const EDGES: [i64; 2] = [34, 50];

fn main() {
    divan::main();
}

/// Five to eleven points in each cell of a cube.
fn cells(edge: i64) -> Vec<CellLoad> {
    (0..edge.pow(3))
        .map(|n| {
            let points = 5 + (n * 7919 % 7) as u32;
            CellLoad {
                cell: [n % edge, n / edge % edge, n / edge / edge],
                targets: points,
                sources: points,
            }
        })
        .collect()
}

fn bricks_of(edge: i64) -> Bricks {
    Bricks::new(cells(edge), &Neighbourhood::cube(1), 2).expect("cells within bounds")
}

fn layout_of(edge: i64) -> Layout {
    Layout::new(bricks_of(edge), SUBREGIONS, Traffic::LISTS).expect("subregions")
}

#[divan::bench(args = EDGES)]
fn bricks(bencher: Bencher<'_, '_>, edge: i64) {
    let cells = cells(edge);
    let near = Neighbourhood::cube(1);
    bencher
        .counter(ItemsCount::new(cells.len()))
        .bench(|| Bricks::new(cells.iter().copied(), &near, 2));
}

#[divan::bench(args = EDGES)]
fn bricks_in_a_periodic_box(bencher: Bencher<'_, '_>, edge: i64) {
    let cells = cells(edge);
    let near = Neighbourhood {
        periods: [Some(edge); 3],
        ..Neighbourhood::cube(1)
    };
    bencher
        .counter(ItemsCount::new(cells.len()))
        .bench(|| Bricks::new(cells.iter().copied(), &near, 2));
}

#[divan::bench(args = EDGES)]
fn layout(bencher: Bencher<'_, '_>, edge: i64) {
    let bricks = bricks_of(edge);
    bencher
        .counter(ItemsCount::new(bricks.as_slice().len()))
        .with_inputs(|| bricks.clone())
        .bench_values(|bricks| Layout::new(bricks, SUBREGIONS, Traffic::LISTS));
}

#[divan::bench(args = EDGES)]
fn plan(bencher: Bencher<'_, '_>, edge: i64) {
    let layout = layout_of(edge);
    let cuts = layout.cuts(layout.thetas(4).unwrap()[1]);
    bencher
        .counter(ItemsCount::new(layout.bricks().as_slice().len()))
        .bench(|| Plan::new(&layout, &cuts));
}

#[divan::bench(args = EDGES)]
fn decision(bencher: Bencher<'_, '_>, edge: i64) {
    let layout = layout_of(edge);
    let mut machine = Machine::new(
        "speed=8,bandwidth=25,jitter=0.02"
            .parse()
            .expect("a machine"),
    );
    let mut controller = Controller::new(Policy::Model).expect("a policy");
    let mut cuts = controller.start(&layout).cuts;
    let mut last = None;
    for _ in 0..20 {
        let plan = Plan::new(&layout, &cuts).expect("cuts of this layout");
        let times = machine.step(&layout, &plan);
        let next = controller.next(&layout, &plan, &times);
        cuts = next.expect("times of this plan").cuts;
        last = Some((plan, times));
    }
    let (plan, times) = last.expect("twenty steps");
    bencher.bench_local(|| controller.next(&layout, &plan, &times));
}

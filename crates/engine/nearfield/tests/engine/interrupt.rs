//! A long call ends when its caller asks, and leaves the engine as it was.

use nearfield::{kernels::SphDensity, prelude::*};
use nearfield_testkit::shapes::uniform_box;
use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

/// Points that are all neighbours of each other: to count the pairs takes minutes.
const DENSE: usize = 400_000;

/// The same, whose lists take a second and 1.6 GB; little of that is touched until the check.
const LISTED: usize = 20_000;

#[test]
fn a_long_call_ends_within_moments_and_the_engine_goes_on() {
    let small = |points, seed| uniform_box(points, [[0.0; 3], [0.5; 3]], seed);
    let few = uniform_box(500, [[0.0; 3], [2.0; 3]], 2);
    for threads in [1, 3] {
        let mut engine = Engine::builder(1.0).threads(threads).build().unwrap();
        let [a, b, c] = [&few, &small(DENSE, 1), &small(LISTED, 3)]
            .map(|points| engine.add_point_set(points).unwrap());
        for (t, s) in [
            (a, b),
            (b, a),
            (b, b),
            (a, c),
            (c, a),
            (b, c),
            (c, b),
            (c, c),
        ] {
            engine.set_active(t, s, false).unwrap();
        }
        engine.find_neighbors().unwrap();
        let pairs = engine.neighbors(a, a).unwrap().pairs();
        engine.set_active(c, c, true).unwrap();
        let kernel = SphDensity::with_support(1.0);
        let mass = vec![1.0f32; DENSE];
        type Call<'c> = &'c dyn Fn(&mut Engine) -> Result<(), Error>;
        let calls: [Call<'_>; 3] = [
            &|engine| engine.count_neighbors(b, b).map(drop),
            &|engine| {
                let density = engine.traverse(&kernel, b, b).sources(&mass).run();
                density.map(drop)
            },
            &|engine| engine.find_neighbors(),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            let begin = Instant::now();
            let error = Engine::interruptible(|| true, || call(&mut engine)).unwrap_err();
            assert!(error.is_interrupted(), "{error}");
            let took = begin.elapsed();
            println!("call {number} on {threads} threads: {took:?}");
            assert!(took < Duration::from_secs(20), "{took:?}");
        }
        // The next call is not ended, and finds what the first one found.
        engine.set_active(c, c, false).unwrap();
        engine.find_neighbors().unwrap();
        assert_eq!(engine.neighbors(a, a).unwrap().pairs(), pairs);
    }
}

#[test]
fn a_short_call_is_not_checked() {
    let asked = Rc::new(Cell::new(0));
    let seen = asked.clone();
    let check = move || {
        seen.set(seen.get() + 1);
        true
    };
    let lists = Engine::interruptible(check, || {
        let mut engine = Engine::builder(1.0).build()?;
        let set = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
        engine.find_neighbors()?;
        Ok::<_, Error>(engine.neighbors(set, set)?.pairs())
    });
    assert_eq!((lists.unwrap(), asked.get()), (2, 0));
}

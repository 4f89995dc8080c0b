//! Strided fields give the bits of packed ones, wherever a kernel runs.

use crate::common::scattered::Scattered;
use nearfield::{
    ListKind, Precision,
    balance::Policy,
    kernels::{Field, SphForce, WendlandC2},
    lists::VerletLists,
    prelude::*,
};
use nearfield_testkit::{cloud::Cloud, random::Random};

/// The values of a set that [`SphForce`] reads, packed.
struct Fluid {
    points: Vec<[f32; 3]>,
    velocity: Vec<[f32; 3]>,
    density: Vec<[f32; 1]>,
    pressure: Vec<[f32; 1]>,
    mass: Vec<[f32; 1]>,
}

impl Fluid {
    fn new(random: &mut Random, points: usize) -> Self {
        let positions = Cloud::Clusters.points(points, random.below(1 << 30));
        let mut number = || random.between(0.5, 1.5) as f32;
        let mut column = || (0..points).map(|_| [number()]).collect::<Vec<_>>();
        let (density, pressure, mass) = (column(), column(), column());
        Self {
            points: positions,
            velocity: (0..points)
                .map(|_| [number(), number(), number()])
                .collect(),
            density,
            pressure,
            mass,
        }
    }

    fn packed(&self) -> [Field<'_>; 4] {
        [
            Field::from(&self.velocity),
            Field::from(self.density.as_flattened()),
            Field::from(self.pressure.as_flattened()),
            Field::from(self.mass.as_flattened()),
        ]
    }

    fn scattered(&self, random: &mut Random) -> [Scattered; 4] {
        [
            Scattered::new(random, &self.velocity),
            Scattered::new(random, &self.density),
            Scattered::new(random, &self.pressure),
            Scattered::new(random, &self.mass),
        ]
    }
}

fn kernel() -> SphForce {
    SphForce {
        kernel: WendlandC2::with_support(1.0),
        h: 0.5,
        alpha_c: 0.1,
    }
}

/// The bits of results.
fn bits(sums: &[[f32; 3]]) -> Vec<[u32; 3]> {
    assert!(sums.as_flattened().iter().all(|sum| sum.is_finite()));
    assert!(sums.as_flattened().iter().any(|sum| *sum != 0.0));
    sums.iter().map(|sum| sum.map(f32::to_bits)).collect()
}

/// Asserts that traversals from every layout of the fields of `targets` and `sources` give the same
/// bits.
fn check<'t>(
    what: &str,
    random: &mut Random,
    [targets, sources]: [&Fluid; 2],
    traversal: impl Fn() -> nearfield::Traversal<'t, SphForce>,
) {
    let [from, to] = [targets.packed(), sources.packed()];
    let expected = traversal().targets(&from[..3]).sources(&to).run().unwrap();
    let expected = bits(&expected);
    for round in 0..3 {
        let memory = [targets, sources].map(|fluid| fluid.scattered(random));
        let [strided_from, strided_to] = memory
            .each_ref()
            .map(|set| set.each_ref().map(Scattered::field));
        let mixed = [to[0], strided_to[1], to[2], strided_to[3]];
        for (layout, from, to) in [
            ("strided", strided_from, strided_to),
            ("strided targets", strided_from, to),
            ("strided sources", from, strided_to),
            ("mixed", from, mixed),
        ] {
            let found = traversal().targets(&from[..3]).sources(&to).run().unwrap();
            assert!(
                bits(&found) == expected,
                "{what}, round {round}: {layout} {from:?} {to:?}"
            );
        }
    }
}

/// An engine with two sets and current lists.
fn engine(builder: nearfield::Builder, sets: [&Fluid; 2]) -> (Engine, [PointSetId; 2]) {
    let mut engine = builder.build().unwrap();
    let sets = sets.map(|set| engine.add_point_set(&set.points).unwrap());
    engine.find_neighbors().unwrap();
    (engine, sets)
}

#[test]
fn strided_fields_give_the_bits_of_packed_ones() {
    let mut random = Random::new(5);
    let (fluid, other) = (Fluid::new(&mut random, 3000), Fluid::new(&mut random, 1700));
    let kernel = kernel();
    let builder = || Engine::builder(1.0).threads(2);
    // The order of summation follows from the division, which other policies change between calls.
    let emulated = |theta| {
        let builder = builder().device("emulated".parse().unwrap());
        builder.policy(Policy::Fixed { theta })
    };
    for (what, builder) in [
        ("f32", builder()),
        ("f64", builder().precision(Precision::Double)),
        ("half lists", builder().lists(ListKind::Half)),
        ("the device alone", emulated(0.0)),
        ("both backends", emulated(12.0)),
    ] {
        let (engine, [a, b]) = engine(builder, [&fluid, &other]);
        check(what, &mut random, [&fluid, &fluid], || {
            engine.traverse(&kernel, a, a)
        });
        if what != "half lists" {
            check(what, &mut random, [&fluid, &other], || {
                engine.traverse(&kernel, a, b)
            });
        }
        if what == "both backends" {
            let work = engine.report().jobs.into_iter().filter_map(|job| job.split);
            let shared = work.filter(|work| work.backends.iter().all(|one| one.points > 0));
            assert!(shared.count() > 0, "one backend did everything");
        } else if what != "the device alone" {
            let over_lists = || engine.traverse(&kernel, a, a).over_lists();
            check(
                &format!("lists, {what}"),
                &mut random,
                [&fluid, &fluid],
                over_lists,
            );
        }
    }
}

#[test]
fn strided_fields_give_the_bits_of_packed_ones_over_lists_with_a_skin() {
    let mut random = Random::new(6);
    let fluid = Fluid::new(&mut random, 2000);
    let kernel = kernel();
    let mut lists = VerletLists::new(Engine::builder(1.0), 0.2).unwrap();
    let set = lists.add_point_set(&fluid.points).unwrap();
    lists.refresh().unwrap();
    check("skin", &mut random, [&fluid, &fluid], || {
        lists.traverse(&kernel, set, set)
    });
}

#[test]
fn fields_given_again_replace_those_before() {
    let fluid = Fluid::new(&mut Random::new(5), 60);
    for device in ["cpu", "emulated"] {
        let builder = Engine::builder(1.0).device(device.parse().unwrap());
        let builder = builder.policy(Policy::Fixed { theta: 12.0 });
        let (engine, [points, _]) = engine(builder, [&fluid, &fluid]);
        let force = kernel();
        let [velocity, density, pressure, mass] = fluid.packed();
        let traversal = || engine.traverse(&force, points, points);
        let (of_target, of_source) = (
            (velocity, density, pressure),
            (velocity, density, pressure, mass),
        );
        let once = traversal().targets(of_target).sources(of_source);
        // Those before would be refused: they have one element.
        let few = Field::from(&[1.0f32]);
        let again = traversal()
            .targets([few].as_slice())
            .sources([few, few].as_slice())
            .targets(of_target)
            .sources(of_source);
        assert_eq!(bits(&once.run().unwrap()), bits(&again.run().unwrap()));
    }
}

#[test]
fn values_inside_structs_are_read_where_they_are() {
    #[repr(C)]
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    struct Particle {
        id: u64,
        position: [f32; 3],
        velocity: [f32; 3],
        mass: f32,
        density: f32,
        pressure: f32,
        kind: u32,
    }
    let mut random = Random::new(7);
    let fluid = Fluid::new(&mut random, 500);
    let particles: Vec<Particle> = (0..500)
        .map(|i| Particle {
            id: u64::MAX,
            position: fluid.points[i],
            velocity: fluid.velocity[i],
            mass: fluid.mass[i][0],
            density: fluid.density[i][0],
            pressure: fluid.pressure[i][0],
            kind: u32::MAX,
        })
        .collect();
    let (bytes, stride) = (bytemuck::cast_slice(&particles), size_of::<Particle>());
    let column = |offset, channels| Field::strided(bytes, offset, stride, 500, channels).unwrap();
    let position = std::mem::offset_of!(Particle, position);
    let positions = Positions::strided(bytes, position, stride, 500).unwrap();
    let velocity = column(std::mem::offset_of!(Particle, velocity), 3);
    let mass = column(std::mem::offset_of!(Particle, mass), 1);
    let density = column(std::mem::offset_of!(Particle, density), 1);
    let pressure = column(std::mem::offset_of!(Particle, pressure), 1);

    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(positions).unwrap();
    let kernel = kernel();
    let found = engine
        .traverse(&kernel, set, set)
        .targets((velocity, density, pressure))
        .sources((&fluid.velocity, density, pressure, mass))
        .run()
        .unwrap();
    let packed = fluid.packed();
    let expected = engine
        .traverse(&kernel, set, set)
        .targets(&packed[..3])
        .sources(&packed);
    assert_eq!(bits(&found), bits(&expected.run().unwrap()));

    let short = Field::strided(bytes, 0, stride, 499, 1).unwrap();
    let fields = (&fluid.velocity, density, short, mass);
    for device in ["cpu", "emulated"] {
        let builder = Engine::builder(1.0).device(device.parse().unwrap());
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(positions).unwrap();
        let traversal = engine
            .traverse(&kernel, set, set)
            .targets((velocity, density, pressure));
        let error = traversal.sources(fields).run().unwrap_err().to_string();
        let expected = "source field 2 holds 499 points, but the point set has 500";
        assert!(error.contains(expected), "{device}: {error}");
    }
}

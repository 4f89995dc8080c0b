//! Scenes that memory is too short for are errors. A process of its own, whose allocator refuses
//! what the test tells it to.

use nearfield::prelude::Device;
use nearfield_sph::{
    Config, Dimensions, Error, Simulation, SimulationBuilder,
    scene::{self, Top},
};
use nearfield_testkit::memory::Refusing;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// Requests from here on grow with the number of particles.
const GROWS: usize = 16_384;

fn assert_short(error: &Error) {
    let text = error.to_string();
    assert!(text.contains("out of memory"), "{text}");
    assert!(text.contains("bytes are needed for"), "{text}");
}

#[test]
fn scenes_that_memory_is_too_short_for_are_errors() {
    let space = Dimensions::Three;
    let block = || scene::block(space, [0; 3], [12; 3], 0.1);
    let tank = || scene::tank(space, [12, 12, 20], Top::Open, 3, 0.1);
    for scene in [&block as &dyn Fn() -> Result<_, Error>, &tank] {
        assert_short(&MEMORY.while_short(GROWS, 0, scene).unwrap_err());
        assert!(scene().unwrap().len() * 12 >= GROWS);
    }

    let (fluid, walls) = (block().unwrap(), tank().unwrap());
    let builder = || {
        Simulation::builder(Config::water(space, 0.1, 1.0))
            .device(Device::Cpu)
            .threads(1)
    };
    let moving = vec![space.up(); fluid.len()];
    type Adds<'a> = &'a dyn Fn(SimulationBuilder) -> SimulationBuilder;
    let adds: [(&str, Adds<'_>); 4] = [
        ("positions of particles", &|builder| builder.fluid(&fluid)),
        ("velocities of particles", &|builder| {
            builder.velocities(&moving)
        }),
        ("wall particles", &|builder| builder.walls(&walls)),
        ("wall particles", &|builder| builder.rough_walls(&walls)),
    ];
    for (what, add) in adds {
        // Later requests do not hide it.
        let builder = MEMORY.while_short(GROWS, 0, || add(builder()));
        let error = builder.fluid(&fluid).walls(&walls).build().err().unwrap();
        assert_short(&error);
        assert!(error.to_string().contains(what), "{error}");
    }
    let whole = builder().fluid(&fluid).velocities(&moving).walls(&walls);
    assert_eq!(whole.build().unwrap().positions().len(), fluid.len());
}

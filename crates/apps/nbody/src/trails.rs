//! Where some bodies of a run have been, for its picture.
//!
//! **Invariant others rely on:** what is kept depends only on the steps of the run, so a run that
//! went on from a checkpoint has the trails of an unbroken one.

use crate::{Bodies, Error, Simulation};
use nearfield::all_pairs::Real;
use nearfield_grid::memory::make_room;

/// Bodies up to which all have a trail, and how many have one where there are more.
const ALL: usize = 64;
const SOME: usize = 12;
/// Maximum number of places in a trail; then every other is dropped, and half as many are noted.
const PLACES: usize = 1024;

/// The trails of some bodies, seen along z.
#[derive(Debug, Clone, PartialEq)]
pub struct Trails {
    /// Steps between two places.
    pub every: u64,
    /// x and y of every body with a trail, one after the other, and then at the next place.
    pub places: Vec<[f64; 2]>,
}

impl Default for Trails {
    fn default() -> Self {
        Self {
            every: 1,
            places: Vec::new(),
        }
    }
}

impl Trails {
    /// The bodies, of so many, that have a trail.
    pub fn bodies(count: usize) -> impl ExactSizeIterator<Item = usize> {
        let shown = if count <= ALL { count } else { SOME };
        (0..shown).map(move |n| n * count / shown.max(1))
    }

    /// The step after which the next place is to be [noted](Self::note).
    pub fn next(&self, step: u64) -> u64 {
        (step / self.every + 1).saturating_mul(self.every)
    }

    /// Notes where the bodies are now, if it is time to.
    ///
    /// # Errors
    /// [`ErrorKind::Engine`](crate::ErrorKind::Engine) when memory is short.
    pub fn note<T: Real>(&mut self, simulation: &Simulation<T>) -> Result<(), Error> {
        if simulation.steps().is_multiple_of(self.every) {
            self.add(simulation.bodies())?;
        }
        Ok(())
    }

    fn add<T: Real>(&mut self, bodies: &Bodies<T>) -> Result<(), Error> {
        let chosen = Self::bodies(bodies.len());
        let width = chosen.len();
        make_room(&mut self.places, PLACES * width, "the trails of bodies")?;
        let place = |body: usize| [0, 1].map(|axis| bodies.positions[body][axis].double());
        self.places.extend(chosen.map(place));
        if self.places.len() >= PLACES * width.max(1) {
            let rows = self.places.len() / width;
            for row in (0..rows).step_by(2) {
                (self.places).copy_within(row * width..(row + 1) * width, row / 2 * width);
            }
            self.places.truncate(rows.div_ceil(2) * width);
            self.every = self.every.saturating_mul(2);
        }
        Ok(())
    }

    /// The trail of each body that has one among so many.
    pub(crate) fn each(&self, bodies: usize) -> impl Iterator<Item = Vec<(f64, f64)>> {
        let width = Self::bodies(bodies).len();
        (0..width).map(move |body| {
            let places = self.places.iter().skip(body).step_by(width);
            places.map(|&[x, y]| (x, y)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(count: usize, at: f64) -> Bodies<f64> {
        Bodies {
            masses: vec![1.0; count],
            positions: (0..count).map(|n| [n as f64, at, 0.0]).collect(),
            velocities: vec![[0.0; 3]; count],
        }
    }

    #[test]
    fn long_trails_keep_evenly_spaced_places_from_the_first_on() {
        let mut trails = Trails::default();
        let mut step = 0;
        while step < 5000 {
            if step % trails.every == 0 {
                trails.add(&bodies(2, step as f64)).expect("little memory");
            }
            step = trails.next(step);
        }
        let each: Vec<_> = trails.each(2).collect();
        assert_eq!((each.len(), trails.every), (2, 8));
        for (body, trail) in each.iter().enumerate() {
            let expected = (0..5000).step_by(8).map(|step| (body as f64, step as f64));
            assert_eq!(*trail, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn of_many_bodies_some_have_trails_and_no_bodies_have_none() {
        let mut trails = Trails::default();
        trails.add(&bodies(1000, 0.5)).expect("little memory");
        let first: Vec<_> = trails.each(1000).map(|trail| trail[0].0).collect();
        assert_eq!((first.len(), first[0], first[11]), (12, 0.0, 916.0));
        let mut trails = Trails::default();
        trails.add(&bodies(0, 0.0)).expect("no memory");
        assert_eq!(trails.each(0).count(), 0);
    }
}

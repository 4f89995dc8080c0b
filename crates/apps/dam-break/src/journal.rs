//! The journal of a run: frequent records of the front and the energies.

use std::fmt::Write as _;

use nearfield_sph::{Energy, FrontRule, Simulation};

use crate::reference::Point;
use crate::scene::Scene;
use crate::units::Units;
use crate::{Error, ErrorKind};

/// Notes per run.
const NOTES: f64 = 240.0;

/// Numbers of a note in a file.
pub(crate) const NUMBERS: usize = 9;

/// One note.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Note {
    /// Seconds.
    time: f64,
    /// Position of the front, metres; `None` where the scene has no rule for one.
    front: Option<f64>,
    energy: Energy,
}

/// The notes of a run, taken at even intervals.
#[derive(Debug)]
pub(crate) struct Journal {
    units: Units,
    rule: Option<FrontRule>,
    interval: f64,
    notes: Vec<Note>,
}

impl Journal {
    /// A journal of a run of `scene` that ends after `seconds`.
    pub(crate) fn new(scene: &Scene, seconds: f64) -> Self {
        Self {
            units: Units::of(scene),
            rule: scene.front,
            interval: seconds / NOTES,
            notes: Vec::new(),
        }
    }

    /// Takes a note when it is time for the next.
    pub(crate) fn follow(&mut self, simulation: &Simulation) -> Result<(), Error> {
        let due = self
            .notes
            .last()
            .map_or(0.0, |note| note.time + self.interval);
        // Steps add up with rounding: a hair early is on time.
        if simulation.time() < due - 1e-9 * self.interval {
            return Ok(());
        }
        let _span = tracing::debug_span!("dam_break.note").entered();
        let front = match &self.rule {
            Some(rule) => simulation.front(rule)?,
            None => None,
        };
        self.notes.push(Note {
            time: simulation.time(),
            front: front.map(f64::from),
            energy: simulation.energy()?,
        });
        Ok(())
    }

    /// All notes as numbers, [`NUMBERS`] each, for a file.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let numbers = |note: &Note| -> [f64; NUMBERS] {
            let Note {
                time,
                front,
                energy,
            } = *note;
            [
                time,
                front.unwrap_or(f64::NAN),
                energy.kinetic,
                energy.potential,
                energy.internal,
                energy.viscous_loss,
                energy.diffusion_loss,
                energy.friction_loss,
                energy.wall_work,
            ]
        };
        self.notes.iter().flat_map(numbers).collect()
    }

    /// Takes the notes of such numbers.
    pub(crate) fn restore(&mut self, numbers: &[f64]) {
        let note = |numbers: &[f64; NUMBERS]| {
            let [
                time,
                front,
                kinetic,
                potential,
                internal,
                viscous_loss,
                diffusion_loss,
                friction_loss,
                wall_work,
            ] = *numbers;
            Note {
                time,
                front: (!front.is_nan()).then_some(front),
                energy: Energy {
                    kinetic,
                    potential,
                    internal,
                    viscous_loss,
                    diffusion_loss,
                    friction_loss,
                    wall_work,
                },
            }
        };
        self.notes = numbers.as_chunks().0.iter().map(note).collect();
    }

    /// The front in the experiments' units, (T, Z), by growing T.
    pub(crate) fn front(&self) -> Vec<Point> {
        let point = |note: &Note| {
            let z = self.units.scaled_length(note.front?);
            Some((self.units.scaled_time(note.time), z))
        };
        self.notes.iter().filter_map(point).collect()
    }

    /// A curve of the energies: seconds and values.
    pub(crate) fn energy(&self, value: fn(&Energy) -> f64) -> impl Iterator<Item = Point> {
        let notes = self.notes.iter();
        notes.map(move |note| (note.time, value(&note.energy)))
    }

    /// The energies at the first and the last note.
    pub(crate) fn energies(&self) -> Option<(Energy, Energy)> {
        Some((self.notes.first()?.energy, self.notes.last()?.energy))
    }

    /// Refuses to go on when the energy, losses included, is not a number or has changed by more
    /// than there was at the start.
    pub(crate) fn refuse_blow_up(&self, step: u64) -> Result<(), Error> {
        let Some((first, last)) = self.energies() else {
            return Ok(());
        };
        let change = (last.total() - first.total()).abs();
        if change <= first.mechanical().abs() {
            return Ok(());
        }
        let blown_up = ErrorKind::BlownUp {
            step,
            time: self.notes.last().map_or(0.0, |note| note.time),
            energy: last.total(),
            first: first.total(),
        };
        Err(blown_up.into())
    }

    /// The front as a table.
    pub(crate) fn front_csv(&self) -> String {
        let mut table = String::from("time_s,front_m,T,Z\n");
        for note in &self.notes {
            let Some(front) = note.front else { continue };
            let (t, z) = (
                self.units.scaled_time(note.time),
                self.units.scaled_length(front),
            );
            let _ = writeln!(table, "{:.6},{front:.6},{t:.6},{z:.6}", note.time);
        }
        table
    }

    /// The energies as a table, joules (in the plane: per metre of depth).
    pub(crate) fn energy_csv(&self) -> String {
        let mut table = String::from(
            "time_s,T,kinetic_j,potential_j,internal_j,viscous_loss_j,friction_loss_j,\
             diffusion_loss_j,wall_work_j,total_j\n",
        );
        for Note { time, energy, .. } in &self.notes {
            let columns = [
                energy.kinetic,
                energy.potential,
                energy.internal,
                energy.viscous_loss,
                energy.friction_loss,
                energy.diffusion_loss,
                energy.wall_work,
                energy.total(),
            ]
            .map(|joules| format!("{joules:.6}"));
            let t = self.units.scaled_time(*time);
            let _ = writeln!(table, "{time:.6},{t:.6},{}", columns.join(","));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use nearfield_sph::Dimensions;

    use super::*;

    /// The column of 128 particles.
    fn column() -> (Scene, Simulation) {
        let scene = Scene::column(Dimensions::Two);
        let simulation = scene.builder(scene.spacing_for(128)).unwrap().build();
        (scene, simulation.unwrap())
    }

    #[test]
    fn notes_are_taken_at_even_intervals_from_the_start() {
        let (scene, mut simulation) = column();
        let mut journal = Journal::new(&scene, 0.02 * NOTES);
        journal.follow(&simulation).unwrap();
        while simulation.time() < 0.05 {
            simulation.step().unwrap();
            journal.follow(&simulation).unwrap();
        }
        assert_eq!(journal.notes.len(), 3);
        assert_eq!(journal.notes[0].time, 0.0);
        assert!(
            journal
                .notes
                .windows(2)
                .all(|w| w[1].time - w[0].time >= 0.02 - 1e-9)
        );
        assert_eq!(journal.front_csv().lines().count(), 4);
        let energies = journal.energy_csv();
        assert!(
            energies.lines().all(|line| line.split(',').count() == 10),
            "{energies}"
        );
    }

    #[test]
    fn energies_that_have_left_all_bounds_end_a_run() {
        let (scene, simulation) = column();
        let mut journal = Journal::new(&scene, 1.0);
        journal.refuse_blow_up(0).unwrap();
        journal.follow(&simulation).unwrap();
        journal.refuse_blow_up(0).unwrap();
        let first = journal.notes[0];
        for (kinetic, good) in [(0.5, true), (1.5, false), (f64::NAN, false)] {
            let mut note = first;
            note.energy.kinetic += kinetic * first.energy.mechanical();
            journal.notes.truncate(1);
            journal.notes.push(note);
            let found = journal.refuse_blow_up(7);
            assert_eq!(found.is_ok(), good, "{kinetic}");
            if let Err(error) = found {
                assert!(error.to_string().starts_with("at step 7 "), "{error}");
            }
        }
    }

    #[test]
    fn the_front_is_given_in_the_units_of_the_experiments() {
        let (scene, simulation) = column();
        let mut journal = Journal::new(&scene, 1.0);
        journal.follow(&simulation).unwrap();
        let (t, z) = journal.front()[0];
        assert_eq!(t, 0.0);
        assert!((0.9..1.0).contains(&z), "{z}");
    }
}

//! Atoms and the box they are in.

use crate::{Cell, Error, ErrorKind};
use nearfield_grid::memory::{copied, filled, make_room, with_room};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// Atoms and their box. All arrays have one entry per atom, in the same order.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    pub(crate) cell: Cell,
    /// As they move on, never brought back into the box.
    pub(crate) positions: Vec<[f64; 3]>,
    pub(crate) velocities: Vec<[f64; 3]>,
    /// Kind of every atom.
    pub(crate) types: Vec<u32>,
    /// Empty where there are none.
    pub(crate) charges: Vec<f32>,
    /// Mass of every kind.
    pub(crate) masses: Vec<f64>,
    /// Number of every atom in the input, whose order may have been left.
    pub(crate) ids: Vec<u32>,
}

impl System {
    /// Atoms of one kind, without charges, of mass 1 and at rest.
    ///
    /// # Errors
    /// [`ErrorKind::NotFinite`] naming the atom.
    pub fn new(positions: Vec<[f64; 3]>, cell: Cell) -> Result<Self, Error> {
        let atoms = positions.len();
        finite("the position", &positions)?;
        let mut ids = with_room(atoms, "numbers of atoms")?;
        ids.extend(0..atoms as u32);
        Ok(Self {
            cell,
            positions,
            velocities: filled(atoms, [0.0; 3], "velocities")?,
            types: filled(atoms, 0, "types")?,
            charges: Vec::new(),
            masses: vec![1.0],
            ids,
        })
    }

    /// The same with these velocities.
    ///
    /// # Errors
    /// [`ErrorKind::Count`] and [`ErrorKind::NotFinite`].
    pub fn with_velocities(mut self, velocities: Vec<[f64; 3]>) -> Result<Self, Error> {
        self.fits("velocities", velocities.len())?;
        finite("the velocity", &velocities)?;
        self.velocities = velocities;
        Ok(self)
    }

    /// The same with atoms of several kinds: the kind of every atom, and the mass of every kind.
    ///
    /// # Errors
    /// [`ErrorKind::Count`], [`ErrorKind::Type`], and [`ErrorKind::Setting`] for a mass that is not
    /// positive.
    pub fn with_types(mut self, types: Vec<u32>, masses: Vec<f64>) -> Result<Self, Error> {
        self.fits("types", types.len())?;
        if let Some(&mass) = masses
            .iter()
            .find(|mass| !(mass.is_finite() && **mass > 0.0))
        {
            return Err(ErrorKind::Setting {
                name: "a mass",
                value: mass,
                wanted: "a positive number",
            }
            .into());
        }
        check_types(&types, masses.len())?;
        (self.types, self.masses) = (types, masses);
        Ok(self)
    }

    /// The same with a charge for every atom.
    ///
    /// # Errors
    /// [`ErrorKind::Count`] and [`ErrorKind::NotFinite`].
    pub fn with_charges(mut self, charges: Vec<f32>) -> Result<Self, Error> {
        self.fits("charges", charges.len())?;
        if let Some(atom) = charges.iter().position(|charge| !charge.is_finite()) {
            return Err(ErrorKind::NotFinite {
                what: "the charge",
                atom,
                value: vec![f64::from(charges[atom])],
            }
            .into());
        }
        self.charges = charges;
        Ok(self)
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns true if there are no atoms.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The box.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Positions as they moved on from the start, not brought back into the box.
    pub fn positions(&self) -> &[[f64; 3]] {
        &self.positions
    }

    /// Velocities.
    pub fn velocities(&self) -> &[[f64; 3]] {
        &self.velocities
    }

    /// Kinds of the atoms.
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// Charges; empty without charges.
    pub fn charges(&self) -> &[f32] {
        &self.charges
    }

    /// Number of every atom in the input: a run may bring atoms into another order.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Number of atoms of every kind.
    pub fn type_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.masses.len()];
        for &kind in &self.types {
            counts[kind as usize] += 1;
        }
        counts
    }

    /// Mass of an atom.
    #[inline(always)]
    pub(crate) fn mass(&self, atom: usize) -> f64 {
        self.masses[self.types[atom] as usize]
    }

    /// Gives the atoms velocities by Maxwell and Boltzmann that belong to `seed`, without a
    /// momentum of the whole, scaled so that the temperature, with k = 1, is exactly this.
    pub fn heat(&mut self, temperature: f64, seed: u64) {
        let mut random = Normal(Xoshiro256PlusPlus::seed_from_u64(seed));
        for atom in 0..self.len() {
            let width = (1.0 / self.mass(atom)).sqrt();
            self.velocities[atom] = [(); 3].map(|()| width * random.next());
        }
        self.stop();
        let found = self.temperature();
        if found > 0.0 {
            let scale = (temperature / found).sqrt();
            for velocity in self.velocities.as_flattened_mut() {
                *velocity *= scale;
            }
        }
    }

    /// Takes the momentum of the whole away.
    fn stop(&mut self) {
        let momentum = self.momentum();
        let mass: f64 = (0..self.len()).map(|atom| self.mass(atom)).sum();
        for velocity in &mut self.velocities {
            for (v, p) in velocity.iter_mut().zip(momentum) {
                *v -= p / mass;
            }
        }
    }

    /// Σ m·v.
    pub fn momentum(&self) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for (atom, velocity) in self.velocities.iter().enumerate() {
            for (p, v) in sum.iter_mut().zip(velocity) {
                *p += self.mass(atom) * v;
            }
        }
        sum
    }

    /// Σ m·v²/2.
    pub fn kinetic(&self) -> f64 {
        let energy =
            |(atom, v): (usize, &[f64; 3])| 0.5 * self.mass(atom) * crate::cell::dot(*v, *v);
        let sum: f64 = self.velocities.iter().enumerate().map(energy).sum();
        // An empty sum is -0.
        0.0 + sum
    }

    /// 2K/(3N − 3), with k = 1: the momentum of the whole takes three degrees of freedom away.
    pub fn temperature(&self) -> f64 {
        let freedom = 3 * self.len().saturating_sub(1);
        2.0 * self.kinetic() / freedom.max(1) as f64
    }

    /// The atom or image nearest to an atom, by its number in the input, and the distance. Looks at
    /// all atoms: for messages.
    pub(crate) fn nearest(&self, atom: usize) -> Option<(u32, f64)> {
        let at = self.positions[atom];
        let others = self.positions.iter().zip(&self.ids).enumerate();
        let found = others.filter_map(|(other, (position, &id))| {
            let apart = [0, 1, 2].map(|axis| position[axis] - at[axis]);
            let distance = self.cell.shortest(apart, other == atom)?;
            Some((id, distance))
        });
        found.min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    fn fits(&self, what: &'static str, found: usize) -> Result<(), Error> {
        let atoms = self.len();
        if found == atoms {
            return Ok(());
        }
        Err(ErrorKind::Count { what, found, atoms }.into())
    }

    /// A copy, for which memory may be refused.
    pub(crate) fn copied(&self) -> Result<Self, Error> {
        const WHAT: &str = "a copy of atoms";
        Ok(Self {
            cell: self.cell,
            positions: copied(&self.positions, WHAT)?,
            velocities: copied(&self.velocities, WHAT)?,
            types: copied(&self.types, WHAT)?,
            charges: copied(&self.charges, WHAT)?,
            masses: copied(&self.masses, WHAT)?,
            ids: copied(&self.ids, WHAT)?,
        })
    }

    /// Reorders the atoms: place k gets the atom at `order[k]`. After an error everything is in the
    /// order that it had.
    pub(crate) fn reorder(&mut self, order: &[u32]) -> Result<(), Error> {
        fn taken<T: Copy>(values: &[T], order: &[u32]) -> Result<Vec<T>, Error> {
            let mut taken = Vec::new();
            if !values.is_empty() {
                make_room(&mut taken, order.len(), "atoms in another order")?;
                taken.extend(order.iter().map(|&k| values[k as usize]));
            }
            Ok(taken)
        }
        let positions = taken(&self.positions, order)?;
        let velocities = taken(&self.velocities, order)?;
        let types = taken(&self.types, order)?;
        let charges = taken(&self.charges, order)?;
        self.ids = taken(&self.ids, order)?;
        (self.positions, self.velocities) = (positions, velocities);
        (self.types, self.charges) = (types, charges);
        Ok(())
    }
}

/// Refuses atoms of kinds that are not there.
pub(crate) fn check_types(of_atoms: &[u32], types: usize) -> Result<(), Error> {
    match of_atoms.iter().position(|&kind| kind as usize >= types) {
        None => Ok(()),
        Some(atom) => Err(ErrorKind::Type {
            atom,
            found: of_atoms[atom] as usize,
            types,
        }
        .into()),
    }
}

fn finite(what: &'static str, values: &[[f64; 3]]) -> Result<(), Error> {
    match values
        .iter()
        .position(|value| value.iter().any(|x| !x.is_finite()))
    {
        None => Ok(()),
        Some(atom) => Err(ErrorKind::NotFinite {
            what,
            atom,
            value: values[atom].to_vec(),
        }
        .into()),
    }
}

/// The error for an atom that a step has moved beyond single precision; the engine would ask to
/// repair its position, but the remedy is a shorter step.
pub(crate) fn lost(
    positions: &[[f64; 3]],
    ids: &[u32],
    step: u64,
    time_step: f64,
) -> Option<Error> {
    let inside = |&x: &f64| (x as f32).is_finite();
    let atom = positions.iter().position(|at| !at.iter().all(inside))?;
    let (atom, position) = (ids[atom], positions[atom]);
    Some(
        ErrorKind::Lost {
            step,
            atom,
            position,
            time_step,
        }
        .into(),
    )
}

/// Normal numbers by the polar method (Marsaglia & Bray 1964, DOI 10.1137/1006063).
struct Normal(Xoshiro256PlusPlus);

impl Normal {
    fn next(&mut self) -> f64 {
        loop {
            let [a, b] = [self.unit(), self.unit()].map(|x| 2.0 * x - 1.0);
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                // The same on every machine, unlike the system's.
                return a * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heated_atoms_have_the_temperature_and_no_momentum() {
        let positions = (0..500).map(|k| [f64::from(k), 0.0, 0.0]).collect();
        let system = System::new(positions, Cell::OPEN).unwrap();
        let types = (0..500).map(|k| k % 2).collect();
        let mut system = system.with_types(types, vec![1.0, 40.0]).unwrap();
        system.heat(1.4, 3);
        assert!((system.temperature() - 1.4).abs() < 1e-12);
        assert!(system.momentum().iter().all(|p| p.abs() < 1e-9));
        // Every kind has its share of the energy.
        let of = |kind: u32| -> f64 {
            let atoms = (0..500).filter(|&atom| system.types[atom] == kind);
            atoms
                .map(|a| {
                    0.5 * system.mass(a)
                        * crate::cell::dot(system.velocities[a], system.velocities[a])
                })
                .sum()
        };
        assert!((of(0) / of(1) - 1.0).abs() < 0.2, "{} {}", of(0), of(1));
        let again = {
            let mut again = system.clone();
            again.heat(1.4, 3);
            again
        };
        assert_eq!(system, again);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let atoms = || System::new(vec![[0.0; 3]; 2], Cell::OPEN).unwrap();
        let text = |error: Error| error.to_string();
        assert!(
            text(System::new(vec![[0.0, f64::NAN, 0.0]], Cell::OPEN).unwrap_err())
                .contains("position of atom 0")
        );
        assert!(
            text(atoms().with_velocities(vec![[0.0; 3]]).unwrap_err())
                .contains("1 velocities for 2 atoms")
        );
        assert!(
            text(atoms().with_types(vec![0, 2], vec![1.0, 1.0]).unwrap_err())
                .contains("atom 1 is of type 2")
        );
        assert!(text(atoms().with_types(vec![0, 0], vec![-1.0]).unwrap_err()).contains("-1"));
        assert!(
            text(atoms().with_charges(vec![0.0, f32::INFINITY]).unwrap_err())
                .contains("charge of atom 1")
        );
    }
}

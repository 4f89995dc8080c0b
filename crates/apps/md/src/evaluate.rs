//! Energies and forces of a system, by the engine.

use crate::{
    Error, ErrorKind, ForceField, Options, System,
    double::{AtomSum, Terms},
};
use nearfield::{
    Builder, Engine, ListKind, PairKernel, PointSetId, Positions, Precision,
    kernels::{Field, Interactions, Sum},
    lists::{Refresh, VerletLists},
};
use nearfield_grid::memory::{copied, make_room};

/// Sums over the pairs of a system.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evaluation {
    /// Energy of all pairs, each counted once.
    pub energy: f64,
    /// Virial of all pairs, −Σ r·dU/dr.
    pub virial: f64,
}

/// Half the energy and half the virial of an atom's pairs, and the force on it.
type OfAtom = (f32, f32, [f32; 3]);

/// Finds pairs and evaluates a force field over them.
///
/// With a skin, lists are kept from call to call until atoms have moved too far; without one, every
/// call finds the pairs again and stores none.
#[derive(Debug)]
pub struct Evaluator {
    search: Search,
    set: PointSetId,
    precision: Precision,
    builds: u64,
    room: Room,
}

/// Arrays that are kept from call to call.
#[derive(Debug, Default)]
struct Room {
    single: Vec<[f32; 3]>,
    double: Vec<[f64; 3]>,
    types: Vec<f32>,
    results: Vec<OfAtom>,
    /// Instead of results in double precision.
    sums: Vec<AtomSum>,
}

/// Where pairs come from; boxed, because engines are large.
#[derive(Debug)]
enum Search {
    EveryTime(Box<Engine>),
    Lists(Box<VerletLists>),
}

impl Evaluator {
    /// An evaluator for systems like this one, in its box.
    ///
    /// # Errors
    /// Errors of the engine about the cut-off, the box, the device and the positions, and
    /// [`ErrorKind::Type`] and [`ErrorKind::Count`] for a system that the force field does not fit.
    pub fn new(system: &System, field: &ForceField, options: &Options) -> Result<Self, Error> {
        field.check(system)?;
        let builder = options.builder(system.cell(), field.cutoff());
        let mut room = Room::default();
        let positions = room.positions(system, options.precision)?;
        let (search, set) = Search::new(builder, options.skin, positions)?;
        Ok(Self {
            search,
            set,
            precision: options.precision,
            builds: 0,
            room,
        })
    }

    /// Evaluates the pairs of a system, which must be the one that the evaluator was made for,
    /// atoms having moved.
    ///
    /// # Errors
    /// Errors of the engine about the positions, and [`ErrorKind::Overlap`] naming the first atom
    /// whose force is not finite.
    pub fn evaluate(&mut self, system: &System, field: &ForceField) -> Result<Evaluation, Error> {
        self.update(system)?;
        if self.precision == Precision::Double {
            return self.evaluate_double(system, field);
        }
        let Self { search, set, .. } = self;
        let Room { types, results, .. } = &mut self.room;
        make_room(results, system.len(), "forces of atoms")?;
        results.resize(system.len(), OfAtom::default());
        types.clear();
        make_room(types, system.len(), "types of atoms")?;
        let table = &field.lennard_jones;
        if let (None, Some(plain)) = (field.coulomb, table.plain()) {
            search.run(*set, &Interactions(plain), &[], results)?;
            return total(doubles(results), system);
        }
        types.extend(system.types.iter().map(|&kind| kind as f32));
        let kinds = Field::from(&*types);
        match field.coulomb {
            None => search.run(*set, &Interactions(table), &[kinds], results)?,
            Some(charges) => {
                let kernel = Interactions(Sum(table, charges));
                let fields = [kinds, Field::from(&system.charges)];
                search.run(*set, &kernel, &fields, results)?;
            }
        }
        total(doubles(results), system)
    }

    /// As [`evaluate`](Self::evaluate), summed in double precision on the host.
    fn evaluate_double(
        &mut self,
        system: &System,
        field: &ForceField,
    ) -> Result<Evaluation, Error> {
        let Room { double, sums, .. } = &mut self.room;
        make_room(sums, system.len(), "sums of atoms")?;
        sums.resize(system.len(), AtomSum::default());
        let terms = Terms {
            positions: double,
            system,
            field,
        };
        match &self.search {
            Search::EveryTime(engine) => terms.over_engine(engine, self.set, sums)?,
            Search::Lists(lists) => terms.over_lists(lists, self.set, sums)?,
        }
        let of_atoms = sums.iter().map(|of| (of.energy, of.virial, of.force));
        total(of_atoms, system)
    }

    /// The forces of the last evaluation.
    pub fn forces(&self) -> impl Iterator<Item = [f64; 3]> + '_ {
        let Room { results, sums, .. } = &self.room;
        let single = results.iter().map(|(_, _, force)| force.map(f64::from));
        // One of both is empty.
        single.chain(sums.iter().map(|of| of.force))
    }

    /// Number of pairs within the cut-off, each counted once; of atoms as they were last evaluated,
    /// or as they were given if they have not been yet.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn pairs(&mut self) -> Result<u64, Error> {
        match &mut self.search {
            Search::EveryTime(engine) => {
                let counts = engine.count_neighbors(self.set, self.set)?;
                Ok(counts.into_iter().map(u64::from).sum::<u64>() / 2)
            }
            Search::Lists(lists) => {
                self.builds += u64::from(lists.refresh()? == Refresh::Rebuilt);
                let mut pairs = 0;
                lists.for_each_pair(self.set, self.set, |_, _, _| pairs += 1)?;
                Ok(pairs)
            }
        }
    }

    /// Number of searches for pairs.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// The device that the evaluation ran on.
    pub fn device(&self) -> String {
        // Sums in double precision are the host's.
        if self.precision == Precision::Double {
            return nearfield::Device::Cpu.to_string();
        }
        match &self.search {
            Search::EveryTime(engine) => engine.report().device.to_string(),
            Search::Lists(lists) => lists.report().device.to_string(),
        }
    }

    /// The order of the atoms that makes memory local, by their positions at the last search.
    pub(crate) fn order(&self) -> Result<Vec<u32>, Error> {
        let permutation = match &self.search {
            Search::EveryTime(engine) => engine.z_sort(self.set)?,
            Search::Lists(lists) => lists.z_sort(self.set)?,
        };
        Ok(copied(permutation.order(), "an order of atoms")?)
    }

    fn update(&mut self, system: &System) -> Result<(), Error> {
        let positions = self.room.positions(system, self.precision)?;
        match &mut self.search {
            Search::EveryTime(engine) => {
                engine.update(self.set, positions)?;
                self.builds += 1;
            }
            Search::Lists(lists) => {
                lists.update(self.set, positions)?;
                self.builds += u64::from(lists.refresh()? == Refresh::Rebuilt);
            }
        }
        Ok(())
    }
}

impl Search {
    fn new(
        builder: Builder,
        skin: f32,
        positions: Positions<'_>,
    ) -> Result<(Self, PointSetId), Error> {
        if skin > 0.0 {
            let mut lists = VerletLists::new(builder.lists(ListKind::Half), skin)?;
            let set = lists.add_point_set(positions)?;
            return Ok((Self::Lists(Box::new(lists)), set));
        }
        let mut engine = builder.build()?;
        let set = engine.add_point_set(positions)?;
        Ok((Self::EveryTime(Box::new(engine)), set))
    }

    fn run<K: PairKernel<Output = OfAtom>>(
        &self,
        set: PointSetId,
        kernel: &K,
        fields: &[Field<'_>],
        results: &mut [OfAtom],
    ) -> Result<(), Error> {
        let traversal = match self {
            Self::EveryTime(engine) => engine.traverse(kernel, set, set),
            Self::Lists(lists) => lists.traverse(kernel, set, set),
        };
        let traversal = traversal.targets(fields).sources(fields);
        Ok(traversal.run_into(results)?)
    }
}

impl Room {
    /// Positions brought into the box, where their numbers are small.
    fn positions(&mut self, system: &System, precision: Precision) -> Result<Positions<'_>, Error> {
        const WHAT: &str = "positions of atoms";
        let wrapped = system.positions.iter().map(|&at| system.cell.wrap(at));
        match precision {
            Precision::Single => {
                self.single.clear();
                make_room(&mut self.single, system.len(), WHAT)?;
                self.single.extend(wrapped.map(|at| at.map(|x| x as f32)));
                Ok(Positions::from(&self.single))
            }
            Precision::Double => {
                self.double.clear();
                make_room(&mut self.double, system.len(), WHAT)?;
                self.double.extend(wrapped);
                Ok(Positions::from(&self.double))
            }
        }
    }
}

/// The results of a traversal in double precision.
fn doubles(results: &[OfAtom]) -> impl Iterator<Item = (f64, f64, [f64; 3])> + '_ {
    let double = |&(energy, virial, force): &OfAtom| {
        (f64::from(energy), f64::from(virial), force.map(f64::from))
    };
    results.iter().map(double)
}

fn total(
    of_atoms: impl Iterator<Item = (f64, f64, [f64; 3])>,
    system: &System,
) -> Result<Evaluation, Error> {
    let mut sum = Evaluation::default();
    for (atom, (energy, virial, force)) in of_atoms.enumerate() {
        if !force.iter().all(|x| x.is_finite()) {
            return Err(ErrorKind::Overlap {
                step: 0,
                atom: system.ids[atom],
                force,
                nearest: system.nearest(atom),
            }
            .into());
        }
        sum.energy += energy;
        sum.virial += virial;
    }
    Ok(sum)
}

//! Work over the particles of all ranks: arrays that are gathered on rank 0, the particle that ends
//! a run, and how particles are distributed.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;
use nearfield_grid::memory::{copied, make_room, with_room, zeroed};
use nearfield_sph::{Arrays, Column, Error, ErrorKind, Loss, LostParticle, Spread};

use crate::{communicator::Communicator, transport::Fault};

impl From<crate::Error> for ErrorKind {
    fn from(error: crate::Error) -> Self {
        Self::Elsewhere(error.into())
    }
}

impl From<Fault> for ErrorKind {
    fn from(fault: Fault) -> Self {
        crate::Error::from(fault).into()
    }
}

/// Makes a new array of an old one.
trait Remake {
    fn remake<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error>;

    /// Remakes an array of any kind.
    fn column(&mut self, column: &mut Column<'_>) -> Result<(), Error> {
        match column {
            Column::Vectors(values) => **values = self.remake(values)?,
            Column::Numbers(values) => **values = self.remake(values)?,
            Column::Ids(values) => **values = self.remake(values)?,
            Column::Pairs(values) => {
                let flat = values.iter().map(|(v, s)| [v.x, v.y, v.z, *s]);
                let flat = self.remake(&flat.collect::<Vec<[f32; 4]>>())?;
                let pairs = flat.into_iter().map(|[x, y, z, s]| (Vec3::new(x, y, z), s));
                **values = pairs.collect();
            }
        }
        Ok(())
    }

    /// Remakes all arrays of a set.
    fn arrays(&mut self, arrays: Arrays<'_>) -> Result<(), Error> {
        *arrays.positions = self.remake(arrays.positions)?;
        for mut column in arrays.columns {
            self.column(&mut column)?;
        }
        Ok(())
    }
}

/// For messages about memory.
pub(super) const GATHERED: &str = "particles of all ranks";

/// Brings arrays of all ranks to rank 0, in the order of ids.
struct Gather<'a> {
    comm: &'a mut Communicator,
    /// By place on rank 0: the place in the concatenated arrays of all ranks.
    order: Vec<usize>,
}

impl<'a> Gather<'a> {
    /// Gathers the particles with these ids on this rank.
    fn new(comm: &'a mut Communicator, ids: &[u64]) -> Result<Self, Error> {
        // No rank sends before rank 0 is ready, so rank 0 never holds more than this.
        comm.min(&mut [0.0])?;
        let mut gather = Self {
            comm,
            order: Vec::new(),
        };
        let ids: Vec<u64> = gather.whole(ids)?;
        make_room(&mut gather.order, ids.len(), GATHERED)?;
        gather.order.extend(0..ids.len());
        gather.order.sort_unstable_by_key(|at| ids[*at]);
        Ok(gather)
    }

    /// The concatenated arrays of all ranks on rank 0, and an empty array on the others.
    fn whole<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error> {
        let message = copied(bytemuck::cast_slice(values), GATHERED)?;
        let parts = self.comm.bring_to_first(message)?;
        let number = |part: &Vec<u8>| part.len() / size_of::<V>();
        let mut whole = zeroed(parts.iter().map(number).sum(), GATHERED)?;
        let mut rest = &mut whole[..];
        for part in parts {
            let (to, behind) = rest.split_at_mut(number(&part));
            let to = bytemuck::cast_slice_mut::<V, u8>(to);
            to.copy_from_slice(&part[..to.len()]);
            rest = behind;
        }
        Ok(whole)
    }
}

impl Remake for Gather<'_> {
    fn remake<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error> {
        let whole = self.whole(values)?;
        let mut ordered = with_room(whole.len(), GATHERED)?;
        ordered.extend(self.order.iter().map(|at| whole[*at]));
        Ok(ordered)
    }
}

/// Brings arrays of the particles with these ids from all ranks to rank 0, in the order of ids.
pub(super) fn gather(
    comm: &mut Communicator,
    ids: &[u64],
    arrays: Arrays<'_>,
) -> Result<(), Error> {
    Gather::new(comm, ids)?.arrays(arrays)
}

/// A lost particle as numbers; all zero on ranks that do not have it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LostNumbers {
    left: f64,
    position: [f64; 3],
    velocity: [f64; 3],
    count: f64,
    step: f64,
    time: f64,
}

/// The lost particle with the id `first`, the smallest of all; `lost` is one of this rank.
pub(super) fn lost_of_all(
    comm: &mut Communicator,
    first: f64,
    lost: Option<LostParticle>,
) -> Result<LostParticle, Error> {
    let mut numbers = LostNumbers::zeroed();
    if let Some(lost) = &lost {
        numbers.count = lost.count as f64;
        if lost.id as f64 == first {
            numbers.left = f64::from(u8::from(lost.reason == Loss::LeftDomain));
            numbers.position = lost.position.to_array().map(f64::from);
            numbers.velocity = lost.velocity.to_array().map(f64::from);
            (numbers.step, numbers.time) = (lost.step as f64, lost.time);
        }
    }
    let sum = bytemuck::cast_slice_mut(std::slice::from_mut(&mut numbers));
    comm.sum(sum)?;
    Ok(LostParticle {
        id: first as u64,
        reason: if numbers.left > 0.0 {
            Loss::LeftDomain
        } else {
            Loss::NotANumber
        },
        position: numbers.position.map(|x| x as f32).into(),
        velocity: numbers.velocity.map(|x| x as f32).into(),
        count: numbers.count as usize,
        step: numbers.step as u64,
        time: numbers.time,
        evidence: None,
    })
}

/// The distribution of particles over the ranks: this one owns `owned` fluid particles, has `halo`
/// halo points, and runs on `device`.
pub(super) fn spread(
    comm: &mut Communicator,
    owned: usize,
    halo: usize,
    device: &str,
) -> Result<Spread, Error> {
    let ranks = comm.ranks();
    let mut numbers = vec![0.0; ranks + 1];
    (numbers[comm.rank()], numbers[ranks]) = (owned as f64, halo as f64);
    comm.sum(&mut numbers)?;
    let halo_points = numbers[ranks] as u64;
    numbers.truncate(ranks);
    let devices = comm.gather(device.as_bytes())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Spread {
        particles_per_rank: numbers.into_iter().map(|number| number as u64).collect(),
        halo_points,
        devices: devices.into_iter().map(text).collect(),
    })
}

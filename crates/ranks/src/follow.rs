//! Arrays of the caller that follow its points to other ranks.
//!
//! Each rank gets one message for all arrays of a migration. A rank whose arrays do not fit sends
//! empty messages, so all agree once, at the end. Only then are the caller's arrays replaced.

use crate::{
    Error, Migration, RankedEngine, Scalar,
    communicator::{Communicator, Exchange, MIGRATE},
    error::{Failure, Refusal},
    migration::Remap,
    transport::Tag,
};
use nearfield_grid::memory::{Shortage, copied, zeroed};

impl Migration {
    /// An array with one element per point in the order before the migration, brought into the
    /// order after it. Collective: all ranks bring the same arrays in the same order. Several
    /// arrays [follow](Self::follow) together at less cost.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the array has another length on some
    /// rank, or memory is short there.
    pub fn bring<T: Scalar, V: bytemuck::Pod>(
        &self,
        engine: &mut RankedEngine<T>,
        values: &[V],
    ) -> Result<Vec<V>, Error> {
        let mut array = Array::new(values, false);
        self.exchange(engine, &mut [&mut array])?;
        Ok(array.joined.unwrap_or_default())
    }

    /// Lets several arrays follow the points together: with one message for all arrays to each
    /// rank, and one agreement.
    ///
    /// ```
    /// use nearfield_ranks::{RankedEngine, transport::threads};
    /// let ends = threads::run(2, |transport| {
    ///     let mut engine = RankedEngine::builder(1.0).threads(1).build::<f32>(transport)?;
    ///     // Both ranks give points at both ends of a row.
    ///     let rank = engine.rank() as f32;
    ///     let mut positions = vec![[rank, 0.0, 0.0], [rank + 50.0, 0.0, 0.0]];
    ///     let mut names = vec![b'A' + engine.rank() as u8, b'C' + engine.rank() as u8];
    ///     let set = engine.add_point_set(&positions, None)?;
    ///
    ///     let migration = engine.migrate(set, &positions)?;
    ///     let mut arrays = migration.follow();
    ///     arrays.add(&mut positions).add(&mut names);
    ///     arrays.run(&mut engine)?;
    ///     assert_eq!(positions.len(), names.len());
    ///     Ok::<_, nearfield_ranks::Error>(names)
    /// });
    /// let names: Vec<u8> = ends.into_iter().flat_map(|names| names.unwrap().unwrap()).collect();
    /// assert_eq!(names, b"ABCD");
    /// ```
    pub fn follow<'a>(&'a self) -> Following<'a> {
        Following {
            migration: self,
            arrays: Vec::new(),
        }
    }

    /// Brings arrays into the order after the migration.
    fn exchange<T: Scalar>(
        &self,
        engine: &mut RankedEngine<T>,
        arrays: &mut [&mut dyn Travels],
    ) -> Result<(), Error> {
        let comm = &mut engine.comm;
        let on = (MIGRATE, comm.begin());
        let joined = match self.make_room(arrays) {
            Err(refusal) => Err(comm.refuse(on, refusal)),
            Ok(()) => match &self.remap {
                None => Ok(()),
                Some(remap) => remap.exchange(comm, on, arrays),
            },
        };
        let joined = joined.and_then(|()| {
            (arrays.iter_mut()).try_for_each(|array| Ok(array.join(self.remap.as_ref())?))
        });
        comm.agree(joined, &mut [])
    }

    /// Checks the lengths of the arrays and makes room for what will arrive.
    fn make_room(&self, arrays: &mut [&mut dyn Travels]) -> Result<(), Refusal> {
        let expected = self.before;
        let remap = self.remap.as_ref();
        let came = remap.map_or(0, |remap| remap.route.places.len());
        for array in arrays {
            let found = array.len();
            if found != expected {
                return Err(Refusal::new(format!(
                    "{found} values for {expected} points: bring arrays in the order before"
                )));
            }
            array.make_room(came)?;
        }
        Ok(())
    }
}

impl Remap {
    /// Sends the elements of points that have left, and takes those of points that have arrived.
    fn exchange(
        &self,
        comm: &mut Communicator,
        on: (Tag, Exchange),
        arrays: &mut [&mut dyn Travels],
    ) -> Result<(), Failure> {
        let width = arrays.iter().map(|array| array.width()).sum();
        let pack = |index: usize, message: &mut Vec<u8>| {
            arrays.iter().for_each(|array| array.pack(index, message));
        };
        let packed = self.route.post(comm, on, width, pack);
        let collected = self.route.collect(comm, on, width, |place, bytes| {
            let mut rest = bytes;
            for array in arrays.iter_mut() {
                let (here, behind) = rest.split_at(array.width());
                array.take(place, here);
                rest = behind;
            }
        });
        packed.and(collected)
    }
}

/// Arrays that follow a migration together, from [`Migration::follow`].
#[must_use = "arrays stay in their old order until run() is called"]
pub struct Following<'a> {
    migration: &'a Migration,
    arrays: Vec<Box<dyn Follows + 'a>>,
}

/// The number of arrays.
impl std::fmt::Debug for Following<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Following({} arrays)", self.arrays.len())
    }
}

impl<'a> Following<'a> {
    /// Adds an array with one element per point in the order before the migration. All ranks add
    /// the same arrays in the same order.
    pub fn add<V: bytemuck::Pod>(&mut self, values: &'a mut Vec<V>) -> &mut Self {
        self.arrays.push(Box::new(Array::new(values, true)));
        self
    }

    /// Brings all arrays into the order after the migration. Collective.
    ///
    /// # Errors
    /// As [`Migration::bring`]; all arrays are as they were then.
    pub fn run<T: Scalar>(mut self, engine: &mut RankedEngine<T>) -> Result<(), Error> {
        let mut arrays: Vec<&mut dyn Travels> = Vec::with_capacity(self.arrays.len());
        for array in &mut self.arrays {
            arrays.push(array.travels());
        }
        self.migration.exchange(engine, &mut arrays)?;
        self.arrays.into_iter().for_each(|array| array.replace());
        Ok(())
    }
}

/// An array that is remapped from the order before a migration to the order after it.
trait Travels {
    /// Number of elements.
    fn len(&self) -> usize;
    /// Bytes of an element.
    fn width(&self) -> usize;
    /// Makes room for the elements of `came` points that arrive.
    fn make_room(&mut self, came: usize) -> Result<(), Shortage>;
    /// Appends an element to a message.
    fn pack(&self, index: usize, message: &mut Vec<u8>);
    /// Takes the element of a point that has arrived.
    fn take(&mut self, place: usize, bytes: &[u8]);
    /// Makes the array in the new order.
    fn join(&mut self, remap: Option<&Remap>) -> Result<(), Shortage>;
}

/// An array of the caller that is replaced in the end.
trait Follows {
    fn travels(&mut self) -> &mut dyn Travels;
    fn replace(self: Box<Self>);
}

/// An array of the caller, the elements that have arrived, and the array in the new order.
struct Array<A, V> {
    values: A,
    /// True if no new array is needed when no point has moved.
    stays: bool,
    came: Vec<V>,
    joined: Option<Vec<V>>,
}

impl<A, V> Array<A, V> {
    fn new(values: A, stays: bool) -> Self {
        Self {
            values,
            stays,
            came: Vec::new(),
            joined: None,
        }
    }
}

impl<A: std::ops::Deref<Target: AsRef<[V]>>, V: bytemuck::Pod> Array<A, V> {
    fn elements(&self) -> &[V] {
        (*self.values).as_ref()
    }
}

impl<A: std::ops::Deref<Target: AsRef<[V]>>, V: bytemuck::Pod> Travels for Array<A, V> {
    fn len(&self) -> usize {
        self.elements().len()
    }

    fn width(&self) -> usize {
        size_of::<V>()
    }

    fn make_room(&mut self, came: usize) -> Result<(), Shortage> {
        self.came = zeroed(came, "an array of points that have come")?;
        Ok(())
    }

    fn pack(&self, index: usize, message: &mut Vec<u8>) {
        message.extend_from_slice(bytemuck::bytes_of(&self.elements()[index]));
    }

    fn take(&mut self, place: usize, bytes: &[u8]) {
        self.came[place] = bytemuck::pod_read_unaligned(bytes);
    }

    fn join(&mut self, remap: Option<&Remap>) -> Result<(), Shortage> {
        self.joined = match remap {
            None if self.stays => None,
            None => Some(copied(self.elements(), "an array of points")?),
            Some(remap) => Some(remap.join(self.elements(), &self.came)?),
        };
        Ok(())
    }
}

impl<V: bytemuck::Pod> Follows for Array<&mut Vec<V>, V> {
    fn travels(&mut self) -> &mut dyn Travels {
        self
    }

    fn replace(self: Box<Self>) {
        if let Some(joined) = self.joined {
            *self.values = joined;
        }
    }
}

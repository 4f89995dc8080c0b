//! Sets of points as the device sorts them, made on the host by the device's own functions. For the
//! tests of `on_host`.

use crate::constants::{FAR_WRAPPED, NEAR_BOXES, NEAR_WRAPPED};
use crate::launch::{Lattice, Points, Table};
use libloading::Library;
use nearfield_grid::{self as grid, Bounds};
use nearfield_testkit::oracle::Real;

pub(super) fn is_double<T>() -> bool {
    size_of::<T>() == size_of::<f64>()
}

type PlaceOfPoint<T> =
    unsafe extern "C" fn(*const Lattice, *const T, *mut f64, *mut i32, *mut u32, *mut f32);

/// A set sorted as grid.cu does it.
pub(super) struct Sorted<T> {
    pub(super) table: Table,
    /// In double precision proxies.
    pub(super) at: Vec<[f32; 4]>,
    pub(super) wraps: Vec<[i32; 4]>,
    proxies: Vec<[f32; 4]>,
    /// `wraps` in bytes.
    boxes: Vec<u32>,
    pub(super) given: Vec<[T; 3]>,
    starts: Vec<u32>,
    pub(super) flags: [u32; 2],
}

/// What sorting finds of a point: its cell, the boxes that it lies outside, and its proxy.
struct Placed {
    cell: grid::Cell,
    wraps: [i32; 3],
    boxes: u32,
    proxy: [f32; 3],
}

/// The place of a point by the device code.
fn place<T>(walks: &Library, lattice: &Lattice, at: [T; 3]) -> Placed {
    let (mut cells, mut wraps, mut boxes, mut proxy) = ([0.0; 3], [0; 3], 0, [0.0; 3]);
    // SAFETY: the function is declared so in walk.cpp; it reads and writes three numbers each, and
    // one for the boxes.
    unsafe {
        let function = walks.get::<PlaceOfPoint<T>>(b"place_of_point").unwrap();
        function(
            lattice,
            at.as_ptr(),
            cells.as_mut_ptr(),
            wraps.as_mut_ptr(),
            &mut boxes,
            proxy.as_mut_ptr(),
        );
    }
    Placed {
        cell: cells.map(|cell| cell as i64),
        wraps,
        boxes,
        proxy,
    }
}

impl<T: Real> Sorted<T> {
    /// None where the table would be sparse.
    pub(super) fn new(
        walks: &Library,
        lattice: &grid::Lattice,
        layout: &Lattice,
        points: &[[T; 3]],
        bounds: &Bounds,
    ) -> Option<Self> {
        let table = Table::around(lattice, bounds);
        if table.cells() > 1 << 20 {
            return None;
        }
        let mut places: Vec<(usize, u32, Placed)> = Vec::new();
        for (index, &at) in points.iter().enumerate() {
            let placed = place(walks, layout, at);
            let cell = placed.cell;
            assert_eq!(cell, lattice.cell_f64(at.map(T::to_f64)), "cell of {at:?}");
            if !is_double::<T>() {
                let wraps = lattice.wraps(at.map(|x| x.to_f64() as f32));
                assert_eq!(placed.wraps, wraps, "wraps of {at:?}");
            }
            let inside = |axis: usize| {
                let offset = (cell[axis] - table.origin[axis]) as usize;
                assert!(offset < table.dims[axis] as usize);
                offset
            };
            let row = inside(2) * table.dims[1] as usize + inside(1);
            let key = row * table.dims[0] as usize + inside(0);
            places.push((key, index as u32, placed));
        }
        places.sort_unstable_by_key(|place| (place.0, place.1));
        let mut starts = vec![0; table.cells() as usize + 1];
        places.iter().for_each(|place| starts[place.0 + 1] += 1);
        (1..starts.len()).for_each(|cell| starts[cell] += starts[cell - 1]);
        let farthest = (places.iter().flat_map(|place| place.2.wraps))
            .map(i32::unsigned_abs)
            .max();
        let wrapped = match farthest.unwrap_or(0) {
            0 => 0,
            1..=NEAR_BOXES => NEAR_WRAPPED,
            _ => FAR_WRAPPED,
        };
        // Sorting leaves those of points in the box behind the last.
        let behind = place(walks, layout, [T::round(0.0); 3]).boxes;
        let with_index = |[x, y, z]: [f32; 3], index| [x, y, z, f32::from_bits(index)];
        let proxies = (places.iter()).map(|(_, index, placed)| with_index(placed.proxy, *index));
        // Read behind the last, and thrown away.
        let proxies: Vec<_> = proxies.chain([[0.0; 4]; 2]).collect();
        let given = |index: u32| points[index as usize];
        let as_given = places
            .iter()
            .map(|place| with_index(given(place.1).map(|x| x.to_f64() as f32), place.1));
        let at = if is_double::<T>() {
            proxies.clone()
        } else {
            as_given.chain([[0.0; 4]; 2]).collect()
        };
        let boxes = |[x, y, z]: [i32; 3]| [x, y, z, 0];
        Some(Self {
            table,
            at,
            wraps: places.iter().map(|place| boxes(place.2.wraps)).collect(),
            proxies,
            boxes: (places.iter().map(|place| place.2.boxes))
                .chain([behind; 2])
                .collect(),
            given: places.iter().map(|place| given(place.1)).collect(),
            starts,
            flags: [wrapped, 0],
        })
    }

    pub(super) fn layout(&self) -> Points {
        Points {
            at: self.at.as_ptr() as u64,
            wraps: if self.flags[0] == 0 {
                0
            } else {
                self.wraps.as_ptr() as u64
            },
            proxies: if self.flags[0] == 0 {
                0
            } else {
                self.proxies.as_ptr() as u64
            },
            boxes: self.boxes.as_ptr() as u64,
            given: self.given.as_ptr() as u64,
            starts: self.starts.as_ptr() as u64,
            flags: self.flags.as_ptr() as u64,
            ids: 0,
            bricks: 0,
            origin: self.table.origin,
            dims: self.table.dims,
            mask: 0,
            sparse: 0,
            cells: self.table.cells() as u32,
            count: self.at.len() as u32 - 2,
            pad: self.table.pad,
            slots: 0,
        }
    }
}

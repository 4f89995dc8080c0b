//! The cells that all sets of an engine share, on the device: scales of the axes, and the rows of
//! cells within reach of a cell.
//!
//! Kernels get the lattice in two pieces. Scales, box vectors and the squared radius travel with
//! every launch by value. The table of neighbour rows is an array on the device: one entry per row
//! of cells (y, z) that the radius reaches, with the number of cells along x. Only the general walk
//! and the strategies that work cell by cell read it; the walk around single targets takes rows
//! from the geometry of the table.
//!
//! The lattice has the precision of its radius. Sets remember theirs, and one that is in the other
//! precision is refused: its cells would be computed from other bits.
//!
//! A lattice may be for the bulk of the points only, where some have larger radii
//! ([`DeviceLattice::for_bulk`]). Its cells, rows and proxies are those of the smaller radius, and
//! the radius that decides is the larger one. Only searches with radii of single points may use it:
//! others would miss the pairs between the two, so they are refused.
//!
//! A lattice has a number that no other lattice of the process has. Sets and shares remember the
//! number that they were made with, so a mix-up is an error and not a wrong result.

use super::gpu::GpuBackend;
use crate::{
    error::{Error, ErrorKind},
    launch::{self, Row},
    memory::Buffer,
};
use nearfield_grid::{Lattice, Radius};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that this process has not given before, 1 at least.
pub(super) fn next_number() -> u64 {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    GIVEN.fetch_add(1, Ordering::Relaxed) + 1
}

/// The cells that all sets of an engine share, as kernels read them.
#[derive(Debug)]
pub struct DeviceLattice {
    /// Number that no other lattice of this process has.
    pub(super) number: u64,
    /// As the host computes with it.
    pub(super) lattice: Lattice,
    /// Cells to a radius along y and z.
    pub(super) subdivision: u32,
    /// Cells along x for one along y and z.
    along_x: u32,
    /// Cells as long along x as along y, for a CPU backend.
    cubic: Option<Lattice>,
    /// The largest radius of a point, where that is not the lattice's.
    pub(super) wide: Option<Radius>,
    /// Points of all sets that share it, as far as that is known.
    pub(super) points: usize,
    /// As kernels compute with it.
    pub(super) layout: launch::Lattice,
    /// Neighbour rows of a cell.
    pub(super) rows: Buffer<Row>,
    /// Number of neighbour rows.
    pub(super) row_count: u32,
    /// Vectors of near images, looked up where points lie outside the box; none where they are
    /// computed.
    pub(super) steps: Buffer<f32>,
}

impl GpuBackend {
    /// A lattice for the device, of any box whose vectors are used as they were given; also where a
    /// vector leans along an open axis, though no work is [shared](Self::parts) there.
    /// `subdivision` is the number of cells to a radius along y and z that the lattice was made
    /// with.
    ///
    /// # Errors
    /// [`ErrorKind::ReducedBox`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn lattice(&self, lattice: &Lattice, subdivision: u32) -> Result<DeviceLattice, Error> {
        if lattice.domain().is_reduced() {
            return Err(Error::from(ErrorKind::ReducedBox));
        }
        let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
        let mut buffer = Buffer::new("neighbour rows");
        buffer.upload(&self.stream, &rows)?;
        let mut steps = Buffer::new("vectors of images");
        let vectors = launch::image_steps(lattice);
        if !vectors.is_empty() && lattice.domain().is_periodic() {
            steps.upload(&self.stream, &vectors)?;
        }
        Ok(DeviceLattice {
            number: next_number(),
            lattice: lattice.clone(),
            subdivision,
            along_x: 1,
            cubic: None,
            wide: None,
            points: 0,
            layout: launch::Lattice::new(lattice),
            rows: buffer,
            row_count: rows.len() as u32,
            steps,
        })
    }
}

impl DeviceLattice {
    /// The lattice.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Says that this lattice is `cubic` with every cell divided into a number of cells along x.
    /// `flat` cuts rows to the chord of each target, so such cells test fewer candidates;
    /// strategies and backends that go from cell to cell are better served by the cubic ones.
    pub fn dividing(self, cubic: Lattice, along_x: u32) -> Self {
        Self {
            cubic: Some(cubic),
            along_x,
            ..self
        }
    }

    /// Says how many points all sets have together that share this lattice. Sets that are sorted
    /// from then on may have tables of as many cells as suit all of them.
    pub fn set_points(&mut self, points: usize) {
        self.points = points;
    }

    /// Points of all sets when one of them was last given room.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The lattice for a CPU backend that shares the work.
    pub fn cubic(&self) -> &Lattice {
        self.cubic.as_ref().unwrap_or(&self.lattice)
    }

    /// Cells along x for one along y and z.
    pub fn along_x(&self) -> u32 {
        self.along_x
    }

    /// Cells to a radius along y and z.
    pub fn subdivision(&self) -> u32 {
        self.subdivision
    }

    /// Returns true if any axis repeats.
    pub(super) fn is_periodic(&self) -> bool {
        self.lattice.domain().is_periodic()
    }
}

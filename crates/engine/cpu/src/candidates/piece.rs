//! Pieces of runs, each seen through one image, and the table of their images.
//!
//! A cell near a face of a periodic box has 9 to 18 pieces of two images, so images are kept in a
//! table of their own, and each image vector is computed once.
//!
//! **Invariant:** the image of a piece is a number in the table that was filled with it.

use crate::contract::Image;
use nearfield_grid::{
    Lattice,
    memory::{Shortage, make_room_for_one},
};
use std::ops::Range;

/// The name of the memory in messages.
const WHAT: &str = "the candidates of a cell";

/// Part of a run whose points all take part in the same image.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// The points.
    pub(crate) slots: Range<usize>,
    /// Their image, by its number in [`Pieces::images`].
    pub(crate) image: usize,
    /// Number of candidates up to here, once they are gathered.
    pub(crate) end: usize,
}

/// An image that candidates are seen through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenImage {
    /// By how many boxes they are moved.
    pub(crate) image: Image,
    /// The same in the vectors that the box was given by, as it is reported.
    pub(crate) given: Image,
    /// Its image vector.
    pub(crate) vector: [f64; 3],
    /// The same for the sorted coordinates.
    pub(crate) shift: [f32; 3],
}

/// The pieces of a cell.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// One after the other.
    pub(crate) pieces: Vec<Piece>,
    /// Their images. An image may stand there more than once.
    pub(crate) images: Vec<SeenImage>,
    /// Points of all pieces.
    points: usize,
}

/// Images of a table that are looked at for one that is needed again: rows that are cut by a face
/// have two in turn, and at a corner of the box there are eight.
const RECENT: usize = 8;

impl Pieces {
    /// Forgets all pieces.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.images.clear();
        self.points = 0;
    }

    /// Points of all pieces.
    #[inline(always)]
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Piece>() * self.pieces.capacity()
            + size_of::<SeenImage>() * self.images.capacity()
    }

    /// Adds a piece up to candidate `end`.
    ///
    /// # Errors
    /// [`Shortage`] if memory for it is refused.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        lattice: &Lattice,
        slots: Range<usize>,
        image: Image,
        end: usize,
    ) -> Result<(), Shortage> {
        let image = match self.images.as_slice() {
            [.., last] if last.image == image => self.images.len() - 1,
            [.., other, _] if other.image == image => self.images.len() - 2,
            _ => self.number_of(lattice, image)?,
        };
        self.points += slots.len();
        make_room_for_one(&mut self.pieces, WHAT)?;
        self.pieces.push(Piece { slots, image, end });
        Ok(())
    }

    /// The number of an image, which is added to the table unless it was seen lately.
    #[cold]
    #[inline(never)]
    fn number_of(&mut self, lattice: &Lattice, image: Image) -> Result<usize, Shortage> {
        let recent = self.images.len().saturating_sub(RECENT);
        let mut known = self.images[recent..].iter();
        if let Some(number) = known.position(|seen| seen.image == image) {
            return Ok(recent + number);
        }
        let domain = lattice.domain();
        let vector = domain.image_vector_f64(image);
        make_room_for_one(&mut self.images, WHAT)?;
        self.images.push(SeenImage {
            image,
            given: domain.given_image(image),
            vector,
            shift: lattice.image_shift(vector),
        });
        Ok(self.images.len() - 1)
    }
}

//! VTK XML files: PolyData (`.vtp`) and unstructured grids (`.vtu`), in every encoding but LZMA.
//!
//! The pieces of a file are joined in order. **Invariant others rely on:** a quantity is kept only
//! when every piece that has points has it.

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    error::{Fault, Parsed, Place, quoted},
    number::Numbers,
    point_data::PointData,
};

use super::{
    xml_array::Decoder,
    xml_document::{DataArray, Document, Piece},
};

/// Reads the points of all pieces and their data.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let document = Document::scan(bytes)?;
    let mut decoder = Decoder::new(bytes, &document);
    decoder.check()?;
    let time = match &document.time {
        Some(array) => Some(decoder.read(array, 1)?.number(0).double),
        None => None,
    };
    let mut positions = Positions::default();
    let mut joined = JoinedPieces::default();
    for piece in document.pieces.iter().filter(|piece| piece.points > 0) {
        positions.extend(
            &decoder.read(piece_positions(piece)?, piece.points)?,
            piece.points,
        )?;
        joined.add(piece, &mut decoder)?;
    }
    Ok(PointCloud {
        time,
        data: joined.data,
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

fn piece_positions(piece: &Piece) -> Parsed<&DataArray> {
    match &piece.positions {
        Some(array) if array.components == 3 => Ok(array),
        Some(array) => {
            let message = format!(
                "the points have {} components instead of 3",
                array.components
            );
            Err(Fault::malformed(array.place, message))
        }
        None => {
            let message = format!("a piece of {} points has no Points array", piece.points);
            Err(Fault::malformed(Place::Whole, message))
        }
    }
}

/// The quantities of all pieces read so far.
#[derive(Default)]
struct JoinedPieces {
    points: usize,
    data: Vec<PointData<'static>>,
}

impl JoinedPieces {
    fn add(&mut self, piece: &Piece, decoder: &mut Decoder<'_, '_>) -> Parsed<()> {
        let first = self.points == 0;
        self.points += piece.points;
        for array in &piece.data {
            let values = decoder.read(array, piece.points)?.into_values()?;
            let Some(data) = PointData::tuples(array.name.clone(), array.components, values) else {
                continue;
            };
            if first {
                self.data.push(data);
            } else {
                let mut known = self.data.iter_mut();
                let joined = match known.find(|known| known.name() == array.name) {
                    Some(known) => known.append(data)?,
                    None => false,
                };
                if !joined {
                    return Err(differs(&array.name));
                }
            }
        }
        match self.data.iter().find(|data| data.points() != self.points) {
            None => Ok(()),
            Some(data) => Err(differs(data.name())),
        }
    }
}

fn differs(name: &str) -> Fault {
    let message = format!(
        "the pieces differ in their array {}",
        quoted(name.as_bytes())
    );
    Fault::malformed(Place::Whole, message)
}

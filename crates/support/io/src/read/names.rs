//! Names of points' kinds as they are read, each kept once.

use crate::cloud::Species;
use nearfield_grid::memory::{Shortage, make_room_for_one};
use std::collections::HashMap;

const SPECIES: &str = "the kinds of points of a file";

/// The names read so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    species: Species,
    indices: HashMap<String, u32>,
}

impl Names {
    /// Adds the name of the next point. Names that differ only in invalid bytes count as one.
    pub(super) fn add(&mut self, name: &[u8]) -> Result<(), Shortage> {
        let text = String::from_utf8_lossy(name);
        let known = self.indices.get(text.as_ref()).copied();
        let index = match known {
            Some(index) => index,
            None => {
                let index = self.species.names.len() as u32;
                make_room_for_one(&mut self.species.names, SPECIES)?;
                let room = self.indices.try_reserve(1);
                room.map_err(|_| Shortage::of::<(String, u32)>(self.indices.len() + 1, SPECIES))?;
                self.species.names.push(text.to_string());
                self.indices.insert(text.into_owned(), index);
                index
            }
        };
        make_room_for_one(&mut self.species.of_point, SPECIES)?;
        self.species.of_point.push(index);
        Ok(())
    }

    /// Whether no point has a name yet.
    pub(super) fn is_empty(&self) -> bool {
        self.species.of_point.is_empty()
    }

    pub(super) fn finish(self) -> Species {
        self.species
    }
}

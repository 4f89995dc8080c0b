//! The notes in a checkpoint of `nearfield gravity`: its run, the number of frames and the energies
//! so far; and for the picture the positions of the bodies at first, their trails and their names.
//!
//! Six counts (u64): bytes of the run's text, frames, moments, steps between places of a trail,
//! places of all trails, and bytes of the names; then the text, the names (a line each), time and
//! energy of every moment, the first position of every body, and the places of the trails, x and y
//! (f64). All is little-endian.

use nearfield_files::Run;
use nearfield_grid::memory::{Shortage, collected, make_room};
use nearfield_nbody::{MAX_NAMED, Moment, Trails};

/// Bytes of the counts.
const COUNTS: usize = 48;

/// The past of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Past {
    pub(super) run: Run,
    /// Number of frames that were there.
    pub(super) frames: usize,
    pub(super) moments: Vec<Moment>,
    /// Positions at the start.
    pub(super) first: Vec<[f64; 3]>,
    pub(super) trails: Trails,
    /// Names of the bodies, or none.
    pub(super) names: Vec<String>,
}

impl Past {
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Shortage> {
        let (text, trails) = (self.run.to_text(), &self.trails);
        let names: String = self.names.iter().flat_map(|name| [name, "\n"]).collect();
        let counts = [
            text.len() as u64,
            self.frames as u64,
            self.moments.len() as u64,
            trails.every,
            trails.places.len() as u64,
            names.len() as u64,
        ];
        let numbers = 2 * self.moments.len() + 3 * self.first.len() + 2 * trails.places.len();
        let mut bytes = Vec::new();
        let len = COUNTS + text.len() + names.len() + 8 * numbers;
        make_room(&mut bytes, len, "a checkpoint")?;
        counts
            .iter()
            .for_each(|count| bytes.extend(count.to_le_bytes()));
        bytes.extend(text.as_bytes());
        bytes.extend(names.as_bytes());
        let moments = self.moments.iter().flat_map(|at| [at.time, at.energy]);
        let vectors = self.first.as_flattened().iter();
        let numbers = moments.chain(vectors.chain(trails.places.as_flattened()).copied());
        numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
        Ok(bytes)
    }

    /// Reads the notes of a run of this many bodies. The error is the reason for a refusal.
    pub(super) fn parse(bytes: &[u8], bodies: usize) -> Result<Self, String> {
        let wrong = || "its notes were not written by nearfield gravity".to_owned();
        let (counts, rest) = bytes.split_at_checked(COUNTS).ok_or_else(wrong)?;
        let word =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| counts[8 * at + byte]));
        let count = |at: usize| usize::try_from(word(at)).map_err(|_| wrong());
        let (text, rest) = rest.split_at_checked(count(0)?).ok_or_else(wrong)?;
        let (names, rest) = rest.split_at_checked(count(5)?).ok_or_else(wrong)?;
        let names = std::str::from_utf8(names).map_err(|_| wrong())?;
        let names: Vec<String> = names
            .lines()
            .take(MAX_NAMED + 1)
            .map(str::to_owned)
            .collect();
        let (moments, places) = (count(2)?, count(4)?);
        let (words, odd) = rest.as_chunks::<8>();
        let pairs = moments.checked_add(places).and_then(|n| n.checked_mul(2));
        let needed = pairs.and_then(|n| n.checked_add(3 * bodies));
        let has_names = names.is_empty() || names.len() == bodies;
        let trails = Trails::bodies(bodies).len();
        let has_trails = word(3) > 0 && places % trails.max(1) == 0;
        if needed != Some(words.len()) || !odd.is_empty() || !has_names || !has_trails {
            return Err(wrong());
        }
        let number = |word: &[u8; 8]| f64::from_le_bytes(*word);
        let (of_moments, rest) = words.split_at(2 * moments);
        let (first, places) = rest.split_at(3 * bodies);
        let moment = |[time, energy]: &[[u8; 8]; 2]| Moment {
            time: number(time),
            energy: number(energy),
        };
        let vector = |vector: &[[u8; 8]; 3]| vector.each_ref().map(number);
        let place = |place: &[[u8; 8]; 2]| place.each_ref().map(number);
        let short = |shortage: Shortage| shortage.to_string();
        const WHAT: &str = "notes of a checkpoint";
        Ok(Self {
            run: Run::parse(std::str::from_utf8(text).map_err(|_| wrong())?)?,
            frames: count(1)?,
            moments: collected(of_moments.as_chunks().0.iter().map(moment), WHAT).map_err(short)?,
            first: collected(first.as_chunks().0.iter().map(vector), WHAT).map_err(short)?,
            trails: Trails {
                every: word(3),
                places: collected(places.as_chunks().0.iter().map(place), WHAT).map_err(short)?,
            },
            names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_no_bytes_do_harm() {
        let moment = |time| Moment {
            time,
            energy: -1.0 / 3.0,
        };
        let past = Past {
            run: Run::new("gravity").set("dt", 0.01),
            frames: 3,
            moments: vec![moment(0.0), moment(0.1)],
            first: vec![[0.1, 0.2, 0.3]; 4],
            trails: Trails {
                every: 2,
                places: vec![[0.5, 0.6]; 8],
            },
            names: ["sun", "a", "b", "c"].map(str::to_owned).into(),
        };
        let bytes = past.bytes().unwrap();
        assert_eq!(Past::parse(&bytes, 4), Ok(past));
        assert!(Past::parse(&bytes, 5).is_err());
        for len in 0..bytes.len() {
            assert!(Past::parse(&bytes[..len], 4).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] = 0xff;
            let _ = Past::parse(&bytes, 4);
        }
    }
}

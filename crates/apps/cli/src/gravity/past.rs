//! The notes in a checkpoint of `nearfield gravity`: its run, the number of frames and the energies
//! so far, and the positions of the bodies at first, for the picture.
//!
//! Three counts (u64): bytes of the run's text, frames, and moments; then the text, time and energy
//! of every moment, and the first position of every body (f64). All is little-endian.

use nearfield_files::Run;
use nearfield_grid::memory::{Shortage, collected, make_room};
use nearfield_nbody::Moment;

/// The past of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Past {
    pub(super) run: Run,
    /// Number of frames that were there.
    pub(super) frames: usize,
    pub(super) moments: Vec<Moment>,
    /// Positions at the start.
    pub(super) first: Vec<[f64; 3]>,
}

impl Past {
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Shortage> {
        let text = self.run.to_text();
        let mut bytes = Vec::new();
        let len = 24 + text.len() + 16 * self.moments.len() + 24 * self.first.len();
        make_room(&mut bytes, len, "a checkpoint")?;
        for count in [text.len(), self.frames, self.moments.len()] {
            bytes.extend((count as u64).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        let moments = self.moments.iter().flat_map(|at| [at.time, at.energy]);
        let numbers = moments.chain(self.first.as_flattened().iter().copied());
        numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
        Ok(bytes)
    }

    /// Reads the notes of a run of this many bodies. The error is the reason for a refusal.
    pub(super) fn parse(bytes: &[u8], bodies: usize) -> Result<Self, String> {
        let wrong = || "its notes were not written by nearfield gravity".to_owned();
        let (counts, rest) = bytes.split_at_checked(24).ok_or_else(wrong)?;
        let count = |at: usize| {
            let word = u64::from_le_bytes(std::array::from_fn(|byte| counts[8 * at + byte]));
            usize::try_from(word).map_err(|_| wrong())
        };
        let (text, rest) = rest.split_at_checked(count(0)?).ok_or_else(wrong)?;
        let moments = count(2)?;
        let (words, odd) = rest.as_chunks::<8>();
        let needed = moments
            .checked_mul(2)
            .and_then(|n| n.checked_add(3 * bodies));
        if needed != Some(words.len()) || !odd.is_empty() {
            return Err(wrong());
        }
        let number = |word: &[u8; 8]| f64::from_le_bytes(*word);
        let (of_moments, first) = words.split_at(2 * moments);
        let moment = |[time, energy]: &[[u8; 8]; 2]| Moment {
            time: number(time),
            energy: number(energy),
        };
        let vector = |vector: &[[u8; 8]; 3]| vector.each_ref().map(number);
        let short = |shortage: Shortage| shortage.to_string();
        const WHAT: &str = "notes of a checkpoint";
        Ok(Self {
            run: Run::parse(std::str::from_utf8(text).map_err(|_| wrong())?)?,
            frames: count(1)?,
            moments: collected(of_moments.as_chunks().0.iter().map(moment), WHAT).map_err(short)?,
            first: collected(first.as_chunks().0.iter().map(vector), WHAT).map_err(short)?,
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

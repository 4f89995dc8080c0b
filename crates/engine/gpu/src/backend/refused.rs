//! What the device refused of data of points that came from its arrays.
//!
//! The host cannot look at such data before they are used. Kernels replace values that cannot be
//! used (`kernels/cuda/point_data.cu`), count them, and remember the first; the host reads these
//! notes when it waits anyway. Three words of 64 bits tell of each kind of data: the complement of
//! the index and the value of the first, so that a maximum finds it and zero means none; how many
//! there are; and whether values were refused of earlier data. When an array replaces another one
//! before the host has looked, a kernel makes the first two words into the third, because only the
//! device knows whether the earlier array was usable.
//!
//! Behind these words are the numbers of radii by [classes](RadiusCounts), which the host chooses
//! cells by. They are those of the last radii that came.

use super::gpu::GpuBackend;
use crate::{
    constants::RADIUS_CLASSES,
    error::Error,
    memory::{Buffer, HostCopy},
};

/// Values of points that were refused: the first, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedValues {
    /// The caller's index of the first.
    pub first: u32,
    /// Its value, bit for bit; `u32::MAX` for whole numbers that do not fit.
    pub bits: u32,
    /// How many.
    pub count: u64,
    /// Number of points when they were given.
    pub points: usize,
}

/// What was refused since the host last asked, by kind of data.
///
/// Only data that are still those of the set are told of by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedPointData {
    /// Radii that are out of range.
    pub radii: Option<RefusedValues>,
    /// Types that there are not.
    pub types: Option<RefusedValues>,
    /// Molecules that have no number of 32 bits.
    pub molecules: Option<RefusedValues>,
    /// Values were refused of data that were replaced or dropped since: what was computed meanwhile
    /// may have read others in their place.
    pub replaced: bool,
}

/// Classes of radii: those above a half, a fourth, … of the largest that there may be. The last has
/// all that are smaller.
pub const CLASSES: usize = RADIUS_CLASSES as usize;

/// Numbers of radii, by halvings of the largest that there may be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RadiusCounts {
    /// How many radii are in each class.
    pub points: [u32; CLASSES],
    /// The largest of them; 0 where there is none.
    pub largest: [f32; CLASSES],
}

/// The notes on the device, three words for each of radii, types and molecules.
#[derive(Debug)]
pub(super) struct RefusedData {
    words: Buffer<u64>,
    /// Where the host reads them.
    answer: Option<HostCopy<u64>>,
    /// Values were taken that the host has not looked at…
    unlooked: bool,
    /// …and whether it has asked about all of them.
    asked: bool,
    /// The data that the words tell of, by their kind.
    pub(super) of: [NotedData; KINDS],
}

/// Data that a note is about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NotedData {
    /// The stamp of the data; 0 if none came since the host last looked.
    pub(super) stamp: u64,
    /// Number of points when they were given.
    pub(super) points: usize,
    /// The largest value of their type that fits.
    pub(super) largest: u32,
    /// They are radii that are counted too.
    pub(super) counted: bool,
}

/// What the notes say, by kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    pub(super) values: [Option<RefusedValues>; KINDS],
    /// Those of the data that the values are of.
    pub(super) stamps: [u64; KINDS],
    /// Values were refused of data that were replaced since.
    pub(super) replaced: bool,
    /// The radii, if some came that were counted.
    pub(super) counts: Option<RadiusCounts>,
}

/// Kinds of data: radii, types, molecules.
const KINDS: usize = 3;

/// Words on the device for each kind.
const WORDS_OF_KIND: usize = 3;

/// Words on the device for what is refused…
const REFUSED_WORDS: usize = WORDS_OF_KIND * KINDS;

/// …and with those for numbers of radii, which are halves of words.
const WORDS: usize = REFUSED_WORDS + CLASSES;

impl Default for RefusedData {
    fn default() -> Self {
        Self {
            words: Buffer::new("notes on data of points"),
            answer: None,
            unlooked: false,
            asked: false,
            of: [NotedData::default(); KINDS],
        }
    }
}

impl RefusedData {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// The address of the words of a kind of data, which will be written to.
    pub(super) fn words_of(&mut self, backend: &GpuBackend, kind: usize) -> Result<u64, Error> {
        self.words.reserve_zeroed(&backend.stream, WORDS)?;
        (self.unlooked, self.asked) = (true, false);
        Ok(self.words.address() + (WORDS_OF_KIND * kind * size_of::<u64>()) as u64)
    }

    /// The address of the numbers of radii, which begin with 0. There are [words](Self::words_of)
    /// of some kind.
    pub(super) fn counts(&mut self, backend: &GpuBackend) -> Result<u64, Error> {
        self.words.zero(&backend.stream, REFUSED_WORDS..WORDS)?;
        Ok(self.words.address() + (REFUSED_WORDS * size_of::<u64>()) as u64)
    }

    /// Starts to bring the notes to the host.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    pub(super) fn ask(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        if !self.unlooked {
            return Ok(());
        }
        let answer = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert(backend.host_copy_of(WORDS)?),
        };
        self.words
            .start_host_copy(&backend.stream, 0, answer, WORDS)?;
        self.asked = true;
        Ok(())
    }

    /// The notes, as they were [asked for](Self::ask), which begin anew; `None` if no data came
    /// since they were last read. Waits for the device, and asks first if data came since. After an
    /// error the next call says the same.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    pub(super) fn read(&mut self, backend: &GpuBackend) -> Result<Option<Noted>, Error> {
        if !self.asked {
            self.ask(backend)?;
        }
        let Some(answer) = self.answer.as_mut().filter(|_| self.unlooked) else {
            return Ok(None);
        };
        let words = answer.read()?;
        let of = self.of;
        let kinds: [&[u64]; KINDS] = [0, 1, 2].map(|kind| &words[WORDS_OF_KIND * kind..]);
        let noted = Noted {
            values: [0, 1, 2].map(|kind| of[kind].values(kinds[kind])),
            stamps: of.map(|noted| noted.stamp),
            replaced: kinds.iter().any(|words| words[2] != 0),
            counts: (of[0].counted).then(|| RadiusCounts::of(&words[REFUSED_WORDS..])),
        };
        if words[..REFUSED_WORDS].iter().any(|&word| word != 0) {
            // First, because only the words can say it again if this fails.
            self.words.zero(&backend.stream, 0..REFUSED_WORDS)?;
        }
        (self.unlooked, self.of) = (false, Default::default());
        Ok(Some(noted))
    }
}

impl RadiusCounts {
    /// What the words say: all numbers, and then all that are the largest.
    pub(super) fn of(words: &[u64]) -> Self {
        let halves: &[u32] = bytemuck::cast_slice(words);
        Self {
            points: std::array::from_fn(|class| halves[class]),
            largest: std::array::from_fn(|class| f32::from_bits(halves[CLASSES + class])),
        }
    }
}

impl NotedData {
    /// What the words of a kind say, if values of these data were refused.
    pub(super) fn values(&self, words: &[u64]) -> Option<RefusedValues> {
        let [first, count] = [words[0], words[1]];
        let bits = !first as u32;
        (count > 0).then_some(RefusedValues {
            first: (!first >> 32) as u32,
            // A negative number of 32 bits is told of as one of 64.
            bits: if bits > self.largest { u32::MAX } else { bits },
            count,
            points: self.points,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DevicePointData;

    #[test]
    fn a_note_says_what_was_refused_of_its_data_and_forgets_no_others() {
        let words = |first: u64, value: u32| [!(first << 32 | u64::from(value)), 3, 0];
        let noted = |largest| NotedData {
            stamp: 7,
            points: 1000,
            largest,
            counted: false,
        };
        assert_eq!(noted(u32::MAX).values(&[0, 0, 1]), None);
        let (wide, narrow) = (noted(u32::MAX), noted(i32::MAX as u32));
        let refused = |bits| RefusedValues {
            first: 900,
            bits,
            count: 3,
            points: 1000,
        };
        for (noted, value, bits) in [
            (wide, 5, 5),
            (wide, -7i32 as u32, -7i32 as u32),
            (narrow, 5, 5),
            (narrow, -7i32 as u32, u32::MAX),
        ] {
            assert_eq!(noted.values(&words(900, value)), Some(refused(bits)));
        }

        let mut data = DevicePointData::default();
        data.radii.stamp = 8;
        assert!(!data.radii.forget(7) && data.radii.stamp == 8);
        assert!(data.radii.forget(8) && data.radii.stamp == 0);
        (data.molecules.stamp, data.lists_stamp) = (7, 5);
        data.forget_exclusions();
        assert!(!data.molecules.forget(7) && data.lists_stamp == 0);
    }
}

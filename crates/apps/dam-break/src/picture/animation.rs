//! A looping animation in one palette.
//!
//! Each frame stores only the rectangle that changed, and within it only the
//! pixels that did; the rest stays as it was. All frames share one palette, so
//! that a place which looks the same again is stored the same again and nothing
//! flickers. The palette needs all frames, so they are kept, as changes, until
//! the file is written at the end.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use gif::{Encoder, EncodingError, Repeat};
use nearfield_files::NewFile;
use nearfield_plot::{Picture, Pixel};
use rayon::prelude::*;

use super::palette::{Mix, Palette};
use crate::Error;

/// Number of palette entries for colours; the remaining one means "unchanged".
const COLORS: usize = 255;
/// The palette entry of unchanged pixels.
const UNCHANGED: u8 = 255;
/// Largest change of a channel that is not worth storing. It is measured from
/// the colour last stored, so that slow changes add up and are not lost.
const TOLERANCE: u8 = 3;

/// An animation that is to be written to a `.gif` file and repeats for ever. The file replaces the
/// one that is there when it is finished.
#[derive(Debug)]
pub struct Animation {
    path: PathBuf,
    file: NewFile,
    /// Time per frame, in hundredths of a second.
    delay: u16,
    /// The colours as they were when each pixel was last stored, once the first
    /// frame has set the size.
    stored: Option<Picture>,
    patches: Vec<Patch>,
}

/// The changes of one frame: new colours in a rectangle, none for pixels that
/// stay as they were.
#[derive(Debug)]
struct Patch {
    region: Region,
    pixels: Vec<Option<Pixel>>,
}

impl Animation {
    /// Creates the file. The format counts hundredths of a second and viewers
    /// slow down very short frames, so `milliseconds_per_frame` is rounded to
    /// 10 ms and at least 20 ms.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output) if the file cannot be created.
    pub fn create(path: impl AsRef<Path>, milliseconds_per_frame: u32) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let file = NewFile::create(&path).map_err(|source| Error::output(&path, source))?;
        let hundredths = milliseconds_per_frame.saturating_add(5) / 10;
        let delay = hundredths.clamp(2, u32::from(u16::MAX)) as u16;
        Ok(Self {
            path,
            file,
            delay,
            stored: None,
            patches: Vec::new(),
        })
    }

    /// Appends a frame; the first one sets the size of all. Its changes stay in
    /// memory, at most 4 bytes per pixel, until the animation is finished.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output) if the size differs from the first frame's
    /// or cannot be stored; the frames before it are kept.
    pub fn push(&mut self, picture: &Picture) -> Result<(), Error> {
        let (width, height) = (self.stored.as_ref()).map_or(picture.size(), |one| one.size());
        let storable = |length: u32| (1..=u32::from(u16::MAX)).contains(&length);
        if picture.size() != (width, height) || !storable(width) || !storable(height) {
            let (frame, (columns, rows)) = (self.patches.len(), picture.size());
            let reason = format!(
                "frame {frame} is {columns}×{rows} pixels, but the animation takes {width}×{height}, \
                 from 1 to 65535 a side"
            );
            return Err(Error::output(&self.path, reason));
        }
        let patch = match &mut self.stored {
            Some(stored) => Patch::between(stored, picture),
            None => Patch::whole(picture),
        };
        self.stored.get_or_insert_with(|| picture.clone());
        self.patches.push(patch);
        Ok(())
    }

    /// Writes the file and returns the number of frames.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output) if nothing was pushed or the file cannot be
    /// written.
    pub fn finish(mut self) -> Result<usize, Error> {
        let refused = |reason: String| Error::output(&self.path, reason);
        let Some(Patch { region: whole, .. }) = self.patches.first() else {
            return Err(refused("the animation has no frames".to_owned()));
        };
        write(&mut self.file, whole.size, &self.patches, self.delay)
            .map_err(|(frame, source)| refused(format!("frame {frame}: {source}")))?;
        let placed = self.file.finish();
        placed.map_err(|source| refused(source.to_string()))?;
        Ok(self.patches.len())
    }
}

/// Writes the whole animation; an error comes with the frame it struck.
fn write(
    file: &mut NewFile,
    size: [u16; 2],
    patches: &[Patch],
    delay: u16,
) -> Result<(), (usize, EncodingError)> {
    let counts = histogram(patches);
    let palette = Palette::new(&counts, COLORS);
    let mixes: Vec<Mix> = (counts.par_iter())
        .map(|&(color, _)| palette.mix(color))
        .collect();
    let mix = |pixel: Pixel| {
        let known = counts.binary_search_by_key(&pixel, |count| count.0);
        known.map_or_else(|_| palette.mix(pixel), |index| mixes[index])
    };
    let encoded: Vec<gif::Frame<'_>> = (patches.par_iter())
        .map(|patch| patch.encode(usize::from(size[0]), delay, mix))
        .collect();
    let at_start = |source| (0, source);
    let bytes = palette.bytes(COLORS + 1);
    let mut encoder =
        Encoder::new(BufWriter::new(file), size[0], size[1], &bytes).map_err(at_start)?;
    encoder.set_repeat(Repeat::Infinite).map_err(at_start)?;
    for (index, frame) in encoded.iter().enumerate() {
        let written = encoder.write_lzw_pre_encoded_frame(frame);
        written.map_err(|source| (index, source))?;
    }
    let flushed = encoder.into_inner().and_then(|mut file| Ok(file.flush()?));
    flushed.map_err(|source| (patches.len(), source))
}

/// How often each colour is stored, by colour.
fn histogram(patches: &[Patch]) -> Vec<([u8; 3], u32)> {
    let pixels = patches.par_iter().flat_map_iter(|patch| &patch.pixels);
    let mut colors: Vec<[u8; 3]> = pixels.flatten_iter().copied().collect();
    colors.par_sort_unstable();
    (colors.chunk_by(|one, other| one == other))
        .map(|same| (same[0], same.len() as u32))
        .collect()
}

impl Patch {
    /// All pixels of a picture.
    fn whole(picture: &Picture) -> Self {
        let size = <[u32; 2]>::from(picture.size()).map(|length| length as u16);
        Self {
            region: Region {
                corner: [0; 2],
                size,
            },
            pixels: picture.pixels().iter().copied().map(Some).collect(),
        }
    }

    /// The frame of a picture `width` pixels wide that shows these changes for `delay`, in the
    /// palette entries that `mix` returns, compressed.
    fn encode(&self, width: usize, delay: u16, mix: impl Fn(Pixel) -> Mix) -> gif::Frame<'static> {
        let pixels = self.pixels.iter().zip(self.region.cells(width));
        let entry = |(pixel, index): (&Option<Pixel>, usize)| {
            pixel.map_or(UNCHANGED, |pixel| {
                mix(pixel).at(index % width, index / width)
            })
        };
        let pixels: Vec<u8> = pixels.map(entry).collect();
        let [width, height] = self.region.size;
        let mut frame = gif::Frame::from_indexed_pixels(width, height, pixels, Some(UNCHANGED));
        ([frame.left, frame.top], frame.delay) = (self.region.corner, delay);
        frame.make_lzw_pre_encoded();
        frame
    }

    /// The pixels of `picture` that differ from `stored`, which takes them over.
    fn between(stored: &mut Picture, picture: &Picture) -> Self {
        let width = picture.size().0 as usize;
        let (new, stored) = (picture.pixels(), stored.pixels_mut());
        let changed: Vec<bool> = (new.iter().zip(&*stored))
            .map(|(&new, &old)| differs(new, old))
            .collect();
        let region = Region::around(&changed, width);
        let mut take = |index: usize| {
            stored[index] = new[index];
            new[index]
        };
        let pixels = region
            .cells(width)
            .map(|index| changed[index].then(|| take(index)))
            .collect();
        Self { region, pixels }
    }
}

/// Whether a pixel is worth storing again.
fn differs(new: Pixel, old: Pixel) -> bool {
    new.iter()
        .zip(old)
        .any(|(&new, old)| new.abs_diff(old) > TOLERANCE)
}

/// A rectangle of the picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Region {
    corner: [u16; 2],
    size: [u16; 2],
}

impl Region {
    /// The smallest rectangle around the marked pixels; one pixel if none is.
    fn around(marked: &[bool], width: usize) -> Self {
        let places = marked
            .iter()
            .enumerate()
            .filter(|(_, marked)| **marked)
            .map(|(index, _)| [index % width, index / width]);
        let start = ([usize::MAX; 2], [0; 2]);
        let (low, high) = places.fold(start, |(low, high), place| {
            (
                std::array::from_fn(|axis| place[axis].min(low[axis])),
                std::array::from_fn(|axis| place[axis].max(high[axis])),
            )
        });
        let low: [usize; 2] = std::array::from_fn(|axis| low[axis].min(high[axis]));
        Self {
            corner: low.map(|start| start as u16),
            size: std::array::from_fn(|axis| (high[axis] - low[axis] + 1) as u16),
        }
    }

    /// Indices of its pixels in a picture `width` pixels wide, row by row.
    fn cells(self, width: usize) -> impl Iterator<Item = usize> {
        let [left, top] = self.corner.map(usize::from);
        let [columns, rows] = self.size.map(usize::from);
        (top..top + rows)
            .flat_map(move |row| (left..left + columns).map(move |column| row * width + column))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A gradient of many colours with a block that depends on `step`.
    fn scene(step: u32) -> Picture {
        Picture::from_fn(64, 40, |x, y| {
            if (x / 8, y / 8) == (step, 2) {
                [250, 240, 10]
            } else {
                [x as u8 * 3, y as u8 * 5, 120]
            }
        })
    }

    /// The frames of an animation as they are shown: each is drawn over the one before.
    pub(crate) fn shown(path: &Path) -> Vec<Picture> {
        let file = std::fs::File::open(path).expect("the animation exists");
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(file).expect("it is a gif");
        let (width, height) = (decoder.width().into(), decoder.height().into());
        let (mut picture, mut shown) = (Picture::new(width, height), Vec::new());
        while let Some(frame) = decoder.read_next_frame().expect("it is whole") {
            assert_eq!(frame.dispose, gif::DisposalMethod::Keep);
            let region = Region {
                corner: [frame.left, frame.top],
                size: [frame.width, frame.height],
            };
            let pixels = frame
                .buffer
                .chunks_exact(4)
                .zip(region.cells(width as usize));
            for (pixel, place) in pixels.filter(|(pixel, _)| pixel[3] > 0) {
                picture.pixels_mut()[place].copy_from_slice(&pixel[..3]);
            }
            shown.push(picture.clone());
        }
        shown
    }

    #[test]
    fn what_was_pushed_is_what_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("moving.gif");
        let mut animation = Animation::create(&path, 40).expect("it can be created");
        (0..5).for_each(|step| animation.push(&scene(step)).expect("it fits"));
        assert_eq!(animation.finish().expect("it can be finished"), 5);
        for (step, shown) in shown(&path).iter().enumerate() {
            let error =
                |(one, other): (&Pixel, &Pixel)| (0..3).map(|c| one[c].abs_diff(other[c])).max();
            let scene = scene(step as u32);
            let pairs = shown.pixels().iter().zip(scene.pixels());
            let worst = pairs.filter_map(error).max();
            assert!(worst < Some(24), "frame {step} is off by {worst:?}");
        }
    }

    #[test]
    fn an_unchanged_frame_costs_next_to_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let length = |frames: usize| {
            let path = folder.path().join(format!("{frames}.gif"));
            let mut animation = Animation::create(&path, 40).expect("it can be created");
            (0..frames).for_each(|_| animation.push(&scene(1)).expect("it fits"));
            animation.finish().expect("it can be finished");
            assert_eq!(shown(&path).len(), frames);
            std::fs::metadata(&path).expect("it exists").len()
        };
        assert!(length(4) - length(3) < 1000);
    }

    #[test]
    fn slow_changes_are_not_lost() {
        let mut stored = Picture::from_fn(3, 3, |_, _| [10; 3]);
        let changes = |stored: &mut Picture, level: u8| {
            let mut picture = Picture::from_fn(3, 3, |_, _| [10; 3]);
            picture.pixels_mut()[5] = [10, 10, level];
            let patch = Patch::between(stored, &picture);
            patch.pixels.iter().flatten().count()
        };
        assert_eq!(changes(&mut stored, 10 + TOLERANCE), 0);
        assert_eq!(changes(&mut stored, 11 + TOLERANCE), 1);
        assert_eq!(changes(&mut stored, 12 + TOLERANCE), 0);
    }

    #[test]
    fn a_frame_of_another_size_is_refused_by_index_and_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut animation =
            Animation::create(folder.path().join("a.gif"), 40).expect("it can be created");
        animation
            .push(&scene(0))
            .expect("the first frame sets the size");
        let message = animation
            .push(&Picture::new(3, 2))
            .expect_err("it differs")
            .to_string();
        assert!(
            message.contains("frame 1") && message.contains("3×2") && message.contains("64×40"),
            "{message}"
        );
        animation.push(&scene(1)).expect("the animation goes on");
        let mut empty =
            Animation::create(folder.path().join("b.gif"), 40).expect("it can be created");
        let message = empty.push(&Picture::new(0, 2)).expect_err("it is empty");
        assert!(message.to_string().contains("0×2"), "{message}");
    }

    #[test]
    fn files_that_cannot_be_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nowhere/a.gif");
        let message = Animation::create(&path, 40)
            .err()
            .map(|error| error.to_string());
        assert!(message.is_some_and(|message| message.contains("nowhere/a.gif")));
        let empty =
            Animation::create(folder.path().join("empty.gif"), 40).expect("it can be created");
        assert!(
            empty
                .finish()
                .is_err_and(|error| error.to_string().contains("empty.gif"))
        );
    }
}

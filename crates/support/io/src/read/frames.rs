//! Formats whose files hold one frame behind the other: finding a frame, and reading all of them.
//!
//! A format says how to pass over a frame and how to read one. **Invariant others rely on:** every
//! frame is counted, a frame that the end of the file cuts off is not, and is read only if it is
//! the first, for its error.

use super::{
    lines::Lines,
    open::{check_text, no_frame},
};
use crate::{
    cloud::{Frame, Frames, PointCloud},
    error::{Fault, Parsed, Place},
};

/// What came of passing over a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// The lines are behind it.
    Frame,
    /// The file ends inside it.
    CutOff,
    /// There was none.
    Nothing,
}

/// A format of several frames.
#[derive(Clone, Copy)]
pub(super) struct FrameFormat {
    /// Passes over blank lines and the next frame; the number is that of frames before it.
    pub(super) pass: fn(&mut Lines<'_>, usize) -> Parsed<Passed>,
    /// Reads the frame at the lines.
    pub(super) read: fn(&mut Lines<'_>) -> Parsed<PointCloud>,
}

impl FrameFormat {
    /// Reads one frame and counts all.
    pub(super) fn read(self, bytes: &[u8], which: Frame) -> Parsed<PointCloud> {
        let mut found = None;
        let frames = self.count(bytes, |lines, number, complete| {
            let is_asked_for = match which {
                Frame::Number(asked) => asked == number,
                Frame::Last => complete || number == 1,
            };
            if is_asked_for {
                found = Some((lines, number));
            }
        })?;
        let Some((mut lines, number)) = found else {
            return Err(match which {
                Frame::Number(asked) if frames.count > 0 => no_frame(asked, frames.count),
                _ => Fault::malformed(Place::Line(1), "there is no frame"),
            });
        };
        let cloud = (self.read)(&mut lines)?;
        Ok(PointCloud {
            frames: Frames { number, ..frames },
            ..cloud
        })
    }

    /// Hands every complete frame to `each`, until that fails.
    pub(super) fn read_all<E>(
        self,
        bytes: &[u8],
        wrap: impl Fn(Fault) -> E,
        mut each: impl FnMut(PointCloud) -> Result<(), E>,
    ) -> Result<(), E> {
        let frames = self.count(bytes, |_, _, _| {}).map_err(&wrap)?;
        if frames.count == 0 {
            return each(self.read(bytes, Frame::FIRST).map_err(wrap)?);
        }
        let mut lines = Lines::new(bytes);
        for number in 1..=frames.count {
            let mut begin = lines;
            (self.pass)(&mut lines, number - 1).map_err(&wrap)?;
            let cloud = (self.read)(&mut begin).map_err(&wrap)?;
            each(PointCloud {
                frames: Frames { number, ..frames },
                ..cloud
            })?;
        }
        Ok(())
    }

    /// Counts frames, and shows each: its lines, its number, and whether it is complete.
    fn count<'a>(
        self,
        bytes: &'a [u8],
        mut show: impl FnMut(Lines<'a>, usize, bool),
    ) -> Parsed<Frames> {
        check_text(bytes)?;
        let mut lines = Lines::new(bytes);
        let mut frames = Frames {
            number: 0,
            count: 0,
            cut_off: false,
        };
        loop {
            let begin = lines;
            let passed = (self.pass)(&mut lines, frames.count)?;
            if passed == Passed::Nothing {
                return Ok(frames);
            }
            let complete = passed == Passed::Frame;
            show(begin, frames.count + 1, complete);
            if !complete {
                frames.cut_off = true;
                return Ok(frames);
            }
            frames.count += 1;
        }
    }
}

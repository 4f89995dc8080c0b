//! Writes the moments of a run: whole to files and pictures on rank 0, or in pieces.

use std::path::Path;

use nearfield_io::Chart;
use nearfield_sph::Simulation;

use crate::Error;
use crate::frames::Frames;
use crate::pieces::Pieces;

/// The frames of a run on one rank. All methods are collective.
pub(crate) enum Output {
    /// Whole frames and pictures; `None` on ranks but the first.
    Whole(Option<Frames>),
    /// The frames of all ranks in pieces, without pictures.
    Pieces(Box<Pieces>),
}

impl Output {
    /// Writes the walls as they are when a run begins; where it goes on, they are there already.
    pub(crate) fn write_walls(
        &self,
        simulation: &Simulation,
        directory: &Path,
        goes_on: bool,
    ) -> Result<(), Error> {
        match self {
            Self::Whole(_) => {
                let path = directory.join("wall.vtp");
                let there = goes_on && path.exists();
                Ok(simulation.write_walls((!there).then_some(&path))?)
            }
            Self::Pieces(pieces) => pieces.write_walls(simulation, goes_on),
        }
    }

    /// Removes the files of an older run, if this run writes no frame, which would remove them.
    pub(crate) fn begin_without_frames(&self) -> Result<(), Error> {
        match self {
            Self::Whole(Some(frames)) => frames.begin(),
            Self::Whole(None) => Ok(()),
            Self::Pieces(pieces) => pieces.begin(),
        }
    }

    /// Hands the present moment in as the next frame.
    pub(crate) fn push(&mut self, simulation: &Simulation) -> Result<(), Error> {
        match self {
            Self::Whole(frames) => {
                let moment = simulation.moment()?;
                frames.as_mut().map_or(Ok(()), |frames| frames.push(moment))
            }
            Self::Pieces(pieces) => pieces.push(simulation),
        }
    }

    /// Waits until all frames that were handed in are there.
    pub(crate) fn complete(&mut self, simulation: &Simulation) -> Result<(), Error> {
        match self {
            Self::Whole(Some(frames)) => frames.settle(0),
            Self::Whole(None) => Ok(()),
            Self::Pieces(pieces) => pieces.complete(simulation),
        }
    }

    /// Waits for all frames, completes the animation and the page with its charts, and returns the
    /// number of frames; 0 on ranks that write none.
    pub(crate) fn finish(self, simulation: &Simulation, charts: &[Chart]) -> Result<usize, Error> {
        match self {
            Self::Whole(Some(frames)) => frames.finish(charts),
            Self::Whole(None) => Ok(0),
            Self::Pieces(pieces) => pieces.finish(simulation),
        }
    }

    /// Ends the output of a run that has failed. A further failure here is not reported: it would
    /// hide the first. Not collective.
    pub(crate) fn keep(self, charts: &[Chart]) {
        if let Self::Whole(Some(frames)) = self {
            drop(frames.finish(charts));
        }
    }
}

//! Frames in pieces: every rank writes its own particles, and rank 0 a file that joins them.
//!
//! No particle is sent to another rank, so no rank needs memory for those of others. One thread
//! writes the pieces while the solver runs. The file that joins a frame is written at the next
//! frame, when all ranks have written their pieces.
//!
//! **Invariant:** where a joining file is, all its pieces are.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use nearfield_files::RunFolder;
use nearfield_sph::{Moment, Simulation};

use crate::names::{WALL, piece, rank_of_piece, stem};
use crate::{Error, ErrorKind};

/// Frames of one run in pieces, of one rank.
pub(crate) struct Pieces {
    directory: PathBuf,
    /// Of rank 0: whose files are in the directory.
    folder: Option<RunFolder>,
    rank: usize,
    ranks: usize,
    /// Frames handed in.
    count: usize,
    /// The thread that writes the last piece; it returns the moment without particles.
    writing: Option<JoinHandle<Result<Moment, Error>>>,
}

impl Pieces {
    /// Frames in this directory from number `first` on, whose earlier ones have to be there. Rank 0
    /// has its `folder`.
    pub(crate) fn create(
        directory: &Path,
        folder: Option<RunFolder>,
        [rank, ranks]: [usize; 2],
        first: usize,
    ) -> Result<Self, Error> {
        let pieces = Self {
            directory: directory.to_owned(),
            folder,
            rank,
            ranks,
            count: first,
            writing: None,
        };
        let earlier = 0..if rank == 0 { first } else { 0 };
        for path in earlier.map(|index| pieces.joined(index)) {
            if let Err(error) = std::fs::metadata(&path) {
                let reason = error.to_string();
                return Err(ErrorKind::Earlier { path, reason }.into());
            }
        }
        if let Some(folder) = pieces.folder.as_ref().filter(|_| first > 0) {
            folder.go_on(first)?;
        }
        Ok(pieces)
    }

    /// Writes the walls of all ranks, unless the run `goes_on` and they are there. Collective.
    pub(crate) fn write_walls(&self, simulation: &Simulation, goes_on: bool) -> Result<(), Error> {
        let joined = self.directory.join(format!("{WALL}.pvtp"));
        let there = goes_on && joined.exists();
        if !there {
            let own = self.directory.join(piece(WALL, self.rank));
            simulation.write_wall_piece(&own)?;
        }
        simulation.meet()?;
        if self.rank == 0 && !there {
            simulation.write_parallel_walls(&joined, &self.names(WALL))?;
        }
        Ok(())
    }

    /// Hands the present moment in as the next frame. Collective.
    ///
    /// # Errors
    /// The error of this or of the previous piece.
    pub(crate) fn push(&mut self, simulation: &Simulation) -> Result<(), Error> {
        self.complete(simulation)?;
        let (moment, path) = (simulation.piece()?, self.path(self.count, self.rank));
        let write = move || {
            let _span = tracing::debug_span!("beside.vtp").entered();
            let moment = moment.wait()?;
            moment.write(&path)?;
            Ok(moment.emptied())
        };
        let name = format!("piece of rank {}", self.rank);
        let started = thread::Builder::new().name(name).spawn(write);
        let thread = started.map_err(|error| ErrorKind::Threads {
            threads: 1,
            reason: error.to_string(),
        })?;
        self.writing = Some(thread);
        self.count += 1;
        Ok(())
    }

    /// Waits until the frames of all ranks are there. Collective.
    ///
    /// # Errors
    /// The error of the last piece, or of the file that joins it with the others.
    pub(crate) fn complete(&mut self, simulation: &Simulation) -> Result<(), Error> {
        let Some(thread) = self.writing.take() else {
            return Ok(());
        };
        let index = self.count - 1;
        let written = thread.join().unwrap_or_else(|_| {
            let path = self.path(index, self.rank);
            Err(Error::output(&path, "the thread that wrote it panicked"))
        });
        let moment = written?;
        simulation.meet()?;
        if self.rank == 0 {
            moment.write_parallel(&self.joined(index), &self.names(&stem(index)))?;
        }
        if index == 0 {
            self.begin()?;
            // No rank begins the next frame before.
            simulation.meet()?;
        }
        Ok(())
    }

    /// Waits until all frames are there and returns their number. Collective.
    pub(crate) fn finish(mut self, simulation: &Simulation) -> Result<usize, Error> {
        self.complete(simulation)?;
        Ok(self.count)
    }

    fn joined(&self, index: usize) -> PathBuf {
        self.directory.join(format!("{}.pvtp", stem(index)))
    }

    fn path(&self, index: usize, rank: usize) -> PathBuf {
        self.directory.join(piece(&stem(index), rank))
    }

    /// The pieces of all ranks of one file.
    fn names(&self, stem: &str) -> Vec<String> {
        (0..self.ranks).map(|rank| piece(stem, rank)).collect()
    }

    /// Removes the files of an older run, but not the walls and the pieces of frame 0, which are
    /// there.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let first = stem(0);
        Ok(folder.begin(|name| match rank_of_piece(name) {
            Some(rank) => {
                let early = name.starts_with(&first) || name.starts_with(WALL);
                early && rank < self.ranks
            }
            None => [&first, WALL]
                .iter()
                .any(|stem| name == format!("{stem}.pvtp")),
        })?)
    }
}

impl Drop for Pieces {
    /// Waits for the piece under way: no file of a run changes after its end.
    fn drop(&mut self) {
        if let Some(thread) = self.writing.take() {
            // A run that has ended for another reason has its error.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use nearfield_files::Run;

    use super::*;
    use crate::names::with_files;

    #[test]
    fn only_what_an_older_run_has_left_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = |pieces: bool| {
            let run = with_files(Run::new("dam-break"), 4, pieces);
            RunFolder::open(home.path(), run).unwrap()
        };
        let kept = [
            "frame_0000.pvtp",
            "frame_0000.rank0.vtp",
            "frame_0000.rank1.vtp",
            "wall.rank1.vtp",
            "wall.pvtp",
            "my_frame_0001.vtp",
        ];
        let [whole, in_pieces] = [
            [
                "frame_0000.vtp",
                "frame_0003.png",
                "wall.vtp",
                "dam_break.gif",
            ],
            [
                "frame_0000.rank2.vtp",
                "frame_0001.rank0.vtp",
                "wall.rank2.vtp",
                "front.csv",
            ],
        ];
        let write = |names: &[&str]| {
            (names.iter()).for_each(|name| std::fs::write(home.path().join(name), "").unwrap());
        };
        let there = |name: &&str| home.path().join(name).exists();
        for (left, pieces) in [(whole, false), (in_pieces, true)] {
            folder(pieces).begin(|_| false).unwrap();
            write(&kept);
            write(&left);
            let pieces = Pieces::create(home.path(), Some(folder(true)), [0, 2], 0).unwrap();
            pieces.begin().unwrap();
            assert!(kept.iter().all(there) && !left.iter().any(there));
        }
    }

    #[test]
    fn a_run_goes_on_where_its_frames_are() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("frame_0000.pvtp"), "").unwrap();
        assert!(Pieces::create(home.path(), None, [0, 2], 1).is_ok());
        let error = Pieces::create(home.path(), None, [0, 2], 2).err().unwrap();
        assert!(error.to_string().contains("frame_0001.pvtp"), "{error}");
        assert!(
            Pieces::create(home.path(), None, [1, 2], 2).is_ok(),
            "rank 0 looks"
        );
    }
}

//! Names of the files of frames and walls, whole and in pieces.

use nearfield_files::{Run, is_frame};

/// Extensions of the files of a frame.
const FRAME: [&str; 3] = ["vtp", "png", "pvtp"];

/// Before the extensions of the files of the walls.
pub(crate) const WALL: &str = "wall";

/// The name of a rank's piece of the file of this name.
pub(crate) fn piece(stem: &str, rank: usize) -> String {
    format!("{stem}.rank{rank}.vtp")
}

/// The rank of a piece, if this is the name of one of a frame or of the walls.
pub(crate) fn rank_of_piece(name: &str) -> Option<usize> {
    let (stem, rank) = name.strip_suffix(".vtp")?.split_once(".rank")?;
    let digits = rank.bytes().all(|byte| byte.is_ascii_digit());
    let known = stem == WALL || is_frame(&format!("{stem}.vtp"), &["vtp"]);
    if known && digits {
        rank.parse().ok()
    } else {
        None
    }
}

/// Whether a run writes files of this name, in pieces or not.
fn is_of_frames(name: &str) -> bool {
    is_frame(name, &FRAME) || rank_of_piece(name).is_some()
}

/// The names of the files of a frame begin with it.
pub(crate) fn stem(index: usize) -> String {
    format!("frame_{index:04}")
}

/// Files of a run other than frames, whole or in pieces.
const FILES: [&str; 9] = [
    "dam_break.gif",
    "energy.csv",
    "front.csv",
    "front.png",
    "index.html",
    "lost_particle.vtp",
    "probes.csv",
    "summary.json",
    "wall.vtp",
];

/// As [`FILES`], in pieces.
const FILES_IN_PIECES: [&str; 8] = [
    "energy.csv",
    "front.csv",
    "front.png",
    "lost_particle.vtp",
    "probes.csv",
    "summary.json",
    "wall.pvtp",
    "wall.rank.vtp",
];

/// Whether a run writes a file of this name, in pieces or not.
pub(crate) fn is_of_run(name: &str) -> bool {
    is_of_frames(name) || FILES.contains(&name) || FILES_IN_PIECES.contains(&name)
}

/// Says which files a run with this number of frames writes.
pub(crate) fn with_files(run: Run, frames: usize, pieces: bool) -> Run {
    if pieces {
        run.frames(frames, &["pvtp", "rank.vtp"])
            .writes(&FILES_IN_PIECES)
    } else {
        run.frames(frames, &["vtp", "png"]).writes(&FILES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pieces_are_read_as_they_are_made() {
        for (stem, rank) in [(stem(7), 0), (stem(123_456), 4095), (WALL.to_owned(), 12)] {
            assert_eq!(rank_of_piece(&piece(&stem, rank)), Some(rank));
        }
        for other in [
            "frame_12.rank0.vtp",
            "frame_0001.rank.vtp",
            "frame_0001.rank+1.vtp",
            "frame_0001.rank1.png",
            "my_wall.rank0.vtp",
            "frame_0001.vtp",
        ] {
            assert_eq!(rank_of_piece(other), None, "{other}");
        }
    }
}

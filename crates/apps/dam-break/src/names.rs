//! Names of the files of frames and walls, whole and in pieces.

use std::path::Path;

use nearfield_files::is_frame;

use crate::Error;

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
pub(crate) fn is_of_frames(name: &str) -> bool {
    is_frame(name, &FRAME) || rank_of_piece(name).is_some()
}

/// The names of the files of a frame begin with it.
pub(crate) fn stem(index: usize) -> String {
    format!("frame_{index:04}")
}

/// Removes files of a directory by their names.
pub(crate) fn remove(directory: &Path, which: impl Fn(&str) -> bool) -> Result<(), Error> {
    let unlisted = |error| Error::output(directory, error);
    for entry in std::fs::read_dir(directory).map_err(unlisted)? {
        let path = entry.map_err(unlisted)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if which(name.unwrap_or_default()) {
            std::fs::remove_file(&path).map_err(|error| Error::output(&path, error))?;
        }
    }
    Ok(())
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

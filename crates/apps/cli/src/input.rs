//! Reads one frame of a particle file, and lists on standard error what was not read.

use crate::{failure::Failure, output::notice};
use nearfield_io::{Frame, PointCloud, PointData, read_frame};
use std::path::Path;

/// The flag that chooses a frame.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct FrameOption {
    /// Frame of a file of several, as trajectories are: its number, counted from 1, or last
    /// [default: the first]
    #[arg(long, value_name = "N|last")]
    pub(crate) frame: Option<Frame>,
}

impl FrameOption {
    /// Reads the frame. Standard error gets its number, the number of frames, and a list of what
    /// the
    /// reader skipped.
    pub(crate) fn read(self, path: &Path) -> Result<PointCloud, Failure> {
        let cloud = read_frame(path, self.frame.unwrap_or(Frame::FIRST))?;
        let frames = cloud.frames;
        if frames.count > 1 || frames.cut_off {
            let cut = if frames.cut_off {
                " (another one is truncated)"
            } else {
                ""
            };
            let remedy = if self.frame.is_none() {
                "; select another by --frame N or --frame last"
            } else {
                ""
            };
            notice(format_args!(
                "{}: read frame {} of {}{cut}{remedy}",
                path.display(),
                frames.number,
                frames.count
            ));
        }
        for note in &cloud.notes {
            notice(format_args!("{}: {note}", path.display()));
        }
        Ok(cloud)
    }
}

/// Names of columns and quantities that commands understand, by meaning. Upper
/// and lower case are the same.
pub(crate) const VELOCITY: &[&str] = &["velo", "vel", "velocity", "velocities"];
/// Momenta, as ASE writes them.
pub(crate) const MOMENTUM: &[&str] = &["momenta", "momentum"];
/// Masses.
pub(crate) const MASS: &[&str] = &["mass", "masses", "m"];
/// Charges.
pub(crate) const CHARGE: &[&str] = &["charge", "charges", "q", "initial_charges"];
/// Velocities and momenta in tables, a column for each axis.
pub(crate) const VELOCITY_COLUMNS: [&str; 3] = ["vx", "vy", "vz"];
/// Momenta in tables.
pub(crate) const MOMENTUM_COLUMNS: [&str; 3] = ["px", "py", "pz"];

/// Names whose meaning is known and that no command could use.
const OTHERS: &[&str] = &[
    "acceleration",
    "alpha",
    "b",
    "blue",
    "color",
    "colour",
    "density",
    "energies",
    "fluid_id",
    "force",
    "forces",
    "fx",
    "fy",
    "fz",
    "g",
    "green",
    "id",
    "ids",
    "idp",
    "index",
    "intensity",
    "kind",
    "label",
    "mk",
    "name",
    "normal",
    "normals",
    "nx",
    "ny",
    "nz",
    "particle_id",
    "press",
    "pressure",
    "r",
    "red",
    "rho",
    "rhop",
    "species",
    "tag",
    "type",
];

/// Maximum number of names in a message.
const SHOWN: usize = 8;

/// Lists on standard error the columns that this command could have used but did not: those of
/// unknown meaning, and those of `wanted` meanings that are not among the `used` ones.
pub(crate) fn notice_unused<'a>(
    path: &Path,
    names: impl IntoIterator<Item = &'a str>,
    used: &[&str],
    wanted: &[&str],
) {
    let among = |list: &[&str], name: &str| list.iter().any(|one| one.eq_ignore_ascii_case(name));
    let of_vectors = [VELOCITY_COLUMNS, MOMENTUM_COLUMNS];
    let known = |name: &str| {
        [VELOCITY, MOMENTUM, MASS, CHARGE, OTHERS]
            .iter()
            .any(|list| among(list, name))
            || of_vectors.iter().any(|list| among(list, name))
    };
    let is_told = |name: &&str| !among(used, name) && (!known(name) || among(wanted, name));
    let told: Vec<&str> = names.into_iter().filter(is_told).collect();
    if told.is_empty() {
        return;
    }
    let mut list: Vec<_> = told
        .iter()
        .take(SHOWN)
        .map(|name| format!("'{}'", name.escape_debug()))
        .collect();
    if told.len() > SHOWN {
        list.push(format!("{} more", told.len() - SHOWN));
    }
    let known = if told.iter().all(|name| known(name)) || wanted.is_empty() {
        String::new()
    } else {
        format!("; known are {}", wanted.join(", "))
    };
    notice(format_args!(
        "{}: not used: {}{known}",
        path.display(),
        list.join(", ")
    ));
}

/// The names of all columns of a cloud except the coordinates.
pub(crate) fn names(cloud: &PointCloud) -> impl Iterator<Item = &str> {
    let data = cloud.data.iter().map(PointData::name);
    data.chain(cloud.unread.iter().map(String::as_str))
}

/// The first of these names that a column of the cloud has, also one that the reader left out.
pub(crate) fn find_name<'a>(cloud: &PointCloud, wanted: &[&'a str]) -> Option<&'a str> {
    let has = |one: &&str| names(cloud).any(|name| name.eq_ignore_ascii_case(one));
    wanted.iter().copied().find(has)
}

/// The quantity of the first of these names that the cloud has.
pub(crate) fn quantity<'a>(
    cloud: &'a PointCloud,
    names: &[&str],
) -> Option<&'a PointData<'static>> {
    names.iter().find_map(|name| {
        let mut data = cloud.data.iter();
        data.find(|data| data.name().eq_ignore_ascii_case(name))
    })
}

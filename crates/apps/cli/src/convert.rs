//! `nearfield convert`: a particle file in another format.

use crate::{
    failure::Failure,
    files::{check_extension, extension},
    input::FrameOption,
    output::{self, notice},
};
use nearfield_files::Plan;
use nearfield_io::{FrameWriter, PointCloud, for_each_frame, write_cloud, write_frames};
use serde::Serialize;
use std::path::PathBuf;

/// Flags of `nearfield convert`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Points, in any format that is read; .gz and .zst may follow
    from: PathBuf,
    /// File to write: .extxyz, .xyz, .csv, .vtp or .npy
    to: PathBuf,
    /// Frame of a file of several: its number, counted from 1, last, or all, into an .extxyz or
    /// .xyz [default: the first]
    #[arg(long, value_name = "N|last|all")]
    frame: Option<Which>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    All,
    One(nearfield_io::Frame),
}

impl std::str::FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            _ => text
                .parse()
                .map(Self::One)
                .map_err(|error: String| error + ", or all"),
        }
    }
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        plan.read(&self.from);
        plan.write("the second file", &self.to);
    }
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    /// Points of all frames that were written.
    points: usize,
    frames: usize,
    /// What the format cannot hold.
    lost: Vec<String>,
}

impl Summary {
    fn add(&mut self, cloud: &PointCloud, lost: Vec<String>) {
        self.points += cloud.len();
        self.frames += 1;
        for name in lost {
            if !self.lost.contains(&name) {
                self.lost.push(name);
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check_extension(&args.to, "clouds", &["extxyz", "xyz", "csv", "vtp", "npy"])?;
    let mut summary = Summary::default();
    match args.frame {
        Some(Which::All) if !["xyz", "extxyz"].contains(&extension(&args.to).as_str()) => {
            return Err(Failure::Usage(format!(
                "{}: only .extxyz and .xyz hold several frames: name such a file, or choose a frame \
                 by --frame N",
                args.to.display()
            )));
        }
        Some(Which::All) => write_frames(&args.to, |frames| all(args, frames, &mut summary))?,
        frame => {
            let frame = frame.and_then(|which| match which {
                Which::One(frame) => Some(frame),
                Which::All => None,
            });
            let cloud = FrameOption { frame }.read(&args.from)?;
            let lost = write_cloud(&args.to, &cloud)?;
            summary.add(&cloud, lost);
        }
    }
    if !summary.lost.is_empty() {
        let lost = summary.lost.join(", ");
        notice(format_args!("{}: not written: {lost}", args.to.display()));
    }
    output::print(args.json, &summary, || {
        [
            format!("points      {}", summary.points),
            format!("frames      {}", summary.frames),
            output::wrote(&args.to),
        ]
    })
}

/// Writes all frames, and says once what the reader says of each.
fn all(args: &Args, frames: &mut FrameWriter<'_>, summary: &mut Summary) -> Result<(), Failure> {
    let mut told: Vec<String> = Vec::new();
    let mut cut_off = false;
    for_each_frame(&args.from, |cloud| {
        for note in cloud.notes.iter().filter(|note| !told.contains(note)) {
            notice(format_args!("{}: {note}", args.from.display()));
        }
        told.clone_from(&cloud.notes);
        cut_off |= cloud.frames.cut_off;
        let lost = frames.add(&cloud)?;
        summary.add(&cloud, lost);
        Ok::<(), Failure>(())
    })?;
    if cut_off {
        notice(format_args!(
            "{}: one more frame is truncated and left out",
            args.from.display()
        ));
    }
    Ok(())
}

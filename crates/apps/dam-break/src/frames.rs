//! Writes the moments of a run: particles, pictures, the animation and the page.
//!
//! The solver hands in each moment and continues. Each thread takes one frame. If many frames wait,
//! each thread draws its frame alone. If few wait, their loops run in a shared pool, so that even a
//! single frame uses all threads. Many frames in one pool would delay each other: a pool thread
//! that waits for a part of its frame would start another whole frame and return to its own only
//! after that. The memory of unfinished frames is bounded, which limits how far the solver runs
//! ahead.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use glam::DVec3;
use indicatif::HumanCount;
use rayon::ThreadPool;

use nearfield_files::{Reserve, RunFolder};
use nearfield_io::{Chart, ViewFrame, ViewWriter};
use nearfield_plot::Picture;
use nearfield_sph::{Dimensions, Moment, PendingMoment};

use crate::names::stem;
use crate::page::Page;
use crate::picture::{Animation, Brush, Frame, Up, View};
use crate::scene::Scene;
use crate::units::Units;
use crate::{Error, ErrorKind};

/// Width and height of the pictures, pixels.
const PICTURE: (u32, u32) = (1280, 720);

/// How many times wider and higher the pictures are than the animation.
const REDUCTION: u32 = 2;

/// Time per frame of the animation, milliseconds.
const FRAME_MS: u32 = 60;

/// Frames for which the animation shows the last moment.
const HOLD: usize = 12;

/// Radius of the drawn particles in spacings: they overlap, as water has no
/// gaps.
const RADIUS: f32 = 0.6;

/// Maximum bytes of particles in all unfinished frames. [`MIN_UNFINISHED`] frames are always
/// allowed.
const MAX_UNFINISHED_BYTES: usize = 256 << 20;

/// Number of unfinished frames that are always allowed: one is written and one waits.
const MIN_UNFINISHED: usize = 2;

/// Maximum number of frames that are drawn at a time: each takes some 45 MB.
const MAX_DRAWN: usize = 16;

/// Maximum number of unfinished frames of any size.
const MAX_UNFINISHED: usize = 64;

/// Bytes that a thread takes to draw a frame.
const DRAWING: usize = 45 << 20;

/// Bytes of the scenery, which the first frame draws for all.
const SCENERY: usize = 24 << 20;

/// The use of the memory set aside: libraries that draw and encode pictures abort the process if
/// memory is refused.
const TO_DRAW: &str = "drawing frames (--pieces draws none)";

/// Writes frames of one run into a directory, on its own threads while the solver runs.
///
/// [`push`](Self::push) queues a moment and returns; it waits only if too many frames are
/// unfinished. An error of a frame is returned by the next `push` or by [`finish`](Self::finish).
pub(crate) struct Frames {
    writer: Arc<Writer>,
    pool: Arc<ThreadPool>,
    /// Frames to be written, with their numbers.
    waiting: Sender<(usize, PendingMoment)>,
    /// Number of frames handed in.
    count: usize,
    /// Number of frames whose outcome has not been taken from `results`.
    unfinished: usize,
    results: Receiver<Outcome>,
}

type Outcome = Result<(), Error>;

impl Frames {
    /// Frames of the scene with these numbers, drawn with `threads` threads, at least one. The
    /// files of an older run in the `folder` are removed when frame 0 is written. Frames before the
    /// first must exist, and are added to the animation and the page.
    pub(crate) fn create(
        directory: &Path,
        folder: RunFolder,
        scene: &Scene,
        threads: usize,
        numbers: Range<usize>,
    ) -> Result<Self, Error> {
        let first = numbers.start;
        let drawers = threads.min(MAX_DRAWN);
        let reserve =
            Reserve::of(drawers * DRAWING + SCENERY, TO_DRAW).map_err(ErrorKind::Memory)?;
        let refused = |reason| ErrorKind::Threads { threads, reason };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("frames-{index}"))
            .start_handler(|_| Reserve::serve_this_thread())
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let writer = Writer {
            directory: directory.to_owned(),
            folder,
            scene: scene.clone(),
            page: Page::new(directory, scene, numbers.end),
            strip: Mutex::default(),
            drawn: AtomicUsize::new(0),
            reserve: Mutex::new(Some(reserve)),
        };
        for index in 0..first {
            let small = earlier(writer.path(index, "png"))?.reduced(REDUCTION);
            let points = writer.page.earlier(&writer.path(index, "vtp"))?;
            writer
                .strip()
                .add(index, Drawn { small, points }, &writer)?;
        }
        if first > 0 {
            writer.folder.go_on(first)?;
        }
        let (writer, pool) = (Arc::new(writer), Arc::new(pool));
        let (waiting, frames) = crossbeam_channel::unbounded();
        let (done, results) = crossbeam_channel::unbounded();
        let brush = Brush::default();
        for index in 0..drawers {
            let (writer, pool, brush) = (writer.clone(), pool.clone(), brush.for_thread());
            let (frames, done) = (frames.clone(), done.clone());
            let thread = thread::Builder::new().name(format!("frame-{index}"));
            // It ends with the sender of frames.
            let begun = thread.spawn(move || writer.write_all(brush, &frames, &done, &pool));
            begun.map_err(|error| refused(error.to_string()))?;
        }
        Ok(Self {
            writer,
            pool,
            waiting,
            count: first,
            unfinished: 0,
            results,
        })
    }

    /// Removes the files of an older run.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.writer.begin()
    }

    /// Hands in the next frame.
    ///
    /// # Errors
    /// The error of an earlier frame; this frame is then skipped.
    pub(crate) fn push(&mut self, moment: PendingMoment) -> Result<(), Error> {
        // The first frame removes those of an earlier run: no other may be written before that.
        let room = match self.count {
            1 => 0,
            _ => max_unfinished(moment.bytes()) - 1,
        };
        self.settle(room)?;
        // The threads take frames as long as the sender is there.
        let _ = self.waiting.send((self.count, moment));
        self.count += 1;
        self.unfinished += 1;
        Ok(())
    }

    /// Waits until at most `room` frames are unfinished; returns the first error there was.
    pub(crate) fn settle(&mut self, room: usize) -> Result<(), Error> {
        let mut all = Ok(());
        while self.unfinished > 0 {
            let outcome = if self.unfinished > room {
                self.results.recv().ok()
            } else {
                self.results.try_recv().ok()
            };
            let Some(outcome) = outcome else { break };
            self.unfinished -= 1;
            all = all.and(outcome);
        }
        all
    }

    /// Waits for all frames, completes the animation and the page with its charts, and returns the
    /// number of frames.
    ///
    /// # Errors
    /// The error of a frame, of the animation or of the page.
    pub(crate) fn finish(mut self, charts: &[Chart]) -> Result<usize, Error> {
        let settled = self.settle(0);
        let strip = std::mem::take(&mut *self.writer.strip());
        let span = tracing::debug_span!("beside.animation");
        let finished = self.pool.install(|| span.in_scope(|| strip.finish(charts)));
        // Frees it for later work.
        drop(self.writer.reserve().take());
        settled.and(finished).map(|()| self.count)
    }
}

impl Drop for Frames {
    /// Waits for the frames under way: no file of a run changes after its end.
    fn drop(&mut self) {
        let _ = self.settle(0);
    }
}

/// Maximum number of unfinished frames that hold `bytes` bytes of particles each.
fn max_unfinished(bytes: usize) -> usize {
    (MAX_UNFINISHED_BYTES / bytes.max(1)).clamp(MIN_UNFINISHED, MAX_UNFINISHED)
}

/// State that the writing threads share.
struct Writer {
    directory: PathBuf,
    /// Whose files are in the directory.
    folder: RunFolder,
    scene: Scene,
    page: Page,
    strip: Mutex<Strip>,
    /// Frames that threads have taken and not finished.
    drawn: AtomicUsize,
    /// Reserve memory for drawing if the system refuses any, until all frames are drawn.
    reserve: Mutex<Option<Reserve>>,
}

impl Writer {
    fn path(&self, index: usize, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", stem(index)))
    }

    fn animation(&self) -> PathBuf {
        self.directory.join("dam_break.gif")
    }

    fn strip(&self) -> MutexGuard<'_, Strip> {
        self.strip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self) -> MutexGuard<'_, Option<Reserve>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the files of an older run, except the walls and frame 0, which are new.
    fn begin(&self) -> Result<(), Error> {
        let first = ["vtp", "png"].map(|extension| format!("{}.{extension}", stem(0)));
        let kept = |name: &str| name == "wall.vtp" || first.iter().any(|own| name == own);
        Ok(self.folder.begin(kept)?)
    }

    /// Writes frames until the channel closes: alone, or with all threads of `pool` if few frames
    /// wait.
    fn write_all(
        &self,
        mut brush: Brush,
        frames: &Receiver<(usize, PendingMoment)>,
        done: &Sender<Outcome>,
        pool: &ThreadPool,
    ) {
        Reserve::serve_this_thread();
        // Its only thread is this one, so loops outside of `pool` run here.
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1);
        let alone = alone.use_current_thread().build();
        for (index, moment) in frames {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed) + 1;
            let few = 2 * (frames.len() + drawn) <= pool.current_num_threads();
            let written = catch_unwind(AssertUnwindSafe(|| {
                if let Err(error) = &alone {
                    let (threads, reason) = (1, error.to_string());
                    return Err(ErrorKind::Threads { threads, reason }.into());
                }
                let moment = moment.wait()?;
                let mut write = || self.write(index, &moment, &mut brush);
                if few { pool.install(write) } else { write() }?;
                self.check_memory()
            }));
            self.drawn.fetch_sub(1, Ordering::Relaxed);
            let outcome = written.unwrap_or_else(|_| {
                let path = self.path(index, "*");
                Err(Error::output(&path, "the thread that wrote it panicked"))
            });
            // A run that has ended takes it no more.
            let _ = done.send(outcome);
        }
    }

    /// Ends the run if a frame was drawn in the reserve, which may not suffice for the next one.
    fn check_memory(&self) -> Result<(), Error> {
        if !(self.reserve().as_ref()).is_some_and(Reserve::was_used) {
            return Ok(());
        }
        let message = format!("out of memory for {TO_DRAW}; raise the limit (ulimit -v)");
        let error = std::io::Error::new(std::io::ErrorKind::OutOfMemory, message);
        Err(ErrorKind::Memory(error).into())
    }

    /// Writes one frame and adds it to the animation and the page.
    fn write(&self, index: usize, moment: &Moment, brush: &mut Brush) -> Result<(), Error> {
        let (particles, small) = rayon::join(
            || {
                let _span = tracing::debug_span!("beside.vtp").entered();
                moment.write(&self.path(index, "vtp"))?;
                self.page.frame(moment)
            },
            || {
                let picture = draw(&self.scene, moment, brush);
                let _span = tracing::debug_span!("beside.png").entered();
                save(&picture, &self.path(index, "png"))?;
                Ok::<_, Error>(picture.reduced(REDUCTION))
            },
        );
        let (points, small) = (particles?, small?);
        if index == 0 {
            self.begin()?;
        }
        self.strip().add(index, Drawn { small, points }, self)
    }
}

/// What a frame adds to the files of all frames.
struct Drawn {
    /// For the animation.
    small: Picture,
    /// For the page.
    points: ViewFrame,
}

/// The animation and the page, to which frames are added in their order, whatever order they come
/// in.
#[derive(Default)]
struct Strip {
    /// Begun with the first frame.
    files: Option<(Animation, ViewWriter)>,
    last: Option<Picture>,
    /// Frames in the files.
    count: usize,
    /// Frames that came before their turn.
    early: BTreeMap<usize, Drawn>,
}

impl Strip {
    fn add(&mut self, index: usize, drawn: Drawn, writer: &Writer) -> Result<(), Error> {
        self.early.insert(index, drawn);
        while let Some(Drawn { small, points }) = self.early.remove(&self.count) {
            let (animation, page) = match &mut self.files {
                Some(files) => files,
                none => {
                    let animation = Animation::create(writer.animation(), FRAME_MS)?;
                    none.insert((animation, writer.page.create()?))
                }
            };
            animation.push(&small)?;
            page.push(&points)?;
            self.last = Some(small);
            self.count += 1;
        }
        Ok(())
    }

    /// Completes both files. Frames after one that failed are not in them.
    fn finish(self, charts: &[Chart]) -> Result<(), Error> {
        let (Some((mut animation, page)), Some(last)) = (self.files, self.last) else {
            return Ok(());
        };
        page.finish(charts)?;
        for _ in 0..HOLD {
            animation.push(&last)?;
        }
        animation.finish()?;
        Ok(())
    }
}

/// Reads the picture of a frame that was written before the run was continued.
fn earlier(path: PathBuf) -> Result<Picture, Error> {
    let picture = Picture::read_png(&path).map_err(|error| error.to_string());
    let picture = picture.and_then(|picture| match (picture.size(), PICTURE) {
        (size, expected) if size == expected => Ok(picture),
        ((width, height), (columns, rows)) => Err(format!(
            "the picture has {width}×{height} pixels, not {columns}×{rows}"
        )),
    });
    picture.map_err(|reason| ErrorKind::Earlier { path, reason }.into())
}

/// Writes a picture as a PNG file.
fn save(picture: &Picture, path: &Path) -> Result<(), Error> {
    let written = (picture.to_png()).and_then(|bytes| nearfield_files::write(path, bytes));
    written.map_err(|error| Error::output(path, error))
}

/// The picture of a moment.
fn draw(scene: &Scene, moment: &Moment, brush: &mut Brush) -> Picture {
    let _span = tracing::debug_span!("beside.draw").entered();
    let config = moment.config();
    let (up, view, place) = match scene.dimensions {
        Dimensions::Two => (Up::Y, View::Side2d, "the plane"),
        Dimensions::Three => (Up::Z, View::Perspective3d, "space"),
    };
    let seen = |corner: DVec3| match scene.dimensions {
        Dimensions::Two => [corner.x, corner.z, corner.y].map(|length| length as f32),
        Dimensions::Three => corner.as_vec3().to_array(),
    };
    let obstacles: Vec<[[f32; 3]; 2]> = (scene.obstacles.iter())
        .map(|block| [seen(block.low), seen(block.high)])
        .collect();
    let count = HumanCount(moment.ids().len() as u64);
    let fall = (2.0 * scene.gravity * scene.depth()).sqrt();
    Frame {
        positions: bytemuck::cast_slice(moment.positions()),
        velocities: bytemuck::cast_slice(moment.velocities()),
        particle_radius: RADIUS * config.spacing,
        tank: seen(scene.tank),
        obstacles: &obstacles,
        up,
        view,
        time_s: moment.time(),
        dimensionless_time: Units::of(scene).scaled_time(moment.time()),
        top_speed: fall.round().max(1.0) as f32,
        caption: &format!("{count} particles in {place}"),
    }
    .render_with(PICTURE.0, PICTURE.1, brush)
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;
    use crate::names::with_files;
    use crate::picture::shown;
    use nearfield_files::Run;
    use nearfield_sph::Simulation;

    fn column() -> Scene {
        Scene::column(Dimensions::Two)
    }

    fn simulation() -> Simulation {
        let builder = column().builder(column().spacing_for(128)).unwrap();
        builder.threads(1).build().unwrap()
    }

    fn folder(directory: &Path, frames: usize) -> RunFolder {
        let run = with_files(Run::new("dam-break"), frames, false);
        RunFolder::open(directory, run).unwrap()
    }

    fn frames_in(directory: &Path, threads: usize) -> Frames {
        Frames::create(directory, folder(directory, 99), &column(), threads, 0..99).unwrap()
    }

    /// The present moment, which is there once `gate` is closed.
    fn gated(simulation: &Simulation, gate: Receiver<()>) -> PendingMoment {
        let moment = simulation.moment().unwrap().wait().unwrap();
        PendingMoment::new(moment.ids().len(), move || {
            let _ = gate.recv();
            Ok(moment)
        })
    }

    #[test]
    fn frames_stand_in_order_whatever_order_they_are_done_in() {
        let directory = tempfile::tempdir().unwrap();
        let mut simulation = simulation();
        let mut frames = frames_in(directory.path(), 3);
        frames.push(simulation.moment().unwrap()).unwrap();
        // Pushing does not wait for frame 1, which is done after the last.
        let (open, gate) = bounded(0);
        for frame in 1..8 {
            simulation.step().unwrap();
            let moment = match frame {
                1 => gated(&simulation, gate.clone()),
                _ => simulation.moment().unwrap(),
            };
            frames.push(moment).unwrap();
        }
        while !directory.path().join("frame_0007.png").exists() {
            std::thread::yield_now();
        }
        drop(open);
        assert_eq!(frames.finish(&[]).unwrap(), 8);

        let shown = shown(&directory.path().join("dam_break.gif"));
        assert_eq!(shown.len(), 8 + HOLD);
        for (index, shown) in shown.iter().take(8).enumerate() {
            let name = format!("frame_{index:04}.png");
            let small = earlier(directory.path().join(name))
                .unwrap()
                .reduced(REDUCTION);
            let pairs = shown.pixels().iter().zip(small.pixels());
            let off = pairs.filter(|(one, other)| {
                (0..3).any(|channel| one[channel].abs_diff(other[channel]) > 40)
            });
            assert!(off.count() < 100, "frame {index} is another one");
        }
    }

    #[test]
    fn an_earlier_frame_of_another_size_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frame_0000.png");
        save(&Picture::new(640, 720), &path).unwrap();
        let folder = folder(directory.path(), 9);
        let refused = Frames::create(directory.path(), folder, &column(), 1, 1..9).err();
        let message = refused.unwrap().to_string();
        let expected = "frame_0000.png: the picture has 640×720 pixels, not 1280×720;";
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn an_error_of_a_writer_reaches_the_run_with_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let simulation = simulation();
        let mut frames = frames_in(directory.path(), 2);
        frames.push(simulation.moment().unwrap()).unwrap();
        frames.settle(0).unwrap();
        std::fs::create_dir(directory.path().join("frame_0001.vtp")).unwrap();
        frames.push(simulation.moment().unwrap()).unwrap();
        let mut error = None;
        while error.is_none() {
            error = frames.push(simulation.moment().unwrap()).err();
        }
        let error = error.unwrap().to_string();
        assert!(error.contains("frame_0001.vtp"), "{error}");

        // The last frame's error is not lost either, and the animation ends before it.
        let last = frames.count;
        std::fs::create_dir(directory.path().join(format!("frame_{last:04}.png"))).unwrap();
        frames.push(simulation.moment().unwrap()).unwrap();
        let error = frames.finish(&[]).unwrap_err().to_string();
        assert!(error.contains(&format!("frame_{last:04}.png")), "{error}");
        assert!(directory.path().join("dam_break.gif").is_file());
    }

    #[test]
    fn a_writer_that_panics_fails_the_run_and_does_not_hang_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut frames = frames_in(directory.path(), 1);
        let panics = PendingMoment::new(128, || panic!("a mistake"));
        frames.push(panics).unwrap();
        let error = frames.push(simulation().moment().unwrap()).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
        assert_eq!(frames.finish(&[]).unwrap(), 1);
    }

    #[test]
    fn large_frames_wait_for_each_other_and_small_ones_may_queue() {
        let frames_of = |particles: usize| max_unfinished(32 * particles);
        assert_eq!(frames_of(0), MAX_UNFINISHED);
        assert_eq!(frames_of(65_536), MAX_UNFINISHED);
        assert_eq!(frames_of(1 << 20), 8);
        assert_eq!(frames_of(50_000_000), MIN_UNFINISHED);
        let directory = tempfile::tempdir().unwrap();
        let simulation = simulation();
        let mut frames = frames_in(directory.path(), 1);
        frames.push(simulation.moment().unwrap()).unwrap();
        let large = || {
            let moment = simulation.moment().unwrap().wait().unwrap();
            PendingMoment::new(50_000_000, || Ok(moment))
        };
        for _ in 0..6 {
            frames.push(large()).unwrap();
            assert!(frames.unfinished <= MIN_UNFINISHED);
        }
        assert_eq!(frames.finish(&[]).unwrap(), 7);
    }

    #[test]
    fn only_files_of_an_older_run_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let foreign = ["frame_12.png", "frame_0001.txt", "my_frame_0001.vtp"];
        foreign
            .iter()
            .for_each(|name| std::fs::write(at(name), "").unwrap());
        let simulation = simulation();
        let write = |frames: usize| {
            let folder = folder(directory.path(), frames);
            let mut to = Frames::create(directory.path(), folder, &column(), 1, 0..frames).unwrap();
            for _ in 0..frames {
                to.push(simulation.moment().unwrap()).unwrap();
            }
            to.finish(&[]).unwrap();
        };
        write(4);
        let own = ["energy.csv", "summary.json"];
        own.iter()
            .for_each(|name| std::fs::write(at(name), "").unwrap());
        write(2);
        assert!(foreign.iter().all(|name| at(name).exists()));
        assert!(!own.iter().any(|name| at(name).exists()));
        assert!(at("frame_0001.png").exists() && !at("frame_0002.vtp").exists());
        std::fs::write(at("frame_0003.png"), "").unwrap();
        let run = with_files(Run::new("dam-break"), 2, false);
        assert!(RunFolder::open(directory.path(), run).is_err());
    }
}

//! [`Device::Auto`](crate::Device::Auto): begins on the CPU backend and takes a GPU in when it is
//! ready.
//!
//! Starting a GPU takes longer than searching a million points. So a program that searches once
//! does not wait for it: the start begins at the second step, on a thread of its own, while the CPU
//! backend goes on. Once it has succeeded both backends share the steps, and a GPU that does not
//! pay gets nothing to do.
//!
//! A step never waits for the GPU. The thread also compiles its programs and page-locks memory, by
//! [rehearsing](super::rehearsal) the jobs that the engine has done. The engine looks at the thread
//! before it places new positions: a step that begins before the GPU is ready is a step of the CPU
//! backend, and so is one before jobs that are new meanwhile were rehearsed too. A GPU that cannot
//! be started is not an error, and is not tried again.

use super::{
    later::{LaterGpu, Rehearsed, StartingGpu, start_gpu},
    rehearsal::Rehearsal,
};
use crate::{
    Engine, Error,
    backend::{accelerator::Accelerator, split::Split},
};

/// Points from which a GPU may pay.
const WORTH_A_GPU: usize = 10_000;

impl Engine {
    /// Begins to start a GPU, or takes it in, when the time has come: before new positions of a set
    /// are placed.
    ///
    /// Called by updates, not when sets are added: a program that searches once never starts a GPU.
    /// The points counted are those of all sets before the update. Sets come to the new device as
    /// their positions are placed.
    pub(crate) fn take_gpu_in(&mut self) {
        let points = self.extents.all().points;
        match self.later.take() {
            Some(LaterGpu::Possible) if points >= WORTH_A_GPU => {
                let (turn, strategy) = (self.settings.turn, self.settings.strategy);
                self.begin_gpu(move || start_gpu(turn, strategy));
            }
            Some(LaterGpu::Starting(starting)) if starting.is_ready() => self.take_in(starting),
            later => self.later = later,
        }
    }

    /// Begins to `start` a GPU on a thread of its own, and to rehearse there.
    pub(super) fn begin_gpu(
        &mut self,
        start: impl FnOnce() -> Result<Box<dyn Accelerator>, String> + Send + 'static,
    ) {
        let begun = Rehearsal::of(self).map_err(|error| error.to_string());
        let begun = begun.and_then(|rehearsal| {
            StartingGpu::begin(move |stop| start().and_then(|gpu| rehearsal.run(gpu, stop)))
        });
        match begun {
            Ok(starting) => self.later = Some(LaterGpu::Starting(starting)),
            Err(error) => self.do_without_gpu(&error),
        }
    }

    /// Takes in a GPU that was started; blocks until it is.
    ///
    /// If the engine has done jobs that were not rehearsed, these are first, and the GPU is taken
    /// in later.
    fn take_in(&mut self, starting: StartingGpu) {
        let rehearsed = match starting.wait() {
            Ok(rehearsed) => rehearsed,
            Err(error) => return self.do_without_gpu(&error),
        };
        let jobs = self.jobs_to_rehearse();
        if jobs.iter().any(|one| !rehearsed.jobs.contains(&one.job)) {
            // The memory is dropped there too, which takes as long as making it.
            return self.begin_gpu(move || Ok(rehearsed.into_device()));
        }
        let Rehearsed {
            mut device,
            copies,
            lists,
            ..
        } = rehearsed;
        for (set, copies) in self.sets.iter_mut().zip(copies) {
            set.spare_copies = copies;
        }
        for (pair, lists) in lists {
            self.pairs.spare_lists(pair, lists);
        }
        // It has the cells of the rehearsal.
        device.outdate();
        let note = self.settings.rates_note(&*device, self.backend.threads());
        self.accelerator = Some(device);
        self.split = Some(Split::new(self.settings.division(), note));
        self.undelivered = true;
        self.reason = "a GPU is there; the backends' times decide who does what".into();
        self.announce();
    }

    /// Stays on the CPU backend for good, and says why in the report and the trace.
    fn do_without_gpu(&mut self, why: &str) {
        self.reason = format!("the CPU backend: the GPU cannot be used: {why}").into();
        self.announce();
    }

    /// Makes ready now what later steps would otherwise make when they first need it: the GPU of
    /// [`Device::Auto`](crate::Device::Auto), compiled programs, and page-locked memory. Blocks
    /// until all of it is there, about a second with a GPU that has never been used.
    ///
    /// What is made ready are the jobs that the engine has done so far, so that a program calls it
    /// after its first step; before any job it is the lists of all active pairs of sets. Results
    /// are dropped, and lists that are current stay. Without a GPU, or with fewer than 10,000
    /// points under `Device::Auto`, there is nothing to make ready.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0]])?;
    /// engine.find_neighbors()?;
    /// engine.warm_up()?;
    /// assert_eq!(engine.neighbors(points, points)?.of(0), &[1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the jobs. A GPU that cannot be used is not an error under `Device::Auto`: the
    /// report says why.
    pub fn warm_up(&mut self) -> Result<(), Error> {
        self.usable()?;
        self.in_place()?;
        self.take_gpu_in();
        while let Some(LaterGpu::Starting(starting)) = self.later.take_if(LaterGpu::is_starting) {
            self.take_in(starting);
        }
        if self.accelerator.is_none() {
            return Ok(());
        }
        let sets: Vec<_> = self.slots.used().collect();
        for set in sets {
            self.make_ready(set);
        }
        let known = self.jobs_to_rehearse();
        let jobs = match known.is_empty() {
            true => self.active_lists(),
            false => known,
        };
        jobs.iter().try_for_each(|job| self.rehearse(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, backend::emulated::EmulatedDevice, kernels::SphDensity};
    use nearfield_balance::EmulatedSpec;
    use std::{sync::mpsc, thread};

    /// A lattice whose distances are not near the radius, moved a little by `step`.
    fn points(step: usize) -> Vec<[f32; 3]> {
        let along = |k: usize| 0.4 * k as f32 + 0.01 * step as f32;
        let edge = 22;
        let all = (0..edge * edge * edge).map(|k| [k % edge, k / edge % edge, k / edge / edge]);
        all.map(|place| place.map(along)).collect()
    }

    /// An engine that is to take in the device that `start` gives.
    fn engine() -> Engine {
        let mut engine = Engine::builder(1.0).threads(2).build().unwrap();
        engine.later = None;
        engine.add_point_set(&points(0)).unwrap();
        engine.find_neighbors().unwrap();
        engine
    }

    fn emulated() -> Result<Box<dyn Accelerator>, String> {
        let device = EmulatedDevice::new(EmulatedSpec::default());
        Ok(Box::new(device.map_err(|error| error.to_string())?))
    }

    /// A step with lists; their number of pairs.
    fn step(engine: &mut Engine, step: usize) -> u64 {
        let set = engine.point_set(0).unwrap();
        engine.update(set, &points(step)).unwrap();
        engine.find_neighbors().unwrap();
        engine.neighbors(set, set).unwrap().pairs()
    }

    fn until_ready(engine: &Engine) {
        while let Some(LaterGpu::Starting(starting)) = &engine.later
            && !starting.is_ready()
        {
            thread::yield_now();
        }
    }

    #[test]
    fn no_step_waits_for_a_gpu_that_starts_and_the_jobs_are_rehearsed_before() {
        let mut engine = engine();
        let set = engine.point_set(0).unwrap();
        let (go, wait) = mpsc::channel::<()>();
        engine.begin_gpu(move || {
            wait.recv().map_err(|error| error.to_string())?;
            emulated()
        });
        let expected = step(&mut engine, 1);
        // The start waits for this thread, so a step that waited for it would never end.
        for number in 2..6 {
            assert_eq!(step(&mut engine, number), expected);
            assert_eq!(engine.report().device, Device::Cpu);
        }
        go.send(()).unwrap();
        until_ready(&engine);
        // Before a job that is new is rehearsed too.
        engine.later = engine.later.take();
        let kernel = SphDensity::with_support(1.0);
        let mass = vec![1.0; points(0).len()];
        let densities = |engine: &Engine| {
            let traversal = engine.traverse(&kernel, set, set).sources(&mass);
            traversal.run().unwrap()
        };
        let before = densities(&engine);
        step(&mut engine, 6);
        assert!(
            engine.accelerator.is_none(),
            "the density was not rehearsed"
        );
        until_ready(&engine);
        engine.take_gpu_in();
        assert!(engine.accelerator.is_some(), "{}", engine.reason);
        assert_eq!(engine.sets[0].spare_copies.len(), 2);
        let memory = engine.sets[0].spare_copies.iter().map(|copy| copy.as_ptr());
        let memory: Vec<_> = memory.collect();
        for number in 7..10 {
            assert_eq!(step(&mut engine, number), expected);
            assert!(matches!(engine.report().device, Device::Emulated(_)));
            let copy = engine.sets[0].grid.copied().unwrap().as_ptr();
            assert!(
                memory.contains(&copy),
                "step {number} has made a copy of its own"
            );
        }
        let after = densities(&engine);
        let off = before
            .iter()
            .zip(&after)
            .map(|(before, after)| (before - after).abs());
        assert!(off.fold(0.0, f32::max) < 1e-3 * before[0]);
    }

    #[test]
    fn a_gpu_that_cannot_be_started_is_said_and_not_tried_again() {
        let mut engine = engine();
        engine.begin_gpu(|| Err("there is no card in the slot".to_owned()));
        until_ready(&engine);
        for number in 1..4 {
            step(&mut engine, number);
            let report = engine.report();
            assert_eq!(report.device, Device::Cpu);
            assert!(
                report.reason.contains("no card in the slot"),
                "{}",
                report.reason
            );
        }
        engine.begin_gpu(|| panic!("a driver that gives up"));
        until_ready(&engine);
        step(&mut engine, 4);
        assert!(engine.reason.contains("panicked"), "{}", engine.reason);
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn a_run_begins_with_the_rates_that_the_last_one_left() {
        use crate::{Builder, backend::gpu::Note};
        use nearfield_gpu::{Arch, Cache, DeviceInfo};

        let folder = std::env::temp_dir().join(format!("nearfield-rates-{}", std::process::id()));
        let card = DeviceInfo {
            index: 0,
            name: "a card".to_owned(),
            arch: Arch::new(90),
            multiprocessors: 1,
            memory: 1,
            pci: String::new(),
        };
        let note = || Note::new(Cache::at(&folder), "rates", &card, "a test");
        let emulated = || {
            let device = "emulated:speed=2,bandwidth=60".parse().unwrap();
            Engine::builder(1.0).threads(1).device(device)
        };
        // Shares of the first and of the last step.
        let run = |builder: Builder| {
            let mut engine = builder.build().unwrap();
            let division = engine.settings.division();
            let device = engine.accelerator.as_deref().unwrap();
            assert!(
                engine.settings.rates_note(device, 1).is_none(),
                "times of an emulated device say nothing about a real one"
            );
            engine.split = Some(Split::new(division, Some(note())));
            engine.add_point_set(&points(0)).unwrap();
            let shares = (0..24).map(|number| {
                step(&mut engine, number);
                engine.report().jobs[0].split.clone().unwrap().share
            });
            let shares: Vec<_> = shares.collect();
            (shares[0], shares[23])
        };
        let (first, settled) = run(emulated());
        assert!((first - 0.125).abs() < 0.04, "{first}");
        assert!(settled > 0.2, "{settled}");
        assert!(note().read().unwrap().contains("lists"));
        let (begun, _) = run(emulated());
        assert!((begun - settled).abs() < 0.07, "{begun} after {settled}");
        for damaged in ["", "nearfield rates 1\n1\t0\tlists\n", "no note\n"] {
            note().write(damaged).unwrap();
            assert_eq!(run(emulated()).0, first, "after {damaged:?}");
            assert!(
                note().read().unwrap().contains("lists"),
                "it is written anew"
            );
        }
        // Rates that no machine has had are tried within bounds, and written anew.
        note().write("nearfield rates 1\n1\t1e-6\tlists\n").unwrap();
        let (begun, ended) = run(emulated());
        assert!((0.03..0.1).contains(&begun), "{begun}");
        assert!(
            (ended - settled).abs() < 0.1,
            "{ended} instead of {settled}"
        );
        assert!(!note().read().unwrap().contains("0.000001"));
        // A helper that moves to another card leaves its rates, and begins anew with the card's.
        let mut engine = emulated().build().unwrap();
        let other = Note::new(Cache::at(&folder), "rates", &card, "another");
        engine.split = Some(Split::new(engine.settings.division(), Some(other.clone())));
        engine.add_point_set(&points(0)).unwrap();
        for number in 0..8 {
            step(&mut engine, number);
        }
        assert_eq!(other.read(), None);
        engine.split.as_mut().unwrap().move_to(Some(note()));
        assert!(other.read().unwrap().contains("lists"));
        step(&mut engine, 8);
        let begun = engine.report().jobs[0].split.clone().unwrap();
        assert!(
            (begun.share - settled).abs() < 0.1 && begun.steps == 1,
            "{begun:?}"
        );
        drop(engine);
        std::fs::remove_dir_all(&folder).unwrap();
        // A folder that cannot be made is no error either.
        std::fs::write(&folder, "in the way").unwrap();
        assert_eq!(run(emulated()).0, first);
        std::fs::remove_file(&folder).unwrap();
    }

    #[test]
    fn an_engine_that_is_dropped_ends_the_rehearsal() {
        let mut engine = engine();
        let (go, wait) = mpsc::channel::<()>();
        engine.begin_gpu(move || {
            // Ends when the sender is dropped, after the engine was told to.
            let _ = wait.recv();
            emulated()
        });
        step(&mut engine, 1);
        drop(go);
        drop(engine);
    }

    #[test]
    fn warming_up_waits_and_changes_no_result() {
        let mut engine = engine();
        let set = engine.point_set(0).unwrap();
        let expected = engine.neighbors(set, set).unwrap().pairs();
        engine.begin_gpu(emulated);
        engine.warm_up().unwrap();
        assert!(engine.accelerator.is_some(), "{}", engine.reason);
        assert!(engine.accelerator.as_deref().unwrap().holds(0));
        assert_eq!(
            engine.neighbors(set, set).unwrap().pairs(),
            expected,
            "lists stay"
        );
        assert_eq!(
            engine.count_neighbors(set, set).unwrap().len(),
            points(0).len()
        );
        assert!(matches!(engine.report().device, Device::Emulated(_)));
        assert_eq!(step(&mut engine, 1), expected);

        // Before any job, and for a device that was named; lists that are not there are not made.
        let mut named = Engine::builder(1.0)
            .device("emulated".parse().unwrap())
            .build()
            .unwrap();
        named.warm_up().unwrap();
        let set = named.add_point_set(&points(0)).unwrap();
        named.warm_up().unwrap();
        assert!(named.neighbors(set, set).is_err());
        named.find_neighbors().unwrap();
        assert_eq!(named.neighbors(set, set).unwrap().pairs(), expected);
    }
}

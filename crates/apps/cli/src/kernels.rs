//! `nearfield kernels`: compiles the GPU's programs, for nodes that have only the driver, or to
//! check that they compile for every architecture.

use crate::{failure::Failure, options::examples, output};
use nearfield_files::Plan;
use nearfield_gpu::{Arch, Cache, CodeStore, Compiler, Entry, Error, GpuInfo, Program, Search};
use rayon::prelude::*;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// Subcommands of `nearfield kernels`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Task {
    /// Compiles kernels into a cache, also for GPUs that are not here
    #[command(after_help = examples!("nearfield kernels build --arch 80,90 --output kernels"))]
    Build(BuildArgs),
    /// Prints the numbers that kernels share with the engine, as sources include them
    #[command(after_help = examples!("nearfield kernels constants"))]
    Constants,
    /// Compiles kernels, for every architecture if none is named, and keeps nothing
    #[command(after_help = examples!("nearfield kernels check --arch 90 flat"))]
    Check(CheckArgs),
}

/// Flags of `nearfield kernels build`.
#[derive(Debug, clap::Args)]
pub(crate) struct BuildArgs {
    /// Programs, such as share or flat; all if none is named
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Architectures, as 90, sm_90 or 9.0; those of the GPUs here if not given
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    arch: Vec<Arch>,
    /// Folder of the cache; the one that this machine uses if not given
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Flags of `nearfield kernels check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Programs, such as share or flat; all if none is named
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Architectures, as 90, sm_90 or 9.0; all that are cared for if not given
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    arch: Vec<Arch>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A program that was compiled, or was not.
#[derive(Debug, Serialize)]
struct Outcome {
    program: String,
    arch: String,
    bytes: usize,
    milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct BuildSummary<'a> {
    nvrtc: String,
    folder: &'a Path,
    programs: Vec<Outcome>,
}

#[derive(Debug, Serialize)]
struct CheckSummary {
    nvrtc: String,
    unknown: Vec<String>,
    programs: Vec<Outcome>,
}

pub(crate) fn run(task: &Task) -> Result<(), Failure> {
    match task {
        Task::Constants => output::print_lines(constants()),
        Task::Build(args) => build(args),
        Task::Check(args) => check(args),
    }
}

/// Lines of the headers that are made from tables of the engine.
fn constants() -> impl Iterator<Item = &'static str> {
    let texts = [
        nearfield_grid::constants::HEADER,
        nearfield_gpu::constants::HEADER,
    ];
    texts.into_iter().flat_map(str::lines)
}

impl Task {
    /// Adds the files that are written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        if let Self::Build(BuildArgs {
            output: Some(folder),
            ..
        }) = self
        {
            plan.write_into("--output", folder, |name| name.ends_with(".bin"));
        }
    }
}

/// The compiler that is used here.
fn compiler() -> Result<Arc<Compiler>, Error> {
    CodeStore::new(None, Search::from_env()).compiler()
}

fn build(args: &BuildArgs) -> Result<(), Failure> {
    let programs = named(&args.programs)?;
    let archs = sorted(if args.arch.is_empty() {
        let devices = GpuInfo::probe().devices;
        devices.iter().map(|device| device.arch).collect()
    } else {
        args.arch.clone()
    });
    if archs.is_empty() {
        let text = "there is no GPU here: name architectures, for example --arch 80,90";
        return Err(Failure::Wrong(text.to_owned()));
    }
    let Some(cache) = args.output.as_ref().map(Cache::at).or_else(Cache::from_env) else {
        let text = "there is no cache here; name a folder by --output";
        return Err(Failure::Wrong(text.to_owned()));
    };
    cache
        .check()
        .map_err(|error| Failure::Wrong(error.to_string()))?;
    let compiler = compiler()?;
    // The first that cannot be kept ends it.
    let outcomes: Result<_, _> = for_each(&programs, &archs, |program, arch| {
        keep(&compiler, &cache, program, arch)
    });
    let built = BuildSummary {
        nvrtc: compiler.version().to_string(),
        folder: cache.folder(),
        programs: outcomes?,
    };
    output::print(args.json, &built, || {
        let head = format!(
            "NVRTC {}, wrote to {}",
            built.nvrtc,
            cache.folder().display()
        );
        [head].into_iter().chain(lines(&built.programs))
    })
}

/// Every architecture once.
fn sorted(mut archs: Vec<Arch>) -> Vec<Arch> {
    archs.sort();
    archs.dedup();
    archs
}

/// Does `work` for every program and architecture, on all cores; results in that order.
fn for_each<R: Send, C: FromParallelIterator<R>>(
    programs: &[Program],
    archs: &[Arch],
    work: impl Fn(&Program, Arch) -> R + Sync,
) -> C {
    let count = programs.len() * archs.len();
    (0..count)
        .into_par_iter()
        .with_max_len(1)
        .map(|k| work(&programs[k / archs.len()], archs[k % archs.len()]))
        .collect()
}

/// Compiles one program into the cache.
fn keep(
    compiler: &Compiler,
    cache: &Cache,
    program: &Program,
    arch: Arch,
) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let entry = Entry {
        code: compiler.build(program, arch, None)?,
        compiler: compiler.version(),
    };
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let (name, key) = (program.name(), program.key(arch));
    cache.write(name, arch, &key, &entry).map_err(|error| {
        let folder = cache.folder().display();
        Failure::Wrong(format!("cannot write into {folder}: {error}"))
    })?;
    Ok(Outcome {
        program: name.to_owned(),
        arch: arch.to_string(),
        bytes: entry.code.len(),
        milliseconds,
        path: Some(cache.path(name, arch, &key)),
        error: None,
    })
}

/// The programs with these names, or all without names. Several programs may share a name.
fn named(names: &[String]) -> Result<Vec<Program>, Failure> {
    let mut programs = nearfield_kernels::programs()?;
    let has = |name: &String| programs.iter().any(|program| program.name() == name);
    if let Some(unknown) = names.iter().find(|name| !has(name)) {
        let mut known: Vec<_> = programs.iter().map(Program::name).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::Usage(format!(
            "there is no program \"{unknown}\": use one of {known}"
        )));
    }
    programs.retain(|program| names.is_empty() || names.iter().any(|name| name == program.name()));
    Ok(programs)
}

fn check(args: &CheckArgs) -> Result<(), Failure> {
    let programs = named(&args.programs)?;
    let compiler = compiler()?;
    let known = compiler.archs();
    let asked = if args.arch.is_empty() {
        Arch::CHECKED.to_vec()
    } else {
        sorted(args.arch.clone())
    };
    let (archs, unknown): (Vec<_>, Vec<_>) =
        asked.into_iter().partition(|arch| known.contains(arch));
    let unknown: Vec<_> = unknown.iter().map(Arch::to_string).collect();
    if archs.is_empty() {
        let (version, unknown) = (compiler.version(), unknown.join(", "));
        return Err(Failure::Wrong(format!(
            "NVRTC {version} does not know {unknown}"
        )));
    }
    let outcomes = for_each(&programs, &archs, |program, arch| {
        attempt(&compiler, program, arch)
    });
    let checked = CheckSummary {
        nvrtc: compiler.version().to_string(),
        unknown,
        programs: outcomes,
    };
    output::print(args.json, &checked, || report(&checked))?;
    let failed = checked
        .programs
        .iter()
        .filter(|outcome| outcome.error.is_some())
        .count();
    match failed {
        0 => Ok(()),
        _ => {
            let all = checked.programs.len();
            Err(Failure::Wrong(format!(
                "{failed} of {all} compilations failed"
            )))
        }
    }
}

/// Compiles one program and keeps nothing.
fn attempt(compiler: &Compiler, program: &Program, arch: Arch) -> Outcome {
    let start = Instant::now();
    let built = compiler.build(program, arch, None);
    Outcome {
        program: program.name().to_owned(),
        arch: arch.to_string(),
        milliseconds: start.elapsed().as_secs_f64() * 1e3,
        bytes: built.as_ref().map_or(0, Vec::len),
        path: None,
        error: built.err().map(|error| error.to_string()),
    }
}

/// Lists the checks, for people.
fn report(checked: &CheckSummary) -> Vec<String> {
    let mut report = vec![format!("NVRTC {}", checked.nvrtc)];
    report.extend(lines(&checked.programs));
    if !checked.unknown.is_empty() {
        report.push(format!(
            "not checked, as this NVRTC does not know them: {}",
            checked.unknown.join(", ")
        ));
    }
    report
}

/// One line per compilation.
fn lines(outcomes: &[Outcome]) -> impl Iterator<Item = String> {
    outcomes.iter().map(|outcome| {
        let result = match &outcome.error {
            None => format!(
                "{:>7.1} KiB {:>6.0} ms",
                outcome.bytes as f64 / 1024.0,
                outcome.milliseconds
            ),
            Some(error) => format!("failed: {error}"),
        };
        format!("{:<24} {:<7} {result}", outcome.program, outcome.arch)
    })
}

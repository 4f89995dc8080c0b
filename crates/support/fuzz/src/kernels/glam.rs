//! The vectors' library, compiled for programs of this crate.
//!
//! Cargo has compiled it too, but with the flags of this crate, such as those of a sanitizer.
//! Compiling it takes a second.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::{self, Command},
    sync::OnceLock,
};

/// The compiled library.
///
/// # Errors
/// The messages of Cargo or of the compiler.
pub(super) fn library() -> Result<&'static Path, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(made).as_ref();
    library.map(PathBuf::as_path).map_err(Clone::clone)
}

/// The library of an earlier process beside this program, or a new one.
fn made() -> Result<PathBuf, String> {
    let source = source()?;
    let version = output(Command::new(rustc()).arg("-vV"))?;
    let mut hasher = DefaultHasher::new();
    (&source, version).hash(&mut hasher);
    let name = format!("libglam_of_functions-{:016x}.rlib", hasher.finish());
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let library = program.with_file_name(name);
    if library.exists() {
        return Ok(library);
    }
    // Several processes may do this at once.
    let own = library.with_extension(format!("{}.rlib", process::id()));
    let compiled = Command::new(rustc())
        .args(["--edition", "2024", "--crate-name", "glam"])
        .args(["--crate-type", "rlib", "--cap-lints", "allow", "-O"])
        .args(["--cfg", "feature=\"std\"", "-o"])
        .arg(&own)
        .arg(&source)
        .output();
    let compiled = compiled.map_err(|error| error.to_string())?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    fs::rename(&own, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// The root of the library's source: the compiler has noted it beside what Cargo has made of it.
fn source() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let own = program.parent().unwrap_or(Path::new("."));
    // Tests lie among the libraries, programs and examples in folders around them.
    let folders = [own.to_owned(), own.join("deps"), own.join("../deps")];
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let notes = entries.flatten().flatten().map(|entry| entry.path());
    let of_glam = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("glam-") && name.ends_with(".d")
    };
    let mut roots = notes.filter(of_glam).filter_map(|note| {
        // Spaces within names stand behind a backslash.
        let text = fs::read_to_string(note).ok()?.replace("\\ ", "\0");
        let root = text
            .split_whitespace()
            .find(|path| path.ends_with("lib.rs"))?;
        Some(PathBuf::from(root.replace('\0', " "))).filter(|root| root.exists())
    });
    let missing = || format!("no source of glam is noted beside {}", program.display());
    roots.next().ok_or_else(missing)
}

/// The standard output of a program.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The Rust compiler.
pub(super) fn rustc() -> String {
    env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

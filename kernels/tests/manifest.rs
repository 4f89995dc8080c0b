//! The manifest names every kernel of the workspace, and nothing else.

use nearfield_kernels::manifest;
use nearfield_shared::Source;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Every CUDA file of the workspace.
fn cuda_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = ["kernels", "crates", "benches", "examples"]
        .map(|name| root.join(name))
        .to_vec();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            match extension {
                _ if path.is_dir() && !path.ends_with("target") => folders.push(path),
                Some("cu" | "cuh") => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// The name at the beginning of a text.
fn name(text: &str) -> &str {
    let symbol = |c: char| !(c.is_alphanumeric() || c == '_');
    &text[..text.find(symbol).unwrap_or(text.len())]
}

/// Names of the `__global__` functions of a text. A macro that defines a kernel names it by its
/// first argument, so each of its uses is one.
fn kernels(text: &str) -> BTreeSet<String> {
    let joined = text.replace("\\\n", " ");
    let (macros, plain): (Vec<_>, Vec<_>) = joined
        .lines()
        .partition(|line| line.starts_with("#define "));
    let plain = plain.join("\n");
    let mut found = BTreeSet::new();
    for (at, word) in plain.match_indices("__global__") {
        let declared = plain[at + word.len()..].trim_start().strip_prefix("void");
        let declared = declared.expect("a kernel returns nothing").trim_start();
        let declared = match declared.strip_prefix("__launch_bounds__(") {
            Some(bounds) => {
                let mut open = 1;
                let end = bounds.find(|symbol| {
                    open += i32::from(symbol == '(') - i32::from(symbol == ')');
                    open == 0
                });
                bounds[end.expect("bounds end") + 1..].trim_start()
            }
            None => declared,
        };
        found.insert(name(declared).to_owned());
    }
    for line in macros.iter().filter(|line| line.contains("__global__")) {
        let defined = format!("{}(", name(&line["#define ".len()..]));
        let uses = plain.match_indices(&defined);
        found.extend(uses.map(|(at, begin)| name(&plain[at + begin.len()..]).to_owned()));
    }
    found
}

/// Kernels of a source's text and of its headers.
fn defined(source: &Source) -> BTreeSet<String> {
    let headers = source.headers.iter().map(|header| header.text);
    headers.chain([source.text]).flat_map(kernels).collect()
}

#[test]
fn every_kernel_of_a_source_is_named_and_every_name_is_a_kernel() {
    for source in manifest() {
        let named: BTreeSet<_> = source.kernels.iter().map(ToString::to_string).collect();
        assert_eq!(named, defined(source), "{}", source.name);
        assert!(!named.is_empty(), "{} has no kernel", source.name);
        assert_eq!(
            named.len(),
            source.kernels.len(),
            "{} names one twice",
            source.name
        );
    }
}

#[test]
fn every_cuda_file_with_kernels_belongs_to_a_source() {
    let files = cuda_files();
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let known = manifest().any(|source| {
            let headers = source.headers.iter().map(|header| header.text);
            headers.chain([source.text]).any(|known| known == text)
        });
        assert!(
            known || kernels(&text).is_empty(),
            "{} is in no source",
            file.display()
        );
    }
}

/// Kernels that are started while the one before them ends must wait for it themselves.
#[test]
fn kernels_that_overlap_wait_for_those_before_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
    for file in [
        "grid.cu",
        "flat.cu",
        "flat_pairs.cuh",
        "work.cuh",
        "ascend.cu",
        "slots.cu",
        "stored.cu",
    ] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let kernels: Vec<_> = text.split("extern \"C\" __global__").skip(1).collect();
        assert!(!kernels.is_empty(), "{file}");
        for kernel in kernels {
            let body = kernel.split_once(") {\n").unwrap().1.trim_start();
            let head = &kernel[..kernel.find('{').unwrap()];
            assert!(
                body.starts_with("await_kernels_before();"),
                "{file}: {head}"
            );
        }
    }
}

#[test]
fn names_of_sources_are_told_apart() {
    let names: BTreeSet<_> = manifest().map(|source| source.name).collect();
    assert_eq!(names.len(), manifest().count());
}

#[test]
fn the_header_of_constants_holds_what_rust_has() {
    use nearfield_gpu::constants::{self, HEADER};
    for line in [
        "constexpr unsigned SCAN_TILE = GRID_THREADS * SCAN_VECTORS * 4;\n",
        "#define NF_LISTS 1\n",
        "// Elements of `Points::flags`.\nconstexpr unsigned FLAGS = 2;\n",
    ] {
        assert!(HEADER.contains(line), "{HEADER}");
    }
    assert_eq!(constants::SCAN_TILE, 4096);
    let cells = nearfield_grid::constants::HEADER;
    assert!(cells.contains("constexpr double EVEN_CELLS = 1099511627776.0;\n"));
    assert_eq!(nearfield_grid::constants::EVEN_CELLS, 2f64.powi(40));
    assert_eq!(nearfield_grid::constants::FARTHEST_CELL, 2f64.powi(41));
    assert!(nearfield_sph::constants::HEADER.contains("constexpr unsigned KICK_SLOTS = 9;\n"));
    assert!(nearfield_md::constants::HEADER.contains("constexpr unsigned LANES = 8;\n"));
}

//! The header: made from the code, and accepted by C and C++ compilers.

use std::{fs, path::PathBuf, process::Command};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_that_of_the_code() {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(here().join("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = here().join("include/nearfield.h");
    if std::env::var_os("NEARFIELD_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == made,
        "{} is not current: run this test with NEARFIELD_WRITE_HEADER=1 and commit it",
        path.display()
    );
}

#[test]
fn every_header_compiles_alone_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, standard, header) in [
        ("cc", "-std=c11", "nearfield.h"),
        ("c++", "-std=c++17", "nearfield.h"),
        ("c++", "-std=c++17", "nearfield.hpp"),
        ("c++", "-std=c++20", "nearfield.hpp"),
    ] {
        let suffix = if compiler == "cc" { "c" } else { "cpp" };
        let source = folder.path().join(format!("alone.{suffix}"));
        fs::write(
            &source,
            format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )
        .unwrap();
        let output = Command::new(compiler)
            .args([
                standard,
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-fsyntax-only",
                "-I",
            ])
            .arg(here().join("include"))
            .arg(&source)
            .output()
            .unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
        assert!(
            output.status.success(),
            "{compiler} {standard} {header}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

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
        ("c++", "-std=c++17", "nearfield/basics.hpp"),
        ("c++", "-std=c++17", "nearfield/lists.hpp"),
        ("c++", "-std=c++17", "nearfield/pairs.hpp"),
        ("c++", "-std=c++17", "nearfield/systems.hpp"),
        ("c++", "-std=c++17", "nearfield/verlet.hpp"),
        ("c++", "-std=c++17", "nearfield/device.hpp"),
        ("c++", "-std=c++17", "nearfield/compact_nsearch.hpp"),
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

/// Whether a C++ program that has `body` in its main function compiles, and what the compiler says.
fn compiles(body: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.cpp");
    let program = format!(
        "#include <nearfield/compact_nsearch.hpp>
#include <array>
#include <string>
#include <vector>
struct glm_like {{ using value_type = float; float x, y, z; }};
struct eigen_like {{
    using Scalar = float; using PlainObject = eigen_like; enum {{ SizeAtCompileTime = 3 }};
    eigen_like(const eigen_like &);
    const float *data() const; float at[3];
}};
struct dynamic_eigen_like {{
    using Scalar = float; using PlainObject = dynamic_eigen_like; enum {{ SizeAtCompileTime = -1 }};
    const float *data() const; float *at; long size;
}};
struct map_like {{
    using Scalar = float; using PlainObject = eigen_like; enum {{ SizeAtCompileTime = 3 }};
    float *at; long size;
}};
struct view_like {{
    using value_type = float; float *at; unsigned long size;
    float *begin() const; float *end() const;
}};
struct base {{ float x; }};
struct derived : base {{ float y; }};
int main() {{
    nearfield::engine engine(nearfield::options(1.0));
    nearfield::status_engine quiet(nearfield::options(1.0));
    {body}
    return 0;
}}
"
    );
    fs::write(&source, program).unwrap();
    let output = Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-fsyntax-only", "-I"])
        .arg(here().join("include"))
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("c++ is needed for this test: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

/// Asserts that a call with a container of such elements does not compile, and why.
fn refused(element: &str, call: &str) {
    let (does, said) = compiles(&format!("std::vector<{element}> points; {call};"));
    assert!(!does, "{call} takes elements of type {element}");
    assert!(
        said.contains("the elements of this container are not points"),
        "{call} with {element}: {said}"
    );
}

#[test]
fn containers_of_what_is_no_point_do_not_compile_and_the_compiler_says_why() {
    for element in [
        "std::vector<float>",
        "std::string",
        "nearfield::span<const float>",
        "view_like",
        "map_like",
        "dynamic_eigen_like",
        "float *",
        "int",
        "std::array<float, 2>",
        "std::array<int, 3>",
        "std::array<std::vector<float>, 3>",
        "derived",
    ] {
        refused(element, "engine.add_points(points)");
    }
    for call in [
        "engine.update(0, points)",
        "engine.query(points, 0)",
        "quiet.add_points(points)",
    ] {
        refused("std::vector<float>", call);
    }
    let sliced = "std::vector<derived> many; nearfield::span<base> few(many);";
    assert!(!compiles(sliced).0, "elements of another size");
}

#[test]
fn containers_of_points_compile() {
    let blocks = [
        "float",
        "double",
        "std::array<float, 3>",
        "std::array<double, 4>",
        "glm_like",
        "eigen_like",
    ]
    .map(|element| {
        format!(
            "{{ std::vector<{element}> points;
            engine.add_points(points); engine.update(0, points); engine.query(points, 0);
            quiet.add_points(points); quiet.update(0, points); quiet.query(points, 0); }}\n"
        )
    });
    let (does, said) = compiles(&blocks.concat());
    assert!(does, "{said}");
    let bound = "nearfield::compact_nsearch::NeighborhoodSearch search(1.0f);
        const std::vector<unsigned> &list = search.point_set(0).neighbor_list(0, 0);
        const auto lists = engine.neighbors(0, 0);
        const std::vector<unsigned> &other = lists[0];
        for (auto one : lists) { (void)one.size(); }
        (void)list, (void)other;";
    let (does, said) = compiles(bound);
    assert!(does, "{said}");
}

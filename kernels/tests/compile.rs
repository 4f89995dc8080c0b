//! Programs of the applications compile for old and new GPUs, and no program does whose structs
//! Rust lays out in another way. Needs NVRTC, but neither a driver nor a GPU; without it the tests
//! do nothing, or fail if `NEARFIELD_REQUIRE_NVRTC=1`.

use nearfield_gpu::{Arch, Compiler, Program, Search};
use nearfield_kernels::{APPLICATIONS, manifest, programs};
use nearfield_shared::{Kind, Layout, Source};
use std::{collections::BTreeSet, env};

fn compiler() -> Option<Compiler> {
    let required = env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
    match Compiler::find(&Search::from_env(), None) {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}");
            None
        }
    }
}

#[test]
fn every_kernel_of_the_applications_compiles_for_old_and_new_gpus() {
    let Some(compiler) = compiler() else { return };
    for source in APPLICATIONS {
        let all = programs().unwrap();
        // Variants differ in arithmetic only, so one stands for all.
        let program = all.iter().find(|program| program.name() == source.name);
        let program = program.expect("every source has a program");
        for arch in [
            Arch::CHECKED[0],
            Arch::new(90),
            Arch::CHECKED[Arch::CHECKED.len() - 1],
        ] {
            let code = compiler.compile(program, arch).unwrap();
            for kernel in source.kernels {
                let mut windows = code.windows(kernel.len());
                let holds = windows.any(|window| window == kernel.as_bytes());
                assert!(holds, "{kernel} of {} for {arch}", source.name);
            }
        }
    }
}

#[test]
fn every_struct_that_rust_fills_in_is_checked() {
    let known: BTreeSet<_> = manifest()
        .flat_map(Source::all_layouts)
        .map(|layout| layout.name)
        .collect();
    let expected = [
        "Arguments",
        "Box",
        "Classes",
        "Columns",
        "Filters",
        "Following",
        "Geometry",
        "Judged",
        "Lattice",
        "Launches",
        "ListedPoints",
        "Lists",
        "Masses",
        "Meter",
        "Nearest",
        "Outlet",
        "PairArrays",
        "PairOutput",
        "Parts",
        "Points",
        "Row",
        "Settings",
        "SkinCandidates",
        "SkinStatus",
        "Status",
        "Stored",
        "StoredLists",
        "Systems",
        "SystemsStatus",
        "Uniforms",
        "Walk",
    ];
    assert_eq!(known.into_iter().collect::<Vec<_>>(), expected);
}

/// The message with which the compiler refuses the fluid's program if Rust has these members.
fn refusal(compiler: &Compiler, change: impl Fn(&mut Layout)) -> String {
    let mut layout = nearfield_sph::FLUID.layouts[0];
    assert_eq!(layout.name, "Settings");
    change(&mut layout);
    let source = Source {
        layouts: Box::leak(Box::new([layout])),
        ..nearfield_sph::FLUID
    };
    let compiled = compiler.compile(&Program::from(&source), Arch::new(90));
    compiled.unwrap_err().to_string()
}

#[test]
fn another_layout_does_not_compile() {
    let Some(compiler) = compiler() else { return };
    let member = |layout: &mut Layout, change: &dyn Fn(&mut nearfield_shared::Member)| {
        let mut members = layout.members.to_vec();
        change(&mut members[1]);
        layout.members = Vec::leak(members);
    };
    let size = refusal(&compiler, |layout| layout.size += 4);
    assert!(size.contains("Settings has another size in Rust"), "{size}");
    let message = "Settings::stiffness is another member in Rust";
    let moved = refusal(&compiler, |layout| member(layout, &|of| of.offset += 4));
    assert!(moved.contains(message), "{moved}");
    let grown = refusal(&compiler, |layout| member(layout, &|of| of.size *= 2));
    assert!(grown.contains(message), "{grown}");
    let retyped = refusal(&compiler, |layout| {
        member(layout, &|of| of.kind = Kind::U32)
    });
    assert!(retyped.contains(message), "{retyped}");
    let renamed = refusal(&compiler, |layout| member(layout, &|of| of.name = "stiff"));
    assert!(renamed.contains("has no member \"stiff\""), "{renamed}");
}

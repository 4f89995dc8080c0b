//! What independent readers and writers in Python make of our files, and we of theirs.
//!
//! `NEARFIELD_PYTHON` names an interpreter with the packages vtk and numpy (meshio and plyfile add
//! cases). Without it these tests say that they are skipped, or fail when
//! `NEARFIELD_REQUIRE_PYTHON=1`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use nearfield_io::{PointData, VtpWriter, write_csr_npz, write_npy, write_vtp};
use serde_json::{Value, json};

use crate::made;

/// The interpreter, when it is named and has the packages.
fn interpreter(packages: &str) -> Option<PathBuf> {
    let missing = match env::var_os("NEARFIELD_PYTHON") {
        None => "NEARFIELD_PYTHON is not set".to_owned(),
        Some(python) => {
            let imported = Command::new(&python)
                .args(["-c", &format!("import {packages}")])
                .output();
            match imported {
                Ok(output) if output.status.success() => return Some(python.into()),
                _ => format!("{} cannot import {packages}", python.display()),
            }
        }
    };
    let required = env::var_os("NEARFIELD_REQUIRE_PYTHON").is_some_and(|value| value == "1");
    assert!(!required, "{missing}, and NEARFIELD_REQUIRE_PYTHON=1");
    eprintln!("skipped: {missing}");
    None
}

/// Runs a script and returns what it prints.
fn run(python: &Path, script: &[&str]) -> String {
    let output = Command::new(python).args(script).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn script(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn check_vtp(python: &Path, path: &Path) -> Value {
    let printed = run(python, &[&script("check_vtp.py"), path.to_str().unwrap()]);
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn vtk_reads_what_the_vtp_writer_wrote() {
    let Some(python) = interpreter("vtk, numpy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    let velocity = [[0.5_f32, -1.0, 0.25], [3.0, 2.0, 1.0]];
    VtpWriter::new(&[[1.0, 2.0, 3.0], [-4.5, 1e-3, 1e30]])
        .time(0.125)
        .field("step", vec![1_u64 << 40])
        .data(PointData::scalars(
            "pressure & <density>",
            vec![1.0_f32, -2.5e9],
        ))
        .data(PointData::vectors("velocity", &velocity))
        .data(PointData::scalars("id", vec![u32::MAX, 7]))
        .data(PointData::scalars("kind", vec![-1_i32, 2]))
        .data(PointData::tuples("two", 2, vec![1.0_f64, 2.0, 3.0, 0.1]).unwrap())
        .write(&path)
        .unwrap();
    let array = |kind: &str, shape: Value, values: Value| json!({ "type": kind, "shape": shape, "values": values });
    let values = |values: &[f32]| json!(values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let expected = json!({
        "points": array("<f4", json!([2, 3]), values(&[1.0, 2.0, 3.0, -4.5, 1e-3, 1e30])),
        "vertices": [0, 1],
        "offsets": [0, 1, 2],
        "point_data": {
            "pressure & <density>": array("<f4", json!([2]), values(&[1.0, -2.5e9])),
            "velocity": array("<f4", json!([2, 3]), values(velocity.as_flattened())),
            "id": array("<u4", json!([2]), json!([u32::MAX, 7])),
            "kind": array("<i4", json!([2]), json!([-1, 2])),
            "two": array("<f8", json!([2, 2]), json!([1.0, 2.0, 3.0, 0.1])),
        },
        "field_data": {
            "TimeValue": array("<f8", json!([1]), json!([0.125])),
            "step": array("<u8", json!([1]), json!([1_u64 << 40])),
        },
        "scalars": "pressure & <density>",
        "vectors": "velocity",
        "times": [0.125],
    });
    assert_eq!(check_vtp(&python, &path), expected);
}

/// A piece among others may have no points.
#[test]
fn vtk_reads_pieces_as_one_file() {
    let Some(python) = interpreter("vtk, numpy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let names = ["a & b.rank0.vtp", "a & b.rank1.vtp", "a & b.rank2.vtp"];
    let (mut numbers, mut positions) = (Vec::new(), Vec::new());
    for (name, len) in names.iter().zip([3_u8, 0, 2]) {
        let first = 10 * (numbers.len() as u32);
        let ids: Vec<u32> = (first..first + u32::from(len)).collect();
        let points: Vec<[f32; 3]> = ids.iter().map(|id| [*id as f32, 0.5, -1.0]).collect();
        let file = VtpWriter::new(&points)
            .time(0.1 + 0.2)
            .field("step", vec![1_u64 << 40])
            .data(PointData::scalars("id", &ids))
            .data(PointData::vectors("velocity", &points));
        file.write(path(name)).unwrap();
        file.write_parallel(path("frame.pvtp"), &names).unwrap();
        numbers.extend(ids);
        positions.extend(points);
    }
    let found = check_vtp(&python, &path("frame.pvtp"));
    let values: Vec<f64> = (positions.as_flattened().iter().map(|x| f64::from(*x))).collect();
    assert_eq!(found["points"]["values"], json!(values));
    assert_eq!(found["vertices"], json!([0, 1, 2, 3, 4]));
    let ids = json!({ "type": "<u4", "shape": [5], "values": numbers });
    assert_eq!(found["point_data"]["id"], ids);
    assert_eq!(found["point_data"]["velocity"]["values"], json!(values));
    assert_eq!(found["field_data"]["step"]["values"], json!([1_u64 << 40]));
    assert_eq!(found["times"], json!([0.1 + 0.2]));
    assert_eq!(found["scalars"], "id");
    let none = VtpWriter::new(&[]).write_parallel(path("none.pvtp"), &["line\nfeed"]);
    assert!(none.unwrap_err().to_string().contains("control characters"));
}

#[test]
fn vtk_reads_arrays_of_several_blocks_and_of_none() {
    let Some(python) = interpreter("vtk, numpy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    let points = 200_000;
    let positions: Vec<[f32; 3]> = (0..points).map(|i| [i as f32, 0.5, -(i as f32)]).collect();
    write_vtp(&path, &positions, &[]).unwrap();
    let found = check_vtp(&python, &path);
    let coordinates = found["points"]["values"].as_array().unwrap();
    assert_eq!(found["vertices"].as_array().unwrap().len(), points);
    assert!(
        coordinates
            .iter()
            .zip(positions.as_flattened())
            .all(|(found, &written)| found.as_f64() == Some(f64::from(written)))
    );
    assert_eq!(coordinates.len(), 3 * points);

    write_vtp(&path, &[], &[PointData::scalars("id", Vec::<u32>::new())]).unwrap();
    let found = check_vtp(&python, &path);
    assert_eq!(found["points"]["shape"], json!([0, 3]));
    assert_eq!(found["vertices"], json!([]));
}

#[test]
fn numpy_reads_arrays_and_archives() {
    let Some(python) = interpreter("numpy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (array, archive) = (
        directory.path().join("a.npy"),
        directory.path().join("lists.npz"),
    );
    write_npy(&array, &[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]).unwrap();
    write_csr_npz(&archive, &[0, 2, 2, 3], &[7, 8, u32::MAX]).unwrap();
    let program = "\
import sys, json, numpy as np
a = np.load(sys.argv[1]); z = np.load(sys.argv[2])
both = {k: [z[k].dtype.str, z[k].tolist()] for k in z.files}
print(json.dumps([a.dtype.str, a.tolist(), both]))";
    let arguments = [
        "-c",
        program,
        array.to_str().unwrap(),
        archive.to_str().unwrap(),
    ];
    let found: Value = serde_json::from_str(&run(&python, &arguments)).unwrap();
    let expected = json!([
        "<f4",
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]],
        { "offsets": ["<u8", [0, 2, 2, 3]], "indices": ["<u4", [7, 8, u32::MAX]] },
    ]);
    assert_eq!(found, expected);
}

#[test]
fn files_of_every_encoding_from_other_writers_agree() {
    let Some(python) = interpreter("vtk, numpy") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().to_str().unwrap();
    let printed = run(&python, &[&script("make_files.py"), target]);
    eprint!("{printed}");
    let files = fs::read_dir(directory.path()).unwrap().count();
    let checked = made::check_directory(directory.path());
    assert!(
        checked > 150,
        "only {checked} of {files} files were checked"
    );
}

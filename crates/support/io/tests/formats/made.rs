//! Files that VTK, meshio and plyfile wrote of the same points (`tests/make_files.py`).

use std::{fs, path::Path};

use nearfield_io::{ErrorKind, PointCloud, PointData, Values, read_points};

use crate::data;

#[test]
fn the_kept_files_of_other_writers_agree() {
    assert_eq!(check_directory(&data("made")), 12);
}

/// Checks every file but the two that hold the truth; returns how many there were.
pub(crate) fn check_directory(directory: &Path) -> usize {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension != "npy"))
        .collect();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains("_lzma_") {
            refuses_lzma(path)
        } else {
            agrees(path, name)
        }
    }
    files.len()
}

fn refuses_lzma(path: &Path) {
    let error = read_points(path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("vtkLZMADataCompressor"),
        "{error}"
    );
}

fn agrees(path: &Path, name: &str) {
    let truth = path.with_file_name(format!("truth_{}.npy", &name[..2]));
    let truth = read_points(truth).unwrap();
    let cloud = read_points(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cloud.positions, truth.positions, "{name}");
    // Where text of another writer says "float", that is what is read.
    assert_eq!(cloud.positions_f64, truth.positions_f64, "{name}");
    assert_eq!(truth.positions_f64.is_some(), name.starts_with("f8"));
    let has_data = name.contains("_vtk_") && !name.ends_with(".ply") || name.contains("_odd_");
    if has_data {
        data_agree(&cloud, name);
    }
}

/// The quantities were made from the truth in eighths, whatever the positions are in.
fn data_agree(cloud: &PointCloud, name: &str) {
    assert_eq!(cloud.time, Some(1.5), "{name}");
    let velocity = cloud
        .quantity("velocity")
        .and_then(PointData::to_vectors)
        .unwrap();
    let pressure = cloud
        .quantity("pressure")
        .and_then(PointData::to_scalars)
        .unwrap();
    for (velocity, pressure) in velocity.iter().zip(&pressure) {
        assert_eq!(velocity[0], 2.0 * pressure, "{name}");
    }
    assert_eq!(pressure[0], 0.125, "{name}");
    assert_eq!(velocity[0], [0.25, 0.75, 1.75], "{name}");
    let ids = cloud.quantity("id number").unwrap();
    assert_eq!(
        ids.values(),
        &Values::from(vec![0_i32, 1, 2, 3, 4]),
        "{name}"
    );
}

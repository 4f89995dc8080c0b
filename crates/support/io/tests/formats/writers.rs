//! What is written reads back as it was.

use std::fs;

use nearfield_io::{
    ErrorKind, Format, PointData, Values, VtpWriter, read_points, write_cloud, write_csr_npz,
    write_csv, write_frames, write_npy, write_points, write_vtp,
};
use proptest::prelude::*;

use crate::good;

/// The bit patterns of positions, since NaN differs from itself.
fn bits(positions: &[[f32; 3]]) -> Vec<[u32; 3]> {
    positions
        .iter()
        .map(|point| point.map(f32::to_bits))
        .collect()
}

fn any_positions() -> impl Strategy<Value = Vec<[f32; 3]>> {
    // The sign and payload of a NaN do not survive text.
    let any = proptest::num::f32::ANY.prop_map(|x| if x.is_nan() { f32::NAN } else { x });
    proptest::collection::vec([any.clone(), any.clone(), any], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn positions_of_any_value_survive_every_format(positions in any_positions()) {
        let directory = tempfile::tempdir().unwrap();
        for name in ["cloud.npy", "cloud.csv", "cloud.VTP"] {
            let path = directory.path().join(name);
            write_points(&path, &positions).unwrap();
            let cloud = read_points(&path).unwrap();
            prop_assert_eq!(bits(&cloud.positions), bits(&positions), "{}", name);
        }
    }

    #[test]
    fn quantities_of_every_type_survive_a_vtp_file(
        f in any::<[f64; 12]>(), i in any::<[i32; 6]>(), w in any::<[u64; 3]>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frame.vtp");
        let data = [
            PointData::tuples("f64", 4, f.to_vec()).unwrap(),
            PointData::tuples("i32", 2, i.to_vec()).unwrap(),
            PointData::scalars("u64", w.to_vec()),
            PointData::scalars("i64", w.map(|w| w as i64).to_vec()),
            PointData::scalars("u32", w.map(|w| w as u32).to_vec()),
            PointData::vectors("a <b> & \"c\"", f.map(|f| [f as f32; 3])[..3].to_vec()),
        ];
        write_vtp(&path, &[[0.0; 3]; 3], &data).unwrap();
        prop_assert_eq!(read_points(&path).unwrap().data, data);
    }
}

#[test]
fn a_pool_of_threads_writes_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let positions: Vec<[f32; 3]> = (0..400_000).map(|i| [i as f32, 0.5, -1.0]).collect();
    let written = |name: &str| {
        let path = directory.path().join(name);
        write_vtp(&path, &positions, &[]).unwrap();
        fs::read(path).unwrap()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    let by_pool = pool.unwrap().install(|| written("pool.vtp"));
    assert!(by_pool == written("one.vtp"), "the files differ");
}

#[test]
fn arrays_longer_than_a_block_survive() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    // 1 MiB of positions exactly (times three blocks), and one point more.
    for points in [1 << 18, (1 << 18) + 1] {
        let positions: Vec<[f32; 3]> = (0..points).map(|i| [i as f32, 0.5, -1.0]).collect();
        write_vtp(&path, &positions, &[]).unwrap();
        assert_eq!(read_points(&path).unwrap().positions, positions);
    }
}

#[test]
fn npyz_reads_our_arrays_and_lists() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud.npy");
    write_npy(&path, &[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    let bytes = fs::read(&path).unwrap();
    let array = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(
        (array.shape(), array.order()),
        (&[2, 3][..], npyz::Order::C)
    );
    assert_eq!(
        array.into_vec::<f32>().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!((bytes.len() - 24) % 64, 0, "data are aligned");

    let path = directory.path().join("lists.npz");
    write_csr_npz(&path, &[0, 2, 2, 3], &[7, 8, 9]).unwrap();
    let mut archive = zip::ZipArchive::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(archive.len(), 2);
    let offsets = npyz::NpyFile::new(archive.by_name("offsets.npy").unwrap()).unwrap();
    assert_eq!(offsets.into_vec::<u64>().unwrap(), [0, 2, 2, 3]);
    let indices = npyz::NpyFile::new(archive.by_name("indices.npy").unwrap()).unwrap();
    assert_eq!(indices.into_vec::<u32>().unwrap(), [7, 8, 9]);
}

#[test]
fn offsets_that_do_not_fit_the_indices_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lists.npz");
    for (offsets, message) in [
        (
            &[][..],
            "the offsets are empty; N + 1 are needed for N points",
        ),
        (
            &[0, 2],
            "the offsets run from 0 to 2, but must run from 0 to 3, the number of indices",
        ),
        (
            &[1, 3],
            "the offsets run from 1 to 3, but must run from 0 to 3, the number of indices",
        ),
        (&[0, 2, 1, 3], "the offsets fall from 2 to 1 after point 1"),
    ] {
        let error = write_csr_npz(&path, offsets, &[7, 8, 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.to_string(), format!("{}: {message}", path.display()));
        assert!(!path.exists());
    }
}

#[test]
fn inconsistent_quantities_are_refused_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    let named = |name: &'static str, count| PointData::scalars(name, vec![0_i32; count]);
    for (data, message) in [
        (
            vec![named("a", 2), named("b", 3)],
            "the quantity 'b' has values for 3 points, but there are 2 points",
        ),
        (
            vec![named("a", 2), named("a", 2)],
            "the name 'a' occurs twice",
        ),
        (
            vec![named("", 2)],
            "the name '' is empty or has control characters",
        ),
        (
            vec![named("a\nb", 2)],
            r"the name 'a\nb' is empty or has control characters",
        ),
    ] {
        let error = write_vtp(&path, &[[0.0; 3]; 2], &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.to_string(), format!("{}: {message}", path.display()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_frame_keeps_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    VtpWriter::new(&[[0.0; 3]])
        .time(0.1)
        .field("step", &[3_i64])
        .write(&path)
        .unwrap();
    assert_eq!(read_points(&path).unwrap().time, Some(0.1));
}

#[test]
fn a_table_is_text_that_others_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud.csv");
    write_csv(&path, &[[0.1, -2.0, 1e30], [f32::NAN, f32::INFINITY, 0.0]]).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "x,y,z\n0.1,-2.0,1e30\nNaN,inf,0.0\n"
    );
}

#[test]
fn formats_that_are_only_read_are_refused() {
    for name in ["cloud.ply", "cloud.vtu", "cloud.vtk", "cloud.xyz"] {
        let error = write_points(name, &[]).unwrap_err();
        let expected = format!("{name}: this format is not written; .npy, .csv and .vtp are");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn integers_are_read_as_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    let ids = vec![u32::MAX, 0];
    write_vtp(&path, &[[0.0; 3]; 2], &[PointData::scalars("id", &ids)]).unwrap();
    let cloud = read_points(&path).unwrap();
    assert_eq!(cloud.quantity("id").unwrap().values(), &Values::from(&ids));
    assert_eq!(cloud.quantity("mass"), None);
}

#[test]
fn a_cloud_in_another_format_keeps_what_that_format_holds() {
    let directory = tempfile::tempdir().unwrap();
    let dump = good(crate::atoms::DUMP, Format::LammpsDump);
    let path = directory.path().join("cloud.extxyz");
    assert_eq!(write_cloud(&path, &dump).unwrap(), [] as [&str; 0]);
    let back = read_points(&path).unwrap();
    assert_eq!(back, dump);

    let mut cloud = dump;
    cloud.positions_f64 = Some(vec![[0.1, 1.5, 2.5], [-1.0, 3.0, 1e300]]);
    cloud.positions = vec![[0.1, 1.5, 2.5], [-1.0, 3.0, f32::INFINITY]];
    cloud
        .data
        .push(PointData::scalars("a:b", vec![1.0_f32, 2.0]));
    cloud.data.push(PointData::scalars("POS", vec![1_u32, 2]));
    assert_eq!(write_cloud(&path, &cloud).unwrap(), ["a:b", "POS"]);
    let back = read_points(&path).unwrap();
    assert_eq!(back.positions_f64, cloud.positions_f64);

    let path = directory.path().join("cloud.csv");
    assert_eq!(write_cloud(&path, &cloud).unwrap(), ["the time", "the box"]);
    let text = fs::read_to_string(&path).unwrap();
    let header = "x,y,z,species,id,type,vx,vy,vz,q,ix,a:b,POS";
    assert_eq!(text.lines().next(), Some(header));
    assert_eq!(
        text.lines().nth(1),
        Some("0.1,1.5,2.5,Ar,2,1,1.0,2.0,3.0,-0.5,0,1.0,1")
    );
    assert_eq!(
        read_points(&path).unwrap().positions_f64,
        cloud.positions_f64
    );

    let path = directory.path().join("cloud.npy");
    let lost = write_cloud(&path, &cloud).unwrap();
    assert_eq!(lost[..3], ["the time", "the box", "id"]);
    assert!(lost.contains(&"species".to_owned()));
    assert_eq!(
        read_points(&path).unwrap().positions_f64,
        cloud.positions_f64
    );

    let path = directory.path().join("cloud.vtp");
    let lost = write_cloud(&path, &cloud).unwrap();
    assert_eq!(lost.len(), 3, "{lost:?}");
    let back = read_points(&path).unwrap();
    assert_eq!((back.time, &back.data), (Some(0.25), &cloud.data));

    let flat = good("1 2\n3 4\n", Format::Cloud);
    for name in ["flat.csv", "flat.xyz"] {
        let path = directory.path().join(name);
        assert_eq!(write_cloud(&path, &flat).unwrap(), [] as [&str; 0]);
        assert_eq!(read_points(&path).unwrap(), flat);
    }
    for name in ["cloud.ply", "cloud.csv.gz", "cloud"] {
        let error = write_cloud(directory.path().join(name), &flat).unwrap_err();
        assert!(error.to_string().contains(".npy"), "{error}");
    }
}

#[test]
fn frames_appear_when_all_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.xyz");
    let cloud = good("1 2 3\n", Format::Cloud);
    fs::write(&path, "old").unwrap();
    let failed = write_frames(&path, |frames| {
        frames.add(&cloud)?;
        read_points("no/such.csv").map(drop)
    });
    assert!(failed.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    write_frames(&path, |frames| {
        frames.add(&cloud)?;
        frames.add(&cloud).map(drop)
    })
    .unwrap();
    assert_eq!(read_points(&path).unwrap().frames.count, 2);
}

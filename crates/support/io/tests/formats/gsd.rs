//! Trajectories of HOOMD-blue.

use nearfield_io::{
    ErrorKind, Format, Frame, PointCloud, SimulationBox, for_each_frame, parse_frame, parse_points,
    read_frame,
};

use crate::{data, good, refused};

/// A chunk: its frame, name, type, rows, columns and bytes.
type Chunk<'a> = (u64, &'a str, u8, u64, u32, &'a [u8]);

/// A file of these chunks, with an index and a list of names that have room for more.
fn file(major: u32, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut names: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for (_, name, ..) in chunks {
        if !names.contains(name) {
            names.push(name);
            list.extend(name.as_bytes());
            let end = if major == 1 {
                64 * names.len()
            } else {
                list.len() + 1
            };
            list.resize(end, 0);
        }
    }
    list.resize((list.len() / 64 + 2) * 64, 0);
    let (entries, begin) = (chunks.len() + 1, 256 + 32 * (chunks.len() + 1));
    let mut bytes = Vec::new();
    for word in [0x65df_65df_65df_65df, 256, entries, begin, list.len() / 64] {
        bytes.extend((word as u64).to_le_bytes());
    }
    bytes.extend(0x1_0004_u32.to_le_bytes());
    bytes.extend((major << 16).to_le_bytes());
    bytes.resize(256, 0);
    let mut place = begin + list.len();
    for (frame, name, kind, rows, columns, chunk) in chunks {
        for word in [*frame, *rows, place as u64] {
            bytes.extend(word.to_le_bytes());
        }
        let name = names
            .iter()
            .position(|one| one == name)
            .expect("it was added") as u16;
        bytes.extend(columns.to_le_bytes());
        bytes.extend(name.to_le_bytes());
        bytes.extend([*kind, 0]);
        place += chunk.len();
    }
    bytes.resize(begin, 0);
    bytes.extend(list);
    chunks.iter().for_each(|chunk| bytes.extend(chunk.5));
    bytes
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// Two frames of two particles with a quantity, as small as they can be.
pub(crate) fn small(major: u32) -> Vec<u8> {
    let (first, second) = (floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), floats(&[0.5; 6]));
    let (mass, count) = (floats(&[7.0, 8.0]), 2u32.to_le_bytes());
    let cell = floats(&[4.0, 5.0, 6.0, 0.5, 0.0, 0.0]);
    let chunks: [Chunk<'_>; 6] = [
        (0, "configuration/box", 9, 6, 1, &cell),
        (0, "particles/N", 3, 1, 1, &count),
        (0, "particles/types", 5, 2, 3, b"Na\0Cl\0"),
        (0, "particles/position", 9, 2, 3, &first),
        (0, "particles/mass", 9, 2, 1, &mass),
        (1, "particles/position", 9, 2, 3, &second),
    ];
    file(major, &chunks)
}

#[test]
fn frames_of_hoomd_have_their_particles_and_take_the_rest_from_the_first() {
    let path = data("frames/hoomd.gsd");
    let mut all = Vec::new();
    for_each_frame(&path, |cloud| {
        all.push(cloud);
        Ok::<(), nearfield_io::Error>(())
    })
    .unwrap();
    let sizes: Vec<_> = all.iter().map(PointCloud::len).collect();
    assert_eq!(sizes, [5, 5, 4]);
    for (frame, cloud) in all.iter().enumerate() {
        for (at, position) in cloud.positions.iter().enumerate() {
            let (at, step) = (at as f32, frame as f32);
            assert_eq!(*position, [0.25 * at + step, -0.5 * at, 0.125 * step]);
        }
        assert_eq!((cloud.frames.number, cloud.frames.count), (frame + 1, 3));
        let species = cloud.species.as_ref().unwrap();
        assert_eq!(species.names, ["Na", "Cl"]);
        assert_eq!(species.of_point[..4], [0, 1, 0, 1]);
        let mass = cloud.quantity("mass").unwrap().to_doubles();
        assert_eq!(mass[..4], [22.5, 35.5, 22.5, 35.5]);
        // The last frame has another number of particles, so not the velocities of the first.
        let velocity = cloud
            .quantity("velocity")
            .and_then(|data| data.to_vectors());
        let expected = (0..5).map(|at| [at as f32, 0.0, -at as f32]).collect();
        assert_eq!(velocity, (frame < 2).then_some(expected));
        let expected = SimulationBox {
            vectors: [[4.0, 0.0, 0.0], [1.25, 5.0, 0.0], [-3.0, 0.75, 6.0]],
            periodic: [true; 3],
        };
        assert_eq!(cloud.simulation_box, Some(expected));
    }
    let step = "configuration/step".to_owned();
    assert!(all[1].unread.contains(&step) && all[1].unread.contains(&"log/energy".to_owned()));
    assert_eq!(read_frame(&path, Frame::Last).unwrap(), all[2]);
    let error = read_frame(&path, Frame::Number(4)).unwrap_err().to_string();
    assert!(
        error.contains("there is no frame 4: the file has 3"),
        "{error}"
    );
}

#[test]
fn both_versions_and_two_dimensions_are_read() {
    let (one, two) = (small(1), small(2));
    assert_eq!(good(&one, Format::Gsd), good(&two, Format::Gsd));
    let last = parse_frame(&two, Format::Gsd, Frame::Last).unwrap();
    assert_eq!(last.positions, [[0.5; 3]; 2]);
    assert_eq!(last.quantity("mass").unwrap().to_doubles(), [7.0, 8.0]);
    assert_eq!(last.species.unwrap().names, ["Na"]);
    let (count, place) = (1u32.to_le_bytes(), floats(&[1.0, 2.0, 0.0]));
    let cell = floats(&[4.0, 5.0, 0.0, 0.5, 0.0, 0.0]);
    let flat = file(
        2,
        &[
            (0, "configuration/box", 9, 6, 1, &cell),
            (0, "configuration/dimensions", 1, 1, 1, &[2]),
            (0, "particles/N", 3, 1, 1, &count),
            (0, "particles/position", 9, 1, 3, &place),
        ],
    );
    let found = good(&flat, Format::Gsd).simulation_box.unwrap();
    assert_eq!(found.periodic, [true, true, false]);
    assert_eq!(
        found.vectors,
        [[4.0, 0.0, 0.0], [2.5, 5.0, 0.0], [0.0, 0.0, 1.0]]
    );
    assert!(
        good(
            file(2, &[(0, "particles/N", 3, 1, 1, &[0; 4])]),
            Format::Gsd
        )
        .is_empty()
    );
}

#[test]
fn files_that_contradict_themselves_say_where() {
    let whole = small(2);
    let entry = |number: usize, at: usize| 256 + 32 * number + at;
    for (at, bytes, words) in [
        (0, &[0][..], "not as GSD does"),
        (46, &[3], "version 3 of GSD is not read"),
        (15, &[0x80], "the index has"),
        (8 + 8, &[0xff; 8], "the index has"),
        (24 + 6, &[1], "the list of names has"),
        (entry(3, 7), &[1], "entry 3 of the index is of frame"),
        (entry(3, 28), &[9], "name 9"),
        (entry(3, 30), &[12], "type 12 of numbers"),
        (entry(3, 15), &[0x70], "of 'particles/position' of frame 1"),
        (entry(3, 23), &[0x70], "the file ends before"),
        (entry(3, 24), &[2], "has 2×2 numbers where 2×3"),
        (entry(4, 8), &[1], "has 1×1 numbers where 2×1"),
        (entry(4, 16), &[0], "the file has"),
        (entry(0, 8), &[5], "has not six numbers"),
        (entry(2, 8), &[0], "particle 0 has type 0 of 0 types"),
    ] {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        match parse_points(&file, Format::Gsd) {
            Err(error) => assert!(error.to_string().contains(words), "{error}, not {words}"),
            // A chunk elsewhere in the file.
            Ok(cloud) => assert!(words == "the file has" && cloud.len() == 2, "{words}"),
        }
    }
    let count = 2u32.to_le_bytes();
    let bare = file(2, &[(0, "particles/N", 3, 1, 1, &count)]);
    let error = refused(bare, Format::Gsd).to_string();
    assert!(error.contains("no particles/position"), "{error}");
    let error = refused(file(2, &[]), Format::Gsd).to_string();
    assert!(error.contains("there is no frame"), "{error}");
    // Chunks that share their bytes could make a small file a large cloud.
    let shared = floats(&[1.0; 3000]);
    let mut all = vec![(0, "particles/position", 9, 1000, 3, &shared[..])];
    all.push((0, "particles/N", 3, 1, 1, &[0xe8, 3, 0, 0]));
    all.push((0, "particles/velocity", 9, 1000, 3, &[]));
    all.push((0, "particles/image", 9, 1000, 3, &[]));
    let mut file = file(2, &all);
    let place = file[entry(0, 16)..entry(0, 24)].to_vec();
    for number in [2, 3] {
        file[entry(number, 16)..entry(number, 24)].copy_from_slice(&place);
    }
    let error = refused(&file, Format::Gsd);
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(
        error.to_string().contains("more bytes than the file has"),
        "{error}"
    );
}

//! Boxes: vectors, images and refusals.

use nearfield_grid::*;

#[test]
fn a_box_without_tilt_is_straight_whatever_it_was_made_from() {
    let lengths = [Some(4.0), None, Some(0.1)];
    let straight = Domain::new(lengths).unwrap();
    assert_eq!(Domain::triclinic(lengths, [0.0; 3]).unwrap(), straight);
    let vectors = [Some([4.0, 0.0, 0.0]), None, Some([0.0, -0.0, 0.1])];
    assert_eq!(Domain::from_vectors(vectors).unwrap(), straight);
    assert_eq!(straight.vectors(), vectors);
    assert!(straight.is_periodic() && !straight.is_tilted());
    assert!(!Domain::OPEN.is_periodic());
}

#[test]
fn image_vectors_are_rounded_once() {
    let lengths = [Some(0.1), Some(0.3), Some(0.7)];
    let tilted = Domain::triclinic(lengths, [0.05, -0.2, 0.01]).unwrap();
    assert!(tilted.is_tilted());
    let [x, y, z] = tilted.image_vector([3, -7, 9]);
    assert_eq!(x, ((3.0 * 0.1 - 7.0 * 0.05) - 9.0 * 0.2) as f32);
    assert_eq!(y, ((0.0 - 7.0 * 0.3) + 9.0 * 0.01) as f32);
    assert_eq!(z, (9.0 * 0.7) as f32);
    let opposite = tilted.image_vector([-3, 7, -9]);
    assert_eq!(opposite, [-x, -y, -z], "images come in pairs");
}

#[test]
fn a_tilt_of_an_open_axis_is_refused_by_name() {
    let cases = [
        ([Some(1.0), None, Some(3.0)], [-0.5, 0.0, 0.0], "xy", "y"),
        ([Some(1.0), Some(2.0), None], [0.0, 0.5, 0.0], "xz", "z"),
        ([Some(1.0), Some(2.0), None], [0.0, 0.0, 0.5], "yz", "z"),
        ([None; 3], [0.0, f64::NAN, 0.0], "xz", "z"),
    ];
    for (lengths, tilts, name, open) in cases {
        let message = Domain::triclinic(lengths, tilts).unwrap_err().to_string();
        assert!(message.contains(&format!("(tilt {name})")), "{message}");
        assert!(
            message.contains(&format!("{open} axis is open")),
            "{message}"
        );
    }
}

#[test]
fn vectors_may_lean_along_open_axes() {
    let aligned = [Some([1.0, 0.0, 0.0]), Some([0.5, 1.0, 0.0]), None];
    let aligned = Domain::from_vectors(aligned).unwrap();
    assert!(aligned.is_tilted() && !aligned.is_slanted());
    let (line, other) = ([1.0, 2.0, 3.0], [0.0, -4.0, 1.0]);
    for (vectors, image) in [
        ([Some(line), None, None], [2, 0, 0]),
        ([None, Some(line), None], [0, 2, 0]),
        ([None, None, Some(line)], [0, 0, 2]),
        ([Some(other), None, Some(line)], [0, 0, 2]),
        ([Some(line), Some(other), None], [2, 0, 0]),
    ] {
        let domain = Domain::from_vectors(vectors).unwrap();
        assert!(domain.is_tilted() && domain.is_slanted());
        assert_eq!(domain.vectors(), vectors);
        assert_eq!(domain.image_vector_f64(image), [2.0, 4.0, 6.0]);
        // Open axes have no images, whatever the count.
        let open = [0, 1, 2].map(|k| i32::from(vectors[k].is_none()));
        let none = domain.image_vector_f64(open).map(f64::to_bits);
        assert_eq!(none, [0; 3]);
    }
    let tilts = [0.5, 0.0, 0.0];
    let leaning = Domain::triclinic([None, Some(2.0), None], tilts).unwrap();
    assert_eq!(leaning.vectors(), [None, Some([0.5, 2.0, 0.0]), None]);
}

#[test]
fn two_vectors_nearly_in_one_line_are_refused() {
    let nearly = [Some([1.0, 2.0, 3.0]), None, Some([2.0, 4.0, 6.001])];
    let parallel = [None, Some([1.0, 2.0, 3.0]), Some([-2.0, -4.0, -6.0])];
    for (vectors, name) in [(nearly, 'a'), (parallel, 'b')] {
        let error = Domain::from_vectors(vectors).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::FlatBox { vector, width, .. } if *vector == name && *width < 0.01),
            "{error}"
        );
    }
}

#[test]
fn bad_vectors_are_refused_by_name() {
    for bad in [
        [0.0; 3],
        [f64::NAN, 1.0, 0.0],
        [1e300, 0.0, 0.0],
        [f64::INFINITY; 3],
    ] {
        let vectors = [Some([1.0, 0.0, 0.0]), Some(bad), Some([0.0, 0.0, 1.0])];
        let error = Domain::from_vectors(vectors).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::BoxVector { name: 'b', .. }),
            "{error}"
        );
    }
    let nan = Domain::triclinic([Some(1.0); 3], [0.0, f64::NAN, 0.0]).unwrap_err();
    assert!(
        matches!(nan.kind(), ErrorKind::BoxVector { name: 'c', .. }),
        "{nan}"
    );
    let length = Domain::triclinic([Some(1.0), Some(-1.0), None], [0.0; 3]).unwrap_err();
    assert!(matches!(
        length.kind(),
        ErrorKind::BoxLength { axis: 'y', .. }
    ));
    let flat = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 3.0, 0.0]].map(Some);
    let message = Domain::from_vectors(flat).unwrap_err().to_string();
    assert!(message.contains("nearly lie in one plane"), "{message}");
}

/// Boxes that lean far or are nearly flat, with open axes and left-handed ones among them.
const LEANING: [[Option<[f64; 3]>; 3]; 7] = [
    [
        Some([1.0, 0.0, 0.0]),
        Some([37.3, 1.1, 0.0]),
        Some([-11.0, 12.7, 0.9]),
    ],
    [
        Some([9.7, 0.3, 0.1]),
        Some([0.2, 10.1, -0.3]),
        Some([9.9, 10.4, 0.03]),
    ],
    [
        Some([0.0, 0.0, -2.4]),
        Some([3.1, 0.1, 900.0]),
        Some([0.2, 9.0, 1.0]),
    ],
    [Some([3.0, 0.25, 0.0]), None, Some([1000.0, 90.0, 2.0])],
    [Some([3.0, 0.0, 0.0]), Some([700.0, 2.0, 0.0]), None],
    [None, Some([0.0, 3.0, 0.1]), Some([0.0, -400.0, 4.0])],
    [
        Some([1.0, 0.0, 0.0]),
        Some([512.0, 1.0, 0.0]),
        Some([0.0, 0.0, 1.0]),
    ],
];

#[test]
fn images_of_a_reduced_box_have_the_vectors_of_the_box_as_given() {
    for vectors in LEANING {
        let given = Domain::from_vectors(vectors).unwrap();
        let short = given.reduced();
        assert!(short.is_reduced() && short.is_tilted() && !given.is_reduced());
        assert_eq!(short.reduced(), short);
        let open = [0, 1, 2].map(|k| vectors[k].is_none());
        assert_eq!(short.lengths().map(|length| length.is_none()), open);
        let (mut counts, mut seen) = ([[0.0f32; 343]; 3], Vec::new());
        for k in 0..343i64 {
            let image = [k % 7 - 3, k / 7 % 7 - 3, k / 49 - 3];
            let image = [0, 1, 2].map(|k| if open[k] { 0 } else { image[k] });
            for axis in 0..3 {
                counts[axis][k as usize] = image[axis] as f32 - 2.0;
            }
            let of_given = short.given_image(image);
            assert_eq!(short.given_image(image.map(|n| -n)), of_given.map(|n| -n));
            let bits = |v: [f64; 3]| v.map(f64::to_bits);
            assert_eq!(
                bits(short.image_vector_f64(image)),
                bits(given.image_vector_f64(of_given))
            );
            seen.push(short.image_vector_f64(image));
        }
        let more = open.map(|open| if open { 0.0 } else { 2.0 });
        for (axis, open) in open.into_iter().enumerate() {
            if open {
                counts[axis].fill(0.0);
            }
        }
        let mut to = [[0.0f64; 343]; 3];
        let [x, y, z] = &mut to;
        let [a, b, c] = &counts;
        short.image_vectors([a, b, c], more, [x, y, z]);
        for (k, vector) in seen.iter().enumerate() {
            assert_eq!(
                [0, 1, 2].map(|axis| to[axis][k].to_bits()),
                vector.map(f64::to_bits)
            );
        }
    }
}

#[test]
fn a_leaning_box_is_searched_by_few_rows() {
    for vectors in LEANING {
        let given = Domain::from_vectors(vectors).unwrap();
        for radius in [Radius::new(1.0).unwrap(), Radius::new_f64(1.0).unwrap()] {
            let lattice = Lattice::new(radius, given.reduced(), 1, &Bounds::EMPTY).unwrap();
            let cells: i64 = lattice.rows().iter().map(|row| 2 * row.reach + 1).sum();
            assert!(cells < 400, "{cells} neighbour cells in {vectors:?}");
        }
    }
    // Boxes as simulations have them stay as they are.
    let hexagonal = [
        [1.0, 0.0, 0.0],
        [-0.5, 0.75f64.sqrt(), 0.0],
        [0.0, 0.0, 1.6],
    ];
    let half = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.5, 0.5, 1.0]];
    for vectors in [hexagonal, half] {
        let domain = Domain::from_vectors(vectors.map(Some)).unwrap();
        assert_eq!(domain.reduced(), domain);
    }
    assert_eq!(Domain::OPEN.reduced(), Domain::OPEN);
}

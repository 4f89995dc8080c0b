//! The box of a cloud, from the command line or from its file.

use crate::failure::Failure;
use nearfield::Builder;
use nearfield_grid::Domain;
use nearfield_io::{Dimensions, PointCloud, SimulationBox};
use std::str::FromStr;

/// Flags that make axes periodic.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DomainOptions {
    /// Box lengths and perhaps tilts; axes not named by --periodic stay open. Two lengths
    /// suffice if z is open: for points in the plane, or with --periodic xy
    #[arg(
        long = "box",
        value_name = "LX,LY[,LZ[,XY,XZ,YZ]]",
        allow_hyphen_values = true
    )]
    cell: Option<Lengths>,
    /// Periodic axes, any of x, y and z [default: all axes of --box, or those of the file]
    #[arg(long, value_name = "AXES")]
    periodic: Option<Axes>,
}

/// Which axes are periodic, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Boundaries {
    /// Lengths of the periodic axes and the tilts xy, xz and yz.
    Lengths([Option<f64>; 3], [f64; 3]),
    /// Box vectors of the periodic axes.
    Vectors([Option<[f64; 3]>; 3]),
}

/// Box lengths, that along z where it is given, and the tilts xy, xz and yz.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lengths {
    plane: [f64; 2],
    z: Option<f64>,
    tilts: [f64; 3],
}

/// A subset of the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axes([bool; 3]);

impl Lengths {
    fn new(plane: [f64; 2], z: Option<f64>, tilts: [f64; 3]) -> Self {
        Self { plane, z, tilts }
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<f64> = text
            .split(',')
            .map(|part| {
                part.trim()
                    .parse()
                    .map_err(|_| format!("\"{part}\" is not a number"))
            })
            .collect::<Result<_, _>>()?;
        match numbers[..] {
            [lx, ly] => Ok(Self::new([lx, ly], None, [0.0; 3])),
            [lx, ly, lz] => Ok(Self::new([lx, ly], Some(lz), [0.0; 3])),
            [lx, ly, lz, xy, xz, yz] => Ok(Self::new([lx, ly], Some(lz), [xy, xz, yz])),
            _ => Err(format!(
                "{} numbers instead of two or three lengths, or three lengths and three tilts",
                numbers.len()
            )),
        }
    }
}

impl FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut axes = [false; 3];
        for letter in text.chars() {
            let axis = "xyz"
                .find(letter)
                .ok_or_else(|| format!("\"{letter}\" is not an axis: use any of x, y and z"))?;
            axes[axis] = true;
        }
        Ok(Self(axes))
    }
}

impl Boundaries {
    /// The engine's settings with these boundaries.
    pub(crate) fn set(self, builder: Builder) -> Builder {
        match self {
            Self::Lengths(lengths, tilts) => builder.triclinic(lengths, tilts),
            Self::Vectors(vectors) => builder.box_vectors(vectors),
        }
    }

    /// The domain itself.
    ///
    /// # Errors
    /// When the box cannot be one.
    pub(crate) fn domain(self) -> Result<Domain, nearfield_grid::Error> {
        match self {
            Self::Lengths(lengths, tilts) => Domain::triclinic(lengths, tilts),
            Self::Vectors(vectors) => Domain::from_vectors(vectors),
        }
    }
}

impl DomainOptions {
    /// The boundaries from the command line, else those of the file; `None` if all axes are open.
    ///
    /// # Errors
    /// When axes are to be periodic, by the flags or by the file, but no box is known.
    pub(crate) fn boundaries(&self, cloud: &PointCloud) -> Result<Option<Boundaries>, Failure> {
        let found = self.of(cloud.simulation_box.as_ref(), cloud.dimensions)?;
        match cloud.periodic_without_box {
            // Neither a box nor `--periodic ""` is given.
            Some(axes) if axes != [false; 3] && self.cell.is_none() && self.periodic.is_none() => {
                let flags = axes.map(|axis| if axis { "T" } else { "F" }).join(" ");
                Err(Failure::Wrong(format!(
                    "the file has pbc=\"{flags}\" but no Lattice: give --box LX,LY,LZ, or \
                     --periodic \"\" for open axes"
                )))
            }
            _ => Ok(found),
        }
    }

    /// As [`boundaries`](Self::boundaries), for points that come with this box and number
    /// of dimensions.
    pub(crate) fn of(
        &self,
        file: Option<&SimulationBox>,
        dimensions: Dimensions,
    ) -> Result<Option<Boundaries>, Failure> {
        let asked = self.periodic.map(|Axes(axes)| axes);
        if asked == Some([false; 3]) {
            return Ok(None);
        }
        if let Some(Lengths { plane, z, tilts }) = self.cell {
            let axes = match (asked, z) {
                (Some(axes), _) => axes,
                (None, None) if dimensions == Dimensions::Two => [true, true, false],
                (None, _) => [true; 3],
            };
            let lengths = match z {
                Some(z) => [plane[0], plane[1], z],
                None if !axes[2] => [plane[0], plane[1], 1.0],
                None => {
                    return Err(Failure::Usage(
                        "--box has two lengths, but z is periodic: give a third, or --periodic xy"
                            .into(),
                    ));
                }
            };
            return Ok(Some(Boundaries::Lengths(only(axes, lengths), tilts)));
        }
        match (file, asked) {
            (Some(cell), _) => {
                let axes = asked.unwrap_or(cell.periodic);
                let vectors = only(axes, cell.vectors);
                Ok((axes != [false; 3]).then_some(Boundaries::Vectors(vectors)))
            }
            (None, Some(_)) => Err(Failure::Wrong(
                "--periodic needs box lengths: the file states none, give --box LX,LY,LZ".into(),
            )),
            (None, None) => Ok(None),
        }
    }
}

/// The values of the axes that are chosen.
fn only<T: Copy>(axes: [bool; 3], all: [T; 3]) -> [Option<T>; 3] {
    std::array::from_fn(|axis| axes[axis].then_some(all[axis]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(cell: Option<&str>, axes: Option<&str>) -> DomainOptions {
        DomainOptions {
            cell: cell.map(|text| text.parse().unwrap()),
            periodic: axes.map(|text| text.parse().unwrap()),
        }
    }

    const SLAB: SimulationBox = SimulationBox {
        vectors: [[4.0, 0.0, 0.0], [1.0, 5.0, 0.0], [0.0, 0.0, 6.0]],
        periodic: [true, true, false],
    };

    #[test]
    fn the_command_line_overrides_the_file() {
        let of = |cell, axes, file| options(cell, axes).of(file, Dimensions::Three).unwrap();
        let [a, b, _] = SLAB.vectors.map(Some);
        let vectors = |vectors| Some(Boundaries::Vectors(vectors));
        assert_eq!(of(None, None, None), None);
        assert_eq!(of(None, None, Some(&SLAB)), vectors([a, b, None]));
        assert_eq!(of(None, Some("x"), Some(&SLAB)), vectors([a, None, None]));
        let lengths = [None, Some(2.0), Some(3.0)];
        assert_eq!(
            of(Some("1,2,3"), Some("zy"), Some(&SLAB)),
            Some(Boundaries::Lengths(lengths, [0.0; 3]))
        );
        assert_eq!(of(None, Some(""), Some(&SLAB)), None);
        assert_eq!(of(Some("1,2,3"), Some(""), None), None);
        let open = SimulationBox {
            periodic: [false; 3],
            ..SLAB
        };
        assert_eq!(of(None, None, Some(&open)), None);
    }

    #[test]
    fn a_box_has_three_lengths_and_perhaps_three_tilts() {
        let lengths = |z, tilts| Ok(Lengths::new([1.0, 2.0], z, tilts));
        assert_eq!("1,2".parse(), lengths(None, [0.0; 3]));
        assert_eq!("1, 2,3".parse(), lengths(Some(3.0), [0.0; 3]));
        let tilted = "1,2,3,0.5,-4,0".parse();
        assert_eq!(tilted, lengths(Some(3.0), [0.5, -4.0, 0.0]));
        for text in ["1", "1,2,3,4", "1,2,3,4,5", "1,2,3,4,5,6,7"] {
            let error = text.parse::<Lengths>().unwrap_err();
            assert!(
                error.contains("numbers instead of two or three lengths"),
                "{error}"
            );
        }
        assert!("1,2,z".parse::<Lengths>().unwrap_err().contains("\"z\""));
    }

    #[test]
    fn two_lengths_suffice_if_z_is_open() {
        let plane = Some(Boundaries::Lengths([Some(1.0), Some(2.0), None], [0.0; 3]));
        for (axes, dimensions) in [(None, Dimensions::Two), (Some("xy"), Dimensions::Three)] {
            let found = options(Some("1,2"), axes).of(None, dimensions);
            assert_eq!(found.unwrap(), plane);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |cell, axes| {
            let found = options(cell, axes).of(None, Dimensions::Three);
            found.unwrap_err().to_string()
        };
        assert!(refused(None, Some("x")).contains("--box"));
        assert!(refused(Some("1,2"), None).contains("--periodic xy"));
        assert!(refused(Some("1,2"), Some("xz")).contains("--periodic xy"));
        assert!("xw".parse::<Axes>().unwrap_err().contains("\"w\""));
    }
}

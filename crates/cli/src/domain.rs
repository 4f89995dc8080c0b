//! The box a cloud lives in: from the command line, or from the file where it states one.

use crate::failure::Failure;
use nearfield_io::SimulationBox;
use std::str::FromStr;

/// Flags that make axes periodic.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DomainOptions {
    /// Box lengths; axes not named by --periodic stay open
    #[arg(long = "box", value_name = "LX,LY,LZ")]
    lengths: Option<Lengths>,
    /// Periodic axes, any of x, y and z [default: all axes of --box, or what the file says]
    #[arg(long, value_name = "AXES")]
    periodic: Option<Axes>,
}

/// Three box lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lengths([f64; 3]);

/// A subset of the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axes([bool; 3]);

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lengths: Vec<f64> = text
            .split(',')
            .map(|part| {
                part.trim()
                    .parse()
                    .map_err(|_| format!("\"{part}\" is no number"))
            })
            .collect::<Result<_, _>>()?;
        <[f64; 3]>::try_from(lengths)
            .map(Self)
            .map_err(|lengths| format!("{} lengths instead of three", lengths.len()))
    }
}

impl FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut axes = [false; 3];
        for letter in text.chars() {
            let axis = "xyz"
                .find(letter)
                .ok_or_else(|| format!("\"{letter}\" is no axis: use any of x, y and z"))?;
            axes[axis] = true;
        }
        Ok(Self(axes))
    }
}

impl DomainOptions {
    /// Box length of every periodic axis.
    ///
    /// # Errors
    /// When axes are to be periodic but no length is known, or the file's box is not orthogonal.
    pub(crate) fn periodic(
        &self,
        file: Option<&SimulationBox>,
    ) -> Result<[Option<f64>; 3], Failure> {
        let (lengths, axes) = match (self.lengths, file) {
            (Some(Lengths(lengths)), _) => (lengths, [true; 3]),
            (None, Some(cell)) if cell.periodic != [false; 3] || self.periodic.is_some() => {
                let lengths = cell.lengths().ok_or_else(|| {
                    Failure::Domain(format!(
                        "the file's box {:?} is not orthogonal, which is not supported yet; \
                         use an orthogonal cell or --periodic \"\" to ignore it",
                        cell.vectors
                    ))
                });
                match self.periodic {
                    Some(Axes(axes)) if axes == [false; 3] => return Ok([None; 3]),
                    _ => (lengths?, cell.periodic),
                }
            }
            (None, _) if self.periodic.is_some_and(|axes| axes.0 != [false; 3]) => {
                return Err(Failure::Domain(
                    "--periodic needs box lengths: the file states none, give --box LX,LY,LZ"
                        .into(),
                ));
            }
            (None, _) => return Ok([None; 3]),
        };
        let axes = self.periodic.map_or(axes, |axes| axes.0);
        Ok(std::array::from_fn(|axis| {
            axes[axis].then_some(lengths[axis])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(lengths: Option<[f64; 3]>, axes: Option<&str>) -> DomainOptions {
        DomainOptions {
            lengths: lengths.map(Lengths),
            periodic: axes.map(|text| text.parse().unwrap()),
        }
    }

    const SLAB: SimulationBox = SimulationBox {
        vectors: [[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 6.0]],
        periodic: [true, true, false],
    };

    #[test]
    fn the_command_line_overrides_the_file() {
        let none = options(None, None);
        assert_eq!(none.periodic(None).unwrap(), [None; 3]);
        assert_eq!(
            none.periodic(Some(&SLAB)).unwrap(),
            [Some(4.0), Some(5.0), None]
        );
        let x = options(None, Some("x"));
        assert_eq!(x.periodic(Some(&SLAB)).unwrap(), [Some(4.0), None, None]);
        let boxed = options(Some([1.0, 2.0, 3.0]), Some("zy"));
        assert_eq!(
            boxed.periodic(Some(&SLAB)).unwrap(),
            [None, Some(2.0), Some(3.0)]
        );
        assert_eq!(
            options(None, Some("")).periodic(Some(&SLAB)).unwrap(),
            [None; 3]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = options(None, Some("x")).periodic(None).unwrap_err();
        assert!(error.to_string().contains("--box"));
        let mut tilted = SLAB;
        tilted.vectors[0][1] = 0.5;
        let error = options(None, None).periodic(Some(&tilted)).unwrap_err();
        assert!(error.to_string().contains("not orthogonal"));
        assert!("1,2".parse::<Lengths>().unwrap_err().contains("2 lengths"));
        assert!("xw".parse::<Axes>().unwrap_err().contains("\"w\""));
    }
}

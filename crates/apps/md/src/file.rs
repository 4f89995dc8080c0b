//! Text files: configurations of the NIST reference calculations, and coefficients.

use crate::{Cell, Error, ErrorKind, System};
use nearfield::kernels::{Coefficients, MAX_TYPES};
use nearfield_grid::memory::with_room;
use nearfield_io::parse_number;
use std::path::Path;

/// Lines with contents, and their numbers. They are found as they are needed: a list of
/// them would take many times the memory of the text.
struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
}

/// Number of words that are split from a line: one more than any line may have.
const MAX_WORDS: usize = 6;

impl<'a> Lines<'a> {
    fn of(path: &'a Path, text: &'a str) -> Self {
        Self { path, text }
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let said = |(number, line): (usize, &'a str)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            (!line.is_empty()).then_some((number + 1, line))
        };
        self.text.lines().enumerate().filter_map(said)
    }

    fn refuse(&self, line: usize, message: impl Into<String>) -> Error {
        ErrorKind::File {
            path: self.path.to_owned(),
            place: format!("line {line}"),
            message: one_line(&message.into()),
        }
        .into()
    }

    /// The words of a line as numbers; of a line of too many, one more than any may have.
    fn numbers(&self, (number, line): (usize, &str)) -> Result<Vec<f64>, Error> {
        line.split_whitespace()
            .take(MAX_WORDS)
            .map(|word| self.number(number, word))
            .collect()
    }

    fn number(&self, line: usize, word: &str) -> Result<f64, Error> {
        let found = parse_number(word);
        found.ok_or_else(|| self.refuse(line, format!("'{word}' is not a number")))
    }
}

/// Longest message about a file, characters.
const LONGEST: usize = 300;

/// A message that quotes a damaged file, cut and with control characters escaped: one line to show.
fn one_line(message: &str) -> String {
    let mut line = String::new();
    for symbol in message.chars().take(LONGEST) {
        if symbol.is_control() {
            line.extend(symbol.escape_default());
        } else {
            line.push(symbol);
        }
    }
    if message.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

fn text(path: &Path) -> Result<String, Error> {
    nearfield_files::read_text(path).map_err(Error::io(path))
}

/// Reads atoms of one kind as the NIST reference calculations of the Lennard-Jones fluid have them:
/// three box lengths, the number of atoms, then `index x y z` a line.
///
/// # Errors
/// [`ErrorKind::Io`], and [`ErrorKind::File`] naming the line.
pub fn read_nist(path: impl AsRef<Path>) -> Result<System, Error> {
    let path = path.as_ref();
    let text = text(path)?;
    let lines = Lines::of(path, &text);
    let mut rest = lines.iter();
    let (Some(first), Some(second)) = (rest.next(), rest.next()) else {
        return Err(lines.refuse(1, "there is no box and no number of atoms"));
    };
    let lengths = lines.numbers(first)?;
    let [x, y, z] = lengths[..] else {
        let found = lengths.len();
        return Err(lines.refuse(
            first.0,
            format!("{found} numbers instead of three box lengths"),
        ));
    };
    let count: usize = second
        .1
        .parse()
        .map_err(|_| lines.refuse(second.0, format!("'{}' is not a number of atoms", second.1)))?;
    let found = lines.iter().count() - 2;
    if found != count {
        let message = format!("{count} atoms, but {found} lines of them");
        return Err(lines.refuse(second.0, message));
    }
    let position = |line: (usize, &str)| {
        let numbers = lines.numbers(line)?;
        match numbers[..] {
            [_, x, y, z] => Ok([x, y, z]),
            _ => Err(lines.refuse(
                line.0,
                format!("{} numbers instead of index x y z", numbers.len()),
            )),
        }
    };
    let mut positions = with_room(count, "positions of atoms")?;
    for line in rest {
        positions.push(position(line)?);
    }
    System::new(positions, Cell::lengths([Some(x), Some(y), Some(z)])?)
}

/// A file of coefficients. A line is a kind of atoms, `NAME EPSILON SIGMA [CHARGE [MASS]]`, or two
/// kinds that are not to be mixed by rule, `NAME NAME EPSILON SIGMA`; `#` begins a comment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldFile {
    /// Names of the kinds.
    pub names: Vec<String>,
    /// Coefficients of every kind.
    pub types: Vec<Coefficients>,
    /// Charge of every kind, 0 where the file says nothing.
    pub charges: Vec<f32>,
    /// Mass of every kind, 1 where the file says nothing.
    pub masses: Vec<f64>,
    /// Pairs of kinds with coefficients of their own.
    pub pairs: Vec<(usize, usize, Coefficients)>,
}

impl FieldFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and [`ErrorKind::File`] naming the line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = text(path)?;
        let lines = Lines::of(path, &text);
        let mut found = Self::default();
        for (number, line) in lines.iter() {
            let words: Vec<_> = line.split_whitespace().take(MAX_WORDS).collect();
            let is_number = |at: usize| {
                words
                    .get(at)
                    .is_none_or(|word| parse_number::<f64>(word).is_some())
            };
            match (words.len(), is_number(1)) {
                (3..=5, true) => found.add(&lines, number, &words)?,
                (4, false) => found.add_pair(&lines, number, &words)?,
                _ => {
                    let message =
                        "a line is NAME EPSILON SIGMA [CHARGE [MASS]] or NAME NAME EPSILON SIGMA";
                    return Err(lines.refuse(number, message));
                }
            }
        }
        if found.names.is_empty() {
            Err(lines.refuse(1, "there are no coefficients"))
        } else {
            Ok(found)
        }
    }

    /// The kind of a name.
    pub fn kind(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn add(&mut self, lines: &Lines<'_>, number: usize, words: &[&str]) -> Result<(), Error> {
        let name = words[0];
        if self.kind(name).is_some() {
            return Err(lines.refuse(number, format!("'{name}' has coefficients already")));
        }
        if self.names.len() == MAX_TYPES {
            return Err(lines.refuse(number, format!("more than {MAX_TYPES} kinds of atoms")));
        }
        let value = |at: usize, other: f64| match words.get(at) {
            Some(word) => lines.number(number, word),
            None => Ok(other),
        };
        self.types.push(Coefficients {
            epsilon: value(1, 0.0)?,
            sigma: value(2, 0.0)?,
        });
        self.charges.push(value(3, 0.0)? as f32);
        self.masses.push(value(4, 1.0)?);
        self.names.push(name.to_owned());
        Ok(())
    }

    fn add_pair(&mut self, lines: &Lines<'_>, number: usize, words: &[&str]) -> Result<(), Error> {
        let kind = |name: &str| {
            let message = format!("'{name}' is not a kind named in a line before");
            self.kind(name).ok_or_else(|| lines.refuse(number, message))
        };
        let of = Coefficients {
            epsilon: lines.number(number, words[2])?,
            sigma: lines.number(number, words[3])?,
        };
        let pair = (kind(words[0])?, kind(words[1])?, of);
        self.pairs.push(pair);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with this text.
    fn with_file<T>(text: &str, read: impl Fn(&Path) -> Result<T, Error>) -> Result<T, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.txt");
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_message_about_a_damaged_file_is_one_line_of_bounded_length() {
        let long = "7".repeat(5000);
        for word in ["0\u{8}", "\u{1b}[2J", "x\u{0}", &long] {
            let file = format!("1 2 3\n1\n0 0 0 {word}x\n");
            for message in [
                with_file(&file, |path| read_nist(path)).unwrap_err(),
                with_file(&format!("A {word}x 1 1 1"), |path| FieldFile::read(path)).unwrap_err(),
            ] {
                assert!(!message.contains(char::is_control), "{message:?}");
                assert!(message.chars().count() < 500, "{message}");
            }
        }
    }

    #[test]
    fn a_configuration_has_a_box_a_count_and_as_many_lines() {
        let read = |text| with_file(text, |path| read_nist(path));
        let text = "\u{feff} 1.0 2.0D0 3.0\r\n 2\n 1 0.1 0.2 3.0D-01\n 2 -1e0 0 0\n\n";
        let system = read(text).unwrap();
        assert_eq!(system.positions(), [[0.1, 0.2, 0.3], [-1.0, 0.0, 0.0]]);
        assert_eq!(system.cell().volume(), Some(6.0));
        for (text, message) in [
            ("", "line 1: there is no box"),
            ("1 2\n0\n", "line 1: 2 numbers instead of three"),
            ("1 2 3\nmany\n", "line 2: 'many' is not a number of atoms"),
            ("1 2 3\n2\n1 0 0 0\n", "line 2: 2 atoms, but 1 lines"),
            ("1 2 3\n1\n1 0 x 0\n", "line 3: 'x' is not a number"),
            ("1 2 3\n1\n1 0 0\n", "line 3: 3 numbers instead of index"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn coefficients_are_of_kinds_and_of_pairs_of_them() {
        let read = |text| with_file(text, |path| FieldFile::read(path));
        let found =
            read("# salt\nNa 0.1 2.0 1 22.99 # cation\nCl 0.2 4.0 -1\nAr 1 3\nNa Cl 0.5 2.5\n")
                .unwrap();
        assert_eq!(found.names, ["Na", "Cl", "Ar"]);
        assert_eq!(found.charges, [1.0, -1.0, 0.0]);
        assert_eq!(found.masses, [22.99, 1.0, 1.0]);
        let own = Coefficients {
            epsilon: 0.5,
            sigma: 2.5,
        };
        assert_eq!(found.pairs, [(0, 1, own)]);
        for (text, message) in [
            ("# nothing\n", "no coefficients"),
            ("Na 1\n", "line 1: a line is NAME"),
            ("Na 1 2\nNa 1 2\n", "line 2: 'Na' has coefficients already"),
            ("Na 1 2\nNa Cl 1 2\n", "line 2: 'Cl' is not a kind"),
            ("Na 1 two\n", "line 1: 'two' is not a number"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}

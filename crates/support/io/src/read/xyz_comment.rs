//! Interprets the keys `Lattice`, `pbc`, `Properties` and `Time` of an extended XYZ comment.
//!
//! Upper and lower case are equal. Other keys are ignored, `Origin` too, because pairs do not
//! depend on the corner of the box. **Invariant others rely on:** if columns are named, exactly one
//! of them holds positions, with two or three components.

use std::collections::HashSet;

use super::csv::MAX_COLUMNS;
use crate::{
    cursor::parse,
    error::{Fault, Parsed, Place, quoted},
    extxyz::{Pairs, Value},
};

/// Content of the comment; a plain comment has none.
#[derive(Debug, Default)]
pub(super) struct Comment {
    pub(super) vectors: Option<[[f64; 3]; 3]>,
    pub(super) periodic: Option<[bool; 3]>,
    pub(super) time: Option<f64>,
    pub(super) columns: Option<Vec<Column>>,
}

/// Keys that mean something here.
const KEYS: [&str; 4] = ["lattice", "pbc", "properties", "time"];

impl Comment {
    /// `number` is the line number in the file.
    pub(super) fn parse(line: &[u8], number: usize) -> Parsed<Self> {
        let line = String::from_utf8_lossy(line);
        let mut found: [Option<Value<'_>>; KEYS.len()] = [None; KEYS.len()];
        for pair in Pairs::new(&line) {
            let pair = match pair {
                Ok(pair) => pair,
                // Anything may stand in a comment that names no key of ours.
                Err(_) if !names_a_key(&line) => return Ok(Self::default()),
                Err(error) => return Err(Fault::malformed(Place::Line(number), error.to_string())),
            };
            let place = KEYS
                .iter()
                .position(|key| key.eq_ignore_ascii_case(&pair.key));
            let (Some(place), Some(value)) = (place, pair.value) else {
                continue;
            };
            if found[place].is_some_and(|before| before.raw() != value.raw()) {
                let message = format!("{} is given twice", quoted(pair.key.as_bytes()));
                return Err(Fault::malformed(Place::Line(number), message));
            }
            found[place] = Some(value);
        }
        let [lattice, pbc, properties, time] = found;
        let refuse = |refusal: String| Fault::malformed(Place::Line(number), refusal);
        Ok(Self {
            vectors: lattice.map(vectors).transpose().map_err(refuse)?,
            periodic: pbc.map(periodic).transpose().map_err(refuse)?,
            time: time.and_then(|time| parse(time.raw().as_bytes())),
            columns: properties.map(columns).transpose().map_err(refuse)?,
        })
    }
}

/// Returns true if a line that cannot be split has one of our keys before a `=`.
fn names_a_key(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let named = |key: &&str| {
        line.match_indices(*key).any(|(at, _)| {
            let behind = line[at + key.len()..].trim_start_matches(['"', ' ', '\t']);
            behind.starts_with('=')
        })
    };
    KEYS.iter().any(named)
}

/// One property of every point.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) contents: Contents,
    /// How many words of a line it takes.
    pub(super) components: usize,
}

/// Type of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Position,
    Species,
    Real,
    Integer,
    Ignored,
}

impl Column {
    pub(super) fn new(name: &str, contents: Contents, components: usize) -> Self {
        Self {
            name: name.to_owned(),
            contents,
            components,
        }
    }

    pub(super) fn is_flat_position(&self) -> bool {
        self.contents == Contents::Position && self.components == 2
    }
}

/// Three rows of three, nine numbers, or the three lengths of a straight box.
fn vectors(value: Value<'_>) -> Result<[[f64; 3]; 3], String> {
    let number = |word: &str| parse(word.as_bytes()).filter(|number: &f64| number.is_finite());
    let rows = value.rows(9, number).unwrap_or_default();
    let widths: Vec<usize> = rows.iter().map(Vec::len).collect();
    let all = rows.concat();
    match (&widths[..], &all[..]) {
        (&[3], &[x, y, z]) => Ok([[x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, z]]),
        (&[9] | &[3, 3, 3], &[a, b, c, d, e, f, g, h, i]) => Ok([[a, b, c], [d, e, f], [g, h, i]]),
        _ => Err(refused(
            "Lattice",
            value,
            "three lengths, nine numbers or three rows of three",
        )),
    }
}

/// Three flags, or one for all axes.
fn periodic(value: Value<'_>) -> Result<[bool; 3], String> {
    let flag = |word: &str| match word.to_ascii_lowercase().as_str() {
        "t" | "true" | "1" => Some(true),
        "f" | "false" | "0" => Some(false),
        _ => None,
    };
    match value.rows(3, flag).unwrap_or_default()[..] {
        [ref flags] => match flags[..] {
            [a, b, c] => Ok([a, b, c]),
            [all] => Ok([all; 3]),
            _ => Err(refused("pbc", value, "three of T and F")),
        },
        _ => Err(refused("pbc", value, "three of T and F")),
    }
}

/// Reads `species:S:1:pos:R:3:velo:R:3`.
fn columns(value: Value<'_>) -> Result<Vec<Column>, String> {
    let text = value.text();
    let refused = || {
        refused(
            "Properties",
            value,
            "name:type:count, repeated, with one pos:R:3",
        )
    };
    let fields: Vec<&str> = text
        .trim_ascii()
        .split(':')
        .take(3 * MAX_COLUMNS + 1)
        .collect();
    let (triples, rest) = fields.as_chunks();
    let columns: Option<Vec<Column>> = triples.iter().map(column).collect();
    let columns = columns.filter(|_| rest.is_empty()).ok_or_else(refused)?;
    let mut seen = HashSet::new();
    let mut names = columns.iter().map(|column| column.name.as_str());
    if let Some(name) = names.find(|name| !seen.insert(name.to_ascii_lowercase())) {
        return Err(format!("Properties name {} twice", quoted(name.as_bytes())));
    }
    let positions = columns
        .iter()
        .filter(|column| column.contents == Contents::Position);
    match positions
        .map(|column| column.components)
        .collect::<Vec<_>>()[..]
    {
        [2 | 3] => Ok(columns),
        _ => Err(refused()),
    }
}

fn column([name, kind, components]: &[&str; 3]) -> Option<Column> {
    let components = parse(components.as_bytes()).filter(|&count| count > 0)?;
    let contents = match (*kind, name.to_ascii_lowercase().as_str(), components) {
        ("R", "pos", _) => Contents::Position,
        ("S", "species", 1) => Contents::Species,
        ("R", ..) => Contents::Real,
        ("I", ..) => Contents::Integer,
        ("S" | "L", ..) => Contents::Ignored,
        _ => return None,
    };
    Some(Column::new(name, contents, components))
}

fn refused(key: &str, value: Value<'_>, needed: &str) -> String {
    format!("{key}={} is not {needed}", quoted(value.raw().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Comment {
        Comment::parse(line.as_bytes(), 2).unwrap_or_else(|fault| panic!("{line}: {fault:?}"))
    }

    #[test]
    fn boxes_and_axes_are_read_in_every_form() {
        let straight = Some([[1.5, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]);
        for lattice in [
            "\"1.5 0 0 0 2 0 0 0 3\"",
            "\"1.5 2 3\"",
            "{1.5 2.0 3}",
            "[1.5, 2, 3]",
            "[[1.5,0,0],[0,2,0],[0,0,3]]",
            "[1.5,0,0,0,2,0,0,0,3]",
            "\"1.5D+00 2d0 3.E0\"",
            "\"1.5\t2  3\"",
        ] {
            assert_eq!(
                parsed(&format!("Lattice={lattice}")).vectors,
                straight,
                "{lattice}"
            );
        }
        for pbc in [
            "\"T F T\"",
            "{1 0 1}",
            "[true, False,TRUE]",
            "[T,F,T]",
            "\"true f 1\"",
        ] {
            let found = parsed(&format!("PBC = {pbc}")).periodic;
            assert_eq!(found, Some([true, false, true]), "{pbc}");
        }
        assert_eq!(parsed("pbc=T").periodic, Some([true; 3]));
        assert_eq!(parsed("Time=2.5D-1").time, Some(0.25));
    }

    #[test]
    fn what_is_no_pair_is_a_plain_comment_unless_it_names_a_key() {
        for line in [
            "a 5\" pipe",
            "= = =",
            "x={1",
            "lattice of 3",
            "",
            "the pbc \"are",
        ] {
            assert!(parsed(line).vectors.is_none(), "{line}");
        }
        for line in [
            "Lattice=\"1 2 3",
            "pipe=5\" pbc=\"T T T\"",
            "a={1 \"Time\" = 3",
            "Lattice=\"1 2 3\" Lattice=\"4 5 6\"",
            "note='pbc=\"F F F\"' pbc=\"T T T\"",
        ] {
            assert!(Comment::parse(line.as_bytes(), 2).is_err(), "{line}");
        }
        assert_eq!(parsed("pbc=T pbc=T").periodic, Some([true; 3]));
    }
}

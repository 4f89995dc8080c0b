//! The comment line of an extended XYZ file: `key=value` pairs, values with blanks in quotes or
//! braces.
//!
//! **Invariant others rely on:** when columns are named, exactly one of them holds positions, with
//! two or three components.

use std::collections::HashSet;

use super::csv::MAX_COLUMNS;
use crate::{
    cursor::parse,
    error::{Fault, Parsed, Place, quoted},
    number::Number,
};

/// Content of the comment; a plain comment has none.
#[derive(Debug, Default)]
pub(super) struct Comment {
    pub(super) vectors: Option<[[f64; 3]; 3]>,
    pub(super) periodic: Option<[bool; 3]>,
    pub(super) time: Option<f64>,
    pub(super) columns: Option<Vec<Column>>,
}

impl Comment {
    pub(super) fn parse(line: &[u8]) -> Parsed<Self> {
        let line = String::from_utf8_lossy(line);
        let mut comment = Self::default();
        for (key, value) in Pairs(&line) {
            match key.to_ascii_lowercase().as_str() {
                "lattice" => comment.vectors = Some(vectors(value)?),
                "pbc" => comment.periodic = Some(periodic(value)?),
                "time" => comment.time = parse(value.as_bytes()),
                "properties" => comment.columns = Some(columns(value)?),
                _ => {}
            }
        }
        Ok(comment)
    }
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
    /// The columns of a file that does not name them, judged by its first point: three words that
    /// are all numbers are a position, anything else begins with a symbol.
    pub(super) fn unnamed(first: &[u8]) -> Vec<Self> {
        let words: Vec<_> = first
            .split(u8::is_ascii_whitespace)
            .filter(|w| !w.is_empty())
            .take(4)
            .collect();
        let bare = words.len() == 3 && words.iter().all(|word| Number::parse(word).is_some());
        let column = |name: &str, contents, components| Self {
            name: name.to_owned(),
            contents,
            components,
        };
        let position = column("pos", Contents::Position, 3);
        if bare {
            vec![position]
        } else {
            vec![column("species", Contents::Species, 1), position]
        }
    }

    pub(super) fn is_flat_position(&self) -> bool {
        self.contents == Contents::Position && self.components == 2
    }
}

/// Splits `a=1 b="2 3" c` into keys and values; a word without `=` has an empty value.
struct Pairs<'a>(&'a str);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_start();
        let end = text
            .find(|c: char| c == '=' || c.is_whitespace())
            .unwrap_or(text.len());
        let (key, rest) = text.split_at(end);
        let Some(rest) = rest.strip_prefix('=') else {
            self.0 = rest;
            return (!key.is_empty()).then_some((key, ""));
        };
        let closing = match rest.chars().next() {
            Some('"') => Some('"'),
            Some('{') => Some('}'),
            _ => None,
        };
        let (value, rest) = match closing {
            Some(closing) => rest[1..].split_once(closing).unwrap_or((&rest[1..], "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        self.0 = rest;
        Some((key, value))
    }
}

fn vectors(value: &str) -> Parsed<[[f64; 3]; 3]> {
    let numbers: Option<Vec<f64>> = value
        .split_whitespace()
        .take(10)
        .map(|word| word.parse().ok())
        .collect();
    let rows = numbers.as_deref().map(<[f64]>::as_chunks);
    match rows {
        Some(([a, b, c], [])) => Ok([*a, *b, *c]),
        _ => Err(refused("Lattice", value, "nine numbers")),
    }
}

fn periodic(value: &str) -> Parsed<[bool; 3]> {
    let flag = |word: &str| match word.to_ascii_lowercase().as_str() {
        "t" | "true" | "1" => Some(true),
        "f" | "false" | "0" => Some(false),
        _ => None,
    };
    let flags: Option<Vec<bool>> = value.split_whitespace().take(4).map(flag).collect();
    match flags.as_deref() {
        Some(&[a, b, c]) => Ok([a, b, c]),
        _ => Err(refused("pbc", value, "three of T and F")),
    }
}

/// Reads `species:S:1:pos:R:3:velo:R:3`.
fn columns(value: &str) -> Parsed<Vec<Column>> {
    let refused = || {
        refused(
            "Properties",
            value,
            "name:type:count, repeated, with one pos:R:3",
        )
    };
    let fields: Vec<&str> = value.split(':').take(3 * MAX_COLUMNS + 1).collect();
    let (triples, rest) = fields.as_chunks();
    let columns: Option<Vec<Column>> = triples.iter().map(column).collect();
    let columns = columns.filter(|_| rest.is_empty()).ok_or_else(refused)?;
    let mut seen = HashSet::new();
    let mut names = columns.iter().map(|column| column.name.as_str());
    if let Some(name) = names.find(|name| !seen.insert(name.to_ascii_lowercase())) {
        let message = format!("Properties name {} twice", quoted(name.as_bytes()));
        return Err(Fault::malformed(Place::Line(2), message));
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
    Some(Column {
        name: (*name).to_owned(),
        contents,
        components,
    })
}

fn refused(key: &str, value: &str, needed: &str) -> Fault {
    let message = format!("{key}={} is not {needed}", quoted(value.as_bytes()));
    Fault::malformed(Place::Line(2), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_blanks_outside_quotes() {
        let pairs: Vec<_> = Pairs(r#"Lattice="1 2" pbc={T F F} step=7  note plain="#).collect();
        let expected = [
            ("Lattice", "1 2"),
            ("pbc", "T F F"),
            ("step", "7"),
            ("note", ""),
            ("plain", ""),
        ];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn an_open_quote_ends_with_the_line() {
        assert_eq!(Pairs(r#"a="b c"#).collect::<Vec<_>>(), [("a", "b c")]);
    }
}

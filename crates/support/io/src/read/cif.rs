//! Crystallographic files (CIF 1.1) and macromolecular ones (mmCIF): the table `atom_site` and the
//! cell of the first block that has atoms; lengths in ångström.
//!
//! Positions are Cartesian, or parts of the cell where the table has no Cartesian ones. Only the
//! first model is read, of alternative positions all; symmetry is not applied, and notes say so.
//! Names of tags are those of mmCIF (`_atom_site.Cartn_x`) or of CIF (`_atom_site_Cartn_x`), in
//! upper or lower case. **Invariant others rely on:** every row of the first model is a point or is
//! refused.

use nearfield_grid::memory::{make_room_for_one, with_room};

use super::{cell, names::Names, open::check_text};
use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox},
    error::{Fault, Parsed, Place, quoted},
    number::Number,
};

/// A word, a quoted text, or a text of several lines.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a [u8],
    /// Without quotes: a tag or a word of the format, if it looks like one.
    bare: bool,
    line: usize,
}

/// The tokens from a place on.
#[derive(Debug, Clone, Copy)]
struct Tokens<'a> {
    rest: &'a [u8],
    line: usize,
    /// Whether the rest begins a line, where a semicolon begins a text of several lines.
    at_begin: bool,
}

impl<'a> Tokens<'a> {
    fn step(&mut self, count: usize) -> &'a [u8] {
        let (passed, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.at_begin = passed.last().map_or(self.at_begin, |&byte| byte == b'\n');
        self.rest = rest;
        passed
    }

    /// The next token; `None` at the end of the file.
    fn next(&mut self) -> Parsed<Option<Token<'a>>> {
        loop {
            let blanks = self
                .rest
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace());
            self.step(blanks.count());
            if self.rest.first() != Some(&b'#') {
                break;
            }
            let comment = self.rest.iter().take_while(|&&byte| byte != b'\n');
            self.step(comment.count());
        }
        let line = self.line;
        let (text, bare) = match self.rest.first() {
            None => return Ok(None),
            Some(b';') if self.at_begin => (self.field()?, false),
            Some(&quote @ (b'\'' | b'"')) => (self.quoted(quote)?, false),
            Some(_) => {
                let word = self
                    .rest
                    .iter()
                    .take_while(|byte| !byte.is_ascii_whitespace());
                (self.step(word.count()), true)
            }
        };
        Ok(Some(Token { text, bare, line }))
    }

    /// A text of lines up to one that begins with a semicolon.
    fn field(&mut self) -> Parsed<&'a [u8]> {
        let end = (self.rest.windows(2)).position(|pair| pair == b"\n;");
        let end = end.ok_or_else(|| self.open("a text that begins with a semicolon"))?;
        let text = self.step(end + 2);
        Ok(&text[1..end])
    }

    /// A quoted text: it ends with a quote before a blank.
    fn quoted(&mut self, quote: u8) -> Parsed<&'a [u8]> {
        let is_end = |&(at, &byte): &(usize, &u8)| {
            let next = self.rest.get(at + 1);
            at > 0 && byte == quote && next.is_none_or(u8::is_ascii_whitespace)
        };
        let mut line = (self.rest.iter().enumerate()).take_while(|(_, byte)| **byte != b'\n');
        let end = line.find(is_end).map(|(at, _)| at);
        let end = end.ok_or_else(|| self.open("a quoted text"))?;
        Ok(&self.step(end + 1)[1..end])
    }

    fn open(&self, what: &str) -> Fault {
        Fault::truncated(Place::Line(self.line), format!("{what} has no end"))
    }
}

impl Token<'_> {
    fn begins(self, word: &[u8]) -> bool {
        let head = self.text.get(..word.len());
        self.bare && head.is_some_and(|head| head.eq_ignore_ascii_case(word))
    }

    /// Whether it cannot be a value.
    fn is_structure(self) -> bool {
        let words: [&[u8]; 6] = [b"_", b"loop_", b"data_", b"save_", b"global_", b"stop_"];
        words.iter().any(|word| self.begins(word))
    }

    /// The name of a tag as mmCIF has it, in lower case and with `_` for the first dot.
    fn tag(self) -> Option<String> {
        let text = String::from_utf8_lossy(self.text).to_ascii_lowercase();
        self.begins(b"_").then(|| text.replacen('.', "_", 1))
    }

    fn place(self) -> Place {
        Place::Line(self.line)
    }

    /// A number, perhaps with its uncertainty in parentheses.
    fn number(self) -> Parsed<Number> {
        let end = self.text.iter().position(|&byte| byte == b'(');
        let number = Number::parse(&self.text[..end.unwrap_or(self.text.len())]);
        number.ok_or_else(|| {
            let message = format!("{} is not a number", quoted(self.text));
            Fault::malformed(self.place(), message)
        })
    }
}

/// The cell of a block, as far as it has come.
#[derive(Default)]
struct Unit<'a> {
    /// Lengths and angles.
    sizes: [Option<Token<'a>>; 6],
    group: Option<&'a [u8]>,
}

const SIZES: [&str; 6] = [
    "_cell_length_a",
    "_cell_length_b",
    "_cell_length_c",
    "_cell_angle_alpha",
    "_cell_angle_beta",
    "_cell_angle_gamma",
];

const GROUPS: [&str; 3] = [
    "_symmetry_space_group_name_h-m",
    "_space_group_name_h-m_alt",
    "_space_group_name_h-m_full",
];

impl<'a> Unit<'a> {
    fn take(&mut self, tag: &str, value: Token<'a>) {
        if let Some(index) = SIZES.iter().position(|known| *known == tag) {
            self.sizes[index] = Some(value);
        }
        if GROUPS.contains(&tag) {
            self.group = Some(value.text);
        }
    }

    /// The vectors; none where a size is missing or unknown, or of the unit cube, which files
    /// without a cell have.
    fn vectors(&self) -> Parsed<Option<[[f64; 3]; 3]>> {
        let mut sizes = [0.0; 6];
        for (size, token) in sizes.iter_mut().zip(self.sizes) {
            match token {
                Some(token) if !matches!(token.text, b"?" | b".") => {
                    *size = token.number()?.double;
                }
                _ => return Ok(None),
            }
        }
        let [a, b, c, alpha, beta, gamma] = sizes;
        let (lengths, angles) = ([a, b, c], [alpha, beta, gamma]);
        if lengths == [1.0; 3] && angles == [90.0; 3] {
            return Ok(None);
        }
        let vectors = cell::of_angles(lengths, angles).ok_or_else(|| {
            let place = self.sizes[0].map_or(Place::Whole, Token::place);
            let message =
                format!("there is no cell with the lengths {lengths:?} and the angles {angles:?}");
            Fault::malformed(place, message)
        })?;
        Ok(Some(vectors))
    }
}

/// Columns of the table of atoms by their places in a row.
struct Columns {
    cartesian: Option<[usize; 3]>,
    parts: Option<[usize; 3]>,
    species: Option<usize>,
    model: Option<usize>,
    alternative: Option<usize>,
}

impl Columns {
    /// `None` for another table.
    fn of(tags: &[String]) -> Option<Self> {
        let column = |name: &str| {
            let tag = |tag: &String| tag.strip_prefix("_atom_site_") == Some(name);
            tags.iter().position(tag)
        };
        let three = |names: [&str; 3]| -> Option<[usize; 3]> {
            let [x, y, z] = names.map(column);
            Some([x?, y?, z?])
        };
        let found = Self {
            cartesian: three(["cartn_x", "cartn_y", "cartn_z"]),
            parts: three(["fract_x", "fract_y", "fract_z"]),
            species: column("type_symbol").or_else(|| column("label")),
            model: column("pdbx_pdb_model_num"),
            alternative: column("label_alt_id"),
        };
        (found.cartesian.is_some() || found.parts.is_some()).then_some(found)
    }
}

/// The atoms of a table.
struct Atoms<'a> {
    columns: Columns,
    /// Cartesian, or parts of the cell.
    positions: Vec<[Number; 3]>,
    names: Names,
    first_model: Option<&'a [u8]>,
    later: usize,
    alternatives: usize,
}

impl<'a> Atoms<'a> {
    fn new(columns: Columns) -> Self {
        Self {
            columns,
            positions: Vec::new(),
            names: Names::default(),
            first_model: None,
            later: 0,
            alternatives: 0,
        }
    }

    fn add(&mut self, row: &[Token<'a>]) -> Parsed<()> {
        if let Some(model) = self.columns.model {
            let model = row[model].text;
            if *self.first_model.get_or_insert(model) != model {
                self.later += 1;
                return Ok(());
            }
        }
        let Some(place) = self.columns.cartesian.or(self.columns.parts) else {
            return Ok(());
        };
        let [x, y, z] = place.map(|column| row[column].number());
        make_room_for_one(&mut self.positions, "atoms of a file")?;
        self.positions.push([x?, y?, z?]);
        if let Some(species) = self.columns.species {
            self.names.add(row[species].text)?;
        }
        let alternative = self.columns.alternative.map(|column| row[column].text);
        self.alternatives += usize::from(!matches!(alternative, None | Some(b"." | b"?" | b"A")));
        Ok(())
    }
}

/// Reads the first block that has atoms.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut tokens = Tokens {
        rest: bytes,
        line: 1,
        at_begin: true,
    };
    let (mut unit, mut atoms, mut blocks) = (Unit::default(), None, 0_usize);
    let mut next = tokens.next()?;
    while let Some(token) = next {
        if token.begins(b"data_") {
            if atoms.is_some() {
                blocks += 1;
            } else {
                unit = Unit::default();
            }
            next = tokens.next()?;
        } else if token.begins(b"loop_") {
            let found;
            (found, next) = table(&mut tokens, atoms.is_some())?;
            atoms = atoms.or(found);
        } else if let Some(tag) = token.tag() {
            let value = tokens.next()?.filter(|value| !value.is_structure());
            let value = value.ok_or_else(|| {
                let message = format!("{} has no value", quoted(token.text));
                Fault::truncated(token.place(), message)
            })?;
            if blocks == 0 {
                unit.take(&tag, value);
            }
            next = tokens.next()?;
        } else if token.is_structure() {
            next = tokens.next()?;
        } else {
            let message = format!("{} belongs to no tag", quoted(token.text));
            return Err(Fault::malformed(token.place(), message));
        }
    }
    let message = "the file has no loop with _atom_site.Cartn_x or _atom_site.fract_x, y and z";
    let atoms = atoms.ok_or_else(|| Fault::malformed(Place::Whole, message))?;
    cloud(atoms, &unit, blocks)
}

/// Reads a table behind its `loop_`, and the token after it; the atoms of one that has them, unless
/// they are `known`.
fn table<'a>(
    tokens: &mut Tokens<'a>,
    known: bool,
) -> Parsed<(Option<Atoms<'a>>, Option<Token<'a>>)> {
    let mut tags = Vec::new();
    let mut next = tokens.next()?;
    while let Some(tag) = next.and_then(Token::tag) {
        make_room_for_one(&mut tags, "tags of a file")?;
        tags.push(tag);
        next = tokens.next()?;
    }
    let columns = Columns::of(&tags).filter(|_| !known);
    let mut atoms = columns.map(Atoms::new);
    let mut row: Vec<Token<'a>> = with_room(tags.len(), "a row of a file")?;
    while let Some(value) = next.filter(|token| !token.is_structure()) {
        if tags.is_empty() {
            let message = format!("{} belongs to no tag", quoted(value.text));
            return Err(Fault::malformed(value.place(), message));
        }
        row.push(value);
        if row.len() == tags.len() {
            if let Some(atoms) = &mut atoms {
                atoms.add(&row)?;
            }
            row.clear();
        }
        next = tokens.next()?;
    }
    if let (Some(last), Some(_)) = (row.last(), &atoms) {
        let (found, columns) = (row.len(), tags.len());
        let message = format!("the last row has {found} of {columns} values");
        return Err(Fault::truncated(last.place(), message));
    }
    Ok((atoms, next))
}

fn cloud(atoms: Atoms<'_>, unit: &Unit<'_>, blocks: usize) -> Parsed<PointCloud> {
    let vectors = unit.vectors()?;
    let mut positions = Positions::with_capacity(atoms.positions.len())?;
    for position in &atoms.positions {
        positions.push(match (atoms.columns.cartesian, vectors) {
            (Some(_), _) => *position,
            (None, Some(vectors)) => {
                cell::at(vectors, position.map(|part| part.double)).map(Number::from)
            }
            (None, None) => {
                let message = "the positions are parts of a cell, and the file has no cell";
                return Err(Fault::malformed(Place::Whole, message));
            }
        })?;
    }
    let mut notes = Vec::new();
    if atoms.later > 0 {
        let later = atoms.later;
        notes.push(format!(
            "{later} atoms of later models are not read: MDAnalysis and gemmi split models"
        ));
    }
    if atoms.alternatives > 0 {
        notes.push(format!(
            "{} rows are alternative positions of atoms: all are read",
            atoms.alternatives
        ));
    }
    if blocks > 0 {
        notes.push(format!("{blocks} later data blocks are not read"));
    }
    let group = unit.group.unwrap_or_default();
    if !matches!(group, b"" | b"?" | b"." | b"1" | b"P 1" | b"P1") {
        notes.push(format!(
            "the space group {} is not applied: the cell repeats with the atoms of the file alone",
            quoted(group)
        ));
    }
    let named = atoms.columns.species.is_some();
    let simulation_box: Option<SimulationBox> = vectors.map(cell::periodic);
    Ok(PointCloud {
        simulation_box,
        species: named.then(|| atoms.names.finish()),
        notes,
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

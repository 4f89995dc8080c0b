//! Structures of VASP (POSCAR and CONTCAR): a scale, three vectors, species with their counts, and
//! positions, as parts of the vectors or as coordinates; lengths in ångström.
//!
//! All axes are periodic. Velocities behind the positions are not read. **Invariant others rely
//! on:** there are as many positions as the counts say.

use super::{
    cell,
    lines::{Line, Lines},
    names::Names,
    open::check_text,
};
use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::parse,
    error::{Fault, Parsed, quoted},
    number::Number,
};

/// Reads the structure.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut lines = Lines::new(bytes);
    lines.expect("the comment")?;
    let scale = lines.expect("the scale")?;
    let vector = |lines: &mut Lines<'_>| lines.expect("the vectors")?.numbers("a vector");
    let vectors = [
        vector(&mut lines)?,
        vector(&mut lines)?,
        vector(&mut lines)?,
    ];
    let scale = factors(scale, vectors)?;
    let vectors = vectors.map(|vector| [0, 1, 2].map(|axis| vector[axis] * scale[axis]));
    let kinds = Kinds::read(&mut lines)?;
    let mut mode = lines.expect("the line Direct or Cartesian")?;
    if begins(mode, b"sS") {
        mode = lines.expect("the line Direct or Cartesian")?;
    }
    let cartesian = begins(mode, b"cCkK");
    if !cartesian && !begins(mode, b"dD") {
        let message = format!("{} is neither Direct nor Cartesian", quoted(mode.text));
        return Err(Fault::malformed(mode.place(), message));
    }
    // The least row is "0 0 0" and a line end.
    lines.check_room(kinds.atoms, 6, "atoms")?;
    let mut positions = Positions::with_capacity(kinds.atoms)?;
    let mut names = Names::default();
    for (name, count) in &kinds.of {
        for _ in 0..*count {
            let line = lines.expect("the last position")?;
            let part = line.numbers("x, y and z of an atom")?;
            let found = if cartesian {
                [0, 1, 2].map(|axis| part[axis] * scale[axis])
            } else {
                cell::at(vectors, part)
            };
            positions.push(found.map(Number::from))?;
            if let Some(name) = name {
                names.add(name)?;
            }
        }
    }
    let rest = lines.cursor().peek_word().is_some();
    let named = kinds.of.iter().all(|(name, _)| name.is_some());
    Ok(PointCloud {
        simulation_box: Some(cell::periodic(vectors)),
        species: named.then(|| names.finish()),
        unread: rest.then(|| "velocities".to_owned()).into_iter().collect(),
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

fn begins(line: Line<'_>, letters: &[u8]) -> bool {
    let first = line.text.trim_ascii().first();
    first.is_some_and(|letter| letters.contains(letter))
}

/// The factor of each axis: one for all, three, or minus the volume.
fn factors(line: Line<'_>, vectors: [[f64; 3]; 3]) -> Parsed<[f64; 3]> {
    let numbers = |word: &[u8]| Number::parse(word).is_some();
    let count = line
        .words()
        .take(3)
        .take_while(|word| numbers(word))
        .count();
    let factors = if count == 3 {
        line.numbers("a scale for each axis")?
    } else {
        let [scale] = line.numbers("the scale")?;
        if scale < 0.0 {
            [(-scale / cell::volume(vectors)).cbrt(); 3]
        } else {
            [scale; 3]
        }
    };
    if factors
        .iter()
        .all(|factor| *factor > 0.0 && factor.is_finite())
    {
        return Ok(factors);
    }
    let message = format!("the scale {} gives no cell", quoted(line.text.trim_ascii()));
    Err(Fault::malformed(line.place(), message))
}

/// The species, in the order of the atoms.
struct Kinds<'a> {
    of: Vec<(Option<&'a [u8]>, usize)>,
    atoms: usize,
}

impl<'a> Kinds<'a> {
    /// Maximum number of species: more would be more than all elements many times over.
    const MAX: usize = 1 << 12;

    fn read(lines: &mut Lines<'a>) -> Parsed<Self> {
        let first = lines.expect("the species")?;
        let is_count = |word: &[u8]| parse::<usize>(word).is_some();
        let (symbols, counts) = match first.words().next() {
            Some(word) if is_count(word) => (None, first),
            _ => (Some(first), lines.expect("the counts of the species")?),
        };
        let mut of = Vec::new();
        let mut atoms: usize = 0;
        let mut names = symbols.map(Line::words);
        // Behind the counts may be a comment.
        for word in counts.words().take_while(|word| is_count(word)) {
            let name = names.as_mut().map(|names| {
                names.next().ok_or_else(|| {
                    let message = "there are more counts than species";
                    Fault::malformed(counts.place(), message)
                })
            });
            let count = parse(word).unwrap_or(0);
            atoms = atoms.saturating_add(count);
            if of.len() == Self::MAX {
                let message = format!("more than {} species", Self::MAX);
                return Err(Fault::unsupported(counts.place(), message));
            }
            of.push((name.transpose()?.map(symbol), count));
        }
        if of.is_empty() {
            let message = format!(
                "{} are not the counts of the species",
                quoted(counts.text.trim_ascii())
            );
            return Err(Fault::malformed(counts.place(), message));
        }
        if names.is_some_and(|mut names| names.next().is_some()) {
            let message = "there are more species than counts";
            return Err(Fault::malformed(counts.place(), message));
        }
        Ok(Self { of, atoms })
    }
}

/// The symbol of an element without the name of its potential, as in `Fe_pv` and `Fe/0a1b2c`.
fn symbol(word: &[u8]) -> &[u8] {
    let end = word.iter().position(|byte| matches!(byte, b'_' | b'/'));
    &word[..end.unwrap_or(word.len())]
}

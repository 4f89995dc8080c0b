//! Point clouds as text: rows of x, y, z and more, as laser scanners and CloudCompare write them.
//!
//! Rows are read as those of tables ([`csv`](super::csv)), and three things more: without names
//! the first three columns are x, y and z, however many follow; a line of one whole number says how
//! many rows follow it, as in `.pts` files; `//` begins a comment. **Invariant others rely on:** a
//! count is followed by exactly as many rows, and by another count or nothing.

use super::{
    csv::{Row, Style, Table, check_width},
    lines::{Line, Lines},
    open::check_text,
};
use crate::{
    cloud::{PointCloud, Positions},
    cursor::parse,
    error::{ErrorKind, Fault, Parsed, Place},
};

/// Reads all rows.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut lines = Lines::new(bytes);
    let mut table: Option<Table> = None;
    let mut block: Option<Block> = None;
    let mut positions = Positions::default();
    let mut fields = Vec::new();
    while lines.peek().is_some() {
        let line = lines.expect("a point")?;
        let text = line.text.trim_ascii();
        let is_first = table.is_none() && block.is_none();
        if text.is_empty() || (table.is_some() && Style::Cloud.comment(text).is_some()) {
            continue;
        }
        if let Some(rows) = parse(text).filter(|_| is_first || block.is_some()) {
            let line = line.number;
            if let Some(block) = block.replace(Block {
                rows,
                line,
                read: 0,
            }) {
                block.check()?;
            }
            continue;
        }
        let table = match &table {
            Some(table) => table,
            None => match Table::of_first_line(text, line.number, Style::Cloud)? {
                Some((found, Row::Names)) => {
                    table = Some(found);
                    continue;
                }
                Some((found, Row::Numbers)) => &*table.insert(found),
                None => continue,
            },
        };
        if let Some(block) = &mut block {
            block.read += 1;
            if block.read > block.rows {
                return Err(block.too_many(line));
            }
        }
        table.separator.split(text, &mut fields)?;
        check_width(&fields, line.number)?;
        positions.push(table.point(&fields, line.number)?)?;
    }
    if let Some(block) = block {
        block.check()?;
    }
    let table = table.ok_or_else(|| {
        let message = "the file holds no point";
        Fault::new(ErrorKind::Empty, Place::Whole, message)
    })?;
    Ok(PointCloud {
        notes: unnamed(&table).into_iter().collect(),
        unread: table.unread.clone(),
        ..PointCloud::new(positions, table.dimensions())
    })
}

/// Whether a file called `.xyz` is such a cloud: its first line is a row or names x and y, where
/// another file would have its number of points.
pub(super) fn is_cloud(bytes: &[u8]) -> bool {
    let mut lines = Lines::new(bytes);
    let first = lines.next().unwrap_or_default().trim_ascii();
    match Table::of_first_line(first, 1, Style::Cloud) {
        Ok(Some((_, Row::Names))) => true,
        Ok(Some((table, Row::Numbers))) => table.unnamed.is_some_and(|columns| columns >= 3),
        _ => false,
    }
}

/// Rows that a line has announced.
struct Block {
    rows: usize,
    /// The line that says so.
    line: usize,
    read: usize,
}

impl Block {
    fn check(&self) -> Parsed<()> {
        if self.read == self.rows {
            return Ok(());
        }
        let message = format!(
            "{} points are announced, but {} rows follow",
            self.rows, self.read
        );
        Err(Fault::truncated(Place::Line(self.line), message))
    }

    fn too_many(&self, line: Line<'_>) -> Fault {
        let message = format!(
            "more rows than the {} that line {} announces",
            self.rows, self.line
        );
        Fault::malformed(line.place(), message)
    }
}

/// The note on columns that have no names.
fn unnamed(table: &Table) -> Option<String> {
    let columns = table.unnamed.filter(|&columns| columns > 3)?;
    Some(match columns {
        4 => "column 4 has no name and is not read".to_owned(),
        _ => format!("columns 4 to {columns} have no names and are not read"),
    })
}

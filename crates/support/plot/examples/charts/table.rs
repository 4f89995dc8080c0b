//! Tables in pages of Markdown.

use std::error::Error;

/// The cells of a row.
pub(crate) type Row<const N: usize> = [String; N];

/// The rows of the table below a heading of a page.
///
/// # Errors
/// If the page has no such heading, or a row not `N` cells or not those that `T` wants.
pub(crate) fn read<const N: usize, T: TryFrom<Row<N>, Error = Box<dyn Error>>>(
    page: &str,
    heading: &str,
) -> Result<Vec<T>, Box<dyn Error>> {
    let (_, below) = page
        .split_once(heading)
        .ok_or_else(|| format!("the page has no {heading:?}"))?;
    let rows = below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let cells: &[&str; N] =
            (cells.as_slice().try_into()).map_err(|_| format!("{N} cells expected: {row}"))?;
        T::try_from(cells.map(str::to_owned))
    })
    .collect()
}

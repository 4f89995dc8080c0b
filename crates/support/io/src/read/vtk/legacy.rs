//! Legacy VTK files up to version 5.1, text and binary: PolyData and unstructured grids.
//!
//! Every section is parsed, even if it is not kept (cells, colours), so that truncation is detected
//! wherever the format allows it. **Invariant others rely on:** point data are kept only if they
//! have one tuple per point.

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::Word,
    error::{Fault, Parsed, Place, quoted},
    number::Numbers,
    point_data::PointData,
    raw::Scalar,
};

use super::{
    is_time,
    legacy_source::{Element, Encoding, Source, decoded_name},
};

/// Reads the points and their data.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let mut source = Source::open(bytes)?;
    data_set_type(&mut source)?;
    let mut sections = Sections::default();
    while let Some(word) = source.cursor.next_word() {
        let keyword = word.text.to_ascii_uppercase();
        sections.read(&mut source, &keyword, word)?;
    }
    let positions = sections.positions.ok_or_else(|| {
        Fault::truncated(
            source.cursor.line(),
            "the file ends before a section POINTS",
        )
    })?;
    Ok(PointCloud {
        time: sections.time,
        data: sections.data,
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

fn data_set_type(source: &mut Source<'_>) -> Parsed<()> {
    let mut word = source.cursor.expect_word("the keyword DATASET")?;
    if word.text.eq_ignore_ascii_case(b"DATASET") {
        word = source.cursor.expect_word("the type of the data set")?;
        let known: [&[u8]; 2] = [b"POLYDATA", b"UNSTRUCTURED_GRID"];
        if known
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word.text))
        {
            return Ok(());
        }
        let message = format!(
            "the data set is of type {}; POLYDATA and UNSTRUCTURED_GRID are read",
            quoted(word.text)
        );
        return Err(Fault::unsupported(source.cursor.line_of(word.at), message));
    }
    let message = format!("expected DATASET, found {}", quoted(word.text));
    Err(Fault::malformed(source.cursor.line_of(word.at), message))
}

/// Owner of the attributes that follow.
#[derive(Default, Clone, Copy)]
enum Owner {
    #[default]
    DataSet,
    Points(usize),
    Cells(usize),
}

/// Data read so far.
#[derive(Default)]
struct Sections {
    positions: Option<Positions>,
    points: usize,
    owner: Owner,
    time: Option<f64>,
    data: Vec<PointData<'static>>,
}

impl Sections {
    fn read(&mut self, source: &mut Source<'_>, keyword: &[u8], word: Word<'_>) -> Parsed<()> {
        match keyword {
            b"POINTS" => self.read_points(source, word),
            b"FIELD" => self.read_field(source),
            b"VERTICES" | b"LINES" | b"POLYGONS" | b"TRIANGLE_STRIPS" | b"CELLS" => {
                source.skip_cells()
            }
            b"CELL_TYPES" => {
                let count = source.cursor.expect_count("the number of cell types")?;
                source
                    .array(Element::Number(Scalar::I32), count, "the cell types")
                    .map(drop)
            }
            b"POINT_DATA" => self.begin_point_data(source, word),
            b"CELL_DATA" => {
                let count = source.cursor.expect_count("the number of cells")?;
                self.owner = Owner::Cells(count);
                Ok(())
            }
            b"METADATA" => {
                source.skip_metadata();
                Ok(())
            }
            _ => self.read_attribute(source, keyword, word),
        }
    }

    fn read_points(&mut self, source: &mut Source<'_>, word: Word<'_>) -> Parsed<()> {
        if self.positions.is_some() {
            let place = source.cursor.line_of(word.at);
            return Err(Fault::malformed(place, "a second section POINTS"));
        }
        let points = source.cursor.expect_count("the number of points")?;
        let element = source.element()?;
        let array = source.array(element, points.saturating_mul(3), "the points")?;
        let array = array.ok_or_else(|| {
            Fault::malformed(source.cursor.line_of(word.at), "the points are not numbers")
        })?;
        let mut positions = Positions::default();
        positions.extend(&array, points)?;
        self.positions = Some(positions);
        self.points = points;
        Ok(())
    }

    fn begin_point_data(&mut self, source: &mut Source<'_>, word: Word<'_>) -> Parsed<()> {
        let count = source.cursor.expect_count("the number of points")?;
        self.owner = Owner::Points(count);
        if self.positions.is_some() && count == self.points {
            return Ok(());
        }
        let message = format!("data for {count} points, but the file has {}", self.points);
        Err(Fault::malformed(source.cursor.line_of(word.at), message))
    }

    /// Reads `FIELD name count` and its arrays.
    fn read_field(&mut self, source: &mut Source<'_>) -> Parsed<()> {
        source.cursor.expect_word("the name of the field")?;
        for _ in 0..source.cursor.expect_count("the number of arrays")? {
            let mut word = source.cursor.expect_word("the name of an array")?;
            while word.text.eq_ignore_ascii_case(b"METADATA") {
                source.skip_metadata();
                word = source.cursor.expect_word("the name of an array")?;
            }
            let components = source.cursor.expect_count("the number of components")?;
            let tuples = source.cursor.expect_count("the number of tuples")?;
            let element = source.element()?;
            self.keep(source, word, element, components, tuples)?;
        }
        Ok(())
    }

    /// Reads an attribute other than a field.
    fn read_attribute(
        &mut self,
        source: &mut Source<'_>,
        keyword: &[u8],
        word: Word<'_>,
    ) -> Parsed<()> {
        let tuples = match self.owner {
            Owner::Points(count) | Owner::Cells(count) => count,
            Owner::DataSet => return Err(unknown(source, word)),
        };
        let name = match keyword {
            b"SCALARS"
            | b"COLOR_SCALARS"
            | b"LOOKUP_TABLE"
            | b"VECTORS"
            | b"NORMALS"
            | b"TENSORS"
            | b"TENSORS6"
            | b"TEXTURE_COORDINATES"
            | b"GLOBAL_IDS"
            | b"PEDIGREE_IDS"
            | b"EDGE_FLAGS" => source.cursor.expect_word("a name")?,
            _ => return Err(unknown(source, word)),
        };
        let count = |source: &mut Source<'_>| source.cursor.expect_count("a count");
        match keyword {
            b"SCALARS" => {
                let (element, components) = source.scalars()?;
                self.keep(source, name, element, components, tuples)
            }
            b"TEXTURE_COORDINATES" => {
                let (components, element) = (count(source)?, source.element()?);
                self.keep(source, name, element, components, tuples)
            }
            b"COLOR_SCALARS" => {
                let components = count(source)?;
                source.skip_colors(tuples.saturating_mul(components))
            }
            b"LOOKUP_TABLE" => {
                let colors = count(source)?;
                source.skip_colors(colors.saturating_mul(4))
            }
            _ => {
                let element = source.element()?;
                self.keep(source, name, element, components(keyword), tuples)
            }
        }
    }

    /// Reads an array and keeps it when it belongs to the points or holds the time.
    fn keep(
        &mut self,
        source: &mut Source<'_>,
        name: Word<'_>,
        element: Element,
        components: usize,
        tuples: usize,
    ) -> Parsed<()> {
        let what = format!("the array {}", quoted(name.text));
        let array = source.array(element, components.saturating_mul(tuples), &what)?;
        let (name, at) = (decoded_name(name.text), name.at);
        match (self.owner, array) {
            (Owner::Points(points), _) if points != tuples => {
                let message = format!("{what} has {tuples} tuples for {points} points");
                Err(Fault::malformed(source.cursor.line_of(at), message))
            }
            (Owner::Points(_), Some(array)) => {
                self.data
                    .extend(PointData::tuples(name, components, array.into_values()?));
                Ok(())
            }
            (Owner::DataSet, Some(array)) if is_time(&name) && tuples > 0 => {
                self.time = Some(array.number(0).double);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Components of the attributes whose keyword decides it.
fn components(keyword: &[u8]) -> usize {
    match keyword {
        b"VECTORS" | b"NORMALS" => 3,
        b"TENSORS" => 9,
        b"TENSORS6" => 6,
        _ => 1,
    }
}

fn unknown(source: &Source<'_>, word: Word<'_>) -> Fault {
    let message = format!("expected a keyword, found {}", quoted(word.text));
    let place = match source.encoding {
        Encoding::Text => source.cursor.line_of(word.at),
        Encoding::Binary => Place::Byte(word.at),
    };
    Fault::malformed(place, message)
}

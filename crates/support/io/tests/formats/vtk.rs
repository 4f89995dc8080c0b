//! VTK files: what the files of other writers (`made`) do not show.

use nearfield_io::{ErrorKind, Format, Place, PointData};

use crate::{good, refused};

const HEAD: &str = "# vtk DataFile Version 3.0\ntitle\nASCII\nDATASET POLYDATA\n";

fn legacy(body: &str) -> String {
    format!("{HEAD}{body}")
}

fn xml(attributes: &str, body: &str) -> String {
    format!("<VTKFile type=\"PolyData\"{attributes}>\n<PolyData>\n{body}</PolyData>\n</VTKFile>\n")
}

fn piece(points: usize, coordinates: &str, data: &str) -> String {
    format!(
        "<Piece NumberOfPoints=\"{points}\">\n<PointData>{data}</PointData>\n<Points>\
         <DataArray type=\"Float32\" NumberOfComponents=\"3\" format=\"ascii\">\
         {coordinates}</DataArray></Points>\n</Piece>\n"
    )
}

fn ids(values: &str) -> String {
    format!("<DataArray type=\"UInt8\" Name=\"id\" format=\"ascii\">{values}</DataArray>")
}

#[test]
fn a_legacy_text_file_is_read_section_by_section() {
    let cloud = good(
        legacy(
            "POINTS 2 float\n1 2 3 4\n5 6\nvertices 2 4\n1 0 1 1\n\
             CELL_DATA 2\nSCALARS dropped int\nLOOKUP_TABLE default\n1 2\n\
             POINT_DATA 2\nSCALARS pair short 2\n1 2 3 -4\nVECTORS v double\n1 2 3 4 5 6\n\
             LOOKUP_TABLE colors 1\n0 0 0 1\n\
             FIELD data 2\nm 1 2 float\n0.5 0.25\nbits 1 2 bit\n0 1\n",
        ),
        Format::LegacyVtk,
    );
    assert_eq!(cloud.positions, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let names: Vec<_> = cloud
        .data
        .iter()
        .map(|data| (data.name(), data.components()))
        .collect();
    assert_eq!(names, [("pair", 2), ("v", 3), ("m", 1)]);
    assert_eq!(cloud.data[2].to_scalars(), Some(vec![0.5, 0.25]));
}

#[test]
fn wrong_legacy_files_are_named_by_line() {
    let points = "POINTS 1 float\n1 2 3\n";
    for (text, message) in [
        (
            "<VTKFile/>".into(),
            ", line 1: the file does not begin with '# vtk DataFile Version'; an XML file should be called .vtp or .vtu",
        ),
        (
            "# vtk DataFile Version 6.0\n\nASCII\n".into(),
            ", line 1: version 6 is not read; 1 to 5.1 are",
        ),
        (
            "# vtk DataFile Version 3.0\n\nTEXT\n".into(),
            ", line 3: 'TEXT' is neither ASCII nor BINARY",
        ),
        (
            "# vtk DataFile Version 3.0\n".into(),
            ", line 2: the file ends in its header",
        ),
        (
            HEAD.replace("POLYDATA", "RECTILINEAR_GRID"),
            ", line 4: the data set is of type 'RECTILINEAR_GRID'; POLYDATA and UNSTRUCTURED_GRID are read",
        ),
        (
            legacy(""),
            ", line 4: the file ends before a section POINTS",
        ),
        (
            legacy("POINTS 2 float\n1 2 3 4 5\n"),
            ", line 7: the file ends after 5 of 6 numbers of the points",
        ),
        (
            legacy("POINTS 1 float\n1 2 z\n"),
            ", line 6: 'z' is not a number of the type expected here",
        ),
        (
            legacy("POINTS 1 colour\n1 2 3\n"),
            ", line 5: 'colour' is not an element type that is read",
        ),
        (
            legacy(&points.repeat(2)),
            ", line 7: a second section POINTS",
        ),
        (
            legacy(&format!("{points}POINT_DATA 2\n")),
            ", line 7: data for 2 points, but the file has 1",
        ),
        (
            legacy(&format!(
                "{points}POINT_DATA 1\nFIELD f 1\na 1 2 int\n1 2\n"
            )),
            ", line 9: the array 'a' has 2 tuples for 1 points",
        ),
        (
            legacy(&format!("{points}SCALARS a int\n1\n")),
            ", line 7: expected a keyword, found 'SCALARS'",
        ),
        (
            legacy(&format!("{points}nonsense\n")),
            ", line 7: expected a keyword, found 'nonsense'",
        ),
    ] {
        let text: String = text;
        let error = refused(text, Format::LegacyVtk);
        assert_eq!(error.to_string(), format!("legacy VTK data{message}"));
    }
}

#[test]
fn absurd_legacy_counts_are_refused_at_once() {
    for encoding in ["ASCII", "BINARY"] {
        for body in [
            "POINTS 1000000000000 float\n1 2 3\n",
            "POINTS 18446744073709551615 double\n1 2 3\n",
            "FIELD f 1\na 4294967296 4294967296 int\n1\n",
            "FIELD f 18446744073709551615\na 1 1 int\n1\n",
            "FIELD f 1\na 1 1000000000000 string\nx\n",
            "CELLS 1000000000000 1000000000000\n1 2 3\n",
        ] {
            let error = refused(legacy(body).replace("ASCII", encoding), Format::LegacyVtk);
            assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
        }
    }
}

#[test]
fn the_pieces_of_an_xml_file_are_joined() {
    let pieces = [
        piece(1, "1 2 3", &ids("7")),
        piece(0, "", ""),
        piece(2, "4 5 6\n7 8 9", &ids("8 9")),
    ];
    let cloud = good(xml("", &pieces.concat()), Format::XmlVtk);
    assert_eq!(
        cloud.positions,
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    );
    let found = cloud.quantity("id").and_then(PointData::to_scalars);
    assert_eq!(found, Some(vec![7.0, 8.0, 9.0]));
}

#[test]
fn pieces_with_different_arrays_are_refused() {
    for (first, second) in [(ids("7"), String::new()), (String::new(), ids("7"))] {
        let pieces = [piece(1, "1 2 3", &first), piece(1, "4 5 6", &second)];
        let error = refused(xml("", &pieces.concat()), Format::XmlVtk);
        assert_eq!(
            error.to_string(),
            "VTK XML data: the pieces differ in their array 'id'"
        );
    }
}

#[test]
fn an_xml_file_without_points_is_read() {
    assert!(good(xml("", &piece(0, "", "")), Format::XmlVtk).is_empty());
    assert!(good(xml("", ""), Format::XmlVtk).is_empty());
}

#[test]
fn comments_and_unknown_tags_do_no_harm() {
    let text = format!(
        "\u{feff}<?xml version='1.0'?>\n<!-- a note -->\n{}",
        xml("", &piece(1, "1 <!-- here --> 2 3", "")).replace("1 <!-- here --> 2 3", "1 2 3<i/>")
    );
    assert_eq!(good(text, Format::XmlVtk).positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn xml_variants_that_are_not_read_are_named() {
    let file = |attributes: &str| xml(attributes, &piece(1, "1 2 3", ""));
    for (text, message) in [
        (
            file("").replace("PolyData", "ImageData"),
            "byte 0: the data set 'ImageData' is not read; PolyData and UnstructuredGrid are",
        ),
        (
            file(" byte_order=\"Middle\""),
            "byte 0: the byte order 'Middle' is not read; LittleEndian and BigEndian are",
        ),
        (
            file(" header_type=\"UInt16\""),
            "byte 0: the header type 'UInt16' is not read; UInt32 and UInt64 are",
        ),
        (
            file(" compressor=\"vtkLZMADataCompressor\"").replace("ascii", "binary"),
            "byte 131: the compressor 'vtkLZMADataCompressor' is not read; save with ZLib, LZ4 or none",
        ),
    ] {
        let error = refused(text, Format::XmlVtk);
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.to_string(), format!("VTK XML data, {message}"));
    }
}

/// A header names a compressor also where nothing is compressed.
#[test]
fn text_is_read_whatever_would_compress_binary_data() {
    let text = xml(
        " compressor=\"vtkLZMADataCompressor\"",
        &piece(1, "1 2.0D+00 3", ""),
    );
    assert_eq!(good(text, Format::XmlVtk).positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn legacy_text_may_have_a_mark_and_exponents_with_a_d() {
    let text = "\u{feff}# vtk DataFile Version 3.0\r\nt\r\nASCII\r\nDATASET POLYDATA\r\n\
                POINTS 1 double\r\n1.0D+00 2d0 .3D1\r\n";
    assert_eq!(good(text, Format::LegacyVtk).positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn wrong_xml_files_are_refused() {
    let file = xml("", &piece(1, "1 2 3", ""));
    for (text, message) in [
        (
            "x,y,z\n1,2,3\n".into(),
            ", byte 0: the file does not begin with a tag <VTKFile …>",
        ),
        (
            "<html></html>".into(),
            ", byte 0: the file does not begin with a tag <VTKFile …>",
        ),
        (
            file.replace("1 2 3", "1 2"),
            ", line 5: 3 numbers are announced for the array '', but only 3 bytes follow",
        ),
        (
            file.replace("1 2 3", "1 2 3 4"),
            ", line 5: the array '' has more than the 3 numbers announced",
        ),
        (
            file.replace("1 2 3", "1 b 3"),
            ", line 5: 'b' is not a number of the type expected here",
        ),
        (
            file.replace("\"3\"", "\"2\""),
            ", byte 96: the points have 2 components instead of 3",
        ),
        (
            file.replace("\"1\"", "\"one\""),
            ", byte 37: NumberOfPoints='one' is not a count",
        ),
        (
            file.replace("\"ascii\"", "\"appended\""),
            ", byte 96: the array's data should be appended, but the file has no AppendedData",
        ),
        (
            file.replace("\"ascii\"", "\"hex\""),
            ", byte 96: the array format 'hex' is not known",
        ),
        (
            file.replace("Float32", "String"),
            ", byte 96: the array '' is not of numbers",
        ),
        (
            file.replace("<DataArray", "<Other")
                .replace("</DataArray", "</Other"),
            ": a piece of 1 points has no Points array",
        ),
    ] {
        let text: String = text;
        assert_eq!(
            refused(text, Format::XmlVtk).to_string(),
            format!("VTK XML data{message}")
        );
    }
    let crossed = refused(file.replace("</Points>", "</Point>"), Format::XmlVtk);
    assert!(crossed.to_string().contains("not valid XML"), "{crossed}");
}

#[test]
fn a_message_does_not_quote_the_file_at_length() {
    let open = xml("", &piece(1, "1 2 3", "")).replace("</DataArray>", "</D");
    let long = open + &"x".repeat(10_000) + ">";
    let text = refused(long, Format::XmlVtk).to_string();
    assert!(text.contains("not valid XML"), "{text}");
    assert!(text.len() < 400, "{} bytes", text.len());
}

#[test]
fn absurd_xml_counts_are_refused_at_once() {
    for count in ["1000000000000", "18446744073709551615"] {
        for array in [
            "format=\"ascii\">1 2 3</DataArray>",
            "format=\"binary\">DAAAAAAAgD8AAABAAABAQA==</DataArray>",
        ] {
            let text = xml("", &piece(1, "1 2 3", ""))
                .replace("\"1\"", &format!("\"{count}\""))
                .replace("format=\"ascii\">1 2 3</DataArray>", array);
            let error = refused(text, Format::XmlVtk);
            assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
        }
    }
}

#[test]
fn an_array_pointed_at_many_times_is_not_unpacked_without_end() {
    // 600 kB of zeros in less than 1 kB, which 1000 arrays share.
    let points = 50_000;
    let zeros = vec![0; 12 * points];
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    let block = encoder.finish().unwrap();
    let header = [1, zeros.len() as u32, 0, block.len() as u32].map(u32::to_le_bytes);
    let appended = [header.as_flattened(), &block].concat();
    let file = |arrays: usize| {
        let array = |name: String| {
            format!(
                "<DataArray type=\"Float32\" Name=\"{name}\" NumberOfComponents=\"3\" \
                 format=\"appended\" offset=\"0\"/>\n"
            )
        };
        let data: String = (0..arrays).map(|index| array(index.to_string())).collect();
        let head = format!(
            "<VTKFile type=\"PolyData\" compressor=\"vtkZLibDataCompressor\"><PolyData>\
             <Piece NumberOfPoints=\"{points}\"><PointData>{data}</PointData>\
             <Points>{}</Points></Piece></PolyData><AppendedData encoding=\"raw\">_",
            array("Points".to_owned())
        );
        [head.as_bytes(), &appended, b"</AppendedData></VTKFile>"].concat()
    };
    assert_eq!(good(file(0), Format::XmlVtk).len(), points);
    let error = refused(file(1000), Format::XmlVtk);
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(matches!(error.place(), Place::Byte(_)));
}

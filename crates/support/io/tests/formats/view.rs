//! Pages that show points: what they hold, and what a browser makes of them.

use std::{fs, io::Read, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;
use nearfield_io::{
    Chart, ChartLine, Detail, ErrorKind, PointData, Scale, View, ViewWriter, write_view,
};
use nearfield_testkit::browser::{chromium, page_after_scripts};
use serde_json::Value;

const EVIL: &str = "</script><script>alert(1)</script>\u{1f600}\"@DATA@";

/// The arguments of the calls of this function in the page, as JSON.
fn calls(page: &str, name: &str) -> Vec<Value> {
    let begin = format!("<script>{name}(");
    let parts = page.split(&begin).skip(1);
    parts
        .map(|part| {
            let arguments = part.split(")</script>").next().unwrap();
            serde_json::from_str(&format!("[{arguments}]")).unwrap()
        })
        .collect()
}

fn about(page: &str) -> Value {
    let (_, text) = page.split_once("const about = ").unwrap();
    serde_json::from_str(text.split_once(";\n").unwrap().0).unwrap()
}

/// Positions and words of a frame.
fn decode(call: &Value, about: &Value) -> (Vec<[f64; 3]>, Vec<Vec<u16>>) {
    let packed = STANDARD.decode(call[1].as_str().unwrap()).unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    let points = call[0]["points"].as_u64().unwrap() as usize;
    let number = |name: &str, axis: usize| call[0][name][axis].as_f64().unwrap();
    let along = [0, 1, 2].map(|axis| call[0]["cells"][axis].as_u64().unwrap() as usize);
    let (mut cells, mut at, mut cell) = (Vec::new(), 0, 0);
    while cells.len() < points {
        let (mut count, mut shift) = (0, 0);
        loop {
            count |= usize::from(bytes[at] & 127) << shift;
            shift += 7;
            at += 1;
            if bytes[at - 1] < 128 {
                break;
            }
        }
        cells.extend(std::iter::repeat_n(cell, count));
        cell += 1;
    }
    let steps = about["steps"].as_f64().unwrap();
    let positions = (0..points).map(|point| {
        let cell = cells[point];
        let corner = [
            cell % along[0],
            cell / along[0] % along[1],
            cell / along[0] / along[1],
        ];
        [0, 1, 2].map(|axis| {
            let place = (f64::from(bytes[at + axis * points + point]) + 0.5) / steps;
            let size = number("extent", axis) / along[axis] as f64;
            number("low", axis) + (corner[axis] as f64 + place) * size
        })
    });
    let positions = positions.collect();
    at += 3 * points;
    let words = about["scales"].as_array().unwrap().iter().map(|_| {
        let mut word = 0u16;
        let words = (0..points).map(|point| {
            let change = u16::from_le_bytes([bytes[at + point], bytes[at + points + point]]);
            word = word.wrapping_add(change >> 1 ^ (change & 1).wrapping_neg());
            word
        });
        let words = words.collect();
        at += 2 * points;
        words
    });
    let words = words.collect();
    assert_eq!(at, bytes.len());
    (positions, words)
}

#[test]
fn a_view_holds_the_points_and_no_code_of_the_caller() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("view.html");
    let lump = (0..500).map(|n| [5.0, 2.5, -7.0 + n as f32 * 1e-6]);
    let curve = (0..1000).map(|n| [n as f32, (n * n) as f32 * 0.001, -7.5]);
    let positions: Vec<[f32; 3]> = lump.chain(curve).collect();
    let numbers: Vec<u32> = (0..1500).map(|n| 100 + n).collect();
    let data = PointData::scalars(EVIL, &numbers);
    write_view(&path, EVIL, &positions, &data).unwrap();
    let page = fs::read_to_string(&path).unwrap();
    assert!(!page.contains("alert(1)</script>") && !page.contains("<script>alert"));
    assert_eq!(page.matches("<script").count(), 3);
    assert!(page.ends_with("</html>\n"));
    let about = about(&page);
    let scale = &about["scales"][0];
    assert_eq!(
        (&scale["name"], &scale["whole"]),
        (&EVIL.into(), &true.into())
    );
    assert_eq!(
        (&scale["low"], &scale["high"]),
        (&100.0.into(), &1599.0.into())
    );
    assert_eq!(about["flat"], false);
    let frames = calls(&page, "add");
    let (found, words) = decode(&frames[0], &about);
    assert_eq!((frames.len(), found.len()), (1, 1500));
    let mut seen = vec![false; 1500];
    for (place, &word) in found.iter().zip(&words[0]) {
        // Values are the points' numbers, and 1500 of them are kept exactly.
        let point = (f64::from(word) / 65535.0 * 1499.0).round() as usize;
        assert!(!std::mem::replace(&mut seen[point], true));
        for axis in 0..3 {
            let cell = frames[0][0]["extent"][axis].as_f64().unwrap()
                / frames[0][0]["cells"][axis].as_f64().unwrap();
            let off = place[axis] - f64::from(positions[point][axis]);
            assert!(off.abs() <= 0.501 * cell / 256.0, "{point}, {axis}: {off}");
        }
    }
}

#[test]
fn bad_points_are_refused_by_number_and_leave_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("view.html");
    fs::write(&path, "old").unwrap();
    let one = PointData::scalars("n", vec![1_u32]);
    let infinite = PointData::scalars("n", vec![f32::INFINITY]);
    let vectors = PointData::vectors("v", vec![[0.0; 3]]);
    for (positions, data, words) in [
        (
            &[][..],
            &PointData::scalars("n", vec![0_u32; 0]),
            "no points to show",
        ),
        (&[[0.0; 3]; 2], &one, "one number per point"),
        (&[[0.0; 3]], &vectors, "3 components"),
        (
            &[[0.0, f32::NAN, 0.0]],
            &one,
            "coordinate 1 of point 0 is NaN",
        ),
        (&[[0.0; 3]], &infinite, "the value of point 0 is inf"),
    ] {
        let error = write_view(&path, "t", positions, data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    // A point alone, and points at one place with one value, are fine.
    for points in [1, 300] {
        let values = PointData::scalars("n", vec![7.5_f64; points]);
        write_view(&path, "t", &vec![[1.0, 2.0, 3.0]; points], &values).unwrap();
        let page = fs::read_to_string(&path).unwrap();
        let (found, words) = decode(&calls(&page, "add")[0], &about(&page));
        assert_eq!(found, vec![[1.0, 2.0, 3.0]; points]);
        assert_eq!(words, [vec![0; points]]);
    }
}

/// A cube of 20³ points that grows, in two quantities.
fn cube(path: &Path) -> (View, ViewWriter) {
    let scale = |name: &str, high: f64| Scale {
        name: name.to_owned(),
        low: 0.0,
        high,
        whole: false,
        open: true,
    };
    let view = View {
        path: path.to_owned(),
        title: "cube".to_owned(),
        scales: vec![scale("height", 19.0), scale("twice", 20.0)],
        bounds: [[0.0; 3], [40.0; 3]],
        solids: vec![[[30.0; 3], [35.0; 3]]],
        flat: false,
        detail: Detail::Coarse,
    };
    let mut page = view.create().unwrap();
    for step in 0..3 {
        let edge = 1.0 + 0.5 * step as f32;
        let positions: Vec<[f32; 3]> = (0..8000)
            .map(|n| [n / 400, n / 20 % 20, n % 20].map(|k| edge * k as f32))
            .collect();
        let heights: Vec<f32> = (0..8000).map(|n| (n % 20) as f32).collect();
        let doubled: Vec<f32> = heights.iter().map(|height| 2.0 * height).collect();
        let data = [
            PointData::scalars("height", heights),
            PointData::scalars("twice", doubled),
        ];
        let label = format!("step {step}");
        let frame = view
            .frame(f64::from(step), &label, &positions, &data)
            .unwrap();
        page.push(&frame.part_of(9000)).unwrap();
    }
    (view, page)
}

fn chart() -> Chart {
    let line = |name: &str, markers| ChartLine {
        name: name.to_owned(),
        points: vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, -3.5)],
        markers,
    };
    Chart {
        title: EVIL.to_owned(),
        across: "step".to_owned(),
        lines: vec![line("a line", false), line("points", true)],
    }
}

#[test]
fn frames_and_charts_are_all_there_and_a_page_that_is_dropped_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("view.html");
    drop(cube(&path));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let (view, page) = cube(&path);
    let wrong = view.frame(0.0, "", &[[0.0; 3]], &[]).unwrap_err();
    assert!(
        wrong.to_string().contains("0 quantities for 2 scales"),
        "{wrong}"
    );
    page.finish(&[chart()]).unwrap();
    let page = fs::read_to_string(&path).unwrap();
    assert!(!page.contains("<script>alert"));
    let (about, frames) = (about(&page), calls(&page, "add"));
    assert_eq!(about["solids"][0][1][2], 35.0);
    for (step, frame) in frames.iter().enumerate() {
        let (found, words) = decode(frame, &about);
        let edge = 1.0 + 0.5 * step as f64;
        for ((place, height), twice) in found.iter().zip(&words[0]).zip(&words[1]) {
            let true_height = place[2] / edge;
            assert!((f64::from(*height) / 63.0 * 19.0 - true_height).abs() < 0.25);
            // Values above the scale have its last colour.
            let share = (2.0 * true_height / 20.0).min(1.0);
            assert!((f64::from(*twice) / 63.0 - share).abs() < 0.02);
        }
        assert_eq!(frame[0]["label"], format!("step {step}"));
        assert_eq!(
            (&frame[0]["all"], frame[0]["points"].as_u64()),
            (&9000.into(), Some(8000))
        );
        // 8000 points of two quantities take some three bytes each.
        let bytes = frame[1].as_str().unwrap().len();
        assert!(bytes < 8000 * 4, "{bytes}");
    }
    assert_eq!(frames.len(), 3);
    let charts = &calls(&page, "finish")[0][0];
    assert_eq!(charts[0]["title"], EVIL);
    let points: Value = serde_json::json!([[0.0, 1.0], [2.0, -3.5]]);
    assert_eq!(charts[0]["lines"][1]["points"], points);
}

/// Steps through the frames, and turns and zooms by fingers.
const USE: &str = r#"<script>
addEventListener("error", (event) => { document.body.dataset.problem = event.message; });
const finger = (kind, id, x, y) => scene.dispatchEvent(
  new PointerEvent(kind, { pointerId: id, clientX: x, clientY: y }));
scene.setPointerCapture = () => {};
(async () => {
  while (document.body.dataset.state !== "drawn") await new Promise((next) => setTimeout(next, 20));
  const before = { ...view };
  finger("pointerdown", 1, 100, 100);
  finger("pointermove", 1, 160, 120);
  const turned = view.turn !== before.turn && view.tilt !== before.tilt;
  finger("pointerdown", 2, 200, 120);
  finger("pointermove", 2, 320, 120);
  document.body.dataset.used = turned && view.distance < before.distance;
  scene.dispatchEvent(new MouseEvent("dblclick"));
  element("time").value = 2;
  element("time").dispatchEvent(new Event("input"));
  while (document.body.dataset.frame !== "2") await new Promise((next) => setTimeout(next, 20));
  element("quantity").value = 1;
  element("quantity").dispatchEvent(new Event("change"));
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  document.body.dataset.wide = wide;
  document.body.dataset.texts = [element("shown"), element("facts"), element("moment")]
    .map((one) => one.textContent).join("; ");
})();
</script></body>"#;

#[test]
fn a_browser_draws_a_view() {
    let Some(browser) = chromium() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("view.html");
    let (_, page) = cube(&path);
    page.finish(&[chart()]).unwrap();
    let used = fs::read_to_string(&path)
        .unwrap()
        .replacen("</body>", USE, 1);
    fs::write(&path, used).unwrap();
    for window in [(1200, 800), (500, 800)] {
        let flags = ["--virtual-time-budget=20000"];
        let page = page_after_scripts(&browser, &path, window, &flags).unwrap();
        let body = page
            .split("<body")
            .nth(1)
            .unwrap()
            .split('>')
            .next()
            .unwrap();
        let value = |name: &str| {
            let found = body.split(&format!("data-{name}=\"")).nth(1);
            found.map_or("", |text| text.split('"').next().unwrap())
        };
        assert_eq!((value("state"), value("problem")), ("drawn", ""), "{body}");
        assert_eq!((value("used"), value("wide")), ("true", "0"), "{body}");
        let texts = "0 to 20 and more; 8,000 of 9,000 points; step 2";
        assert_eq!((value("frames"), value("texts")), ("3", texts), "{body}");
        let drawn: f64 = value("drawn").parse().unwrap();
        assert!(
            (0.03..0.9).contains(&drawn),
            "{drawn} of the picture is coloured"
        );
    }
}

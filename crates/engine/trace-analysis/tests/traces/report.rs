//! The page, in a browser where there is one ([`nearfield_testkit::browser`]).

use crate::{
    device::device_run,
    made::{at, hybrid_run, trace},
};
use nearfield_testkit::browser::{chromium, page_after_scripts};
use nearfield_trace_analysis::{
    Analysis, Summary,
    model::{Note, Record, Span},
    write_report,
};
use serde_json::Value;
use std::fs;

/// Notes errors from the beginning.
const LISTEN: &str = r#"<script>
const problems = [];
addEventListener("error", (event) => problems.push(event.message));
</script>"#;

/// Uses the page as a person would, and notes what it shows.
const USE: &str = r##"<script>
const seen = { problems, ready: Number(document.body.dataset.ready) };
const state = () => timeline.state();
const texts = (query) => [...document.querySelectorAll(query)].map((found) => found.textContent);
const numbers = () => ({
  tiles: Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) =>
    [tile.dataset.key, tile.querySelector(".value").textContent])),
  backends: texts("#backends .text"),
  path: texts("#path .row"),
  stages: texts("#stages tbody tr"),
  gaps: texts("#gaps tbody tr"),
});
seen.verdict = byId("verdict").textContent;
seen.numbers = numbers();
seen.resummed = summarizeSteps(0, data.rows.length - 1);
const width = ({ view }) => view[1] - view[0];
seen.tiles = Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) =>
  [tile.dataset.key, tile.querySelector(".value").textContent]));
seen.summary = data.summary;
seen.tracks = data.tracks.map((track) => track.backend + " " + track.phase);
seen.all = state();
const canvas = byId("timeline");
const box = canvas.getBoundingClientRect();
const x = box.left + 0.75 * box.width;
canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ctrlKey: true, clientX: x, clientY: box.top + 60, cancelable: true }));
seen.wheel = state();
canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: x, clientY: box.top + 60, cancelable: true }));
seen.plainWheel = state();
byId("zoom-in").click();
seen.button = state();
canvas.dispatchEvent(new PointerEvent("pointerdown", { pointerId: 1, clientX: x, clientY: box.top + 60 }));
canvas.dispatchEvent(new PointerEvent("pointermove", { pointerId: 1, clientX: x - 100, clientY: box.top + 60 }));
canvas.dispatchEvent(new PointerEvent("pointerup", { pointerId: 1 }));
seen.dragged = state();
canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", cancelable: true }));
seen.key = state();
const type = (id, text) => { byId(id).value = text; byId(id).dispatchEvent(new Event("change")); return state(); };
seen.step = type("filter-step", "3");
seen.numbersOfStep = numbers();
seen.verdictOfStep = byId("verdict").textContent;
seen.adviceOfStep = !byId("findings").hidden;
seen.chosenRows = document.querySelectorAll("#steps tr.chosen").length;
seen.range = type("filter-step", "3-5");
seen.subregion = type("filter-subregion", "1");
seen.neither = [type("filter-step", ""), type("filter-subregion", "")][1];
seen.numbersAgain = numbers();
seen.verdictAgain = byId("verdict").textContent;
const tips = new Set();
const area = canvas.getBoundingClientRect();
for (let row = 0; row < data.tracks.length; row++) {
  for (let at = area.left; at < area.right; at += 1) {
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: at, clientY: area.top + 53 + 26 * row }));
    if (!byId("tip").hidden) tips.add(byId("tip").textContent);
  }
}
seen.gapTips = [...tips].filter((text) => text.startsWith("no backend computes"));
document.querySelector("#steps tbody tr:nth-child(2)").click();
seen.clicked = [byId("filter-step").value, state().filter.steps];
const heads = [...document.querySelectorAll("#steps th")];
heads.find((head) => head.textContent === "time").click();
seen.slowestFirst = document.querySelector("#steps tbody td").textContent;
const ink = (id) => {
  const drawn = byId(id);
  if (!drawn.width || !drawn.offsetParent) return 0;
  const pixels = drawn.getContext("2d").getImageData(0, 0, drawn.width, drawn.height).data;
  let count = 0;
  for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 0;
  return count;
};
seen.ink = Object.fromEntries(["timeline", "step-times", "shares", "thetas", "occupancy", "rates"].map((id) => [id, ink(id)]));
seen.stages = [...document.querySelectorAll("#stages tbody tr")].map((row) => row.firstChild.textContent);
seen.note = texts("#lines tr td:last-child")[0];
seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const page = () => getComputedStyle(document.body).backgroundColor;
const before = page();
byId("theme").click();
seen.themes = [before, page()];
// Texts of charts that lie on each other: boxes of what a redraw prints, by canvas.
const printed = new Map();
const print = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const width = this.measureText(text).width;
  const left = x - width * ({ left: 0, start: 0, center: 0.5 }[this.textAlign] ?? 1);
  printed.set(this.canvas, [...(printed.get(this.canvas) ?? []), { text, left, right: left + width, y }]);
  print.call(this, text, x, y);
};
charts.forEach((chart) => chart.draw());
seen.overprinted = [...printed].flatMap(([drawn, boxes]) => boxes.flatMap((a, at) =>
  boxes.slice(at + 1)
    .filter((b) => a.left < b.right && b.left < a.right && Math.abs(a.y - b.y) < 10)
    .map((b) => `${drawn.id}: ${a.text} / ${b.text}`)));
seen.printed = printed.size;
const pre = document.createElement("pre");
pre.id = "seen";
pre.textContent = JSON.stringify(seen);
document.body.append(pre);
</script>"##;

fn page(records: Vec<Record>) -> (String, Summary) {
    let trace = trace(records);
    let analysis = Analysis::of(&trace).unwrap();
    let mut page = Vec::new();
    write_report(&analysis, &mut page).unwrap();
    (String::from_utf8(page).unwrap(), analysis.summary)
}

/// The picture that a browser with a window of this size makes of a page.
fn seen(browser: &str, page: &str, window: (u32, u32)) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let used = page
        .replacen("<head>", &format!("<head>{LISTEN}"), 1)
        .replacen("</body>", &format!("{USE}</body>"), 1);
    fs::write(&path, used).unwrap();
    let page = page_after_scripts(browser, &path, window, &[]).unwrap();
    let begin = page
        .find("<pre id=\"seen\">")
        .expect("the page was used to the end")
        + 15;
    let text = &page[begin..begin + page[begin..].find("</pre>").unwrap()];
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

fn length(state: &Value) -> f64 {
    state["view"][1].as_f64().unwrap() - state["view"][0].as_f64().unwrap()
}

/// A run with a note that would break out of the page, if it could.
fn noted_run() -> Vec<Record> {
    let mut records = hybrid_run(12);
    records.push(Record::Note(Note {
        message: "</script><script>alert(1)</script><!-- /*SCRIPT*/".into(),
        ..Note::default()
    }));
    records
}

#[test]
fn the_page_fetches_nothing_and_no_text_breaks_out_of_it() {
    let (page, _) = page(noted_run());
    for outside in [
        "http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttp",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("/*STYLE*/") && !page.contains("/*DATA*/"));
}

#[test]
fn the_page_shows_the_summary_and_answers_zoom_and_filter() {
    let Some(browser) = chromium() else { return };
    let (page, summary) = page(noted_run());
    for window in [(1280, 900), (390, 844)] {
        let seen = seen(&browser, &page, window);
        assert_eq!(seen["problems"], Value::Array(Vec::new()));
        let summary_json = serde_json::to_value(&summary).unwrap();
        assert_same("summary", &seen["summary"], &summary_json);
        let tiles = &seen["tiles"];
        for (key, shown) in [
            ("steps", "12"),
            ("step_ms.median", "100 ms"),
            ("backends.cpu.utilisation", "60 %"),
            ("backends.gpu.utilisation", "60 %"),
            ("imbalance", "37.5 %"),
            ("overlap", "50 %"),
            ("critical_path_ms", "1,080 ms"),
            ("settle_steps", "2 steps"),
        ] {
            assert_eq!(tiles[key], shown, "{key}");
        }
        let tracks = [
            "caller compute",
            "cpu compute",
            "gpu upload",
            "gpu compute",
            "gpu download",
        ];
        // The sort is the CPU backend's, so the caller's thread has nothing of its own.
        assert_eq!(seen["tracks"], serde_json::json!(tracks[1..]));
        assert_eq!(
            seen["note"],
            "</script><script>alert(1)</script><!-- /*SCRIPT*/"
        );
        check_zoom(&seen);
        check_filter(&seen);
        check_resummed(&seen);
        for (chart, ink) in seen["ink"].as_object().unwrap() {
            assert!(ink.as_u64().unwrap() > 1000, "{chart} is empty: {ink}");
        }
        assert_eq!(
            seen["stages"].as_array().unwrap().len(),
            summary.stages.len()
        );
        assert!(
            seen["wide"].as_i64().unwrap() <= 0,
            "the page is wider than the window"
        );
        assert_ne!(seen["themes"][0], seen["themes"][1]);
        assert!(
            seen["printed"].as_u64().unwrap() >= 4,
            "charts print their texts"
        );
        assert_eq!(seen["overprinted"], Value::Array(Vec::new()));
    }
}

/// Equal but for how numbers are written.
fn assert_same(place: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!(
                (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
                "{place}: {a} and {b}"
            );
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}");
            for (key, value) in a {
                assert_same(&format!("{place}.{key}"), value, &b[key]);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            for (at, value) in a.iter().enumerate() {
                assert_same(&format!("{place}[{at}]"), value, &b[at]);
            }
        }
        _ => assert_eq!(one, other, "{place}"),
    }
}

fn check_zoom(seen: &Value) {
    let (all, wheel) = (&seen["all"], &seen["wheel"]);
    assert_eq!(all["view"], all["whole"]);
    assert!(length(wheel) < 0.5 * length(all));
    assert!(wheel["bars"].as_u64() < all["bars"].as_u64());
    // What was under the pointer stays there, a little beyond the middle of the run.
    assert!(wheel["view"][0].as_f64() > all["view"][0].as_f64());
    assert_eq!(
        seen["plainWheel"]["view"], wheel["view"],
        "plain scrolling is the page's"
    );
    assert!((length(&seen["button"]) / length(wheel) - 0.5).abs() < 1e-6);
    let (button, dragged) = (&seen["button"], &seen["dragged"]);
    assert!(dragged["view"][0].as_f64() > button["view"][0].as_f64());
    assert!((length(dragged) - length(button)).abs() < 1.0);
    assert!(seen["key"]["view"][0].as_f64() < dragged["view"][0].as_f64());
}

fn check_filter(seen: &Value) {
    // A step of 100 ms with nine bars; its neighbours are in view too, and fainter.
    let step = &seen["step"];
    assert_eq!(step["filter"]["steps"], serde_json::json!([3, 3]));
    assert!((length(step) - 104_000.0).abs() < 1.0);
    assert_eq!(
        (step["matching"].as_u64(), seen["chosenRows"].as_u64()),
        (Some(9), Some(1))
    );
    assert_eq!(seen["range"]["matching"], 27);
    // Of each of the three steps the four bars of subregion 1.
    assert_eq!(seen["subregion"]["matching"], 12);
    assert_eq!(seen["neither"]["view"], seen["all"]["view"]);
    assert_eq!(seen["neither"]["matching"], seen["all"]["matching"]);
    assert_eq!(seen["clicked"], serde_json::json!(["1", [1, 1]]));
    assert_eq!(
        seen["slowestFirst"], "11",
        "equal times: the order is turned round"
    );
}

/// The keys of a summary that the page computes anew, of the page's and of the trace's own.
fn check_resummed(seen: &Value) {
    let (page, own) = (&seen["resummed"], &seen["summary"]);
    let near = |place: String, a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        // The page has times to a tenth of a microsecond.
        (Some(a), Some(b)) => assert!(
            (a - b).abs() <= 2e-3 * b.abs().max(1.0),
            "{place}: {a}, {b}"
        ),
        _ => assert_eq!(a, b, "{place}"),
    };
    for key in [
        "steps",
        "total_ms",
        "imbalance",
        "overlap",
        "critical_path_ms",
    ] {
        near(key.into(), &page[key], &own[key]);
    }
    for (key, value) in page["step_ms"].as_object().unwrap() {
        near(format!("step_ms.{key}"), value, &own["step_ms"][key]);
    }
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for of in ["backends", "stages"] {
        assert_eq!(keys(&page[of]), keys(&own[of]), "{of}");
        for (name, one) in page[of].as_object().unwrap() {
            for (key, value) in one.as_object().unwrap() {
                if key != "per_step_ms" && key != "each" {
                    near(format!("{of}.{name}.{key}"), value, &own[of][name][key]);
                }
            }
        }
    }
    let path = |value: &Value| -> Vec<String> {
        let parts = value["critical_path"].as_array().unwrap().iter();
        let mut names: Vec<String> = parts.map(|part| part["what"].to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(path(page), path(own));
}

/// A run with kernels; in step 3 the host copies for 10 ms only, and sorts instead.
fn run_with_an_odd_step() -> Vec<Record> {
    let mut records = device_run(6);
    for record in &mut records {
        if let Record::Span(copy) = record
            && copy.id == 34
        {
            copy.time = at(400, 410);
        }
    }
    records.push(Record::Span(Span {
        parent: 31,
        ..crate::made::span("host.count", (39, 31), at(410, 450))
    }));
    records
}

#[test]
fn the_page_names_gaps_and_sums_up_what_is_chosen() {
    let Some(browser) = chromium() else { return };
    let (page, summary) = page(run_with_an_odd_step());
    let seen = seen(&browser, &page, (1280, 900));
    assert_eq!(seen["problems"], Value::Array(Vec::new()));
    let verdict = seen["verdict"].as_str().unwrap();
    assert_eq!(
        verdict[1..],
        format!("{}.", &summary.verdict[1..]).replace('`', "")
    );
    assert!(verdict.starts_with("The GPU idles 70 % of the wall time because the host copies"));
    let of_step = seen["verdictOfStep"].as_str().unwrap();
    assert!(
        of_step.starts_with(
            "In step 3 gpu computes 30 % of the time; it does not compute longest while: \
             host.count (40 ms"
        ),
        "{of_step}"
    );
    assert_eq!(seen["adviceOfStep"], false);
    assert_eq!(seen["verdictAgain"], verdict);
    check_resummed(&seen);
    let text = |of: &str, key: &str| seen[of][key].to_string();
    // Of all steps: the copy first, and what is between them.
    let gaps = text("numbers", "gaps");
    assert!(
        gaps.contains("host.copy of particles to the host43.33 ms260 ms43.3 %"),
        "{gaps}"
    );
    assert!(gaps.contains("frame.write (between steps)"), "{gaps}");
    // Of step 3 alone: the count, and nothing between steps.
    let gaps = text("numbersOfStep", "gaps");
    assert!(gaps.contains("[\"host.count40 ms40 ms40 %"), "{gaps}");
    assert!(!gaps.contains("between steps"), "{gaps}");
    let tiles = &seen["numbersOfStep"]["tiles"];
    assert_eq!(
        (&tiles["steps"], &tiles["step_ms.median"]),
        (&"1".into(), &"100 ms".into())
    );
    for part in ["backends", "stages", "path"] {
        assert!(text("numbersOfStep", part).contains("host.count"), "{part}");
        assert_ne!(text("numbers", part), text("numbersOfStep", part), "{part}");
    }
    assert_eq!(seen["numbersAgain"], seen["numbers"]);
    assert_eq!(seen["overprinted"], Value::Array(Vec::new()));
    let named = seen["gapTips"].to_string();
    assert!(
        named.contains("host.copy of particles to the host"),
        "{named}"
    );
    assert!(named.contains("frame.write"), "{named}");
    assert!(
        seen["all"]["gaps"].as_u64().unwrap() >= 12,
        "{}",
        seen["all"]
    );
}

#[test]
fn ten_thousand_steps_open() {
    let Some(browser) = chromium() else { return };
    let (page, _) = page(hybrid_run(10_000));
    let ready = seen(&browser, &page, (1280, 900))["ready"].as_f64();
    eprintln!(
        "10,000 steps, {} bytes, ready after {ready:?} ms",
        page.len()
    );
    assert!(ready.is_some_and(f64::is_finite), "{ready:?}");
}

#[test]
fn a_long_trace_is_thinned_and_says_so() {
    let (page, summary) = page(hybrid_run(16_000));
    assert!(page.contains("\"thinned\":true"));
    assert_eq!(summary.steps, 16_000);
    assert!(page.len() < 20_000_000, "{}", page.len());
}

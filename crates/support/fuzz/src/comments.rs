//! The comment line of extended XYZ: any text is split into pairs or refused, and nothing in a
//! value is a key.
//!
//! Pairs that were split are written down again in the strictest form of the grammar, and must then
//! be read as the same pairs. Behind any value that is a string another pair must be found.

use crate::message::check_line;
use nearfield_io::extxyz::{Form, Pair, Pairs, Value};

/// Splits `bytes` as a comment line, and takes the text itself as a value.
///
/// # Panics
/// When the grammar breaks a promise.
pub fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found: Result<Vec<Pair<'_>>, _> = Pairs::new(&text).collect();
    match found {
        Ok(pairs) => {
            let line: Vec<String> = pairs.iter().map(written).collect();
            let line = line.join(" ");
            let again: Result<Vec<Pair<'_>>, _> = Pairs::new(&line).collect();
            let again = again.unwrap_or_else(|error| panic!("{line:?} of {text:?}: {error}"));
            let said = |pairs: &[Pair<'_>]| -> Vec<_> { pairs.iter().map(meaning).collect() };
            assert_eq!(said(&again), said(&pairs), "{line:?} of {text:?}");
        }
        Err(error) => {
            check_line(&error.to_string());
            assert!(
                (1..=text.chars().count() + 1).contains(&error.character),
                "{error}"
            );
        }
    }
    within_a_string(&text);
}

/// The text as a string between two other pairs: whatever keys it holds, they are not found.
fn within_a_string(text: &str) {
    let line = format!("first=1 history={} last={{T F}}", quoted(text));
    let pairs: Result<Vec<Pair<'_>>, _> = Pairs::new(&line).collect();
    let pairs = pairs.unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let keys: Vec<_> = pairs.iter().map(|pair| pair.key.as_ref()).collect();
    assert_eq!(keys, ["first", "history", "last"], "{line:?}");
    let value = pairs[1].value.map(|value| value.text().into_owned());
    assert_eq!(value.as_deref(), Some(text), "{line:?}");
}

/// A text as a string of the grammar.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

fn written(pair: &Pair<'_>) -> String {
    let key = quoted(&pair.key);
    match &pair.value {
        None => key,
        Some(value) => match value.form() {
            Form::Word | Form::String => format!("{key}={}", quoted(&value.text())),
            Form::Braces => format!("{key}={{{}}}", value.raw()),
            Form::Brackets => format!("{key}=[{}]", value.raw()),
        },
    }
}

/// A pair by what it says: a word says the same as a string.
fn meaning(pair: &Pair<'_>) -> (String, Option<(bool, String)>) {
    let is_array = |value: &Value<'_>| matches!(value.form(), Form::Braces | Form::Brackets);
    let value = pair.value.as_ref();
    let value = value.map(|value| (is_array(value), value.text().into_owned()));
    (pair.key.to_string(), value)
}

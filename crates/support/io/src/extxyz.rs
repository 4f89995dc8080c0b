//! The grammar of the comment line of an extended XYZ file: `key=value` pairs.
//!
//! This module is the only one that knows the grammar, which follows the [published
//! specification](https://github.com/libAtoms/extxyz); readers decide which keys they use. Blanks
//! (space and tab) may be between all parts:
//!
//! ```text
//! line    = { pair }
//! pair    = key [ "=" value ]
//! key     = word | string
//! value   = string | braces | brackets | word
//! string  = '"' { character | "\" character } '"'     \n is a line end, \x is x
//! braces  = "{" { element } "}"                       the old style, elements between blanks
//! brackets = "[" element { "," element } "]"          the new style, also of rows in brackets
//! ```
//!
//! Four extensions occur in files: a key may have no value, a word after `=` may be empty, a word
//! may hold commas, backslashes and pairs of brackets, and a value may be a string in apostrophes
//! if it holds no `=`. **Invariant others rely on:** nothing within a value is taken for a key. A
//! line that can be split in two ways is an error, with the position of the ambiguous character.

use std::borrow::Cow;

/// How a [`Value`] is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Characters without blanks.
    Word,
    /// In quotes.
    String,
    /// In braces, the old style of arrays.
    Braces,
    /// In brackets, the new style of arrays.
    Brackets,
}

/// The value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    form: Form,
    raw: &'a str,
}

/// A key and its value, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The key, without quotes.
    pub key: Cow<'a, str>,
    /// The value; `None` for a key without `=`, an empty word for one with nothing after `=`.
    pub value: Option<Value<'a>>,
}

/// Why a line cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("character {character}: {message}")]
pub struct SplitError {
    /// Position of the character, counted from 1.
    pub character: usize,
    /// The fault at that position.
    pub message: &'static str,
}

/// The pairs of a line, in order. Nothing follows an error.
///
/// ```
/// use nearfield_io::extxyz::Pairs;
///
/// let line = r#"note="old \" pbc={F F F} \" end" pbc = [T, T, F] step=7"#;
/// let pairs = Pairs::new(line).collect::<Result<Vec<_>, _>>()?;
/// let keys: Vec<_> = pairs.iter().map(|pair| pair.key.as_ref()).collect();
/// assert_eq!(keys, ["note", "pbc", "step"]);
/// let periodic = pairs[1].value.and_then(|value| value.rows(3, |flag| Some(flag == "T")));
/// assert_eq!(periodic, Some(vec![vec![true, true, false]]));
/// assert!(Pairs::new(r#"pbc="T T"#).any(|pair| pair.is_err()));
/// # Ok::<(), nearfield_io::extxyz::SplitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Pairs<'a> {
    /// The pairs of this line.
    pub fn new(line: &'a str) -> Self {
        Self { line, rest: line }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// The error at the beginning of `at`, which is a suffix of the line.
    fn refuse<T>(&self, at: &str, message: &'static str) -> Result<T, SplitError> {
        let before = &self.line[..self.line.len() - at.len()];
        Err(SplitError {
            character: before.chars().count() + 1,
            message,
        })
    }

    fn pair(&mut self) -> Result<Pair<'a>, SplitError> {
        let key = if let Some(inner) = self.rest.strip_prefix('"') {
            unescaped(self.string(inner, '"')?)
        } else if self.rest.starts_with('=') {
            return self.refuse(self.rest, "there is no key before '='");
        } else {
            let end = |c: char| c == '=' || c.is_ascii_whitespace();
            Cow::Borrowed(self.word(end)?)
        };
        self.skip_blanks();
        let Some(rest) = self.rest.strip_prefix('=') else {
            return Ok(Pair { key, value: None });
        };
        self.rest = rest;
        let (form, raw) = self.value()?;
        let value = Some(Value { form, raw });
        Ok(Pair { key, value })
    }

    /// The value behind a `=`.
    fn value(&mut self) -> Result<(Form, &'a str), SplitError> {
        let adjacent = !self.rest.starts_with(|c: char| c.is_ascii_whitespace());
        self.skip_blanks();
        let mut rest = self.rest.chars();
        Ok(match rest.next() {
            Some('"') => (Form::String, self.string(rest.as_str(), '"')?),
            Some('\'') if rest.as_str().contains('\'') => (Form::Word, self.apostrophes()?),
            Some('{') => (Form::Braces, self.braces(rest.as_str())?),
            Some('[') => (Form::Brackets, self.brackets()?),
            _ => {
                let before = self.rest;
                let word = self.word(|c| c.is_ascii_whitespace())?;
                // A key follows, and this one has no value.
                let next = self.rest.trim_ascii_start();
                if !adjacent && (word.contains('=') || next.starts_with('=')) {
                    self.rest = before;
                    return Ok((Form::Word, ""));
                }
                (Form::Word, word)
            }
        })
    }

    /// The characters up to one that is an `end`.
    fn word(&mut self, end: impl Fn(char) -> bool) -> Result<&'a str, SplitError> {
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        if let Some(at) = word.find('"') {
            let message = "a quote within a word: a string begins and ends with one";
            return self.refuse(&self.rest[at..], message);
        }
        let count = |bracket: char| word.matches(bracket).count();
        if count('[') != count(']') || count('{') != count('}') {
            let message = "a word with half a pair of brackets: put it in quotes";
            return self.refuse(self.rest, message);
        }
        self.rest = rest;
        Ok(word)
    }

    /// The text of a string up to its closing quote; `inner` begins after the opening one.
    fn string(&mut self, inner: &'a str, quote: char) -> Result<&'a str, SplitError> {
        match closing(inner, quote) {
            Some(end) => {
                self.rest = &inner[end + 1..];
                Ok(&inner[..end])
            }
            None => self.refuse(self.rest, "the string that begins here does not end"),
        }
    }

    /// A string in apostrophes. The specification treats them as letters and other readers as
    /// quotes, so the text between them must mean the same in both cases.
    fn apostrophes(&mut self) -> Result<&'a str, SplitError> {
        let start = self.rest;
        let inner = self.string(&start[1..], '\'')?;
        if inner.contains('=') {
            let message = "a string in apostrophes with '=' in it: put it in quotes";
            return self.refuse(start, message);
        }
        Ok(inner)
    }

    fn braces(&mut self, inner: &'a str) -> Result<&'a str, SplitError> {
        let mut from = 0;
        while let Some(at) = inner[from..].find(['"', '}']) {
            let at = from + at;
            if inner[at..].starts_with('}') {
                self.rest = &inner[at + 1..];
                return Ok(&inner[..at]);
            }
            match closing(&inner[at + 1..], '"') {
                Some(end) => from = at + end + 2,
                None => break,
            }
        }
        self.refuse(self.rest, "the braces that open here do not close")
    }

    fn brackets(&mut self) -> Result<&'a str, SplitError> {
        let text = self.rest;
        let (mut from, mut open) = (0, 0_usize);
        while let Some(at) = text[from..].find(['"', '[', ']']) {
            let at = from + at;
            from = at + 1;
            match &text[at..=at] {
                "[" => open += 1,
                "]" => open -= 1,
                _ => match closing(&text[from..], '"') {
                    Some(end) => from += end + 1,
                    None => break,
                },
            }
            if open == 0 {
                self.rest = &text[from..];
                return Ok(&text[1..at]);
            }
        }
        self.refuse(text, "the brackets that open here do not close")
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<Pair<'a>, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        if self.rest.is_empty() {
            return None;
        }
        let pair = self.pair();
        if pair.is_err() {
            self.rest = "";
        }
        Some(pair)
    }
}

impl<'a> Value<'a> {
    /// How it is written.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The text between the quotes, braces or brackets, as the file has it.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The text; of a string without the backslashes.
    pub fn text(&self) -> Cow<'a, str> {
        match self.form {
            Form::String => unescaped(self.raw),
            _ => Cow::Borrowed(self.raw),
        }
    }

    /// The elements: one row, or one row per inner bracket if brackets are nested.
    ///
    /// `None` without elements, with more than `max_elements`, if `element` refuses one, or if the
    /// brackets are malformed.
    pub fn rows<T>(
        &self,
        max_elements: usize,
        element: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<Vec<T>>> {
        let mut left = max_elements;
        let mut take = |word: &str| {
            left = left.checked_sub(1)?;
            element(word)
        };
        let mut row = |text: &str| -> Option<Vec<T>> {
            text.split(',')
                .map(|word| take(word.trim_ascii()))
                .collect()
        };
        let mut rest = self.raw.trim_ascii();
        if self.form != Form::Brackets {
            let words = rest.split_ascii_whitespace();
            let only = words.map(take).collect::<Option<Vec<T>>>()?;
            return (!only.is_empty()).then(|| vec![only]);
        }
        if !rest.starts_with('[') {
            return Some(vec![row(rest)?]);
        }
        let mut rows = Vec::new();
        loop {
            let (inner, behind) = rest.strip_prefix('[')?.split_once(']')?;
            rows.push(row(inner)?);
            rest = behind.trim_ascii_start();
            if rest.is_empty() {
                return Some(rows);
            }
            rest = rest.strip_prefix(',')?.trim_ascii_start();
        }
    }
}

/// The end of a string: the first quote without a backslash before it.
fn closing(inner: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                next => text.extend(next),
            },
            _ => text.push(c),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<(String, Option<String>)> {
        let pairs = Pairs::new(line).map(|pair| pair.unwrap_or_else(|e| panic!("{line}: {e}")));
        pairs
            .map(|pair| {
                let value = pair.value.map(|value| value.text().into_owned());
                (
                    pair.key.into_owned(),
                    value.filter(|value| !value.is_empty()),
                )
            })
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let owned = |&(key, value): &(&str, &str)| {
            let value = (!value.is_empty()).then(|| value.to_owned());
            (key.to_owned(), value)
        };
        expected.iter().map(owned).collect()
    }

    #[test]
    fn pairs_are_split_at_blanks_outside_values() {
        let line = r#"Lattice="1 2" pbc={T F F} step=7  note plain= a=b=c "odd key"=[1, 2]tail"#;
        let expected = [
            ("Lattice", "1 2"),
            ("pbc", "T F F"),
            ("step", "7"),
            ("note", ""),
            ("plain", ""),
            ("a", "b=c"),
            ("odd key", "1, 2"),
            ("tail", ""),
        ];
        assert_eq!(split(line), pairs(&expected));
        let spread = "a = 1\tb\t=\t\"x y\" c= pbc=T d =[[1,2],\t[3,4]] e = f = g";
        let expected = [
            ("a", "1"),
            ("b", "x y"),
            ("c", ""),
            ("pbc", "T"),
            ("d", "[1,2],\t[3,4]"),
            ("e", ""),
            ("f", "g"),
        ];
        assert_eq!(split(spread), pairs(&expected));
    }

    #[test]
    fn nothing_within_a_value_is_a_key() {
        for value in [
            r#""old \" Lattice={9} \" end""#,
            r#"{a "} Lattice=9" b}"#,
            r#"["] Lattice=9", "x"]"#,
            r#""\\""#,
        ] {
            let line = format!("history={value} pbc=T");
            let keys: Vec<_> = split(&line).into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, ["history", "pbc"], "{line}");
        }
        let said = split(r#"a="say \"hi\"\n\\""#);
        assert_eq!(said, pairs(&[("a", "say \"hi\"\n\\")]));
        assert_eq!(split("a='b c' d"), pairs(&[("a", "b c"), ("d", "")]));
        assert_eq!(split("a=it's b=o'"), pairs(&[("a", "it's"), ("b", "o'")]));
    }

    #[test]
    fn lines_that_cannot_be_split_are_refused_with_the_character() {
        for (line, character) in [
            ("a=\"b c", 3),
            ("é=1 = 2", 5),
            ("a={1 2", 3),
            ("a=[[1,2]", 3),
            ("a=5\" b=1", 4),
            ("a=x[1 b]", 3),
            ("a='b=1 c'", 3),
            ("\"a b", 1),
        ] {
            let mut found = Pairs::new(line).skip_while(Result::is_ok);
            let error = found.next().expect(line).unwrap_err();
            assert_eq!(error.character, character, "{line}: {error}");
            assert_eq!(found.next(), None, "{line}");
        }
    }

    #[test]
    fn arrays_have_rows() {
        let rows = |text: &str| {
            let line = format!("a={text}");
            let pair = Pairs::new(&line).next().unwrap().unwrap();
            pair.value.unwrap().rows(9, |word| word.parse::<i32>().ok())
        };
        assert_eq!(rows("\" 1 2\t3 \""), Some(vec![vec![1, 2, 3]]));
        assert_eq!(rows("{1 2 3}"), Some(vec![vec![1, 2, 3]]));
        assert_eq!(rows("[1, 2 ,3]"), Some(vec![vec![1, 2, 3]]));
        assert_eq!(rows("7"), Some(vec![vec![7]]));
        assert_eq!(rows("[ [1,2] , [3] ]"), Some(vec![vec![1, 2], vec![3]]));
        for text in [
            "[]",
            "[1 2]",
            "[[1,2],3]",
            "[[1],]",
            "[[[1]]]",
            "\"\"",
            "[1,,2]",
        ] {
            assert_eq!(rows(text), None, "{text}");
        }
        assert_eq!(rows("{1 2 3 4 5 6 7 8 9 10}"), None);
    }
}

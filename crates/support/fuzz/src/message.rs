//! What every target checks of the messages that it gets.

/// Checks that a message is one line that can be shown to a person.
pub(crate) fn check_line(text: &str) {
    assert!(!text.is_empty());
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(text.len() < 2000, "{} bytes: {text:?}", text.len());
}

//! Names of the files of a run's moments.

/// Returns true for names such as `frame_0123.vtp`, with at least four digits and one of these
/// extensions.
#[must_use]
pub fn is_frame(name: &str, extensions: &[&str]) -> bool {
    let number = name
        .strip_prefix("frame_")
        .and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(digits, extension)| {
        digits.len() >= 4
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && extensions.contains(&extension)
    })
}

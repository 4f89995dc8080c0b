//! Names of the files of a run's moments.

/// The number of a frame and the extension of its name: `(123, "vtp")` for `frame_0123.vtp`.
/// Numbers have at least four digits.
pub(crate) fn frame_number(name: &str) -> Option<(usize, &str)> {
    let (digits, kind) = name.strip_prefix("frame_")?.split_once('.')?;
    let numbered = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| numbered)?, kind))
}

/// Returns true for names like `frame_0123.vtp`, with at least four digits and one of these
/// extensions.
#[must_use]
pub fn is_frame(name: &str, extensions: &[&str]) -> bool {
    frame_number(name).is_some_and(|(_, extension)| extensions.contains(&extension))
}

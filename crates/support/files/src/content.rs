//! Compares contents of files, and checks the format of one.

/// Tells contents apart: FNV-1a with 64 bits (Fowler, Noll and Vo). It finds accidents, not
/// forgeries.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Describes a file that does not begin with the line `expected` of a format and its version.
#[must_use]
pub fn not_this_format(bytes: &[u8], expected: &[u8]) -> String {
    let text = |bytes: &[u8]| bytes.trim_ascii_end().escape_ascii().to_string();
    let line = bytes
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let version = |line: &[u8]| line.iter().rposition(|&byte| byte == b' ');
    let kind = |line: &[u8]| version(line).map(|at| line[..at].to_vec());
    let (wanted, found) = (
        text(expected),
        text(&line[..line.len().min(expected.len())]),
    );
    if kind(line).is_some() && kind(line) == kind(expected.trim_ascii_end()) {
        return format!(
            "it is {found}, and this program reads {wanted}: go on with the program that wrote it"
        );
    }
    format!("it is not a checkpoint of this kind, which begins with {wanted}")
}

//! Names of variables in the text: the user's, unless C++ has other plans for them.

/// Words of C++ and names around a kernel that no variable or field can have. Words of Rust that
/// are words of C++ too are no names in Rust.
const TAKEN: [&str; 92] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const_cast",
    "constexpr",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "double",
    "dynamic_cast",
    "explicit",
    "export",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "short",
    "signed",
    "sizeof",
    "static_assert",
    "static_cast",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "xor",
    "xor_eq",
    "nf",
    "uniform",
    "INFINITY",
    "NAN",
    "NULL",
    "asm_",
    "linux",
    "unix",
    "near",
    "far",
    "EOF",
    "HUGE_VAL",
    "HUGE_VALF",
    "M_PI",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
];

/// A name that C++ lets a variable or a field have.
pub(crate) fn allowed(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    // Names with two underscores, or one before a capital, are the compiler's; NF_ are macros.
    let reserved = name.contains("__")
        || name.starts_with("NF_")
        || name.starts_with("NEARFIELD_")
        || (name.starts_with('_') && name[1..].starts_with(|c: char| c.is_ascii_uppercase()));
    if !name.is_ascii() {
        let ascii: String = name
            .chars()
            .map(|c| match c {
                c if c.is_ascii() => c.to_string(),
                c => format!("u{:x}", u32::from(c)),
            })
            .collect();
        return allowed(&ascii);
    }
    if reserved {
        let mut name = name.to_owned();
        while name.contains("__") {
            name = name.replace("__", "_");
        }
        return format!("v_{}", name.trim_start_matches('_'));
    }
    if TAKEN.contains(&name) {
        return format!("{name}_");
    }
    name.to_owned()
}

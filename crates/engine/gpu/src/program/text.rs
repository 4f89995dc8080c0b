//! What is compiled: a text, what it includes, and how.
//!
//! A program may hold a text of the user's, a pair kernel fused into a traversal. The program's
//! own text includes it as [`USER_HEADER`]; the compiler's messages name it as the user did, with
//! the user's own line numbers.
//!
//! All sources are texts in memory: NVRTC gets headers with their names beside the program, and no
//! folder is searched for others.
//!
//! # Keys
//!
//! Machine code is identified by a SHA-256 over all that determines it ([`Program::key`]). Every
//! string is hashed behind its length, and lists behind theirs, so no two different programs run
//! together into the same bytes: a header `h` with the text `one` and a header `ho` with `ne` have
//! different keys.

use crate::{
    error::{Error, ErrorKind},
    version::Arch,
};
use nearfield_shared::{Header, Source, assertions};
use sha2::{Digest, Sha256};
use std::fmt;

/// The name under which a program's own text includes the user's.
pub const USER_HEADER: &str = "nearfield/user.cuh";

/// Options of every program. The arithmetic ones are the contract's: the CPU backend contracts
/// nothing, keeps subnormals and rounds divisions and roots correctly, so the GPU backend does too.
/// A function without `__device__` is for the device, as there is nothing else here.
const OPTIONS: [&str; 6] = [
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--device-as-default-execution-space",
];

/// CUDA C++ to be compiled for a device.
///
/// ```
/// use nearfield_gpu::{Arch, Program};
///
/// let text = "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR; }";
/// let twice = Program::new("scale", text).define("FACTOR", 2);
/// let thrice = Program::new("scale", text).define("FACTOR", 3);
/// // Machine code of one is never taken for that of the other, nor for another device's.
/// assert_ne!(twice.key(Arch::new(90)), thrice.key(Arch::new(90)));
/// assert_ne!(twice.key(Arch::new(90)), twice.key(Arch::new(80)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// In messages, traces and names of files.
    name: String,
    /// CUDA C++.
    text: String,
    /// Name and text of every header that the text may include.
    headers: Vec<(String, String)>,
    /// Options beside those of every program, macros among them.
    options: Vec<String>,
    /// Its kernels launch kernels.
    launches_children: bool,
    /// Name and text of the user's part.
    user: Option<(String, String)>,
    /// Type of the pair kernel that the user's part was translated from.
    translated: Option<String>,
}

impl Program {
    /// A program of one text. The name stands in messages, traces and the cache's file names.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            headers: Vec::new(),
            options: Vec::new(),
            launches_children: false,
            user: None,
            translated: None,
        }
    }

    /// Lets the text `#include "name"`. Headers may include each other.
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Defines a macro, as `#define name value` would.
    pub fn define(self, name: &str, value: impl fmt::Display) -> Self {
        self.option(format!("-D{name}={value}"))
    }

    /// Adds an option of the compiler, behind those that every program has. It is part of the key.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Says that the program's kernels launch kernels; it is then linked with the device runtime.
    pub fn launching_children(mut self) -> Self {
        self.launches_children = true;
        self
    }

    /// The user's text, which the program's own includes as [`USER_HEADER`]. `name` is what the
    /// compiler's messages call it.
    pub fn user_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.user = Some((name.into(), text.into()));
        self
    }

    /// Says that the library translated the user's part from the pair kernel of this type. It is
    /// no part of the key: the machine code is the same.
    pub(crate) fn translated(mut self, kernel: Option<String>) -> Self {
        self.translated = kernel;
        self
    }

    /// The error of a compiler that refused the text: the library's fault if it translated the
    /// user's part, since all other parts are compiled by tests.
    pub(crate) fn refused(&self, arch: Arch, log: String) -> Error {
        let program = self.name.clone();
        Error::from(match self.translated.clone() {
            Some(kernel) => ErrorKind::Translation {
                kernel,
                program,
                arch,
                log,
            },
            None => ErrorKind::Compile { program, arch, log },
        })
    }

    /// Name of the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Options that not every program has, macros among them.
    pub fn own_options(&self) -> &[String] {
        &self.options
    }

    /// Name of the user's part, if it has one.
    pub fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|(name, _)| name.as_str())
    }

    /// Returns true if the program's kernels launch kernels.
    pub fn launches_children(&self) -> bool {
        self.launches_children
    }

    /// CUDA C++, without headers and the user's part.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Names and texts of everything that can be included.
    ///
    /// # Errors
    /// [`ErrorKind::BadProgram`] if the name of the user's text holds control characters.
    pub(crate) fn includes(&self) -> Result<Vec<(String, String)>, Error> {
        let mut includes = self.headers.clone();
        if let Some((name, text)) = &self.user {
            includes.push((USER_HEADER.to_owned(), self.numbered(name, text)?));
        }
        Ok(includes)
    }

    /// The user's text behind a `#line` directive with the name that messages are to show. The name
    /// is escaped; control characters are refused, because a line break would end the directive and
    /// begin a line of the program.
    fn numbered(&self, name: &str, text: &str) -> Result<String, Error> {
        if name.chars().any(|symbol| symbol.is_control()) {
            return Err(Error::from(ErrorKind::BadProgram {
                program: self.name.clone(),
                reason: format!("the name {name:?} of the user's text holds control characters"),
            }));
        }
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        Ok(format!("#line 1 \"{name}\"\n{text}\n"))
    }

    /// The compiler's options for `arch`, in the order in which they are passed and hashed.
    pub(crate) fn options(&self, arch: Arch) -> Vec<String> {
        let mut options: Vec<String> = OPTIONS.map(str::to_owned).into();
        options.push(format!("--gpu-architecture={arch}"));
        if self.launches_children {
            options.push("--relocatable-device-code=true".to_owned());
        }
        options.extend_from_slice(&self.options);
        options
    }

    /// Key of this program's machine code for `arch`.
    ///
    /// The compiler's version is no part of it: a node without the compiler has to find what was
    /// prepared for it.
    pub fn key(&self, arch: Arch) -> Key {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(env!("CARGO_PKG_VERSION"));
        add(&self.name);
        add(&self.text);
        let user = self.user.as_ref();
        let lists = [
            self.headers.iter().collect::<Vec<_>>(),
            user.into_iter().collect::<Vec<_>>(),
        ];
        for list in lists {
            add(&list.len().to_string());
            for (name, text) in list {
                add(name);
                add(text);
            }
        }
        for option in self.options(arch) {
            add(&option);
        }
        Key(hash.finalize().into())
    }
}

impl From<&Source> for Program {
    /// The program of a source. It compiles only if the structs that Rust fills in have the same
    /// layout in the text.
    fn from(source: &Source) -> Self {
        let mut program = Self::new(source.name, source.text);
        program.launches_children = source.launches_children;
        program.text += &assertions(source.all_layouts());
        let owned = |header: &Header| (header.name.to_owned(), header.text.to_owned());
        program.headers = source.headers.iter().map(owned).collect();
        program
    }
}

/// Tells one program's machine code from another's: a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub(crate) [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among the programs are pairs whose texts would be equal if they were only strung together.
    #[test]
    fn everything_that_changes_the_code_changes_the_key() {
        let plain = || Program::new("a", "text").header("h", "one");
        let arch = Arch::new(90);
        let programs = [
            plain(),
            Program::new("b", "text").header("h", "one"),
            Program::new("a", "texts").header("h", "one"),
            Program::new("a", "text").header("h", "two"),
            Program::new("a", "text").header("ho", "ne"),
            Program::new("a", "text").user_text("h", "one"),
            plain().define("K", 2),
            plain().define("K", 3),
            plain().launching_children(),
            plain().user_text("mine.cu", "int a;"),
            plain().user_text("mine.cu", "int b;"),
            plain().user_text("yours.cu", "int a;"),
        ];
        let mut keys: Vec<_> = programs.iter().map(|program| program.key(arch)).collect();
        keys.push(plain().key(Arch::new(80)));
        for (index, key) in keys.iter().enumerate() {
            assert!(
                !keys[..index].contains(key),
                "program {index} has another's key"
            );
        }
        assert_eq!(plain().key(arch), keys[0]);
        assert_eq!(keys[0].to_string().len(), 64);
    }

    /// A name of the user goes into the text of a program.
    #[test]
    fn a_name_cannot_end_the_line_directive() {
        let named = |name: &str| Program::new("a", "").user_text(name, "int a;").includes();
        let includes = named("odd \"name\\.cu").unwrap();
        assert_eq!(includes[0].1, "#line 1 \"odd \\\"name\\\\.cu\"\nint a;\n");
        let error = named("a\nb").unwrap_err().to_string();
        assert!(error.contains("a\\nb"), "{error}");
    }
}

//! The error of a device that cannot do what it was named for.

use std::{borrow::Cow, fmt};

/// A device was named that cannot do what was asked of it, or that this build does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsupported {
    /// None if the build lacks the backend, and so everything.
    pub(crate) feature: Option<Cow<'static, str>>,
    pub(crate) backend: &'static str,
    pub(crate) remedy: &'static str,
}

impl Unsupported {
    /// The feature that was asked for, in a few words; `any` if the build lacks the whole backend.
    pub fn feature(&self) -> &str {
        self.feature.as_deref().unwrap_or("any")
    }

    /// The backend that cannot do it: `GPU` or `emulated`.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            feature,
            backend,
            remedy,
        } = self;
        match feature {
            Some(feature) => write!(
                f,
                "the {backend} backend does not support {feature}: {remedy}"
            ),
            None => write!(
                f,
                "this build of nearfield has no {backend} backend: {remedy}"
            ),
        }
    }
}

impl std::error::Error for Unsupported {}

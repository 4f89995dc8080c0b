//! Which backend can do what: the only place where that is decided.
//!
//! [`supports`] says whether one backend can do one [feature](Feature); [`choose`] makes of it what
//! an engine does that was asked for a [`Device`]. A device that was named and cannot do a feature
//! is an error ([`Unsupported`]) before anything runs. [`Device::Auto`] and [`Device::Hybrid`]
//! leave such a job to the CPU backend, and the report says why. The table in `docs/backends.md` is
//! made from the same two functions ([`table`]).
//!
//! # Why one place
//!
//! A library with two backends tends to answer "can the GPU do this?" in each call, and every
//! answer ages by itself: the documentation promises one thing, a report says another, a third
//! runs. Here each call states a [`Feature`] and gets a [`Choice`]. So a new feature is a variant
//! of the enum, a phrase, a remedy and a line in [`supports`]; the tests do not compile until it
//! has a row in the page's table.
//!
//! # The rules of `choose`
//!
//! | device | its backend lacks the feature |
//! | --- | --- |
//! | [`Device::Cpu`] | cannot happen: the CPU backend has every feature |
//! | [`Device::Gpu`], [`Device::Emulated`] | an error, because the user named the device |
//! | [`Device::Hybrid`] | the CPU backend does the job; an error if all jobs need the feature |
//! | [`Device::Auto`] | the CPU backend does the job |
//!
//! A GPU that shares jobs with the CPU backend is a backend of its own here. It lacks what is not
//! divided yet: a job that one of the two does alone may be slower than on the other.
//!
//! Two things are not decided here. Whether the machine *has* a GPU is found when an engine is
//! built. Whether a GPU *works* at present is a [`Fault`](super::Fault), and no fault turns into an
//! [`Unsupported`]: the CPU backend then does the job for every device, because the user asked for
//! a feature that the device has.
//!
//! **Invariant:** the answers depend on their arguments and on the build alone, so they are the
//! same before a job, in its report and in the documentation.

use super::gpu;
use crate::{Device, error::Unsupported};
use std::borrow::Cow;

/// Something that is asked of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Positions in `f64`.
    Double,
    /// Radii of single points.
    PointRadii,
    /// Cut-offs per pair of types.
    TypeCutoffs,
    /// The k nearest neighbours.
    Nearest,
    /// Pairs of points that are no neighbours.
    Exclusions,
    /// Some points of a set as targets.
    ChosenTargets,
    /// Filters or radii of single points with a strategy that goes from cell to cell.
    FiltersByCells { strategy: &'static str },
    /// A box in which a vector leans along an open axis.
    SlantedBox,
    /// Lists of all neighbours.
    Lists,
    /// Lists in which each pair stands once.
    HalfLists,
    /// Lists within a memory limit.
    LimitedLists,
    /// Lists handed out in chunks.
    ListChunks,
    /// Numbers of neighbours.
    Counts,
    /// A pair kernel with CUDA text.
    Kernel,
    /// A pair kernel that has no CUDA text, or whose text does not compile, and why.
    KernelWithoutCuda {
        kernel: &'static str,
        reason: String,
    },
    /// A pair kernel over stored lists.
    OverLists,
    /// Lists with displacements and images.
    PairGeometry,
    /// Neighbours of arbitrary positions.
    Query,
    /// Neighbours of arbitrary positions, by radii of their own or of the points.
    QueryWithRadii,
    /// The neighbours of one point.
    EachNeighbor,
    /// The neighbours of one point that filters keep.
    FilteredVisits,
    /// Batches of pairs for a callback.
    Batches,
    /// Lists with a skin.
    Skin,
    /// Sums over all pairs.
    AllPairs,
    /// Pairs of many systems.
    Systems,
}

/// Hardware that does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Cpu,
    Gpu,
    /// A GPU that shares jobs with the CPU backend.
    Hybrid,
    Emulated,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Hybrid => "hybrid",
            Self::Emulated => "emulated",
        }
    }
}

impl Feature {
    /// Whether it concerns all jobs of an engine, and is decided when the engine is built.
    ///
    /// For such a feature [`Device::Hybrid`] is refused too: an engine with it would never use its
    /// GPU.
    fn is_of_engine(&self) -> bool {
        matches!(
            self,
            Self::Double | Self::PointRadii | Self::QueryWithRadii | Self::SlantedBox
        )
    }

    /// In a message.
    fn phrase(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Double => "positions in double precision (f64); it computes in single precision",
            Self::PointRadii => "radii of single points",
            Self::TypeCutoffs => "cut-offs per pair of types",
            Self::Nearest => "the k nearest neighbours",
            Self::Exclusions => "exclusions of pairs",
            Self::ChosenTargets => "chosen targets",
            Self::FiltersByCells { strategy } => {
                return Cow::Owned(format!(
                    "filters and radii of single points with the strategy {strategy}"
                ));
            }
            Self::SlantedBox => "boxes in which a box vector leans along an open axis",
            Self::Lists => "neighbour lists",
            Self::HalfLists => "half lists",
            Self::LimitedLists => "lists within a memory limit",
            Self::ListChunks => "lists in chunks",
            Self::Counts => "counts of neighbours",
            Self::Kernel => "pair kernels",
            Self::KernelWithoutCuda { kernel, reason } => {
                return Cow::Owned(format!("the pair kernel {kernel} ({reason})"));
            }
            Self::OverLists => "traversals over stored lists",
            Self::PairGeometry => "lists with the geometry of pairs",
            Self::Query => "queries of free positions",
            Self::QueryWithRadii => "queries with radii of single points",
            Self::FilteredVisits => "visits of one point with filters",
            Self::EachNeighbor => "visits of the neighbours of one point",
            Self::Batches => "batches of pairs for callbacks",
            Self::Skin => "lists with a skin",
            Self::AllPairs => "sums over all pairs",
            Self::Systems => "pairs of many systems",
        })
    }

    /// Remedy if a backend lacks it.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Double => {
                "use Device::Gpu, Device::Auto or Device::Cpu, or build the engine in \
                 Precision::Single"
            }
            Self::KernelWithoutCuda { .. } => {
                "use Device::Auto or Device::Cpu, or give the kernel CUDA text that compiles"
            }
            Self::OverLists => {
                "traverse without over_lists, or use Device::Auto, Device::Hybrid or Device::Cpu"
            }
            Self::LimitedLists => {
                "leave out Builder::memory_limit, or use Device::Auto, Device::Hybrid or Device::Cpu"
            }
            Self::FiltersByCells { .. } => "use Strategy::Flat or Strategy::Auto, or Device::Cpu",
            Self::AllPairs => "use Device::Auto, Device::Cpu, Device::Gpu or Device::Hybrid",
            feature if feature.is_of_engine() => "use Device::Gpu, Device::Auto or Device::Cpu",
            _ => "use Device::Auto, Device::Hybrid or Device::Cpu",
        }
    }
}

/// Whether a backend can do something.
///
/// # Errors
/// [`Unsupported`], naming feature, backend and remedy.
pub(crate) fn supports(backend: Backend, feature: &Feature) -> Result<(), Unsupported> {
    let supported = match (backend, feature) {
        (Backend::Cpu, _) => true,
        (_, Feature::Lists | Feature::HalfLists | Feature::Counts | Feature::Kernel) => true,
        (Backend::Gpu | Backend::Hybrid, Feature::AllPairs) => true,
        (Backend::Gpu, Feature::Systems | Feature::Double | Feature::SlantedBox) => true,
        (
            Backend::Gpu,
            Feature::LimitedLists
            | Feature::QueryWithRadii
            | Feature::TypeCutoffs
            | Feature::Exclusions
            | Feature::ChosenTargets
            | Feature::Nearest
            | Feature::PointRadii
            | Feature::FilteredVisits
            | Feature::OverLists
            | Feature::Skin,
        ) => true,
        // Not divided between two backends. The emulated device does it alone.
        (
            Backend::Gpu | Backend::Emulated,
            Feature::PairGeometry
            | Feature::ListChunks
            | Feature::Query
            | Feature::EachNeighbor
            | Feature::Batches,
        ) => true,
        // It computes by the code of the CPU backend.
        (Backend::Emulated, Feature::KernelWithoutCuda { .. } | Feature::SlantedBox) => true,
        _ => false,
    };
    if supported {
        return Ok(());
    }
    Err(Unsupported {
        feature: Some(feature.phrase()),
        backend: backend.name(),
        remedy: feature.remedy(),
    })
}

/// Whether this build has the backend of a device. [`Device::Auto`] needs none.
///
/// # Errors
/// [`Unsupported`] for a GPU in a build without the cargo feature `gpu`.
pub(crate) fn in_build(device: Device) -> Result<(), Unsupported> {
    match device {
        Device::Gpu(_) | Device::Hybrid(_) if !gpu::BUILT => Err(Unsupported {
            feature: None,
            backend: Backend::Gpu.name(),
            remedy: "build it with its cargo feature `gpu`, or use Device::Auto or Device::Cpu",
        }),
        _ => Ok(()),
    }
}

/// Where an engine does something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// Where the device that was asked for does it.
    AsAsked,
    /// On the CPU backend, because the other one cannot.
    Cpu(Unsupported),
}

/// Where an engine that was asked for `device` does something.
///
/// # Errors
/// [`Unsupported`] where the device was named and its backend cannot.
pub(crate) fn choose(device: Device, feature: &Feature) -> Result<Choice, Unsupported> {
    let degrades = match device {
        Device::Auto => true,
        // An engine that can never use its GPU is not what was asked for.
        Device::Hybrid(_) => !feature.is_of_engine(),
        Device::Cpu | Device::Gpu(_) | Device::Emulated(_) => false,
    };
    let backend = match device {
        Device::Cpu => Backend::Cpu,
        Device::Gpu(_) => Backend::Gpu,
        Device::Auto | Device::Hybrid(_) => Backend::Hybrid,
        Device::Emulated(_) => Backend::Emulated,
    };
    match supports(backend, feature) {
        Ok(()) => Ok(Choice::AsAsked),
        Err(unsupported) if degrades => Ok(Choice::Cpu(unsupported)),
        Err(unsupported) => Err(unsupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_balance::EmulatedSpec;
    use std::{env, fs, path::Path};

    impl Feature {
        /// All of them, in the order of the table.
        fn all() -> Vec<Self> {
            vec![
                Self::Lists,
                Self::HalfLists,
                Self::Counts,
                Self::Kernel,
                Self::KernelWithoutCuda {
                    kernel: "",
                    reason: String::new(),
                },
                Self::OverLists,
                Self::LimitedLists,
                Self::ListChunks,
                Self::PairGeometry,
                Self::Query,
                Self::QueryWithRadii,
                Self::EachNeighbor,
                Self::FilteredVisits,
                Self::Batches,
                Self::Skin,
                Self::AllPairs,
                Self::TypeCutoffs,
                Self::Exclusions,
                Self::ChosenTargets,
                Self::Nearest,
                Self::FiltersByCells { strategy: "" },
                Self::Systems,
                Self::PointRadii,
                Self::Double,
                Self::SlantedBox,
            ]
        }

        /// The row of the table: what, and how it is asked for.
        fn row(&self) -> (&'static str, &'static str) {
            match self {
                Self::Lists => ("full lists, in any order", "`find_neighbors`"),
                Self::HalfLists => ("half lists", "`Builder::lists`"),
                Self::Counts => ("counts of neighbours", "`count_neighbors`"),
                Self::Kernel => ("pair kernel with CUDA text", "`traverse`"),
                Self::KernelWithoutCuda { .. } => (
                    "pair kernel without CUDA text, or with text that does not compile",
                    "`traverse`",
                ),
                Self::OverLists => ("pair kernel over stored lists", "`over_lists`"),
                Self::LimitedLists => ("lists within a memory limit", "`Builder::memory_limit`"),
                Self::ListChunks => ("lists in chunks", "`list_chunks`"),
                Self::PairGeometry => ("lists with the geometry of pairs", "`pair_geometry`"),
                Self::Query => ("neighbours of free positions", "`query`"),
                Self::QueryWithRadii => (
                    "neighbours of free positions by radii of single points",
                    "`query_into`",
                ),
                Self::EachNeighbor => (
                    "neighbours of one point, or of a few",
                    "`for_each_neighbor`, `neighbors_of`",
                ),
                Self::FilteredVisits => (
                    "neighbours of these with filters",
                    "`for_each_neighbor`, `neighbors_of`",
                ),
                Self::Batches => ("batches of pairs for a callback", "`for_each_batch`"),
                Self::Skin => ("lists with a skin", "`VerletLists`"),
                Self::AllPairs => ("sums over all pairs", "`Engine::all_pairs`"),
                Self::TypeCutoffs => ("cut-offs per pair of types", "`Builder::cutoffs`"),
                Self::Exclusions => (
                    "exclusions of pairs, within molecules",
                    "`Engine::set_exclusions`, `set_molecules`",
                ),
                Self::ChosenTargets => (
                    "some points of a set as targets",
                    "`Engine::set_targets`, `set_target_mask`",
                ),
                Self::FiltersByCells { .. } => (
                    "filters or radii of single points with a strategy that goes by cells",
                    "`Builder::strategy`",
                ),
                Self::Nearest => ("the k nearest within the radius", "`Builder::nearest`"),
                Self::Systems => ("pairs of many systems", "`SystemSearch`"),
                Self::PointRadii => ("radii of single points", "`Builder::radii`"),
                Self::Double => ("positions in `f64`", "`Builder::precision`"),
                Self::SlantedBox => (
                    "box with a vector that leans along an open axis",
                    "`Builder::box_vectors`",
                ),
            }
        }
    }

    /// The table "feature × device" of the documentation, in Markdown.
    fn table() -> String {
        let devices = [
            Device::Cpu,
            Device::Gpu(0),
            Device::Hybrid(0),
            Device::Emulated(EmulatedSpec::default()),
            Device::Auto,
        ];
        let mut table =
            "| what | asked for by | `cpu` | `gpu` | `hybrid` | `emulated` | `auto` |\n\
                         | --- | --- | --- | --- | --- | --- | --- |\n"
                .to_owned();
        for feature in &Feature::all() {
            let (what, call) = feature.row();
            let cells = devices.map(|device| match choose(device, feature) {
                Ok(Choice::AsAsked) => "yes",
                Ok(Choice::Cpu(_)) => "on the CPU",
                Err(_) => "error",
            });
            table += &format!("| {what} | {call} | {} |\n", cells.join(" | "));
        }
        table
    }

    const PAGE: &str = "../../../docs/backends.md";
    const BEGIN: &str = "<!-- made by a test from what `supports` says -->\n";
    const END: &str = "<!-- end of what was made -->\n";

    #[test]
    fn the_table_of_the_documentation_is_what_runs() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
        let text = fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (found, after) = rest.split_once(END).unwrap();
        let made = format!("\n{}\n", table());
        if env::var_os("NEARFIELD_WRITE_DOCS").is_some() {
            fs::write(&page, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
            return;
        }
        assert_eq!(
            found, made,
            "run this test with NEARFIELD_WRITE_DOCS=1 to write the page anew"
        );
    }

    #[test]
    fn a_refusal_names_feature_backend_and_remedy() {
        for feature in Feature::all() {
            assert_eq!(choose(Device::Cpu, &feature), Ok(Choice::AsAsked));
            assert!(choose(Device::Auto, &feature).is_ok(), "{feature:?}");
            let Err(refused) = choose(Device::Gpu(0), &feature) else {
                continue;
            };
            let text = refused.to_string();
            assert!(text.contains("the GPU backend does not support"), "{text}");
            assert!(text.contains(refused.feature()), "{text}");
            assert!(refused.remedy().contains("Device::Cpu"), "{text}");
        }
    }
}

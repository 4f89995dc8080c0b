//! What a session of the C interface consists of.

use arbitrary::Arbitrary;

/// Calls and the settings they begin with.
#[derive(Debug, Clone, Arbitrary)]
pub struct Session {
    /// Settings of the first engine.
    pub first: Setup,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// Settings of an engine.
#[derive(Debug, Clone, Arbitrary)]
pub struct Setup {
    /// The radius, from a list of usual and impossible ones.
    pub radius: u8,
    /// Whether in double precision.
    pub double: bool,
    /// Whether half lists.
    pub half: bool,
    /// Whether lists in ascending order.
    pub ascending: bool,
    /// Whether a distance of exactly the radius counts.
    pub strict: bool,
    /// Threads, less one, modulo 3.
    pub threads: u8,
    /// Cells to a radius; more than 8 are refused.
    pub subdivision: u8,
    /// Limit of memory in bytes; none where this is even.
    pub memory_limit: u16,
    /// The device, from a list of names.
    pub device: u8,
    /// The axes, from a list of lengths.
    pub axes: [u8; 3],
    /// The mistake in the structure, if any.
    pub broken: Option<Broken>,
}

/// Settings that no builder would write.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Broken {
    /// The size of another version.
    Size(u16),
    /// A choice that there is not.
    Choice(u32),
    /// A name that is not UTF-8.
    Text,
    /// No structure at all.
    Null,
}

/// Points: what is made of them and how they lie in memory.
#[derive(Debug, Clone, Arbitrary)]
pub struct Points {
    /// Coordinates in 16ths of the unit.
    pub places: Vec<[i8; 3]>,
    /// Something that is in place of one coordinate, and where.
    pub odd: Option<(u8, Odd)>,
    /// Bytes between points beyond their own.
    pub gap: u8,
    /// Bytes by which the array is off its alignment.
    pub shift: u8,
    /// Whether they are in `f64`.
    pub double: bool,
}

/// A coordinate out of the ordinary.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Odd {
    /// Not a number.
    Nan,
    /// Infinite.
    Infinite,
    /// Far away.
    Far,
    /// The largest finite number.
    Largest,
}

/// Which handle is passed.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Handle {
    /// One that was made, modulo their number, also if it was freed since.
    Made(u8),
    /// The first, so that most calls are about one engine.
    First,
    /// Null.
    Null,
    /// Any number.
    Any(u32),
}

/// How an array for results differs from what is asked for.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Room {
    /// As long as it must be.
    Fits,
    /// The same, so that it is frequent.
    FitsToo,
    /// Longer or shorter.
    Off(i8),
    /// No array.
    Null,
}

/// A call. Sets and points are counted modulo a few more than there are.
#[derive(Debug, Clone, Arbitrary)]
pub enum Call {
    /// `nf_engine_new`
    New(Setup),
    /// `nf_engine_free`
    Free(Handle),
    /// `nf_add_points_*`
    Add(Handle, Points),
    /// `nf_update_*`, with as many points as there are or with others
    Update(Handle, u8, Points),
    /// `nf_set_radius`
    Radius(Handle, u8),
    /// `nf_set_active` and `nf_is_active`
    Active(Handle, u8, u8, u8),
    /// `nf_find_neighbors`
    Find(Handle),
    /// `nf_neighbors`, whose lists are kept and read
    Lists(Handle, u8, u8),
    /// `nf_neighbors_of` on lists that were kept before
    Kept(Handle, u8, u8),
    /// `nf_neighbors_csr`
    Csr(Handle, u8, u8, Room),
    /// `nf_query_*`, `nf_query_lists` and `nf_query_free`
    Query(Handle, Points, u8),
    /// `nf_count_neighbors`
    Count(Handle, u8, u8, Room),
    /// `nf_sph_density`
    Density(Handle, u8, u8, Room, u8),
    /// `nf_sph_force`
    Force(Handle, u8, u8, Room, u8),
    /// `nf_for_each_batch`, whose function calls the interface and may ask to stop
    Batches(Handle, u8, u8, Option<u8>),
    /// `nf_z_sort`
    Sort(Handle, u8, Room),
    /// `nf_report` and `nf_engine_error` into a buffer of this size
    Texts(Handle, u16),
    /// `nf_status_text`
    Status(i32),
}

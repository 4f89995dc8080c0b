//! Arrays of a caller, with guards around them: nothing but what was handed over may change.

/// Byte around results and, before the call, in them.
const POISON: u8 = 0xa5;
/// Bytes before and behind an array.
const GUARD: usize = 64;

/// Room for results of a call.
pub(super) struct Results {
    /// Aligned to eight bytes.
    words: Vec<u64>,
    bytes: usize,
}

impl Results {
    /// Room for `len` values of `T`.
    pub(super) fn of<T>(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        let words = bytes.div_ceil(8) + 2 * GUARD / 8;
        Self {
            words: vec![u64::from_ne_bytes([POISON; 8]); words],
            bytes,
        }
    }

    /// Where the first value goes.
    pub(super) fn place<T>(&mut self) -> *mut T {
        assert!(align_of::<T>() <= 8);
        // Of the whole array, so that writes beyond its end are found by the guards and not only by
        // a sanitizer.
        self.words.as_mut_ptr().wrapping_add(GUARD / 8).cast()
    }

    fn all(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    /// Whether no value was written.
    pub(super) fn is_untouched(&self) -> bool {
        self.all().iter().all(|byte| *byte == POISON)
    }

    /// Fails if anything beside the values was written.
    pub(super) fn check(&self) {
        let all = self.all();
        let (before, behind) = (&all[..GUARD], &all[GUARD + self.bytes..]);
        assert!(
            before.iter().all(|byte| *byte == POISON),
            "written before an array"
        );
        assert!(
            behind.iter().all(|byte| *byte == POISON),
            "written behind an array"
        );
    }

    /// The values as numbers of four bytes.
    pub(super) fn u32s(&self) -> Vec<u32> {
        let all = self.all();
        let values = all[GUARD..GUARD + self.bytes].chunks_exact(4);
        values
            .map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
            .collect()
    }

    /// The values as numbers of eight bytes.
    pub(super) fn u64s(&self) -> Vec<u64> {
        let len = self.bytes / 8;
        self.words[GUARD / 8..][..len].to_vec()
    }
}

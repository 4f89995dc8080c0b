//! Values made of `f32` channels, so that arrays of them can be stored channel by channel.
//!
//! A kernel reads a velocity and a density; the vectors of a backend read four arrays of `f32`.
//! [`Channels`] is the bridge: it takes a value apart into channels and puts it together, at
//! compile time, without a layout in memory. Types nest, so `([f32; 3], f32)` has four channels.
//!
//! Integers are channels by their bits, for values that kernels read.
//!
//! **Invariant:** an implementation reads and writes exactly its `COUNT` channels, in order.
//! Backends rely on it for memory safety, so the trait is sealed.

use crate::device::ChannelStruct;
use glam::{Vec2, Vec3};

/// A value that is a fixed number of `f32` channels: `()`, `f32`, `[f32; N]`, `glam` vectors,
/// tuples and structs of those.
///
/// `u32`, `i32` and arrays of them are values of points too, such as kinds, indices and states of
/// bits: each is a channel that holds its bits. They cannot be results, which are combined as
/// `f32`.
///
/// Structs get it by `#[derive(Channels)]`, with the channels of their fields in order:
///
/// ```
/// use nearfield_pairs::Channels;
///
/// #[derive(Clone, Copy, Channels)]
/// #[channels(crate = nearfield_pairs)] // not needed in a crate that depends on `nearfield`
/// struct Grain {
///     velocity: [f32; 3],
///     mass: f32,
/// }
///
/// assert_eq!(Grain::COUNT, 4);
/// assert_eq!(Grain::read(|k| k as f32).mass, 3.0);
/// ```
///
/// The backends rely on every implementation asking for and giving exactly its `COUNT` channels, so
/// no further types can implement it.
pub trait Channels: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Number of channels.
    const COUNT: usize;

    /// Whether all channels are `f32`, so that they can be added up. Those of integers hold their
    /// bits.
    #[doc(hidden)]
    const FLOATS: bool = true;

    /// Builds a value; `channel(k)` gives channel `k`, each asked for once, in order.
    fn read(channel: impl FnMut(usize) -> f32) -> Self;

    /// Takes a value apart; `channel(k, value)` is called once per channel, in order.
    fn write(self, channel: impl FnMut(usize, f32));
}

mod sealed {
    /// Keeps other crates from implementing [`super::Channels`].
    pub trait Sealed {}
}

impl<T: ChannelStruct> sealed::Sealed for T {}

/// Structs have the channels of their fields, which [`ChannelStruct`] takes them apart into.
impl<T: ChannelStruct> Channels for T {
    const COUNT: usize = T::Parts::COUNT;
    const FLOATS: bool = T::Parts::FLOATS;

    #[inline(always)]
    fn read(channel: impl FnMut(usize) -> f32) -> Self {
        T::from_parts(T::Parts::read(channel))
    }

    #[inline(always)]
    fn write(self, channel: impl FnMut(usize, f32)) {
        self.into_parts().write(channel);
    }
}

impl sealed::Sealed for () {}

impl Channels for () {
    const COUNT: usize = 0;

    #[inline(always)]
    fn read(_: impl FnMut(usize) -> f32) -> Self {}

    #[inline(always)]
    fn write(self, _: impl FnMut(usize, f32)) {}
}

impl sealed::Sealed for f32 {}

impl Channels for f32 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn read(mut channel: impl FnMut(usize) -> f32) -> Self {
        channel(0)
    }

    #[inline(always)]
    fn write(self, mut channel: impl FnMut(usize, f32)) {
        channel(0, self);
    }
}

impl<const N: usize> sealed::Sealed for [f32; N] {}

impl<const N: usize> Channels for [f32; N] {
    const COUNT: usize = N;

    #[inline(always)]
    fn read(mut channel: impl FnMut(usize) -> f32) -> Self {
        // Plain loops here and below: unlike the array adapters of the standard library they are
        // always unrolled, which the loops around them need to be vectorised.
        let mut values = [0.0; N];
        for k in 0..N {
            values[k] = channel(k);
        }
        values
    }

    #[inline(always)]
    fn write(self, mut channel: impl FnMut(usize, f32)) {
        for k in 0..N {
            channel(k, self[k]);
        }
    }
}

/// Integers travel by their bits: nothing computes with a channel on its way, and copies of a
/// float keep all of its bits.
macro_rules! integer_channels {
    ($($integer:ty),*) => {$(
        impl sealed::Sealed for $integer {}

        impl Channels for $integer {
            const COUNT: usize = 1;
            const FLOATS: bool = false;

            #[inline(always)]
            fn read(mut channel: impl FnMut(usize) -> f32) -> Self {
                channel(0).to_bits() as $integer
            }

            #[inline(always)]
            fn write(self, mut channel: impl FnMut(usize, f32)) {
                channel(0, f32::from_bits(self as u32));
            }
        }

        impl<const N: usize> sealed::Sealed for [$integer; N] {}

        impl<const N: usize> Channels for [$integer; N] {
            const COUNT: usize = N;
            const FLOATS: bool = false;

            #[inline(always)]
            fn read(mut channel: impl FnMut(usize) -> f32) -> Self {
                let mut values = [0; N];
                for k in 0..N {
                    values[k] = <$integer>::read(|_| channel(k));
                }
                values
            }

            #[inline(always)]
            fn write(self, mut channel: impl FnMut(usize, f32)) {
                for k in 0..N {
                    self[k].write(|_, value| channel(k, value));
                }
            }
        }
    )*};
}
integer_channels!(u32, i32);

macro_rules! glam_channels {
    ($($vector:ty: $count:literal),*) => {$(
        impl sealed::Sealed for $vector {}

        impl Channels for $vector {
            const COUNT: usize = $count;

            #[inline(always)]
            fn read(channel: impl FnMut(usize) -> f32) -> Self {
                Self::from_array(<[f32; $count]>::read(channel))
            }

            #[inline(always)]
            fn write(self, channel: impl FnMut(usize, f32)) {
                self.to_array().write(channel);
            }
        }
    )*};
}
glam_channels!(Vec2: 2, Vec3: 3);

macro_rules! tuple_channels {
    ($($part:ident $at:tt),*) => {
        impl<$($part: Channels),*> sealed::Sealed for ($($part,)*) {}

        impl<$($part: Channels),*> Channels for ($($part,)*) {
            const COUNT: usize = 0 $(+ $part::COUNT)*;
            const FLOATS: bool = true $(&& $part::FLOATS)*;

            #[inline(always)]
            fn read(mut channel: impl FnMut(usize) -> f32) -> Self {
                let mut first = 0;
                ($({
                    let value = $part::read(|k| channel(first + k));
                    first += $part::COUNT;
                    let _ = first;
                    value
                },)*)
            }

            #[inline(always)]
            fn write(self, mut channel: impl FnMut(usize, f32)) {
                let mut first = 0;
                $(
                    self.$at.write(|k, value| channel(first + k, value));
                    first += $part::COUNT;
                )*
                let _ = first;
            }
        }
    };
}
tuple_channels!(A 0);
tuple_channels!(A 0, B 1);
tuple_channels!(A 0, B 1, C 2);
tuple_channels!(A 0, B 1, C 2, D 3);
tuple_channels!(A 0, B 1, C 2, D 3, E 4);
tuple_channels!(A 0, B 1, C 2, D 3, E 4, F 5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_lays_its_parts_out_one_after_the_other() {
        type Value = (f32, Vec3, [f32; 2]);
        assert_eq!(Value::COUNT, 6);
        let value = Value::read(|k| k as f32);
        assert_eq!(value, (0.0, Vec3::new(1.0, 2.0, 3.0), [4.0, 5.0]));
        let mut channels = [f32::NAN; 6];
        value.write(|k, v| channels[k] = v);
        assert_eq!(channels, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    /// Among them those of subnormal numbers and of signalling NaNs.
    #[test]
    fn integers_keep_all_bits() {
        type Value = (u32, [i32; 2], f32);
        const { assert!(Value::COUNT == 4 && !Value::FLOATS && <(f32, Vec3)>::FLOATS) };
        for bits in [0, 1, 0x7f80_0001, 0xffbf_ffff, u32::MAX] {
            let value = (bits, [bits as i32, -1], 2.0);
            let mut channels = [0.0; 4];
            value.write(|k, v| channels[k] = v);
            assert_eq!(Value::read(|k| channels[k]), value);
        }
    }
}

//! Values made of `f32` channels, so that arrays of them can be stored channel by channel.
//!
//! A kernel reads a velocity and a density; the vectors of a backend read four arrays of `f32`.
//! [`Channels`] is the bridge: it takes a value apart into channels and puts it together, at
//! compile time, without a layout in memory. Types nest, so `([f32; 3], f32)` has four channels.
//!
//! **Invariant:** an implementation asks for and gives exactly its `COUNT` channels, in order.
//! Backends rely on it for memory safety, so the trait is sealed.

use crate::device::ChannelStruct;
use glam::{Vec2, Vec3};

/// A value that is a fixed number of `f32` channels: `()`, `f32`, `[f32; N]`, `glam` vectors,
/// tuples and structs of those.
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
}

//! Colours: linear light inside, sRGB in files, and the map from speed to colour.
//!
//! Light is added and averaged in linear RGB; only [`to_pixel`] and [`from_pixel`]
//! touch the sRGB curve. The speed map is blended in Oklab, so that equal
//! steps in speed look about equally far apart, and its lightness never falls.

use fast_srgb8::{f32x4_to_srgb8, srgb8_to_f32};
use glam::{Mat3, Vec3};
use nearfield_plot::Pixel;

/// Colours of slow to fast fluid with the share of the top speed they stand at.
const SPEED_STOPS: [(f32, u32); 5] = [
    (0.0, 0x1d4e9e),
    (0.32, 0x2c88d6),
    (0.62, 0x7dcbee),
    (0.84, 0xd3efe2),
    (1.0, 0xffed85),
];

/// Entries of the speed map's table.
const STEPS: usize = 256;

/// Linear colour of a `0xRRGGBB` sRGB code.
pub(super) fn from_hex(code: u32) -> Vec3 {
    let [_, red, green, blue] = code.to_be_bytes();
    from_pixel([red, green, blue])
}

/// sRGB pixel of a linear colour; light outside [0, 1] is clipped.
#[inline]
pub(super) fn to_pixel(linear: Vec3) -> Pixel {
    let [red, green, blue, _] = f32x4_to_srgb8(linear.extend(0.0).to_array());
    [red, green, blue]
}

/// Linear colour of an sRGB pixel.
pub(super) fn from_pixel([red, green, blue]: Pixel) -> Vec3 {
    Vec3::new(srgb8_to_f32(red), srgb8_to_f32(green), srgb8_to_f32(blue))
}

/// The map from the share of the top speed to a linear colour.
pub(super) struct SpeedColors {
    table: Vec<Vec3>,
}

impl SpeedColors {
    /// Tabulates the map.
    pub(super) fn new() -> Self {
        let table = (0..STEPS)
            .map(|i| blend(i as f32 / (STEPS - 1) as f32))
            .collect();
        Self { table }
    }

    /// Colour at `share` of the top speed; shares outside [0, 1] take the end
    /// colours and a share that is not a number takes the slow end.
    #[inline]
    pub(super) fn at(&self, share: f32) -> Vec3 {
        self.table[(share.clamp(0.0, 1.0) * (STEPS - 1) as f32 + 0.5) as usize]
    }
}

/// Colour between the two stops around `share`, mixed in Oklab.
fn blend(share: f32) -> Vec3 {
    let next = SPEED_STOPS
        .iter()
        .position(|stop| stop.0 >= share)
        .unwrap_or(SPEED_STOPS.len() - 1)
        .max(1);
    let ((low, from), (high, to)) = (SPEED_STOPS[next - 1], SPEED_STOPS[next]);
    let mixed = to_oklab(from_hex(from)).lerp(to_oklab(from_hex(to)), (share - low) / (high - low));
    from_oklab(mixed).clamp(Vec3::ZERO, Vec3::ONE)
}

/// Linear sRGB to the cone responses of Oklab (Björn Ottosson, "A perceptual
/// color space for image processing", 2020).
const CONES: Mat3 = Mat3::from_cols(
    Vec3::new(0.412_221_46, 0.211_903_5, 0.088_302_46),
    Vec3::new(0.536_332_55, 0.680_699_5, 0.281_718_85),
    Vec3::new(0.051_445_995, 0.107_396_96, 0.629_978_7),
);

/// Cube roots of the cone responses to (lightness, green–red, blue–yellow).
const LAB: Mat3 = Mat3::from_cols(
    Vec3::new(0.210_454_26, 1.977_998_5, 0.025_904_037),
    Vec3::new(0.793_617_8, -2.428_592_2, 0.782_771_77),
    Vec3::new(-0.004_072_047, 0.450_593_7, -0.808_675_77),
);

fn to_oklab(linear: Vec3) -> Vec3 {
    LAB * Vec3::from_array((CONES * linear).to_array().map(f32::cbrt))
}

fn from_oklab(lab: Vec3) -> Vec3 {
    CONES.inverse() * Vec3::from_array((LAB.inverse() * lab).to_array().map(|root| root.powi(3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_srgb_value_survives_linear_light() {
        for value in 0..=255 {
            let pixel = [value, 255 - value, value / 2];
            assert_eq!(to_pixel(from_pixel(pixel)), pixel);
        }
    }

    #[test]
    fn the_map_starts_and_ends_at_its_stops() {
        let map = SpeedColors::new();
        assert_eq!(to_pixel(map.at(0.0)), [0x1d, 0x4e, 0x9e]);
        assert_eq!(to_pixel(map.at(1.0)), [0xff, 0xed, 0x85]);
        assert_eq!(map.at(7.0), map.at(1.0));
        assert_eq!(map.at(f32::NAN), map.at(0.0));
    }

    #[test]
    fn faster_is_never_darker() {
        let map = SpeedColors::new();
        let lightness: Vec<f32> = map.table.iter().map(|&color| to_oklab(color).x).collect();
        assert!(
            lightness.windows(2).all(|pair| pair[1] > pair[0] - 1e-4),
            "{lightness:?}"
        );
        assert!(lightness[STEPS - 1] - lightness[0] > 0.4);
    }

    #[test]
    fn white_has_lightness_one_and_no_hue_in_oklab() {
        let white = to_oklab(Vec3::ONE);
        assert!((white - Vec3::X).length() < 1e-3, "{white}");
    }
}

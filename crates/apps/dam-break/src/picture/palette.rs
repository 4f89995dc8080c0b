//! A palette that suits given colours: variance-based cuts of colour space.
//!
//! Starting from one box around all colours, the box whose colours are spread
//! most is cut at its mean until there are enough (after Heckbert 1982,
//! DOI 10.1145/965145.801294, with the variance as the criterion). A few
//! pixels of a colour that lies far from all others thus get their own entry.

use glam::Vec3;

/// Colours to choose from, each an sRGB triple of whole numbers up to 255.
#[derive(Debug)]
pub(super) struct Palette {
    colors: Vec<Vec3>,
}

/// How much the variance of a mix of two entries, which shows as grain, counts
/// against the error of its mean, which shows as bands.
const GRAIN: f32 = 0.12;

/// Thresholds of a 4×4 ordered dither (Bayer 1973), in sixteenths.
const THRESHOLDS: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// A share of one palette entry within another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    main: u8,
    other: u8,
    /// Share of `other`, at most a half.
    share: f32,
}

impl Mix {
    /// The entry to show at a place of the picture; it depends on nothing else, so that resting
    /// parts do not flicker.
    pub(super) fn at(self, column: usize, row: usize) -> u8 {
        let threshold = (f32::from(THRESHOLDS[row % 4][column % 4]) + 0.5) / 16.0;
        if threshold < self.share {
            self.other
        } else {
            self.main
        }
    }
}

/// A colour with its weight.
type WeightedColor = (Vec3, f32);

/// A colour in which distances are measured.
fn point(color: [u8; 3]) -> Vec3 {
    let [red, green, blue] = color;
    Vec3::new(f32::from(red), f32::from(green), f32::from(blue))
}

/// Colours that share a palette entry.
struct Bin {
    members: Vec<WeightedColor>,
    mean: Vec3,
    /// Axis along which the members are spread most, and how much: the weighted
    /// sum of squared distances from the mean.
    widest: (usize, f32),
}

impl Palette {
    /// At most `size` colours for the counted ones. A colour weighs as the
    /// square root of its count, so that a large backdrop leaves room for
    /// small things.
    pub(super) fn new(counts: &[([u8; 3], u32)], size: usize) -> Self {
        let weighted = |&(color, count): &([u8; 3], u32)| (point(color), (count as f32).sqrt());
        let mut bins = vec![Bin::new(counts.iter().map(weighted).collect())];
        while bins.len() < size {
            let spread = |index: &usize| bins[*index].widest.1;
            let Some(most) =
                (0..bins.len()).max_by(|one, other| spread(one).total_cmp(&spread(other)))
            else {
                break;
            };
            if spread(&most) <= 0.0 {
                break;
            }
            let [low, high] = bins.swap_remove(most).cut();
            bins.extend([low, high]);
        }
        let color = |bin: &Bin| (bin.mean + 0.5).floor();
        Self {
            colors: bins
                .iter()
                .filter(|bin| !bin.members.is_empty())
                .map(color)
                .collect(),
        }
    }

    /// The two entries between which a colour is best mixed.
    pub(super) fn mix(&self, color: [u8; 3]) -> Mix {
        let color = point(color);
        let (mut main, mut least) = (0, f32::INFINITY);
        for (index, entry) in self.colors.iter().enumerate() {
            let distance = entry.distance_squared(color);
            if distance < least {
                (main, least) = (index, distance);
            }
        }
        let mut best = Mix {
            main: main as u8,
            other: main as u8,
            share: 0.0,
        };
        let base = self.colors.get(main).copied().unwrap_or(color);
        let offset = color - base;
        for (other, entry) in self.colors.iter().enumerate() {
            let way = entry - base;
            // Zero for the main entry itself, which is then no better than what there is.
            let length = way.length_squared().max(f32::MIN_POSITIVE);
            let share = (offset.dot(way) / length).clamp(0.0, 0.5);
            let miss = (way * share).distance_squared(offset);
            let error = miss + GRAIN * length * share * (1.0 - share);
            if error < least {
                least = error;
                (best.other, best.share) = (other as u8, share);
            }
        }
        best
    }

    /// The colours as bytes, filled up with black to `entries` entries.
    pub(super) fn bytes(&self, entries: usize) -> Vec<u8> {
        let channels = self.colors.iter().flat_map(|color| color.to_array());
        let mut bytes: Vec<u8> = channels.map(|channel| channel as u8).collect();
        bytes.resize(3 * entries, 0);
        bytes
    }
}

impl Bin {
    fn new(members: Vec<WeightedColor>) -> Self {
        let weight: f32 = members.iter().map(|member| member.1).sum();
        let sum: Vec3 = members.iter().map(|member| member.0 * member.1).sum();
        let mean = sum / weight.max(f32::MIN_POSITIVE);
        let apart = members.iter().map(|member| (member.0 - mean, member.1));
        let mut spread: Vec3 = apart.map(|(apart, weight)| apart * apart * weight).sum();
        if members.len() < 2 {
            spread = Vec3::ZERO;
        }
        let axis = spread.max_position();
        Self {
            members,
            mean,
            widest: (axis, spread[axis]),
        }
    }

    /// Its members below and above the mean.
    fn cut(self) -> [Self; 2] {
        let axis = self.widest.0;
        let (low, high) = self
            .members
            .into_iter()
            .partition(|member| member.0[axis] < self.mean[axis]);
        [Self::new(low), Self::new(high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean colour of a patch of one colour, rounded.
    fn shown(palette: &Palette, color: [u8; 3]) -> [u8; 3] {
        let mix = palette.mix(color);
        let entry = |place: usize| palette.colors[usize::from(mix.at(place / 4, place % 4))];
        let mean = (0..16).map(entry).sum::<Vec3>() / 16.0;
        mean.to_array().map(|channel| channel as u8)
    }

    #[test]
    fn a_color_between_two_entries_is_mixed_of_both() {
        let palette = Palette::new(&[([100; 3], 1), ([108; 3], 1)], 2);
        for level in 100..=108_u8 {
            let mixed = shown(&palette, [level; 3]);
            assert!(
                mixed[0].abs_diff(level) <= 1,
                "{level} is shown as {mixed:?}"
            );
        }
    }

    #[test]
    fn few_colors_are_kept_exactly() {
        let colors: Vec<[u8; 3]> = (0..255).map(|i| [i, 3, 255 - i]).collect();
        let palette = Palette::new(
            &colors.iter().map(|&color| (color, 7)).collect::<Vec<_>>(),
            255,
        );
        for color in colors {
            assert_eq!(shown(&palette, color), color);
        }
    }

    #[test]
    fn a_rare_color_is_not_lost_among_many() {
        let gradient =
            (0..100_u32).flat_map(|r| (0..100_u32).map(move |b| ([r as u8, 90, b as u8], 500)));
        let palette = Palette::new(
            &gradient.chain([([250, 240, 10], 30)]).collect::<Vec<_>>(),
            96,
        );
        assert_eq!(palette.colors.len(), 96);
        assert_eq!(shown(&palette, [250, 240, 10]), [250, 240, 10]);
        let near = shown(&palette, [50, 90, 50]);
        assert!(
            near.iter()
                .zip([50, 90, 50])
                .all(|(&one, other)| one.abs_diff(other) <= 12),
            "{near:?}"
        );
    }

    #[test]
    fn no_colors_make_an_empty_palette() {
        let palette = Palette::new(&[], 255);
        assert_eq!(palette.mix([1, 2, 3]).at(0, 0), 0);
        assert_eq!(palette.bytes(256), [0; 768]);
    }
}

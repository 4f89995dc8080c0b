//! Pictures in memory, and the PNG files they are written to and read from.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Filter, Transformations};

/// The sRGB values of red, green and blue.
pub type Pixel = [u8; 3];

/// A picture of sRGB pixels, 8 bits per channel, stored row by row from the top left corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<Pixel>,
}

impl Picture {
    /// A black picture of `width`×`height` pixels.
    pub fn new(width: u32, height: u32) -> Self {
        Self::from_fn(width, height, |_, _| [0; 3])
    }

    /// The picture whose pixel in each column and row is what `pixel` returns for them.
    pub fn from_fn(width: u32, height: u32, pixel: impl Fn(u32, u32) -> Pixel) -> Self {
        let mut pixels = Vec::with_capacity(width as usize * height as usize);
        for row in 0..height {
            pixels.extend((0..width).map(|column| pixel(column, row)));
        }
        Self {
            width,
            height,
            pixels,
        }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// All pixels, row by row.
    pub fn pixels(&self) -> &[Pixel] {
        &self.pixels
    }

    /// All pixels to write to, row by row.
    pub fn pixels_mut(&mut self) -> &mut [Pixel] {
        &mut self.pixels
    }

    /// The pixel in a column and row, or none outside the picture.
    pub fn pixel_mut(&mut self, column: i32, row: i32) -> Option<&mut Pixel> {
        let (column, row) = (u32::try_from(column).ok()?, u32::try_from(row).ok()?);
        let inside = column < self.width && row < self.height;
        let place = row as usize * self.width as usize + column as usize;
        inside.then(|| &mut self.pixels[place])
    }

    /// The picture with `by`×`by` pixels averaged to one, each channel rounded to the nearest
    /// value. Columns and rows that are left over at the right and bottom are cut off.
    ///
    /// # Panics
    /// If `by` is 0.
    pub fn reduced(&self, by: u32) -> Self {
        let area = u64::from(by) * u64::from(by);
        Self::from_fn(self.width / by, self.height / by, |column, row| {
            let mut sum = [area / 2; 3];
            for row in row * by..(row + 1) * by {
                let first = row as usize * self.width as usize + (column * by) as usize;
                for pixel in &self.pixels[first..first + by as usize] {
                    (sum.iter_mut().zip(pixel)).for_each(|(sum, &value)| *sum += u64::from(value));
                }
            }
            sum.map(|sum| (sum / area) as u8)
        })
    }

    /// The bytes of a PNG file.
    ///
    /// # Errors
    /// The encoder's, for a picture without pixels or too large for the format.
    pub fn to_png(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        encoder.set_filter(Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Reads a PNG file of any kind. Transparency is dropped, and of 16 bits per channel the upper
    /// 8 are kept.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a PNG file or its pixels are not complete, or memory
    /// does not suffice.
    pub fn read_png(path: &Path) -> io::Result<Self> {
        let mut decoder = Decoder::new(BufReader::new(File::open(path)?));
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let length = reader.output_buffer_size();
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // The decoded values, and the pixels: at most three times as many bytes.
        nearfield_files::ask_for_memory(length.saturating_mul(4), "the picture")?;
        let mut bytes = vec![0; length];
        let found = reader.next_frame(&mut bytes)?;
        let values = bytes.chunks_exact(found.color_type.samples());
        let pixels = values.map(|values| match *values {
            [red, green, blue, ..] => [red, green, blue],
            [gray, ..] => [gray; 3],
            [] => [0; 3],
        });
        Ok(Self {
            width: found.width,
            height: found.height,
            pixels: pixels.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(width: u32, height: u32) -> Picture {
        Picture::from_fn(width, height, |x, y| {
            [(x * 7) as u8, (y * 11) as u8, (x * y) as u8]
        })
    }

    #[test]
    fn a_picture_that_was_written_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("scene.png");
        for (width, height) in [(1, 1), (37, 20)] {
            let scene = scene(width, height);
            std::fs::write(&path, scene.to_png().expect("it can be encoded")).expect("room");
            assert_eq!(Picture::read_png(&path).expect("it is whole"), scene);
        }
    }

    #[test]
    fn files_of_other_kinds_become_rgb_pixels() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("other.png");
        for (color, depth, data, expected) in [
            (
                ColorType::Grayscale,
                BitDepth::Eight,
                &[9_u8, 200][..],
                [[9; 3], [200; 3]],
            ),
            (
                ColorType::GrayscaleAlpha,
                BitDepth::Eight,
                &[9, 1, 200, 2],
                [[9; 3], [200; 3]],
            ),
            (
                ColorType::Rgba,
                BitDepth::Eight,
                &[1, 2, 3, 0, 4, 5, 6, 9],
                [[1, 2, 3], [4, 5, 6]],
            ),
            (
                ColorType::Grayscale,
                BitDepth::Sixteen,
                &[9, 1, 200, 255],
                [[9; 3], [200; 3]],
            ),
            (
                ColorType::Indexed,
                BitDepth::Eight,
                &[1, 0],
                [[4, 5, 6], [1, 2, 3]],
            ),
        ] {
            let file = File::create(&path).expect("room");
            let mut encoder = Encoder::new(file, 2, 1);
            encoder.set_color(color);
            encoder.set_depth(depth);
            if color == ColorType::Indexed {
                encoder.set_palette(&[1, 2, 3, 4, 5, 6]);
            }
            let mut writer = encoder.write_header().expect("a header");
            writer.write_image_data(data).expect("two pixels");
            writer.finish().expect("an end");
            let read = Picture::read_png(&path).expect("it is whole");
            assert_eq!(
                (read.size(), read.pixels()),
                ((2, 1), &expected[..]),
                "{color:?}"
            );
        }
    }

    #[test]
    fn files_that_are_not_whole_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("scene.png");
        let missing = Picture::read_png(&path).expect_err("no such file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let bytes = scene(37, 20).to_png().expect("it can be encoded");
        for length in [0, 4, 20, bytes.len() / 2] {
            std::fs::write(&path, &bytes[..length]).expect("room");
            assert!(Picture::read_png(&path).is_err(), "{length} bytes");
        }
        assert!(Picture::new(0, 5).to_png().is_err());
    }

    #[test]
    fn reduced_pixels_are_averages_and_the_rest_is_cut_off() {
        let picture = Picture::from_fn(5, 4, |x, y| [x as u8, 10 * y as u8, 255]);
        // Means of 0.5 and 2.5, of 5 and 25.
        let expected = [[1, 5, 255], [3, 5, 255], [1, 25, 255], [3, 25, 255]];
        let reduced = picture.reduced(2);
        assert_eq!((reduced.size(), reduced.pixels()), ((2, 2), &expected[..]));
        assert_eq!(picture.reduced(1), picture);
        assert_eq!(picture.reduced(6).size(), (0, 0));
    }

    #[test]
    fn pixels_outside_are_none() {
        let mut picture = Picture::new(2, 3);
        *picture.pixel_mut(1, 2).expect("the last pixel") = [7; 3];
        assert_eq!(picture.pixels()[5], [7; 3]);
        for (column, row) in [(-1, 0), (0, -1), (2, 0), (0, 3)] {
            assert!(picture.pixel_mut(column, row).is_none());
        }
        assert!(Picture::new(0, 0).pixel_mut(0, 0).is_none());
    }
}

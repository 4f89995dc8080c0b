//! Reads scene files (TOML, described in docs/cli.md). Every fault is reported with its line and
//! value.

use std::ops::Range;
use std::path::Path;

use glam::DVec3;
use nearfield_sph::Dimensions;
use serde::Deserialize;
use toml::Spanned;

use super::{Block, GRAVITY, Probe, Probes, SMOOTHING, Scene, axes};
use crate::{Error, ErrorKind};

/// Time between two samples of probes where a file names none, seconds.
const INTERVAL: f64 = 1e-3;

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    dimensions: Option<Spanned<i64>>,
    gravity: Option<Spanned<f64>>,
    sound_speed: Option<Spanned<f64>>,
    viscosity: Option<Spanned<f64>>,
    floor_viscosity: Option<Spanned<f64>>,
    smoothing: Option<Spanned<f64>>,
    spacing: Option<Spanned<f64>>,
    seconds: Option<Spanned<f64>>,
    tank: Spanned<Vec<f64>>,
    #[serde(default)]
    water: Vec<BoxEntry>,
    #[serde(default)]
    obstacle: Vec<BoxEntry>,
    probes: Option<ProbesEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxEntry {
    from: Spanned<Vec<f64>>,
    to: Spanned<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbesEntry {
    interval: Option<Spanned<f64>>,
    #[serde(default)]
    pressure: Vec<ProbeEntry>,
    #[serde(default)]
    height: Vec<ProbeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeEntry {
    name: Spanned<String>,
    at: Spanned<Vec<f64>>,
}

impl Scene {
    /// Reads a scene file.
    ///
    /// # Errors
    /// [`ErrorKind::Scene`] names the file, the line and the value that cannot be simulated.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = nearfield_files::read_text(path)
            .map_err(|error| fault(path, format!("cannot be read: {error}")))?;
        Reader { path, text: &text }.scene()
    }
}

fn fault(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    ErrorKind::Scene { path, reason }.into()
}

/// A file that is being checked.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn scene(&self) -> Result<Scene, Error> {
        let file: File = toml::from_str(self.text).map_err(|error| {
            let message = error.message().trim().replace('\n', "; ");
            match error.span() {
                Some(span) => self.fault(span, message),
                None => fault(self.path, message),
            }
        })?;
        let dimensions = self.dimensions(file.dimensions.as_ref())?;
        let tank = self.corner("tank", &file.tank, axes(dimensions).len())?;
        if let Some(&axis) = axes(dimensions).iter().find(|&&axis| tank[axis] <= 0.0) {
            let wrong = format!("tank[{axis}] is {}, but must be positive", tank[axis]);
            return Err(self.fault(file.tank.span(), wrong));
        }
        let positive =
            |name, value: &Option<Spanned<f64>>| self.number(name, value, f64::MIN_POSITIVE);
        let not_negative = |name, value: &Option<Spanned<f64>>| self.number(name, value, 0.0);
        let mut scene = Scene {
            title: file.title.unwrap_or_else(|| "scene".to_owned()),
            dimensions,
            tank,
            water: Vec::new(),
            obstacles: Vec::new(),
            gravity: positive("gravity", &file.gravity)?.unwrap_or(GRAVITY),
            viscosity: not_negative("viscosity", &file.viscosity)?,
            floor_viscosity: not_negative("floor_viscosity", &file.floor_viscosity)?.unwrap_or(0.0),
            smoothing: self.smoothing(file.smoothing.as_ref())?,
            spacing: positive("spacing", &file.spacing)?,
            seconds: positive("seconds", &file.seconds)?,
            probes: Probes::default(),
            sound_speed: 0.0,
            front: None,
        };
        if file.water.is_empty() {
            let wanted = "there is no water: add a [[water]] with from and to".to_owned();
            return Err(fault(self.path, wanted));
        }
        let mut boxes = Vec::new();
        scene.water = self.blocks("water", &file.water, &scene, &mut boxes)?;
        scene.obstacles = self.blocks("obstacle", &file.obstacle, &scene, &mut boxes)?;
        // Water that falls from its own height is this fast.
        let fall = (2.0 * scene.gravity * scene.depth()).sqrt();
        scene.sound_speed = positive("sound_speed", &file.sound_speed)?.unwrap_or(10.0 * fall);
        if let Some(probes) = &file.probes {
            scene.probes = self.probes(probes, &scene)?;
        }
        Ok(scene)
    }

    /// The error of the text at `span`, counted in bytes.
    fn fault(&self, span: Range<usize>, reason: String) -> Error {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        fault(self.path, format!("line {line}: {reason}"))
    }

    fn dimensions(&self, value: Option<&Spanned<i64>>) -> Result<Dimensions, Error> {
        match value.map(|value| (*value.get_ref(), value.span())) {
            None | Some((3, _)) => Ok(Dimensions::Three),
            Some((2, _)) => Ok(Dimensions::Two),
            Some((other, span)) => {
                let wrong = format!("dimensions is {other}, but must be 2 or 3");
                Err(self.fault(span, wrong))
            }
        }
    }

    /// Smoothing length over spacing, within the limits of the solver.
    fn smoothing(&self, value: Option<&Spanned<f64>>) -> Result<f64, Error> {
        let Some(value) = value else {
            return Ok(SMOOTHING);
        };
        let number = *value.get_ref();
        if (1.0..=3.0).contains(&number) {
            return Ok(number);
        }
        let wrong = format!("smoothing is {number}, but must be between 1 and 3");
        Err(self.fault(value.span(), wrong))
    }

    /// A number that must not be less than `least`, if it is there.
    fn number(
        &self,
        name: &str,
        value: &Option<Spanned<f64>>,
        least: f64,
    ) -> Result<Option<f64>, Error> {
        let Some(value) = value else { return Ok(None) };
        let number = *value.get_ref();
        if number.is_finite() && number >= least {
            return Ok(Some(number));
        }
        let wanted = if least > 0.0 {
            "positive"
        } else {
            "not negative"
        };
        let wrong = format!("{name} is {number}, but must be finite and {wanted}");
        Err(self.fault(value.span(), wrong))
    }

    /// A point of `count` coordinates; the others are zero.
    fn corner(&self, name: &str, value: &Spanned<Vec<f64>>, count: usize) -> Result<DVec3, Error> {
        let numbers = value.get_ref();
        if numbers.len() != count {
            let found = numbers.len();
            let wrong = format!("{name} has {found} numbers, but must have {count}");
            return Err(self.fault(value.span(), wrong));
        }
        if let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
            let wrong = format!("{name}[{index}] is {}, but must be finite", numbers[index]);
            return Err(self.fault(value.span(), wrong));
        }
        let mut corner = DVec3::ZERO;
        for (index, &number) in numbers.iter().enumerate() {
            corner[index] = number;
        }
        Ok(corner)
    }

    /// The boxes of one kind, which must not overlap each other or those in `others`.
    fn blocks(
        &self,
        kind: &str,
        entries: &[BoxEntry],
        scene: &Scene,
        others: &mut Vec<(String, Block)>,
    ) -> Result<Vec<Block>, Error> {
        let axes = axes(scene.dimensions);
        let mut blocks = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let name = format!("{kind} {}", index + 1);
            let low = self.corner(&format!("{name}: from"), &entry.from, axes.len())?;
            let high = self.corner(&format!("{name}: to"), &entry.to, axes.len())?;
            for &axis in axes {
                let (from, to, end) = (low[axis], high[axis], scene.tank[axis]);
                if from < 0.0 {
                    let wrong = format!("{name}: from[{axis}] is {from}, outside the tank");
                    return Err(self.fault(entry.from.span(), wrong));
                }
                if to > end {
                    let wrong = format!(
                        "{name}: to[{axis}] is {to}, outside the tank, which ends at {end}"
                    );
                    return Err(self.fault(entry.to.span(), wrong));
                }
                if from >= to {
                    let wrong =
                        format!("{name}: to[{axis}] is {to}, but must be larger than from, {from}");
                    return Err(self.fault(entry.to.span(), wrong));
                }
            }
            let block = Block { low, high };
            let met = (others.iter()).find(|(_, other)| block.overlaps(other, scene.dimensions));
            if let Some((other, _)) = met {
                return Err(self.fault(entry.from.span(), format!("{name} overlaps {other}")));
            }
            others.push((name, block));
            blocks.push(block);
        }
        Ok(blocks)
    }

    fn probes(&self, entry: &ProbesEntry, scene: &Scene) -> Result<Probes, Error> {
        let interval = self.number("interval", &entry.interval, f64::MIN_POSITIVE)?;
        let mut names = Vec::new();
        let axes = axes(scene.dimensions);
        let mut pressure = Vec::new();
        for probe in &entry.pressure {
            let name = self.name(probe, &mut names)?;
            let at = self.inside(&name, &probe.at, axes.len(), scene)?;
            let within = |block: &Block| {
                (axes.iter()).all(|&axis| block.low[axis] < at[axis] && at[axis] < block.high[axis])
            };
            if let Some(index) = scene.obstacles.iter().position(within) {
                let wrong = format!("probe {name} is inside obstacle {}", index + 1);
                return Err(self.fault(probe.at.span(), wrong));
            }
            pressure.push(Probe { name, at });
        }
        let mut height = Vec::new();
        for probe in &entry.height {
            let name = self.name(probe, &mut names)?;
            let at = self.inside(&name, &probe.at, axes.len() - 1, scene)?;
            height.push(Probe { name, at });
        }
        Ok(Probes {
            interval: interval.unwrap_or(INTERVAL),
            pressure,
            height,
        })
    }

    /// The name of a probe, which heads a column of a table.
    fn name(&self, probe: &ProbeEntry, names: &mut Vec<String>) -> Result<String, Error> {
        let name = probe.name.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            let wrong = format!("name is {name:?}, but must be of letters, digits, - and _");
            return Err(self.fault(probe.name.span(), wrong));
        }
        if names.contains(name) {
            let wrong = format!("there are two probes of the name {name:?}");
            return Err(self.fault(probe.name.span(), wrong));
        }
        names.push(name.clone());
        Ok(name.clone())
    }

    /// A point within the tank.
    fn inside(
        &self,
        name: &str,
        at: &Spanned<Vec<f64>>,
        count: usize,
        scene: &Scene,
    ) -> Result<DVec3, Error> {
        let point = self.corner(&format!("probe {name}: at"), at, count)?;
        for axis in 0..count {
            let (place, end) = (point[axis], scene.tank[axis]);
            if !(0.0..=end).contains(&place) {
                let wrong = format!(
                    "probe {name}: at[{axis}] is {place}, outside the tank from 0 to {end}"
                );
                return Err(self.fault(at.span(), wrong));
            }
        }
        Ok(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "title = \"a box\"\nspacing = 0.1\ntank = [2, 1.0, 1.0]\n\n\
        [[water]]\nfrom = [0.0, 0.0, 0.0]\nto = [1.0, 1.0, 0.5]\n\n\
        [[obstacle]]\nfrom = [1.5, 0.25, 0.0]\nto = [1.75, 0.75, 0.25]\n\n\
        [probes]\ninterval = 0.01\n\
        [[probes.pressure]]\nname = \"P1\"\nat = [1.5, 0.5, 0.1]\n\
        [[probes.height]]\nname = \"H1\"\nat = [1.0, 0.5]\n";

    fn read(text: &str) -> Result<Scene, String> {
        let path = Path::new("a.toml");
        let read = Reader { path, text }.scene();
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_all_of_a_scene() {
        let scene = read(GOOD).unwrap();
        assert_eq!(scene.tank, DVec3::new(2.0, 1.0, 1.0));
        assert_eq!(scene.water[0].high, DVec3::new(1.0, 1.0, 0.5));
        assert_eq!(scene.obstacles[0].low, DVec3::new(1.5, 0.25, 0.0));
        assert_eq!((scene.gravity, scene.viscosity), (9.81, None));
        assert_eq!((scene.spacing, scene.seconds), (Some(0.1), None));
        assert_eq!(scene.probes.interval, 0.01);
        assert_eq!(scene.probes.pressure[0].name, "P1");
        assert_eq!(scene.probes.height[0].at, DVec3::new(1.0, 0.5, 0.0));
        assert_eq!(scene.front, None);
    }

    #[test]
    fn every_fault_is_told_with_file_line_and_value() {
        for (from, to, told) in [
            (
                "[2, 1.0, 1.0]",
                "[2, 0.0, 1.0]",
                "a.toml: line 3: tank[1] is 0, but must be positive",
            ),
            (
                "[2, 1.0, 1.0]",
                "[2, 1.0]",
                "line 3: tank has 2 numbers, but must have 3",
            ),
            (
                "[2, 1.0, 1.0]",
                "[2, nan, 1.0]",
                "line 3: tank[1] is NaN, but must be finite",
            ),
            (
                "to = [1.0, 1.0, 0.5]",
                "to = [1.0, 1.1, 0.5]",
                "line 7: water 1: to[1] is 1.1, outside",
            ),
            (
                "from = [0.0,",
                "from = [-0.5,",
                "line 6: water 1: from[0] is -0.5, outside the tank",
            ),
            (
                "to = [1.0, 1.0, 0.5]",
                "to = [1.0, 1.0, 0.0]",
                "line 7: water 1: to[2] is 0, but",
            ),
            (
                "to = [1.0, 1.0, 0.5]",
                "to = [1.6, 1.0, 0.5]",
                "line 10: obstacle 1 overlaps water 1",
            ),
            (
                "at = [1.5, 0.5, 0.1]",
                "at = [1.5, 2.5, 0.1]",
                "line 17: probe P1: at[1] is 2.5, outside",
            ),
            (
                "at = [1.5, 0.5, 0.1]",
                "at = [1.6, 0.5, 0.1]",
                "line 17: probe P1 is inside obstacle 1",
            ),
            (
                "at = [1.0, 0.5]",
                "at = [1.0, inf]",
                "line 20: probe H1: at[1] is inf, but must be",
            ),
            (
                "\"H1\"",
                "\"P1\"",
                "line 19: there are two probes of the name \"P1\"",
            ),
            (
                "\"H1\"",
                "\"a,b\"",
                "line 19: name is \"a,b\", but must be of letters",
            ),
            (
                "0.01",
                "0.0",
                "line 14: interval is 0, but must be finite and positive",
            ),
            (
                "spacing = 0.1",
                "spacing = nan",
                "line 2: spacing is NaN, but must be finite and",
            ),
            (
                "spacing = 0.1",
                "smoothing = 0.5",
                "line 2: smoothing is 0.5, but must be between 1 and 3",
            ),
            (
                "spacing = 0.1",
                "viscosity = -1",
                "line 2: viscosity is -1, but must be finite and not",
            ),
            (
                "spacing = 0.1",
                "dimensions = 4",
                "line 2: dimensions is 4, but must be 2 or 3",
            ),
            (
                "spacing = 0.1",
                "spaces = 0.1",
                "line 2: unknown field `spaces`",
            ),
            (
                "spacing = 0.1",
                "spacing = \"a\"",
                "line 2: invalid type: string \"a\", expected f64",
            ),
            ("spacing = 0.1", "spacing = ", "line 2: "),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert!(text != GOOD, "{from} is not there");
            let error = read(&text).unwrap_err();
            assert!(
                error.contains(told) && !error.contains('\n'),
                "{error}, not {told}"
            );
        }
        let dry = read("tank = [1, 1, 1]\n").unwrap_err();
        assert!(dry.contains("there is no water"), "{dry}");
        let none = Scene::read(Path::new("/nowhere/a.toml"))
            .unwrap_err()
            .to_string();
        assert!(none.contains("/nowhere/a.toml"), "{none}");
    }

    #[test]
    fn the_plane_has_two_coordinates() {
        let text = "dimensions = 2\ntank = [2, 1]\n[[water]]\nfrom = [0, 0]\nto = [1, 0.5]\n\
            [[probes.height]]\nname = \"H\"\nat = [0.5]\n[[probes.pressure]]\nname = \"P\"\nat = [0, 0.1]\n";
        let scene = read(text).unwrap();
        assert_eq!(scene.probes.pressure[0].at, DVec3::new(0.0, 0.1, 0.0));
        let two = text.replace(
            "[[water]]",
            "[[water]]\nfrom = [0, 0.25]\nto = [0.5, 1]\n[[water]]",
        );
        assert!(read(&two).unwrap_err().contains("water 2 overlaps water 1"));
    }
}

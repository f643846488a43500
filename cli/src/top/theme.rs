//! The color themes, and detection of the terminal's background, which the theme `auto` follows.
//! Each color has one meaning, which is the same in the table and on the web page.

use std::env;

use clap::ValueEnum;
use gpumon_probe::model::LimitClass;
use ratatui::style::{Color, Modifier, Style};

use crate::describe::{Level, LoadLevel};

// The variants have no documentation comments, because the help would show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeName {
    // `Light` on a light background, otherwise `Dark`.
    Auto,
    // The terminal's own palette, with colors that suit a dark background.
    Dark,
    // Darker colors for a light background.
    Light,
    // The palette of Okabe and Ito for a dark background. People with any color vision can
    // distinguish its colors.
    ColorBlind,
    // The palette of Okabe and Ito for a light background.
    ColorBlindLight,
    // Bright colors on black, with nothing dimmed.
    HighContrast,
    Monochrome,
}

impl ThemeName {
    /// Returns the theme to use on the given background: `Auto` becomes `Light` or `Dark`, and all
    /// other themes stay unchanged.
    pub(super) fn resolve(self, background: Background) -> Self {
        match (self, background) {
            (Self::Auto, Background::Light) => Self::Light,
            (Self::Auto, Background::Dark) => Self::Dark,
            (theme, _) => theme,
        }
    }

    /// Returns the next theme that looks different from this theme on the given background.
    pub(super) fn next(self, background: Background) -> Self {
        let all = Self::value_variants().iter();
        let from_here = all.cycle().skip_while(|theme| **theme != self);
        from_here
            .copied()
            .find(|theme| theme.resolve(background) != self.resolve(background))
            .unwrap_or(self)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Theme {
    pub(super) plain: Style,
    pub(super) strong: Style,
    pub(super) dim: Style,
    pub(super) utilization: Style,
    pub(super) memory: Style,
    pub(super) power: Style,
    pub(super) temperature: Style,
    /// Traffic on links, disks, and network cards.
    pub(super) traffic: Style,
    /// The label of simulated values, which has the same style in all views.
    pub(super) simulated: Style,
    pub(super) well: Style,
    /// Information that may be important to the user.
    pub(super) notice: Style,
    /// Problems that need action.
    pub(super) alarm: Style,
    /// The row or word to which keys apply.
    pub(super) selected: Style,
    /// Matches of the current search.
    pub(super) found: Style,
    /// The backgrounds that distinguish the parts of a stacked chart.
    pub(super) parts: [Style; PART_COUNT],
}

const PART_COUNT: usize = LimitClass::ALL.len();

/// The colors of lines on the web page, on dark and on light backgrounds, as the nearest legible
/// colors of the 256-color palette.
const PARTS_ON_DARK: [u8; PART_COUNT] = [147, 184, 29, 132, 80, 100, 250, 68, 158, 107, 73, 223];
const PARTS_ON_LIGHT: [u8; PART_COUNT] = [62, 28, 58, 89, 132, 23, 101, 68, 240, 127, 96, 103];

impl Theme {
    /// Returns the styles of a theme. [`ThemeName::Auto`] has the styles of the dark theme.
    pub(super) fn new(name: ThemeName) -> Self {
        let plain = Style::new();
        let strong = plain.add_modifier(Modifier::BOLD);
        let color = |color| plain.fg(color);
        let bold = |color| strong.fg(color);
        let indexed = |index| color(Color::Indexed(index));
        let bold_indexed = |index| bold(Color::Indexed(index));
        // The selected row has a single color, because a reversed row with several colors would
        // look like separate blocks.
        let selected = plain
            .fg(Color::Reset)
            .bg(Color::Reset)
            .add_modifier(Modifier::REVERSED);
        let parts =
            |colors: [u8; PART_COUNT]| colors.map(|index| selected.fg(Color::Indexed(index)));
        match name {
            ThemeName::Auto | ThemeName::Dark => Self {
                plain,
                strong,
                dim: color(Color::DarkGray),
                // Plain blue is hard to read on a black background.
                utilization: bold(Color::LightBlue),
                memory: color(Color::Magenta),
                power: color(Color::Yellow),
                temperature: color(Color::Cyan),
                traffic: color(Color::Green),
                simulated: bold(Color::Yellow),
                well: color(Color::Green),
                notice: color(Color::Yellow),
                alarm: bold(Color::Red),
                selected,
                found: bold(Color::Yellow).add_modifier(Modifier::UNDERLINED),
                parts: parts(PARTS_ON_DARK),
            },
            // This theme uses the 256-color palette, because many terminals define the first
            // sixteen colors so that they are too pale on white.
            ThemeName::Light => Self {
                plain,
                strong,
                dim: indexed(242),
                utilization: bold_indexed(25),
                memory: indexed(90),
                power: indexed(94),
                temperature: indexed(23),
                traffic: indexed(28),
                simulated: bold_indexed(94),
                well: indexed(28),
                notice: indexed(94),
                alarm: bold_indexed(124),
                selected,
                found: bold_indexed(94).add_modifier(Modifier::UNDERLINED),
                parts: parts(PARTS_ON_LIGHT),
            },
            // Each color is the nearest color of the 256-color palette, because few terminals on
            // clusters report support for more colors.
            ThemeName::ColorBlind => Self {
                plain,
                strong,
                dim: indexed(246),
                utilization: bold_indexed(74),
                memory: indexed(175),
                power: indexed(214),
                temperature: indexed(36),
                traffic: indexed(227),
                simulated: bold_indexed(214),
                well: indexed(74),
                notice: indexed(227),
                alarm: bold_indexed(202),
                selected,
                found: bold_indexed(227).add_modifier(Modifier::UNDERLINED),
                parts: parts(PARTS_ON_DARK),
            },
            // On white, the palette's yellow and orange are hard to read, and its dark colors look
            // alike. The alarm therefore has a colored background, and most other colors are those
            // of the light theme.
            ThemeName::ColorBlindLight => Self {
                traffic: indexed(22),
                well: indexed(25),
                alarm: bold_indexed(16).bg(Color::Indexed(214)),
                ..Self::new(ThemeName::Light)
            },
            ThemeName::HighContrast => {
                let plain = Style::new().fg(Color::Indexed(15)).bg(Color::Indexed(16));
                let bright = |color| plain.fg(Color::Indexed(color)).add_modifier(Modifier::BOLD);
                Self {
                    plain,
                    strong: plain.add_modifier(Modifier::BOLD),
                    dim: plain,
                    utilization: bright(117),
                    memory: bright(213),
                    power: bright(227),
                    temperature: bright(87),
                    traffic: bright(120),
                    simulated: bright(227),
                    well: bright(120),
                    notice: bright(227),
                    alarm: plain
                        .fg(Color::Indexed(15))
                        .bg(Color::Indexed(160))
                        .add_modifier(Modifier::BOLD),
                    selected: plain
                        .fg(Color::Indexed(16))
                        .bg(Color::Indexed(15))
                        .add_modifier(Modifier::BOLD),
                    found: plain.fg(Color::Indexed(16)).bg(Color::Indexed(227)),
                    parts: parts(PARTS_ON_DARK).map(|part| part.bg(Color::Indexed(16))),
                }
            }
            ThemeName::Monochrome => Self {
                plain,
                strong,
                dim: plain.add_modifier(Modifier::DIM),
                utilization: strong,
                memory: plain,
                power: plain,
                temperature: plain,
                traffic: plain,
                simulated: strong,
                well: plain,
                notice: strong,
                alarm: strong.add_modifier(Modifier::UNDERLINED),
                selected,
                found: strong.add_modifier(Modifier::UNDERLINED),
                parts: [plain; PART_COUNT],
            },
        }
    }

    /// Returns the theme with all measured values in gray, which indicates that they are outdated.
    pub(super) fn to_faded(&self) -> Self {
        let gray = self.dim;
        Self {
            plain: gray,
            strong: gray,
            utilization: gray,
            memory: gray,
            power: gray,
            temperature: gray,
            traffic: gray,
            well: gray,
            notice: gray,
            alarm: gray,
            parts: [gray; PART_COUNT],
            ..self.clone()
        }
    }

    pub(super) fn choose_load_style(&self, load: LoadLevel) -> Style {
        match load {
            LoadLevel::Light => self.well.remove_modifier(Modifier::BOLD),
            LoadLevel::Moderate => self.notice.add_modifier(Modifier::BOLD),
            LoadLevel::Heavy => self.alarm.add_modifier(Modifier::UNDERLINED),
        }
    }

    pub(super) fn choose_level_style(&self, level: Level) -> Style {
        match level {
            Level::Act => self.alarm,
            Level::Warn => self.notice,
            Level::Note => self.plain,
            Level::Quiet => self.dim,
        }
    }
}

// Detection of the terminal's background.
//
// No code waits for the terminal's response. The response is read with the keys whenever it
// arrives, so no part of it is mistaken for a key, and a terminal that never responds costs no
// time.

/// The escape sequence that requests the terminal's background color. It ends with BEL, so that the
/// response also ends with BEL. If it ended with the alternative terminator, released versions of
/// rxvt would send only half of that terminator in the response.
pub(super) const BACKGROUND_QUERY: &str = "\u{1b}]11;?\u{7}";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Background {
    #[default]
    Dark,
    Light,
}

impl Background {
    /// Returns the background set in `COLORFGBG`, which terminals such as rxvt and Konsole set.
    pub(super) fn from_environment() -> Self {
        Self::from_color_numbers(&env::var("COLORFGBG").unwrap_or_default())
    }

    /// Parses color numbers from 0 to 15, such as `0;15`. The last number is the background.
    fn from_color_numbers(numbers: &str) -> Self {
        match numbers.rsplit(';').next().map(str::parse) {
            Some(Ok(7 | 9..=15)) => Self::Light,
            _ => Self::Dark,
        }
    }

    /// Parses a color such as `rgb:ffff/ffff/ffff`.
    pub(super) fn parse_color(color: &[u8]) -> Option<Self> {
        let (form, parts) = str::from_utf8(color).ok()?.split_once(':')?;
        let mut parts = parts.split('/').map(parse_color_part);
        let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
        let is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5;
        // Terminals with a translucent background answer with `rgba`.
        matches!(form, "rgb" | "rgba").then_some(if is_light { Self::Light } else { Self::Dark })
    }
}

/// Parses one to four hexadecimal digits as a fraction of the largest number with as many digits.
/// For example, `80` is 128/255.
fn parse_color_part(digits: &str) -> Option<f64> {
    let most: &u32 = [0, 0xf, 0xff, 0xfff, 0xffff].get(digits.len())?;
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some(f64::from(value) / f64::from(*most))
}

/// Returns `false` for terminals that would print the query instead of responding to it.
pub(super) fn supports_background_query() -> bool {
    let terminal = env::var("TERM").unwrap_or_default();
    !["linux", "vt", "Eterm"]
        .iter()
        .any(|silent| terminal.starts_with(silent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_theme_looks_different_and_cycles() {
        for background in [Background::Dark, Background::Light] {
            let look = |theme: ThemeName| theme.resolve(background);
            let mut all = vec![ThemeName::Auto];
            while all.len() == 1 || all.last() != Some(&ThemeName::Auto) {
                all.push(all[all.len() - 1].next(background));
                assert!(
                    all.len() <= ThemeName::value_variants().len() + 1,
                    "{all:?}"
                );
            }
            assert!(all.windows(2).all(|two| look(two[0]) != look(two[1])));
            for theme in ThemeName::value_variants() {
                assert!(all.iter().any(|shown| look(*shown) == look(*theme)));
            }
        }
    }

    #[test]
    fn monochrome_alarm_is_distinct_without_color() {
        let theme = Theme::new(ThemeName::Monochrome);
        for style in [
            theme.alarm,
            theme.memory,
            theme.dim,
            theme.notice,
            theme.power,
        ] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert!(theme.alarm.add_modifier.contains(Modifier::UNDERLINED));
    }

    /// Returns the RGB values that terminals define for a color of the 256-color palette.
    fn to_rgb(color: Color) -> [f64; 3] {
        let Color::Indexed(index) = color else {
            panic!("{color:?} is the terminal's own")
        };
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        let bytes = match index {
            15 => [255; 3],
            16..=231 => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level),
            232.. => [8 + 10 * (index - 232); 3],
            _ => panic!("{index} is the terminal's own"),
        };
        bytes.map(|byte| f64::from(byte) / 255.0)
    }

    fn to_linear(rgb: [f64; 3]) -> [f64; 3] {
        rgb.map(|part| {
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn multiply(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// Returns the contrast ratio as defined in WCAG 2.
    fn contrast_ratio(a: [f64; 3], b: [f64; 3]) -> f64 {
        let light = |rgb| {
            let [red, green, blue] = to_linear(rgb);
            0.05 + 0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        light(a).max(light(b)) / light(a).min(light(b))
    }

    fn to_lab(linear: [f64; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] = [
            [0.4124, 0.3576, 0.1805],
            [0.2126, 0.7152, 0.0722],
            [0.0193, 0.1192, 0.9505],
        ];
        let [x, y, z] = multiply(XYZ, linear);
        let [x, y, z] = [x / 0.9505, y, z / 1.089].map(|part: f64| {
            if part > 0.008_856 {
                part.cbrt()
            } else {
                7.787 * part + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn list_styles(theme: &Theme) -> [Style; 11] {
        let Theme {
            dim,
            utilization,
            memory,
            power,
            temperature,
            traffic,
            simulated,
            well,
            notice,
            alarm,
            found,
            ..
        } = theme.clone();
        [
            dim,
            utilization,
            memory,
            power,
            temperature,
            traffic,
            simulated,
            well,
            notice,
            alarm,
            found,
        ]
    }

    #[test]
    fn every_color_is_legible_on_background() {
        for (name, pages) in [
            (ThemeName::Light, [0xff, 0xff]),
            (ThemeName::ColorBlind, [0x00, 0x28]),
            (ThemeName::ColorBlindLight, [0xff, 0xf5]),
            (ThemeName::HighContrast, [0x00, 0x00]),
        ] {
            let theme = Theme::new(name);
            let texts = list_styles(&theme).map(|style| (style, 4.5));
            // Areas need less contrast than texts.
            let parts = theme.parts.map(|style| (style, 3.0));
            for (style, least) in texts.into_iter().chain(parts) {
                for page in pages {
                    let back = style.bg.filter(|back| *back != Color::Reset);
                    let page = back.map_or([f64::from(page) / 255.0; 3], to_rgb);
                    let contrast = contrast_ratio(to_rgb(style.fg.unwrap()), page);
                    assert!(contrast >= least, "{name:?}: {style:?} has {contrast:.2}");
                }
            }
        }
    }

    #[test]
    fn color_blind_themes_distinguish_loads() {
        // The matrices simulate normal vision, protanopia, deuteranopia, and tritanopia. They are
        // from Machado, Oliveira and Fernandes (2009).
        let visions = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ];
        for name in [ThemeName::ColorBlind, ThemeName::ColorBlindLight] {
            let theme = Theme::new(name);
            let loads = [LoadLevel::Light, LoadLevel::Moderate, LoadLevel::Heavy]
                .map(|load| theme.choose_load_style(load));
            for vision in visions {
                let seen = loads.map(|style| {
                    let linear = to_linear(to_rgb(style.bg.or(style.fg).unwrap()));
                    to_lab(multiply(vision, linear).map(|part| part.clamp(0.0, 1.0)))
                });
                for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                    let distance = seen[a]
                        .iter()
                        .zip(seen[b])
                        .map(|(a, b)| (a - b).powi(2))
                        .sum::<f64>()
                        .sqrt();
                    assert!(distance >= 30.0, "{name:?}, {a} and {b}: {distance:.0}");
                }
            }
        }
    }

    #[test]
    fn color_is_classified_as_light_or_dark() {
        let of = |color: &str| Background::parse_color(color.as_bytes());
        // These colors are white, beige, and yellow. Yellow counts as light, because people see it
        // as brighter than blue.
        for light in [
            "rgb:ffff/ffff/ffff",
            "rgb:fd/f6/e3",
            "rgb:f/f/0",
            "rgba:ff/ff/ff/80",
        ] {
            assert_eq!(of(light), Some(Background::Light), "{light}");
        }
        for dark in ["rgb:0000/0000/0000", "rgb:0000/2b2b/3636", "rgb:00/00/ff"] {
            assert_eq!(of(dark), Some(Background::Dark), "{dark}");
        }
        for invalid in [
            "",
            "?",
            "rgb:",
            "rgb:ff/ff",
            "rgb:fffff/0/0",
            "rgb:g/0/0",
            "hsl:f/f/f",
        ] {
            assert_eq!(of(invalid), None, "{invalid}");
        }
        assert_eq!(Background::parse_color(b"rgb:\xff/f/f"), None);
    }

    #[test]
    fn last_number_of_colorfgbg_variable_is_background() {
        for (numbers, background) in [
            ("0;15", Background::Light),
            ("0;default;7", Background::Light),
            ("15;0", Background::Dark),
            ("7;8", Background::Dark),
            ("15;default", Background::Dark),
            ("", Background::Dark),
        ] {
            assert_eq!(
                Background::from_color_numbers(numbers),
                background,
                "{numbers}"
            );
        }
    }
}

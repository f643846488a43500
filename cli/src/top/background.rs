//! Detection of the terminal's background, which the theme `auto` follows.
//!
//! No code waits for the terminal's response. The response is read with the keys whenever it
//! arrives, so no part of it is mistaken for a key, and a terminal that never responds costs no
//! time.

use std::env;

/// The escape sequence that requests the terminal's background color. It ends with BEL, so that the
/// response also ends with BEL. With the alternative terminator, released versions of rxvt send
/// only half of the terminator.
pub(super) const QUERY: &str = "\u{1b}]11;?\u{7}";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Background {
    #[default]
    Dark,
    Light,
}

impl Background {
    /// Returns the background set in `COLORFGBG`, which terminals such as rxvt and Konsole set.
    pub(super) fn from_environment() -> Self {
        Self::parse_numbers(&env::var("COLORFGBG").unwrap_or_default())
    }

    /// Parses color numbers from 0 to 15, such as `0;15`. The last number is the background.
    fn parse_numbers(numbers: &str) -> Self {
        match numbers.rsplit(';').next().map(str::parse) {
            Some(Ok(7 | 9..=15)) => Self::Light,
            _ => Self::Dark,
        }
    }

    /// Parses a color such as `rgb:ffff/ffff/ffff`.
    pub(super) fn parse_color(color: &[u8]) -> Option<Self> {
        let (form, parts) = str::from_utf8(color).ok()?.split_once(':')?;
        let mut parts = parts.split('/').map(parse_share);
        let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
        let is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5;
        // Terminals with a translucent background answer with `rgba`.
        matches!(form, "rgb" | "rgba").then_some(if is_light { Self::Light } else { Self::Dark })
    }
}

/// Parses one to four hexadecimal digits as a fraction of the largest number with the same number
/// of digits.
fn parse_share(digits: &str) -> Option<f64> {
    let most: &u32 = [0, 0xf, 0xff, 0xfff, 0xffff].get(digits.len())?;
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some(f64::from(value) / f64::from(*most))
}

/// Returns `false` for terminals that would print the query instead of responding to it.
pub(super) fn supports_query() -> bool {
    let terminal = env::var("TERM").unwrap_or_default();
    !["linux", "vt", "Eterm"]
        .iter()
        .any(|silent| terminal.starts_with(silent))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn last_number_in_colorfgbg_is_background() {
        for (numbers, background) in [
            ("0;15", Background::Light),
            ("0;default;7", Background::Light),
            ("15;0", Background::Dark),
            ("7;8", Background::Dark),
            ("15;default", Background::Dark),
            ("", Background::Dark),
        ] {
            assert_eq!(Background::parse_numbers(numbers), background, "{numbers}");
        }
    }
}

//! The modifiers that `--format=` accepts.

use crate::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    /// Whether the output starts with a line of field names.
    pub(super) header: bool,
    /// Whether values are followed by their units. The header always contains the units.
    pub(super) units: bool,
}

type ApplyModifier = fn(&mut Format);

/// The modifiers and their effects. `csv` has no effect, because it is the default.
const MODIFIERS: [(&str, ApplyModifier); 3] = [
    ("csv", |_| {}),
    ("noheader", |format| format.header = false),
    ("nounits", |format| format.units = false),
];

pub(crate) fn list_modifiers() -> impl Iterator<Item = &'static str> {
    MODIFIERS.iter().map(|(modifier, _)| *modifier)
}

impl Format {
    /// Parses modifiers in any order, ignoring empty ones. `csv` is optional because it is the only
    /// format.
    pub(super) fn parse(modifiers: &str) -> Result<Self, Refusal> {
        let mut format = Self {
            header: true,
            units: true,
        };
        for typed in modifiers.split(',').filter(|modifier| !modifier.is_empty()) {
            let known = MODIFIERS.iter().find(|(modifier, _)| *modifier == typed);
            let (_, set) =
                known.ok_or_else(|| Refusal::new(2, "Format modifier is not recognized.\n"))?;
            set(&mut format);
        }
        Ok(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_parse_in_any_order() {
        let read = |text: &str| Format::parse(text).map(|format| (format.header, format.units));
        for everything in ["", "csv", "csv,", ",csv", "csv,csv"] {
            assert_eq!(read(everything), Ok((true, true)), "{everything}");
        }
        assert_eq!(read("csv,noheader"), Ok((false, true)));
        assert_eq!(read("noheader"), Ok((false, true)));
        assert_eq!(read("nounits"), Ok((true, false)));
        assert_eq!(read("nounits,noheader,csv"), Ok((false, false)));
    }

    #[test]
    fn unknown_modifier_is_refused() {
        for wrong in [
            "CSV",
            "csv, noheader",
            "csv noheader",
            "csv,no_header",
            "xml",
            " csv",
            " ",
        ] {
            let refusal = Format::parse(wrong).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.text.as_str()),
                (2, "Format modifier is not recognized.\n"),
                "{wrong}"
            );
        }
    }
}

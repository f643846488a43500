//! The sections of the text output that `-d` selects.

use crate::Refusal;

/// A section that `-d` can select. `VOLTAGE` is accepted, but has no items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section(&'static str);

macro_rules! sections {
    ($($word:ident),* $(,)?) => {
        impl Section {
            $(pub(super) const $word: Self = Self(stringify!($word));)*
            const ALL: &[Self] = &[$(Self::$word),*];
        }
    };
}

sections! {
    MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE, SUPPORTED_CLOCKS, PAGE_RETIREMENT,
    ACCOUNTING, ENCODER_STATS, SUPPORTED_GPU_TARGET_TEMP, VOLTAGE, FBC_STATS, ROW_REMAPPER, GSP_FIRMWARE_VERSION,
    POWER_SMOOTHING, POWER_PROFILES,
}

/// Returns the words that `-d` accepts, in the order of nvidia-smi's help.
pub(crate) fn list_section_words() -> impl Iterator<Item = &'static str> {
    Section::ALL.iter().map(|section| section.0)
}

/// Parses the value of `-d`, which consists of words in upper or lower case, separated only by
/// commas. If the list is empty, only the headings of GPUs are shown.
pub(crate) fn parse_sections(text: &str) -> Result<Vec<Section>, Refusal> {
    let find = |typed: &str| {
        let section = Section::ALL
            .iter()
            .find(|section| section.0.eq_ignore_ascii_case(typed));
        section
            .copied()
            .ok_or_else(|| Refusal::new(2, "Failed to parse --display/-d flags\n"))
    };
    text.split(',')
        .filter(|typed| !typed.is_empty())
        .map(find)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_words_ignore_case() {
        assert_eq!(
            parse_sections("memory,POWER"),
            Ok(vec![Section::MEMORY, Section::POWER])
        );
        assert_eq!(parse_sections(""), Ok(Vec::new()));
    }

    #[test]
    fn section_words_are_unique() {
        for word in list_section_words() {
            assert_eq!(parse_sections(word), Ok(vec![Section(word)]), "{word}");
            assert_eq!(
                list_section_words().filter(|other| *other == word).count(),
                1,
                "{word}"
            );
        }
    }

    #[test]
    fn list_with_invalid_word_is_refused() {
        for typed in ["MEMORY, POWER", "MEMRY", "MEMORY,bogus"] {
            let refusal = parse_sections(typed).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.text.as_str()),
                (2, "Failed to parse --display/-d flags\n"),
                "{typed}"
            );
        }
    }
}

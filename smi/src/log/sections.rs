//! Which parts of the text `-d` asks for.

use crate::Refusal;

/// A set of the words that `-d` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sections(u32);

impl Sections {
    pub(super) const NONE: Self = Self(0);
    pub(super) const MEMORY: Self = Self(1);
    pub(super) const UTILIZATION: Self = Self(1 << 1);
    pub(super) const ECC: Self = Self(1 << 2);
    pub(super) const TEMPERATURE: Self = Self(1 << 3);
    pub(super) const POWER: Self = Self(1 << 4);
    pub(super) const CLOCK: Self = Self(1 << 5);
    pub(super) const COMPUTE: Self = Self(1 << 6);
    pub(super) const PIDS: Self = Self(1 << 7);
    pub(super) const PERFORMANCE: Self = Self(1 << 8);
    pub(super) const SUPPORTED_CLOCKS: Self = Self(1 << 9);
    pub(super) const PAGE_RETIREMENT: Self = Self(1 << 10);
    pub(super) const ACCOUNTING: Self = Self(1 << 11);
    pub(super) const ENCODER_STATS: Self = Self(1 << 12);
    pub(super) const SUPPORTED_GPU_TARGET_TEMP: Self = Self(1 << 13);
    /// Accepted, and nothing stands in it.
    const VOLTAGE: Self = Self(1 << 14);
    pub(super) const FBC_STATS: Self = Self(1 << 15);
    pub(super) const ROW_REMAPPER: Self = Self(1 << 16);
    pub(super) const GSP_FIRMWARE_VERSION: Self = Self(1 << 17);
    pub(super) const POWER_SMOOTHING: Self = Self(1 << 18);
    pub(super) const POWER_PROFILES: Self = Self(1 << 19);

    pub(super) fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The words, as they are typed.
const WORDS: &[(&str, Sections)] = &[
    ("MEMORY", Sections::MEMORY),
    ("UTILIZATION", Sections::UTILIZATION),
    ("ECC", Sections::ECC),
    ("TEMPERATURE", Sections::TEMPERATURE),
    ("POWER", Sections::POWER),
    ("CLOCK", Sections::CLOCK),
    ("COMPUTE", Sections::COMPUTE),
    ("PIDS", Sections::PIDS),
    ("PERFORMANCE", Sections::PERFORMANCE),
    ("SUPPORTED_CLOCKS", Sections::SUPPORTED_CLOCKS),
    ("PAGE_RETIREMENT", Sections::PAGE_RETIREMENT),
    ("ACCOUNTING", Sections::ACCOUNTING),
    ("ENCODER_STATS", Sections::ENCODER_STATS),
    ("SUPPORTED_GPU_TARGET_TEMP", Sections::SUPPORTED_GPU_TARGET_TEMP),
    ("VOLTAGE", Sections::VOLTAGE),
    ("FBC_STATS", Sections::FBC_STATS),
    ("ROW_REMAPPER", Sections::ROW_REMAPPER),
    ("GSP_FIRMWARE_VERSION", Sections::GSP_FIRMWARE_VERSION),
    ("POWER_SMOOTHING", Sections::POWER_SMOOTHING),
    ("POWER_PROFILES", Sections::POWER_PROFILES),
];

/// The words that `-d` knows, in the order of nvidia-smi's help.
pub(crate) fn section_words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(word, _)| *word)
}

/// Reads what stands behind `-d`: words in either case, with commas and nothing else between them. Nothing at all is an
/// empty set, of which only the GPUs' headings are shown.
pub(crate) fn parse_sections(text: &str) -> Result<Sections, Refusal> {
    text.split(',').filter(|typed| !typed.is_empty()).try_fold(Sections::NONE, |all, typed| {
        WORDS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(typed))
            .map(|(_, section)| Sections(all.0 | section.0))
            .ok_or_else(|| Refusal::new(2, "Failed to parse --display/-d flags\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_either_case() {
        let both = parse_sections("memory,POWER").unwrap();
        assert!(both.meet(Sections::MEMORY) && both.meet(Sections::POWER) && !both.meet(Sections::ECC));
        assert_eq!(parse_sections(""), Ok(Sections::NONE));
    }

    #[test]
    fn no_two_words_mean_the_same() {
        for (at, (word, section)) in WORDS.iter().enumerate() {
            assert_eq!(parse_sections(word), Ok(*section), "{word}");
            assert!(WORDS[..at].iter().all(|(_, other)| !other.meet(*section)), "{word}");
        }
    }

    #[test]
    fn a_space_or_an_unknown_word_is_refused_as_a_whole() {
        for typed in ["MEMORY, POWER", "MEMRY", "MEMORY,bogus"] {
            let refusal = parse_sections(typed).unwrap_err();
            assert_eq!((refusal.code, refusal.text.as_str()), (2, "Failed to parse --display/-d flags\n"), "{typed}");
        }
    }
}

//! What is to be said of a GPU, in the room that its numbers leave.

use unicode_width::UnicodeWidthStr;

use crate::{
    describe::{Level, Phrase},
    top::text::printable,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) text: String,
    pub(super) level: Level,
}

/// Each phrase as long as there is room for all of them, the first before the others. Where even short ones have no room,
/// the last that is said is how many more there are.
pub(super) fn fit_phrases(phrases: &[Phrase], columns: usize) -> Vec<Segment> {
    let of = |phrase: &Phrase, is_long: bool| Segment {
        text: printable(if is_long { &phrase.long } else { &phrase.short }),
        level: phrase.level,
    };
    for long in [phrases.len(), 1, 0] {
        let segments: Vec<Segment> = phrases
            .iter()
            .enumerate()
            .map(|(place, phrase)| of(phrase, place < long))
            .collect();
        if width(&segments) <= columns {
            return segments;
        }
    }
    for shown in (1..phrases.len()).rev() {
        let (first, rest) = phrases.split_at(shown);
        let mut segments: Vec<Segment> = first.iter().map(|phrase| of(phrase, false)).collect();
        segments.push(Segment {
            text: format!("{} more", rest.len()),
            level: rest[0].level,
        });
        if width(&segments) <= columns {
            return segments;
        }
    }
    phrases
        .first()
        .map(|phrase| of(phrase, false))
        .into_iter()
        .collect()
}

fn width(segments: &[Segment]) -> usize {
    segments
        .iter()
        .map(|segment| segment.text.width() + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(level: Level, short: &str, long: &str) -> Phrase {
        Phrase {
            short: short.to_owned(),
            long: long.to_owned(),
            level,
        }
    }

    #[test]
    fn what_matters_most_is_whole_and_what_has_no_room_is_counted() {
        let phrases = [
            phrase(
                Level::Act,
                "Xid 79: fell off the bus",
                "Xid 79: GPU has fallen off the bus – reboot the machine",
            ),
            phrase(
                Level::Warn,
                "NVLink 3 down",
                "NVLink 3 is down: GPUs reach each other more slowly",
            ),
            phrase(Level::Note, "power-capped", "power-capped"),
        ];
        let at = |columns| {
            fit_phrases(&phrases, columns)
                .into_iter()
                .map(|segment| segment.text)
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert!(at(200).ends_with("more slowly, power-capped"));
        assert_eq!(
            at(100),
            "Xid 79: GPU has fallen off the bus – reboot the machine, NVLink 3 down, power-capped"
        );
        assert_eq!(
            at(60),
            "Xid 79: fell off the bus, NVLink 3 down, power-capped"
        );
        assert_eq!(at(50), "Xid 79: fell off the bus, NVLink 3 down, 1 more");
        assert_eq!(at(40), "Xid 79: fell off the bus, 2 more");
        assert_eq!(at(24), "Xid 79: fell off the bus");
        assert_eq!(fit_phrases(&[], 24), []);
    }
}

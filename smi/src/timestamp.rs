//! The date, time and index columns at the start of the rows of `dmon` and `pmon`.

use jiff::Zoned;

/// The letters that `-o` accepts.
pub(crate) const LETTERS: &str = "DT";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimestampColumns {
    pub(crate) date: bool,
    pub(crate) time: bool,
}

impl TimestampColumns {
    /// Parses `D`, `T` or both; returns `None` if the text contains another letter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_known = text.chars().all(|letter| LETTERS.contains(letter));
        is_known.then(|| Self {
            date: text.contains('D'),
            time: text.contains('T'),
        })
    }

    /// Returns the names of the columns, including the index.
    pub(crate) fn names(self) -> Vec<&'static str> {
        self.of("Date", "Time", "gpu")
    }

    pub(crate) fn units(self) -> Vec<&'static str> {
        self.of("YYYYMMDD", "HH:MM:SS", "Idx")
    }

    pub(crate) fn words(self, now: &Zoned, gpu: u32) -> Vec<String> {
        let date = now.strftime("%Y%m%d").to_string();
        let time = now.strftime("%H:%M:%S").to_string();
        self.of(date, time, gpu.to_string())
    }

    fn of<T>(self, date: T, time: T, index: T) -> Vec<T> {
        let date = self.date.then_some(date);
        let time = self.time.then_some(time);
        date.into_iter().chain(time).chain([index]).collect()
    }
}

/// Formats the words as columns. Date and time are 12 characters wide, and the index is
/// right-aligned.
pub(crate) fn columns<T: AsRef<str>>(words: &[T]) -> String {
    let (index, times) = words.split_last().expect("an index stands there always");
    let times: Vec<String> = times
        .iter()
        .map(|time| format!("{:<12}", time.as_ref()))
        .collect();
    format!("{}{:>4}", times.concat(), index.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_lines_up() {
        let now = jiff::civil::date(2026, 11, 21)
            .at(11, 58, 28, 0)
            .to_zoned(jiff::tz::TimeZone::UTC)
            .unwrap();
        for (typed, names, words) in [
            ("", " gpu", "   0"),
            ("T", "Time         gpu", "11:58:28       0"),
            (
                "DT",
                "Date        Time         gpu",
                "20261121    11:58:28       0",
            ),
            (
                "TD",
                "Date        Time         gpu",
                "20261121    11:58:28       0",
            ),
        ] {
            let timestamp = TimestampColumns::parse(typed).unwrap();
            assert_eq!(columns(&timestamp.names()), names);
            assert_eq!(columns(&timestamp.words(&now, 0)), words);
        }
        assert_eq!(TimestampColumns::parse("Z"), None);
    }
}

//! The date, time, and index columns with which the rows of `dmon` and `pmon` start.

use jiff::Zoned;

/// The letters that `-o` accepts.
pub(crate) const LETTERS: &str = "DT";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimestampColumns {
    pub(crate) date: bool,
    pub(crate) time: bool,
}

impl TimestampColumns {
    /// Parses the letters `D` and `T`. Returns `None` if the text contains any other letter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_known = text.chars().all(|letter| LETTERS.contains(letter));
        is_known.then(|| Self {
            date: text.contains('D'),
            time: text.contains('T'),
        })
    }

    /// Returns the column names, including that of the index.
    pub(crate) fn names(self) -> Vec<&'static str> {
        self.select_columns("Date", "Time", "gpu")
    }

    pub(crate) fn units(self) -> Vec<&'static str> {
        self.select_columns("YYYYMMDD", "HH:MM:SS", "Idx")
    }

    pub(crate) fn format_words(self, now: &Zoned, gpu: u32) -> Vec<String> {
        let date = now.strftime("%Y%m%d").to_string();
        let time = now.strftime("%H:%M:%S").to_string();
        self.select_columns(date, time, gpu.to_string())
    }

    fn select_columns<T>(self, date: T, time: T, index: T) -> Vec<T> {
        let date = self.date.then_some(date);
        let time = self.time.then_some(time);
        date.into_iter().chain(time).chain([index]).collect()
    }
}

/// Formats words as columns. The date and time columns are 12 characters wide, and the index is
/// right-aligned.
pub(crate) fn format_columns<T: AsRef<str>>(words: &[T]) -> String {
    let (index, times) = words.split_last().expect("the index is always present");
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
    fn column_combinations_are_aligned() {
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
            assert_eq!(format_columns(&timestamp.names()), names);
            assert_eq!(format_columns(&timestamp.format_words(&now, 0)), words);
        }
        assert_eq!(TimestampColumns::parse("Z"), None);
    }
}

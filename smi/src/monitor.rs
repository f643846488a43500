//! Code that `dmon` and `pmon` share: their switches, error messages, timestamp columns, and the
//! loop that writes rounds of rows.

use std::{collections::HashMap, io::Write, time::Duration};

use gpumon_probe::{local_time, vendor::nvml::query::QueryBackend};
use jiff::Zoned;

use super::{
    Context, Refusal,
    gpu_list::{find_listed_gpus, read_device_count},
    output::{ScrollingOutput, Ticker},
    subcommand::{SubcommandError, Switches},
};

/// The number of rows after which the heading is repeated.
const ROWS_PER_HEADING: usize = 44;

/// The selected GPUs, and how often and where their rows are written.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    pub(super) gpus: Vec<u32>,
    delay: Duration,
    count: Option<u64>,
    pub(super) timestamp: TimestampColumns,
    file: Option<&'a str>,
}

/// Creates a refusal that shows the usage text. The exit code is 0, because monitors do not treat a
/// mistyped switch as a failure.
pub(super) fn make_usage_refusal(fault: impl std::fmt::Display, usage: &str) -> Refusal {
    Refusal::new(0, format!("{fault}\n{usage}"))
}

/// Creates the refusal for an invalid value, with exit code 255.
pub(super) fn make_value_refusal(fault: &str) -> Refusal {
    Refusal::new(255, format!("{fault}Failed to process command line \n\n"))
}

/// Parses the switches `-c`, `-d`, `-o`, `-i` and `-f`. `most` is the maximum number of GPUs and
/// the maximum interval between two rounds in seconds.
pub(super) fn parse_rounds<'a>(
    switches: &Switches<'a>,
    driver: &dyn QueryBackend,
    most: (usize, u64),
    usage: &str,
) -> Result<Rounds<'a>, Refusal> {
    let (most_gpus, most_seconds) = most;
    let count = switches
        .value("-c")
        .map(|text| text.parse().ok().filter(|count: &i64| *count != 0))
        .map(|count| {
            count.ok_or_else(|| {
                make_usage_refusal("Invalid value for number of samples to be displayed", usage)
            })
        })
        .transpose()?
        // A negative number means no limit, as in nvidia-smi.
        .and_then(|count| u64::try_from(count).ok());
    let delay = switches
        .value("-d")
        .map_or(Some(1), |text| {
            text.parse()
                .ok()
                .filter(|seconds| (1..=most_seconds).contains(seconds))
        })
        .ok_or_else(|| {
            let text = format!(
                "Collection delay/interval should be between 1 second and {most_seconds} seconds"
            );
            make_usage_refusal(text, usage)
        })?;
    let timestamp = TimestampColumns::parse(switches.value("-o").unwrap_or(""))
        .ok_or_else(|| make_value_refusal("Error in parsing options\n"))?;
    let mut gpus = find_listed_gpus(driver, switches.value("-i"))?;
    gpus.truncate(most_gpus);
    Ok(Rounds {
        gpus,
        delay: Duration::from_secs(delay),
        count,
        timestamp,
        file: switches.value("-f"),
    })
}

impl Rounds<'_> {
    /// Writes a round of rows at each tick, until the requested number of rounds is reached or
    /// SIGINT arrives.
    pub(super) fn write_rounds(
        &self,
        driver: &dyn QueryBackend,
        output: &mut dyn Write,
        heading: String,
        mut rows: impl FnMut(&Context<'_>) -> Vec<String>,
    ) -> Result<u8, SubcommandError> {
        let mut scroll = ScrollingOutput::new(output, self.file, heading, ROWS_PER_HEADING)
            .map_err(|error| match self.file {
                Some(_) => SubcommandError::Refused(make_value_refusal("")),
                None => SubcommandError::Output(error),
            })?;
        // A single round needs neither a ticker nor a signal handler.
        let mut ticker = if self.count == Some(1) {
            None
        } else {
            Some(Ticker::start(self.delay)?)
        };
        let mut left = self.count;
        loop {
            let context = Context {
                driver,
                gpus: &self.gpus,
                count: read_device_count(driver),
                now: local_time::now(),
            };
            scroll.write_round(&rows(&context))?;
            left = left.map(|left| left - 1);
            if left == Some(0) || !ticker.as_mut().is_some_and(Ticker::wait_for_next) {
                return Ok(0);
            }
            driver.forget_outdated_answers();
        }
    }
}

/// Reads every GPU. `read` receives the state kept from the previous round, and returns the state
/// to keep for the next round.
pub(super) fn read_each_gpu<K: Copy + Send + Sync, T: Send>(
    context: &Context<'_>,
    kept: &mut Vec<K>,
    read: impl Fn(u32, K) -> (T, K) + Sync,
) -> Vec<T> {
    let before: HashMap<u32, K> = context
        .gpus
        .iter()
        .copied()
        .zip(kept.iter().copied())
        .collect();
    let (read, now) = context
        .map_gpus(|gpu| read(gpu, before[&gpu]))
        .into_iter()
        .unzip();
    *kept = now;
    read
}

/// Returns a cell's text, which is `-` if there is no number.
pub(super) fn format_cell(number: Option<i128>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Returns the column groups in the value of `-s`, without duplicates and in the order in which
/// they were typed. Unknown letters are ignored.
pub(super) fn parse_groups(letters: &str, known: &str) -> Result<Vec<char>, Refusal> {
    let mut groups = Vec::new();
    for letter in letters.chars().filter(|letter| known.contains(*letter)) {
        if !groups.contains(&letter) {
            groups.push(letter);
        }
    }
    if groups.is_empty() {
        Err(make_value_refusal("Failed to find any metric to display\n"))
    } else {
        Ok(groups)
    }
}

// The date, time, and index columns with which the rows of `dmon` and `pmon` start.

/// The letters that `-o` accepts.
pub(crate) const TIMESTAMP_LETTERS: &str = "DT";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimestampColumns {
    pub(crate) date: bool,
    pub(crate) time: bool,
}

impl TimestampColumns {
    /// Parses the letters `D` and `T`. Returns `None` if the text contains any other letter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_known = text
            .chars()
            .all(|letter| TIMESTAMP_LETTERS.contains(letter));
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

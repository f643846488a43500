//! Code that `dmon` and `pmon` share: their switches, their error messages and the loop that writes
//! rounds.

use std::{collections::HashMap, io::Write, time::Duration};

use gpumon_probe::{local_time, vendor::nvml::query::QueryBackend};

use super::{
    Context, Refusal,
    scroll::Scroll,
    select::{device_count, select},
    subcommand::Stop,
    switches::Switches,
    ticker::Ticker,
    timestamp::TimestampColumns,
};

/// The number of rows after which the heading is repeated.
const ROWS: usize = 44;

#[derive(Debug)]
pub(super) struct Rounds<'a> {
    pub(super) gpus: Vec<u32>,
    delay: Duration,
    count: Option<u64>,
    pub(super) timestamp: TimestampColumns,
    file: Option<&'a str>,
}

/// A refusal that shows the usage text. The exit code is 0, because monitors do not count a
/// mistyped switch as a failure.
pub(super) fn explain(fault: impl std::fmt::Display, usage: &str) -> Refusal {
    Refusal::new(0, format!("{fault}\n{usage}"))
}

/// The refusal of an invalid value, with exit code 255.
pub(super) fn fail(fault: &str) -> Refusal {
    Refusal::new(255, format!("{fault}Failed to process command line \n\n"))
}

/// Reads the switches `-c`, `-d`, `-o`, `-i` and `-f`. `most` limits the number of GPUs and the
/// seconds between two rounds.
pub(super) fn rounds<'a>(
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
                explain("Invalid value for number of samples to be displayed", usage)
            })
        })
        .transpose()?
        // A negative number sets no limit, as in nvidia-smi.
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
            explain(text, usage)
        })?;
    let timestamp = TimestampColumns::parse(switches.value("-o").unwrap_or(""))
        .ok_or_else(|| fail("Error in parsing options\n"))?;
    let mut gpus = select(driver, switches.value("-i"))?;
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
    /// Writes a round of rows at each tick, until the requested number of rounds is written or
    /// SIGINT arrives.
    pub(super) fn scroll(
        &self,
        driver: &dyn QueryBackend,
        output: &mut dyn Write,
        heading: String,
        mut rows: impl FnMut(&Context<'_>) -> Vec<String>,
    ) -> Result<u8, Stop> {
        let mut scroll =
            Scroll::new(output, self.file, heading, ROWS).map_err(|error| match self.file {
                Some(_) => Stop::Refused(fail("")),
                None => Stop::Output(error),
            })?;
        // A single round needs neither a ticker nor a signal handler that ends it.
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
                count: device_count(driver),
                now: local_time::now(),
            };
            scroll.round(&rows(&context))?;
            left = left.map(|left| left - 1);
            if left == Some(0) || !ticker.as_mut().is_some_and(Ticker::next) {
                return Ok(0);
            }
            driver.forget();
        }
    }
}

/// Reads every GPU. `read` receives the state that was kept from the round before, and returns the
/// state to keep for the next one.
pub(super) fn read_each<K: Copy + Send + Sync, T: Send>(
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
        .each(|gpu| read(gpu, before[&gpu]))
        .into_iter()
        .unzip();
    *kept = now;
    read
}

/// Returns the text of a cell, `-` if there is no number.
pub(super) fn format_cell(number: Option<i128>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Returns the letters of `-s`, each group once and in the order in which they were typed. Unknown
/// letters are ignored.
pub(super) fn groups(letters: &str, known: &str) -> Result<Vec<char>, Refusal> {
    let mut groups = Vec::new();
    for letter in letters.chars().filter(|letter| known.contains(*letter)) {
        if !groups.contains(&letter) {
            groups.push(letter);
        }
    }
    if groups.is_empty() {
        Err(fail("Failed to find any metric to display\n"))
    } else {
        Ok(groups)
    }
}

//! What `dmon` and `pmon` have in common: their switches, their faults and their rounds.

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

/// After so many rows the heading comes again.
const ROWS: usize = 44;

#[derive(Debug)]
pub(super) struct Rounds<'a> {
    pub(super) gpus: Vec<u32>,
    delay: Duration,
    count: Option<u64>,
    pub(super) timestamp: TimestampColumns,
    file: Option<&'a str>,
}

/// Text that explains how it is typed: shown where something was typed wrong, which is no failure
/// to a monitor.
pub(super) fn explain(fault: impl std::fmt::Display, usage: &str) -> Refusal {
    Refusal::new(0, format!("{fault}\n{usage}"))
}

/// A value that can not be read, which is a failure.
pub(super) fn fail(fault: &str) -> Refusal {
    Refusal::new(255, format!("{fault}Failed to process command line \n\n"))
}

/// Reads the switches `-c`, `-d`, `-o`, `-i` and `-f`. There are at most so many GPUs, and so many
/// seconds between rounds.
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
        // As in nvidia-smi, a negative number sets no limit.
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
    /// Writes a round of rows at each tick, until as many as were asked for are written, or SIGINT.
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
        // A single round needs no ticker, and no signal to end it.
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

/// Reads every GPU, given what was kept of it in the round before, and keeps what comes with the
/// reading.
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

/// Returns the text of a cell.
pub(super) fn format_cell(number: Option<i128>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// The letters of `-s`, each group once and in the order that was typed. What is no group is passed
/// over.
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

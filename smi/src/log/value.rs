//! Reading of values at a position in the log, and formatting of values.

use std::sync::OnceLock;

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Subject};

use crate::{Context, context::Cache, error_messages, formats, release::Release};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Text,
    Xml,
}

/// A position in the log at which a value is read: the GPU, the output format, and the numbers that
/// identify the enclosing groups and rows, outermost first.
pub(super) struct Cursor<'a> {
    pub(super) device: &'a Device<'a>,
    pub(super) form: OutputFormat,
    numbers: Vec<i128>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(device: &'a Device<'a>, form: OutputFormat) -> Self {
        Self {
            device,
            form,
            numbers: Vec::new(),
        }
    }

    /// Returns a cursor for a nested group or row. `numbers`, which identify the group or row, are
    /// appended to the numbers of this cursor.
    pub(super) fn with_added_numbers(&self, numbers: &[i128]) -> Cursor<'a> {
        Cursor {
            device: self.device,
            form: self.form,
            numbers: [&self.numbers, numbers].concat(),
        }
    }

    /// Returns the number at index `place`, counted from the outermost group, or 0 if there is no
    /// such number.
    pub(super) fn number_at(&self, place: usize) -> i128 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    pub(super) fn has_number(&self, place: usize) -> bool {
        place < self.numbers.len()
    }

    /// Returns the number at index `place`, for use as a query argument.
    pub(super) fn argument_at(&self, place: usize) -> u32 {
        u32::try_from(self.number_at(place)).unwrap_or_default()
    }

    /// Runs a query about the GPU. The ID of a field is converted to the one that the installed
    /// driver uses. If the driver does not know a field, it returns “invalid argument”, which is
    /// changed to “not supported”.
    pub(super) fn run_query(&self, query: Query) -> Answer {
        let subject = Subject::from_gpu(self.device.gpu);
        let Query::Field(id, scope) = query else {
            return self.device.run_query(subject, query);
        };
        let id = self.device.find_field_id(id).ok_or(Code::NOT_SUPPORTED)?;
        let answer = self.device.run_query(subject, Query::Field(id, scope));
        answer.map_err(|code| {
            if code == Code::INVALID_ARGUMENT {
                Code::NOT_SUPPORTED
            } else {
                code
            }
        })
    }

    /// Returns a number from the answer to `query`. The error is the text to show instead.
    pub(super) fn read_number(&self, query: Query, place: usize) -> Result<i128, String> {
        read_answer_number(&self.run_query(query), place)
    }

    /// Returns a formatted number from the answer to `query`, or the text to show instead.
    pub(super) fn read_formatted(
        &self,
        query: Query,
        place: usize,
        format: fn(i128) -> String,
    ) -> String {
        format_or_reason(self.read_number(query, place), format)
    }

    /// Like `read_formatted`, but queries the MIG device whose index is the first of the cursor's
    /// numbers.
    pub(super) fn read_formatted_mig_number(
        &self,
        query: Query,
        place: usize,
        format: fn(i128) -> String,
    ) -> String {
        let part = Subject::from_mig(self.device.gpu, self.argument_at(0));
        format_or_reason(
            read_answer_number(&self.device.run_query(part, query), place),
            format,
        )
    }

    /// Returns the text in the answer to `query`, or the text to show instead.
    pub(super) fn read_text(&self, query: Query) -> String {
        error_messages::format_text_answer(&self.run_query(query))
    }

    /// Returns the first number of the answer to `query`, which may have a fractional part. The
    /// error is the text to show instead.
    pub(super) fn read_real(&self, query: Query) -> Result<f64, String> {
        self.run_query(query)
            .map_err(format_code)?
            .first_as_float()
            .ok_or_else(|| ABSENT.to_owned())
    }
}

fn read_answer_number(answer: &Answer, place: usize) -> Result<i128, String> {
    match answer {
        Ok(value) => value.number_at(place).ok_or_else(|| ABSENT.to_owned()),
        Err(code) => Err(format_code(*code)),
    }
}

/// The GPU whose block is being written. Each query runs only once.
pub(super) struct Device<'a> {
    pub(super) context: &'a Context<'a>,
    /// The GPU's NVML index.
    pub(super) gpu: u32,
    answers: Cache<(Subject, Query)>,
    release: OnceLock<Release>,
}

impl<'a> Device<'a> {
    pub(super) fn new(context: &'a Context<'a>, gpu: u32) -> Self {
        Self {
            context,
            gpu,
            answers: Cache::default(),
            release: OnceLock::new(),
        }
    }

    pub(super) fn run_query(&self, subject: Subject, query: Query) -> Answer {
        self.answers.get_or_query((subject, query), || {
            self.context.driver.answer_query(subject, query)
        })
    }

    /// Returns a field's ID in the installed driver, or `None` if the driver does not have the
    /// field.
    fn find_field_id(&self, id: u32) -> Option<u32> {
        if self.release() < FIELDS_RENUMBERED {
            find_old_field_id(id)
        } else {
            Some(id)
        }
    }

    pub(super) fn release(&self) -> Release {
        *self.release.get_or_init(|| self.context.release())
    }
}

/// The text that replaces an absent value.
pub(super) const ABSENT: &str = "N/A";

pub(super) fn format_code(code: Code) -> String {
    error_messages::describe_code(code).to_owned()
}

/// Returns the formatted value, or the reason for its absence.
pub(super) fn format_or_reason<T>(
    value: Result<T, String>,
    format: impl FnOnce(T) -> String,
) -> String {
    value.map_or_else(|word| word, format)
}

/// Returns `N/A`, for values that NVML's public interface does not provide.
pub(super) fn format_absent(_: &Cursor<'_>) -> String {
    ABSENT.to_owned()
}

pub(super) fn format_count(number: i128) -> String {
    number.to_string()
}

/// Formats a number, or returns `N/A` if the number is negative or has all 32 bits set.
pub(super) fn format_number_if_valid(number: i128) -> String {
    if number < 0 || number == i128::from(u32::MAX) {
        ABSENT.to_owned()
    } else {
        number.to_string()
    }
}

pub(super) fn format_percent(number: i128) -> String {
    format!("{number} %")
}

pub(super) fn format_celsius(number: i128) -> String {
    format!("{number} C")
}

/// Formats a clock in MHz.
pub(super) fn format_mhz(number: i128) -> String {
    format!("{number} MHz")
}

pub(super) fn format_microseconds(number: i128) -> String {
    format!("{number} us")
}

/// Formats a time in nanoseconds as microseconds.
pub(super) fn format_nanoseconds(number: i128) -> String {
    format_microseconds(number / 1_000)
}

pub(super) fn format_milliseconds(number: i128) -> String {
    format!("{number} ms")
}

/// Formats a rate in KB/s.
pub(super) fn format_kilobytes_per_second(number: i128) -> String {
    format!("{number} KB/s")
}

/// Formats a power in milliwatts as watts.
pub(super) fn format_watts(number: i128) -> String {
    format!("{:.2} W", number as f64 / 1_000.0)
}

/// Formats a number of bytes as MiB, rounded up. Returns `N/A` for -1, which means unknown.
pub(super) fn format_mib(bytes: i128) -> String {
    if bytes < 0 {
        ABSENT.to_owned()
    } else {
        format!("{} MiB", formats::round_up_to_mib(bytes))
    }
}

/// Formats a number of bytes as MiB, rounded down. nvidia-smi does so for the used part of BAR1.
pub(super) fn format_mib_rounded_down(bytes: i128) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Formats a flag as `Enabled` or `Disabled`.
pub(super) fn format_enabled(number: i128) -> String {
    if number == 0 { "Disabled" } else { "Enabled" }.to_owned()
}

/// Formats a flag as `Yes` or `No`.
pub(super) fn format_yes_no(number: i128) -> String {
    if number == 0 { "No" } else { "Yes" }.to_owned()
}

/// Formats a flag as `On` or `Off`.
pub(super) fn format_on_off(number: i128) -> String {
    if number == 0 { "Off" } else { "On" }.to_owned()
}

/// Formats a flag as `Supported` or `Not Supported`.
pub(super) fn format_supported(number: i128) -> String {
    if number == 0 {
        "Not Supported"
    } else {
        "Supported"
    }
    .to_owned()
}

pub(super) fn format_named_number(number: i128, names: &[&str]) -> String {
    usize::try_from(number)
        .ok()
        .and_then(|at| names.get(at))
        .copied()
        .unwrap_or("Unknown")
        .to_owned()
}

// Field IDs that depend on the driver. Driver 580.82 changed the IDs from 251 on.
//
// The tables use the new IDs. In an older driver, these IDs belong to other fields, so they must be
// converted to the old IDs.

/// The first release with the new field IDs.
const FIELDS_RENUMBERED: Release = Release(580, 82);

/// Converts a field's ID to the old ID, or returns `None` if the field did not exist.
fn find_old_field_id(id: u32) -> Option<u32> {
    match id {
        ..251 => Some(id),
        // These are the fields of power smoothing.
        251..=268 => Some(id + 5),
        // These fields count the time for which each reason has reduced the clocks.
        269..=271 => Some(id - 18),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_numbers_of_older_drivers_are_unique() {
        let mut numbers: Vec<_> = (200..300).filter_map(find_old_field_id).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    #[test]
    fn used_bar1_is_rounded_down_unlike_memory() {
        assert_eq!(format_mib(0), "0 MiB");
        assert_eq!(format_mib(1), "1 MiB");
        assert_eq!(format_mib(-1), "N/A");
        assert_eq!(format_mib(1 << 20), "1 MiB");
        assert_eq!(format_mib(0x22_f33f_0000), "143156 MiB");
        assert_eq!(format_mib_rounded_down(0x1a_0000), "1 MiB");
    }

    #[test]
    fn power_has_two_decimals() {
        assert_eq!(format_watts(75_170), "75.17 W");
        assert_eq!(format_watts(700_000), "700.00 W");
    }

    #[test]
    fn unknown_enumerator_is_printed_as_unknown() {
        assert_eq!(format_named_number(1, &["None", "Reset"]), "Reset");
        assert_eq!(format_named_number(2, &["None", "Reset"]), "Unknown");
        assert_eq!(format_named_number(-1, &["None", "Reset"]), "Unknown");
    }
}

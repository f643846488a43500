//! Definitions of the log's items: their titles, XML elements, and values, and the sections that
//! `-d` selects.
//!
//! Definitions do not depend on the output format. Text, XML, and DTD are generated from the same
//! tables, so a new line needs only one entry.

use std::{borrow::Cow, ops::Range};

use gpumon_probe::{
    stat::{Stat, Window},
    vendor::nvml::query::{Query as Q, Value},
};

use super::value::{
    ABSENT, Cursor, format_code, format_mhz, format_or_reason, format_percent, format_watts,
};
use crate::{Refusal, release::Release};

/// A placeholder for an XML element whose name is the title in lower case with underscores.
pub(super) const TITLE_AS_TAG: &str = "=";

/// An item of the log, which is a line, a group, or a list.
pub(super) struct Item {
    /// The item's title in text output. It is empty if only the XML output contains the item.
    pub(super) title: &'static str,
    tag: &'static str,
    pub(super) content: Content,
    /// Two releases: the first whose log contains the item, and the first later one whose log does
    /// not.
    releases: (Release, Release),
    /// An exception: a range of releases whose log does not contain the item.
    except: Range<Release>,
    /// The condition under which the item is shown, or `None` if it is always shown.
    pub(super) when: Option<fn(&Cursor<'_>) -> bool>,
    /// Whether the item is indented one step more than its neighbors. This affects only text
    /// output.
    pub(super) deeper: bool,
    /// Numbers that are appended to the position in the log, such as an error type or a memory
    /// location. The item's values are read with these numbers, so groups that differ only in a
    /// number can share a table.
    pub(super) about: &'static [i128],
    /// The section of `-d` that contains the item.
    pub(super) section: Option<Section>,
    /// Whether text output includes the item without `-d`.
    pub(super) full: bool,
    /// Slow queries that run in the background while other items are written.
    pub(super) ahead: &'static [Q],
}

pub(super) enum Content {
    Value(Source),
    Group(&'static [Item]),
    /// A group of items, or a single word that replaces the group.
    GroupOr(fn(&Cursor<'_>) -> Option<String>, &'static [Item]),
    /// A list whose rows contain items.
    List(&'static List),
    /// Items that are repeated for each row, without a heading or an XML element for the row.
    Each(Rows, &'static [Item]),
    /// An XML element that is declared in the DTD but never written.
    Declared(&'static [Item]),
}

pub(super) enum Source {
    Computed(fn(&Cursor<'_>) -> String),
    /// A formatted number from the answer to a query.
    Number(Q, usize, fn(i128) -> String),
    /// A formatted number from the answer to a query about a MIG device, whose index is the row's
    /// first number.
    PartNumber(Q, usize, fn(i128) -> String),
    /// A formatted number that may have a fractional part.
    Real(Q, fn(f64) -> String),
    /// The text in the answer to a query.
    Text(Q),
}

impl Source {
    pub(super) fn read(&self, at: &Cursor<'_>) -> String {
        match *self {
            Self::Computed(make) => make(at),
            Self::Number(query, place, format) => at.read_formatted(query, place, format),
            Self::PartNumber(query, place, format) => {
                at.read_formatted_mig_number(query, place, format)
            }
            Self::Real(query, format) => format_or_reason(at.read_real(query), format),
            Self::Text(query) => at.read_text(query),
        }
    }
}

/// A function that returns the numbers for each row, or the reason why there are no rows.
pub(super) type Rows = fn(&Cursor<'_>) -> Result<Vec<Vec<i128>>, String>;

/// A list with any number of rows.
pub(super) struct List {
    pub(super) rows: Rows,
    pub(super) tag: &'static str,
    pub(super) items: &'static [Item],
    pub(super) layout: Layout,
}

pub(super) enum Layout {
    /// A single heading above all rows. In text output, values are aligned in the given column, and
    /// a list without rows is shown as `None`. In XML output, a list without rows is an empty
    /// element.
    Under(usize),
    /// A heading for each row. In XML output, rows are written at the same depth as their list, and
    /// a list without rows is written as `None`.
    Headed,
}

impl Item {
    const fn new(title: &'static str, tag: &'static str, content: Content) -> Self {
        let releases = (Release(0, 0), Release(u32::MAX, 0));
        Self {
            title,
            tag,
            content,
            releases,
            except: Release(0, 0)..Release(0, 0),
            when: None,
            deeper: false,
            about: &[],
            section: None,
            full: true,
            ahead: &[],
        }
    }

    /// Returns the name of the XML element. It is empty if the XML output does not contain the
    /// item.
    pub(super) fn tag(&self) -> Cow<'static, str> {
        if self.tag == TITLE_AS_TAG {
            Cow::Owned(self.title.trim().to_lowercase().replace([' ', '-'], "_"))
        } else {
            Cow::Borrowed(self.tag)
        }
    }

    /// Returns `true` if the log of `release` contains the item.
    pub(super) fn is_in_release(&self, release: Release) -> bool {
        self.releases.0 <= release && release < self.releases.1 && !self.except.contains(&release)
    }

    /// Returns `true` if the item is shown at the given position.
    pub(super) fn is_shown(&self, at: &Cursor<'_>) -> bool {
        self.is_in_release(at.device.release()) && self.when.is_none_or(|holds| holds(at))
    }

    /// Limits the item to `release` and later releases.
    pub(super) const fn show_since_release(mut self, release: Release) -> Self {
        self.releases.0 = release;
        self
    }

    /// Limits the item to releases before `release`.
    pub(super) const fn show_before_release(mut self, release: Release) -> Self {
        self.releases.1 = release;
        self
    }

    /// Excludes the item from a range of releases.
    pub(super) const fn hide_in_releases(mut self, except: Range<Release>) -> Self {
        self.except = except;
        self
    }

    /// Shows the item only if the condition is met.
    pub(super) const fn show_when(mut self, when: fn(&Cursor<'_>) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Indents the item one step more in text output.
    pub(super) const fn indent_deeper(mut self) -> Self {
        self.deeper = true;
        self
    }

    /// Appends numbers to the position at which the item's values are read.
    pub(super) const fn with_position_numbers(mut self, about: &'static [i128]) -> Self {
        self.about = about;
        self
    }

    /// Includes the item in a section of `-d`.
    pub(super) const fn show_in_section(mut self, section: Section) -> Self {
        self.section = Some(section);
        self
    }

    /// Shows the item in text output only with the given section of `-d`.
    pub(super) const fn show_only_in_section(mut self, section: Section) -> Self {
        self.section = Some(section);
        self.full = false;
        self
    }

    /// Sets the slow queries that the item needs.
    pub(super) const fn with_slow_queries(mut self, ahead: &'static [Q]) -> Self {
        self.ahead = ahead;
        self
    }
}

pub(super) const fn computed_item(
    title: &'static str,
    tag: &'static str,
    make: fn(&Cursor<'_>) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Computed(make)))
}

pub(super) const fn number_item(
    title: &'static str,
    tag: &'static str,
    query: Q,
    place: usize,
    format: fn(i128) -> String,
) -> Item {
    Item::new(
        title,
        tag,
        Content::Value(Source::Number(query, place, format)),
    )
}

/// Defines a line with a number from the answer to a query about a MIG device.
pub(super) const fn mig_number_item(
    title: &'static str,
    tag: &'static str,
    query: Q,
    place: usize,
    format: fn(i128) -> String,
) -> Item {
    Item::new(
        title,
        tag,
        Content::Value(Source::PartNumber(query, place, format)),
    )
}

pub(super) const fn field_item(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(i128) -> String,
) -> Item {
    number_item(title, tag, Q::Field(id, 0), 0, format)
}

pub(super) const fn real_item(
    title: &'static str,
    tag: &'static str,
    query: Q,
    format: fn(f64) -> String,
) -> Item {
    Item::new(title, tag, Content::Value(Source::Real(query, format)))
}

pub(super) const fn text_item(title: &'static str, tag: &'static str, query: Q) -> Item {
    Item::new(title, tag, Content::Value(Source::Text(query)))
}

pub(super) const fn group_item(
    title: &'static str,
    tag: &'static str,
    items: &'static [Item],
) -> Item {
    Item::new(title, tag, Content::Group(items))
}

/// Defines a group of items. If `word` returns a text, a line with this text replaces the group.
pub(super) const fn replaceable_group_item(
    title: &'static str,
    tag: &'static str,
    word: fn(&Cursor<'_>) -> Option<String>,
    items: &'static [Item],
) -> Item {
    Item::new(title, tag, Content::GroupOr(word, items))
}

pub(super) const fn list_item(title: &'static str, tag: &'static str, list: &'static List) -> Item {
    Item::new(title, tag, Content::List(list))
}

pub(super) const fn row_items(rows: Rows, items: &'static [Item]) -> Item {
    Item::new("", "", Content::Each(rows, items))
}

/// Defines an XML element that is declared in the DTD but never written.
pub(super) const fn dtd_only_item(tag: &'static str, items: &'static [Item]) -> Item {
    Item::new("", tag, Content::Declared(items))
}

// The sections of the text output that `-d` selects.

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

// Summaries of the samples that the driver keeps for several seconds. They appear only in text
// output, and only with `-d`.

/// Defines a summary of the samples with the given `nvmlSamplingType_t`.
pub(super) const fn samples_item(title: &'static str, kind: &'static [i128]) -> Item {
    group_item(title, "", SAMPLE_ITEMS).with_position_numbers(kind)
}

/// The sampling type `NVML_TOTAL_POWER_SAMPLES`, in milliwatts.
const POWER_SAMPLES: i128 = 0;
/// The sampling types `NVML_PROCESSOR_CLK_SAMPLES` and `NVML_MEMORY_CLK_SAMPLES`, in MHz.
const CLOCK_SAMPLES: [i128; 2] = [5, 6];

static SAMPLE_ITEMS: &[Item] = &[
    computed_item("Duration", "", |at| {
        format_sample_summary(at, |_, kept| {
            format!("{:.2} sec", (kept.times.max - kept.times.min) / 1e6)
        })
    }),
    computed_item("Number of Samples", "", |at| {
        format_sample_summary(at, |_, kept| kept.count.to_string())
    }),
    computed_item("Max", "", |at| {
        format_sample_summary(at, |at, kept| format_in_unit(at, kept.values.max))
    }),
    computed_item("Min", "", |at| {
        format_sample_summary(at, |at, kept| format_in_unit(at, kept.values.min))
    }),
    computed_item("Avg", "", |at| {
        format_sample_summary(at, |at, kept| format_in_unit(at, kept.values.mean))
    }),
];

/// The samples' times in microseconds, and their values.
struct SampleSummary {
    count: usize,
    times: Stat,
    values: Stat,
}

/// Formats a summary of the samples, or the reason why there are none.
fn format_sample_summary(
    at: &Cursor<'_>,
    format: fn(&Cursor<'_>, &SampleSummary) -> String,
) -> String {
    let flat: Vec<f64> = match at.run_query(Q::Samples(at.argument_at(0), 0)) {
        Ok(Value::Numbers(numbers)) => numbers.into_iter().map(|number| number as f64).collect(),
        Ok(Value::Reals(reals)) => reals,
        Ok(Value::Text(_)) => Vec::new(),
        Err(code) => return format_code(code),
    };
    let all = flat.as_chunks().0;
    let stat = |place: usize| {
        let numbers = all.iter().map(|sample: &[f64; 2]| sample[place]);
        numbers.collect::<Window>().stat()
    };
    match (stat(0), stat(1)) {
        (Some(times), Some(values)) => {
            let count = all.len();
            format(
                at,
                &SampleSummary {
                    count,
                    times,
                    values,
                },
            )
        }
        _ => ABSENT.to_owned(),
    }
}

/// Formats a value in the unit of its sampling type. The value is truncated to an integer.
fn format_in_unit(at: &Cursor<'_>, value: f64) -> String {
    let whole = value as i128;
    match at.number_at(0) {
        POWER_SAMPLES => format_watts(whole),
        kind if CLOCK_SAMPLES.contains(&kind) => format_mhz(whole),
        _ => format_percent(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_section_names_ignore_case() {
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

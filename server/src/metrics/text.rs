//! Prometheus' text format (version 0.0.4) and `OpenMetrics` 1.0: families of series with their
//! help and type.
//!
//! The client library for Rust is not used, because it appends `_total` to all counters, which the
//! names of dcgm-exporter do not have.

use std::fmt::Write;

use gpumon_probe::model::fields;

use super::scrape::yes;

/// The units that names can end with. Longer ones come first: `_per_second` is a different unit
/// from `_second`.
const UNITS: [&str; 8] = [
    "bytes_per_second",
    "bytes",
    "ratio",
    "watts",
    "joules",
    "celsius",
    "hertz",
    "seconds",
];

/// The limit up to which integers are written without an exponent or fraction.
const MOST_WHOLE: f64 = 1e15;

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    OpenMetrics,
}

impl Format {
    /// Returns the value of `Content-Type`.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Gauge,
    Counter,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}

impl From<fields::Kind> for Kind {
    fn from(kind: fields::Kind) -> Self {
        match kind {
            fields::Kind::Counter => Self::Counter,
            fields::Kind::Gauge | fields::Kind::State => Self::Gauge,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    format: Format,
    /// The name, type and help of every family for the reference page, including families without
    /// series.
    #[cfg(test)]
    pub(super) families: Vec<(String, &'static str, String)>,
}

/// A family of a page. Its head is written before its first series, so that a family without series
/// writes nothing.
pub(super) struct Family<'a> {
    page: &'a mut String,
    format: Format,
    name: &'a str,
    kind: Kind,
    help: &'a str,
    has_head: bool,
}

pub(super) type Label<'a> = (&'a str, &'a str);

/// Labels in their text form, which is written once for all series with these labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels(String);

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Starts a family. Each name may have only one on a page.
    pub(super) fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &'a str) -> Family<'a> {
        #[cfg(test)]
        self.families
            .push((name.to_owned(), kind.word(), help.to_owned()));
        Family {
            page: &mut self.text,
            format: self.format,
            name,
            kind,
            help,
            has_head: false,
        }
    }

    /// Adds a family with one series without labels.
    pub(super) fn add_single(&mut self, name: &str, kind: Kind, help: &str, value: Option<f64>) {
        self.family(name, kind, help)
            .add(&Labels::default(), &[], value);
    }

    pub(super) fn into_text(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_> {
    /// Adds a series. Without a value, no series is added, rather than one of 0.
    pub(super) fn add(&mut self, labels: &Labels, rest: &[Label<'_>], value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        if !self.has_head {
            self.has_head = true;
            self.write_head();
        }
        self.page.push_str(self.name);
        let start = self.page.len();
        self.page.push('{');
        self.page.push_str(&labels.0);
        for label in rest {
            push_label(self.page, start + 1, *label);
        }
        if self.page.len() > start + 1 {
            self.page.push('}');
        } else {
            self.page.truncate(start);
        }
        // Writing to a string cannot fail.
        let _ = if value.fract() == 0.0 && value.abs() < MOST_WHOLE {
            writeln!(self.page, " {}", value as i64)
        } else {
            writeln!(self.page, " {value}")
        };
    }

    /// Adds a series for each state: 1 if it applies, otherwise 0.
    pub(super) fn add_states(
        &mut self,
        labels: &Labels,
        name: &str,
        states: impl IntoIterator<Item = (impl AsRef<str>, bool)>,
    ) {
        for (state, is) in states {
            self.add(labels, &[(name, state.as_ref())], Some(yes(is)));
        }
    }

    fn write_head(&mut self) {
        let (kind, help) = (self.kind.word(), self.help);
        let _ = match self.format {
            Format::Text => writeln!(
                self.page,
                "# HELP {0} {1}\n# TYPE {0} {kind}",
                self.name,
                escaped(help, false)
            ),
            Format::OpenMetrics => {
                // The family of a counter has the name without the suffix of its series.
                let name = self.name.strip_suffix("_total").unwrap_or(self.name);
                let unit = UNITS.iter().find(|unit| {
                    name.strip_suffix(**unit)
                        .is_some_and(|name| name.ends_with('_'))
                });
                let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
                writeln!(
                    self.page,
                    "# TYPE {name} {kind}\n{unit}# HELP {name} {}",
                    escaped(help, true)
                )
            }
        };
    }
}

impl Labels {
    /// Returns the labels that have a value.
    pub(super) fn new<'a>(labels: impl IntoIterator<Item = Label<'a>>) -> Self {
        let mut text = String::new();
        labels
            .into_iter()
            .for_each(|label| push_label(&mut text, 0, label));
        Self(text)
    }

    /// Returns these labels followed by the others.
    pub(super) fn and(&self, rest: &Self) -> Self {
        let separator = if self.is_empty() || rest.is_empty() {
            ""
        } else {
            ","
        };
        Self([self.0.as_str(), separator, &rest.0].concat())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a label to those that begin at `start`.
fn push_label(text: &mut String, start: usize, (name, value): Label<'_>) {
    if value.is_empty() {
        return;
    }
    if text.len() > start {
        text.push(',');
    }
    text.push_str(name);
    text.push_str("=\"");
    if value
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"'))
    {
        text.push_str(value);
    } else {
        text.push_str(&escaped(value, true));
    }
    text.push('"');
}

/// Escapes backslashes and line ends, and quotation marks in labels. Other control characters are
/// replaced, because people read the text in a terminal.
fn escaped(text: &str, quoted: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str(r"\\"),
            '\n' => escaped.push_str(r"\n"),
            '"' if quoted => escaped.push_str("\\\""),
            control if control.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        let none = Labels::default();
        let mut family = page.family("a_ratio", Kind::Gauge, "Back\\slash,\nline and \"word\".");
        family.add(&Labels::new([("gpu", "0"), ("uuid", "")]), &[], Some(0.5));
        family.add(
            &Labels::new([("gpu", "0")]),
            &[("link", ""), ("kind", "b")],
            Some(-2.0),
        );
        family.add(&none, &[], Some(1.0));
        page.family("b_total", Kind::Counter, "None.")
            .add(&none, &[("gpu", "0")], None);
        page.family("c_total", Kind::Counter, "Not a number.").add(
            &none,
            &[("gpu", "0")],
            Some(f64::NAN),
        );
        let mut large = page.family("d_bytes_total", Kind::Counter, "Large.");
        large.add(&none, &[("gpu", "0")], Some(1.5e15));
        large.add(&none, &[("gpu", "1")], Some(1e18));
        page.into_text()
    }

    #[test]
    fn a_family_has_a_head_and_its_series() {
        let expected = "# HELP a_ratio Back\\\\slash,\\nline and \"word\".\n# TYPE a_ratio gauge\na_ratio{gpu=\"0\"} 0.5\n\
                        a_ratio{gpu=\"0\",kind=\"b\"} -2\na_ratio 1\n\
                        # HELP d_bytes_total Large.\n# TYPE d_bytes_total counter\n\
                        d_bytes_total{gpu=\"0\"} 1500000000000000\nd_bytes_total{gpu=\"1\"} 1000000000000000000\n";
        assert_eq!(page(Format::Text), expected);
    }

    #[test]
    fn open_metrics_has_units_the_names_of_families_and_an_end() {
        let expected = "# TYPE a_ratio gauge\n# UNIT a_ratio ratio\n# HELP a_ratio Back\\\\slash,\\nline and \\\"word\\\".\n\
                        a_ratio{gpu=\"0\"} 0.5\na_ratio{gpu=\"0\",kind=\"b\"} -2\na_ratio 1\n\
                        # TYPE d_bytes counter\n# UNIT d_bytes bytes\n# HELP d_bytes Large.\n\
                        d_bytes_total{gpu=\"0\"} 1500000000000000\nd_bytes_total{gpu=\"1\"} 1000000000000000000\n# EOF\n";
        assert_eq!(page(Format::OpenMetrics), expected);
    }

    #[test]
    fn what_a_stranger_chose_as_a_name_cannot_leave_its_label() {
        let mut page = Page::default();
        page.family("a", Kind::Gauge, "A.").add(
            &Labels::default(),
            &[("name", "x\"} 1\nb{y=\"\\")],
            Some(2.0),
        );
        assert_eq!(
            page.into_text().lines().last(),
            Some(r#"a{name="x\"} 1\nb{y=\"\\"} 2"#)
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_reader() {
        let mut page = Page::default();
        let label = ("name", "x\u{1b}[2J\0\r\ty\u{85}");
        page.family("a", Kind::Gauge, "A.")
            .add(&Labels::default(), &[label], Some(2.0));
        let text = page.into_text();
        assert!(
            text.ends_with("a{name=\"x\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}y\u{fffd}\"} 2\n"),
            "{text:?}"
        );
    }
}

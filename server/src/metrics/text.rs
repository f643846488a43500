//! Prometheus' text format (version 0.0.4) and OpenMetrics 1.0: families of series with their help
//! text and type, and the choice of the format for a client.
//!
//! The Rust client library is not used, because it appends `_total` to all counters, but
//! dcgm-exporter's counters do not have this suffix.

use std::fmt::Write;

use axum::http::{HeaderMap, header};
use gpumon_probe::model::fields;

use super::scrape::to_flag;

/// The units that a metric's name can end with. `bytes_per_second` is a separate unit.
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
const MAX_INTEGER: f64 = 1e15;

/// The format of a metrics page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    OpenMetrics,
}

impl Format {
    /// Returns the value of the `Content-Type` header.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum SeriesKind {
    Gauge,
    Counter,
}

impl SeriesKind {
    fn type_name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}

impl From<fields::Kind> for SeriesKind {
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
    /// The name, type and help text of every family, including families without series, for the
    /// reference page.
    #[cfg(test)]
    pub(super) families: Vec<(String, &'static str, String)>,
}

/// A metric family of a page. Its header is written before its first series, so that a family
/// without series writes nothing.
pub(super) struct Family<'a> {
    page: &'a mut String,
    format: Format,
    name: &'a str,
    kind: SeriesKind,
    help: &'a str,
    has_head: bool,
}

pub(super) type Label<'a> = (&'a str, &'a str);

/// Labels in text form, which all series with these labels share.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels(String);

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Starts a family. A page may contain only one family with a given name.
    pub(super) fn start_family<'a>(
        &'a mut self,
        name: &'a str,
        kind: SeriesKind,
        help: &'a str,
    ) -> Family<'a> {
        #[cfg(test)]
        self.families
            .push((name.to_owned(), kind.type_name(), help.to_owned()));
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
    pub(super) fn add_single_series(
        &mut self,
        name: &str,
        kind: SeriesKind,
        help: &str,
        value: Option<f64>,
    ) {
        self.start_family(name, kind, help)
            .add_series(&Labels::default(), &[], value);
    }

    pub(super) fn into_text(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_> {
    /// Adds a series. If `value` is `None`, no series is added, rather than one with the value 0.
    pub(super) fn add_series(&mut self, labels: &Labels, rest: &[Label<'_>], value: Option<f64>) {
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
        // Writing to a string cannot fail, so the result is ignored.
        let _ = if value.fract() == 0.0 && value.abs() < MAX_INTEGER {
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
            self.add_series(labels, &[(name, state.as_ref())], Some(to_flag(is)));
        }
    }

    fn write_head(&mut self) {
        let (kind, help) = (self.kind.type_name(), self.help);
        let _ = match self.format {
            Format::Text => writeln!(
                self.page,
                "# HELP {0} {1}\n# TYPE {0} {kind}",
                self.name,
                escape_text(help, false)
            ),
            Format::OpenMetrics => {
                // In OpenMetrics, the name of a counter's family lacks the suffix `_total` that the
                // names of its series have.
                let name = self.name.strip_suffix("_total").unwrap_or(self.name);
                let unit = UNITS.iter().find(|unit| {
                    name.strip_suffix(**unit)
                        .is_some_and(|name| name.ends_with('_'))
                });
                let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
                writeln!(
                    self.page,
                    "# TYPE {name} {kind}\n{unit}# HELP {name} {}",
                    escape_text(help, true)
                )
            }
        };
    }
}

impl Labels {
    /// Creates labels. Labels with an empty value are left out.
    pub(super) fn new<'a>(labels: impl IntoIterator<Item = Label<'a>>) -> Self {
        let mut text = String::new();
        labels
            .into_iter()
            .for_each(|label| push_label(&mut text, 0, label));
        Self(text)
    }

    /// Returns these labels followed by the labels of `rest`.
    pub(super) fn join(&self, rest: &Self) -> Self {
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

/// Appends a label to the labels that begin at byte `start` of `text`, unless the label's value is
/// empty.
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
        text.push_str(&escape_text(value, true));
    }
    text.push('"');
}

/// Escapes backslashes and line ends and, in labels, quotation marks. Other control characters are
/// replaced, because people read the text in terminals.
fn escape_text(text: &str, quoted: bool) -> String {
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

/// Returns the format for a client (RFC 9110, section 12.5.1): `OpenMetrics` if the client accepts
/// it with at least the same weight as the text format, as Prometheus does.
pub(super) fn choose_format(headers: &HeaderMap) -> Format {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let (mut open_metrics, mut text) = (0.0, 0.0);
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut version) = (1.0, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim_end().to_ascii_lowercase().as_str() {
                // An invalid weight counts as 0.
                "q" => weight = value.trim().parse::<f32>().unwrap_or(0.0),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match (media_type.as_str(), version) {
            ("application/openmetrics-text", None | Some("1.0.0")) => {
                open_metrics = weight.max(open_metrics);
            }
            ("text/plain", _) => text = weight.max(text),
            _ => {}
        }
    }
    if open_metrics > 0.0 && open_metrics >= text {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_page(format: Format) -> String {
        let mut page = Page::new(format);
        let none = Labels::default();
        let mut family = page.start_family(
            "a_ratio",
            SeriesKind::Gauge,
            "Back\\slash,\nline and \"word\".",
        );
        family.add_series(&Labels::new([("gpu", "0"), ("uuid", "")]), &[], Some(0.5));
        family.add_series(
            &Labels::new([("gpu", "0")]),
            &[("link", ""), ("kind", "b")],
            Some(-2.0),
        );
        family.add_series(&none, &[], Some(1.0));
        page.start_family("b_total", SeriesKind::Counter, "None.")
            .add_series(&none, &[("gpu", "0")], None);
        page.start_family("c_total", SeriesKind::Counter, "Not a number.")
            .add_series(&none, &[("gpu", "0")], Some(f64::NAN));
        let mut large = page.start_family("d_bytes_total", SeriesKind::Counter, "Large.");
        large.add_series(&none, &[("gpu", "0")], Some(1.5e15));
        large.add_series(&none, &[("gpu", "1")], Some(1e18));
        page.into_text()
    }

    #[test]
    fn metric_family_has_header_and_series() {
        let expected = "# HELP a_ratio Back\\\\slash,\\nline and \"word\".\n# TYPE a_ratio \
                        gauge\na_ratio{gpu=\"0\"} 0.5\na_ratio{gpu=\"0\",kind=\"b\"} -2\na_ratio \
                        1\n# HELP d_bytes_total Large.\n# TYPE d_bytes_total \
                        counter\nd_bytes_total{gpu=\"0\"} \
                        1500000000000000\nd_bytes_total{gpu=\"1\"} 1000000000000000000\n";
        assert_eq!(render_page(Format::Text), expected);
    }

    #[test]
    fn open_metrics_page_has_units_and_eof_marker() {
        let expected = "# TYPE a_ratio gauge\n# UNIT a_ratio ratio\n# HELP a_ratio \
                        Back\\\\slash,\\nline and \\\"word\\\".\na_ratio{gpu=\"0\"} \
                        0.5\na_ratio{gpu=\"0\",kind=\"b\"} -2\na_ratio 1\n# TYPE d_bytes \
                        counter\n# UNIT d_bytes bytes\n# HELP d_bytes \
                        Large.\nd_bytes_total{gpu=\"0\"} \
                        1500000000000000\nd_bytes_total{gpu=\"1\"} 1000000000000000000\n# EOF\n";
        assert_eq!(render_page(Format::OpenMetrics), expected);
    }

    #[test]
    fn label_value_cannot_leave_its_quotes() {
        let mut page = Page::default();
        page.start_family("a", SeriesKind::Gauge, "A.").add_series(
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
        page.start_family("a", SeriesKind::Gauge, "A.").add_series(
            &Labels::default(),
            &[label],
            Some(2.0),
        );
        let text = page.into_text();
        assert!(
            text.ends_with("a{name=\"x\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}y\u{fffd}\"} 2\n"),
            "{text:?}"
        );
    }
}

#[cfg(test)]
mod format_choice_tests {
    use axum::http::HeaderValue;

    use super::*;

    fn choose_format_for(accept: &'static str) -> Format {
        choose_format(&HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_static(accept),
        )]))
    }

    #[test]
    fn open_metrics_is_sent_on_request() {
        for accept in [
            // The first two headers are sent by Prometheus 2.42 and 3.5.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=1.0.0 ; Q=0.2",
        ] {
            assert_eq!(choose_format_for(accept), Format::OpenMetrics, "{accept}");
        }
    }

    #[test]
    fn text_format_is_the_default() {
        for accept in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "text/plain;version=0.0.4",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.3,text/plain;q=0.5",
        ] {
            assert_eq!(choose_format_for(accept), Format::Text, "{accept}");
        }
        assert_eq!(choose_format(&HeaderMap::new()), Format::Text);
    }
}

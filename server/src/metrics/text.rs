//! Prometheus' text format (version 0.0.4): families of series, each with its help and type.
//!
//! Written by hand, since the client library for Rust appends `_total` to every counter, and the names of dcgm-exporter
//! have no such ending.

use std::fmt::Write;

use gpumon_probe::model::fields;

/// What the format is called in `Content-Type`.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

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
    /// Name, type and help of every family, also of those without a series; the reference page lists them.
    #[cfg(test)]
    pub(super) families: Vec<(String, &'static str, String)>,
}

/// One family of a page. Its head is written with its first series, so that one without any leaves no trace.
pub(super) struct Family<'a> {
    page: &'a mut String,
    name: &'a str,
    kind: Kind,
    help: &'a str,
    has_head: bool,
}

pub(super) type Label<'a> = (&'a str, &'a str);

impl Page {
    /// Begins a family. Each name has one on a page.
    pub(super) fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &'a str) -> Family<'a> {
        #[cfg(test)]
        self.families.push((name.to_owned(), kind.word(), help.to_owned()));
        Family { page: &mut self.text, name, kind, help, has_head: false }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a series, unless there is no value: an absent one is left out, never 0. Labels without a value are, too.
    pub(super) fn add<'l>(&mut self, labels: impl IntoIterator<Item = Label<'l>>, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        if !self.has_head {
            self.has_head = true;
            let kind = self.kind.word();
            let help = escaped(self.help, false);
            // Writing to a string cannot fail.
            let _ = writeln!(self.page, "# HELP {} {help}\n# TYPE {} {kind}", self.name, self.name);
        }
        self.page.push_str(self.name);
        let mut opener = '{';
        for (name, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(self.page, "{opener}{name}=\"{}\"", escaped(value, true));
            opener = ',';
        }
        let closer = if opener == '{' { "" } else { "}" };
        let _ = writeln!(self.page, "{closer} {value}");
    }
}

/// Backslashes and line ends would end the text too early, in a label quotation marks as well. Other control characters
/// have no business in a text that people read in a terminal, too.
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

    #[test]
    fn a_family_has_a_head_and_its_series() {
        let mut page = Page::default();
        let mut family = page.family("a_ratio", Kind::Gauge, "Back\\slash\nand line.");
        family.add([("gpu", "0"), ("uuid", "")], Some(0.5));
        family.add([], Some(1.0));
        page.family("b_total", Kind::Counter, "None.").add([("gpu", "0")], None);
        page.family("c_total", Kind::Counter, "Not a number.").add([("gpu", "0")], Some(f64::NAN));
        page.family("d_total", Kind::Counter, "Large.").add([("gpu", "0")], Some(1.5e15));
        let expected = "# HELP a_ratio Back\\\\slash\\nand line.\n# TYPE a_ratio gauge\na_ratio{gpu=\"0\"} 0.5\na_ratio 1\n\
                        # HELP d_total Large.\n# TYPE d_total counter\nd_total{gpu=\"0\"} 1500000000000000\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn what_a_stranger_chose_as_a_name_cannot_leave_its_label() {
        let mut page = Page::default();
        page.family("a", Kind::Gauge, "A.").add([("name", "x\"} 1\nb{y=\"\\")], Some(2.0));
        assert_eq!(page.into_text().lines().last(), Some(r#"a{name="x\"} 1\nb{y=\"\\"} 2"#));
    }

    #[test]
    fn control_characters_do_not_reach_the_reader() {
        let mut page = Page::default();
        page.family("a", Kind::Gauge, "A.").add([("name", "x\u{1b}[2J\0\r\ty\u{85}")], Some(2.0));
        let text = page.into_text();
        assert!(text.ends_with("a{name=\"x\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}y\u{fffd}\"} 2\n"), "{text:?}");
    }
}

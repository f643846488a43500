//! The names of the values that settings can have.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    super::metrics::{METRICS, default_metrics, key, position},
    Column, Glyphs, RANGES_S, ThemeName, View,
};

/// The value that selects the characters of charts by the terminal.
pub(super) const AUTO: &str = "auto";

/// Returns a parser for these names and their values.
fn one_of<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
    meaning: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(move |name| meaning(&name).ok_or("use a name of the list"))
}

pub(super) fn themes() -> impl TypedValueParser<Value = ThemeName> {
    one_of(ThemeName::ALL.map(ThemeName::id), |id| {
        ThemeName::ALL.into_iter().find(|theme| theme.id() == id)
    })
}

pub(super) fn views() -> impl TypedValueParser<Value = View> {
    one_of(View::ALL.map(View::id), |id| {
        View::ALL.into_iter().find(|view| view.id() == id)
    })
}

pub(super) fn columns() -> impl TypedValueParser<Value = Column> {
    one_of(Column::ALL.map(Column::id), Column::of_id)
}

pub(super) fn written_columns() -> String {
    Column::usual()
        .into_iter()
        .map(Column::id)
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns a parser for metrics, which are positions in `METRICS`.
pub(super) fn metrics() -> impl TypedValueParser<Value = usize> {
    one_of(METRICS.iter().map(|field| key(field)), position)
}

pub(super) fn written_metrics() -> String {
    default_metrics()
        .into_iter()
        .map(|metric| key(METRICS[metric]))
        .collect::<Vec<_>>()
        .join(",")
}

pub(super) fn parse_ranges() -> impl TypedValueParser<Value = u64> {
    PossibleValuesParser::new(RANGES_S.map(|range| range.to_string()))
        .try_map(|text| text.parse::<u64>())
}

pub(super) fn glyph_choices() -> impl TypedValueParser<Value = Option<Glyphs>> {
    let [braille, blocks, ascii] = Glyphs::ALL.map(Glyphs::id);
    PossibleValuesParser::new([AUTO, braille, blocks, ascii])
        .map(|name| Glyphs::ALL.into_iter().find(|glyphs| glyphs.id() == name))
}

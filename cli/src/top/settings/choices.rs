//! Names for the values of settings.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    super::metrics::{METRICS, default_metrics, metric_key, position},
    Column, Glyphs, RANGES_S, ThemeName, View,
};

/// The value that chooses the charts' characters by the terminal's capabilities.
pub(super) const AUTO: &str = "auto";

/// Returns a parser that accepts the given names and converts each with `meaning`.
fn build_name_parser<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
    meaning: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(move |name| meaning(&name).ok_or("use a name from the list"))
}

pub(super) fn theme_parser() -> impl TypedValueParser<Value = ThemeName> {
    build_name_parser(ThemeName::ALL.map(ThemeName::id), |id| {
        ThemeName::ALL.into_iter().find(|theme| theme.id() == id)
    })
}

pub(super) fn view_parser() -> impl TypedValueParser<Value = View> {
    build_name_parser(View::ALL.map(View::id), |id| {
        View::ALL.into_iter().find(|view| view.id() == id)
    })
}

pub(super) fn column_parser() -> impl TypedValueParser<Value = Column> {
    build_name_parser(Column::ALL.map(Column::id), Column::from_id)
}

pub(super) fn default_columns_text() -> String {
    Column::default_columns()
        .into_iter()
        .map(Column::id)
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns a parser for metrics. Its values are positions in `METRICS`.
pub(super) fn metric_parser() -> impl TypedValueParser<Value = usize> {
    build_name_parser(METRICS.iter().map(|field| metric_key(field)), position)
}

pub(super) fn default_metrics_text() -> String {
    default_metrics()
        .into_iter()
        .map(|metric| metric_key(METRICS[metric]))
        .collect::<Vec<_>>()
        .join(",")
}

pub(super) fn range_parser() -> impl TypedValueParser<Value = u64> {
    PossibleValuesParser::new(RANGES_S.map(|range| range.to_string()))
        .try_map(|text| text.parse::<u64>())
}

pub(super) fn glyphs_parser() -> impl TypedValueParser<Value = Option<Glyphs>> {
    let [braille, blocks, ascii] = Glyphs::ALL.map(Glyphs::id);
    PossibleValuesParser::new([AUTO, braille, blocks, ascii])
        .map(|name| Glyphs::ALL.into_iter().find(|glyphs| glyphs.id() == name))
}

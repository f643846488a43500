//! Comparison of text output with snapshots in tests. `INSTA_UPDATE=always` rewrites the snapshots.

use super::line::strip_styles;

/// Compares a report with its snapshot. The snapshot contains the report as printed to a file and
/// to terminals with 120 and 60 columns.
#[track_caller]
pub(crate) fn assert_report_matches_snapshot(name: &str, text: impl Fn(Option<usize>) -> String) {
    let pictures = [None, Some(120), Some(60)].map(|columns| {
        let width = columns.unwrap_or(40);
        let ruler = columns.map_or_else(|| "file".to_owned(), |columns| columns.to_string());
        format!("{ruler:=<width$}\n{}", strip_styles(&text(columns)))
    });
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, pictures.join("\n"));
    });
}

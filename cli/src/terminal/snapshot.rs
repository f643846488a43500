//! Snapshots of text output in tests. `INSTA_UPDATE=always` rewrites them.

use super::style::plain;

/// Compares a report with its snapshot, as printed to a file and to terminals of 120 and 60
/// columns.
#[track_caller]
pub(crate) fn compare_report(name: &str, text: impl Fn(Option<usize>) -> String) {
    let pictures = [None, Some(120), Some(60)].map(|columns| {
        let width = columns.unwrap_or(40);
        let ruler = columns.map_or_else(|| "file".to_owned(), |columns| columns.to_string());
        format!("{ruler:=<width$}\n{}", plain(&text(columns)))
    });
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, pictures.join("\n"));
    });
}

//! Snapshots of texts in tests. `INSTA_UPDATE=always` writes them anew.

use super::style::plain;

/// Compares the whole text of a report with its snapshot: into a file, and on a terminal of 120 and
/// of 60 columns.
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

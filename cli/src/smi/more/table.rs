//! Tables in a frame.

/// A table: the lines of its heading, and groups of lines below it, with a rule under each group.
pub(super) fn framed(width: usize, heading: &[&str], groups: &[Vec<String>]) -> String {
    let rule = format!("+{}+\n", "-".repeat(width));
    let line = |text: &str| format!("|{text:<width$}|\n");
    let mut table = rule.clone();
    for text in heading {
        table.push_str(&line(text));
    }
    table.push_str(&format!("|{}|\n", "=".repeat(width)));
    for group in groups {
        for text in group {
            table.push_str(&line(text));
        }
        table.push_str(&rule);
    }
    table
}

//! Tables in a frame.

/// A table: the lines of its heading, and groups of lines below it, with a rule under each group.
pub(super) fn framed(width: usize, heading: &[&str], groups: &[Vec<String>]) -> String {
    let rule = format!("+{}+\n", "-".repeat(width));
    let line = |text: &str| format!("|{text:<width$}|\n");
    let heading = heading
        .iter()
        .map(|text| line(text))
        .collect::<Vec<_>>()
        .concat();
    let double_rule = format!("|{}|\n", "=".repeat(width));
    let groups: Vec<String> = groups
        .iter()
        .map(|group| {
            let lines: Vec<String> = group.iter().map(|text| line(text)).collect();
            lines.concat() + &rule
        })
        .collect();
    format!("{rule}{heading}{double_rule}{}", groups.concat())
}

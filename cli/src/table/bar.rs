//! A horizontal bar.

/// `share` of 1 as a bar of so many columns: eighths of a block where those can be shown, `#` and `.` elsewhere.
///
/// What is more than nothing shows as at least the smallest step, and what is less than all never fills the bar.
pub(super) fn bar(share: f64, columns: usize, rich: bool) -> (String, String) {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let per_column = if rich { 8 } else { 1 };
    let steps = columns * per_column;
    let share = share.clamp(0.0, 1.0);
    let mut filled = (share * steps as f64).round() as usize;
    if share > 0.0 {
        filled = filled.max(1);
    }
    if share < 1.0 {
        filled = filled.min(steps.saturating_sub(1));
    }
    if rich {
        let (whole, rest) = (filled / 8, EIGHTHS[filled % 8]);
        let used = whole + usize::from(!rest.is_empty());
        ("█".repeat(whole) + rest, "░".repeat(columns - used))
    } else {
        ("#".repeat(filled), ".".repeat(columns - filled))
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_bar_is_always_as_wide_as_asked() {
        for rich in [false, true] {
            for columns in [1, 7, 30] {
                for step in 0..=100 {
                    let (full, empty) = bar(f64::from(step) / 100.0, columns, rich);
                    assert_eq!(full.width() + empty.width(), columns, "{step} % of {columns}");
                }
            }
        }
    }

    #[test]
    fn only_nothing_is_empty_and_only_all_is_full() {
        assert_eq!(bar(0.0, 10, false).0, "");
        assert_eq!(bar(0.001, 10, false).0, "#");
        assert_eq!(bar(0.999, 10, false).1, ".");
        assert_eq!(bar(1.0, 10, false).1, "");
    }
}

//! A horizontal bar.

/// `share` of 1 as the full and the empty part of a bar of so many columns: a heavy and a light line with half steps
/// where those can be shown, `#` and `.` elsewhere.
///
/// What is more than nothing shows as at least the smallest step, and what is less than all never fills the bar.
pub(crate) fn bar(share: f64, columns: usize, rich: bool) -> (String, String) {
    let steps_per_column = if rich { 2 } else { 1 };
    let steps = columns * steps_per_column;
    let share = share.clamp(0.0, 1.0);
    let mut filled = (share * steps as f64).round() as usize;
    if share > 0.0 {
        filled = filled.max(1);
    }
    if share < 1.0 {
        filled = filled.min(steps.saturating_sub(1));
    }
    if rich {
        let (whole, half) = (filled / 2, filled % 2);
        (
            "━".repeat(whole) + &"╸".repeat(half),
            "─".repeat(columns - whole - half),
        )
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
                    assert_eq!(
                        full.width() + empty.width(),
                        columns,
                        "{step} % of {columns}"
                    );
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

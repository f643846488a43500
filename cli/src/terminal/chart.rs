//! Bars and small curves in a line of text.

use gpumon_probe::stat::Window;

/// `share` of 1 as the full and the empty part of a bar of so many columns: a heavy and a light line with half steps
/// where those can be shown, `#` and `.` elsewhere.
///
/// What is more than nothing shows as at least the smallest step, and what is less than all never fills the bar.
pub(crate) fn draw_bar(share: f64, columns: usize, rich: bool) -> (String, String) {
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

/// One column per equal part of the time up to `now_ms`: the mean of its values, from 0 to `full`. A part without a value
/// is blank.
pub(crate) fn draw_spark(
    values: &[(u64, f64)],
    now_ms: u64,
    span_ms: u64,
    columns: usize,
    full: f64,
    rich: bool,
) -> String {
    let mut parts = vec![Window::default(); columns];
    for (at_ms, value) in values {
        let age_ms = now_ms.saturating_sub(*at_ms);
        if age_ms < span_ms {
            let part = columns - 1 - (age_ms * columns as u64 / span_ms) as usize;
            parts[part].add(*value, 1.0);
        }
    }
    let level = |part: &Window| part.mean().map(|mean| (mean / full).clamp(0.0, 1.0));
    let steps: &[char] = if rich {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &['_', '.', '-', '=', '^']
    };
    // What is more than nothing stands above the line.
    let step = |share: f64| {
        let step = (share * (steps.len() - 1) as f64).round() as usize;
        steps[if share > 0.005 { step.max(1) } else { step }]
    };
    parts
        .iter()
        .map(|part| level(part).map_or(' ', step))
        .collect()
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
                    let (full, empty) = draw_bar(f64::from(step) / 100.0, columns, rich);
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
        assert_eq!(draw_bar(0.0, 10, false).0, "");
        assert_eq!(draw_bar(0.001, 10, false).0, "#");
        assert_eq!(draw_bar(0.999, 10, false).1, ".");
        assert_eq!(draw_bar(1.0, 10, false).1, "");
    }

    #[test]
    fn each_column_is_the_mean_of_its_time_and_a_gap_is_blank() {
        let values = [
            (1_000, 0.0),
            (2_000, 0.0),
            (21_000, 100.0),
            (31_000, 100.0),
            (36_000, 0.0),
            (39_000, 2.0),
        ];
        assert_eq!(draw_spark(&values, 40_000, 40_000, 4, 100.0, true), "▁ █▃");
        assert_eq!(draw_spark(&values, 40_000, 40_000, 4, 100.0, false), "_ ^.");
    }

    #[test]
    fn what_is_too_old_is_not_shown_and_what_is_little_is_not_nothing() {
        assert_eq!(
            draw_spark(
                &[(1_000, 50.0), (99_000, 1.0)],
                100_000,
                60_000,
                2,
                100.0,
                true
            ),
            " ▂"
        );
        assert_eq!(draw_spark(&[], 0, 60_000, 3, 100.0, true), "   ");
    }
}

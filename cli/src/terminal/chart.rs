//! Bars and small curves in a line of text.

use gpumon_probe::stat::Window;

/// Returns the full and the empty part of a bar: a heavy and a light line with half steps if the
/// terminal can show them (`rich`), otherwise `#` and `.`. `share` is between 0 and 1.
///
/// A share above 0 has at least the smallest step, and a share below 1 never fills the bar.
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

/// Returns a curve with one column per equal part of the time before `now_ms`: the mean of its
/// values, from 0 to `full`. A part without a value is blank.
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
    // A share above 0 is above the base line.
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
    fn bar_has_its_width() {
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
    fn bar_is_empty_at_nothing_full_at_all() {
        assert_eq!(draw_bar(0.0, 10, false).0, "");
        assert_eq!(draw_bar(0.001, 10, false).0, "#");
        assert_eq!(draw_bar(0.999, 10, false).1, ".");
        assert_eq!(draw_bar(1.0, 10, false).1, "");
    }

    #[test]
    fn column_is_mean_and_gap_is_blank() {
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
    fn old_values_are_left_out_small_ones_shown() {
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

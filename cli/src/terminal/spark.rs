//! A small curve in a line of text.

use gpumon_probe::stat::Window;

/// One column per equal part of the time up to `now_ms`: the mean of its values, from 0 to `full`. A part without a value
/// is blank.
pub(crate) fn spark(
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
    use super::*;

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
        assert_eq!(spark(&values, 40_000, 40_000, 4, 100.0, true), "▁ █▃");
        assert_eq!(spark(&values, 40_000, 40_000, 4, 100.0, false), "_ ^.");
    }

    #[test]
    fn what_is_too_old_is_not_shown_and_what_is_little_is_not_nothing() {
        assert_eq!(
            spark(
                &[(1_000, 50.0), (99_000, 1.0)],
                100_000,
                60_000,
                2,
                100.0,
                true
            ),
            " ▂"
        );
        assert_eq!(spark(&[], 0, 60_000, 3, 100.0, true), "   ");
    }
}

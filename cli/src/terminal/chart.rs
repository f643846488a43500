//! Reduction of values over time to one value per column of a chart.

use gpumon_probe::stat::Window;

/// Divides the last `span_ms` before `now_ms` into `columns` equal parts, and returns the mean
/// value of each part. Parts without values are `None`.
pub(crate) fn average_by_column(
    values: &[(u64, f64)],
    now_ms: u64,
    span_ms: u64,
    columns: usize,
) -> Vec<Option<f64>> {
    let mut parts = vec![Window::default(); columns];
    for (at_ms, value) in values {
        let age_ms = now_ms.saturating_sub(*at_ms);
        if age_ms < span_ms && columns > 0 {
            let part = columns - 1 - (age_ms * columns as u64 / span_ms) as usize;
            parts[part].add(*value, 1.0);
        }
    }
    parts.iter().map(Window::mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_column_shows_mean_and_gap_stays_empty() {
        let values = [
            (1_000, 0.0),
            (2_000, 0.0),
            (21_000, 100.0),
            (31_000, 100.0),
            (36_000, 0.0),
            (39_000, 2.0),
        ];
        assert_eq!(
            average_by_column(&values, 40_000, 40_000, 4),
            [Some(0.0), None, Some(100.0), Some(34.0)]
        );
    }

    #[test]
    fn values_before_span_are_ignored() {
        let values = [(1_000, 50.0), (99_000, 1.0)];
        assert_eq!(
            average_by_column(&values, 100_000, 60_000, 2),
            [None, Some(1.0)]
        );
        assert_eq!(average_by_column(&values, 100_000, 60_000, 0), []);
    }
}

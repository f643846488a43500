//! Statistics over repeated measurements.

use crate::protocol::Times;

/// Summarizes times. Returns `None` if there are no times.
pub(crate) fn summarize_times(times_us: impl IntoIterator<Item = f64>) -> Option<Times> {
    let mut sorted: Vec<f64> = times_us.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let (first, _) = (sorted.first()?, sorted.last()?);
    let rank = median_rank(n);
    Some(Times {
        median_us: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
        low_us: sorted[rank],
        high_us: sorted[n - 1 - rank],
        p5_us: interpolate_quantile(&sorted, 0.05),
        p95_us: interpolate_quantile(&sorted, 0.95),
        min_us: *first,
        n,
    })
}

/// Returns the standard deviation divided by the mean, or `None` if there are fewer than two times.
pub(crate) fn relative_deviation(times_us: &[f64]) -> Option<f64> {
    let n = times_us.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = times_us.iter().sum::<f64>() / n;
    let variance = times_us
        .iter()
        .map(|time| (time - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

/// Returns the index of the lower end of the median's 95 % confidence interval in a sorted list of
/// `n` values. The upper end has the same index counted from the end of the list.
///
/// Each value is below the median with a probability of one half, whatever the distribution. The
/// number of values below the median therefore has a binomial distribution. If there are too few
/// values for 95 %, the interval covers all of them.
fn median_rank(n: usize) -> usize {
    // For more than 200 values, the binomial distribution is close to the normal distribution.
    if n > 200 {
        let n = n as f64;
        return ((n - 1.96 * n.sqrt()) / 2.0).floor() as usize;
    }
    let mut probability = 0.5_f64.powf(n as f64);
    let (mut below, mut rank) = (probability, 0);
    while below <= 0.025 {
        rank += 1;
        probability *= (n - rank + 1) as f64 / rank as f64;
        below += probability;
    }
    rank.saturating_sub(1)
}

/// Returns a quantile, interpolated between the two nearest values.
fn interpolate_quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + part * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_ranks_match_textbook_tables() {
        // The ranks of the lower end of the 95 % interval are those of textbook tables, which start
        // at 1.
        for (n, rank) in [
            (5, 1),
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (15, 4),
            (20, 6),
            (25, 8),
            (50, 18),
            (100, 40),
        ] {
            assert_eq!(median_rank(n) + 1, rank, "{n}");
        }
        // The exact rank for 200 values and the approximate rank for 201 values must agree.
        assert!(median_rank(200).abs_diff(median_rank(201)) <= 1);
    }

    #[test]
    fn times_are_summarized() {
        let times = summarize_times((1..=21).rev().map(f64::from)).unwrap();
        assert_eq!((times.median_us, times.min_us, times.n), (11.0, 1.0, 21));
        assert_eq!((times.p5_us, times.p95_us), (2.0, 20.0));
        assert_eq!((times.low_us, times.high_us), (6.0, 16.0));
        assert!((summarize_times([1.0, 2.0]).unwrap().median_us - 1.5).abs() < 1e-9);
        assert_eq!(summarize_times([]), None);
    }

    #[test]
    fn deviation_needs_two_times() {
        assert_eq!(relative_deviation(&[1.0]), None);
        assert_eq!(relative_deviation(&[2.0, 2.0]), Some(0.0));
        assert!((relative_deviation(&[9.0, 11.0]).unwrap() - 0.141_42).abs() < 1e-4);
    }
}

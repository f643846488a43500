use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u32>);

/// Percentiles of a distribution in milliseconds; all are absent if there were no times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    min: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0
            .push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(crate) fn into_spread(mut self) -> Spread {
        self.0.sort_unstable();
        let at = |share: f64| {
            let index = (share * self.0.len().saturating_sub(1) as f64).round() as usize;
            self.0.get(index).map(|micros| f64::from(*micros) / 1000.0)
        };
        Spread {
            min: at(0.0),
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_contains_percentiles_in_milliseconds() {
        let mut times = Times::default();
        for millis in (0..=100).rev() {
            times.push(Duration::from_millis(millis));
        }
        let expected = Spread {
            min: Some(0.0),
            p50: Some(50.0),
            p99: Some(99.0),
            max: Some(100.0),
        };
        assert_eq!(times.into_spread(), expected);
        assert_eq!(Times::default().into_spread(), Spread::default());
    }
}

//! The check of a reading against its expectation.

use super::{expectation::Expectation, sample_window::SampleWindow};
use crate::protocol::{ReadingCheck, Verdict};

/// Compares readings with the expected value. `during` contains the readings during the load, and
/// `before` the readings before it.
pub(crate) fn check_expectation(
    (load, does): (&'static str, &'static str),
    gpu: u32,
    expectation: &Expectation,
    during: &SampleWindow,
    before: &SampleWindow,
) -> ReadingCheck {
    let expected = (expectation.made)(during);
    let reported = (expectation.reported)(during, before);
    let bounds = |of: fn((f64, f64)) -> f64| {
        expected
            .clone()
            .map(|made| of(expectation.accepted.to_bounds(made)))
    };
    let (least, most) = (bounds(|(least, _)| least), bounds(|(_, most)| most));
    let verdict = match (reported.value(), least.value(), most.value()) {
        (Some(reported), Some(least), Some(most)) if (*least..=*most).contains(reported) => {
            Verdict::Verified
        }
        (Some(_), Some(_), Some(_)) => Verdict::Mismatch,
        _ => Verdict::NotReported,
    };
    let [wanted, read] =
        [&expected, &reported].map(|reading| expectation.unit.format_with_unit(reading));
    let (reading, comes_to) = (expectation.reading, verdict.describe());
    let text = format!(
        "{reading} of GPU {gpu}: {comes_to} (reported {read}, expected {wanted}) while {does}"
    );
    ReadingCheck {
        load: load.into(),
        does: does.into(),
        gpu,
        reading: reading.into(),
        unit: expectation.unit,
        expected,
        least,
        most,
        reported,
        verdict,
        how: expectation.how.clone(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, GpuSample, Health, Reading};

    use super::*;
    use crate::{protocol::Unit, selftest::expectation::AcceptedDeviation};

    fn make_window(percents: &[f64]) -> SampleWindow {
        let sample = |(at_ms, percent): (u64, &f64)| {
            let mut sample =
                GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
            sample.utilization.gpu_percent = Reading::Now(*percent);
            sample
        };
        SampleWindow::new(
            &(0..).zip(percents).map(sample).collect::<Vec<_>>(),
            &[],
            0,
            100,
        )
    }

    fn make_expectation(made: f64, accepted: AcceptedDeviation) -> Expectation {
        Expectation::new(
            "utilization.gpu_percent",
            Unit::Percent,
            made,
            accepted,
            "counted".to_owned(),
        )
        .with_reported_value(|during| {
            during.mean_reading(|sample| sample.utilization.gpu_percent.clone())
        })
    }

    #[track_caller]
    fn assert_verdict(percents: &[f64], accepted: AcceptedDeviation, verdict: Verdict) {
        let check = check_expectation(
            ("half", "half of it"),
            1,
            &make_expectation(50.0, accepted),
            &make_window(percents),
            &make_window(&[]),
        );
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert!(
            check.text.starts_with("utilization.gpu_percent of GPU 1: "),
            "{check:?}"
        );
        assert!(
            check.text.ends_with(", expected 50.0 %) while half of it"),
            "{check:?}"
        );
    }

    #[test]
    fn reading_within_bounds_is_verified() {
        assert_verdict(
            &[49.0, 53.0],
            AcceptedDeviation::Within(2.0),
            Verdict::Verified,
        );
        assert_verdict(
            &[49.0, 57.0],
            AcceptedDeviation::Within(2.0),
            Verdict::Mismatch,
        );
        assert_verdict(
            &[49.0, 57.0],
            AcceptedDeviation::Times(1.0, 1.1),
            Verdict::Verified,
        );
        assert_verdict(
            &[49.0, 50.0],
            AcceptedDeviation::Times(1.0, 1.1),
            Verdict::Mismatch,
        );
        assert_verdict(
            &[f64::NAN],
            AcceptedDeviation::Within(2.0),
            Verdict::Mismatch,
        );
        assert_verdict(&[], AcceptedDeviation::Within(2.0), Verdict::NotReported);
    }

    #[test]
    fn unknown_expected_value_is_not_compared() {
        let unknown = make_expectation(1.0, AcceptedDeviation::Within(1.0))
            .with_expected_value(|_| Reading::Absent(Absence::Unknown));
        let check = check_expectation(
            ("half", "half of it"),
            0,
            &unknown,
            &make_window(&[1.0]),
            &make_window(&[]),
        );
        assert_eq!(
            (check.verdict, check.least.value()),
            (Verdict::NotReported, None)
        );
    }
}

//! The check of one expectation.

use super::{expectation::Expectation, sample_window::SampleWindow};
use crate::protocol::{Check, Verdict};

/// Compares the readings during the load, and those before it, with the expected value.
pub(crate) fn check_expectation(
    (load, does): (&'static str, &'static str),
    gpu: u32,
    expectation: &Expectation,
    during: &SampleWindow,
    before: &SampleWindow,
) -> Check {
    let expected = (expectation.made)(during);
    let reported = (expectation.reported)(during, before);
    let bounds = |of: fn((f64, f64)) -> f64| {
        expected
            .clone()
            .map(|made| of(expectation.accepted.bounds(made)))
    };
    let (least, most) = (bounds(|(least, _)| least), bounds(|(_, most)| most));
    let verdict = match (reported.value(), least.value(), most.value()) {
        (Some(reported), Some(least), Some(most)) if (*least..=*most).contains(reported) => {
            Verdict::Verified
        }
        (Some(_), Some(_), Some(_)) => Verdict::Mismatch,
        _ => Verdict::NotReported,
    };
    let [wanted, read] = [&expected, &reported].map(|reading| expectation.unit.words(reading));
    let (reading, comes_to) = (expectation.reading, verdict.words());
    let text = format!(
        "{reading} of GPU {gpu}: {comes_to} (reported {read}, expected {wanted}) while {does}"
    );
    Check {
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
    use crate::{protocol::Unit, selftest::expectation::Accepted};

    fn stretch(percents: &[f64]) -> SampleWindow {
        let sample = |(at_ms, percent): (u64, &f64)| {
            let mut sample = GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
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

    fn expectation(made: f64, accepted: Accepted) -> Expectation {
        Expectation::new(
            "utilization.gpu_percent",
            Unit::Percent,
            made,
            accepted,
            "counted".to_owned(),
        )
        .reported(|during| during.mean(|sample| sample.utilization.gpu_percent.clone()))
    }

    #[track_caller]
    fn comes_to(percents: &[f64], accepted: Accepted, verdict: Verdict) {
        let check = check_expectation(
            ("half", "half of it"),
            1,
            &expectation(50.0, accepted),
            &stretch(percents),
            &stretch(&[]),
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
    fn a_reading_within_its_bounds_is_verified() {
        comes_to(&[49.0, 53.0], Accepted::Within(2.0), Verdict::Verified);
        comes_to(&[49.0, 57.0], Accepted::Within(2.0), Verdict::Mismatch);
        comes_to(&[49.0, 57.0], Accepted::Times(1.0, 1.1), Verdict::Verified);
        comes_to(&[49.0, 50.0], Accepted::Times(1.0, 1.1), Verdict::Mismatch);
        comes_to(&[f64::NAN], Accepted::Within(2.0), Verdict::Mismatch);
        comes_to(&[], Accepted::Within(2.0), Verdict::NotReported);
    }

    #[test]
    fn what_is_not_known_to_have_been_made_is_not_compared() {
        let unknown =
            expectation(1.0, Accepted::Within(1.0)).made(|_| Reading::Absent(Absence::Unknown));
        let check = check_expectation(
            ("half", "half of it"),
            0,
            &unknown,
            &stretch(&[1.0]),
            &stretch(&[]),
        );
        assert_eq!(
            (check.verdict, check.least.value()),
            (Verdict::NotReported, None)
        );
    }
}

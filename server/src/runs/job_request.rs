//! Limits on requested jobs.

use std::time::Duration;

use gpumon_workload::protocol::Job;

use super::report_item::clean_text;

/// The maximum run time that a client may request for a job, in seconds.
pub(crate) const MAX_RUN_S: f64 = 24.0 * 60.0 * 60.0;
/// The keys of jobs in which clients request a time, in seconds.
pub(crate) const TIME_KEYS: [&str; 2] = ["seconds", "hold_seconds"];
/// The maximum number of characters in the title of a job, which consists of workload names.
const MAX_TITLE_CHARS: usize = 80;

/// Returns the title that a job has until its process reports one.
pub(crate) fn job_title(job: &Job) -> String {
    clean_text(&job.title(), MAX_TITLE_CHARS)
}

/// Returns the time limit of a job.
///
/// # Errors
/// Returns an error with the valid times if the job requests too long a time.
pub(crate) fn job_time_limit(job: &Job) -> Result<Duration, String> {
    let [of_burn, of_oom] = TIME_KEYS;
    let (key, seconds) = match job {
        Job::Burn(burn) => (of_burn, burn.seconds),
        Job::Oom(oom) => (of_oom, oom.hold_seconds),
        Job::Bench(_) | Job::Tutorials(_) | Job::Selftest(_) => return Ok(job.default_time_limit()),
    };
    if (0.0..=MAX_RUN_S).contains(&seconds) {
        return Ok(job.default_time_limit());
    }
    Err(format!(
        "\"{key}\": {seconds} is not a valid run time; use 0 to {MAX_RUN_S} s"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_job(json: &str) -> Job {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn job_time_is_limited() {
        let usual = job_time_limit(&parse_job(r#"{"kind":"bench"}"#)).unwrap();
        assert_eq!(
            job_time_limit(&parse_job(r#"{"kind":"burn","seconds":90}"#)),
            Ok(usual + Duration::from_secs(90))
        );
        for seconds in ["-1", "86401", "1e308"] {
            let error = job_time_limit(&parse_job(&format!(
                r#"{{"kind":"oom","hold_seconds":{seconds}}}"#
            )))
            .unwrap_err();
            assert!(
                error.contains("hold_seconds") && error.contains("86400"),
                "{error}"
            );
        }
    }

    #[test]
    fn title_has_no_control_characters() {
        assert_eq!(
            job_title(&parse_job(r#"{"kind":"oom","scenario":"fill\u001b"}"#)),
            "fill "
        );
    }
}

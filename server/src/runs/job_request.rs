//! Limits on the requests of jobs.

use std::time::Duration;

use gpumon_workload::protocol::Job;

use super::report_item::clean;

/// The longest time that a job from the page may run, in seconds.
pub(crate) const LONGEST_S: f64 = 24.0 * 60.0 * 60.0;
/// The keys of a job that request a time in seconds.
pub(crate) const TIMES: [&str; 2] = ["seconds", "hold_seconds"];
/// The maximum number of characters of a title that consists of names.
const TITLE: usize = 80;

/// Returns the title of a job until its process reports one.
pub(crate) fn title_of(job: &Job) -> String {
    clean(&job.title(), TITLE)
}

/// Returns the time limit of a job.
///
/// # Errors
/// Returns an error with the valid times if the job requests too long a time.
pub(crate) fn limit_of(job: &Job) -> Result<Duration, String> {
    let [of_burn, of_oom] = TIMES;
    let (key, seconds) = match job {
        Job::Burn(burn) => (of_burn, burn.seconds),
        Job::Oom(oom) => (of_oom, oom.hold_seconds),
        Job::Bench(_) | Job::Tutorials(_) | Job::Selftest(_) => return Ok(job.usual_limit()),
    };
    if (0.0..=LONGEST_S).contains(&seconds) {
        return Ok(job.usual_limit());
    }
    Err(format!(
        "\"{key}\": {seconds} is not a valid run time; use 0 to {LONGEST_S}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(json: &str) -> Job {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_job_has_the_time_that_it_asks_for_and_no_job_has_for_ever() {
        let usual = limit_of(&job(r#"{"kind":"bench"}"#)).unwrap();
        assert_eq!(
            limit_of(&job(r#"{"kind":"burn","seconds":90}"#)),
            Ok(usual + Duration::from_secs(90))
        );
        for seconds in ["-1", "86401", "1e308"] {
            let error = limit_of(&job(&format!(
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
    fn a_title_steers_no_terminal() {
        assert_eq!(
            title_of(&job(r#"{"kind":"oom","scenario":"fill\u001b"}"#)),
            "fill "
        );
    }
}

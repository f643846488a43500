//! What a job asks for, before anybody does it.

use std::time::Duration;

use gpumon_probe::model::RunKind;
use gpumon_workload::job::Job;

use super::report::clean;

/// What any job may take, beyond the time that it asks for.
const LIMIT: Duration = Duration::from_mins(10);
/// What a job may ask for: nobody means to keep a GPU busy for longer from a page.
const LONGEST_S: f64 = 24.0 * 60.0 * 60.0;
/// Of a title that is made of names.
const TITLE: usize = 80;

/// What kind of work it is.
pub(crate) fn kind_of(job: &Job) -> RunKind {
    match job {
        Job::Bench(_) => RunKind::Bench,
        Job::Seeds(_) => RunKind::Seeds,
        Job::Burn(_) => RunKind::Burn,
        Job::Oom(_) => RunKind::Oom,
        Job::Selftest(_) => RunKind::Selftest,
    }
}

/// What it is called until the process that does it says so.
pub(crate) fn title_of(job: &Job) -> String {
    let names = |names: &[String], all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
    let title = match job {
        Job::Bench(bench) => names(&bench.ids, "all workloads"),
        Job::Seeds(seeds) => names(&seeds.rows, "seeds"),
        Job::Burn(_) => "burn".to_owned(),
        Job::Oom(oom) => oom.scenario.clone(),
        Job::Selftest(_) => "selftest".to_owned(),
    };
    clean(&title, TITLE)
}

/// When it has taken too long.
///
/// # Errors
/// Where it asks for a time that no job may have, with one that it may.
pub(crate) fn limit_of(job: &Job) -> Result<Duration, String> {
    let (key, seconds) = match job {
        Job::Bench(_) | Job::Seeds(_) => return Ok(LIMIT),
        Job::Selftest(_) => return Ok(LIMIT + Duration::from_secs_f64(job.asked_seconds())),
        Job::Burn(burn) => ("seconds", burn.seconds),
        Job::Oom(oom) => ("hold_seconds", oom.hold_seconds),
    };
    if (0.0..=LONGEST_S).contains(&seconds) {
        return Ok(LIMIT + Duration::from_secs_f64(seconds));
    }
    Err(format!("\"{key}\": {seconds} is no time that a run may take; ask for 0 to {LONGEST_S}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(json: &str) -> Job {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_job_has_the_time_that_it_asks_for_and_no_job_has_for_ever() {
        assert_eq!(limit_of(&job(r#"{"kind":"bench"}"#)), Ok(LIMIT));
        assert_eq!(limit_of(&job(r#"{"kind":"burn","seconds":90}"#)), Ok(LIMIT + Duration::from_secs(90)));
        for seconds in ["-1", "86401", "1e308"] {
            let error = limit_of(&job(&format!(r#"{{"kind":"oom","hold_seconds":{seconds}}}"#))).unwrap_err();
            assert!(error.contains("hold_seconds") && error.contains("86400"), "{error}");
        }
    }

    #[test]
    fn a_job_has_a_title_from_the_start() {
        assert_eq!(title_of(&job(r#"{"kind":"bench","ids":["copy","triad"]}"#)), "copy, triad");
        assert_eq!(title_of(&job(r#"{"kind":"bench"}"#)), "all workloads");
        assert_eq!(title_of(&job(r#"{"kind":"oom","scenario":"fill\u001b"}"#)), "fill ");
        assert_eq!(kind_of(&job(r#"{"kind":"burn"}"#)), RunKind::Burn);
    }
}

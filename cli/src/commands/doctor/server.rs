//! A server of this user on this machine.

use gpumon_server::frame::{CollectorState, CollectorStatus};
use serde::Deserialize;

use super::finding::Finding;
use crate::local::ServerArgs;

/// What of `/api/v1/snapshot` matters here; the rest may be of another version.
#[derive(Debug, Deserialize)]
struct Snapshot {
    version: String,
    collector: CollectorStatus,
}

pub(super) fn check(server: &ServerArgs) -> Finding {
    let check = "server";
    let Ok(server) = server.connect() else {
        return Finding::note(check, "none found at the default socket").with_cure("start one with `gpumon serve`");
    };
    let at = server.path.display().to_string();
    let restart = format!("restart the server at {at}");
    let body = match server.ask("GET", "/api/v1/snapshot") {
        Ok(answer) if answer.status == 200 => answer.body,
        Ok(answer) => return Finding::warning(check, format!("it responds with status {}", answer.status), restart),
        Err(error) => return Finding::warning(check, format!("it does not respond: {error}"), restart),
    };
    match serde_json::from_str(&body) {
        Ok(Snapshot { version, collector }) => judge(&at, &version, &collector),
        Err(error) => Finding::warning(check, format!("its response is not readable: {error}"), restart),
    }
}

fn judge(at: &str, version: &str, collector: &CollectorStatus) -> Finding {
    let message = collector.message.clone().unwrap_or_default();
    let check = "server";
    match collector.state {
        CollectorState::Running => Finding::ok(check, format!("{version} at {at}, reading")),
        CollectorState::Starting => Finding::note(check, format!("{version} at {at}, starting")),
        CollectorState::Paused => {
            Finding::note(check, format!("{version} at {at}, {message}")).with_cure("`gpumon resume`")
        }
        CollectorState::Restarting => {
            Finding::warning(check, format!("{version} at {at}: {message}"), "it retries automatically; see its log")
        }
        CollectorState::Unavailable => {
            Finding::warning(check, format!("{version} at {at} has nothing to read"), message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Verdict, *};

    #[test]
    fn a_paused_server_is_no_trouble_and_one_without_a_gpu_is() {
        let verdict = |state| {
            let message = Some("why".to_owned());
            judge("/run/x", "1.0", &CollectorStatus { state, since_ms: 0, message, resumes_ms: None }).verdict
        };
        assert_eq!(verdict(CollectorState::Running), Verdict::Ok);
        assert_eq!(verdict(CollectorState::Paused), Verdict::Note);
        assert_eq!(verdict(CollectorState::Unavailable), Verdict::Warning);
    }
}

//! A server of this user on this machine.

use std::io;

use gpumon_history::span::Storage;
use gpumon_server::frame::{CollectorState, CollectorStatus};
use serde::Deserialize;
use serde_json::Value;

use super::finding::Finding;
use crate::local::{Answer, NoServer, ServerArgs};

/// What of `/api/v1/snapshot` matters here; the rest may be of another version.
#[derive(Debug, Deserialize)]
struct Snapshot {
    version: String,
    collector: CollectorStatus,
}

/// What a server says of itself, or why it does not, and where it listens.
pub(super) struct Response {
    pub(super) socket: String,
    pub(super) snapshot: Result<Value, String>,
    /// Where it keeps history; none where it does not say, as an older one.
    pub(super) storage: Option<Storage>,
}

/// Asks for a snapshot, once for everything that is made of it.
pub(super) fn ask(server: &ServerArgs) -> Result<Response, NoServer> {
    let connection = server.connect()?;
    let socket = connection.path.display().to_string();
    let snapshot = read(connection.ask("GET", "/api/v1/snapshot"));
    let history = server
        .connect()
        .ok()
        .and_then(|server| read(server.ask("GET", "/api/v1/history?points=1")).ok());
    let storage = history.and_then(|history| Storage::deserialize(&history["storage"]).ok());
    Ok(Response {
        socket,
        snapshot,
        storage,
    })
}

fn read(answer: io::Result<Answer>) -> Result<Value, String> {
    match answer {
        Ok(answer) if answer.status == 200 => {
            serde_json::from_str(&answer.body).map_err(|error| unreadable(&error))
        }
        Ok(answer) => Err(format!("it responds with status {}", answer.status)),
        Err(error) => Err(format!("it does not respond: {error}")),
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("its response is not readable: {error}")
}

pub(super) fn check(response: &Result<Response, NoServer>) -> Finding {
    let check = "server";
    let Response {
        socket, snapshot, ..
    } = match response {
        Ok(response) => response,
        Err(none) => {
            return Finding::note(check, format!("none at {}", none.places()))
                .with_cure(NoServer::CURE);
        }
    };
    let snapshot = snapshot.as_ref().map_err(Clone::clone);
    match snapshot
        .and_then(|snapshot| Snapshot::deserialize(snapshot).map_err(|error| unreadable(&error)))
    {
        Ok(Snapshot { version, collector }) => judge(socket, &version, &collector),
        Err(error) => Finding::warning(check, error, format!("restart the server at {socket}")),
    }
}

/// Where a server keeps history.
pub(super) fn check_history(response: &Result<Response, NoServer>) -> Option<Finding> {
    let storage = response.as_ref().ok()?.storage.as_ref()?;
    let check = "history";
    let days = storage.reach_ms / (24 * 3_600_000);
    Some(match &storage.problem {
        // It says what to do.
        Some(problem) => Finding::warning(
            check,
            problem,
            "then wait a minute: it is retried automatically",
        ),
        None if storage.on_disk => Finding::ok(check, format!("on disk, for {days} days")),
        None => Finding::note(
            check,
            format!("in memory, for {} hours", storage.reach_ms / 3_600_000),
        )
        .with_cure("to keep it: `gpumon serve --data-dir DIR`"),
    })
}

fn judge(at: &str, version: &str, collector: &CollectorStatus) -> Finding {
    let message = collector.message.clone().unwrap_or_default();
    let check = "server";
    match collector.state {
        CollectorState::Running => {
            let through = collector
                .joined
                .as_ref()
                .map(|socket| format!(" through the server at {socket}"));
            Finding::ok(
                check,
                format!("{version} at {at}, reading{}", through.unwrap_or_default()),
            )
        }
        CollectorState::Starting => Finding::note(check, format!("{version} at {at}, starting")),
        CollectorState::Paused => Finding::note(check, format!("{version} at {at}, {message}"))
            .with_cure(if collector.joined.is_some() {
                "`sudo gpumon resume`"
            } else {
                "`gpumon resume`"
            }),
        CollectorState::Restarting => Finding::warning(
            check,
            format!("{version} at {at}: {message}"),
            "it retries automatically; see its log",
        ),
        CollectorState::Unavailable => Finding::warning(
            check,
            format!("{version} at {at} has nothing to read"),
            message,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Verdict, *};

    #[test]
    fn a_paused_server_is_no_trouble_and_one_without_a_gpu_is() {
        let verdict = |state| {
            let message = Some("why".to_owned());
            judge(
                "/run/x",
                "1.0",
                &CollectorStatus {
                    state,
                    since_ms: 0,
                    message,
                    resumes_ms: None,
                    joined: None,
                },
            )
            .verdict
        };
        assert_eq!(verdict(CollectorState::Running), Verdict::Ok);
        assert_eq!(verdict(CollectorState::Paused), Verdict::Note);
        assert_eq!(verdict(CollectorState::Unavailable), Verdict::Warning);
    }

    #[test]
    fn where_history_is_kept_is_told_and_why_it_is_not() {
        let verdict = |on_disk, problem: Option<&str>| {
            let storage = Storage {
                on_disk,
                problem: problem.map(ToOwned::to_owned),
                reach_ms: 6 * 3_600_000,
            };
            let response = Response {
                socket: String::new(),
                snapshot: Ok(Value::Null),
                storage: Some(storage),
            };
            let finding = check_history(&Ok(response)).unwrap();
            (finding.verdict, finding.text)
        };
        assert_eq!(verdict(true, None).0, Verdict::Ok);
        assert_eq!(
            verdict(false, None),
            (Verdict::Note, "in memory, for 6 hours".to_owned())
        );
        assert_eq!(
            verdict(true, Some("the disk is full")),
            (Verdict::Warning, "the disk is full".to_owned())
        );
    }

    #[test]
    fn why_a_server_says_nothing_of_itself_is_told() {
        let answered = |status, body: &str| {
            read(Ok(Answer {
                status,
                body: body.to_owned(),
            }))
        };
        assert_eq!(answered(200, "[1]"), Ok([1].into()));
        assert!(answered(200, "{").unwrap_err().contains("not readable"));
        assert!(answered(403, "{}").unwrap_err().contains("status 403"));
        assert!(
            read(Err(io::ErrorKind::TimedOut.into()))
                .unwrap_err()
                .contains("does not respond")
        );
        let response = Response {
            socket: "/run/x".to_owned(),
            snapshot: Ok([1].into()),
            storage: None,
        };
        assert_eq!(check(&Ok(response)).verdict, Verdict::Warning);
    }
}

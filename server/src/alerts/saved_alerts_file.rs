//! The file in the data directory that keeps firing alerts and notified receivers across a restart
//! of the server.
//!
//! A thread writes the file, so that the server does not wait for the disk. The file is replaced
//! atomically: readers see either the old or the new contents.

use std::{
    fs::File,
    io,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    thread,
    time::Duration,
};

use gpumon_alerts::evaluate::SavedAlert;
use gpumon_probe::safe_file::{AcceptedOwner, Folder};
use rustix::{
    fs::{FlockOperation, flock},
    system::uname,
};
use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "alerts.json";
const LOCK_FILE: &str = "alerts.lock";
const VERSION: u32 = 1;
/// The maximum size of the file. A thousand alerts with fifty receivers each need less.
const MAX_FILE_BYTES: usize = 8 << 20;
/// The time after which a failed write is retried.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// The time limit for the last write when the server ends.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlertFileContent {
    version: u32,
    /// The hostname of the machine that wrote the file. Machines with different GPUs can share a
    /// directory.
    host: String,
    alerts: Vec<SavedAlert>,
}

/// The file of saved alerts, locked so that no other process uses it.
#[derive(Debug)]
pub(super) struct SavedAlertsFile {
    contents: SyncSender<Vec<u8>>,
    ended: Receiver<()>,
    /// The locked file. The lock is released when the file is closed.
    _lock: File,
}

impl SavedAlertsFile {
    /// Opens or creates the file in a directory, and returns the alerts saved in it for this
    /// machine. This call waits for the disk.
    ///
    /// # Errors
    /// Returns an error if the directory is not writable, or if another process uses the file.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, io::Result<Vec<SavedAlert>>)> {
        let folder = Folder::create(folder, AcceptedOwner::Own)?;
        let lock = folder.open_file(LOCK_FILE)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let saved = read_alerts(&folder);
        let (contents, to_write) = sync_channel(1);
        let (end, ended) = sync_channel(0);
        thread::Builder::new()
            .name("alerts-told".to_owned())
            .spawn(move || {
                write_received_contents(&folder, &to_write);
                drop(end);
            })?;
        Ok((
            Self {
                contents,
                ended,
                _lock: lock,
            },
            saved,
        ))
    }

    /// Passes the alerts to the writer thread. Returns `false` if the thread is still writing
    /// earlier alerts.
    pub(super) fn try_queue_write(&self, alerts: Vec<SavedAlert>) -> bool {
        let content = AlertFileContent {
            version: VERSION,
            host: hostname(),
            alerts,
        };
        let text = serde_json::to_vec(&content).unwrap_or_default();
        !matches!(self.contents.try_send(text), Err(TrySendError::Full(_)))
    }

    /// Waits until all alerts are written, with a time limit.
    pub(super) fn finish_writing(self) {
        let Self {
            contents, ended, ..
        } = self;
        drop(contents);
        if ended.recv_timeout(FINAL_WRITE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "alerts: the list of notified receivers could not be written in time; they may be \
                 notified again"
            );
        }
    }
}

/// Returns the hostname of this machine.
pub(super) fn hostname() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Reads the alerts in the file. The result is empty if the file does not exist or belongs to
/// another machine.
fn read_alerts(folder: &Folder) -> io::Result<Vec<SavedAlert>> {
    let Some(text) = folder.read(FILE_NAME, MAX_FILE_BYTES)? else {
        return Ok(Vec::new());
    };
    let content: AlertFileContent = serde_json::from_slice(&text)?;
    if content.version != VERSION {
        return Err(io::Error::other(format!(
            "the file has format version {}, but this gpumon supports version {VERSION}",
            content.version
        )));
    }
    Ok(if content.host == hostname() {
        content.alerts
    } else {
        Vec::new()
    })
}

fn write_received_contents(folder: &Folder, contents: &Receiver<Vec<u8>>) {
    // After a write error, the contents are kept until they are written or replaced by newer
    // contents.
    let mut unwritten: Option<Vec<u8>> = None;
    loop {
        let wait = if unwritten.is_some() {
            RETRY_INTERVAL
        } else {
            Duration::MAX
        };
        let text = match (contents.recv_timeout(wait), &unwritten) {
            (Ok(newer), _) => newer,
            (Err(RecvTimeoutError::Timeout), Some(text)) => text.clone(),
            (Err(RecvTimeoutError::Timeout), None) => continue,
            (Err(RecvTimeoutError::Disconnected), _) => return,
        };
        match folder.replace(FILE_NAME, &text) {
            Ok(()) => unwritten = None,
            Err(error) => {
                if unwritten.replace(text).is_none() {
                    let path = folder.path().join(FILE_NAME);
                    let path = path.display();
                    tracing::warn!(
                        "alerts: cannot write {path}: {error}; until this is fixed, receivers are \
                         notified again after a restart"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn make_alert(rule: &str) -> SavedAlert {
        serde_json::from_value(json!({
            "watch": "Temperature above 85 °C", "place": { "gpu": 0 }, "fires": true, "told_ms": { "log": 7 },
            "alert": { "gpu": null, "rule": rule, "severity": "warning", "since_ms": 5, "text": "Temperature 95 °C" },
        }))
        .unwrap()
    }

    #[test]
    fn alerts_file_is_locked_and_has_newest_alerts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("made");
        let (file, saved) = SavedAlertsFile::open(folder).unwrap();
        assert_eq!(saved.unwrap(), []);
        assert!(SavedAlertsFile::open(folder).is_err(), "another process");
        assert!(file.try_queue_write(vec![make_alert("first")]));
        while !file.try_queue_write(vec![make_alert("last")]) {
            thread::sleep(Duration::from_millis(5));
        }
        file.finish_writing();
        let (file, saved) = SavedAlertsFile::open(folder).unwrap();
        assert_eq!(saved.unwrap(), [make_alert("last")]);
        assert_eq!(
            fs::read_dir(folder).unwrap().count(),
            2,
            "nothing is left over"
        );
        file.finish_writing();
    }

    #[test]
    fn invalid_file_fails_but_foreign_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let content = |version: u32, host: &str| {
            json!({ "version": version, "host": host, "alerts": [] }).to_string()
        };
        let long = "x".repeat(MAX_FILE_BYTES + 1);
        for (text, expected) in [
            ("{", "EOF"),
            (&content(2, "a"), "version 2"),
            (&long, "more than"),
            (
                "{\"version\": 1, \"host\": \"a\", \"alerts\": [{}]}",
                "missing field",
            ),
        ] {
            fs::write(folder.path().join(FILE_NAME), text).unwrap();
            let (file, saved) = SavedAlertsFile::open(folder.path()).unwrap();
            let error = saved.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            file.finish_writing();
        }
        let alerts = vec![make_alert("hot")];
        let other = serde_json::to_string(&AlertFileContent {
            version: VERSION,
            host: "another".into(),
            alerts,
        })
        .unwrap();
        fs::write(folder.path().join(FILE_NAME), other).unwrap();
        assert_eq!(SavedAlertsFile::open(folder.path()).unwrap().1.unwrap(), []);
    }
}

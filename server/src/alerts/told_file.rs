//! The file in the data directory that keeps firing alerts and notified receivers over a restart of
//! the server.
//!
//! A thread writes the file, so that nothing waits for the disk. The file is replaced as a whole:
//! readers see the old or the new contents, never a part.

use std::{
    fs::File,
    io,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    thread,
    time::Duration,
};

use gpumon_alerts::evaluate::SavedAlert;
use gpumon_probe::safe_file::{Folder, Owner};
use rustix::{
    fs::{FlockOperation, flock},
    system::uname,
};
use serde::{Deserialize, Serialize};

const NAME: &str = "alerts.json";
const LOCK: &str = "alerts.lock";
const VERSION: u32 = 1;
/// The maximum size of the file. A thousand alerts with fifty receivers each need less.
const LARGEST: usize = 8 << 20;
/// The time after which a failed write is retried.
const RETRY: Duration = Duration::from_mins(1);
/// The time limit for the last write when the server ends.
const LAST: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    /// The hostname. Machines can share a directory, but have different GPUs.
    host: String,
    alerts: Vec<SavedAlert>,
}

/// The file of saved alerts, with a lock that gives this process exclusive access.
#[derive(Debug)]
pub(super) struct ToldFile {
    contents: SyncSender<Vec<u8>>,
    ended: Receiver<()>,
    /// The lock lasts until this file is closed.
    _lock: File,
}

impl ToldFile {
    /// Opens the file in a directory, or creates it, and returns the alerts that it contains for
    /// this machine. This waits for the disk.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written to, or if another process uses the file.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, io::Result<Vec<SavedAlert>>)> {
        let folder = Folder::create(folder, Owner::Own)?;
        let lock = folder.open_file(LOCK)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let saved = read(&folder);
        let (contents, to_write) = sync_channel(1);
        let (end, ended) = sync_channel(0);
        thread::Builder::new()
            .name("alerts-told".to_owned())
            .spawn(move || {
                write_all(&folder, &to_write);
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

    /// Passes the alerts to the writer thread. Returns `false` if it is still busy with earlier
    /// ones.
    pub(super) fn write(&self, alerts: Vec<SavedAlert>) -> bool {
        let content = Content {
            version: VERSION,
            host: host(),
            alerts,
        };
        let text = serde_json::to_vec(&content).unwrap_or_default();
        !matches!(self.contents.try_send(text), Err(TrySendError::Full(_)))
    }

    /// Waits until everything is written, with a time limit.
    pub(super) fn end(self) {
        let Self {
            contents, ended, ..
        } = self;
        drop(contents);
        if ended.recv_timeout(LAST) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "alerts: which receivers were notified could not be written in time; they may be notified again"
            );
        }
    }
}

/// Returns the hostname of this machine.
pub(super) fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Reads the alerts in the file. The result is empty if there is no file, or if it belongs to
/// another machine.
fn read(folder: &Folder) -> io::Result<Vec<SavedAlert>> {
    let Some(text) = folder.read(NAME, LARGEST)? else {
        return Ok(Vec::new());
    };
    let content: Content = serde_json::from_slice(&text)?;
    if content.version != VERSION {
        return Err(io::Error::other(format!(
            "it is of version {}, not {VERSION}",
            content.version
        )));
    }
    Ok(if content.host == host() {
        content.alerts
    } else {
        Vec::new()
    })
}

fn write_all(folder: &Folder, contents: &Receiver<Vec<u8>>) {
    // After an error, the contents are kept until they are written or replaced by newer ones.
    let mut unwritten: Option<Vec<u8>> = None;
    loop {
        let wait = if unwritten.is_some() {
            RETRY
        } else {
            Duration::MAX
        };
        let text = match (contents.recv_timeout(wait), &unwritten) {
            (Ok(newer), _) => newer,
            (Err(RecvTimeoutError::Timeout), Some(text)) => text.clone(),
            (Err(RecvTimeoutError::Timeout), None) => continue,
            (Err(RecvTimeoutError::Disconnected), _) => return,
        };
        match folder.replace(NAME, &text) {
            Ok(()) => unwritten = None,
            Err(error) => {
                if unwritten.replace(text).is_none() {
                    let path = folder.path().join(NAME);
                    let path = path.display();
                    tracing::warn!(
                        "alerts: cannot write {path}: {error}; until that is repaired, receivers are notified again after a restart"
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

    fn alert(rule: &str) -> SavedAlert {
        serde_json::from_value(json!({
            "watch": "Temperature above 85 °C", "place": { "gpu": 0 }, "fires": true, "told_ms": { "log": 7 },
            "alert": { "gpu": null, "rule": rule, "severity": "warning", "since_ms": 5, "text": "Temperature 95 °C" },
        }))
        .unwrap()
    }

    #[test]
    fn what_was_written_last_is_read_and_one_process_alone_writes() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("made");
        let (file, saved) = ToldFile::open(folder).unwrap();
        assert_eq!(saved.unwrap(), []);
        assert!(ToldFile::open(folder).is_err(), "another process");
        assert!(file.write(vec![alert("first")]));
        while !file.write(vec![alert("last")]) {
            thread::sleep(Duration::from_millis(5));
        }
        file.end();
        let (file, saved) = ToldFile::open(folder).unwrap();
        assert_eq!(saved.unwrap(), [alert("last")]);
        assert_eq!(
            fs::read_dir(folder).unwrap().count(),
            2,
            "nothing is left over"
        );
        file.end();
    }

    #[test]
    fn what_is_no_such_file_is_told_and_what_is_another_machines_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let content = |version: u32, host: &str| {
            json!({ "version": version, "host": host, "alerts": [] }).to_string()
        };
        let long = "x".repeat(LARGEST + 1);
        for (text, expected) in [
            ("{", "EOF"),
            (&content(2, "a"), "version 2"),
            (&long, "more than"),
            (
                "{\"version\": 1, \"host\": \"a\", \"alerts\": [{}]}",
                "missing field",
            ),
        ] {
            fs::write(folder.path().join(NAME), text).unwrap();
            let (file, saved) = ToldFile::open(folder.path()).unwrap();
            let error = saved.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            file.end();
        }
        let alerts = vec![alert("hot")];
        let other = serde_json::to_string(&Content {
            version: VERSION,
            host: "another".into(),
            alerts,
        })
        .unwrap();
        fs::write(folder.path().join(NAME), other).unwrap();
        assert_eq!(ToldFile::open(folder.path()).unwrap().1.unwrap(), []);
    }
}

//! The search for added GPUs, in a separate process. A driver library lists the GPUs when it is
//! loaded, so a running collector does not notice an added GPU.

use std::{
    collections::BTreeSet, ffi::OsString, fs, io, path::Path, process::Stdio, time::Duration,
};

use gpumon_probe::{
    child,
    model::{Health, KnownGpu},
    vendor::KERNEL_DRIVERS,
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::{Instant, interval, timeout},
};

use crate::{
    collector::StuckCollectors, frame::CollectorState, hub::Hub, supervisor::CollectorCommand,
};

/// The interval between searches if there is no hint that the GPUs have changed. A search costs 50
/// ms of CPU time.
const SEARCH_INTERVAL: Duration = Duration::from_mins(1);

/// The interval at which the kernel's list of GPUs is checked. A change of this list is a hint that
/// a search is needed. A check takes a few microseconds.
const HINT_INTERVAL: Duration = Duration::from_secs(5);

/// The time limit of a search. A busy driver can need this long.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of the list of GPUs in bytes, which is enough for any machine.
const MAX_LIST_BYTES: u64 = 64 << 10;

/// A search for GPUs that the collector does not read but that a restarted collector would read.
pub(crate) struct GpuSearch {
    collector: CollectorCommand,
    bound_devices: BTreeSet<OsString>,
    searched: Instant,
    reported: BTreeSet<String>,
    /// The process that lists the GPUs. While this process runs, it may keep the GPUs open.
    child: Option<Child>,
}

impl GpuSearch {
    pub(crate) fn new(collector: CollectorCommand) -> Self {
        Self {
            collector,
            bound_devices: list_devices_of_gpu_drivers(),
            searched: Instant::now(),
            reported: BTreeSet::new(),
            child: None,
        }
    }

    /// Searches repeatedly while the collector runs, until it finds a GPU that is not read, and
    /// returns a description of that GPU. If the future is canceled, call `stop` to end a search in
    /// progress.
    pub(crate) async fn find_unread_gpu(
        &mut self,
        hub: &Hub,
        stuck: &mut StuckCollectors,
    ) -> String {
        let mut hints = interval(HINT_INTERVAL);
        loop {
            hints.tick().await;
            // If a collector is stuck in the driver, a search would get stuck as well.
            if hub.collector_status().state != CollectorState::Running
                || !stuck.list_running_pids().is_empty()
            {
                continue;
            }
            let bound_now = list_devices_of_gpu_drivers();
            if bound_now == self.bound_devices && self.searched.elapsed() < SEARCH_INTERVAL {
                continue;
            }
            self.bound_devices = bound_now;
            self.searched = Instant::now();
            let found = self.list_gpus().await;
            self.stop(stuck).await;
            match found {
                Ok(found) => {
                    if let Some(message) =
                        describe_unread_gpu(&found, &hub.known_gpus(), &mut self.reported)
                    {
                        return message;
                    }
                }
                Err(error) => tracing::debug!("cannot look for GPUs: {error}"),
            }
        }
    }

    /// Ends the search in progress, if there is one.
    pub(crate) async fn stop(&mut self, stuck: &mut StuckCollectors) {
        if let Some(child) = self.child.take() {
            stuck.kill(child).await;
        }
    }

    /// Returns the UUIDs of the GPUs that a new process finds. The entry for a GPU without a known
    /// UUID is `None`.
    async fn list_gpus(&mut self) -> io::Result<Vec<Option<String>>> {
        let mut child = Command::from(child::new_command(&self.collector.program))
            .args(&self.collector.arguments)
            .arg("--list-gpus")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("the process has no standard output"))?;
        self.child = Some(child);
        let mut list = Vec::new();
        timeout(
            SEARCH_TIMEOUT,
            stdout.take(MAX_LIST_BYTES).read_to_end(&mut list),
        )
        .await
        .map_err(|_| io::Error::other("the driver does not respond"))??;
        Ok(serde_json::from_slice(&list)?)
    }
}

/// Returns a description of a GPU that a new process found and that a restarted collector would
/// read, or `None` if there is no such GPU. It is an unknown GPU, or a known one that the current
/// collector has lost. The UUID of a lost GPU stays in `reported` until the GPU responds, so that
/// it is described only once.
fn describe_unread_gpu(
    found: &[Option<String>],
    known: &[KnownGpu],
    reported: &mut BTreeSet<String>,
) -> Option<String> {
    let health = |uuid: &String| {
        known
            .iter()
            .find(|known| known.gpu.uuid.as_ref() == Some(uuid))
            .map(|known| known.health.clone())
    };
    reported.retain(|uuid| !matches!(health(uuid), Some(Health::Ok)));
    let identified: Vec<_> = found.iter().flatten().collect();
    let mut unknown = identified.iter().filter(|uuid| health(uuid).is_none());
    // The collector could not read the UUIDs of some known GPUs. Each of these GPUs may have one of
    // the unknown UUIDs, so an equal number of unknown UUIDs is skipped.
    let nameless = known
        .iter()
        .filter(|known| known.gpu.uuid.is_none())
        .count();
    if let Some(uuid) = unknown.nth(nameless) {
        return Some(format!("{uuid} was added"));
    }
    // An added GPU may have no readable UUID. It is then noticed only because there are more GPUs
    // than before.
    if found.len() > known.len() {
        return Some(format!(
            "the driver finds {} GPUs instead of {}",
            found.len(),
            known.len()
        ));
    }
    let is_lost = |uuid: &&&String| matches!(health(uuid), Some(Health::Lost { .. }));
    let returned = identified
        .iter()
        .filter(is_lost)
        .find(|uuid| !reported.contains(**uuid))?;
    reported.insert((*returned).clone());
    Some(format!("{returned} was lost and has been found again"))
}

/// Returns the PCI addresses of all devices that a GPU driver of the kernel is bound to.
fn list_devices_of_gpu_drivers() -> BTreeSet<OsString> {
    let drivers = KERNEL_DRIVERS.iter();
    drivers
        .flat_map(|driver| list_devices_of_driver(Path::new(driver)))
        .collect()
}

/// Returns the PCI addresses of the devices that a driver is bound to. The result is empty if the
/// driver is not loaded.
fn list_devices_of_driver(driver: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(driver)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    entries
        .filter(|name| name.to_string_lossy().contains(':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Gpu};

    use super::*;

    fn make_known_gpus(gpus: &[(Option<&str>, Health)]) -> Vec<KnownGpu> {
        let known = |(index, (uuid, health)): (u32, &(Option<&str>, Health))| KnownGpu {
            gpu: Gpu {
                uuid: uuid.map(str::to_owned),
                ..Gpu::new_unidentified(index, &Absence::NoAnswer)
            },
            health: health.clone(),
        };
        (0..).zip(gpus).map(known).collect()
    }

    fn describe_first_search(
        found: &[Option<&str>],
        gpus: &[(Option<&str>, Health)],
    ) -> Option<String> {
        let found: Vec<_> = found.iter().map(|uuid| uuid.map(str::to_owned)).collect();
        describe_unread_gpu(&found, &make_known_gpus(gpus), &mut BTreeSet::new())
    }

    #[test]
    fn newly_found_gpus_are_described() {
        let (a, b, ok, lost) = (
            Some("GPU-a"),
            Some("GPU-b"),
            Health::Ok,
            Health::Lost { since_ms: 1 },
        );
        assert_eq!(
            describe_first_search(&[a, b], &[(a, ok.clone()), (b, ok.clone())]),
            None
        );
        assert_eq!(
            describe_first_search(&[a], &[(a, ok.clone()), (b, lost.clone())]),
            None,
            "a GPU was removed"
        );
        assert_eq!(
            describe_first_search(&[b, a], &[(a, ok.clone())]).as_deref(),
            Some("GPU-b was added")
        );
        let exchanged =
            describe_first_search(&[a, Some("GPU-c")], &[(a, ok.clone()), (b, lost.clone())]);
        assert_eq!(exchanged.as_deref(), Some("GPU-c was added"));
        assert_eq!(
            describe_first_search(&[a, None], &[(a, ok.clone()), (b, lost.clone())]),
            None,
            "the lost GPU has fallen off the bus"
        );
        let nameless = describe_first_search(&[a, None], &[(a, ok.clone())]);
        assert_eq!(
            nameless.as_deref(),
            Some("the driver finds 2 GPUs instead of 1")
        );
        for found in [None, b] {
            assert_eq!(
                describe_first_search(
                    &[a, found],
                    &[(a, ok.clone()), (None, Health::Hung { since_ms: 1 })]
                ),
                None
            );
        }
    }

    #[test]
    fn message_about_returned_gpu_appears_once() {
        let (found, mut reported) = (vec![Some("GPU-a".to_owned())], BTreeSet::new());
        let mut unread = |health| {
            describe_unread_gpu(
                &found,
                &make_known_gpus(&[(Some("GPU-a"), health)]),
                &mut reported,
            )
        };
        let lost = || Health::Lost { since_ms: 1 };
        assert_eq!(
            unread(lost()).as_deref(),
            Some("GPU-a was lost and has been found again")
        );
        assert_eq!(
            unread(lost()),
            None,
            "the next collector does not read it either"
        );
        assert_eq!(unread(Health::Ok), None);
        assert!(unread(lost()).is_some());
    }

    #[test]
    fn only_pci_addresses_are_listed_as_bound_devices() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0000:3b:00.0", "0000:86:00.0", "bind", "module", "uevent"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let addresses: Vec<_> = list_devices_of_driver(folder.path()).into_iter().collect();
        assert_eq!(addresses, ["0000:3b:00.0", "0000:86:00.0"]);
        assert!(list_devices_of_driver(Path::new("/nowhere")).is_empty());
    }

    fn make_search(script: &str) -> GpuSearch {
        GpuSearch::new(CollectorCommand {
            program: "/bin/sh".into(),
            arguments: ["-c", script, "sh"].map(OsString::from).into(),
            interval: Duration::from_secs(1),
        })
    }

    #[tokio::test]
    async fn gpu_list_is_read_from_subprocess_output() {
        let mut prints = make_search("test \"$1\" = --list-gpus && echo '[\"GPU-a\",null]'");
        assert_eq!(
            prints.list_gpus().await.unwrap(),
            [Some("GPU-a".to_owned()), None]
        );
        assert!(make_search("exit 6").list_gpus().await.is_err());
    }

    #[tokio::test]
    async fn process_of_cancelled_search_is_ended() {
        let mut search = make_search("sleep 600 & echo && wait");
        let listing = timeout(Duration::from_millis(100), search.list_gpus()).await;
        assert!(listing.is_err(), "it was cancelled");
        let pid = search.child.as_ref().and_then(Child::id).unwrap();
        let mut stuck = StuckCollectors::default();
        search.stop(&mut stuck).await;
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(stuck.list_running_pids().is_empty());
    }
}

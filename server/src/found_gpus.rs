//! Looks for GPUs again, in a process of its own: a driver counts them when it is loaded, so that a running collector
//! does not see one that was added.

use std::{collections::BTreeSet, ffi::OsString, fs, io, path::Path, process::Stdio, sync::Arc, time::Duration};

use gpumon_probe::{
    child,
    model::{Health, KnownGpu},
};
use tokio::{
    io::AsyncReadExt,
    process::Command,
    sync::watch,
    time::{Instant, interval, timeout},
};

use crate::{frame::CollectorState, hub::Hub, supervisor::Collector};

/// How often it is looked where nothing hints at a change. It costs 50 ms of CPU time.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// How often the kernel's list of GPUs is read, a change of which is a hint. It costs some microseconds.
const HINT_INTERVAL: Duration = Duration::from_secs(5);

/// The devices that the kernel's driver is bound to.
const BOUND_DEVICES: &str = "/sys/bus/pci/drivers/nvidia";

/// A driver that is busy can take so long.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// No machine has more GPUs than fit into a list of so many bytes.
const LONGEST_LIST: u64 = 64 << 10;

/// Sends which GPUs the collector does not read, in words, where another one would. It looks while a collector of this
/// server runs, and never ends.
pub(crate) async fn look_for_gpus(collector: Collector, hub: Arc<Hub>, unread: watch::Sender<String>) {
    let mut hints = interval(HINT_INTERVAL);
    let mut bound = bound_devices(Path::new(BOUND_DEVICES));
    let mut looked = Instant::now();
    let mut reported = BTreeSet::new();
    loop {
        hints.tick().await;
        let status = hub.collector();
        if status.state != CollectorState::Running || status.joined.is_some() {
            continue;
        }
        let bound_now = bound_devices(Path::new(BOUND_DEVICES));
        if bound_now == bound && looked.elapsed() < LOOK_INTERVAL {
            continue;
        }
        bound = bound_now;
        looked = Instant::now();
        match list_gpus(&collector).await {
            Ok(found) => {
                if let Some(message) = describe_unread(&found, &hub.known_gpus(), &mut reported) {
                    unread.send_replace(message);
                }
            }
            Err(error) => tracing::debug!("cannot look for GPUs: {error}"),
        }
    }
}

/// Which of the GPUs that a new process has found the collector does not read; `None` where it reads all of them. One that
/// is lost is found where it has been put in again, and `reported` once until it responds.
fn describe_unread(found: &[Option<String>], known: &[KnownGpu], reported: &mut BTreeSet<String>) -> Option<String> {
    let health = |uuid: &String| {
        known.iter().find(|known| known.gpu.uuid.as_ref() == Some(uuid)).map(|known| known.health.clone())
    };
    reported.retain(|uuid| !matches!(health(uuid), Some(Health::Ok)));
    let identified: Vec<_> = found.iter().flatten().collect();
    let mut unknown = identified.iter().filter(|uuid| health(uuid).is_none());
    // Some may be those that have not told the collector their UUID.
    let nameless = known.iter().filter(|known| known.gpu.uuid.is_none()).count();
    if let Some(uuid) = unknown.nth(nameless) {
        return Some(format!("{uuid} was added"));
    }
    // Those that do not tell their UUID.
    if found.len() > known.len() {
        return Some(format!("the driver finds {} GPUs, and found {} before", found.len(), known.len()));
    }
    let is_lost = |uuid: &&&String| matches!(health(uuid), Some(Health::Lost { .. }));
    let returned = identified.iter().filter(is_lost).find(|uuid| !reported.contains(**uuid))?;
    reported.insert((*returned).clone());
    Some(format!("{returned} was lost, and is found again"))
}

/// The PCI addresses of the devices that a driver of the kernel is bound to; none where it is not loaded.
fn bound_devices(driver: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(driver).into_iter().flatten().flatten().map(|entry| entry.file_name());
    entries.filter(|name| name.to_string_lossy().contains(':')).collect()
}

/// The UUIDs of the GPUs that a new process finds; `None` for one that does not tell it.
async fn list_gpus(collector: &Collector) -> io::Result<Vec<Option<String>>> {
    let mut child = Command::from(child::command(&collector.program))
        .args(&collector.arguments)
        .arg("--list-gpus")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
    let mut list = Vec::new();
    let read = timeout(LOOK_TIMEOUT, stdout.take(LONGEST_LIST).read_to_end(&mut list)).await;
    if read.is_err() {
        child.start_kill()?;
    }
    // One that is stuck in the driver cannot be killed, and no other is started next to it.
    child.wait().await?;
    read.map_err(|_| io::Error::other("the driver does not answer"))??;
    Ok(serde_json::from_slice(&list)?)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Board, Gpu, Reading};

    use super::*;

    fn known(gpus: &[(Option<&str>, Health)]) -> Vec<KnownGpu> {
        let known = |(index, (uuid, health)): (u32, &(Option<&str>, Health))| KnownGpu {
            gpu: Gpu {
                index,
                uuid: uuid.map(str::to_owned),
                name: Reading::Absent(Absence::NoAnswer),
                pci_bus_id: Reading::Absent(Absence::NoAnswer),
                board: Board::absent(&Absence::NoAnswer),
                mig_devices: Vec::new(),
            },
            health: health.clone(),
        };
        (0..).zip(gpus).map(known).collect()
    }

    fn unread(found: &[Option<&str>], gpus: &[(Option<&str>, Health)]) -> Option<String> {
        let found: Vec<_> = found.iter().map(|uuid| uuid.map(str::to_owned)).collect();
        describe_unread(&found, &known(gpus), &mut BTreeSet::new())
    }

    #[test]
    fn gpus_that_a_new_process_finds_are_unread() {
        let (a, b, ok, lost) = (Some("GPU-a"), Some("GPU-b"), Health::Ok, Health::Lost { since_ms: 1 });
        assert_eq!(unread(&[a, b], &[(a, ok.clone()), (b, ok.clone())]), None);
        assert_eq!(unread(&[a], &[(a, ok.clone()), (b, lost.clone())]), None, "one was taken out");
        assert_eq!(unread(&[b, a], &[(a, ok.clone())]).as_deref(), Some("GPU-b was added"));
        let exchanged = unread(&[a, Some("GPU-c")], &[(a, ok.clone()), (b, lost.clone())]);
        assert_eq!(exchanged.as_deref(), Some("GPU-c was added"));
        assert_eq!(unread(&[a, None], &[(a, ok.clone()), (b, lost.clone())]), None, "it has fallen off the bus");
        let nameless = unread(&[a, None], &[(a, ok.clone())]);
        assert_eq!(nameless.as_deref(), Some("the driver finds 2 GPUs, and found 1 before"));
        for found in [None, b] {
            assert_eq!(unread(&[a, found], &[(a, ok.clone()), (None, Health::Hung { since_ms: 1 })]), None);
        }
    }

    #[test]
    fn returned_gpu_is_unread_once_until_it_responds() {
        let (found, mut reported) = (vec![Some("GPU-a".to_owned())], BTreeSet::new());
        let mut unread = |health| describe_unread(&found, &known(&[(Some("GPU-a"), health)]), &mut reported);
        let lost = || Health::Lost { since_ms: 1 };
        assert_eq!(unread(lost()).as_deref(), Some("GPU-a was lost, and is found again"));
        assert_eq!(unread(lost()), None, "the next collector does not read it either");
        assert_eq!(unread(Health::Ok), None);
        assert!(unread(lost()).is_some());
    }

    #[test]
    fn bound_devices_are_the_addresses_in_the_drivers_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0000:3b:00.0", "0000:86:00.0", "bind", "module", "uevent"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let addresses: Vec<_> = bound_devices(folder.path()).into_iter().collect();
        assert_eq!(addresses, ["0000:3b:00.0", "0000:86:00.0"]);
        assert!(bound_devices(Path::new("/nowhere")).is_empty());
    }

    #[tokio::test]
    async fn list_is_what_the_program_prints() {
        let of = |script: &str| Collector {
            program: "/bin/sh".into(),
            arguments: ["-c", script, "sh"].map(OsString::from).into(),
            interval: Duration::from_secs(1),
        };
        let listed = list_gpus(&of("test \"$1\" = --list-gpus && echo '[\"GPU-a\",null]'")).await;
        assert_eq!(listed.unwrap(), [Some("GPU-a".to_owned()), None]);
        assert!(list_gpus(&of("exit 6")).await.is_err());
    }
}

//! The allocation of GPUs to pods, as reported by this machine's kubelet.

mod devices;
mod pod_resources;
#[cfg(test)]
mod tests;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::allocation::AllocatedDevice;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use self::pod_resources::QueryError;

/// The kubelet's socket, which has the same path on every node.
pub const KUBELET_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The interval between requests to the kubelet. Starting a pod takes longer than this.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which the last response is kept if the kubelet does not respond. Pods keep running
/// while the kubelet restarts.
const KEEP_TIME: Duration = Duration::from_mins(1);

/// Queries the kubelet repeatedly, and sends the allocations when they change. This function never
/// returns.
pub(crate) async fn watch_allocations(socket: PathBuf, known: watch::Sender<Vec<AllocatedDevice>>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut answered, mut reported) = (Instant::now(), None);
    loop {
        ticks.tick().await;
        let devices = match query_devices(&socket, RESPONSE_TIMEOUT).await {
            Ok(devices) => {
                if reported.take().is_some() {
                    tracing::info!("the kubelet reports the GPUs of pods again");
                }
                answered = Instant::now();
                devices
            }
            // A missing socket is not an error, because the kubelet may be installed later.
            Err(QueryError::Connect(error)) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let problem = format!(
                    "the kubelet at {} does not report the GPUs of pods: {error}; retrying. To \
                     stop these requests, use --kubelet-socket none",
                    socket.display()
                );
                if reported.as_ref() != Some(&problem) {
                    tracing::warn!("{problem}");
                    reported = Some(problem);
                }
                if answered.elapsed() < KEEP_TIME {
                    continue;
                }
                Vec::new()
            }
        };
        known.send_if_modified(|known| std::mem::replace(known, devices.clone()) != devices);
    }
}

/// Parses the body of a kubelet's response.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz_response(answer: &[u8]) {
    if let Ok(answer) = pod_resources::parse_message(bytes::Bytes::copy_from_slice(answer)) {
        devices::list_allocated_devices(answer);
    }
}

async fn query_devices(
    socket: &Path,
    patience: Duration,
) -> Result<Vec<AllocatedDevice>, QueryError> {
    let answer = timeout(patience, pod_resources::list_pod_resources(socket)).await;
    Ok(devices::list_allocated_devices(
        answer.map_err(|_| QueryError::NoAnswer(patience))??,
    ))
}

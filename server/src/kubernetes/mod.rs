//! The allocation of GPUs to pods, as the kubelet of this machine reports it.

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

/// The socket of the kubelet, which is the same on every node.
pub const KUBELET_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The interval between requests. Starting a pod takes longer.
const EVERY: Duration = Duration::from_secs(10);

const PATIENCE: Duration = Duration::from_secs(5);

/// The time for which the last response is kept without a new one. Pods continue during a restart
/// of the kubelet.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Asks the kubelet repeatedly, and sends changed allocations. This function never returns.
pub(crate) async fn follow(socket: PathBuf, known: watch::Sender<Vec<AllocatedDevice>>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut answered, mut told) = (Instant::now(), None);
    loop {
        ticks.tick().await;
        let devices = match ask(&socket, PATIENCE).await {
            Ok(devices) => {
                if told.take().is_some() {
                    tracing::info!("the kubelet tells which pods hold GPUs again");
                }
                answered = Instant::now();
                devices
            }
            // A missing socket is not an error, because the kubelet may be installed later.
            Err(QueryError::Connect(error)) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let problem = format!(
                    "the kubelet at {} does not tell which pods hold GPUs: {error}; retrying. --kubelet-socket none \
                     disables this",
                    socket.display()
                );
                if told.as_ref() != Some(&problem) {
                    tracing::warn!("{problem}");
                    told = Some(problem);
                }
                if answered.elapsed() < REMEMBERED {
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
pub(crate) fn fuzz(answer: &[u8]) {
    if let Ok(answer) = pod_resources::message(bytes::Bytes::copy_from_slice(answer)) {
        devices::allocated(answer);
    }
}

async fn ask(socket: &Path, patience: Duration) -> Result<Vec<AllocatedDevice>, QueryError> {
    let answer = timeout(patience, pod_resources::list(socket)).await;
    Ok(devices::allocated(
        answer.map_err(|_| QueryError::NoAnswer(patience))??,
    ))
}

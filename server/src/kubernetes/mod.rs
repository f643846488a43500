//! The allocation of GPUs to pods, as reported by this machine's kubelet through its pod resources
//! API.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use axum::http::{HeaderMap, Request, header::CONTENT_TYPE};
use bytes::{Buf, Bytes};
use gpumon_probe::{allocation::AllocatedDevice, model::Allocation, owner::clean_name};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode;
use prost::Message;
use tokio::{
    net::UnixStream,
    sync::watch,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

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
    if let Ok(answer) = parse_message(bytes::Bytes::copy_from_slice(answer)) {
        list_allocated_devices(answer);
    }
}

async fn query_devices(
    socket: &Path,
    patience: Duration,
) -> Result<Vec<AllocatedDevice>, QueryError> {
    let answer = timeout(patience, list_pod_resources(socket)).await;
    Ok(list_allocated_devices(
        answer.map_err(|_| QueryError::NoAnswer(patience))??,
    ))
}

// The GPUs and MIG devices among a pod's resources.

/// The name of NVIDIA's driver for dynamic resource allocation.
const DRA_DRIVER: &str = "gpu.nvidia.com";

/// The maximum length of a device ID in bytes. A UUID with its prefix has 40 bytes.
const MAX_DEVICE_ID_BYTES: usize = 128;

/// The maximum number of devices in a response. Each share of a shared device counts as a device.
const MAX_DEVICES: usize = 4096;

fn list_allocated_devices(answer: ListPodResourcesResponse) -> Vec<AllocatedDevice> {
    let mut all = Vec::new();
    for pod in answer.pod_resources {
        for container in pod.containers {
            for device in container_devices(&container) {
                let [namespace, pod, container] =
                    [&pod.namespace, &pod.name, &container.name].map(|name| clean_name(name));
                let to = Allocation::Kubernetes {
                    namespace,
                    pod,
                    container,
                };
                let device = AllocatedDevice { device, to };
                if all.len() < MAX_DEVICES && !all.contains(&device) {
                    all.push(device);
                }
            }
        }
    }
    all
}

fn container_devices(container: &ContainerResources) -> impl Iterator<Item = String> {
    let by_plugin = container.devices.iter().flat_map(plugin_devices);
    let claims = container
        .dynamic_resources
        .iter()
        .flat_map(|resource| &resource.claim_resources);
    by_plugin.chain(claims.filter_map(device_of_claim))
}

/// Returns the devices allocated by a device plugin. NVIDIA's plugin uses UUIDs, with `::N`
/// appended for shared devices. Google's plugin uses device files, such as `nvidia0`, or
/// `nvidia0/vgpu1` for a shared device.
fn plugin_devices(devices: &ContainerDevices) -> impl Iterator<Item = String> {
    let is_nvidia = devices.resource_name.starts_with("nvidia.com/");
    let ids = devices
        .device_ids
        .iter()
        .filter(move |id| is_nvidia && id.len() <= MAX_DEVICE_ID_BYTES);
    ids.filter_map(|id| {
        let device = id
            .split_once("::")
            .map_or(id.as_str(), |(device, _)| device);
        if device.starts_with("GPU-") || device.starts_with("MIG-") {
            return Some(device.to_owned());
        }
        let number = device
            .split_once("/vgpu")
            .map_or(device, |(device, _)| device)
            .strip_prefix("nvidia")?;
        device_from_minor_number(number)
    })
}

/// Returns the device of a resource claim. GPUs are named `gpu-N`. MIG devices are named by their
/// position on the GPU, which cannot be resolved to a device here, so they are ignored.
fn device_of_claim(claim: &ClaimResource) -> Option<String> {
    device_from_minor_number(
        claim
            .device_name
            .strip_prefix("gpu-")
            .filter(|_| claim.driver_name == DRA_DRIVER)?,
    )
}

fn device_from_minor_number(number: &str) -> Option<String> {
    number
        .parse::<u16>()
        .ok()
        .map(|minor| format!("gpu-{minor}"))
}

// A client of the kubelet's pod resources API, which uses gRPC on a Unix socket.
//
// The messages contain only the fields of `k8s.io/kubelet/pkg/apis/podresources/v1` that are
// needed. A single call without arguments needs little of gRPC: a prefix of five bytes, and the
// status after the response. hyper provides HTTP/2.

/// The maximum size of a response in bytes. The kubelet's own clients have the same limit.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The URI of the service's `List` method. Its argument is an empty message.
const LIST_METHOD: &str = "http://kubelet/v1.PodResourcesLister/List";
const EMPTY_GRPC_MESSAGE: &[u8] = &[0; GRPC_PREFIX_BYTES];

/// The size of the prefix of a gRPC message in bytes. It consists of a compression flag and the
/// message's length. Messages are only compressed if the client offers it.
const GRPC_PREFIX_BYTES: usize = 5;

#[derive(Clone, PartialEq, Message)]
struct ListPodResourcesResponse {
    #[prost(message, repeated, tag = "1")]
    pod_resources: Vec<PodResources>,
}

#[derive(Clone, PartialEq, Message)]
struct PodResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(message, repeated, tag = "3")]
    containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    devices: Vec<ContainerDevices>,
    #[prost(message, repeated, tag = "5")]
    dynamic_resources: Vec<DynamicResource>,
}

/// The devices that a device plugin has allocated to a container.
#[derive(Clone, PartialEq, Message)]
struct ContainerDevices {
    #[prost(string, tag = "1")]
    resource_name: String,
    #[prost(string, repeated, tag = "2")]
    device_ids: Vec<String>,
}

/// The devices that dynamic resource allocation has assigned to a container.
#[derive(Clone, PartialEq, Message)]
struct DynamicResource {
    #[prost(message, repeated, tag = "4")]
    claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, Message)]
struct ClaimResource {
    #[prost(string, tag = "2")]
    driver_name: String,
    #[prost(string, tag = "4")]
    device_name: String,
}

/// The reason why a query failed.
#[derive(Debug, thiserror::Error)]
enum QueryError {
    #[error("cannot connect ({0})")]
    Connect(#[source] io::Error),
    #[error("no response within {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("the connection was lost ({0})")]
    Broken(#[from] hyper::Error),
    #[error("its response is larger than {} MiB", MAX_RESPONSE_BYTES >> 20)]
    TooLong,
    #[error("its response is not gRPC ({0})")]
    NotGrpc(&'static str),
    #[error("it rejects the request with gRPC status {code}{message}")]
    Refused { code: String, message: String },
    #[error("its response does not match its API v1 ({0})")]
    Malformed(#[from] prost::DecodeError),
}

/// Returns the resources of all pods on this machine.
async fn list_pod_resources(socket: &Path) -> Result<ListPodResourcesResponse, QueryError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(QueryError::Connect)?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let request = Request::post(LIST_METHOD)
        .header(CONTENT_TYPE, "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(EMPTY_GRPC_MESSAGE)))
        .map_err(|_| QueryError::NotGrpc("no request"))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(QueryError::NotGrpc(
                "its HTTP status does not indicate success",
            ));
        }
        // A gRPC error response can consist of headers only.
        check_status(&head.headers)?;
        let answer = Limited::new(body, MAX_RESPONSE_BYTES + GRPC_PREFIX_BYTES)
            .collect()
            .await
            .map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => QueryError::Broken(*error),
                Err(error) if error.is::<LengthLimitError>() => QueryError::TooLong,
                Err(_) => QueryError::NotGrpc("no body"),
            })?;
        let status = answer.trailers().cloned().unwrap_or_default();
        check_status(&status)?;
        if status.get("grpc-status").is_none() {
            return Err(QueryError::NotGrpc("no status"));
        }
        parse_message(answer.to_bytes())
    };
    // The connection is polled together with the exchange, because it makes no progress otherwise.
    // Afterwards, it is closed.
    tokio::select! {
        answer = exchange => answer,
        Err(error) = connection => Err(error.into()),
    }
}

/// Returns an error if the headers contain a gRPC status other than success.
fn check_status(headers: &HeaderMap) -> Result<(), QueryError> {
    let text = |name| Some(percent_decode(headers.get(name)?.as_bytes()).decode_utf8_lossy());
    match text("grpc-status") {
        None => Ok(()),
        Some(code) if code == "0" => Ok(()),
        Some(code) => {
            let message =
                text("grpc-message").map_or_else(String::new, |message| format!(": {message}"));
            let [code, message] = [&code, &*message].map(clean_name);
            Err(QueryError::Refused { code, message })
        }
    }
}

fn parse_message(mut answer: Bytes) -> Result<ListPodResourcesResponse, QueryError> {
    if answer.len() < GRPC_PREFIX_BYTES {
        return Err(QueryError::NotGrpc("no message"));
    }
    let (is_compressed, length) = (answer.get_u8() != 0, answer.get_u32() as usize);
    if is_compressed || length != answer.len() {
        return Err(QueryError::NotGrpc("the body is not exactly one message"));
    }
    Ok(ListPodResourcesResponse::decode(answer)?)
}

#[cfg(test)]
mod tests;

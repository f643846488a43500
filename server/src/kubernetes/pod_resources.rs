//! A client of the kubelet's pod resources API, which uses gRPC on a Unix socket.
//!
//! The messages contain only the fields of `k8s.io/kubelet/pkg/apis/podresources/v1` that are
//! needed. A single call without arguments needs little of gRPC: a prefix of five bytes, and the
//! status after the response. hyper provides HTTP/2.

use std::{io, path::Path, time::Duration};

use axum::http::{HeaderMap, Request, header::CONTENT_TYPE};
use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode;
use prost::Message;
use tokio::net::UnixStream;

/// The maximum size of a response in bytes. The kubelet's own clients have the same limit.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The URI of the service's `List` method. Its argument is an empty message.
const LIST_METHOD: &str = "http://kubelet/v1.PodResourcesLister/List";
const EMPTY_MESSAGE: &[u8] = &[0; HEAD_BYTES];

/// The size of the prefix of a gRPC message in bytes. It consists of a compression flag and the
/// message's length. Messages are only compressed if the client offers it.
const HEAD_BYTES: usize = 5;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListPodResourcesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) pod_resources: Vec<PodResources>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodResources {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerResources {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) devices: Vec<ContainerDevices>,
    #[prost(message, repeated, tag = "5")]
    pub(super) dynamic_resources: Vec<DynamicResource>,
}

/// The devices that a device plugin has allocated to a container.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerDevices {
    #[prost(string, tag = "1")]
    pub(super) resource_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) device_ids: Vec<String>,
}

/// The devices that dynamic resource allocation has assigned to a container.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DynamicResource {
    #[prost(message, repeated, tag = "4")]
    pub(super) claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClaimResource {
    #[prost(string, tag = "2")]
    pub(super) driver_name: String,
    #[prost(string, tag = "4")]
    pub(super) device_name: String,
}

/// The reason why a query failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
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
pub(super) async fn list_pod_resources(
    socket: &Path,
) -> Result<ListPodResourcesResponse, QueryError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(QueryError::Connect)?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let request = Request::post(LIST_METHOD)
        .header(CONTENT_TYPE, "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(EMPTY_MESSAGE)))
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
        let answer = Limited::new(body, MAX_RESPONSE_BYTES + HEAD_BYTES)
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
    // The connection only makes progress while it is polled here, and is closed afterwards.
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
            let [code, message] = [&code, &*message].map(gpumon_probe::owner::clean_name);
            Err(QueryError::Refused { code, message })
        }
    }
}

pub(super) fn parse_message(mut answer: Bytes) -> Result<ListPodResourcesResponse, QueryError> {
    if answer.len() < HEAD_BYTES {
        return Err(QueryError::NotGrpc("no message"));
    }
    let (is_compressed, length) = (answer.get_u8() != 0, answer.get_u32() as usize);
    if is_compressed || length != answer.len() {
        return Err(QueryError::NotGrpc("the body is not exactly one message"));
    }
    Ok(ListPodResourcesResponse::decode(answer)?)
}

//! A client of the kubelet's API for pod resources: gRPC on a unix socket.
//!
//! The messages contain only the required fields of `k8s.io/kubelet/pkg/apis/podresources/v1`. A
//! single call without an argument needs little of gRPC: a head of five bytes, and the status after
//! the response. hyper provides HTTP/2.

use std::{io, path::Path, time::Duration};

use axum::http::{HeaderMap, Request, header::CONTENT_TYPE};
use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode;
use prost::Message;
use tokio::net::UnixStream;

/// The maximum size of a response in bytes, the same as the kubelet sets for its own clients.
const LONGEST: usize = 16 << 20;

/// The method `List` of the service, which has an empty message as its argument.
const LIST: &str = "http://kubelet/v1.PodResourcesLister/List";
const NO_ARGUMENT: &[u8] = &[0; HEAD];

/// The size of the head in bytes: a flag for compression, which is not used unless the client
/// offers it, and the length of the message.
const HEAD: usize = 5;

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

/// The devices of a device plugin.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerDevices {
    #[prost(string, tag = "1")]
    pub(super) resource_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) device_ids: Vec<String>,
}

/// The devices of dynamic resource allocation.
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

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    #[error("cannot connect ({0})")]
    Connect(#[source] io::Error),
    #[error("no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("its connection breaks ({0})")]
    Broken(#[from] hyper::Error),
    #[error("its answer has more than {} MiB", LONGEST >> 20)]
    TooLong,
    #[error("its answer is no gRPC ({0})")]
    NotGrpc(&'static str),
    #[error("it refuses with gRPC status {code}{message}")]
    Refused { code: String, message: String },
    #[error("its answer is none of its API v1 ({0})")]
    Malformed(#[from] prost::DecodeError),
}

/// Returns the resources of all pods on this machine.
pub(super) async fn list(socket: &Path) -> Result<ListPodResourcesResponse, QueryError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(QueryError::Connect)?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let request = Request::post(LIST)
        .header(CONTENT_TYPE, "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(NO_ARGUMENT)))
        .map_err(|_| QueryError::NotGrpc("no request"))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(QueryError::NotGrpc("its HTTP status is no success"));
        }
        // A refusal can consist of headers alone.
        check(&head.headers)?;
        let answer =
            Limited::new(body, LONGEST + HEAD)
                .collect()
                .await
                .map_err(|error| match error.downcast::<hyper::Error>() {
                    Ok(error) => QueryError::Broken(*error),
                    Err(error) if error.is::<LengthLimitError>() => QueryError::TooLong,
                    Err(_) => QueryError::NotGrpc("no body"),
                })?;
        let status = answer.trailers().cloned().unwrap_or_default();
        check(&status)?;
        if status.get("grpc-status").is_none() {
            return Err(QueryError::NotGrpc("no status"));
        }
        message(answer.to_bytes())
    };
    // The connection makes progress only while this waits, and is closed afterwards.
    tokio::select! {
        answer = exchange => answer,
        Err(error) = connection => Err(error.into()),
    }
}

/// Returns an error if the headers contain a gRPC status other than success.
fn check(headers: &HeaderMap) -> Result<(), QueryError> {
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

pub(super) fn message(mut answer: Bytes) -> Result<ListPodResourcesResponse, QueryError> {
    if answer.len() < HEAD {
        return Err(QueryError::NotGrpc("no message"));
    }
    let (is_compressed, length) = (answer.get_u8() != 0, answer.get_u32() as usize);
    if is_compressed || length != answer.len() {
        return Err(QueryError::NotGrpc("more or less than a message"));
    }
    Ok(ListPodResourcesResponse::decode(answer)?)
}

//! The gRPC service `v1.PodResourcesLister` over HTTP/2, according to gRPC's `PROTOCOL-HTTP2.md`.

use std::{
    convert::Infallible,
    future::{pending, ready},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixListener;

use crate::{
    KubeletAnswer,
    messages::{ListPodResourcesRequest, ListPodResourcesResponse},
};

/// The gRPC status codes.
const OK: u16 = 0;
const INVALID_ARGUMENT: u16 = 3;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNIMPLEMENTED: u16 = 12;

/// The size of the prefix of a message: a flag and the message's length.
const PREFIX_BYTES: usize = 5;

type GrpcResponse = Response<BoxBody<Bytes, Infallible>>;

/// Answers requests on all connections until the runtime ends.
pub(crate) async fn serve(listener: UnixListener, answer: Arc<Mutex<KubeletAnswer>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let answer = Arc::clone(&answer);
        let service = service_fn(move |request| {
            let answer = answer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            respond(request, answer)
        });
        tokio::spawn(
            http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn respond(request: Request<Incoming>, answer: KubeletAnswer) -> hyper::Result<GrpcResponse> {
    let (head, body) = request.into_parts();
    if head.uri.path() != "/v1.PodResourcesLister/List" {
        return Ok(make_refusal(UNIMPLEMENTED, "no such method"));
    }
    let header = |name: &str| {
        head.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let is_grpc = head.method == Method::POST
        && header("content-type").starts_with("application/grpc")
        && header("te") == "trailers";
    if !is_grpc || !is_list_request(&body.collect().await?.to_bytes()) {
        return Ok(make_refusal(INVALID_ARGUMENT, "the request is not of gRPC"));
    }
    match answer {
        KubeletAnswer::Pods(pods) => Ok(make_response(&pods)),
        KubeletAnswer::Refused => Ok(make_refusal(RESOURCE_EXHAUSTED, "rejected by rate limit")),
        KubeletAnswer::Hung => pending().await,
    }
}

/// Returns `true` if the body is a single uncompressed `List` request whose length is the one in
/// its prefix.
fn is_list_request(body: &[u8]) -> bool {
    body.split_first_chunk::<PREFIX_BYTES>()
        .is_some_and(|([flag, length @ ..], message)| {
            *flag == 0
                && u32::from_be_bytes(*length) as usize == message.len()
                && ListPodResourcesRequest::decode(message).is_ok()
        })
}

fn make_response(pods: &ListPodResourcesResponse) -> GrpcResponse {
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(u32::try_from(pods.encoded_len()).expect("an answer of a test is small"));
    message.put_slice(&pods.encode_to_vec());
    let trailers = HeaderMap::from_iter([("grpc-status".parse().expect("a name"), OK.into())]);
    let body = Full::new(message.freeze()).with_trailers(ready(Some(Ok(trailers))));
    Response::builder()
        .header(CONTENT_TYPE, "application/grpc")
        .body(body.boxed())
        .expect("a response")
}

fn make_refusal(status: u16, message: &str) -> GrpcResponse {
    Response::builder()
        .header(CONTENT_TYPE, "application/grpc")
        .header("grpc-status", status)
        .header("grpc-message", message)
        .body(Empty::new().boxed())
        .expect("a response")
}

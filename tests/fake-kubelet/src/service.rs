//! The service, as tonic's generated code has it.

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use tonic::{
    Request, Response, Status,
    body::Body,
    server::{Grpc, NamedService},
};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::{
    Answer,
    messages::{ListPodResourcesRequest, ListPodResourcesResponse},
};

#[derive(Debug, Clone)]
pub(crate) struct Lister(pub(crate) Arc<Mutex<Answer>>);

impl NamedService for Lister {
    const NAME: &'static str = "v1.PodResourcesLister";
}

type Answering<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// One call.
struct List(Answer);

impl Service<Request<ListPodResourcesRequest>> for List {
    type Response = Response<ListPodResourcesResponse>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<ListPodResourcesRequest>) -> Self::Future {
        let answer = self.0.clone();
        Box::pin(async {
            match answer {
                Answer::Pods(pods) => Ok(Response::new(pods)),
                Answer::Refused => Err(Status::resource_exhausted("rejected by rate limit")),
                Answer::Hung => pending().await,
            }
        })
    }
}

impl Service<http::Request<Body>> for Lister {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let list = List(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Box::pin(async move {
            if request.uri().path() != "/v1.PodResourcesLister/List" {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            Ok(Grpc::new(ProstCodec::default()).unary(list, request).await)
        })
    }
}

//! The restriction for the socket that all users of the machine share: clients can only read.

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses all requests that change something, even from clients that may make changes through
/// another socket.
pub(crate) async fn refuse_changes(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let message = "this socket is shared by all users and read-only: use the server's control \
                   socket, as root\n";
    (StatusCode::FORBIDDEN, message).into_response()
}

//! The limits of a socket that all users of the machine share: they can only read.

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses all changes, even for clients that may make them elsewhere.
pub(crate) async fn read_only(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let message = "this socket is shared by all users and only read from: use the server's control socket, as root\n";
    (StatusCode::FORBIDDEN, message).into_response()
}

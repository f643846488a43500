//! What every user of the machine may do at a shared socket: read.

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses what could change anything, whoever asks: whoever may do that has another way in.
pub(crate) async fn read_only(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let message = "this socket is shared by all users and only read from: use the server's control socket, as root\n";
    (StatusCode::FORBIDDEN, message).into_response()
}

//! Refusals of requests.

use axum::http::StatusCode;

/// The status and the message of a refused request.
pub(crate) type Refusal = (StatusCode, String);

/// Returns the refusal of an invalid request.
pub(crate) fn bad_request(why: String) -> Refusal {
    (StatusCode::BAD_REQUEST, why + "\n")
}

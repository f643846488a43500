//! What is answered.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

/// Writes a line. It fails where whoever asked has ended, which the end of the input tells, too.
pub(super) fn write(line: &impl Serialize) {
    let mut out = io::stdout().lock();
    let _ = serde_json::to_writer(&mut out, line)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"));
    let _ = out.flush();
}

/// Answers a request that wants an answer.
pub(super) fn answer(id: Option<u64>, mut answer: Value) {
    if let (Some(id), Value::Object(parts)) = (id, &mut answer) {
        parts.insert("id".to_owned(), id.into());
        write(&answer);
    }
}

/// Reports a line that is no request. It is not known who waits for its answer.
pub(super) fn refuse_line(why: &str) {
    write(&json!({ "error": why }));
}

/// Answers a request with an error, or reports the error as a remark if the request wants no
/// answer.
pub(super) fn refuse(id: Option<u64>, why: &str) {
    match id {
        Some(_) => answer(id, json!({ "error": why })),
        None => write(&json!({ "remark": why })),
    }
}

//! Reading of response bodies up to a maximum size.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::{BodyExt, Limited};
use hyper::{
    body::Incoming,
    header::{CONTENT_ENCODING, HeaderMap, HeaderValue},
};

use super::error::format_causes;

/// The reasons why a response body cannot be read.
pub(super) enum BodyError {
    TooLarge,
    /// The body ended early.
    Broken(String),
    /// The body has an unsupported encoding.
    Unknown(String),
}

/// Returns the decompressed body. Both the compressed and the decompressed size are limited to
/// `most` bytes.
pub(super) async fn read_body(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
) -> Result<Bytes, BodyError> {
    let bytes = Limited::new(body, most).collect().await.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            BodyError::TooLarge
        } else {
            BodyError::Broken(format_causes(error.as_ref()))
        }
    })?;
    let bytes = bytes.to_bytes();
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(bytes),
        Some(b"gzip" | b"x-gzip") => {
            let unpacked = tokio::task::spawn_blocking(move || decompress(&bytes, most)).await;
            unpacked.unwrap_or_else(|error| Err(BodyError::Broken(error.to_string())))
        }
        Some(_) => Err(BodyError::Unknown(
            "its response has an encoding that was not requested".to_owned(),
        )),
    }
}

fn decompress(bytes: &[u8], most: usize) -> Result<Bytes, BodyError> {
    let mut all = Vec::with_capacity(bytes.len().saturating_mul(16).min(most));
    let length = GzDecoder::new(bytes)
        .take(most as u64 + 1)
        .read_to_end(&mut all);
    match length {
        Err(error) => Err(BodyError::Unknown(format!(
            "its gzip data is invalid ({error})"
        ))),
        Ok(length) if length > most => Err(BodyError::TooLarge),
        Ok(_) => Ok(all.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn decompression_is_limited() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[b'x'; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(decompress(&packed, 1000).ok().unwrap().len(), 1000);
        assert!(matches!(decompress(&packed, 999), Err(BodyError::TooLarge)));
        assert!(matches!(
            decompress(&packed[..20], 1000),
            Err(BodyError::Unknown(_))
        ));
    }
}

//! The body of an answer, up to a maximum size.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::{BodyExt, Limited};
use hyper::{
    body::Incoming,
    header::{CONTENT_ENCODING, HeaderMap, HeaderValue},
};

use super::error::causes;

/// The reasons why a body cannot be read.
pub(super) enum BodyError {
    TooLarge,
    /// The body ended early.
    Broken(String),
    /// The body has an unexpected encoding.
    Unknown(String),
}

/// Returns the decompressed body. Neither the compressed nor the decompressed form may be larger
/// than `most` bytes.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
) -> Result<Bytes, BodyError> {
    let bytes = Limited::new(body, most).collect().await.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            BodyError::TooLarge
        } else {
            BodyError::Broken(causes(error.as_ref()))
        }
    })?;
    let bytes = bytes.to_bytes();
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(bytes),
        Some(b"gzip" | b"x-gzip") => {
            let unpacked = tokio::task::spawn_blocking(move || unpacked(&bytes, most)).await;
            unpacked.unwrap_or_else(|error| Err(BodyError::Broken(error.to_string())))
        }
        Some(_) => Err(BodyError::Unknown(
            "its encoding is not one that was asked for".to_owned(),
        )),
    }
}

fn unpacked(bytes: &[u8], most: usize) -> Result<Bytes, BodyError> {
    let mut all = Vec::with_capacity(bytes.len().saturating_mul(16).min(most));
    let length = GzDecoder::new(bytes)
        .take(most as u64 + 1)
        .read_to_end(&mut all);
    match length {
        Err(error) => Err(BodyError::Unknown(format!("its gzip is broken ({error})"))),
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
    fn what_is_packed_is_unpacked_as_far_as_it_may_be() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[b'x'; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(unpacked(&packed, 1000).ok().unwrap().len(), 1000);
        assert!(matches!(unpacked(&packed, 999), Err(BodyError::TooLarge)));
        assert!(matches!(
            unpacked(&packed[..20], 1000),
            Err(BodyError::Unknown(_))
        ));
    }
}

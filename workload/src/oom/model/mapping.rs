//! The model's virtual memory.

use std::collections::BTreeMap;

use super::{Model, invalid};
use crate::{
    cuda::CudaError,
    oom::device::{Device, Held, Mapping},
};

/// Places, and which piece is behind each.
pub(super) struct ModelMapping<'a> {
    device: &'a Model,
    piece_bytes: u64,
    pieces: Vec<Piece>,
    places: BTreeMap<u64, usize>,
}

impl<'a> ModelMapping<'a> {
    /// Pieces of this size, none of them made yet.
    pub(super) fn new(device: &'a Model, piece_bytes: u64) -> Self {
        Self {
            device,
            piece_bytes,
            pieces: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

/// A piece of memory, of which the first byte and the last are known.
struct Piece {
    _held: Held,
    first: u8,
    last: u8,
}

impl Mapping for ModelMapping<'_> {
    fn create(&mut self) -> Result<usize, CudaError> {
        self.pieces.push(Piece {
            _held: self.device.allocate(self.piece_bytes)?,
            first: 0,
            last: 0,
        });
        Ok(self.pieces.len() - 1)
    }

    fn map(&mut self, place: u64, piece: usize) -> Result<(), CudaError> {
        match self.places.insert(place, piece) {
            None => Ok(()),
            Some(_) => Err(invalid(format!("map behind place {place}"))),
        }
    }

    fn unmap(&mut self, place: u64) -> Result<(), CudaError> {
        self.places
            .remove(&place)
            .map(drop)
            .ok_or_else(|| invalid(format!("unmap place {place}")))
    }

    fn fill(&mut self, offset_bytes: u64, bytes: u64, value: u8) -> Result<(), CudaError> {
        let end = offset_bytes + bytes;
        for place in offset_bytes / self.piece_bytes..end.div_ceil(self.piece_bytes) {
            let piece = self
                .places
                .get(&place)
                .ok_or_else(|| invalid(format!("fill place {place}")))?;
            let (begin, piece) = (place * self.piece_bytes, &mut self.pieces[*piece]);
            if offset_bytes <= begin {
                piece.first = value;
            }
            if end >= begin + self.piece_bytes {
                piece.last = value;
            }
        }
        Ok(())
    }

    fn read(&self, offset_bytes: u64) -> Result<u8, CudaError> {
        let place = offset_bytes / self.piece_bytes;
        let piece = self
            .places
            .get(&place)
            .ok_or_else(|| invalid(format!("read place {place}")))?;
        let is_first = offset_bytes.is_multiple_of(self.piece_bytes);
        Ok(if is_first {
            self.pieces[*piece].first
        } else {
            self.pieces[*piece].last
        })
    }
}

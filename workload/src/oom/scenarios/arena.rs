//! An arena: one allocation, handed out in pieces, as the allocators of frameworks do.

use std::collections::BTreeMap;

pub(super) struct Arena {
    /// What is free, by its offset: the size.
    free: BTreeMap<u64, u64>,
}

impl Arena {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            free: BTreeMap::from([(0, bytes)]),
        }
    }

    /// So many bytes in a row, at the first place that has them.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let (&offset, &size) = self.free.iter().find(|(_, size)| **size >= bytes)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    /// Takes them back, and joins them with what is free on either side.
    pub(super) fn free(&mut self, offset: u64, bytes: u64) {
        let (mut begin, mut size) = (offset, bytes);
        if let Some((&before, &own)) = self.free.range(..offset).next_back()
            && before + own == offset
        {
            (begin, size) = (before, own + size);
        }
        size += self.free.remove(&(offset + bytes)).unwrap_or(0);
        self.free.insert(begin, size);
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free.values().sum()
    }

    /// As much as there is in a row.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_in_all_is_not_enough_in_a_row() {
        let mut arena = Arena::new(80);
        let offsets: Vec<_> = (0..8).filter_map(|_| arena.allocate(10)).collect();
        assert_eq!((offsets.len(), arena.allocate(1)), (8, None));
        for offset in offsets.iter().step_by(2) {
            arena.free(*offset, 10);
        }
        assert_eq!(
            (
                arena.free_bytes(),
                arena.largest_bytes(),
                arena.allocate(20)
            ),
            (40, 10, None)
        );
        // What lies side by side is one.
        arena.free(10, 10);
        assert_eq!((arena.largest_bytes(), arena.allocate(30)), (30, Some(0)));
        arena.free(0, 30);
        arena.free(30, 10);
        assert_eq!(arena.largest_bytes(), 50);
    }
}

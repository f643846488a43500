//! Parallel work on all threads of the CPU. Closures are passed as `dyn`, because rayon would
//! otherwise add 4 KB of code for each closure.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The number of elements per task if there is little work for each element. It is large enough to
/// make the cost of a task negligible.
pub(crate) const CHUNK_ELEMENTS: usize = 1 << 14;

/// Calls `work` with each number below `count`, on all threads. If `count` is 1, the call is made
/// on the current thread, because waking another thread takes longer.
pub(crate) fn for_each_index(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count == 1 {
        work(0);
    } else {
        (0..count).into_par_iter().for_each(work);
    }
}

/// Calls `work` with each piece, on all threads.
pub(crate) fn for_each<T: Send>(pieces: impl Iterator<Item = T>, work: &(dyn Fn(T) + Sync)) {
    map(pieces, work);
}

/// Returns the results of `work` for all pieces, in the order of the pieces.
pub(crate) fn map<T: Send, R: Send>(
    mut pieces: impl Iterator<Item = T>,
    work: &(dyn Fn(T) -> R + Sync),
) -> Vec<R> {
    let Some(first) = pieces.next() else {
        return Vec::new();
    };
    // A single piece is processed on the current thread, because waking another thread takes
    // longer.
    let Some(second) = pieces.next() else {
        return vec![work(first)];
    };
    let cells: Vec<_> = [first, second]
        .into_iter()
        .chain(pieces)
        .map(|piece| Mutex::new((Some(piece), None)))
        .collect();
    for_each_index(cells.len(), &|at| {
        let mut cell = cells[at].lock().unwrap_or_else(PoisonError::into_inner);
        cell.1 = cell.0.take().map(work);
    });
    let results = cells
        .into_iter()
        .map(|cell| cell.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    results.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_map_returns_results_in_order() {
        for count in [0, 1, 2, 1000] {
            let mut numbers: Vec<u64> = (0..count).collect();
            let lengths = map(numbers.chunks_mut(3), &|piece: &mut [_]| {
                piece.reverse();
                piece.len()
            });
            assert!(
                lengths.into_iter().eq(numbers.chunks(3).map(<[_]>::len)),
                "{count}"
            );
            for_each(numbers.chunks_mut(3), &|piece| piece.reverse());
            assert!(
                numbers.into_iter().eq(0..count),
                "each piece is reversed twice: {count}"
            );
        }
    }
}

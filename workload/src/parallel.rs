//! Work on all threads of the CPU. It is passed as `dyn`: for each closure of its own, rayon would
//! be 4 KB of code.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Elements that a thread takes at a time, where it does little with each: enough that taking them
/// costs nothing.
pub(crate) const CHUNK: usize = 1 << 14;

/// Does the work of each number below this. Waking another thread for a single one takes longer
/// than that.
pub(crate) fn for_each_below(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count == 1 {
        work(0);
    } else {
        (0..count).into_par_iter().for_each(work);
    }
}

/// Does the work of each piece.
pub(crate) fn for_each<T: Send>(pieces: impl Iterator<Item = T>, work: &(dyn Fn(T) + Sync)) {
    map(pieces, work);
}

/// What the work makes of each piece, in their order.
pub(crate) fn map<T: Send, R: Send>(
    mut pieces: impl Iterator<Item = T>,
    work: &(dyn Fn(T) -> R + Sync),
) -> Vec<R> {
    let Some(first) = pieces.next() else {
        return Vec::new();
    };
    // To share a single one takes longer than a small one does.
    let Some(second) = pieces.next() else {
        return vec![work(first)];
    };
    let cells: Vec<_> = [first, second]
        .into_iter()
        .chain(pieces)
        .map(|piece| Mutex::new((Some(piece), None)))
        .collect();
    for_each_below(cells.len(), &|at| {
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
    fn each_piece_is_worked_on_once_and_results_come_in_order() {
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

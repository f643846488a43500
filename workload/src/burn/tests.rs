use super::*;
use crate::protocol::Backend;

fn burn(request: BurnRequest, interrupted: bool) -> Result<(Outcome, Vec<Burning>), RunError> {
    let cpu = Cpu::this();
    let mut told = Vec::new();
    let flag = AtomicBool::new(interrupted);
    run(&Place::Cpu(&cpu), &cpu, &request, &flag, &mut |burning| {
        told.push(burning);
    })
    .map(|outcome| (outcome, told))
}

/// Returns a request with so little memory that the matrices are small.
fn little(time_ms: u64) -> BurnRequest {
    let share = f64::from(3 << 20) / MemoryBudget::for_host(0).free_bytes as f64;
    BurnRequest {
        time: Duration::from_millis(time_ms),
        memory: share,
        dtype: None,
    }
}

#[test]
fn a_burn_ends_on_time_and_has_compared_what_it_made() {
    let begun = Instant::now();
    let (outcome, told) = burn(little(1200), false).unwrap();
    assert!(
        begun.elapsed() < Duration::from_mins(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        (outcome.backend, outcome.stopped, outcome.partial),
        (Backend::Cpu, Stopped::TimeLimit, false)
    );
    let verify = outcome.verify;
    assert!(
        verify.ok && verify.wrong == 0 && verify.checked > 2 * outcome.n.pow(2),
        "{verify:?}"
    );
    assert!(
        outcome.rate.operations_per_second.unwrap() > 1e6,
        "{:?}",
        outcome.rate
    );
    let progress: Vec<_> = told
        .iter()
        .filter(|burning| matches!(burning, Burning::Progress { .. }))
        .collect();
    // There is one report per second, and the last one can be at the end.
    let most = begun.elapsed().as_secs() as usize + 1;
    assert!((1..=most).contains(&progress.len()), "{told:?}");
    assert!(
        progress
            .iter()
            .all(|one| matches!(one, Burning::Progress { wrong: 0, .. })),
        "{told:?}"
    );
}

#[test]
fn the_cpu_burns_in_64_bits_where_it_is_asked_to() {
    let usual = little(50);
    let (outcome, _) = burn(
        BurnRequest {
            dtype: Some(Dtype::Fp64),
            memory: 2.0 * usual.memory,
            ..usual
        },
        false,
    )
    .unwrap();
    assert_eq!((outcome.dtype, outcome.n), (Dtype::Fp64, 256));
    assert!(
        outcome.verify.ok && outcome.verify.checked >= 2 * 256 * 256,
        "{outcome:?}"
    );
}

#[test]
fn what_has_checked_nothing_has_failed() {
    let (outcome, _) = burn(little(100), true).unwrap();
    assert!(
        outcome.partial && !outcome.verify.ok && outcome.verify.checked == 0,
        "{outcome:?}"
    );
    assert!(
        !Burnt {
            first: Some(Verification::for_words(9, 0)),
            ..Burnt::default()
        }
        .verify()
        .ok
    );
    assert!(
        !Burnt {
            compared: 9,
            ..Burnt::default()
        }
        .verify()
        .ok
    );
}

/// A device that reports given numbers of wrong words for its pieces.
struct Told {
    wrong: Vec<u64>,
    filled: Vec<bool>,
    made: u64,
    found: u64,
}

impl Burnable for Told {
    fn side(&self) -> u64 {
        2
    }
    fn words(&self) -> u64 {
        4
    }
    fn bytes(&self) -> u64 {
        0
    }
    fn pieces(&self) -> usize {
        self.wrong.len()
    }
    fn products(&self, _: usize) -> u64 {
        2
    }
    fn first(&mut self) -> Result<Verification, RunError> {
        Ok(Verification::for_words(4, 0))
    }
    fn multiply(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        assert_eq!(was_filled, self.filled[piece]);
        if was_filled {
            self.compare(piece)?;
        }
        self.filled[piece] = true;
        self.made += self.products(piece);
        Ok(())
    }
    fn compare(&mut self, piece: usize) -> Result<(), RunError> {
        assert!(
            std::mem::take(&mut self.filled[piece]),
            "what was made is compared, once"
        );
        self.found += std::mem::take(&mut self.wrong[piece]);
        Ok(())
    }
    fn wrong(&mut self) -> Result<u64, RunError> {
        Ok(self.found)
    }
}

#[test]
fn every_wrong_word_counts_and_however_short_the_time_one_piece_is_compared() {
    let none = AtomicBool::new(false);
    let burnt = |wrong: &[u64], ms| {
        let mut burnt = Burnt {
            words: 4,
            operations: 16,
            ..Burnt::default()
        };
        let mut work = Told {
            wrong: wrong.to_vec(),
            filled: vec![false; wrong.len()],
            made: 0,
            found: 0,
        };
        burnt
            .burn(&mut work, Duration::from_millis(ms), &none, &mut |_| {})
            .unwrap();
        assert!(
            work.filled.iter().all(|is_filled| !is_filled),
            "all is compared at the end"
        );
        assert_eq!((burnt.products, burnt.compared), (work.made, 4 * work.made));
        burnt.verify()
    };
    let found = burnt(&[0, 3, 1], 20);
    assert_eq!((found.ok, found.wrong), (false, 4));
    let found = burnt(&[0, 0], 0);
    assert_eq!((found.ok, found.checked), (true, 4 + 8));
}

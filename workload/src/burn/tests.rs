use super::*;
use crate::protocol::Backend;

fn run_on_cpu(
    request: BurnRequest,
    interrupted: bool,
) -> Result<(RunOutcome, Vec<BurnProgress>), RunError> {
    let cpu = Cpu::read();
    let mut reported = Vec::new();
    let flag = AtomicBool::new(interrupted);
    run_burn(
        &ExecutionPlace::Cpu(&cpu),
        &cpu,
        &request,
        &flag,
        &mut |burning| {
            reported.push(burning);
        },
    )
    .map(|outcome| (outcome, reported))
}

/// Returns a request with so little memory that the matrices are small.
fn make_small_request(time_ms: u64) -> BurnRequest {
    let share = f64::from(3 << 20) / MemoryBudget::for_host(0).free_bytes as f64;
    BurnRequest {
        time: Duration::from_millis(time_ms),
        memory: share,
        dtype: None,
    }
}

#[test]
fn burn_ends_on_time_after_comparing_products() {
    let begun = Instant::now();
    let (outcome, reported) = run_on_cpu(make_small_request(1200), false).unwrap();
    assert!(
        begun.elapsed() < Duration::from_mins(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        (outcome.backend, outcome.stopped, outcome.partial),
        (Backend::Cpu, MeasureEnd::TimeLimit, false)
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
    let progress: Vec<_> = reported
        .iter()
        .filter(|burning| matches!(burning, BurnProgress::Progress { .. }))
        .collect();
    // Progress is reported once a second, and possibly once more at the end.
    let most = begun.elapsed().as_secs() as usize + 1;
    assert!((1..=most).contains(&progress.len()), "{reported:?}");
    assert!(
        progress
            .iter()
            .all(|one| matches!(one, BurnProgress::Progress { wrong: 0, .. })),
        "{reported:?}"
    );
}

#[test]
fn burn_on_cpu_uses_fp64_on_request() {
    let usual = make_small_request(50);
    let (outcome, _) = run_on_cpu(
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
fn burn_without_compared_product_fails() {
    let (outcome, _) = run_on_cpu(make_small_request(100), true).unwrap();
    assert!(
        outcome.partial && !outcome.verify.ok && outcome.verify.checked == 0,
        "{outcome:?}"
    );
    assert!(
        !BurnResults {
            first: Some(Verification::from_word_counts(9, 0)),
            ..BurnResults::default()
        }
        .combined_verification()
        .ok
    );
    assert!(
        !BurnResults {
            compared: 9,
            ..BurnResults::default()
        }
        .combined_verification()
        .ok
    );
}

/// A device that reports the given number of wrong words for each piece.
struct ScriptedBurn {
    wrong: Vec<u64>,
    filled: Vec<bool>,
    made: u64,
    found: u64,
}

impl Burnable for ScriptedBurn {
    fn matrix_side(&self) -> u64 {
        2
    }
    fn words_per_product(&self) -> u64 {
        4
    }
    fn used_bytes(&self) -> u64 {
        0
    }
    fn piece_count(&self) -> usize {
        self.wrong.len()
    }
    fn products_in_piece(&self, _: usize) -> u64 {
        2
    }
    fn compute_first(&mut self) -> Result<Verification, RunError> {
        Ok(Verification::from_word_counts(4, 0))
    }
    fn fill_piece_with_products(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        assert_eq!(was_filled, self.filled[piece]);
        if was_filled {
            self.compare_and_poison_piece(piece)?;
        }
        self.filled[piece] = true;
        self.made += self.products_in_piece(piece);
        Ok(())
    }
    fn compare_and_poison_piece(&mut self, piece: usize) -> Result<(), RunError> {
        assert!(
            std::mem::take(&mut self.filled[piece]),
            "what was made is compared, once"
        );
        self.found += std::mem::take(&mut self.wrong[piece]);
        Ok(())
    }
    fn count_wrong_words(&mut self) -> Result<u64, RunError> {
        Ok(self.found)
    }
}

#[test]
fn short_burn_compares_part_and_counts_wrong_words() {
    let none = AtomicBool::new(false);
    let burnt = |wrong: &[u64], ms| {
        let mut burnt = BurnResults {
            words: 4,
            operations: 16,
            ..BurnResults::default()
        };
        let mut work = ScriptedBurn {
            wrong: wrong.to_vec(),
            filled: vec![false; wrong.len()],
            made: 0,
            found: 0,
        };
        burnt
            .run_work(&mut work, Duration::from_millis(ms), &none, &mut |_| {})
            .unwrap();
        assert!(
            work.filled.iter().all(|is_filled| !is_filled),
            "all is compared at the end"
        );
        assert_eq!((burnt.products, burnt.compared), (work.made, 4 * work.made));
        burnt.combined_verification()
    };
    let found = burnt(&[0, 3, 1], 20);
    assert_eq!((found.ok, found.wrong), (false, 4));
    let found = burnt(&[0, 0], 0);
    assert_eq!((found.ok, found.checked), (true, 4 + 8));
}

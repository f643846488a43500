//! Handling of unwritten data when this process becomes the writer after another process that has
//! read the same GPUs.

use gpumon_probe::model::EventKind;

use super::inbox::Pending;
use crate::{bucket::BUCKET_MS, database::Database, span::ConditionSpan};

/// Removes waiting buckets and events for times that already have a row on disk. Comparing with the
/// newest row alone is not enough, because the other process's clock may have been wrong. Ongoing
/// conditions, and this process's own marks, cells and runs, are kept.
pub(super) fn remove_stored_entries(
    pending: &mut Pending,
    database: &Database,
) -> Result<(), rusqlite::Error> {
    let mut open: Vec<ConditionSpan> = Vec::new();
    let mut failed = Ok(());
    let mut is_known = |at_ms: u64| match database.has_bucket(at_ms / BUCKET_MS * BUCKET_MS) {
        Ok(is_known) => is_known,
        Err(error) => {
            failed = Err(error);
            false
        }
    };
    pending.retain(|bucket| {
        let is_new = !is_known(bucket.at_ms);
        for condition in bucket.conditions.iter().filter(|_| !is_new) {
            open.retain(|known| !known.is_same_condition(condition));
            open.extend(condition.to_ms.is_none().then(|| condition.clone()));
        }
        is_new
    });
    database.run_in_transaction(|database| {
        open.iter()
            .try_for_each(|condition| database.add_condition(condition))
    })?;
    let mut kept = Vec::new();
    for event in pending.events.drain(..) {
        let is_own = match &event.what {
            EventKind::Mark(_) | EventKind::Cell(_) => true,
            EventKind::RunBegan(run) | EventKind::RunStep(run) | EventKind::RunEnded(run) => {
                !database.has_run(&run.run)?
            }
            _ => false,
        };
        if is_own || !is_known(event.at_ms) {
            kept.push(event);
        }
    }
    pending.events.extend(kept);
    failed
}

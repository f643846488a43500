//! Tests that no query is made twice for a GPU, and that no query is made without showing its
//! answer.

use std::sync::Mutex;

use gpumon_probe::vendor::nvml::query::Answer;

use super::*;

/// Records the queries, and answers each with one row of numbers.
#[derive(Default)]
struct Counting(Mutex<Vec<String>>);

impl Counting {
    fn ones(&self, query: String) -> Value {
        self.0.lock().unwrap().push(query);
        Value::Numbers(vec![1; 12])
    }

    /// Returns the queries that the given fields caused.
    fn asked(query: QueryKind, fields: &str) -> Vec<String> {
        let driver = Self::default();
        shown(&driver, &[0], query, fields, "csv");
        driver.0.into_inner().unwrap()
    }
}

impl QueryBackend for Counting {
    fn system(&self, query: SystemQuery) -> Answer {
        Ok(self.ones(format!("{query:?}")))
    }

    fn about(&self, _subject: Subject, query: Query) -> Answer {
        Ok(self.ones(format!("{query:?}")))
    }

    fn gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Ok(self.ones("gpm".to_owned()))
    }
}

#[test]
fn fields_that_need_the_same_answer_share_it() {
    let fields =
        "memory.total,memory.used,memory.free,utilization.gpu,utilization.memory,memory.reserved";
    assert_eq!(
        Counting::asked(QueryKind::Gpu, fields),
        ["MemoryInfo", "UtilizationRates"]
    );
    assert_eq!(
        Counting::asked(QueryKind::Gpu, "compute_cap,name,gpu_name"),
        ["ComputeCapability", "Name"]
    );
}

#[test]
fn rows_of_one_gpu_share_what_is_said_of_it() {
    let asked = Counting::asked(QueryKind::ComputeApps, "gpu_uuid,pid,name,process_name");
    // The answer lists three processes, all with PID 1.
    assert_eq!(asked, ["ComputeProcesses", "Uuid", "ProcessName(1)"]);
}

#[test]
fn what_needs_no_answer_asks_nothing() {
    let nothing: [&str; 0] = [];
    assert_eq!(
        Counting::asked(QueryKind::Gpu, "timestamp,index,count,display_mode"),
        nothing
    );
    assert_eq!(Counting::asked(QueryKind::Gpu, ""), nothing);
    assert_eq!(
        Counting::asked(QueryKind::ComputeApps, "pid,used_memory"),
        ["ComputeProcesses"]
    );
    assert_eq!(
        Counting::asked(QueryKind::AccountedApps, "pid,vgpu_instance"),
        ["AccountingPids"]
    );
}

//! Tests that no query runs twice for a GPU, and that queries run only if their answers are shown.

use std::sync::Mutex;

use gpumon_probe::vendor::nvml::query::Answer;

use super::*;

/// A backend that records queries, and answers each query with one row of numbers.
#[derive(Default)]
struct RecordingBackend(Mutex<Vec<String>>);

impl RecordingBackend {
    fn record_query(&self, query: String) -> Value {
        self.0.lock().unwrap().push(query);
        Value::Numbers(vec![1; 12])
    }

    /// Returns the queries that the given fields caused to run.
    fn list_queries(query: QueryKind, fields: &str) -> Vec<String> {
        let driver = Self::default();
        render_query(&driver, &[0], query, fields, "csv");
        driver.0.into_inner().unwrap()
    }
}

impl QueryBackend for RecordingBackend {
    fn answer_system(&self, query: SystemQuery) -> Answer {
        Ok(self.record_query(format!("{query:?}")))
    }

    fn answer_query(&self, _subject: Subject, query: Query) -> Answer {
        Ok(self.record_query(format!("{query:?}")))
    }

    fn answer_gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Ok(self.record_query("gpm".to_owned()))
    }
}

#[test]
fn fields_with_same_answer_share_query() {
    let fields =
        "memory.total,memory.used,memory.free,utilization.gpu,utilization.memory,memory.reserved";
    assert_eq!(
        RecordingBackend::list_queries(QueryKind::Gpu, fields),
        ["MemoryInfo", "UtilizationRates"]
    );
    assert_eq!(
        RecordingBackend::list_queries(QueryKind::Gpu, "compute_cap,name,gpu_name"),
        ["ComputeCapability", "Name"]
    );
}

#[test]
fn rows_of_one_gpu_share_queries() {
    let asked =
        RecordingBackend::list_queries(QueryKind::ComputeApps, "gpu_uuid,pid,name,process_name");
    // The answer contains three processes, which all have PID 1.
    assert_eq!(asked, ["ComputeProcesses", "Uuid", "ProcessName(1)"]);
}

#[test]
fn computed_fields_do_not_cause_queries() {
    let nothing: [&str; 0] = [];
    assert_eq!(
        RecordingBackend::list_queries(QueryKind::Gpu, "timestamp,index,count,display_mode"),
        nothing
    );
    assert_eq!(RecordingBackend::list_queries(QueryKind::Gpu, ""), nothing);
    assert_eq!(
        RecordingBackend::list_queries(QueryKind::ComputeApps, "pid,used_memory"),
        ["ComputeProcesses"]
    );
    assert_eq!(
        RecordingBackend::list_queries(QueryKind::AccountedApps, "pid,vgpu_instance"),
        ["AccountingPids"]
    );
}

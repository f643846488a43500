//! Tests of the Prometheus reader with a fake server.

mod access;
mod fake;
mod fleets;

mod reference;
mod spans;

use std::{sync::Arc, time::Duration};

use self::fake::{Behavior, FakeServer};
use super::{PrometheusReader, Settings};
use crate::{FleetReader, model::Fleet};

/// Two gpumon nodes: one has a GPU that does not respond, the other an idle GPU whose memory is in
/// use.
const GPUMON_SERIES: &str = r#"
gpumon_gpu_up{job="g",instance="n2:9124",gpu="0",uuid="A"} 1
gpumon_gpu_up{job="g",instance="n2:9124",gpu="1",uuid="B"} 0
gpumon_gpu_up{job="g",instance="n10:9124",gpu="0",uuid="C"} 1
gpumon_gpu_info{job="g",instance="n2:9124",gpu="0",uuid="A",name="NVIDIA H200",source="nvml"} 1
gpumon_gpu_info{job="g",instance="n2:9124",gpu="1",uuid="B",name="NVIDIA H200",source="nvml"} 1
gpumon_gpu_info{job="g",instance="n10:9124",gpu="0",uuid="C",name="NVIDIA H100",source="nvml"} 1
gpumon_gpu_utilization_ratio{job="g",instance="n2:9124",gpu="0",uuid="A"} 0.5
gpumon_gpu_utilization_ratio{job="g",instance="n10:9124",gpu="0",uuid="C"} 0
gpumon_gpu_memory_used_bytes{job="g",instance="n10:9124",gpu="0",uuid="C"} 1e10
gpumon_gpu_memory_total_bytes{job="g",instance="n10:9124",gpu="0",uuid="C"} 8e10
gpumon_gpu_processes{job="g",instance="n10:9124",gpu="0",uuid="C"} 2
gpumon_collector_state{job="g",instance="n2:9124",state="running"} 1
gpumon_collector_state{job="g",instance="n2:9124",state="paused"} 0
gpumon_collector_state{job="g",instance="n10:9124",state="running"} 1
gpumon_sample_age_seconds{job="g",instance="n2:9124"} 1
gpumon_condition_severity{job="g",instance="n10:9124",gpu="0",uuid="C",condition="held_idle"} 1
gpumon_condition_severity{job="g",instance="n2:9124",gpu="1",uuid="B",condition="xid"} 3
gpumon_gpu_xid{job="g",instance="n2:9124",gpu="1",uuid="B",code="79"} 1
gpumon_gpu_xid{job="g",instance="n2:9124",gpu="1",uuid="B",code="13"} 0
gpumon_gpu_job_info{job="g",instance="n10:9124",gpu="0",uuid="C",user="ana",slurm_job="7"} 1
gpumon_gpu_job_info{job="g",instance="n10:9124",gpu="0",uuid="C",user="bo"} 1
up{job="g",instance="n2:9124"} 1
up{job="g",instance="n10:9124"} 1
"#;

fn settings_for(fake: &FakeServer) -> Settings {
    let mut settings = Settings::new(fake.url());
    settings.timeout = Duration::from_mins(1);
    settings.period = Duration::from_millis(50);
    settings
}

/// Reads the fleet repeatedly until `is_so` returns `true`. Results are cached for at least as long
/// as the read took, which can be long on a busy machine.
async fn read_until(reader: &PrometheusReader, is_so: impl Fn(&Fleet) -> bool) -> Arc<Fleet> {
    for turn in 0.. {
        let fleet = reader.fetch_current_fleet().await;
        if is_so(&fleet) {
            return fleet;
        }
        assert!(turn < 1000, "{:?} {:?}", fleet.state, fleet.problems);
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    unreachable!("a turn too many has ended it")
}

async fn start_reader(behavior: Behavior) -> (FakeServer, PrometheusReader) {
    let fake = FakeServer::start(behavior).await;
    let reader = PrometheusReader::new(settings_for(&fake)).unwrap();
    (fake, reader)
}

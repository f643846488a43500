//! A kubelet that answers `List` of its API for pod resources, v1, on a unix socket.
//!
//! Messages are written down as the kubelet's `api.proto` has them, with what gpumon does not read.

mod messages;
mod service;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use tokio::{net::UnixListener, runtime::Runtime};

pub use self::messages::{
    CdiDevice, ClaimResource, ContainerDevices, ContainerMemory, ContainerResources,
    DynamicResource, ListPodResourcesResponse, NumaNode, PodResources, TopologyInfo,
};

/// How it behaves.
#[derive(Debug, Clone)]
pub enum Answer {
    /// With this.
    Pods(ListPodResourcesResponse),
    /// It refuses.
    Refused,
    /// It takes for ever.
    Hung,
}

/// One that runs until it is dropped.
#[derive(Debug)]
pub struct FakeKubelet {
    answer: Arc<Mutex<Answer>>,
    socket: PathBuf,
    runtime: Option<Runtime>,
}

impl FakeKubelet {
    /// Starts one at this path.
    ///
    /// # Errors
    /// Where it cannot listen there.
    pub fn start(socket: &Path, answer: Answer) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let answer = Arc::new(Mutex::new(answer));
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(socket)?
        };
        runtime.spawn(service::serve(listener, Arc::clone(&answer)));
        Ok(Self {
            answer,
            socket: socket.to_owned(),
            runtime: Some(runtime),
        })
    }

    /// Behaves otherwise from now on.
    pub fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl Drop for FakeKubelet {
    fn drop(&mut self) {
        let runtime = self.runtime.take();
        // A test may have a runtime of its own, within which none may be waited for.
        let _ = thread::spawn(move || runtime.map(Runtime::shutdown_background)).join();
        let _ = fs::remove_file(&self.socket);
    }
}

/// A pod whose only container holds these devices of a resource.
pub fn pod(
    namespace: &str,
    name: &str,
    container: &str,
    resource: &str,
    devices: &[&str],
) -> PodResources {
    let devices = ContainerDevices {
        resource_name: resource.to_owned(),
        device_ids: devices.iter().map(ToString::to_string).collect(),
        topology: Some(TopologyInfo {
            nodes: vec![NumaNode { id: 1 }],
        }),
    };
    PodResources {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        containers: vec![ContainerResources {
            name: container.to_owned(),
            devices: vec![devices],
            cpu_ids: vec![0, 1, 2],
            memory: vec![ContainerMemory {
                memory_type: "memory".to_owned(),
                size: 1 << 30,
                topology: None,
            }],
            dynamic_resources: Vec::new(),
        }],
    }
}

/// What it answers where these are all pods.
pub fn pods(pods: &[PodResources]) -> Answer {
    Answer::Pods(ListPodResourcesResponse {
        pod_resources: pods.to_vec(),
    })
}

//! A fake kubelet that answers `List` of the pod resources API v1 on a Unix socket.
//!
//! Messages are defined as in the kubelet's `api.proto`, including the fields that gpumon does not
//! read.

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

/// The behavior of the kubelet.
#[derive(Debug, Clone)]
pub enum KubeletAnswer {
    /// The kubelet returns these pods.
    Pods(ListPodResourcesResponse),
    /// The kubelet rejects the request.
    Refused,
    /// The request never ends.
    Hung,
}

/// A fake kubelet, which runs until it is dropped.
#[derive(Debug)]
pub struct FakeKubelet {
    answer: Arc<Mutex<KubeletAnswer>>,
    socket: PathBuf,
    runtime: Option<Runtime>,
}

impl FakeKubelet {
    /// Starts a kubelet that listens on this socket.
    ///
    /// # Errors
    /// Returns an error if it cannot listen on the socket.
    pub fn start(socket: &Path, answer: KubeletAnswer) -> io::Result<Self> {
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

    /// Changes the behavior for new requests.
    pub fn set_answer(&self, answer: KubeletAnswer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl Drop for FakeKubelet {
    fn drop(&mut self) {
        let runtime = self.runtime.take();
        // The runtime is shut down on another thread. This thread may belong to the test's own
        // runtime, which must not be blocked.
        let _ = thread::spawn(move || runtime.map(Runtime::shutdown_background)).join();
        let _ = fs::remove_file(&self.socket);
    }
}

/// Creates a pod with one container that has these devices of a resource.
pub fn make_pod(
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

/// Returns the answer that lists these pods.
pub fn make_pods_answer(pods: &[PodResources]) -> KubeletAnswer {
    KubeletAnswer::Pods(ListPodResourcesResponse {
        pod_resources: pods.to_vec(),
    })
}

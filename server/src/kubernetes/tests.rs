use std::time::Duration;

use fake_kubelet::{
    ClaimResource, DynamicResource, FakeKubelet, KubeletAnswer, PodResources, make_pod,
    make_pods_answer,
};
use gpumon_probe::{allocation::AllocatedDevice, model::Allocation};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, net::UnixListener};

use super::{QueryError, query_devices};

const LONG_TIMEOUT: Duration = Duration::from_mins(1);

fn make_folder() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("kubelet.sock");
    (folder, socket)
}

async fn query_fake_kubelet(answer: KubeletAnswer) -> Result<Vec<AllocatedDevice>, QueryError> {
    let (_folder, socket) = make_folder();
    let _kubelet = FakeKubelet::start(&socket, answer).unwrap();
    query_devices(&socket, LONG_TIMEOUT).await
}

/// Returns the devices that are parsed from a resource with these device IDs.
async fn parse_devices(resource: &str, ids: &[&str]) -> Vec<String> {
    let answer = query_fake_kubelet(make_pods_answer(&[make_pod(
        "research", "train-0", "trainer", resource, ids,
    )]))
    .await;
    answer
        .unwrap()
        .into_iter()
        .map(|device| device.device)
        .collect()
}

#[tokio::test]
async fn pods_have_namespace_and_container() {
    let answer = make_pods_answer(&[
        make_pod(
            "research",
            "train-0",
            "trainer",
            "nvidia.com/gpu",
            &["GPU-1", "GPU-2"],
        ),
        make_pod("default", "web", "nginx", "example.com/nic", &["GPU-3"]),
        PodResources {
            name: "empty".to_owned(),
            namespace: "default".to_owned(),
            containers: Vec::new(),
        },
    ]);
    let reported = query_fake_kubelet(answer).await.unwrap();
    let [namespace, pod, container] = ["research", "train-0", "trainer"].map(str::to_owned);
    let to = Allocation::Kubernetes {
        namespace,
        pod,
        container,
    };
    let device = |device: &str| AllocatedDevice {
        device: device.to_owned(),
        to: to.clone(),
    };
    assert_eq!(reported, [device("GPU-1"), device("GPU-2")]);
}

#[tokio::test]
async fn device_plugin_ids_are_converted_to_gpu_ids() {
    assert_eq!(
        parse_devices("nvidia.com/gpu.shared", &["GPU-1::0", "GPU-1::7"]).await,
        ["GPU-1"]
    );
    assert_eq!(
        parse_devices("nvidia.com/mig-1g.10gb", &["MIG-1"]).await,
        ["MIG-1"]
    );
    assert_eq!(
        parse_devices("nvidia.com/gpu", &["nvidia2", "nvidia0/vgpu1"]).await,
        ["gpu-2", "gpu-0"]
    );
    for unknown in [
        "0",
        "",
        "nvidia",
        "nvidia0/gi3",
        "nvidia99999999999",
        "::",
        "gpu-1",
    ] {
        assert_eq!(
            parse_devices("nvidia.com/gpu", &[unknown]).await,
            [""; 0],
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn names_are_shortened_and_cleaned() {
    let long = format!("GPU-{}", "1".repeat(5000));
    let hostile = make_pod(
        "a\u{1b}[2J",
        &"x".repeat(5000),
        "c\nd",
        "nvidia.com/gpu",
        &["GPU-1", &long],
    );
    let reported = serde_json::to_string(
        &query_fake_kubelet(make_pods_answer(&[hostile]))
            .await
            .unwrap(),
    )
    .unwrap();
    assert!(
        reported.len() < 500 && !reported.contains("\\u001b") && !reported.contains("\\n"),
        "{reported}"
    );
}

#[tokio::test]
async fn nvidia_resource_claim_names_gpu_by_minor_number() {
    let mut claiming = make_pod("research", "train-0", "trainer", "example.com/none", &[]);
    let claim = |driver: &str, device: &str| {
        let [driver_name, device_name, pool_name] = [driver, device, "node-1"].map(str::to_owned);
        ClaimResource {
            cdi_devices: Vec::new(),
            driver_name,
            pool_name,
            device_name,
        }
    };
    claiming.containers[0].dynamic_resources = vec![DynamicResource {
        claim_name: "gpus".to_owned(),
        claim_namespace: "research".to_owned(),
        claim_resources: vec![
            claim("gpu.nvidia.com", "gpu-3"),
            claim("gpu.nvidia.com", "gpu-0-mig-9-0-1"),
            claim("nic.example.com", "gpu-1"),
        ],
    }];
    let reported = query_fake_kubelet(make_pods_answer(&[claiming]))
        .await
        .unwrap();
    assert_eq!(
        reported
            .iter()
            .map(|device| &device.device)
            .collect::<Vec<_>>(),
        ["gpu-3"]
    );
}

#[tokio::test]
async fn invalid_kubelet_response_is_reported() {
    let (_folder, socket) = make_folder();
    let reported = |error: QueryError| error.to_string();
    assert!(matches!(
        query_devices(&socket, LONG_TIMEOUT).await,
        Err(QueryError::Connect(_))
    ));
    assert_eq!(
        reported(
            query_fake_kubelet(KubeletAnswer::Refused)
                .await
                .unwrap_err()
        ),
        "it rejects the request with gRPC status 8: rejected by rate limit"
    );
    let hung = FakeKubelet::start(&socket, KubeletAnswer::Hung).unwrap();
    let error = query_devices(&socket, Duration::from_millis(1500))
        .await
        .unwrap_err();
    assert_eq!(reported(error), "no response within 1 s");
    drop(hung);
    let long = make_pod(
        "research",
        &"x".repeat(17 << 20),
        "trainer",
        "nvidia.com/gpu",
        &["GPU-1"],
    );
    assert_eq!(
        reported(
            query_fake_kubelet(make_pods_answer(&[long]))
                .await
                .unwrap_err()
        ),
        "its response is larger than 16 MiB"
    );
}

#[tokio::test]
async fn foreign_server_at_socket_is_refused() {
    for greeting in ["HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0", ""] {
        let (_folder, socket) = make_folder();
        let listener = UnixListener::bind(&socket).unwrap();
        let (error, ()) = tokio::join!(query_devices(&socket, LONG_TIMEOUT), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(greeting.as_bytes()).await;
        });
        let error = error.unwrap_err();
        assert!(
            matches!(error, QueryError::Broken(_)),
            "{greeting:?}: {error}"
        );
    }
}

#[test]
fn only_single_complete_response_message_is_accepted() {
    use super::parse_message;
    let read =
        |bytes: &'static [u8]| parse_message(bytes.into()).map(|answer| answer.pod_resources.len());
    assert_eq!(read(b"\0\0\0\0\0").unwrap(), 0);
    assert_eq!(read(b"\0\0\0\0\x02\x0a\0").unwrap(), 1);
    for broken in [
        &b""[..],
        b"\0\0\0\0",
        b"\x01\0\0\0\0",
        b"\0\0\0\0\x01",
        b"\0\0\0\0\0\0",
        b"\0\xff\xff\xff\xff",
    ] {
        assert!(
            matches!(read(broken), Err(QueryError::NotGrpc(_))),
            "{broken:?}"
        );
    }
    for malformed in [
        &b"\0\0\0\0\x02\x0a\x05"[..],
        b"\0\0\0\0\x05\x0a\x03\x0a\x01\xff",
    ] {
        assert!(
            matches!(read(malformed), Err(QueryError::Malformed(_))),
            "{malformed:?}"
        );
    }
}

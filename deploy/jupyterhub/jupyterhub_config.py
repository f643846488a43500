"""gpumon's settings for JupyterHub, loaded from jupyterhub_config.py:
`load_subconfig("/etc/jupyterhub/gpumon.py")`.

The hub itself needs no package. The Python environment of the users' servers needs gpumon's wheel
with the `jupyter` extra: `pip install 'jupyterlab_gpumon-VERSION-py3-none-PLATFORM.whl[jupyter]'`.
"""

c = get_config()  # noqa: F821

# Each user's server starts its own gpumon, and all of them use the alert rules of the machine.
# Without this file, there are no alerts and the panel shows a warning. Either copy
# deploy/alerts.toml to this path or remove this line.
c.Spawner.environment.update({"GPUMON_ALERTS": "/etc/gpumon/alerts.toml"})

# A kernel that nobody has used for two hours is shut down, which releases its GPU memory. An open
# panel of gpumon does not count as use.
c.Spawner.args.extend(
    [
        "--MappingKernelManager.cull_idle_timeout=7200",
        "--MappingKernelManager.cull_interval=300",
        "--MappingKernelManager.cull_connected=True",
    ]
)

# Docker: the NVIDIA Container Toolkit adds the driver's libraries and devices.
c.DockerSpawner.extra_host_config = {
    "device_requests": [
        {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu", "utility", "compute"]]}
    ],
}

# Kubernetes: one GPU for each server. The panel shows that GPU; the DaemonSet of deploy/kubernetes
# watches all of them.
c.KubeSpawner.extra_resource_limits = {"nvidia.com/gpu": "1"}
c.KubeSpawner.extra_pod_config = {"runtimeClassName": "nvidia"}

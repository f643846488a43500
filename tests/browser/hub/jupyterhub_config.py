"""The configuration of a hub that reports activity within a second instead of minutes. The tests
pass the other settings as JSON.
"""

import json
import os
import sys

c = get_config()  # noqa: F821
given = json.loads(os.environ["GPUMON_TEST_HUB"])
folder = given["folder"]

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{folder}/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root", *given["arguments"]]
c.Spawner.environment = {**given["environment"], "JUPYTERHUB_ACTIVITY_INTERVAL": "1"}
c.Spawner.default_url = "/lab"
c.Spawner.http_timeout = c.Spawner.start_timeout = 120

c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True

c.JupyterHub.bind_url = given["url"]
c.JupyterHub.hub_port = given["hub_port"]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{given['proxy_port']}"
c.ConfigurableHTTPProxy.command = given["proxy"]
c.ConfigurableHTTPProxy.pid_file = f"{folder}/proxy.pid"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret_file = f"{folder}/cookie_secret"

c.JupyterHub.last_activity_interval = 1
c.JupyterHub.activity_resolution = 0

# The tests, and the culler that they start, use the token of this service.
c.JupyterHub.services = [{"name": "tests", "api_token": given["token"]}]
scopes = ["admin:users", "admin:servers", "list:users", "access:servers"]
c.JupyterHub.load_roles = [{"name": "tests", "services": ["tests"], "scopes": scopes}]

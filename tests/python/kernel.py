"""A real IPython kernel, and its messages to a front end."""

import os
import queue
import time
from dataclasses import dataclass, field

from jupyter_client.manager import KernelManager

#: The maximum time to wait on a busy machine, in seconds.
PATIENCE_S = 60


@dataclass
class CellOutput:
    """The messages of one cell until the kernel was idle again."""

    #: The status `ok`, `error` or `aborted`.
    status: str
    #: Displayed data by MIME type in order, including later updates.
    displayed: "list[dict]" = field(default_factory=list)
    #: The printed output of the cell.
    printed: str = ""
    error: str = ""
    #: The lines of the traceback, including color sequences.
    traceback: str = ""
    result: str = ""


class Kernel:
    """A kernel with these environment variables. It runs until it is closed."""

    def __init__(self, **variables: str) -> None:
        self.manager = KernelManager(kernel_name="python3", transport="ipc")
        self.manager.start_kernel(env=os.environ | variables)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE_S)
        self._by_display: "dict[str, dict]" = {}

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel()

    def run_cell(self, code: str, during=lambda: None) -> CellOutput:
        """Run a cell. `during` is called as soon as the cell has printed something."""
        request = self.client.execute(code)
        ran = CellOutput("")
        until = time.monotonic() + PATIENCE_S
        while True:
            message = self.client.get_iopub_msg(timeout=until - time.monotonic())
            self._record_message(message, ran)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                during()
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while True:
            reply = self.client.get_shell_msg(timeout=until - time.monotonic())
            if reply["parent_header"].get("msg_id") == request:
                ran.status = reply["content"]["status"]
                return ran

    def process_messages(self, is_done) -> None:
        """Process messages while no cell runs, until a condition is met."""
        until = time.monotonic() + PATIENCE_S
        while not is_done() and time.monotonic() < until:
            try:
                self._record_message(self.client.get_iopub_msg(timeout=0.2), CellOutput(""))
            except queue.Empty:
                continue

    def _record_message(self, message: dict, ran: CellOutput) -> None:
        content, kind = message["content"], message["msg_type"]
        if kind == "display_data":
            ran.displayed.append(content["data"])
            self._by_display[content.get("transient", {}).get("display_id")] = content["data"]
        elif kind == "update_display_data":
            shown = self._by_display[content["transient"]["display_id"]]
            shown.clear()
            shown.update(content["data"])
        elif kind == "stream":
            ran.printed += content["text"]
        elif kind == "error":
            ran.error += f"{content['ename']}: {content['evalue']}"
            ran.traceback += "\n".join(content["traceback"])
        elif kind == "execute_result":
            ran.result += content["data"]["text/plain"]

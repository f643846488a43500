"""Lists the functions that a program calls, in the order of their first calls. gdb runs this file.

    TRACE_OUTPUT=FILE TRACE_SECONDS=20 gdb -batch -x trace_functions.py --args PROGRAM [ARGUMENT...]

Every function begins with a breakpoint instruction, which its first call removes. So later calls
run at full speed, and time limits within the program are met.
"""

import os
import signal
import subprocess
import threading

import gdb

BREAKPOINT = b"\xcc"
#: The signals that the program handles itself.
PASSED_SIGNALS = ("SIGTERM", "SIGINT", "SIGPIPE", "SIGCHLD", "SIGUSR1")


def list_functions(program):
    """Returns the symbol of each function by its address, which is fixed."""
    lines = subprocess.check_output(["nm", program], text=True).splitlines()
    symbols = (line.split(" ", 2) for line in lines if not line.startswith(" "))
    return {int(address, 16): name for address, kind, name in symbols if kind in "tT"}


def continue_until_call():
    """Returns whether the program still exists."""
    try:
        gdb.execute("continue", to_string=True)
    except gdb.error:
        # The threads of an ending program disappear one by one.
        return False
    return gdb.selected_inferior().pid != 0


def trace(seconds):
    """Runs the program until it ends, or for this time. Returns the symbols of its functions."""
    for command in ("pagination off", "confirm off", "print thread-events off"):
        gdb.execute(f"set {command}")
    for name in PASSED_SIGNALS:
        gdb.execute(f"handle {name} nostop noprint pass")
    gdb.execute("starti")
    program, pid = gdb.current_progspace().filename, gdb.selected_inferior().pid
    functions = list_functions(program)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    replaced = {}
    for address in functions:
        replaced[address] = os.pread(memory, 1, address)
        os.pwrite(memory, BREAKPOINT, address)
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGTERM))
    timer.daemon = True
    timer.start()
    called = []
    while continue_until_call():
        # The instruction pointer is behind the breakpoint instruction.
        address = int(gdb.parse_and_eval("$pc")) - 1
        if address not in functions:
            raise SystemExit(f"the program stopped outside of a traced function: {address:#x}")
        # Another thread may have removed the breakpoint in the meantime.
        if os.pread(memory, 1, address) == BREAKPOINT:
            os.pwrite(memory, replaced[address], address)
            called.append(functions[address])
        gdb.execute(f"set $pc = {address}")
    timer.cancel()
    return called


with open(os.environ["TRACE_OUTPUT"], "w") as output:
    output.writelines(f"{name}\n" for name in trace(float(os.environ["TRACE_SECONDS"])))

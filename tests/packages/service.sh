# Runs inside a booted system, and uses the service like its administrator and its users. The test
# shows lines that begin with `*`.

fail() { echo "$*"; systemctl status --no-pager gpumon.service || true; journalctl --no-pager -u gpumon -n 30 || true; exit 1; }

# Waits until a command succeeds.
until_it() {
    for _ in $(seq 150); do "$@" > /tmp/output 2>&1 && return; sleep 0.2; done
    cat /tmp/output; fail "\`$*\` did not succeed within 30 s"
}

property() { systemctl show gpumon.service --property "$1" --value; }
is() { [ "$(property "$1")" = "$2" ] || fail "$1 is $(property "$1") instead of $2"; }
has_status() { property StatusText | grep -q "$1"; }
has_new_pid() { [ "$(property MainPID)" != "$1" ] && [ "$(property MainPID)" != 0 ]; }

# Sends a request of a user to the shared socket, and checks the HTTP status of the response.
answers() {
    runuser -u "$1" -- python3 -c '
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect("/run/gpumon/public.sock")
client.sendall(f"{sys.argv[1]} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
status = client.recv(4096).split()[1].decode()
sys.exit(None if status == sys.argv[2] else f"{sys.argv[1]}: status {status} instead of {sys.argv[2]}")' "$2" "$3"
}

# Succeeds if the user's server reports that it has joined the service.
joined() {
    python3 -c '
import urllib.request
with urllib.request.urlopen("http://127.0.0.1:9200/readyz", timeout=60) as answer:
    assert b"joined the server at /run/gpumon/public.sock" in answer.read()'
}

useradd --system ana
systemctl start gpumon.socket gpumon-public.socket
is ActiveState inactive
answers ana 'GET /healthz' 200
is ActiveState active
echo "* socket activation: a user's first request has started the service"
until_it has_status "^Monitoring 2 GPUs"
echo "* notify: $(property StatusText)"
systemd-analyze security --threshold=20 --no-pager gpumon.service > /tmp/output || fail "$(tail -n 1 /tmp/output)"
echo "* security: $(tail -n 1 /tmp/output)"

! runuser -u ana -- test -w /run/gpumon/gpumon.sock || fail "users can connect to the control socket"
for user in root ana; do
    answers "$user" 'POST /api/v1/pause' 403
done
gpumon pause > /dev/null; gpumon resume > /dev/null
echo "* access: users can read, and root can pause"

runuser -u ana -- gpumon serve --listen 127.0.0.1:9200 --no-control 2> /tmp/ana &
user=$!
until_it joined
pid=$(property MainPID)
systemctl restart gpumon
until_it has_new_pid "$pid"
until_it joined
! grep -q "this server reads the GPUs itself" /tmp/ana || fail "the user's server did not wait for the restart of the service"
echo "* join: a user's server shows the readings of the service, also after a restart of the service"

mkdir -p /run/systemd/system/gpumon.service.d
printf '[Service]\nWatchdogSec=3\nRestartSec=1\n' > /run/systemd/system/gpumon.service.d/watchdog.conf
systemctl daemon-reload; systemctl restart gpumon
until_it has_status "^Monitoring 2 GPUs"
sleep 5
is NRestarts 0
pid=$(property MainPID)
kill -STOP "$pid"
until_it has_new_pid "$pid"
is NRestarts 1
until_it has_status "^Monitoring 2 GPUs"
echo "* watchdog: the service was restarted after it hung, and not before"

systemctl reload gpumon
kill "$user"; wait "$user" || true
systemctl stop gpumon 2> /dev/null
is Result success
[ -S /run/gpumon/gpumon.sock ] || fail "the sockets were removed when the service stopped"
echo "* stop: $(property Result)"

# Runs inside a fresh system, and uses the wheel, the Debian package and the archive like a user. The
# test shows lines that begin with `*`. The script ends at the first failure, with the output of the
# last command.
architecture=$1
python=$(command -v python3.9 || command -v python3)
# The exit code of gpumon if the driver is missing.
no_driver=12

# Runs a command that must exit with the given code.
runs() {
    wanted=$1; shift
    code=0; "$@" > /tmp/said 2>&1 || code=$?
    [ "$code" = "$wanted" ] && return
    cat /tmp/said; echo "\`$*\` exited with code $code instead of $wanted"; exit 1
}

# Fails if the output of the last command does not match the expression.
has() {
    grep -q "$1" /tmp/said || { cat /tmp/said; echo "the output above does not match \`$1\`"; exit 1; }
}

# Runs a command that must succeed without output.
silent() {
    runs 0 "$@"
    [ ! -s /tmp/said ] || { cat /tmp/said; echo "\`$*\` must print nothing, but printed the lines above"; exit 1; }
}

# Prints the current time in milliseconds.
now() { echo $(($(date +%s%N) / 1000000)); }
since() { echo $(($(now) - $1)); }

# Checks the output of the program, and its server.
works() {
    runs 0 "$1" --version; has '^gpumon [0-9]'
    runs 0 "$1" --source sim --no-daemon; has 'simulated .*H200'
    runs "$no_driver" "$1" doctor; has "cannot load NVIDIA's management library"
    "$1" --source sim serve --listen 127.0.0.1:9123 > /tmp/server 2>&1 &
    server=$!
    "$python" /checks/served.py http://127.0.0.1:9123 || { cat /tmp/server; exit 1; }
    kill "$server"; wait "$server"
}

# Checks that manual pages and completions are in the subfolders that man and the shells search.
shares() {
    for path in man/man1/gpumon.1 man/man1/gpumon-serve.1 bash-completion/completions/gpumon \
        "zsh/${2:-site-functions}/_gpumon" fish/vendor_completions.d/gpumon.fish; do
        [ -s "$1/$path" ] || [ -s "$1/$path.gz" ] || { echo "$1/$path is missing"; exit 1; }
    done
    runs 0 bash -c "source $1/bash-completion/completions/gpumon"
}

"$python" -m venv /venv
begun=$(now)
runs 0 /venv/bin/pip install --no-index --disable-pip-version-check /dist/jupyterlab_gpumon-*_"$architecture".whl
runs 0 /venv/bin/gpumon --source sim --no-daemon
took=$(since "$begun")
echo "* wheel: installed with $("$python" --version), shows GPUs after $took ms"
[ "$took" -le 30000 ] || { echo "the installation took more than 30 s"; exit 1; }
works /venv/bin/gpumon
shares /venv/share
runs 0 env PATH="/venv/bin:$PATH" man -w gpumon; has '^/venv/share/man/man1/gpumon.1'
runs 0 /venv/bin/python -c 'import gpumon; print(gpumon.find_gpumon_bin())'; has '^/venv/bin/gpumon$'
runs 0 /venv/bin/python -m gpumon --version
runs 0 /venv/bin/pip uninstall --yes jupyterlab-gpumon
silent find /venv -name '*gpumon*' -not -type d

begun=$(now)
runs 0 dpkg -i /dist/gpumon_*_"$(dpkg --print-architecture)".deb
runs 0 gpumon --source sim --no-daemon
echo "* deb: installed, shows GPUs after $(since "$begun") ms"
works /usr/bin/gpumon
shares /usr/share vendor-completions
runs 0 man -w gpumon; has '^/usr/share/man/man1/gpumon.1.gz$'
runs 0 dpkg --verify gpumon
if command -v systemctl > /dev/null; then
    for unit in gpumon.service gpumon.socket gpumon-public.socket; do
        runs 1 systemctl is-enabled "$unit"; has '^disabled$'
    done
    echo "* service: service and sockets are installed and disabled"
    # Before version 252, systemd-analyze needs control groups, and moves processes into them.
    if [ "$(systemctl --version | awk 'NR == 1 { print $2 }')" -ge 252 ]; then
        silent systemd-analyze verify gpumon.service gpumon.socket gpumon-public.socket
        echo "* service: valid units for $(systemctl --version | head -n 1)"
        runs 0 systemd-analyze security --offline=true --threshold=20 --no-pager /usr/lib/systemd/system/gpumon.service
        echo "* service: $(tail -n 1 /tmp/said)"
    fi
fi
# The history of the service contains names of users, so these files must be removed by `purge`.
mkdir -p /var/lib/private/gpumon
echo ana > /var/lib/private/gpumon/history.db
ln -s private/gpumon /var/lib/gpumon
runs 0 dpkg --remove gpumon
runs 0 test -s /var/lib/gpumon/history.db
runs 0 dpkg --purge gpumon
silent find /etc /lib /usr /var/lib -name '*gpumon*'

mkdir /unpacked
tar -x -f /dist/gpumon-*-"$architecture"-linux.tar.gz --strip-components=1 -C /unpacked
works /unpacked/bin/gpumon
shares /unpacked/share
[ -s /unpacked/LICENSE ]
echo "* archive: unpacked, shows GPUs"

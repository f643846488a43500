# Runs inside a fresh system: what its users do with the wheel, the Debian package and the archive. Lines with * are
# shown; what fails ends it, with the command before.
architecture=$1
python=$(command -v python3.9 || command -v python3)
# Where the driver is missing, gpumon says so by this code.
no_driver=12

# A command of that program that has to end well, or with the code given.
runs() {
    wanted=$1; shift
    code=0; "$@" > /tmp/said 2>&1 || code=$?
    [ "$code" = "$wanted" ] && return
    cat /tmp/said; echo "\`$*\` ended with $code, not $wanted"; exit 1
}

has() {
    grep -q "$1" /tmp/said || { cat /tmp/said; echo "\`$1\` is not said above"; exit 1; }
}

# A command that has to find and print nothing.
silent() {
    runs 0 "$@"
    [ ! -s /tmp/said ] || { cat /tmp/said; echo "\`$*\` prints this, and should print nothing"; exit 1; }
}

# Milliseconds.
now() { echo $(($(date +%s%N) / 1000000)); }
since() { echo $(($(now) - $1)); }

# The program alone: what it prints, and what it serves.
works() {
    runs 0 "$1" --version; has '^gpumon [0-9]'
    runs 0 "$1" --source sim --no-daemon; has 'simulated .*H200'
    runs "$no_driver" "$1" doctor; has "cannot load NVIDIA's management library"
    "$1" --source sim serve --listen 127.0.0.1:9123 > /tmp/server 2>&1 &
    server=$!
    "$python" /checks/served.py http://127.0.0.1:9123 || { cat /tmp/server; exit 1; }
    kill "$server"; wait "$server"
}

# Manual pages and completions, where man and shells look for them in this folder.
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
echo "* wheel: installed by $("$python" --version) and showing GPUs after $took ms"
[ "$took" -le 30000 ] || { echo "more than 30 s"; exit 1; }
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
echo "* deb: installed and showing GPUs after $(since "$begun") ms"
works /usr/bin/gpumon
shares /usr/share vendor-completions
runs 0 man -w gpumon; has '^/usr/share/man/man1/gpumon.1.gz$'
runs 0 dpkg --verify gpumon
if command -v systemctl > /dev/null; then
    for unit in gpumon.service gpumon.socket gpumon-public.socket; do
        runs 1 systemctl is-enabled "$unit"; has '^disabled$'
    done
    echo "* service: installed and disabled, and its sockets"
    # Before 252, it wants control groups, and moves processes there.
    if [ "$(systemctl --version | awk 'NR == 1 { print $2 }')" -ge 252 ]; then
        silent systemd-analyze verify gpumon.service gpumon.socket gpumon-public.socket
        echo "* service: verified by $(systemctl --version | head -n 1)"
        runs 0 systemd-analyze security --offline=true --threshold=20 --no-pager /usr/lib/systemd/system/gpumon.service
        echo "* service: $(tail -n 1 /tmp/said)"
    fi
fi
# Imitate the files of the service, whose history has names of users.
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
echo "* archive: unpacked and showing GPUs"

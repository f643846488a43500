# Runs inside a system whose Python is built with musl, and checks the error messages that users get.
architecture=$1
pip() {
    # Debian provides this wheel of pip for new environments.
    PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) /musl/bin/python3 -m pip --disable-pip-version-check "$@"
}
# Runs a command that must fail with the given message.
refuses() {
    words=$1; shift
    if "$@" > /tmp/said 2>&1; then cat /tmp/said; echo "\`$*\` succeeded, but must fail"; exit 1; fi
    grep -q "$words" /tmp/said || { cat /tmp/said; echo "the output above does not match \`$words\`"; exit 1; }
    echo "* $(grep -o "$words.*" /tmp/said | head -n 1 | cut -c 1-150)"
}

refuses 'is not a supported wheel on this platform' pip install --no-index /dist/jupyterlab_gpumon-*_"$architecture".whl
refuses 'this system has no glibc, and gpumon needs it' pip install --no-index --find-links /wheels /dist/jupyterlab_gpumon-*.tar.gz

# The program of the archive runs in a system without glibc. Its loader is missing there.
mkdir -p /bare/bin
cp /bin/busybox /bare/bin/sh
tar -x -O -f /dist/gpumon-*-"$architecture"-linux.tar.gz --wildcards '*/bin/gpumon' > /bare/bin/gpumon
chmod +x /bare/bin/gpumon
refuses 'gpumon: not found' chroot /bare /bin/sh -c '/bin/gpumon --version'

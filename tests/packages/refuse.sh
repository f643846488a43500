# Runs inside a system whose Python is built with musl: what its users are told.
architecture=$1
pip() {
    # The wheel that Debian keeps for new environments.
    PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) /musl/bin/python3 -m pip --disable-pip-version-check "$@"
}
# A command that has to fail, with these words.
refuses() {
    words=$1; shift
    if "$@" > /tmp/said 2>&1; then cat /tmp/said; echo "\`$*\` did not fail"; exit 1; fi
    grep -q "$words" /tmp/said || { cat /tmp/said; echo "\`$words\` is not said above"; exit 1; }
    echo "* $(grep -o "$words.*" /tmp/said | head -n 1 | cut -c 1-150)"
}

refuses 'is not a supported wheel on this platform' pip install --no-index /dist/jupyterlab_gpumon-*_"$architecture".whl
refuses 'this system has no glibc, and gpumon needs it' pip install --no-index --find-links /wheels /dist/jupyterlab_gpumon-*.tar.gz

# The archive, where there is nothing of glibc's: the loader that the program names is missing.
mkdir -p /bare/bin
cp /bin/busybox /bare/bin/sh
tar -x -O -f /dist/gpumon-*-"$architecture"-linux.tar.gz --wildcards '*/bin/gpumon' > /bare/bin/gpumon
chmod +x /bare/bin/gpumon
refuses 'gpumon: not found' chroot /bare /bin/sh -c '/bin/gpumon --version'

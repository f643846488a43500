# Builds Python with musl inside a root of Debian, from Debian's own sources: no distribution with musl is on its mirrors.
# Unoptimized, and without the modules that need further libraries; pip does without them.
set -eu
cd /tmp
apt-get source --quiet --download-only zlib python3.11
for name in zlib python3.11; do
    mkdir $name
    tar -x -f ${name}_*.orig.tar.* --strip-components=1 -C $name
done
# The wrapper answers for the gcc below it, which is for glibc.
printf '#!/bin/sh\ncase "$1" in *-print-multiarch) ;; *) exec musl-gcc "$@" ;; esac\n' > /usr/local/bin/musl-cc
chmod +x /usr/local/bin/musl-cc
export CC=musl-cc CFLAGS="-O0 -fPIC"
(cd zlib && ./configure --prefix=/musl --static && make -j2 libz.a && make install)
cd python3.11
./configure --quiet --prefix=/musl --without-ensurepip CPPFLAGS=-I/musl/include LDFLAGS=-L/musl/lib
make -j2
make install
rm -rf /tmp/zlib* /tmp/python* /musl/lib/python3.11/test
/musl/bin/python3 -c 'import os, zlib, socket, select, math, subprocess
try: os.confstr("CS_GNU_LIBC_VERSION")
except OSError: raise SystemExit(0)
raise SystemExit("this Python has been built with glibc")'

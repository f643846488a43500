# Builds Python with musl inside a Debian system, from Debian's sources, because Debian's mirrors have
# no distribution with musl. It is not optimized, and lacks the modules that need more libraries. pip
# does not need these modules.
set -eu
cd /tmp
apt-get source --quiet --download-only zlib python3.11
for name in zlib python3.11; do
    mkdir $name
    tar -x -f ${name}_*.orig.tar.* --strip-components=1 -C $name
done
# musl-gcc would answer -print-multiarch like gcc, which is for glibc, so this wrapper prints nothing.
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
raise SystemExit("this Python was built with glibc instead of musl")'

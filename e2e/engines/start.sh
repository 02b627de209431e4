#!/bin/bash
# Starts docker and podman for the tests and writes the variables for reaching them to DIR/env, which callers source. Needs root.
# Does nothing if they are running already. Containers cannot reach any network: the images are built here from this machine's files.
#
#   start.sh DIR ENGINE…     ENGINE is docker, runsc, podman or podman-rootless
set -euo pipefail

(($# > 1)) || { echo "usage: start.sh DIR ENGINE…" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
engines=("$@")
# shellcheck source=SCRIPTDIR/names.sh
source "$(dirname "${BASH_SOURCE[0]}")/names.sh"
image=ralph-test:1
# The version of gVisor on the Go module proxy. Debian's version does not work under docker.
runsc_version=v0.0.0-20260905035102-160fafc42237

((EUID == 0)) || { echo "engines: run as root: daemons and users are made here" >&2; exit 1; }
wanted() { local e; for e in "${engines[@]}"; do [[ $e == "$1" ]] && return; done; return 1; }
say() { echo "engines: $*" >&2; }

install_packages() {
	local missing=()
	need() { command -v "$1" >/dev/null || missing+=("${@:2}"); }
	need busybox busybox-static
	need git git
	if wanted docker || wanted runsc; then
		need dockerd docker.io iptables
		need docker-init tini
		need iptables iptables
	fi
	if wanted podman || wanted podman-rootless; then
		need podman podman
		need newuidmap uidmap
		need runc runc
		[[ -x /usr/libexec/podman/catatonit || -x /usr/bin/catatonit ]] || missing+=(catatonit)
		[[ -x /usr/lib/podman/netavark ]] || missing+=(netavark)
		need slirp4netns slirp4netns
	fi
	((${#missing[@]})) || return 0
	say "installing ${missing[*]}"
	local log=$dir/apt.log
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
		tail -20 "$log" >&2
		say "apt-get could not install ${missing[*]}"
		exit 1
	fi
}

# make_rootfs creates a root file system with a shell, basic tools, git, and the C library that the agents need.
make_rootfs() {
	[[ -s $dir/rootfs.tar ]] && return
	local root=$dir/rootfs tool
	rm -rf "$root"
	mkdir -p "$root"/{bin,etc,tmp,var/tmp,run,proc,dev,sys,root,home/agent,usr/bin,usr/lib/git-core,lib64,etc/ssl/certs}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for tool in $("$root/bin/busybox" --list); do
		[[ $tool == busybox ]] || ln -s /bin/busybox "$root/bin/$tool"
	done
	local programs=("$(command -v git)" "$(command -v bash)") lib
	cp "$(command -v git)" "$root/usr/bin/git"
	cp "$(command -v bash)" "$root/usr/bin/bash"
	for tool in git-upload-pack git-receive-pack git-remote git-sh-setup git-submodule git-sh-i18n git-mergetool--lib; do
		[[ -e $(git --exec-path)/$tool ]] && cp -a "$(git --exec-path)/$tool" "$root/usr/lib/git-core/"
	done
	[[ -d /usr/share/git-core/templates ]] && mkdir -p "$root/usr/share" && cp -a /usr/share/git-core "$root/usr/share/"
	ldd "${programs[@]}" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-[^ ]*\).*/\1/p' | sort -u | while read -r lib; do
		mkdir -p "$root$(dirname "$lib")" && cp -L "$lib" "$root$lib"
	done
	local libc
	libc=$(ldd "$(command -v bash)" | sed -n 's/.*libc\.so.*=> \(\/[^ ]*\).*/\1/p')
	for lib in libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2 libnss_files.so.2 libgcc_s.so.1 libstdc++.so.6; do
		for lib in "$(dirname "$libc")/$lib" "/usr$(dirname "$libc")/$lib"; do
			[[ -e $lib ]] && mkdir -p "$root$(dirname "$libc")" && cp -L "$lib" "$root$(dirname "$libc")/" && break
		done
	done
	[[ -e /etc/ssl/certs/ca-certificates.crt ]] && cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	printf 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nagent:x:1000:\n' >"$root/etc/group"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	chown -R 1000:1000 "$root/home/agent"
	tar -C "$root" --numeric-owner -cf "$dir/rootfs.tar.new" .
	mv "$dir/rootfs.tar.new" "$dir/rootfs.tar"
	rm -rf "$root"
}

# changes configures the images of the root file system: PATH and the default command, but no user.
changes=(-c 'ENV PATH=/usr/bin:/bin' -c 'CMD ["/bin/sh"]')

import_image() { # import_image ENGINE…: the base, then two made from it with a USER
	"$@" image inspect "$image" >/dev/null 2>&1 && return
	tar -C "$dir" -cf "$dir/bare.tar" --files-from /dev/null
	tar -C "$dir" --transform 's,.*,bin/sh,' -rf "$dir/bare.tar" -P "$(readlink -f "$(command -v busybox)")"
	{
		"$@" import "${changes[@]}" "$dir/rootfs.tar" "$image" &&
		"$@" import "${changes[@]}" -c 'USER 4321:4321' "$dir/rootfs.tar" ralph-test:other-user &&
		"$@" import -c 'ENV PATH=/bin' -c 'CMD ["/bin/sh"]' "$dir/bare.tar" ralph-test:no-git
	} >"$dir/import.log" 2>&1 || { tail -5 "$dir/import.log" >&2; say "$1 could not import the image"; exit 1; }
}

install_runsc() {
	[[ -x $dir/bin/runsc ]] && return
	say "building gVisor's runsc $runsc_version"
	GOFLAGS=-mod=mod CGO_ENABLED=0 GOBIN=$dir/bin go install "gvisor.dev/gvisor/runsc@$runsc_version" >"$dir/runsc.log" 2>&1 ||
		{ tail -5 "$dir/runsc.log" >&2; say "go could not build runsc"; exit 1; }
}

start_docker() {
	export DOCKER_HOST=unix://$dir/docker.sock
	docker version >/dev/null 2>&1 && return
	# --host-fifo and --host-uds: by default gVisor exposes neither the host's pipes nor its sockets.
	cat >"$dir/daemon.json" <<-JSON
		{"runtimes": {"runsc": {"path": "$dir/bin/runsc", "runtimeArgs": ["--host-uds=open", "--host-fifo=open"]}}}
	JSON
	# A separate network namespace: containers reach each other and nothing else.
	(cd /; setsid unshare --net sh -c 'ip link set lo up 2>/dev/null || ifconfig lo up; exec "$@"' sh dockerd \
		--data-root "$dir/docker-data" --exec-root "$dir/docker-exec" --pidfile "$dir/dockerd.pid" \
		--config-file "$dir/daemon.json" -H "$DOCKER_HOST" >"$dir/dockerd.log" 2>&1 </dev/null &)
	local i
	for ((i = 0; i < 300; i++)); do
		docker version >/dev/null 2>&1 && return
		sleep 0.1
	done
	tail -5 "$dir/dockerd.log" >&2
	say "dockerd does not start; its log is $dir/dockerd.log"
	exit 1
}

# runc and fewer open files also work in containers and on machines with a mixed cgroup tree.
podman_settings() {
	cat <<-'CONF'
		[containers]
		default_ulimits = ["nofile=1024:4096","nproc=4096:4096"]
		[engine]
		runtime = "runc"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
	CONF
}

# Root's podman has its own store in the folder, and lock files instead of shared locks. The paths of its sockets are long,
# so they are outside of the folder, which may be too deep.
configure_podman() {
	mkdir -p "$dir/podman"
	{
		podman_settings
		printf '%s = "%s"\n' tmp_dir "$podman_run/libpod" lock_type file
	} >"$dir/containers.conf"
	{
		echo '[storage]'
		printf '%s = "%s"\n' driver overlay graphroot "$dir/podman" runroot "$podman_run/storage"
	} >"$dir/storage.conf"
	export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf
}

start_rootless() {
	id "$user" >/dev/null 2>&1 || useradd --create-home "$user"
	local home run uid first
	uid=$(id -u "$user")
	first=$((300000 + uid * 65536)) # if useradd assigns none
	grep -q "^$user:" /etc/subuid || echo "$user:$first:65536" >>/etc/subuid
	grep -q "^$user:" /etc/subgid || echo "$user:$first:65536" >>/etc/subgid
	home=$(getent passwd "$user" | cut -d: -f6)
	run=/run/user/$uid
	install -d -o "$user" -g "$user" -m 700 "$run"
	install -d -o "$user" -g "$user" "$home/.config" "$home/.config/containers"
	[[ -s $home/.config/containers/storage.conf ]] ||
		printf '[storage]\ndriver = "overlay"\n' >"$home/.config/containers/storage.conf"
	podman_settings >"$home/.config/containers/containers.conf"
	chmod 644 "$home/.config/containers/"*
	as_user podman image inspect "$image" >/dev/null 2>&1 && return
	as_user podman import "${changes[@]}" - "$image" <"$dir/rootfs.tar" >/dev/null 2>&1
}

install_packages
make_rootfs
if wanted runsc; then install_runsc; fi
if wanted docker || wanted runsc; then
	start_docker
	import_image docker
fi
if wanted podman || wanted podman-rootless; then configure_podman; fi
if wanted podman; then import_image podman; fi
if wanted podman-rootless; then start_rootless; fi

{
	echo "export RALPH_TEST_ENGINES=$(IFS=,; echo "${engines[*]}")"
	echo "export RALPH_TEST_IMAGE=$image"
	echo "export RALPH_TEST_ROOTLESS=$user"
	[[ -z ${DOCKER_HOST-} ]] || echo "export DOCKER_HOST=$DOCKER_HOST"
	[[ -z ${CONTAINERS_CONF-} ]] || echo "export CONTAINERS_CONF=$CONTAINERS_CONF CONTAINERS_STORAGE_CONF=$CONTAINERS_STORAGE_CONF"
} >"$dir/env"
say "${engines[*]} ready; source $dir/env"

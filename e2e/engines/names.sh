# Sourced by start.sh and stop.sh. Everything outside of the folder $dir that its engines use is named after it, so that the
# engines of different folders neither see nor stop each other's containers.
# shellcheck shell=bash disable=SC2034,SC2154
mark=$(printf %s "$dir" | sha256sum | cut -c1-8)
user=ralph-rootless-$mark # podman-rootless runs as this user
podman_run=/run/ralph-podman-$mark

# as_user runs a command as the rootless user, with only its home and a minimal environment.
as_user() {
	local home
	home=$(getent passwd "$user" | cut -d: -f6)
	(cd / && setpriv --reuid "$user" --regid "$user" --init-groups \
		env -i "HOME=$home" "PATH=$PATH" "XDG_RUNTIME_DIR=/run/user/$(id -u "$user")" "$@")
}

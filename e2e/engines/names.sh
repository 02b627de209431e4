# Sourced by start.sh and stop.sh: what the engines of the folder $dir have outside it is named after it, so that the engines of
# several folders neither see nor end each other's containers.
# shellcheck shell=bash disable=SC2034,SC2154
mark=$(printf %s "$dir" | sha256sum | cut -c1-8)
user=ralph-rootless-$mark # podman-rootless is this user's
podman_run=/run/ralph-podman-$mark

# as_user runs a command as the rootless user, with its home and no other environment.
as_user() {
	local home
	home=$(getent passwd "$user" | cut -d: -f6)
	(cd / && setpriv --reuid "$user" --regid "$user" --init-groups \
		env -i "HOME=$home" "PATH=$PATH" "XDG_RUNTIME_DIR=/run/user/$(id -u "$user")" "$@")
}

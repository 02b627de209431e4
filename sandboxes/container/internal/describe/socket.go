package describe

import (
	"path/filepath"
	"strings"
)

// Socket returns the unix socket of the docker program with this environment. local is false if that is not certain.
func Socket(env []string) (path string, local bool) {
	path = "/var/run/docker.sock"
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "DOCKER_CONTEXT" && value != "":
			return "", false
		case name == "DOCKER_HOST" && value != "":
			if path, local = strings.CutPrefix(value, "unix://"); !local {
				return "", false
			}
		}
	}
	return path, true
}

// Sockets returns existing sockets through which anybody can start containers on the host.
func Sockets(env []string) (found []string) {
	all := []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}
	if s, local := Socket(env); local {
		all = append(all, s)
	}
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "XDG_RUNTIME_DIR="); ok && dir != "" {
			all = append(all, filepath.Join(dir, "podman/podman.sock"), filepath.Join(dir, "docker.sock"))
		}
	}
	for _, s := range all {
		if real, err := filepath.EvalSymlinks(s); err == nil {
			found = append(found, real)
		}
	}
	return found
}

package cli

import (
	"os"
	"strings"
	"testing"
)

// TestImageEngine: images are built and removed where the configured sandbox looks for them.
func TestImageEngine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		args   []string
		env    string
		want   string
	}{
		"configured":   {"sandbox: podman\n", []string{"image", "build"}, "", "podman build"},
		"removal":      {"sandbox: podman\n", []string{"image", "remove"}, "", "podman rmi"},
		"variable":     {"", []string{"image", "build"}, "RALPH_SANDBOX=podman", "podman build"},
		"named":        {"sandbox: podman\n", []string{"image", "build", "--engine=docker"}, "", "docker build"},
		"by its name":  {"sandbox: podman\n", []string{"docker", "build-image"}, "", "docker build"},
		"no container": {"sandbox: native\n", []string{"image", "build"}, "", "docker build"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/config.yaml", c.config)
			m.write(t, ".ralph/Containerfile", "FROM scratch\n")
			m.program(t, "docker", "echo docker $1\n")
			bin := m.program(t, "podman", "echo podman $1\n")
			got := m.run(t, func(h *Host) {
				h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), c.env}
			}, c.args...)
			if got.status != 0 || !strings.Contains(got.stdout, c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestImageRemovedTwice: an image that is not there is one line, and none of the engine's.
func TestImageRemovedTwice(t *testing.T) {
	t.Parallel()
	for engine, says := range map[string]string{
		"docker": "Error: No such image: ralph:x",
		"podman": "Error: inspecting object: ralph:x: image not known",
	} {
		m := newMachine(t)
		bin := m.program(t, engine, "echo '"+says+"' >&2; exit 1\n")
		got := m.run(t, func(h *Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} },
			"image", "remove", "--image=ralph:x", "--engine", engine)
		want := ran{status: exitFailed, stderr: "ralph: " + engine + " has no image ralph:x: it was removed before, or never built; --image or --engine name another\n"}
		if got != want {
			t.Errorf("%s: got %+v", engine, got)
		}
	}
}

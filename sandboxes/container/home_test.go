package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// If a home cannot be copied, the sandbox starts with an empty home and a reason.
func TestColdHome(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		if r.copies {
			if p := r.provider(r.config(t)); p.Capabilities().Home {
				t.Errorf("%s with copied files promises homes", name)
			}
			return
		}
		for why, put := range map[string]func(layer string) error{
			"more than a quarter of the sandbox's memory of 64 MB": func(layer string) error {
				return os.Truncate(filepath.Join(layer, "a"), 1<<40)
			},
			"permission denied": func(layer string) error { return os.Chmod(filepath.Join(layer, "a"), 0) },
		} {
			layer := folder(t)
			if err := os.WriteFile(filepath.Join(layer, "a"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := put(layer); err != nil {
				t.Fatal(err)
			}
			box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
				Worktree: folder(t), Home: layer, Limits: sandboxes.Limits{Memory: 64 << 20}, Run: "cold-" + name + filepath.Base(filepath.Dir(layer)),
			})
			if got, exit := inside(t, box, "ls -A ~; touch ~/x; test -e /.ralph/home && echo shown"); got != "" {
				t.Errorf("inside: %q, %+v", got, exit)
			}
			cold, ok := sandboxes.As[sandboxes.HomeReporter](box)
			if !ok || !strings.Contains(cold.EmptyHomeReason(), why) {
				t.Errorf("it does not say %q", why)
			}
		}
	})
}

// Sandboxes of one image and user share a home. It is filled only if its files belong to ralph's user.
func TestHomeKey(t *testing.T) {
	t.Parallel()
	key := func(e container.Engine, c container.Config, info, image string) string {
		t.Helper()
		c.Image, c.Helper = "ralph:x", "/bin/true"
		p := container.New(shim(t, e, `case $1 in info) echo '`+info+`';; image) echo '[{"Id":"`+image+`","Config":{}}]';; esac`), c)
		got, err := p.HomeKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const rootful, rootless = `{"host":{}}`, `{"host":{"security":{"rootless":true}}}`
	all := map[string]string{}
	for name, got := range map[string]string{
		"plain":       key(container.Podman(), container.Config{}, rootful, "1"),
		"other image": key(container.Podman(), container.Config{}, rootful, "2"),
		"other home":  key(container.Podman(), container.Config{Home: "/root"}, rootful, "1"),
		"rootless":    key(container.Podman(), container.Config{}, rootless, "1"),
		"as root":     key(container.Podman(), container.Config{User: "0:0"}, rootless, "1"),
	} {
		if got == "" || all[got] != "" {
			t.Errorf("%s and %s: %q", name, all[got], got)
		}
		all[got] = name
	}
	if got := key(container.Podman(), container.Config{UserNamespace: "auto"}, rootful, "1"); got != "" {
		t.Errorf("in a user namespace of its own: %q", got)
	}
	for _, c := range []struct {
		engine     container.Engine
		user, info string
		ours       bool
	}{
		{container.Docker(), "0:0", "{}", os.Geteuid() == 0},
		{container.Docker(), "7:7", `{"SecurityOptions":["name=rootless"]}`, os.Geteuid() == 0},
		{container.Docker(), "0:0", `{"SecurityOptions":["name=rootless"]}`, true},
		{container.Podman(), "7:7", rootless, true},
	} {
		if got := key(c.engine, container.Config{User: c.user}, c.info, "1"); (got != "") != c.ours {
			t.Errorf("%s as %s with %s: %q", c.engine.Name, c.user, c.info, got)
		}
	}
}

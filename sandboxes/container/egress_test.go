package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// The proxy's socket is the only egress: connections that the proxy refuses have no other path.
func TestProxyIsTheOnlyEgress(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		dir, err := os.MkdirTemp("", "egress") //nolint:usetesting // a socket's path has to be short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		proxy, err := egress.New(egress.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = proxy.Close() })
		socket, err := proxy.Listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			for _, path := range []string{socket, filepath.Dir(socket), dir} {
				if err := os.Chown(path, 1000, 1000); err != nil {
					t.Fatal(err)
				}
			}
		}
		wt := folder(t)
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: wt, Egress: socket, Run: "out-" + name + filepath.Base(filepath.Dir(wt)),
		})
		if got, _ := inside(t, box, "cat /etc/hosts"); strings.Contains(got, "host.") || strings.Contains(got, machineName(t)) {
			t.Errorf("the host's names and addresses are visible: %s", got)
		}
		// A program that uses the proxy, one that does not, and one that connects by address.
		const ask = `; printf "GET http://blocked.example/ HTTP/1.1\r\nHost: blocked.example\r\n\r\n" >&3; head -1 <&3`
		for script, want := range map[string]string{
			`exec 3<>/dev/tcp/127.0.0.1/15380` + ask:         "403",
			`exec 3<>/dev/tcp/blocked.example/80` + ask:      "403",
			`exec 3<>/dev/tcp/1.1.1.1/80 || echo no`:         "no",
			`exec 3<>/dev/tcp/169.254.169.254/80 || echo no`: "no",
			`cat /etc/resolv.conf; echo x >/etc/resolv.conf`: "Read-only",
			`env`: "HTTPS_PROXY=http://127.0.0.1:15380",
		} {
			if got, _ := inside(t, box, "exec bash -c '"+script+"'"); !strings.Contains(got, want) {
				t.Errorf("%s\nprints %q, want %q", script, got, want)
			}
		}
	}, "podman-rootless")
}

// machineName returns a name of this host in its hosts file, or a name that does not exist.
func machineName(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for i, name := range strings.Fields(line) {
			if i > 0 && !strings.Contains(name, "local") && !strings.HasPrefix(name, "ip6-") {
				return name
			}
		}
	}
	return "no name"
}

package container

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
)

// A silent call is repeated. An active one is not, and its result is final.
func TestSilentTunnel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ then, want string }{
		"then it opens": {"echo '" + inside.TunnelReady + "' >&2; exec sleep 1000", ""},
		"then it fails": {"echo 'no proxy' >&2; exit 1", "no proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, "engine")
			script := "#!/bin/sh\n[ $1 = exec ] || exit 0\ncalls=" + filepath.Join(dir, "calls") + "\necho x >> $calls\n" +
				"[ $(wc -l < $calls) = 1 ] && exec sleep 1000\n" + c.then + "\n"
			if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			p := New(Engine{Name: "docker", Command: []string{program}}, Config{})
			b := &box{provider: p, name: "box"}
			b.tunnel = p.openTunnel(b, filepath.Join(dir, "socket"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test takes that long
			defer cancel()
			err := p.awaitTunnel(ctx, b, 5*time.Second) // noticing an end takes one second
			b.tunnel.close()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || string(calls) != "x\nx\n" {
				t.Errorf("calls %q, %v", calls, err)
			}
		})
	}
}

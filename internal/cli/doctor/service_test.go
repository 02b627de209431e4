package doctor

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/tracker"
)

// A model service's own address must be a URL, and something should listen there. Nothing is sent to it.
func TestServiceAddress(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := l.Addr().String()
	closed := deafPort(t)
	defer func() { _ = l.Close() }()
	for address, want := range map[string]tracker.Finding{
		"http://user:secret@" + open: {Severity: tracker.OK, Detail: "claude-code: http://" + open + " accepts connections"},
		"http://" + closed + "/v1":   {Severity: tracker.Warn, Detail: "claude-code: http://" + closed + "/v1 cannot be reached: connection refused"},
		"foo":                        {Severity: tracker.Fail, Detail: "claude-code: ANTHROPIC_BASE_URL is not a URL such as https://gateway.example.com"},
		"http://user:se cret@x":      {Severity: tracker.Fail, Detail: "claude-code: ANTHROPIC_BASE_URL is not a URL such as https://gateway.example.com"},
		"":                           {},
	} {
		d := &doctor{app: &compose.App{}}
		d.app.Host.Env = []string{"ANTHROPIC_BASE_URL=" + address}
		d.service(t.Context(), &compose.Parts{}, agents.Claude{})
		if (len(d.findings) == 0) != (address == "") {
			t.Fatalf("%s: %+v", address, d.findings)
		}
		for _, f := range d.findings {
			if f.Severity != want.Severity || f.Detail != want.Detail || f.Severity != tracker.OK && !strings.Contains(f.Fix, "ANTHROPIC_BASE_URL") {
				t.Errorf("%s: %+v", address, f)
			}
		}
	}
}

// deafPort returns an address whose port is taken, so that no other program gets it, but at which nothing listens.
func deafPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
}

package landlock

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestADoorOpensOnlyForTheWarden: others on this host find its port, and get nothing.
func TestADoorOpensOnlyForTheWarden(t *testing.T) {
	t.Parallel()
	g := newGate()
	l, err := g.open(t.Context(), netip.MustParseAddrPort("127.0.0.1:15380"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("welcome"))
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close() }()
	door, ok := g.door(15380)
	if !ok {
		t.Fatal("there is no door")
	}
	stranger, err := new(net.Dialer).DialContext(t.Context(), "tcp", door.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if got, _ := io.ReadAll(stranger); len(got) > 0 {
		t.Errorf("a stranger gets %q", got)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := g.enter(fd, door); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if n, err := unix.Read(fd, got); err != nil || string(got[:n]) != "welcome" {
		t.Errorf("the command gets %q, %v", got[:n], err)
	}
}

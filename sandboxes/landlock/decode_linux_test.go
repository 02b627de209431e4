package landlock

import (
	"io"
	"net"
	"os"
	"testing"
)

const sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
	"   0: 0100007F:3C14 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n" +
	"   1: 0100007F:3C14 0100007F:1000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0\n" +
	"   2: 0100007F:1000 0100007F:3C14 01 00000000:00000000 00:00000000 00000000  1001        0 4713 1 0\n"

func TestParseUser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to uint16
		want     int
	}{{0x1000, 0x3c14, 1001}, {0x3c14, 0x1000, 1000}, {0x3c14, 0x1001, -1}, {0x3c15, 0x1000, -1}} {
		if got := parseUser([]byte(sockets), tt.from, tt.to); got != tt.want {
			t.Errorf("from %x to %x: user %d, want %d", tt.from, tt.to, got, tt.want)
		}
	}
}

func FuzzParseUser(f *testing.F) {
	f.Add([]byte(sockets), uint16(15380), uint16(4096))
	f.Fuzz(func(t *testing.T, table []byte, from, to uint16) {
		if got := parseUser(table, from, to); got < -1 {
			t.Errorf("user %d", got)
		}
	})
}

// Other users of this host can find the port of a relay, but their connections are closed.
func TestADoorOpensForOneUser(t *testing.T) {
	t.Parallel()
	for uid, want := range map[int]string{os.Getuid(): "welcome", os.Getuid() + 1: ""} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		d := &userListener{l, uid}
		go func() {
			for {
				c, err := d.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("welcome"))
				_ = c.Close()
			}
		}()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(c); string(got) != want {
			t.Errorf("user %d gets %q, want %q", uid, got, want)
		}
		_ = c.Close()
	}
}

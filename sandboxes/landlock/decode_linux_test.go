package landlock

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzParseAddress(f *testing.F) {
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1})
	f.Add([]byte{10, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{1, 0, '/', 'r', 'u', 'n'})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAddress(b)
		if err == nil && !a.IsValid() {
			t.Errorf("%x gives %v", b, a)
		}
		// What goes on unseen must not be an address of the internet, nor a unix socket's.
		if errors.Is(err, errGoOn) && (b[0] == unix.AF_INET || b[0] == unix.AF_INET6 || b[0] == unix.AF_UNIX) && b[1] == 0 {
			t.Errorf("%x goes on", b)
		}
	})
}

func FuzzListeners(f *testing.F) {
	line := "   0: 0100007F:3C14 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n"
	f.Add([]byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"+line), uint16(15380))
	f.Fuzz(func(t *testing.T, table []byte, port uint16) {
		if n := len(listeners(table, port)); n > bytes.Count(table, []byte("0A")) {
			t.Errorf("%d listeners", n)
		}
	})
}

func TestListeners(t *testing.T) {
	t.Parallel()
	const table = "  sl  local_address rem_address   st …\n" +
		"   0: 0100007F:3C14 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n" +
		"   1: 0100007F:3C14 0100007F:1000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n" +
		"   2: 00000000:3C15 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0\n"
	if got := listeners([]byte(table), 15380); len(got) != 1 || got[0] != 4711 {
		t.Errorf("got %v", got)
	}
}

func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	if err := send(&b, order{Argv: []string{"a\xff"}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = receive(bytes.NewReader(b)) })
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"code":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readReport(bytes.NewReader(b))
		if err == nil && len(r.Refused) > maxReport*4 {
			t.Error("too long")
		}
	})
}

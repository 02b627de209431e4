package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// clientHello returns the first bytes of a real client.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	c := &helloConn{from: strings.NewReader("")}
	var sent bytes.Buffer
	_ = tls.Client(&writeTo{c, &sent}, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	return sent.Bytes()
}

type writeTo struct {
	net.Conn
	w io.Writer
}

func (c *writeTo) Write(b []byte) (int, error) { return c.w.Write(b) }

func TestHello(t *testing.T) {
	t.Parallel()
	sent := clientHello(t, "Example.com")
	// As one record, and split into records of one byte each: hostile programs do that to evade filters that check only the
	// first record.
	cut := []byte{}
	for _, b := range sent[5:] {
		cut = append(cut, 0x16, 3, 1, 0, 1, b)
	}
	for _, sent := range [][]byte{sent, cut} {
		h, err := readHello(context.Background(), io.MultiReader(bytes.NewReader(sent), strings.NewReader("more")))
		if err != nil || h.name != "example.com" || !bytes.HasPrefix(append(sent, "more"...), h.bytes) {
			t.Errorf("%+v, %v", h, err)
		}
	}
	if h, err := readHello(context.Background(), bytes.NewReader(sent[:50])); err == nil {
		t.Errorf("half a hello is %+v", h)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(clientHello(f, "example.com"))
	f.Add([]byte("\x16\x03\x01\x00\x04abcd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _ := readHello(context.Background(), bytes.NewReader(b))
		if !bytes.HasPrefix(b, h.bytes) {
			t.Error("what was read is not what was sent")
		}
	})
}

// Whatever arrives over the socket, the connection ends, and the proxy connects to nothing.
func FuzzConnection(f *testing.F) {
	for _, s := range []string{
		"ralph-egress/1 plan\n", "ralph-egress/1 connect example.com:443\n\x16\x03\x01",
		"ralph-egress/1 proxy\nCONNECT example.com:443 HTTP/1.1\r\n\r\n",
		"ralph-egress/1 proxy\nGET http://a@example.com/ HTTP/1.1\r\nHost: x\r\nConnection: Host\r\n\r\n",
		"ralph-egress/1 connect example.com:80\nGET / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx",
		"ralph-egress/1 endpoint 0\nPOST /v1/../x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := New(Config{
			Allow:     []Rule{{Host: "example.com"}},
			Endpoints: []Endpoint{{Name: "api", Upstream: "https://example.com", Secret: func(context.Context) (string, error) { return "secret-in-the-proxy", nil }}},
			Resolver:  nowhere{}, Dial: func(context.Context, string, string) (net.Conn, error) { panic("connected") },
		})
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		p.admit(there)
		got := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(here)
			got <- all
		}()
		_, _ = here.Write(b)
		_ = p.Close()
		if all := <-got; bytes.Contains(all, []byte("secret-in-the-proxy")) {
			t.Errorf("it answered %q", all)
		}
	})
}

// nowhere is a resolver that returns a private address for every name.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

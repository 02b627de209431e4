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

	"golang.org/x/net/dns/dnsmessage"
)

func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestDNS(t *testing.T) {
	t.Parallel()
	n := newNames()
	for _, tt := range []struct {
		name  string
		kind  dnsmessage.Type
		want  string // the address; empty: no answer
		rcode dnsmessage.RCode
	}{
		{"example.com.", dnsmessage.TypeA, "127.64.0.0", 0},
		{"other.example.com.", dnsmessage.TypeA, "127.64.0.1", 0},
		{"EXAMPLE.com.", dnsmessage.TypeA, "127.64.0.0", 0},
		{"example.com.", dnsmessage.TypeAAAA, "", 0},
		{"example.com.", dnsmessage.TypeHTTPS, "", 0},
		{"localhost.", dnsmessage.TypeA, "127.0.0.1", 0},
		{"14.215.184.93.in-addr.arpa.", dnsmessage.TypePTR, "", 0},
		{".", dnsmessage.TypeA, "", dnsmessage.RCodeNameError},
		{"a b.com.", dnsmessage.TypeA, "", dnsmessage.RCodeNameError},
		{"1.2.3.", dnsmessage.TypeA, "", dnsmessage.RCodeNameError},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(answerDNS(query(t, tt.name, tt.kind), n)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(m.Answers) > 0 {
			a, _ := m.Answers[0].Body.(*dnsmessage.AResource)
			got = netip.AddrFrom4(a.A).String()
		}
		if got != tt.want || m.RCode != tt.rcode || m.ID != 7 || !m.Response {
			t.Errorf("%s %s: %q, %+v", tt.name, tt.kind, got, m.Header)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := newNames()
	first := n.address("first.example.com")
	if again := n.address("first.example.com"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	for i := range maxNames - 1 {
		n.address(strings.Repeat("a", i%60+1) + "." + netip.AddrFrom4([4]byte{0, byte(i >> 16), byte(i >> 8), byte(i)}).String())
	}
	if name, ok := n.name(first); !ok || name != "first.example.com" {
		t.Errorf("%s is %q", first, name)
	}
	one := n.address("one.more.example.com") // takes over the oldest address
	if name, ok := n.name(first); one != first || name != "one.more.example.com" || !ok {
		t.Errorf("%s is %q, and %s the new one", first, name, one)
	}
	if len(n.byName) != maxNames {
		t.Errorf("%d names", len(n.byName))
	}
	for _, a := range []string{"127.0.0.1", "127.65.0.0", "::1", "10.0.0.1"} {
		if name, ok := n.name(netip.MustParseAddr(a)); ok {
			t.Errorf("%s is %q", a, name)
		}
	}
}

func FuzzDNS(f *testing.F) {
	f.Add(query(f, "example.com.", dnsmessage.TypeA))
	f.Add(query(f, "localhost.", dnsmessage.TypeAAAA))
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	n := newNames()
	f.Fuzz(func(t *testing.T, b []byte) {
		reply := answerDNS(b, n)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatalf("the reply is broken: %v", err)
		}
		if !m.Response || m.ID != uint16(b[0])<<8|uint16(b[1]) {
			t.Errorf("%+v", m.Header)
		}
	})
}

func TestPreface(t *testing.T) {
	t.Parallel()
	for _, p := range []preface{{verb: verbPlan}, {verb: verbProxy}, {verbEndpoint, "3"}, {verbConnect, "example.com:443"}} {
		in := strings.NewReader(p.String() + "rest")
		got, err := readPreface(in)
		if err != nil || got != p {
			t.Errorf("%q: %+v, %v", p, got, err)
		}
		if rest, _ := io.ReadAll(in); string(rest) != "rest" {
			t.Errorf("%q: read on, to %q", p, rest)
		}
	}
	for _, s := range []string{
		"GET / HTTP/1.1\r\n", "ralph-egress/2 plan\n", "ralph-egress/1\n", "ralph-egress/1 plan \n", "ralph-egress/1 connect\n",
		"ralph-egress/1 connect \n", "ralph-egress/1 connect  \n", "ralph-egress/1 proxy now\n", strings.Repeat("x", 600) + "\n", "\n", "",
	} {
		if p, err := readPreface(strings.NewReader(s)); err == nil {
			t.Errorf("%q is taken for %+v", s, p)
		}
	}
}

func FuzzPreface(f *testing.F) {
	f.Add([]byte("ralph-egress/1 connect example.com:443\nrest"))
	f.Add([]byte("ralph-egress/1 plan\n"))
	f.Add([]byte("no not-allowed\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := readPreface(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, []byte(p.String())) {
			t.Errorf("%q is taken for %q", b, p)
		}
		_ = readReply(bytes.NewReader(b))
	})
}

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

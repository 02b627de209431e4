package forward

import (
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

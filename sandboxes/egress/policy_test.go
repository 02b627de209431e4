package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	all := parseBlocks()
	for want, addresses := range map[reach][]string{
		public: {"93.184.215.14", "1.1.1.1", "2606:4700::1111", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1", "::ffff:93.184.215.14"},
		private: {
			"127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
			"100.64.0.0", "100.127.255.255", "::1", "fc00::", "fdff::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
		},
		never: {
			"0.0.0.0", "169.254.169.254", "169.254.0.0", "169.254.255.255", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254",
			"fe80::1", "fe80::1%eth0", "ff02::1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::",
			"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::", "2001::1", "2001:db8::1", "192.0.2.1",
			"198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "5f00::1", "fec0::1", "100::1", "3fff::1",
		},
	} {
		for _, a := range addresses {
			if got := classify(all, netip.MustParseAddr(a)); got != want {
				t.Errorf("%s is %d, want %d", a, got, want)
			}
		}
	}
	if got := classify(all, netip.Addr{}); got != never {
		t.Errorf("no address is %d", got)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add(netip.MustParseAddr("64:ff9b::7f00:1").AsSlice())
	all := parseBlocks()
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		got := classify(all, a)
		if u := a.Unmap(); got == public && (u.IsLoopback() || u.IsPrivate() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified()) {
			t.Errorf("%s is public", a)
		}
		if a.Is4() && classify(all, netip.AddrFrom16(a.As16())) != got {
			t.Errorf("%s is something else when it is mapped", a)
		}
	})
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com":            "example.com",
		"*.Example.com:443":      "*.Example.com:443",
		"example.com:80,8080":    "example.com:80,8080",
		"[2606::1]:22":           "[2606::1]:22",
		"2606::1":                "2606::1",
		"10.0.0.1:5000":          "10.0.0.1:5000",
		"example.com:":           "!port \"\" is not a number",
		"example.com:x":          "!port \"x\" is not a number",
		"example.com:0":          "!port 0 is not between 1 and 65535",
		"a:b:c":                  "!use HOST, HOST:PORT or [IPv6]:PORT",
		"https://example.com":    "!",
		"":                       "!a host has 1 to 253 characters",
		"*":                      "!a star stands only",
		"*.co":                   "!name the hosts",
		"*.co.":                  "!name the hosts",
		"e\u0445ample.com":       "!write other scripts as xn--",
		"127.1":                  "!neither a name nor an address",
		strings.Repeat("a", 300): "!1 to 253 characters",
	} {
		r, err := ParseRule(text)
		mend, wantErr := strings.CutPrefix(want, "!")
		switch {
		case wantErr && (err == nil || !strings.Contains(err.Error(), mend)):
			t.Errorf("%q: error %v, want %q in it", text, err, mend)
		case !wantErr && (err != nil || r.String() != want):
			t.Errorf("%q: %q, %v", text, r, err)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com:443", "[::1]:80", "127.0.0.1:1", "a..b:1", "*.x:443", "\x00:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := ParseRule(s); err == nil && s == "" {
			t.Error("an empty rule")
		}
		host, port, err := splitTarget(s)
		if err != nil {
			return
		}
		if port < 1 || port > 65535 || strings.ContainsAny(host, " \r\n\x00/@%*") {
			t.Errorf("%q gives %q, %d", s, host, port)
		}
		if again, err := canonicalHost(host); err != nil || again != host {
			t.Errorf("%q is not canonical: %q, %v", host, again, err)
		}
	})
}

package reach

import (
	"net/netip"
	"testing"
)

func TestReach(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[Reach][]string{
		Public: {"93.184.215.14", "1.1.1.1", "2606:4700::1111", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1", "::ffff:93.184.215.14"},
		Private: {
			"127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
			"100.64.0.0", "100.127.255.255", "::1", "fc00::", "fdff::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
			"192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
		},
		Never: {
			"0.0.0.0", "169.254.169.254", "169.254.0.0", "169.254.255.255", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
			"fe80::1", "fe80::1%eth0", "ff02::1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::",
			"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::", "2001::1", "2001:db8::1",
			"192.88.99.1", "5f00::1", "fec0::1", "100::1", "3fff::1",
		},
	} {
		for _, a := range addresses {
			if got := Of(netip.MustParseAddr(a)); got != want {
				t.Errorf("%s is %d, want %d", a, got, want)
			}
		}
	}
	if got := Of(netip.Addr{}); got != Never {
		t.Errorf("no address is %d", got)
	}
}

func FuzzReach(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add(netip.MustParseAddr("64:ff9b::7f00:1").AsSlice())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		got := Of(a)
		if u := a.Unmap(); got == Public && (u.IsLoopback() || u.IsPrivate() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified()) {
			t.Errorf("%s is public", a)
		}
		if a.Is4() && Of(netip.AddrFrom16(a.As16())) != got {
			t.Errorf("%s is something else when it is mapped", a)
		}
	})
}

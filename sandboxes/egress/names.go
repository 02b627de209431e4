package egress

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// names gives each name a loopback address of its own, so that a connection identifies its name.
type names struct {
	mu     sync.Mutex
	byName map[string]uint16 // guarded by mu
	byID   []string          // guarded by mu; the name of address namesPrefix + id
	next   uint16            // guarded by mu
}

// maxNames is how many names have an address at once; then the oldest loses its own.
const maxNames = 1 << 16

func newNames() *names { return &names{byName: map[string]uint16{}} }

// address returns the name's address, the same one each time.
func (n *names) address(name string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.byName[name]
	if !ok {
		id = n.next
		n.next++ // wraps around
		if len(n.byID) < maxNames {
			n.byID = append(n.byID, name)
		} else {
			delete(n.byName, n.byID[id])
			n.byID[id] = name
		}
		n.byName[name] = id
	}
	b := netip.MustParseAddr(namesPrefix).As4()
	binary.BigEndian.PutUint16(b[2:], id)
	return netip.AddrFrom4(b)
}

// name returns the name of an address.
func (n *names) name(a netip.Addr) (string, bool) {
	a = a.Unmap()
	if !a.Is4() {
		return "", false
	}
	b := a.As4()
	if netip.AddrFrom4([4]byte{b[0], b[1]}) != netip.MustParseAddr(namesPrefix) {
		return "", false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	id := int(binary.BigEndian.Uint16(b[2:]))
	if id >= len(n.byID) {
		return "", false
	}
	return n.byID[id], true
}

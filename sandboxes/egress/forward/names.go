package forward

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// names maps each name to its own loopback address, so that a connection identifies the name.
type names struct {
	mu     sync.Mutex
	byName map[string]uint16 // guarded by mu
	byID   []string          // guarded by mu; names by id, which is the offset of the address from namesPrefix
	next   uint16            // guarded by mu
}

// maxNames is the maximum number of names with an address; then a new name takes over the oldest address.
const maxNames = 1 << 16

func newNames() *names { return &names{byName: map[string]uint16{}} }

// address returns the address of a name, always the same one while it is kept.
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

package wire

import (
	"errors"
	"net/netip"
	"strings"
)

// CanonicalHost returns the canonical form of a name or address: lower case, no final dot, addresses as netip formats them.
// It refuses anything else, which so never reaches a resolver or an event.
func CanonicalHost(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errors.New("an address with a zone is not supported")
		}
		return a.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > 253 {
		return "", errors.New("a host has 1 to 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !ValidLabel(label) {
			return "", errors.New("a host is made of letters, digits, dashes and dots (write other scripts as xn--…)")
		}
	}
	// Some resolvers take 0x7f.1, 017700000001 and 2130706433 for addresses.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return "", errors.New("a host whose last part begins with a digit is neither a name nor an address")
	}
	return name, nil
}

// ValidLabel reports whether a part of a name is valid.
func ValidLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

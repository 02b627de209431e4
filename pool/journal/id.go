package journal

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

const (
	idTime = "20060102-150405"
	idSize = len(idTime) + len("-") + 12
)

// NewID makes the ID of a run that starts now. IDs sort by time and are unique across machines.
func NewID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return fmt.Sprintf("%s-%04x%x", now.UTC().Format(idTime), now.Nanosecond()>>14, b)
}

// IsID reports whether text has the form of a run's ID.
func IsID(text string) bool {
	if len(text) != idSize || text[len(idTime)] != '-' {
		return false
	}
	_, noTime := time.Parse(idTime, text[:len(idTime)])
	_, noNumber := hex.DecodeString(text[len(idTime)+1:])
	return noTime == nil && noNumber == nil
}

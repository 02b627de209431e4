package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash returns the fingerprint of the content that a trusted person approved: title, body and trusted comments. It begins
// with TextHash.
func (i Issue) Hash() string {
	said := []string{}
	for _, c := range i.Comments {
		if c.Trusted {
			said = append(said, c.Body)
		}
	}
	return i.TextHash() + digest(said...)
}

// TextHash returns the fingerprint of title and body. A later run on a request requires them unchanged since the approval,
// while trusted people may go on commenting.
func (i Issue) TextHash() string { return digest(i.Title, i.Body) }

// digest returns 128 bits of SHA-256, in hex, over any number of texts of any length.
func digest(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

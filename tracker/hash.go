package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash is the fingerprint of what a trusted person approved: title, body and trusted comments. It begins with TextHash.
func (i Issue) Hash() string {
	said := []string{}
	for _, c := range i.Comments {
		if c.Trusted {
			said = append(said, c.Body)
		}
	}
	return i.TextHash() + digest(said...)
}

// TextHash is the fingerprint of title and body: what has to be as it was approved when a request is worked again, while
// people who may direct ralph go on talking.
func (i Issue) TextHash() string { return digest(i.Title, i.Body) }

// digest has 128 bits of texts of any number and length.
func digest(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

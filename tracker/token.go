package tracker

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Token is a secret that authenticates ralph to a server. Every formatting verb prints it as "[redacted]".
type Token struct {
	Secret  string
	Expires time.Time // zero: never, or unknown
	// Identity names the account and stays the same when the secret changes; empty: the secret stands for the account.
	Identity string
}

const redacted = "[redacted]"

// Format implements fmt.Formatter. It prints "[redacted]" for every verb.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText implements encoding.TextMarshaler. It returns "[redacted]".
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// TokenSource returns the token for the next request. Its errors never contain a secret. It is safe for concurrent use. A tracker
// wraps such an error in a [*RefusedError]: the caller then ends the sweep, and can still find the cause, for which it shows
// Descriptor.LoginHint.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// TokenRenewer is implemented by sources that cache a token. Renew discards a token that the server rejected.
type TokenRenewer interface {
	Renew(t Token)
}

package tracker

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Token is a secret that a server takes for an identity. It prints as "[redacted]", whatever the verb.
type Token struct {
	Secret  string
	Expires time.Time // zero: never, or unknown
	// Identity names the account and stays the same when the secret changes; empty: the secret identifies it.
	Identity string
}

const redacted = "[redacted]"

// Format redacts the secret for every verb of fmt.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText redacts the secret for encoders.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// TokenSource gives the token for the next request. Its errors never hold a secret. It is safe for concurrent use. A tracker
// returns such an error wrapped in a [*RefusedError]: a program then ends the sweep, and still finds the cause, for which it
// shows Descriptor.LoginHint.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// TokenRenewer is implemented by sources that cache a token. Renew drops the given token because the server refused it.
type TokenRenewer interface {
	Renew(t Token)
}

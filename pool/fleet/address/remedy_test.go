package address

import "testing"

// A server without TLS is told of only when that is the reason: by default the driver goes on without TLS.
func TestHideLeavesOutTheFirstTry(t *testing.T) {
	t.Parallel()
	const refused = "127.0.0.1:5432 (127.0.0.1): tls error: server refused TLS connection"
	p := new(Passwords)
	for text, want := range map[string]string{
		"failed to connect:\n\t" + refused + "\n\t127.0.0.1:5432 (127.0.0.1): server error: no such role": "failed to connect: 127.0.0.1:5432 (127.0.0.1): server error: no such role",
		"failed to connect:\n\t" + refused: "failed to connect: " + refused,
		"failed to connect: " + refused:    "failed to connect: " + refused,
	} {
		if got := p.Hide(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

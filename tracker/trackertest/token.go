package trackertest

import (
	"context"
	"errors"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// errNoToken is the error of the test's source.
var errNoToken = errors.New("the source has no token")

type noToken struct{}

func (noToken) Token(context.Context) (tracker.Token, error) { return tracker.Token{}, errNoToken }

// withoutToken: a sweep without a token ends at once, and its error has the cause.
func withoutToken(t *testing.T, h Harness) {
	b := h.WithToken(t, noToken{})
	_, listed := b.List(t.Context(), tracker.Query{})
	_, got := b.Get(t.Context(), "1")
	for call, err := range map[string]error{"List": listed, "Get": got} {
		if _, ok := errors.AsType[*tracker.RefusedError](err); !ok || !errors.Is(err, errNoToken) {
			t.Errorf("%s without a token: %v, want a *RefusedError with the error of the source", call, err)
		}
	}
}

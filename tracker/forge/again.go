package forge

import (
	"context"
	"net/http"
	"time"
)

// secondLook is how long a forge's copies get to learn of what one of them has shown already.
const secondLook = time.Second

// Twice asks, and when the answer is that there is no such thing asks once more, a little later and past every cache:
// forges answer from copies, of which one may know a thing later than another.
func (s *Stack) Twice(ctx context.Context, ask func(context.Context) error) error {
	err := ask(ctx)
	if !Missing(err) {
		return err
	}
	if err := s.clock.Sleep(ctx, secondLook); err != nil {
		return err
	}
	return ask(Fresh(ctx))
}

// Missing reports an answer that says there is no such thing, or no more.
func Missing(err error) bool {
	switch Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, stop := time.Now(), errors.New("stop")
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("after %s the error is %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		if err := Sleep(ctx, time.Hour); !errors.Is(err, stop) {
			t.Errorf("the error is %v, want what has ended the context", err)
		}
		if err := Sleep(ctx, 0); !errors.Is(err, stop) {
			t.Errorf("with a context that has ended the error is %v", err)
		}
	})
}

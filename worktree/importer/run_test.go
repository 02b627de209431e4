package importer

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// A script that does not end is stopped, and the error says so, whatever the sandbox reports.
func TestLateImport(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]error{"nothing": nil, "an error": errors.New("the command was killed")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := Run(t.Context(), func(ctx context.Context, _, _ io.Writer) (int, error) {
					<-ctx.Done()
					return 137, said
				}, Options{Dir: t.TempDir()})
				if got := time.Since(start); !errors.Is(err, ErrLate) || !errors.Is(err, ErrInside) || got != scriptTimeout {
					t.Errorf("after %s: %v", got, err)
				}
			})
		})
	}
}

package worktree

import (
	"errors"
	"testing"
	"time"
)

// A finished issue leaves a record that the next claimant sees, that a release puts back, that a crash does not lose,
// and that only Finish replaces.
func TestDoneOutlivesClaims(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		name := "local"
		if remote {
			name = "remote"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			f := newFixture(t)
			if remote {
				f.withRemote()
			}
			r := f.repo
			first := claimed(t, r, "run-1")
			if _, ok := first.Done(); ok {
				t.Fatal("a fresh claim replaces nothing")
			}
			want := Done{Run: "run-1", Host: "here", Outcome: "succeeded", Hash: "h", Tip: "t", At: time.Unix(5, 0).UTC()}
			if err := first.Finish(ctx, want); err != nil {
				t.Fatal(err)
			}
			want.Generation = 1
			if held, done, err := r.Claims(ctx); err != nil || len(held) != 0 || done["a"] != want {
				t.Fatalf("held %v, done %v, %v", held, done, err)
			}
			if err := first.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Fatalf("a finished claim renews: %v", err)
			}

			again := claimed(t, r, "run-2")
			if d, ok := again.Done(); !ok || d != want || again.Holder().Generation != 2 {
				t.Fatalf("%+v %v, generation %d", d, ok, again.Holder().Generation)
			}
			if err := again.Renew(ctx); err != nil {
				t.Fatal(err)
			}
			crashed := *r // the holder dies without a word
			crashed.alive = func(int, string) bool { return false }
			heir := claimed(t, &crashed, "run-3")
			if d, ok := heir.Done(); !ok || d != want {
				t.Fatalf("the record was lost in the take-over: %+v %v", d, ok)
			}
			if err := heir.Release(ctx); err != nil {
				t.Fatal(err)
			}
			if _, done, err := r.Claims(ctx); err != nil || done["a"] != want {
				t.Fatalf("release did not put the record back: %v %v", done, err)
			}
			if err := again.Finish(ctx, Done{Run: "run-2"}); !errors.Is(err, ErrLost) {
				t.Fatalf("who has lost the claim finishes it: %v", err)
			}
		})
	}
}

func claimed(t *testing.T, r *Repo, run string) *Claim {
	t.Helper()
	c, err := r.Claim(t.Context(), "a", Holder{Owner: run, Run: run}, claimLife)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

package worktree

import (
	"errors"
	"fmt"
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

// A claim that says what its run came to goes on saying it, whoever holds it, until it is finished.
func TestDecisionOutlivesItsHolder(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote=%t", remote), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			f := newFixture(t)
			if remote {
				f.withRemote()
			}
			first := claimed(t, f.repo, "run-1")
			if _, ok := first.Decided(); ok {
				t.Fatal("a fresh claim says that its run has ended")
			}
			want := Decided{Done: Done{Run: "run-1", Outcome: "succeeded"}, Rest: []byte(`{"say":"two\nlines"}`)}
			if err := first.Decide(ctx, want); err != nil {
				t.Fatal(err)
			}
			if held, done, err := f.repo.Claims(ctx); err != nil || held["a"].Gone || held["a"].Holder.Run != "run-1" || len(done) != 0 {
				t.Fatalf("it is not held any more: held %+v, done %v, %v", held, done, err)
			}
			crashed := *f.repo
			crashed.alive = func(int, string) bool { return false }
			for _, run := range []string{"run-2", "run-3"} { // by a crash, then by a release
				heir := claimed(t, &crashed, run)
				if got, ok := heir.Decided(); !ok || got.Done != want.Done || string(got.Rest) != string(want.Rest) {
					t.Fatalf("%s finds %+v %v", run, got, ok)
				}
				if err := heir.Release(ctx); err != nil {
					t.Fatal(err)
				}
				if held, _, err := f.repo.Claims(ctx); err != nil || !held["a"].Gone {
					t.Fatalf("after its release %s holds it still: %+v, %v", run, held, err)
				}
			}
			last := claimed(t, f.repo, "run-4") // nobody's process has died this time
			if err := last.Finish(ctx, want.Done); err != nil {
				t.Fatal(err)
			}
			if again := claimed(t, f.repo, "run-5"); again.decided != nil || again.done.Run != "run-1" {
				t.Fatalf("after the end: %+v, %+v", again.decided, again.done)
			}
		})
	}
}

// A claim that is left is for its run only, whoever takes that up, until its life is over.
func TestLeftClaim(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote=%t", remote), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			f := newFixture(t)
			if remote {
				f.withRemote()
			}
			c := claimed(t, f.repo, "run-1")
			if err := c.Leave(ctx, "run-0", claimLife); err != nil {
				t.Fatal(err)
			}
			if err := c.Release(ctx); err != nil {
				t.Fatal(err)
			}
			orphaned := *f.repo
			orphaned.alive = func(int, string) bool { return false }
			if _, err := orphaned.Claim(ctx, "a", Holder{Owner: "x", Run: "run-1"}, claimLife); !errors.Is(err, ErrTaken) {
				t.Fatalf("another run takes it: %v", err)
			}
			again := claimed(t, f.repo, "run-0")
			if _, err := f.repo.Claim(ctx, "a", Holder{Owner: "x", Run: "run-0"}, claimLife); !errors.Is(err, ErrTaken) {
				t.Fatalf("a second one takes it up too: %v", err)
			}
			if err := again.Leave(ctx, "run-0", claimLife); err != nil {
				t.Fatal(err)
			}
			later := *f.repo
			later.now = func() time.Time { return time.Now().Add(claimLife + 2*clockMargin) }
			if held, _, err := later.Claims(ctx); err != nil || !held["a"].Gone {
				t.Fatalf("it is held for ever: %+v, %v", held, err)
			}
		})
	}
}

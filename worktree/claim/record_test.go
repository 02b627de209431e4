package claim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// done returns the record of a finished run.
func done(run string) Record {
	return Record{
		Run: run, Host: "here", Outcome: "succeeded", Hash: "h", Tip: "t", At: time.Unix(5, 0).UTC(), Attempts: 2, Rounds: 1,
		Spend: Spend{Input: 1, Output: 2, CostUSD: 0.5}, RetryAt: time.Unix(6, 0).UTC(), Finished: true,
	}
}

func same(a, b Record) bool { return reflect.DeepEqual(a, b) }

// A finished claim leaves its record, which passes from holder to holder.
func TestFinish(t *testing.T) {
	everywhere(t, func(s *site) {
		ctx, r := s.Context(), s.store
		first := claimed(s, r, "run-1")
		if got := first.Record(); !same(got, Record{}) {
			s.Fatalf("a fresh claim has a record: %+v", got)
		}
		want := done("run-1")
		want.Finished = false
		if err := first.Finish(ctx, want); err != nil {
			s.Fatal(err)
		}
		want.Finished = true
		if got := s.state(r); got.Holder != (Holder{}) || got.Finished == nil || !same(*got.Finished, want) {
			s.Fatalf("%+v", got)
		}
		if err := first.Renew(ctx); !errors.Is(err, ErrLost) {
			s.Fatalf("a finished claim renews: %v", err)
		}

		again := claimed(s, r, "run-2")
		if got := again.Record(); !same(got, want) || again.Holder().Generation != 2 {
			s.Fatalf("%+v, generation %d", got, again.Holder().Generation)
		}
		if err := again.Renew(ctx); err != nil {
			s.Fatal(err)
		}
		heir := claimed(s, r.crashed(), "run-3")
		if got := heir.Record(); !same(got, want) {
			s.Fatalf("the record was lost in the take-over: %+v", got)
		}
		if err := heir.Release(ctx); err != nil {
			s.Fatal(err)
		}
		if got := s.state(r); got.Finished == nil || !same(*got.Finished, want) {
			s.Fatalf("release did not keep the record: %+v", got)
		}
		if err := again.Finish(ctx, done("run-2")); !errors.Is(err, ErrLost) {
			s.Fatalf("a lost claim was finished: %v", err)
		}
		if got := claimed(s, r, "run-4").Holder().Generation; got != 4 {
			s.Fatalf("generation %d", got)
		}
	})
}

// The mark of an issue's report is set by the first holder, and stays while the issue has a record.
func TestMark(t *testing.T) {
	everywhere(t, func(s *site) {
		ctx := s.Context()
		claim := func(store *Store, run, mark string) *Claim {
			c, err := store.Claim(ctx, "k-1", Holder{Owner: "o-" + run, Run: run, Mark: mark}, ttl)
			if err != nil {
				s.Fatal(err)
			}
			return c
		}
		if err := claim(s.store, "run-1", "one").Release(ctx); err != nil { // belongs to no report
			s.Fatal(err)
		}
		c := claim(s.store, "run-2", "two")
		for _, run := range []string{"run-3", "run-4"} {
			next := claim(s.store.crashed(), run, run)
			if got := next.Record().Mark; got != "two" {
				s.Fatalf("%s has the mark %q", run, got)
			}
			c = next
		}
		if err := c.SetRecord(ctx, Record{Run: "run-4"}); err != nil {
			s.Fatal(err)
		}
		if err := c.End(ctx, Record{Run: "run-4", Attempts: 1}); err != nil {
			s.Fatal(err)
		}
		if got := claim(s.store, "run-5", "five").Record(); got.Mark != "two" || got.Attempts != 1 {
			s.Fatalf("after a recorded run: %+v", got)
		}
	})
}

// A run's record stays when the claim is taken over, until the claim is finished.
func TestRecordOutlivesItsHolder(t *testing.T) {
	everywhere(t, func(s *site) {
		ctx := s.Context()
		first := claimed(s, s.store, "run-1")
		want := Record{Run: "run-1", Outcome: "succeeded", Attempts: 1, Pending: []byte(`{"say":"two\nlines"}`)}
		if err := first.SetRecord(ctx, want); err != nil {
			s.Fatal(err)
		}
		if got := s.state(s.store); got.Gone || got.Holder.Run != "run-1" || got.Finished != nil || !same(got.Record, want) {
			s.Fatalf("it is not held any more: %+v", got)
		}
		for i, give := range []func(*Claim) error{
			func(*Claim) error { return nil }, // a crash
			func(c *Claim) error { return c.Release(ctx) },
			func(c *Claim) error { return c.Reserve(ctx, "run-1", ttl) }, // pending steps may be done by anybody
		} {
			heir := claimed(s, s.store.crashed(), "run-2")
			if got := heir.Record(); !same(got, want) {
				s.Fatalf("heir %d finds %+v", i, got)
			}
			if err := give(heir); err != nil {
				s.Fatal(err)
			}
			if got := s.state(s.store.crashed()); !got.Gone || got.Finished != nil {
				s.Fatalf("after heir %d: %+v", i, got)
			}
		}
		last := claimed(s, s.store, "run-4") // this time no process has died
		if err := last.SetRecord(ctx, Record{Run: "run-4", Attempts: 2}); err != nil {
			s.Fatal(err)
		}
		if err := last.SetRecord(ctx, want); err != nil {
			s.Fatal(err)
		}
		want.Pending = nil
		if err := last.Finish(ctx, want); err != nil {
			s.Fatal(err)
		}
		want.Finished = true
		if got := claimed(s, s.store, "run-5").Record(); !same(got, want) {
			s.Fatalf("after the end: %+v", got)
		}
		if err := last.SetRecord(ctx, want); !errors.Is(err, ErrLost) {
			s.Fatalf("a finished claim is written: %v", err)
		}
	})
}

// An unreadable claim is refused, and the others are listed.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message string
		want    error
	}{
		"a newer version": {`{"version":99,"nonce":"x","generation":1}`, ErrVersion},
		"no document":     {"hello", nil},
		"no version":      {`{"owner":"o","generation":1,"expires":"2026-01-01T00:00:00Z"}`, nil},
		"no next number":  {`{"version":1,"generation":9223372036854775807,"holder":{"owner":"o","expires":"2026-01-01T00:00:00Z"}}`, nil},
		"no next attempt": {`{"version":1,"generation":1,"record":{"run":"r","attempts":9223372036854775807}}`, nil},
		"less than none":  {`{"version":1,"generation":1,"record":{"run":"r","failures":-1}}`, nil},
		"no owner":        {`{"version":1,"generation":1,"holder":{"expires":"2026-01-01T00:00:00Z"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, false)
			commit := s.git("commit-tree", "-m", c.message, "HEAD^{tree}")
			s.git("update-ref", prefix+"bad", commit)
			s.git("update-ref", prefix+"some/body/else", commit)
			claimed(t, s.store, "run-1")
			_, err := s.store.Claim(t.Context(), "bad", Holder{Owner: "o", Run: "r"}, ttl)
			if err == nil || errors.Is(err, ErrTaken) || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), prefix+"bad") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("claim: %v", err)
			}
			states, err := s.store.List(t.Context())
			if err != nil || len(states) != 2 || states["bad"].Err == nil || states["bad"].Gone || states["k"].Holder.Run != "run-1" {
				t.Errorf("list: %+v, %v", states, err)
			}
			if at := s.git("rev-parse", prefix+"bad"); at != commit {
				t.Error("the claim was changed")
			}
			s.git("pack-refs", "--all") // like git gc
			later := s.store.later(2 * unreadableTTL)
			if states, err = later.List(t.Context()); err != nil || states["bad"].Broken != (c.want == nil) || states["bad"].Gone != (c.want == nil) || states["k"].Broken {
				t.Errorf("list after its lease: %+v, %v", states, err)
			}
			_, err = later.Claim(t.Context(), "bad", Holder{Owner: "o", Run: "r"}, ttl)
			if (err != nil) != (c.want != nil) {
				t.Errorf("claim after its lease: %v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"version":1,"nonce":"x","generation":1,"holder":{"owner":"o","expires":"2026-01-01T00:00:00Z"}}` + "\nmore")
	f.Add(`{"version":1,"generation":-1,"record":{"run":"r","finished":true}}`)
	f.Add(`{"version":2,"generation":1}`)
	f.Fuzz(func(t *testing.T, message string) {
		d, err := decode(message)
		if err != nil {
			return
		}
		if d.Version != version || d.Generation < 1 || d.Holder != nil && (d.Holder.Owner == "" || d.Holder.Generation != d.Generation) {
			t.Errorf("accepted %+v", d)
		}
		text, err := d.encode()
		if err != nil || strings.Count(text, "\n") != 2 {
			t.Fatalf("%q, %v", text, err)
		}
		if again, err := decode(text); err != nil || again.Generation != d.Generation || (again.Holder == nil) != (d.Holder == nil) {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// A ref that is not a claim does not hide the others.
func TestBadRefs(t *testing.T) {
	everywhere(t, func(s *site) {
		away, store := s.dir, s.store // the repository with the claims
		if _, remote := store.refs.(remoteRefs); remote {
			away, store = s.bare(), s.clone("other").store // the commits have to be fetched
		}
		claimed(s, store, "r1")
		bad := map[string]string{
			"file": s.sh("sh", "-c", "echo x | git -C '"+away+"' hash-object -w --stdin"),
			"no-tree": s.sh("sh", "-c", "printf 'tree %040d\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nx\\n' 1 |"+
				"git -C '"+away+"' hash-object -t commit -w --stdin"),
		}
		for key, object := range bad {
			s.sh("git", "-C", away, "update-ref", prefix+key, object)
		}
		if away == s.dir { // a remote does not show such a ref
			missing := strings.Repeat("1", 40)
			path := filepath.Join(s.dir, ".git", filepath.FromSlash(prefix), "missing")
			if err := os.WriteFile(path, []byte(missing+"\n"), 0o600); err != nil {
				s.Fatal(err)
			}
			bad["missing"] = missing
		}
		states, err := s.store.List(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if got := states["k"]; got.Err != nil || got.Holder.Run != "r1" {
			s.Errorf("%+v", got)
		}
		for key := range bad {
			if states[key].Err == nil {
				s.Errorf("%s: %+v", key, states[key])
			}
		}
		for key := range bad {
			if _, err := s.store.Claim(s.Context(), key, Holder{Owner: "me", Run: "r2"}, ttl); err == nil || errors.Is(err, ErrTaken) {
				s.Errorf("claim of %s: %v", key, err)
			}
		}
		if later := s.store.later(2 * unreadableTTL); away == s.dir { // nobody can hold it any more
			states, err := later.List(s.Context())
			for key := range bad {
				if got := states[key]; err != nil || got.Err != nil || !got.Gone {
					s.Errorf("%s after its lease: %+v, %v", key, got, err)
				}
				if _, err := later.Claim(s.Context(), key, Holder{Owner: "me", Run: "r2"}, ttl); err != nil {
					s.Errorf("claim of %s after its lease: %v", key, err)
				}
			}
		}
		if _, err := s.store.Claim(s.Context(), "other", Holder{Owner: "me", Run: "r2"}, ttl); err != nil {
			s.Error(err)
		}
	})
}

// An unreadable claim can be dropped on request, also on a remote. A readable one, and one of a newer version, stays.
func TestDrop(t *testing.T) {
	everywhere(t, func(s *site) {
		for key, message := range map[string]string{"bad": "no claim", "newer": `{"version":99,"generation":1}`} {
			ref := prefix + key
			s.git("update-ref", ref, s.git("commit-tree", "-m", message, "HEAD^{tree}"))
			if len(s.git("remote")) > 0 {
				s.git("push", "-q", "origin", ref+":"+ref)
			}
		}
		claimed(t, s.store, "run-1")
		for key, want := range map[string]error{"bad": nil, "newer": ErrVersion, "k": nil, "none": nil} {
			if err := s.store.Drop(s.Context(), key); !errors.Is(err, want) {
				s.Errorf("%s: %v", key, err)
			}
		}
		states, err := s.store.List(s.Context())
		if err != nil || len(states) != 2 || states["newer"].Err == nil || states["k"].Holder.Run != "run-1" {
			s.Errorf("%+v, %v", states, err)
		}
	})
}

// A claim that a remote does not send may belong to somebody at work.
func TestDropOfWhatIsNotSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.git("push", "-q", "origin", s.git("hash-object", "-w", "--stdin")+":"+prefix+"blob")
	if err := s.store.Drop(t.Context(), "blob"); err == nil || !strings.Contains(err.Error(), "git push origin :"+prefix+"blob") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(s.git("ls-remote", "origin"), prefix+"blob") {
		t.Error("it is gone")
	}
}

// The first line is for people. The document is found below it, and also without it, as in older claims.
func TestSubject(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, d := range map[string]document{
		"Run r holds this claim until 2030-01-02 03:04:05 UTC, unless it renews it": {Holder: &Holder{Owner: "o", Run: "r", PID: 1, Expires: at}},
		"Run r is deferred, and continues later":                                    {Holder: &Holder{Owner: "o", Run: "r", Expires: at}},
		"Nobody holds this claim":                                                   {Record: Record{Failures: 1}},
		"Run r has ended: gate-failed":                                              {Record: Record{Run: "r", Outcome: "gate-failed"}},
		"Run r has finished the issue: good?{}":                                     {Record: Record{Run: "r", Outcome: "good\n{}", Finished: true}},
	} {
		d.Generation = 7
		text, err := d.encode()
		if err != nil {
			t.Fatal(err)
		}
		subject, old, _ := strings.Cut(text, "\n\n")
		if subject != want {
			t.Errorf("%q, want %q", subject, want)
		}
		for _, text := range []string{text, old} {
			if got, err := decode(text); err != nil || got.Generation != 7 || got.Record.Outcome != d.Record.Outcome {
				t.Errorf("%q: %+v, %v", text, got, err)
			}
		}
	}
}

// A record that could not be written in time because a renewal hangs is written by a later renewal.
func TestRecordWhileRenewing(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	c := claimed(t, s.store, "r1")
	if err := c.lockOp(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if err := c.SetRecord(over, Record{Attempts: 3}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.unlockOp()
	if err := c.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.state(s.store).Record.Attempts; got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
}

// A claim made huge on the remote, where it takes hardly any space, is not read.
func TestHugeClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	text := `{"version":1,"nonce":"x","generation":1,"record":{"run":"` + strings.Repeat("x", maxClaimBytes) + `"}}`
	commit, err := git.Store{Dir: filepath.Join(s.bare(), "objects")}.Message(text, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.sh("git", "-C", s.bare(), "update-ref", prefix+"huge", commit)
	for range 2 { // the second time it is stored here
		states, err := s.store.List(t.Context())
		if state := states["huge"]; err != nil || state.Err == nil || !strings.Contains(state.Err.Error(), "it is too large for a claim") || len(state.Record.Run) > 0 {
			t.Errorf("%d bytes, %v, %v", len(state.Record.Run), state.Err, err)
		}
		if _, err := s.store.Claim(t.Context(), "huge", Holder{Owner: "o", Run: "r"}, time.Minute); err == nil {
			t.Error("it was taken")
		}
	}
}

// A claim that is too large to read does not displace another.
func TestLargeClaimBesideHugeOnes(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	for key, size := range map[string]int{"huge": maxLargeBytes, "huger": maxLargeBytes + 1, "hugest": maxLargeBytes + 2, "large": largeBytes} {
		text := `{"version":1,"nonce":"x","generation":1,"record":{"run":"` + strings.Repeat("x", size) + `"}}`
		commit, err := git.Store{Dir: filepath.Join(s.bare(), "objects")}.Message(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", prefix+key, commit)
	}
	states, err := s.store.List(t.Context())
	if err != nil || len(states) != 4 || len(states["large"].Record.Run) != largeBytes {
		t.Errorf("%d claims, %v, %v", len(states), states["large"].Err, err)
	}
}

// Many large claims are not read either, and displace no other.
func TestManyLargeClaims(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	put := func(key, run string) {
		text := `{"version":1,"nonce":"` + key + `","generation":1,"record":{"run":"` + run + `"}}`
		commit, err := git.Store{Dir: filepath.Join(s.bare(), "objects")}.Message(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", prefix+key, commit)
	}
	const each = maxClaimBytes / 2
	for n := range maxLargeBytes/each + 3 {
		put("large"+strconv.Itoa(n), strings.Repeat("x", each))
		put("small"+strconv.Itoa(n), "r")
	}
	states, err := s.store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for key, state := range states {
		if strings.HasPrefix(key, "small") && state.Record.Run != "r" {
			t.Errorf("%s: %v", key, state.Err)
		}
		read += len(state.Record.Run)
	}
	if len(states) != 2*(maxLargeBytes/each+3) || read > maxLargeBytes {
		t.Errorf("%d claims, %d bytes", len(states), read)
	}
}

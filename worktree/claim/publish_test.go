package claim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

const branch = git.Heads + "ralph/k"

// on returns the commit of a ref on the remote, or "".
func (s *site) on(ref string) string {
	s.Helper()
	return s.sh("git", "-C", s.bare(), "for-each-ref", "--format=%(objectname)", ref)
}

// made makes a commit and returns its name.
func (s *site) made(what string) string {
	s.Helper()
	s.git("commit", "-q", "--allow-empty", "-m", what)
	return s.git("rev-parse", "HEAD")
}

// Branch and record change together, on remotes with and without atomic pushes.
func TestPublish(t *testing.T) {
	t.Parallel()
	for name, atomic := range map[string]string{"together": "true", "one after the other": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, true)
			s.sh("git", "-C", s.bare(), "config", "receive.advertiseAtomic", atomic)
			c := claimed(t, s.store, "r1")
			if err := c.SetRecord(t.Context(), Record{Run: "r1", Mark: "m"}); err != nil {
				t.Fatal(err)
			}
			mark := c.Record().Mark
			old := ""
			for _, what := range []string{"first", "second"} {
				tip := s.made(what)
				for range 2 { // the second time the branch is already there
					if err := c.Publish(t.Context(), Record{Run: "r1", Outcome: what}, git.Edit{Ref: branch, Old: old, New: tip}); err != nil {
						t.Fatal(err)
					}
					if got := s.state(s.store); s.on(branch) != tip || got.Record.Outcome != what || got.Record.Mark != mark || got.Gone || c.Record().Outcome != what {
						t.Errorf("%s: the branch is at %s, want %s; %+v", what, s.on(branch), tip, got)
					}
				}
				old = tip
			}
			if err := c.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The claim ends together with the move of the branch.
func TestPublishAndFinish(t *testing.T) {
	t.Parallel()
	for name, atomic := range map[string]string{"together": "true", "one after the other": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, true)
			s.sh("git", "-C", s.bare(), "config", "receive.advertiseAtomic", atomic)
			c := claimed(t, s.store, "r1")
			tip, r := s.made("work"), Record{Run: "r1", Outcome: "succeeded"}
			if c.Released() {
				t.Error("it is released before the push")
			}
			if err := c.PublishAndFinish(t.Context(), r, git.Edit{Ref: branch, New: tip}); err != nil {
				t.Fatal(err)
			}
			if got := s.state(s.store); s.on(branch) != tip || got.Holder.Run != "" || !got.Record.Finished || !c.Released() {
				t.Errorf("the branch is at %s, want %s; %+v", s.on(branch), tip, got)
			}
			if err := c.Finish(t.Context(), r); err != nil {
				t.Error(err)
			}
			if err := c.Renew(t.Context()); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		})
	}
}

// A finished record without its branch would keep everybody from working the issue.
func TestPublishAndFinishRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.script(filepath.Join(s.bare(), "hooks", "update"), `case "$1" in refs/heads/*) exit 1;; esac`)
	for _, atomic := range []string{"true", "false"} {
		s.sh("git", "-C", s.bare(), "config", "receive.advertiseAtomic", atomic)
		c := claimed(t, s.store, "r"+atomic)
		if err := c.PublishAndFinish(t.Context(), Record{Run: "r"}, git.Edit{Ref: branch, New: s.made("work")}); !errors.Is(err, git.ErrDeclined) {
			t.Error(err)
		}
		if got := s.state(s.store); got.Holder.Run != "r"+atomic || got.Record.Finished || c.Record().Finished || c.Released() {
			t.Errorf("atomic %s: %+v", atomic, got)
		}
		if err := c.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A failure that prevents one change prevents the other.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		refuse  func(s *site)
		why     error
		not     error
		survive bool // the claim is still held
	}{
		{"a hook declines the branch", func(s *site) {
			s.script(filepath.Join(s.bare(), "hooks", "update"), `case "$1" in refs/heads/*) exit 1;; esac`)
		}, git.ErrDeclined, git.ErrRemote, true},
		{"somebody has moved the branch", func(s *site) {
			s.git("push", "-q", "origin", "main~1:"+branch)
		}, git.ErrMoved, git.ErrRemote, true},
		{"a branch stands in the way of its name", func(s *site) {
			s.git("push", "-q", "origin", "main:"+branch+"/sub")
		}, git.ErrDeclined, git.ErrRemote, true},
		{"another machine has the claim", func(s *site) {
			other := s.clone("other").store.later(2 * ttl)
			claimed(s, other, "r2")
		}, ErrLost, git.ErrMoved, false},
		{"another machine has the claim, and has moved the branch", func(s *site) {
			claimed(s, s.clone("other").store.later(2*ttl), "r2")
			s.git("push", "-q", "origin", "main~1:"+branch)
		}, ErrLost, git.ErrMoved, false},
		{"another machine has the claim, and the remote cannot move several refs in one step", func(s *site) {
			claimed(s, s.clone("other").store.later(2*ttl), "r2")
			s.sh("git", "-C", s.bare(), "config", "receive.advertiseAtomic", "false")
		}, ErrLost, git.ErrMoved, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, true)
			c := claimed(t, s.store, "r1")
			tip := s.made("work")
			test.refuse(s)
			before, claim := s.on(branch), s.on(prefix+"k")
			err := c.Publish(t.Context(), Record{Run: "r1", Outcome: "succeeded"}, git.Edit{Ref: branch, New: tip})
			if !errors.Is(err, test.why) || errors.Is(err, test.not) {
				t.Errorf("%v", err)
			}
			if s.on(branch) != before || s.on(prefix+"k") != claim {
				t.Errorf("the branch has moved from %q to %q, the claim from %s to %s", before, s.on(branch), claim, s.on(prefix+"k"))
			}
			if err := c.Renew(t.Context()); (err == nil) != test.survive {
				t.Errorf("renew: %v", err)
			}
			if got := s.state(s.store).Record; got.Outcome != "" {
				t.Errorf("the record of a publication that failed is kept: %+v", got)
			}
		})
	}
}

// A slow push does not lose the claim: the commits are sent first, while renewals continue.
func TestPublishSlowly(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	began, tip := filepath.Join(t.TempDir(), "began"), s.made("work")
	// The first push that contains the claim blocks forever.
	s.script(filepath.Join(s.bare(), "hooks", "pre-receive"), `if grep -q ralph/claims && ! test -e '`+began+`' && test -e '`+began+`.now'; then : >'`+began+`'; read forever <'`+began+`.never'; fi`)
	s.sh("mkfifo", began+".never") // nobody writes to it
	c, err := s.store.Claim(t.Context(), "k", Holder{Owner: "r1", Run: "r1"}, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(began+".now", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), Record{Run: "r1", Outcome: "succeeded"}, git.Edit{Ref: branch, New: tip}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(began); err != nil || s.on(branch) != tip || s.state(s.store).Record.Outcome != "succeeded" {
		t.Errorf("%v; the branch is at %q; %+v", err, s.on(branch), s.state(s.store))
	}
}

// deaf loses the answer to the first publication.
type deaf struct {
	refs
	lost bool
}

func (d *deaf) swap(ctx context.Context, key, old, new string, also ...git.Edit) error {
	err := d.refs.swap(ctx, key, old, new, also...)
	if err == nil && len(also) > 0 && !d.lost {
		d.lost = true
		return git.ErrUnavailable
	}
	return err
}

// A change that arrived although its answer was lost stays, whatever is done with the claim next.
func TestPublishWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.store.refs = &deaf{refs: s.store.refs}
	c := claimed(t, s.store, "r1")
	tip := s.made("work")
	publish := func() error {
		return c.Publish(t.Context(), Record{Passed: &PushedCommits{Run: "r1", Tip: tip}}, git.Edit{Ref: branch, New: tip})
	}
	if err := publish(); !errors.Is(err, git.ErrUnavailable) {
		t.Fatal(err)
	}
	for _, then := range []func() error{func() error { return c.Renew(t.Context()) }, publish, func() error { return c.Release(t.Context()) }} {
		if err := then(); err != nil {
			t.Error(err)
		}
		if got := s.state(s.store).Record.Passed; s.on(branch) != tip || got == nil || got.Tip != tip {
			t.Errorf("the branch is at %s, want %s; the record says %+v", s.on(branch), tip, got)
		}
	}
}

// A renewal waits for a hanging publication only as long as its context lasts.
func TestRenewWhilePublishing(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	c := claimed(t, s.store, "r1")
	if err := c.lockOp(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if err := c.Renew(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.unlockOp()
	if err := c.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// If the claim is not on a remote, nothing can be published with it.
func TestPublishNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	c := claimed(t, s.store, "r1")
	if err := c.Publish(t.Context(), Record{Run: "r1"}, git.Edit{Ref: branch, New: s.made("work")}); !errors.Is(err, errNoRemote) {
		t.Error(err)
	}
}

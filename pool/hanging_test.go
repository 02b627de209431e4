package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A remote that hangs while the commits are published does not keep ralph from ending, and the next sweep publishes them.
func TestStopWhileTheRemoteHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setting, program, hang string }{
		"fetch":                 {"uploadpack", "upload-pack", `exec sleep 1000`},
		"push":                  {"receivepack", "receive-pack", `exec sleep 1000`},
		"push that has arrived": {"receivepack", "receive-pack", `git-receive-pack "$@" | { cat; exec sleep 1000; }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.withRemote()
			if name == "fetch" {
				f.withProof()
			}
			f.Config.Run.StopGrace = time.Second
			dir := t.TempDir()
			hangs, hung, script := filepath.Join(dir, "hangs"), filepath.Join(dir, "hung"), filepath.Join(dir, c.program)
			text := "#!/bin/sh\nif test -e '" + hangs + "'; then echo x >>'" + hung + "'; " + c.hang + "; else\nexec git-" + c.program + " \"$@\"; fi\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			f.git(f.repo, "config", "remote.origin."+c.setting, script)
			f.issue("a")
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			f.onStage(journal.StagePublish, func(journal.Record) {
				if err := os.WriteFile(hangs, nil, 0o600); err != nil {
					t.Error(err)
				}
				stop(nil)
			})
			s := f.sweep(ctx)
			f.onStage(journal.StagePublish, nil)
			if r := f.only(s); r.Stage != journal.StagePublish || !r.Ended.IsZero() || r.Facts.Cut != "" || !s.Interrupted {
				t.Errorf("%+v", s)
			}
			if _, err := os.Stat(hung); err != nil {
				t.Error(err)
			}
			if err := os.Remove(hangs); err != nil {
				t.Fatal(err)
			}
			f.sweep(t.Context())
			if runs := f.runs("a"); len(runs) != 1 || runs[0].Verdict.Outcome != journal.Succeeded || runs[0].Published == "" {
				t.Errorf("%+v", runs)
			}
			f.clean()
		})
	}
}

package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
)

// signing gives the user of the fixture an ssh key that git signs with.
func (f *fixture) signing() {
	f.t.Helper()
	key := filepath.Join(f.t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		f.t.Fatalf("ssh-keygen: %v %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err == nil {
		err = os.WriteFile(key+".allowed", append([]byte("ada@example.com "), public...), 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.git(f.repo, "config", "user.signingKey", key)
	f.git(f.repo, "config", "gpg.ssh.allowedSignersFile", key+".allowed")
	f.Config.Run.Identity.Sign = identity.SSH
}

// The signed commits are those that the gate has passed and that are published, even if the base has moved twice meanwhile.
func TestSignedCommits(t *testing.T) {
	t.Parallel()
	for name, publish := range map[string]journal.Publish{"merge": journal.PublishMerge, "branch": journal.PublishBranch, "none": journal.PublishNone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.signing()
			ran := filepath.Join(t.TempDir(), "ran")
			if publish == journal.PublishBranch {
				f.withRemote()
			}
			f.Config.Run.Publish, f.Config.Run.Gate = publish, lines("git log -1 --format=%H >> "+ran)
			moves := []journal.Stage{journal.StagePublish, journal.StageVerify}
			f.store.onStage = func(r journal.Record) {
				if last := len(moves) - 1; publish == journal.PublishMerge && last >= 0 && r.Stage == moves[last] {
					moves = moves[:last]
					f.write("by-a-person", string(r.Stage))
					f.commit("By a person")
				}
			}
			r := f.one()
			if r.Verdict.Outcome != journal.Succeeded || publish == journal.PublishMerge && len(moves) > 0 {
				t.Fatalf("%+v", r.Verdict)
			}
			at := map[journal.Publish]string{journal.PublishMerge: "main", journal.PublishBranch: "origin/ralph/a", journal.PublishNone: "ralph/a"}[publish]
			if tip := f.git(f.repo, "rev-parse", at); tip != r.Tip || r.Verified.Tip != r.Tip {
				t.Errorf("published %s, verified %s, reported %s", tip, r.Verified.Tip, r.Tip)
			}
			f.git(f.repo, "verify-commit", at)
			if got, err := os.ReadFile(ran); !strings.HasSuffix(string(got), r.Tip+"\n") || err != nil {
				t.Errorf("the gate ran on %q, published was %s, %v", got, r.Tip, err)
			}
			f.clean()
		})
	}
}

// accountTracker is a tracker on which ralph has its own account.
type accountTracker struct{ tracker.Tracker }

func (a accountTracker) Unwrap() tracker.Tracker { return a.Tracker }

func (accountTracker) Committer(context.Context) (name, email string, err error) {
	return "bot[bot]", "7+bot[bot]@users.noreply.example.com", nil
}

// Ralph's account on a forge is the author of commits, unless another author is configured.
func TestCommitsOfAnAccount(t *testing.T) {
	t.Parallel()
	for author, want := range map[identity.Ident]string{
		{}:                                  "bot[bot] <7+bot[bot]@users.noreply.example.com>",
		{Name: "Eve", Email: "eve@example"}: "Eve <eve@example>",
	} {
		// The agent's environment sets it, and a commit in another name is rewritten.
		for _, agent := range []string{commits, strings.Replace(commits, "git commit", "git -c author.name=X commit --author='X <x@y>'", 1)} {
			f := newFixture(t, agent)
			f.issue("a")
			f.Config.Run.Tracker, f.Config.Run.Identity = accountTracker{f.Config.Run.Tracker}, worktree.Identity{Author: author, SignOff: true}
			if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
				t.Fatalf("%+v", r.Verdict)
			}
			if got := f.git(f.repo, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%(trailers:key=Signed-off-by,valueonly)", "ralph/a"); got != want+"|"+want+"|"+want {
				t.Errorf("the commit is of %s", got)
			}
			f.clean()
		}
	}
}

// Without a name to commit with, or a key to sign with, no agent starts.
func TestIdentityIsMissing(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	f := newFixture(t, "echo x >> "+ran+"; "+commits)
	f.issue("a")
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	f.Config.Run.Repo, f.Config.Run.Sandboxes = f.open(""), sandboxes.NewNone(sandboxes.NoneConfig{})
	eve := identity.Ident{Name: "Eve", Email: "eve@example"}
	for _, c := range []struct {
		who  worktree.Identity
		want error
	}{
		{want: worktree.ErrNoIdentity},
		{who: worktree.Identity{Author: eve, Sign: identity.SSH}, want: worktree.ErrSign},
	} {
		f.Config.Run.Identity = c.who
		_, err := f.pool().Sweep(t.Context())
		_, workErr := f.pool().Work(t.Context(), "a")
		j := job.Job{Run: f.Config.Run, Strategy: job.StrategyMerge}
		j.Run.Prompt.Inline = "do it"
		jobErr := c.want // a job may need no commit
		if c.who.Sign != "" {
			_, jobErr = j.Do(t.Context())
		}
		for _, err := range []error{err, workErr, jobErr} {
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v: %v", c.who, err)
			}
		}
		if _, err := os.Stat(ran); err == nil || len(f.runs("a")) > 0 {
			t.Errorf("%+v: an agent was started", c.who)
		}
	}
	f.Config.Run.Identity = worktree.Identity{Author: eve}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("with a name: %+v", r.Verdict)
	}
	f.clean()
}

// wrapped is a provider that only shows what it decorates.
type wrapped struct{ sandboxes.Provider }

func (w wrapped) Unwrap() sandboxes.Provider { return w.Provider }

// namingProvider is a provider that adds to the environment of None.
type namingProvider struct {
	*sandboxes.None
	env []string
}

func (n namingProvider) Environ() []string { return append(n.None.Environ(), n.env...) }

func (n namingProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	spec.Env = append(slices.Clip(spec.Env), n.env...)
	return n.None.Open(ctx, spec)
}

// If the sandbox's environment hides the name that git has on the host, no agent starts either.
func TestIdentityIsHidden(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	f := newFixture(t, "echo x >> "+ran+"; "+commits)
	f.issue("a")
	bare := []string{"PATH=" + os.Getenv("PATH")}
	none := sandboxes.NewNone(sandboxes.NoneConfig{Env: bare})
	for _, f.Config.Run.Sandboxes = range []sandboxes.Provider{none, wrapped{none}, namingProvider{None: none}} {
		if _, err := f.pool().Sweep(t.Context()); !errors.Is(err, worktree.ErrNoIdentity) || !strings.Contains(err.Error(), "in the sandbox") {
			t.Errorf("%T: %v", f.Config.Run.Sandboxes, err)
		}
		if _, err := os.Stat(ran); err == nil || len(f.runs("a")) > 0 {
			t.Fatalf("%T: an agent was started", f.Config.Run.Sandboxes)
		}
	}
	f.Config.Run.Sandboxes = none
	name := []string{"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@b"}
	for where, set := range map[string]func(){
		"the provider's":      func() { f.Config.Run.Sandboxes = sandboxes.NewNone(sandboxes.NoneConfig{Env: append(bare, name...)}) },
		"the decorator's":     func() { f.Config.Run.Sandboxes = wrapped{namingProvider{none, name}} },
		"the configuration's": func() { f.Config.Run.Env = name },
		"the agent's":         func() { f.Config.Run.Options.Env = name },
		"the author":          func() { f.Config.Run.Identity.Author = identity.Ident{Name: "Ada", Email: "a@b"} },
	} {
		key := strings.ReplaceAll(strings.Fields(where)[1], "'", "")
		f.issue(key)
		was := f.Config
		set()
		if r := f.one(key); r.Verdict.Outcome != journal.Succeeded {
			t.Errorf("with a name of %s: %+v", where, r.Verdict)
		}
		f.Config = was
	}
	f.clean()
}

// namedAgent is an agent that adds its own name to commits.
type namedAgent struct{ agents.Command }

func (namedAgent) Describe() agents.Description {
	return agents.Description{Mail: "agent@example.invalid"}
}

// A report names the people that an agent's commits name, and nobody else.
func TestClaimedPeople(t *testing.T) {
	t.Parallel()
	const warning = "the commits name other people, who may not know it: "
	eve := identity.Ident{Name: "Eve", Email: "e@example.invalid"}
	for name, c := range map[string]struct{ script, want string }{
		"nobody":          {commits, ""},
		"the agent":       {trailers("Co-authored-by: Agent 4.5 <Agent@example.invalid>"), ""},
		"a co-author":     {trailers("Co-authored-by: Eve <e@example.invalid>"), ""},
		"the user":        {trailers("CO-AUTHORED-BY: Ada <ada@example.com>"), ""},
		"another":         {trailers("Co-Authored-By: Boss <b@example.invalid>"), "Co-Authored-By: Boss <b@example.invalid>"},
		"another's agent": {trailers("Co-authored-by: Agent <agent@example.invalid> <b@example.invalid>"), "Co-authored-by: Agent <agent@example.invalid> <b@example.invalid>"},
		"many roles": {
			strings.Replace(trailers("Reviewed-by: Mallory <m@example.invalid>\nSigned-off-by: Boss <b@example.invalid>\nPart-of: it"),
				"git commit", "git commit --author='Boss <b@example.invalid>'", 1),
			"author Boss <b@example.invalid>, Reviewed-by: Mallory <m@example.invalid>, Signed-off-by: Boss <b@example.invalid>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.script)
			f.issue("a")
			f.Config.Run.Agent, f.Config.Run.Identity.CoAuthors = namedAgent{}, []identity.Ident{eve}
			f.Config.Run.Publish = journal.PublishMerge
			r := f.one()
			want := ""
			if c.want != "" {
				want = warning + c.want
			}
			if got := fmt.Sprint(r.Warnings); r.Verdict.Outcome != journal.Succeeded || got != "["+want+"]" {
				t.Errorf("%+v, warned of %q, want %q", r.Verdict, got, want)
			}
			if text := f.text("a"); want != "" && strings.Count(text, "\nWarning: `the commits name other people") != 1 {
				t.Errorf("reported: %s", text)
			}
			f.clean()
		})
	}
}

// trailers returns the agent commits with lines at the end of its message.
func trailers(lines string) string {
	return strings.TrimSuffix(commits, `"`+done) + "\n\n" + lines + `"` + done
}

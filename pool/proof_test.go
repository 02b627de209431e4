package pool_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/sandboxes"
)

// proofKey returns a new key.
func (f *fixture) proofKey() *proof.Key {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	key, err := proof.ReadKey(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

// withProof has a key sign successful commits.
func (f *fixture) withProof() *proof.Key {
	key := f.proofKey()
	f.Config.Run.Proof = &proof.Prover{Repo: f.Config.Run.Repo, Key: key, Version: "v1"}
	return key
}

// proofs returns the lines of the commit's note in a repository.
func (f *fixture) proofs(dir, commit string) []string {
	f.t.Helper()
	if f.git(dir, "for-each-ref", "refs/notes/ralph") == "" || !strings.Contains(f.git(dir, "notes", "--ref=ralph", "list"), commit) {
		return nil
	}
	return strings.Split(f.git(dir, "notes", "--ref=ralph", "show", commit), "\n")
}

// proved returns the statement about the run's tip in the remote or the repository.
func (f *fixture) proved(dir string, r journal.Record, key *proof.Key) proof.Statement {
	f.t.Helper()
	lines := f.proofs(dir, r.Tip)
	found, ignored := proof.Find(f.t.Context(), r.Tip, lines, []proof.PublicKey{key.Public()})
	if found == nil || len(lines) != 1 || r.Proof.Tip != r.Tip || r.Proof.Key != key.String() {
		f.t.Fatalf("proof %+v; lines %q; ignored %q", r.Proof, lines, ignored)
	}
	return found.Statement
}

func TestProofOfWhatIsPushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	key := f.withProof()
	f.issue("a")
	f.Config.Run.Gate = []loop.Command{{Line: "echo seen; test -f README"}}
	r := f.one()
	s := f.proved(bare, r, key)
	p := s.Predicate
	if s.Tree() != f.git(bare, "rev-parse", "ralph/a^{tree}") || p.Base.Commit != f.git(bare, "rev-parse", "main") || p.Issue.Hash != r.Hash ||
		p.Branch != "ralph/a" || p.Run != r.ID || p.Sandbox.Name != "none" || p.Sandbox.Weakness == "" || len(p.Agents) != 1 || p.Agents[0].Name != r.Agent || len(p.Agents[0].Prompts[0]) != 64 {
		t.Errorf("%+v", s)
	}
	if g := p.Gate; !g.Checkout || len(g.Lines) != 1 || g.Lines[0].Log == nil || g.Lines[0].Command != f.Config.Run.Gate[0].Line {
		t.Fatalf("gate %+v", g)
	}
	log := filepath.Join(r.Dir, p.Gate.Lines[0].Log.Name)
	if out, err := exec.Command("sha256sum", log).Output(); err != nil || !strings.HasPrefix(string(out), p.Gate.Lines[0].Log.SHA256) {
		t.Errorf("%s: %s, %v, want %s", log, out, err, p.Gate.Lines[0].Log.SHA256)
	}
	if text := f.text("a"); !strings.Contains(text, "check it with `check ralph/a`") {
		t.Errorf("the report:\n%s", text)
	}
	f.clean()
}

// TestProofStaysHere: without a remote, and if publishing moves only branches of this repository, the proof stays here.
func TestProofStaysHere(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishNone, journal.PublishBranch, journal.PublishMerge} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			key := f.withProof()
			f.Config.Run.Publish = publish
			f.issue("a")
			f.proved(f.repo, f.one(), key)
		})
	}
}

// TestNoProofOfAFailure: a draft has no proof.
func TestNoProofOfAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	f.withProof()
	f.issue("a")
	f.Config.Run.Gate = []loop.Command{{Line: "false"}}
	r := f.one()
	if r.Verdict.Outcome != journal.GateFailed || r.Proof.Tip != "" || f.git(bare, "for-each-ref", "refs/notes") != "" {
		t.Errorf("%+v", r)
	}
}

// TestProofThatIsDeclined: a run still ends if the remote accepts branches but no notes.
func TestProofThatIsDeclined(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	key := f.withProof()
	f.issue("a")
	hook := "#!/bin/sh\ncase $1 in refs/notes/*) echo no notes >&2; exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks", "update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	r := f.one()
	f.proved(f.repo, r, key)
	if r.Verdict.Outcome != journal.Succeeded || f.git(bare, "rev-parse", "ralph/a") != r.Tip ||
		!slices.ContainsFunc(r.Warnings, func(w sandboxes.Notice) bool {
			return strings.Contains(w.Text, "proof of "+r.Tip[:12]+": push to origin: declined")
		}) {
		t.Errorf("%+v", r)
	}
}

// TestProofsOfClones: clones that publish at the same time keep each other's proofs.
func TestProofsOfClones(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	key := f.withProof()
	f.issue("a")
	clones := []*fixture{f, f.clone(bare, commits, "b"), f.clone(bare, commits, "c")}
	runs := make([]journal.Record, len(clones))
	var wait sync.WaitGroup
	for i, c := range clones {
		c.Config.Run.Proof = &proof.Prover{Repo: c.Config.Run.Repo, Key: key, Version: "v1"}
		wait.Go(func() {
			if s, err := c.pool().Sweep(t.Context()); err != nil || len(s.Runs) != 1 {
				t.Errorf("%+v, %v", s, err)
			} else {
				runs[i] = s.Runs[0]
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, r := range runs {
		f.proved(bare, r, key)
	}
}

// TestProofThatCannotBeMade: if the note cannot be written here or on the remote, the branch is still published, and no report
// mentions a proof.
func TestProofThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"here", "there"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			bare := f.withRemote()
			f.withProof()
			f.issue("a")
			dir := map[string]string{"here": f.repo, "there": bare}[where]
			f.git(dir, "update-ref", "refs/notes/ralph/in-the-way", "main")
			r := f.one()
			if r.Verdict.Outcome != journal.Succeeded || f.git(bare, "rev-parse", "ralph/a") != r.Tip ||
				!slices.ContainsFunc(r.Warnings, func(w sandboxes.Notice) bool { return strings.Contains(w.Text, "proof of "+r.Tip[:12]) }) {
				t.Errorf("%+v", r)
			}
			if made := len(f.proofs(f.repo, r.Tip)) > 0; made != (where == "there") || made != (r.Proof.Tip != "") || made != strings.Contains(f.text("a"), "signed by") {
				t.Errorf("a proof is there: %v; recorded: %+v; the report:\n%s", made, r.Proof, f.text("a"))
			}
		})
	}
}

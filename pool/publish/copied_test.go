package publish_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree"
)

// Values that host commands make anew for each run do not fill the memory of a service. Git is not asked about known values: the
// policy here has no repository.
func TestMadeSecretsAreBounded(t *testing.T) {
	t.Parallel()
	p := publish.Policy{Secrets: redact.New("a-lasting-value")}
	for n := range 1000 {
		p.AddMade(t.Context(), []string{fmt.Sprintf("made-for-run-%d", n)}, "")
	}
	p.AddMade(t.Context(), []string{"made-for-run-999", "a-lasting-value"}, "a-commit")
	if p.Secrets.In("made-for-run-0") || !p.Secrets.In("made-for-run-999") || !p.Secrets.In("a-lasting-value") {
		t.Error("the first value is kept, or others are not")
	}
}

// Values that the repository has are searched for once in a commit: the second policy has no repository.
func TestValuesOfTheRepositoryAreSearchedForOnce(t *testing.T) {
	t.Parallel()
	project := newProject(t)
	project.sh(project.dir, `echo password: for-everybody >config; git add config; git commit -qm config`)
	repo, err := worktree.Open(t.Context(), project.dir, worktree.Options{StateDir: project.state})
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"for-everybody", "for-me-alone"}
	base, secrets := project.sh(project.dir, "git rev-parse HEAD"), redact.New()
	publish.Policy{Repo: repo, Secrets: secrets}.AddMade(t.Context(), slices.Clone(values), base)
	publish.Policy{Secrets: secrets}.AddMade(t.Context(), slices.Clone(values), base)
	if secrets.In("for-everybody") || !secrets.In("for-me-alone") {
		t.Error("the public value is kept, or the secret one is not")
	}
	project.sh(project.dir, `git rm -q config; git commit -qm removed`)
	publish.Policy{Repo: repo, Secrets: secrets}.AddMade(t.Context(), values, project.sh(project.dir, "git rev-parse HEAD"))
	if !secrets.In("for-everybody") {
		t.Error("a value that another commit does not have is not kept")
	}
}

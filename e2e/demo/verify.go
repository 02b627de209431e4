package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

// verify compares ralph's results with the expected ones, without asking ralph. It returns every difference.
func (p place) verify(ctx context.Context) error {
	var errs []error
	for _, key := range labelled() {
		if err := p.verifyDone(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	if err := p.verifyUntouched(ctx); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", humanIssue, err))
	}
	if err := p.verifyStarts(); err != nil {
		errs = append(errs, err)
	}
	main, err := p.export(ctx, "main")
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if _, err := p.run(ctx, main, "sh", append([]string{"checks/run.sh"}, labelled()...)...); err != nil {
		errs = append(errs, fmt.Errorf("main after the merges: %w", err))
	}
	return errors.Join(errs...)
}

// verifyDone checks that the branch exists, that its check passes, and that the issue reports success.
func (p place) verifyDone(ctx context.Context, key string) error {
	branch, err := p.export(ctx, "ralph/"+key)
	if err != nil {
		return err
	}
	if _, err := p.run(ctx, branch, "sh", "checks/run.sh", key); err != nil {
		return err
	}
	now, err := os.ReadFile(p.issueFile(key))
	if err != nil {
		return err
	}
	if !bytes.Contains(now, []byte("succeeded")) {
		return errors.New("the issue has no report of success")
	}
	return nil
}

// verifyUntouched checks that the issue for people was not worked.
func (p place) verifyUntouched(ctx context.Context) error {
	if _, err := p.run(ctx, p.repo(), "git", "rev-parse", "--verify", "--quiet", "refs/heads/ralph/"+humanIssue); err == nil {
		return errors.New("has a branch, and was not to be worked")
	}
	was, err := fs.ReadFile(files, "repo/.ralph/backlog/"+humanIssue+".md")
	if err != nil {
		return err
	}
	now, err := os.ReadFile(p.issueFile(humanIssue))
	if err != nil {
		return err
	}
	if !bytes.Equal(was, now) {
		return errors.New("the issue's file was changed")
	}
	return nil
}

// verifyStarts checks that each issue took one iteration, except the one whose gate failed in the first.
func (p place) verifyStarts() error {
	starts, err := scripted.ReadLog(p.starts())
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, s := range starts {
		count[s.Key]++
	}
	for _, key := range labelled() {
		want := 1
		if key == "add-mean" {
			want = 2
		}
		if count[key] != want {
			return fmt.Errorf("%s: the agent was started %d times, want %d", key, count[key], want)
		}
	}
	if n := count[humanIssue]; n != 0 {
		return fmt.Errorf("%s: the agent was started %d times", humanIssue, n)
	}
	return nil
}

// export checks out a branch in a new clone, so that ralph's repository stays unchanged.
func (p place) export(ctx context.Context, branch string) (dir string, err error) {
	dir = filepath.Join(p.dir, "verify", filepath.FromSlash(branch))
	_, err = p.run(ctx, p.dir, "git", "clone", "--quiet", "--branch", branch, p.repo(), dir)
	return dir, err
}

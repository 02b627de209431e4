package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// stressEnv makes the test binary another ralph process: "<checkout>|<state folder>|<number>".
const stressEnv = "RALPH_WORKTREE_STRESS"

func splitLines(s string) []string { return strings.Split(s, "\n") }

// stressChild works several issues in succession, on three goroutines.
func stressChild(job string) error {
	parts := strings.Split(job, "|")
	ctx := context.Background()
	r, err := Open(ctx, parts[0], Options{StateDir: parts[1]})
	if err != nil {
		return err
	}
	base, err := r.Base(ctx, "main")
	if err != nil {
		return err
	}
	var group errgroup.Group
	for i := range 2 {
		group.Go(func() error {
			for n := range 2 {
				if err := stressIssue(ctx, r, base, fmt.Sprintf("k%s-%d-%d", parts[2], i, n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func stressIssue(ctx context.Context, r *Repo, base Base, key string) error {
	claim, err := r.Claim(ctx, key, Holder{Owner: "o", Run: key}, claimTTL)
	if err != nil {
		return err
	}
	tree, err := r.Add(ctx, Spec{Run: key, Key: key, Branch: "ralph/" + key, Base: base})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree.Dir(), "new"), []byte(key), 0o600); err != nil {
		return err
	}
	got, err := tree.Import(ctx, nil)
	if err != nil {
		return err
	}
	if got.WIP == "" {
		return fmt.Errorf("%s: nothing was saved", key)
	}
	if err := tree.Remove(ctx); err != nil {
		return err
	}
	return claim.Release(ctx)
}

func TestManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var user sync.WaitGroup
	user.Go(func() { // the user's own git cleans up continuously
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, _ = f.try(f.dir, "git", "worktree", "prune", "--expire=now")
			_, _ = f.try(f.dir, "git", "pack-refs", "--all")
			_, _ = f.try(f.dir, "git", "gc", "--auto", "-q")
		}
	})
	var group errgroup.Group
	for n := range 8 {
		group.Go(func() error {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", stressEnv, f.dir, f.state, n))
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("process %d: %w: %s", n, err, out)
			}
			return nil
		})
	}
	err = group.Wait()
	close(stop)
	user.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if refs := f.git("for-each-ref", "refs/ralph/wip/"); countLines(refs, "") != 32 {
		t.Errorf("saved changes:\n%s", refs)
	}
	if refs := f.ref("refs/ralph/claims/"); refs != "" {
		t.Errorf("claims are left: %s", refs)
	}
	if left, _ := filepath.Glob(filepath.Join(f.dir, ".git", "worktrees", "*")); len(left) != 0 {
		t.Errorf("worktrees are left: %v", left)
	}
}

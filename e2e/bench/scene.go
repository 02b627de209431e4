package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scene is a repository with a backlog, and a home for it.
type scene struct{ dir, repo string }

// usualFiles is the usual number of files: enough that a checkout takes time, few enough that it does not dominate.
const usualFiles = 50

// newScene creates a scene with issues that are ready.
func (b *bench) newScene(ctx context.Context, issues, files int) (scene, error) {
	b.created++
	s := scene{dir: filepath.Join(b.dir, fmt.Sprint(b.created))}
	s.repo = filepath.Join(s.dir, "project")
	for i := range files {
		if err := s.write(fmt.Sprintf("part%d/file%d.txt", i%max(8, files/100), i), fmt.Sprintf("This is file %d.\n", i)); err != nil {
			return s, err
		}
	}
	if err := s.write(".gitignore", ".ralph/\n"); err != nil {
		return s, err
	}
	for i := range issues {
		if err := s.issue(i); err != nil {
			return s, err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message=first"},
	} {
		cmd := s.command(ctx, "git", args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return s, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return s, nil
}

// issue adds an issue to the backlog.
func (s scene) issue(n int) error {
	text := fmt.Sprintf("---\ntitle: Commit number %d\nlabels: [no-human]\n---\nCommit, and do nothing else.\n", n)
	return s.write(fmt.Sprintf(".ralph/backlog/issue-%04d.md", n), text)
}

func (s scene) write(name, content string) error {
	path := filepath.Join(s.repo, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600))
}

// command returns a program that runs in the scene, isolated from the user's configuration.
func (s scene) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.repo
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LC_ALL=C", "HOME=" + s.dir,
		"XDG_STATE_HOME=" + filepath.Join(s.dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(s.dir, "config"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost",
	}
	return cmd
}

// work returns a sweep over the backlog with the agent, a shell line.
func (s scene) work(ctx context.Context, ralph, sandbox, agent string, args ...string) *exec.Cmd {
	return s.command(ctx, ralph, append([]string{
		"work", "--agent=command", "--sandbox=" + sandbox, "--agent-command=sh -c " + quote(agent),
	}, args...)...)
}

// floor returns the least work that any tool must do for the same issues with git's commands: it runs the same agent in a
// separate worktree, and as many at a time.
func (s scene) floor(ctx context.Context, issues, parallel int, agent string) *exec.Cmd {
	line := fmt.Sprintf(`seq %d | xargs -P%d -I{} sh -c %s`, issues, parallel, quote(strings.Join([]string{
		// Concurrent calls can make each other fail. Ralph has to handle that, too.
		`until git worktree add --quiet --force -B floor/{} ../floor/{} main 2>/dev/null; do :; done`,
		`(cd ../floor/{} && sh -c ` + quote(agent) + ` >../{}.log)`,
		`git rev-list main..floor/{} >/dev/null`,
		`until git worktree remove --force ../floor/{} 2>/dev/null; do [ -e ../floor/{} ] || break; done`,
	}, " && ")))
	return s.command(ctx, "sh", "-c", "mkdir -p ../floor && "+line)
}

// quote quotes a text as one word, for a shell and for ralph's own word splitting.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// branches counts the branches with the prefix.
func (s scene) branches(ctx context.Context, prefix string) (int, error) {
	out, err := s.command(ctx, "git", "for-each-ref", "--format=x", "refs/heads/"+prefix).Output()
	return strings.Count(string(out), "x"), err
}

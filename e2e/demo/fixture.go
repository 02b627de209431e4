package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed all:repo agent.yaml
var files embed.FS

// place is the folder of a demo.
type place struct{ dir string }

func (p place) repo() string   { return filepath.Join(p.dir, "repo") }
func (p place) script() string { return filepath.Join(p.dir, "agent.yaml") }
func (p place) starts() string { return filepath.Join(p.dir, "agent.log") }
func (p place) state() string  { return filepath.Join(p.dir, "state") }

// program returns the path of a program that the demo has built.
func (p place) program(name string) string { return filepath.Join(p.dir, "bin", name) }

// issueFile returns the path of an issue in the backlog.
func (p place) issueFile(key string) string {
	return filepath.Join(p.repo(), ".ralph", "backlog", key+".md")
}

// labelled returns the issues that ralph may work. humanIssue is the one that it must not touch.
func labelled() []string {
	return []string{"add-sum", "add-max", "add-mean", "add-sorted", "add-median"}
}

const humanIssue = "add-json"

// layOut creates the repository, with everything committed, and the agent's script.
func (p place) layOut(ctx context.Context) error {
	if err := os.MkdirAll(p.repo(), 0o755); err != nil {
		return err
	}
	repo, err := fs.Sub(files, "repo")
	if err != nil {
		return err
	}
	if err := os.CopyFS(p.repo(), repo); err != nil {
		return err
	}
	// Embedded files have no modes.
	if err := os.Chmod(filepath.Join(p.repo(), "tally"), 0o755); err != nil {
		return err
	}
	script, err := files.ReadFile("agent.yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.script(), script, 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"config", "user.name", "Ada"},
		{"config", "user.email", "ada@example.invalid"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "A program with six failing checks, and a backlog"},
	} {
		if _, err := p.run(ctx, p.repo(), "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// environment returns the user's environment without git and ralph settings, so that the demo is reproducible.
func (p place) environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RALPH_") && !strings.HasPrefix(kv, "GIT_") {
			env = append(env, kv)
		}
	}
	return append(env,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"XDG_STATE_HOME="+p.state(), "XDG_CONFIG_HOME="+filepath.Join(p.dir, "config"),
	)
}

// run runs a program in the demo's environment and returns its output.
func (p place) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, p.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

package cli

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// programs looks for the scripts of the repository that commands start with: a worktree has what is committed, and what
// is copied or made into it.
func (d *doctor) programs(ctx context.Context, p *parts, what string, commands []string) {
	base, err := p.repo.Base(ctx, p.Base)
	if err != nil {
		return // said before
	}
	for _, command := range commands {
		script := scriptOf(command)
		if script == "" || slices.Contains(p.Copy, script) {
			continue
		}
		there, err := p.repo.Has(ctx, base.Commit, script)
		_, missing := os.Stat(filepath.Join(p.top, script))
		switch {
		case err != nil:
			d.warn(what, err.Error(), "")
		case there:
		case missing == nil:
			d.warn(what, fmt.Sprintf("%s is not committed on %s: no worktree has it", script, base.Name),
				fmt.Sprintf("git add %s && git commit, or copy: [%s] in .ralph/config.yaml", script, script))
		case what == "agent-command": // the agent's own check says so
		case what != "setup" && len(p.Setup) > 0: // which may make it
		default:
			d.warn(what, fmt.Sprintf("%s does not exist", script), "correct the command, or commit the file")
		}
	}
}

// submodules warns of folders that will be empty: a worktree has what the repository's own commits have.
func (d *doctor) submodules(ctx context.Context, p *parts) {
	base, err := p.repo.Base(ctx, p.Base)
	if err != nil {
		return // said before
	}
	there, err := p.repo.Has(ctx, base.Commit, ".gitmodules")
	named := func(line string) bool { return strings.Contains(line, "submodule") }
	switch {
	case err != nil:
		d.warn("submodules", err.Error(), "")
	case !there:
	case slices.ContainsFunc(p.Setup, named) || slices.ContainsFunc(p.Before, named):
		d.ok("submodules", "setup or before brings them")
	default:
		d.warn("submodules", "their folders are empty in worktrees: neither setup nor before brings them",
			`setup: ["git submodule update --init --recursive"] in .ralph/config.yaml, and allow: [HOST] in a sandbox; docs/agents.md says more`)
	}
}

// scriptOf is the file in the repository that a command line runs, as far as its first words tell; empty for others.
func scriptOf(command string) string {
	words := strings.Fields(command)
	if len(words) > 1 && slices.Contains([]string{"sh", "bash"}, words[0]) && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	} else if len(words) == 0 || !strings.Contains(words[0], "/") {
		return ""
	}
	if strings.ContainsAny(words[0], "$`'\"*?~;&|<>()") || path.IsAbs(words[0]) || !filepath.IsLocal(path.Clean(words[0])) {
		return ""
	}
	return path.Clean(words[0])
}

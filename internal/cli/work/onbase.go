package work

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// What is said of submodules that a gate may need.
const (
	EmptySubmodules = "their folders are empty in worktrees: neither setup nor before brings them"
	SubmodulesFix   = `setup: ["git submodule update --init --recursive"] in .ralph/config.yaml, and allow: [HOST] in a sandbox; docs/agents.md says more`
)

// Submodules reports whether the base has any, and whether a command brings their files.
func Submodules(ctx context.Context, p *compose.Parts) (there, brought bool, err error) {
	base, err := p.Repo.Base(ctx, p.Base)
	if err != nil {
		return false, false, nil //nolint:nilerr // said before
	}
	there, err = p.Repo.Has(ctx, base.Commit, ".gitmodules")
	named := func(line string) bool { return strings.Contains(line, "submodule") }
	return there, slices.ContainsFunc(p.Setup, named) || slices.ContainsFunc(p.Before, named), err
}

// LackOnBase says once what setup or gate may lack on the base, where one of them fails there; empty: nothing that is known of.
func LackOnBase(ctx context.Context, p *compose.Parts) func() string {
	said := false
	return func() string {
		if said {
			return ""
		}
		said = true
		if there, brought, err := Submodules(ctx, p); err != nil || !there || brought {
			return ""
		}
		return "submodules: " + EmptySubmodules + "; " + SubmodulesFix
	}
}

// NamedIn reports that a line of the setup names the folder at the top that a script is in, such as .venv: it makes it.
func NamedIn(setup []string, script string) bool {
	folder, _, below := strings.Cut(script, "/")
	edge := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("/;&", r) }
	return below && slices.ContainsFunc(setup, func(line string) bool { return slices.Contains(strings.FieldsFunc(line, edge), folder) })
}

// ScriptOf is the file in the repository that a command line runs, as far as its first words tell; empty for others.
func ScriptOf(command string) string {
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

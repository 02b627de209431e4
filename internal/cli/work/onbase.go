package work

import (
	"context"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
)

// Submodules reports whether the base has submodules, and whether a command of setup or before fetches them.
func Submodules(ctx context.Context, p *compose.Parts) (there, brought bool, err error) {
	base, err := p.Repo.Base(ctx, p.Base)
	if err != nil {
		return false, false, nil //nolint:nilerr // said before
	}
	there, err = p.Repo.HasPath(ctx, base.Commit, ".gitmodules")
	named := func(line string) bool { return strings.Contains(line, "submodule") }
	return there, slices.ContainsFunc(p.Setup, named) || slices.ContainsFunc(p.Before, named), err
}

// LackOnBase returns a function that says what setup or gate may lack when one of them fails on the base. After the first
// call, and if nothing is known, it returns "".
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
		return "submodules: " + hint.EmptySubmodules + "; " + hint.SubmodulesFix
	}
}

package work

import (
	"context"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
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
		return "submodules: " + hint.EmptySubmodules + "; " + hint.SubmodulesFix
	}
}

package work

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// noteUncommitted notes that runs do not see uncommitted changes in the checkout. It ignores ralph's own folder and the
// backlog, which are read from the checkout. An error of git is no reason not to work.
func noteUncommitted(ctx context.Context, a *compose.App, p *compose.Parts) {
	if a.UI.Quiet {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g := p.Repo.Git().WithDir(p.Top)
	programs, err := g.Config(ctx)
	if err != nil {
		return
	}
	// Run no filters: merged commits of an agent may have brought the attributes that name one, or its program.
	out, err := g.With(programs.WithoutPrograms()...).Run(ctx, "",
		"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "HEAD", "--")
	if err != nil {
		return
	}
	backlog, _ := filepath.Rel(p.Top, p.LocalDir)
	for file := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if file != "" && !strings.HasPrefix(file, scaffold.Dir+"/") && !strings.HasPrefix(file, filepath.ToSlash(backlog)+"/") {
			a.UI.Note("uncommitted changes in your checkout, such as %s, are not included: runs start at a commit",
				screen.CleanLine(file))
			return
		}
	}
}

// NoteUnpushed notes that the base branch has commits that its remote branch lacks.
func NoteUnpushed(ctx context.Context, a *compose.App, p *compose.Parts) {
	base, err := p.FindBase(ctx)
	if err != nil {
		return
	}
	_ = p.Repo.Git().Lines(ctx, func(line []byte) {
		name, rest, _ := strings.Cut(string(line), " ")
		if upstream, track, _ := strings.Cut(rest, " "); strings.HasPrefix(track, "ahead ") {
			a.UI.Note("%s is ahead of %s; ralph does not push it: check it, then git push",
				screen.CleanLine(name), screen.CleanLine(upstream))
		}
	}, "for-each-ref", "--format=%(refname:short) %(upstream:short) %(upstream:track,nobracket)", base.Ref)
}

// projectName returns the repository's name in the user's service, so that links lead to its pages there; else the folder's
// name, which a service of this repository alone would use.
func projectName(a *compose.App, p *compose.Parts) string {
	if listed, ok := config.Served(a.Host.Env, a.Choices(), p.Top); ok {
		return listed.Name
	}
	return filepath.Base(p.Top)
}
